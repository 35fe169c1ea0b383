// Clients of a model's API, whose calls cost what their answers say: how much of the quota they
// use, in true tokens, with estimates that are too high. test_calls_client "[.figures]" prints the
// table of docs/calls.md.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <memory>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/sluice.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr int processes = 4;
constexpr int callers = 300;
constexpr Word quota = 100'000;  // a minute
constexpr Word least_tokens = 300;
constexpr Word most_tokens = 1'100;
constexpr Span least_latency = 5s;
constexpr Span most_latency = 15s;
constexpr Span closure = 5s;
constexpr Span warm_up = 5min;
constexpr Span measured = 30min;

/// The API, which knows what each call has cost.
struct Api {
  Time closed_until{};
  int calls = 0;
  int while_closed = 0;
  int settled = 0;
  Word tokens = 0;  // of answers within the time that is measured
};

/// One process: its connection, its limiter and its gate.
template <class L>
struct Process {
  template <class Make>
  Process(World& world, const Make& make)
      : link(world.connect({sim::Delay::constant(500us), sim::Delay::constant(500us)})),
        tokens(make(*link)) {}

  std::unique_ptr<sim::RemoteStore> link;
  L tokens;
  Gates gates{*link, "api", {"account"}};
  Scope account = gates.scope("account", 1);
};

template <class L>
class Fleet {
 public:
  template <class Make>
  Fleet(std::uint64_t seed, Word estimate, const Make& make)
      : world_({.seed = seed}), rng_(seed), estimate_(estimate) {
    for (int i = 0; i < processes; ++i) processes_.push_back(std::make_unique<Process<L>>(world_, make));
  }

  void run() {
    for (int i = 0; i < callers; ++i) {
      net::co_spawn(world_, work(*processes_[static_cast<std::size_t>(i % processes)]), Rethrow{});
    }
    start_ = world_.now() + warm_up;
    world_.run_until(start_);
    const auto before = operations();
    const Api api_before = api_;
    world_.run_until(start_ + measured);
    calls = api_.calls - api_before.calls;
    while_closed = api_.while_closed;
    operations_a_call =
        static_cast<double>(operations() - before - static_cast<std::uint64_t>(api_.settled - api_before.settled)) / calls;
    used = static_cast<double>(api_.tokens) / (static_cast<double>(quota) * (measured / 1min));
  }

  double used = 0;  ///< of the quota
  double operations_a_call = 0;
  int calls = 0;
  int while_closed = 0;

 private:
  Word between(Word low, Word high) {
    return low + static_cast<Word>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  [[nodiscard]] std::uint64_t operations() const {
    std::uint64_t all = 0;
    for (const auto& each : processes_) all += each->link->operations();
    return all;
  }

  net::awaitable<Costed<int>> ask() {
    ++api_.calls;
    if (world_.now() < api_.closed_until) ++api_.while_closed;
    const Word tokens = between(least_tokens, most_tokens);
    const bool refuses = rng_.below(50) == 0;
    const Time begin = world_.now();
    co_await asio::sleep_for(world_.clock(), refuses ? Span{50ms} : Span{between(least_latency.count(), most_latency.count())},
                             net::use_awaitable);
    if (refuses) {
      api_.closed_until = std::max(api_.closed_until, world_.now() + closure);
      throw RateLimited(closure);
    }
    if (begin >= start_) api_.tokens += tokens;
    ++api_.settled;
    co_return Costed<int>{0, tokens};
  }

  net::awaitable<void> work(Process<L>& process) {
    const std::array claims{Claim(process.tokens, "key", Estimate{estimate_}),
                            Claim(process.gates, process.account)};
    const Call call(claims, {.attempts = 1000});
    for (;;) co_await asio::async_call(call, [&] { return ask(); });
  }

  World world_;
  SeededRng rng_;
  Word estimate_;
  Time start_{};
  Api api_;
  std::vector<std::unique_ptr<Process<L>>> processes_;
};

template <class Make>
auto fleet_of(Word factor, const Make& make) {
  World world;
  using L = decltype(make(world.store()));
  Fleet<L> fleet(7, factor * (least_tokens + most_tokens) / 2, make);
  fleet.run();
  return std::array<double, 4>{fleet.used, fleet.operations_a_call, double(fleet.calls), double(fleet.while_closed)};
}

template <class Make>
void print(const char* name, const Make& make) {
  for (const Word factor : {1, 2, 5}) {
    const auto [used, operations, calls, closed] = fleet_of(factor, make);
    std::printf("%-22s %d  used %.3f  operations %.2f calls %.0f closed %.0f\n", name, int(factor), used, operations, calls, closed);
    std::fflush(stdout);
  }
}

}  // namespace

TEST_CASE("figures of costs that are known late", "[.figures]") {
  print("TokenBucket", [](Store& store) { return TokenBucket(store, "tokens", Quota::per_minute(quota)); });
  print("in full", [](Store& store) { return TokenBucket(store, "tokens", Quota::per_minute(quota), {.refund = Refund::in_full}); });
  print("FixedWindow", [](Store& store) { return FixedWindow(store, "tokens", quota, Calendar::every(1min)); });
  print("SlidingWindowCounter", [](Store& store) { return SlidingWindowCounter(store, "tokens", {quota, 1min}); });
  print("SlidingWindow", [](Store& store) { return SlidingWindow(store, "tokens", {{65'536, 1min}}); });
}

}  // namespace sluice::test
