#include "sim/fleet/api.hpp"

#include <algorithm>
#include <cmath>

#include "sim/fixed_point.hpp"
#include "sluice/asio/timer.hpp"

namespace sluice::sim::scenario {

namespace {

constexpr std::uint64_t states = 0x61706973;  // a purpose of stream()
constexpr Word millionth = 1'000'000;
// Longer work would leave the range of times.
constexpr Span longest_work = std::chrono::hours{24 * 366};

/// `span` * `factor` / `unit` in whole numbers, so that it is the same on every platform.
Span scaled(Span span, Word factor, Word unit) {
  const auto product = fixed::SignedWide{span.count()} * factor / unit;
  return Span{static_cast<Word>(std::min<fixed::SignedWide>(product, longest_work.count()))};
}

/// True for this share, in millionths, of the draws.
bool draw(std::uint32_t share, SeededRng& rng) {
  return share != 0 && rng.below(static_cast<std::uint64_t>(millionth)) < share;
}

}  // namespace

/// A call that its client may give up.
struct Api::Call {
  explicit Call(World& world) : answered(world.get_executor(), world.clock()) {}
  asio::BasicTimer<World::Executor> answered;  // of the timeout; cancelled by the answer
  ApiAnswer answer{0, {}};
};

Api::Api(World& world, const ApiOptions& options, Span timeout)
    : world_(world),
      options_(options),
      timeout_(timeout),
      to_(options.to, stream(world.seed(), 0, states)),
      from_(options.from, stream(world.seed(), 1, states)),
      latency_(options.latency, stream(world.seed(), 2, states)),
      upstream_({.limits = options.limits, .penalty = options.penalty}),
      crowding_(std::llround(options.crowding * millionth)),
      failures_(std::llround(options.failures * millionth)) {
  if (options.servers != 0) servers_.emplace(world, options.servers);
}

Task<ApiAnswer> Api::call(SeededRng& way, const LinkFaults& faults) {
  if (timeout_ == Span{0}) {
    if (draw(faults.doubled, way)) world_.spawn(serve_copy(SeededRng(way.next()), faults));
    const std::optional<ApiAnswer> answer = co_await serve(way, faults);
    co_return answer.value_or(ApiAnswer{0, {}});
  }
  const auto call = std::make_shared<Call>(world_);
  call->answered.expires_after(timeout_);
  // The API goes on with a call whose client has left, and so do its draws.
  world_.spawn(serve_for(call, SeededRng(way.next()), faults));
  co_await call->answered.async_wait(boost::asio::as_tuple(boost::asio::deferred));
  co_return call->answer;
}

Task<> Api::serve_for(std::shared_ptr<Call> call, SeededRng way, const LinkFaults& faults) {
  if (draw(faults.doubled, way)) world_.spawn(serve_copy(SeededRng(way.next()), faults));
  const std::optional<ApiAnswer> answer = co_await serve(way, faults);
  if (!answer) co_return;  // the client waits until its timeout
  call->answer = *answer;
  call->answered.cancel();
}

/// The second copy of a request, on a way of its own. Nobody hears of its answer.
Task<> Api::serve_copy(SeededRng way, const LinkFaults& faults) {
  (void)co_await serve(way, faults);
}

/// None: the request is lost, or its answer.
Task<std::optional<ApiAnswer>> Api::serve(SeededRng& way, const LinkFaults& faults) {
  if (faults.cut || draw(faults.lost, way)) co_return std::nullopt;
  co_await sleep(to_, way);
  ApiAnswer answer;
  if (down_) {
    answer.status = 503;
  } else if (!upstream_.call(world_.now())) {
    answer.status = 429;
    answer.retry_after = options_.retry_after.tell(upstream_.retry_after(world_.now()));
  } else {
    answer.status = co_await work(way);
  }
  if (faults.cut || draw(faults.answer_lost, way)) co_return std::nullopt;
  co_await sleep(from_, way);
  co_return answer;
}

Task<int> Api::work(SeededRng& way) {
  const Span even = latency_.sample(world_.now(), way);
  const bool fails = failures_ != 0 && static_cast<Word>(way.below(millionth)) < failures_;
  Resource::Server server;
  if (servers_) {
    if (options_.queue != 0 && servers_->stats().waiting >= options_.queue) co_return 503;
    server = co_await servers_->acquire({});
  }
  ++working_;
  const std::uint64_t seen = row_version_;
  const Word crowded = millionth + crowding_ * working_ / 100;
  const Span span = scaled(scaled(even, crowded, millionth), slowness_, 1000);
  co_await asio::sleep_for(world_.clock(), span);
  --working_;
  if (fails) co_return 500;
  if (options_.conflicts && row_version_ != seen) co_return 409;
  ++row_version_;
  co_return 200;
}

void Api::slow_down(double factor) noexcept { slowness_ = std::llround(factor * 1000); }

void Api::set_servers(double factor) {
  if (!servers_ || factor == servers_factor_) return;
  servers_factor_ = factor;
  servers_->set_servers(
      static_cast<std::size_t>(std::llround(static_cast<double>(options_.servers) * factor)));
}

void Api::scale_limit(double factor) {
  if (options_.limits.empty() || factor == limit_factor_) return;
  limit_factor_ = factor;
  const double limit = static_cast<double>(options_.limits.front().limit) * factor;
  upstream_.set_limit(0, std::max<Word>(std::llround(limit), 1));
}

}  // namespace sluice::sim::scenario
