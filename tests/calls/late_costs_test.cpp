// Clients of a model's API, whose calls cost what their answers say: how much of the quota they
// use, in true tokens, with estimates that are too high or learned. test_calls_client "[.figures]"
// prints the table of docs/estimates.md.
#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <memory>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/invariants.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr int processes = 4;
constexpr int callers = 300;
constexpr Word quota = 100'000;
constexpr Span minute = 1min;
constexpr Word least_tokens = 300;
constexpr Word most_tokens = 1'100;
constexpr Word mean_tokens = (least_tokens + most_tokens) / 2;
constexpr Span least_latency = 5s;
constexpr Span most_latency = 15s;
constexpr Span mean_latency = (least_latency + most_latency) / 2;
constexpr Span closure = 5s;
constexpr Span round_trip = 1ms;
constexpr Span warm_up = 5min;
constexpr Span measured = 30min;

/// A call that the API has served: what was charged for it first, and what it has cost.
struct Served {
  Time granted;
  Time ended;
  Word estimate;
  Word tokens;
};

/// What a fleet did in the time that is measured.
struct Figures {
  double used = 0;        ///< of the quota, in true tokens
  double operations = 0;  ///< a grant, without its settlement
  int too_early = 0;      ///< calls of a closed API, later than a round trip behind its closure
  std::vector<Served> served{};
};

struct Api {
  Time closed_at{};
  Time closed_until{};
  int calls = 0;
  int settled = 0;
  int too_early = 0;
};

/// How the estimates of a fleet are made.
struct Estimates {
  Word fixed = 0;  ///< 0: they are learned
};

/// Four processes, each with its connection to the store, its limiter, its gate and its estimator.
template <class Make>
class Fleet {
 public:
  Fleet(std::uint64_t seed, const Estimates& estimates, const Make& make)
      : world_({.seed = seed}), rng_(seed) {
    for (int i = 0; i < processes; ++i) {
      processes_.push_back(std::make_unique<Process>(world_, make, estimates));
    }
  }

  Figures run() {
    for (int i = 0; i < callers; ++i) {
      net::co_spawn(world_, work(*processes_[static_cast<std::size_t>(i % processes)]), Rethrow{});
    }
    start_ = world_.now() + warm_up;
    world_.run_until(start_);
    const auto operations_before = operations();
    const Api before = api_;
    world_.run_until(start_ + measured);
    const auto asked = operations() - operations_before -
                       static_cast<std::uint64_t>(api_.settled - before.settled);
    figures_.operations = static_cast<double>(asked) / (api_.calls - before.calls);
    figures_.too_early = api_.too_early;
    Word tokens = 0;
    for (const Served& each : figures_.served) {
      if (each.granted >= start_) tokens += each.tokens;
    }
    figures_.used =
        static_cast<double>(tokens) / (static_cast<double>(quota) * (measured / minute));
    return figures_;
  }

 private:
  struct Process {
    Process(World& world, const Make& make, const Estimates& estimates)
        : link(world.connect(
              {sim::Delay::constant(round_trip / 2), sim::Delay::constant(round_trip / 2)})),
          tokens(make(*link)),
          call(claims(estimates), {.attempts = 1000}) {}

    std::vector<Claim> claims(const Estimates& estimates) {
      Claim of_tokens = estimates.fixed > 0
                            ? Claim(tokens, "key", Estimate{estimates.fixed})
                            : Claim(tokens, "key", estimator.of("model", most_tokens));
      return {std::move(of_tokens), Claim(gates, gates.scope("account", 1))};
    }

    std::unique_ptr<sim::RemoteStore> link;
    decltype(std::declval<const Make&>()(std::declval<Store&>())) tokens;
    Gates gates{*link, "api", {"account"}};
    Estimator estimator;
    Call call;
  };

  [[nodiscard]] std::uint64_t operations() const {
    std::uint64_t all = 0;
    for (const auto& each : processes_) all += each->link->operations();
    return all;
  }
  Word between(Word low, Word high) {
    return low + static_cast<Word>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  net::awaitable<Costed<int>> ask(const Reservation& grant) {
    ++api_.calls;
    const Time now = world_.now();
    if (now < api_.closed_until && now > api_.closed_at + round_trip) ++api_.too_early;
    if (rng_.below(50) == 0) {
      co_await asio::sleep_for(world_.clock(), 50ms, net::use_awaitable);
      api_.closed_at = world_.now();
      api_.closed_until = std::max(api_.closed_until, world_.now() + closure);
      throw RateLimited(closure);
    }
    Served served{grant.ready_at(), {}, grant.granted, between(least_tokens, most_tokens)};
    co_await asio::sleep_for(world_.clock(),
                             Span{between(least_latency.count(), most_latency.count())},
                             net::use_awaitable);
    served.ended = world_.now();
    figures_.served.push_back(served);
    ++api_.settled;
    co_return Costed<int>{0, served.tokens};
  }

  net::awaitable<void> work(Process& process) {
    for (;;) {
      co_await asio::async_call(process.call,
                                [this](Grants& grants) { return ask(grants.get<Reservation>(0)); });
    }
  }

  World world_;
  SeededRng rng_;
  Time start_{};
  Api api_;
  Figures figures_;
  std::vector<std::unique_ptr<Process>> processes_;
};

template <class Make>
Figures figures_of(std::uint64_t seed, const Estimates& estimates, const Make& make) {
  return Fleet<Make>(seed, estimates, make).run();
}

/// In the order of the grants.
testing::History history_of(Figures& figures) {
  std::ranges::sort(figures.served, {}, &Served::granted);
  testing::History history;
  for (const Served& each : figures.served) {
    history.push_back(
        {.at = each.granted, .cost = each.tokens, .allowed = true, .effective = each.granted});
  }
  return history;
}

/// The tokens of any interval beyond the burst, the rate, and what was charged too much for the
/// calls that were under way when it began.
Word excess_of_bucket(Figures& figures) {
  std::ranges::sort(figures.served, {}, &Served::granted);
  const auto& served = figures.served;
  Word excess = 0;
  for (std::size_t first = 0; first < served.size(); ++first) {
    const Time from = served[first].granted;
    Word most = quota;
    for (std::size_t i = first; i-- > 0 && served[i].granted + most_latency >= from;) {
      if (served[i].ended >= from) most += std::max<Word>(0, served[i].estimate - served[i].tokens);
    }
    Word sum = 0;
    for (std::size_t last = first; last < served.size(); ++last) {
      sum += served[last].tokens;
      const Word drained = (served[last].granted - from).count() * quota / minute.count();
      excess = std::max(excess, sum - most - drained);
    }
  }
  return excess;
}

/// What a window of a minute admits in true tokens, of its limit: calls under way count in full.
double rule_of_window(double estimate) {
  const double w = minute / 1s;
  const double l = mean_latency / 1s;
  const double over = std::max(0.0, estimate - mean_tokens);
  return w * mean_tokens / (w * mean_tokens + l * over);
}

constexpr auto bucket = [](Store& store) {
  return TokenBucket(store, "tokens", Quota::per_minute(quota), {.refund = Refund::in_full});
};
constexpr auto exact = [](Store& store) {
  return SlidingWindow(store, "tokens", {{quota, minute}});
};
constexpr auto window = [](Store& store) {
  return FixedWindow(store, "tokens", quota, Calendar::every(minute));
};
constexpr auto counter = [](Store& store) {
  return SlidingWindowCounter(store, "tokens", {quota, minute});
};

constexpr double learned = 1'087;  // the top of the bucket of the 95 % quantile, 1,060

template <class Make>
void print(const char* name, const Make& make) {
  for (const Word factor : {1, 2, 5, 0}) {
    const Figures figures = figures_of(7, {factor * mean_tokens}, make);
    std::printf("| %s | %s | %.2f | %.1f |\n", name,
                factor == 0 ? "learned" : std::to_string(factor).c_str(), figures.used,
                figures.operations);
    std::fflush(stdout);
  }
}

}  // namespace

TEST_CASE("a bucket that refunds in full uses its quota, however wrong the estimates",
          "[calls][statistics]") {
  Random random("a bucket that refunds in full uses its quota, however wrong the estimates");
  CAPTURE(random.repeat());
  const Word factor = GENERATE(0, 1, 2, 5);
  CAPTURE(factor);
  Figures figures = figures_of(random.next(), {factor * mean_tokens}, bucket);
  CHECK(figures.used >= 0.97);
  CHECK(figures.too_early == 0);
  CHECK(figures.operations <= 5);
  // An estimate that is too low is charged later: a debt, which the rate pays.
  if (factor != 1) CHECK(excess_of_bucket(figures) <= 0);
}

TEST_CASE("a sliding window uses what calls under way leave of it, and never more",
          "[calls][statistics]") {
  Random random("a sliding window uses what calls under way leave of it, and never more");
  CAPTURE(random.repeat());
  const Word factor = GENERATE(0, 1, 2, 5);
  CAPTURE(factor);
  Figures figures = figures_of(random.next(), {factor * mean_tokens}, exact);
  const double estimate = factor == 0 ? learned : static_cast<double>(factor * mean_tokens);
  // The rule is without refusals: a gate is closed for a quarter of this time.
  CHECK(figures.used >= 0.93 * rule_of_window(estimate));
  CHECK(figures.too_early == 0);
  CHECK(figures.operations <= 6);
  if (factor < 2) return;  // what was estimated too low is charged beyond the limit
  const auto history = history_of(figures);
  const auto excess = testing::check_window(history, minute, quota);
  if (excess) FAIL(excess->what);
}

TEST_CASE("a fixed window uses what calls under way leave of it", "[calls][statistics]") {
  Random random("a fixed window uses what calls under way leave of it");
  CAPTURE(random.repeat());
  const Word factor = GENERATE(0, 2, 5);
  CAPTURE(factor);
  Figures figures = figures_of(random.next(), {factor * mean_tokens}, window);
  const double estimate = factor == 0 ? learned : static_cast<double>(factor * mean_tokens);
  CHECK(figures.used >= 0.97 * rule_of_window(estimate));
  CHECK(figures.too_early == 0);
  if (factor == 0) return;
  std::vector<Time> edges;
  const Time first = figures.served.front().granted;
  for (Time edge = first - (first.time_since_epoch() % minute);
       edge < first + warm_up + 2 * measured; edge += minute) {
    edges.push_back(edge);
  }
  const auto history = history_of(figures);
  const auto excess = testing::check_aligned(history, edges, quota);
  if (excess) FAIL(excess->what);
}

TEST_CASE("figures of costs that are known late", "[.figures]") {
  print("`TokenBucket`, `Refund::in_full`", bucket);
  print("`TokenBucket`",
        [](Store& store) { return TokenBucket(store, "tokens", Quota::per_minute(quota)); });
  print("`SlidingWindow`", exact);
  print("`FixedWindow`", window);
  print("`SlidingWindowCounter`", counter);
}

}  // namespace sluice::test
