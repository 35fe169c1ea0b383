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
#include "sluice/extend/store_wrapper.hpp"
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

  /// What the limit has counted at any time since the grant.
  [[nodiscard]] Word counted() const { return std::min(estimate, tokens); }
};

/// What a fleet did in the time that is measured.
struct Figures {
  double used = 0;        ///< of the quota, in true tokens
  double operations = 0;  ///< a grant, without its settlement
  int too_early = 0;      ///< calls of a closed API, later than a round trip behind its closure
  // From the beginning on:
  int given_back = 0;  ///< requests that settle or refund
  int ended = 0;       ///< calls that were served or refused
  std::vector<Served> served{};
};

struct Api {
  Time closed_at{};
  Time closed_until{};
  int calls = 0;
  int settled = 0;
  int refused = 0;
  int too_early = 0;
};

/// How the estimates of a fleet are made, and whether the API refuses 2 % of its calls.
struct Setting {
  Word estimate = 0;  ///< 0: it is learned
  bool refuses = true;
};

/// What a process asks the store.
class Counted final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++requests;
    const StateKind kind = plan.steps().front().operation->kind;
    const bool is_of_limit = kind != StateKind::gate && kind != StateKind::wait_line;
    if (is_of_limit && !plan.is_of_wait()) ++given_back;
    StoreWrapper::execute(plan, std::move(done));
  }

  int requests = 0;
  int given_back = 0;
};

/// Four processes, each with its connection to the store, its limiter, its gate and its estimator.
template <class Make>
class Fleet {
 public:
  Fleet(std::uint64_t seed, const Setting& setting, const Make& make)
      : world_({.seed = seed}), rng_(seed), setting_(setting) {
    for (int i = 0; i < processes; ++i) {
      processes_.push_back(std::make_unique<Process>(world_, make, setting));
    }
  }

  Figures run() {
    for (int i = 0; i < callers; ++i) {
      net::co_spawn(world_, work(*processes_[static_cast<std::size_t>(i % processes)]), Rethrow{});
    }
    start_ = world_.now() + warm_up;
    world_.run_until(start_);
    const int requests_before = sum(&Counted::requests) - api_.settled;
    const Api before = api_;
    world_.run_until(start_ + measured);
    const int asked = sum(&Counted::requests) - api_.settled - requests_before;
    figures_.operations = static_cast<double>(asked) / (api_.calls - before.calls);
    figures_.too_early = api_.too_early;
    figures_.given_back = sum(&Counted::given_back);
    figures_.ended = api_.settled + api_.refused;
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
    Process(World& world, const Make& make, const Setting& setting)
        : link(world.connect(
              {sim::Delay::constant(round_trip / 2), sim::Delay::constant(round_trip / 2)})),
          store(*link),
          tokens(make(store)),
          call(claims(setting), {.attempts = 1000}) {}

    std::vector<Claim> claims(const Setting& setting) {
      Claim of_tokens = setting.estimate > 0
                            ? Claim(tokens, "key", Estimate{setting.estimate})
                            : Claim(tokens, "key", estimator.of("model", most_tokens));
      return {std::move(of_tokens), Claim(gates, gates.scope("account", 1))};
    }

    std::unique_ptr<sim::RemoteStore> link;
    Counted store;
    decltype(std::declval<const Make&>()(std::declval<Store&>())) tokens;
    Gates gates{store, "api", {"account"}};
    Estimator estimator;
    Call call;
  };

  [[nodiscard]] int sum(int Counted::*count) const {
    int all = 0;
    for (const auto& each : processes_) all += each->store.*count;
    return all;
  }
  Word between(Word low, Word high) {
    return low + static_cast<Word>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  net::awaitable<Costed<int>> ask(const Reservation& grant) {
    ++api_.calls;
    const Time now = world_.now();
    if (now < api_.closed_until && now > api_.closed_at + round_trip) ++api_.too_early;
    if (setting_.refuses && rng_.below(50) == 0) {
      co_await asio::sleep_for(world_.clock(), 50ms, net::use_awaitable);
      ++api_.refused;
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
  const Setting setting_;
  Time start_{};
  Api api_;
  Figures figures_;
  std::vector<std::unique_ptr<Process>> processes_;
};

template <class Make>
Figures figures_of(std::uint64_t seed, const Setting& setting, const Make& make) {
  return Fleet<Make>(seed, setting, make).run();
}

/// What was counted, in the order of the grants.
testing::History history_of(Figures& figures) {
  std::ranges::sort(figures.served, {}, &Served::granted);
  testing::History history;
  for (const Served& each : figures.served) {
    history.push_back(
        {.at = each.granted, .cost = each.counted(), .allowed = true, .effective = each.granted});
  }
  return history;
}

/// What was counted in any interval beyond the burst, the rate, and what was charged too much for
/// the calls that were under way when it began.
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
      sum += served[last].counted();
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

constexpr auto full_bucket = [](Store& store) {
  return TokenBucket(store, "tokens", Quota::per_minute(quota), {.refund = Refund::in_full});
};
constexpr auto bucket = [](Store& store) {
  return TokenBucket(store, "tokens", Quota::per_minute(quota));
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

/// The top of the bucket of the 95 % quantile, 1,060.
constexpr Word learned = 1'087;

/// Figures of a row of docs/estimates.md. `factor`: how much too high the estimates are; 0: they
/// are learned.
struct Row {
  Word factor;
  double used;
  double operations;

  [[nodiscard]] double rule() const {
    return rule_of_window(static_cast<double>(factor == 0 ? learned : factor * mean_tokens));
  }
};

/// The means of `runs` runs. `judge` is called with what happened in each.
template <class Make, class Judge>
Row mean_of(Rng& rng, int runs, const Setting& setting, const Make& make, const Judge& judge) {
  Row mean{setting.estimate / mean_tokens, 0, 0};
  for (int run = 0; run < runs; ++run) {
    Figures figures = figures_of(rng.next(), setting, make);
    mean.used += figures.used / runs;
    mean.operations += figures.operations / runs;
    judge(figures);
  }
  return mean;
}

/// In one run, up to 0.035 less or more of the quota is used, since the gate is closed for longer
/// or shorter: three runs are judged by their means.
template <class Make, class Judge>
void check_published(const std::string& name, const Row& row, const Make& make,
                     const Judge& judge) {
  Random random(name);
  CAPTURE(random.repeat(), row.factor);
  const Row mean = mean_of(random, 3, {row.factor * mean_tokens}, make, [&](Figures& figures) {
    CHECK(figures.too_early == 0);
    CHECK(figures.given_back == figures.ended);  // a request each
    judge(figures);
  });
  CHECK(mean.used >= row.used - 0.02);
  CHECK(mean.used <= row.used + 0.02);
  CHECK(mean.operations <= 1.08 * row.operations);
}

void check_bucket(Figures& figures) { CHECK(excess_of_bucket(figures) <= 0); }

void require(const testing::Checked& excess) {
  if (excess) FAIL_CHECK(excess->what);
}

void check_sliding(Figures& figures) {
  require(testing::check_window(history_of(figures), minute, quota));
}

void check_aligned(Figures& figures) {
  const auto history = history_of(figures);
  std::vector<Time> edges;
  const Time first = history.front().at;
  for (Time edge = first - (first.time_since_epoch() % minute);
       edge < first + warm_up + 2 * measured; edge += minute) {
    edges.push_back(edge);
  }
  require(testing::check_aligned(history, edges, quota));
}

void check_counter(Figures& figures) {
  check_aligned(figures);
  require(testing::check_window(history_of(figures), minute, 2 * quota));
}

template <class Make>
void print(const char* name, const Make& make) {
  for (const Word factor : {1, 2, 5, 0}) {
    SeededRng rng(7);
    const Row mean = mean_of(rng, 8, {factor * mean_tokens}, make, [](Figures&) {});
    std::printf("| %s | %s | %.2f | %.1f | %.2f |\n", name,
                factor == 0 ? "learned" : std::to_string(factor).c_str(), mean.used,
                mean.operations, mean.used / mean.rule());
    std::fflush(stdout);
  }
}

}  // namespace

TEST_CASE("a bucket that refunds in full uses its quota, however wrong the estimates",
          "[calls][statistics]") {
  const auto row =
      GENERATE(values<Row>({{1, 0.995, 3.1}, {2, 0.995, 3.1}, {5, 0.995, 3.5}, {0, 0.995, 3.1}}));
  check_published("a bucket that refunds in full uses its quota, however wrong the estimates", row,
                  full_bucket, check_bucket);
}

TEST_CASE("a bucket uses of its quota what estimates that are too high leave",
          "[calls][statistics]") {
  const auto row =
      GENERATE(values<Row>({{1, 0.87, 3.4}, {2, 0.50, 3.9}, {5, 0.20, 8.4}, {0, 0.64, 3.7}}));
  check_published("a bucket uses of its quota what estimates that are too high leave", row, bucket,
                  check_bucket);
}

TEST_CASE("a sliding window uses what calls under way leave of it, and never more",
          "[calls][statistics]") {
  const auto row =
      GENERATE(values<Row>({{1, 0.97, 4.1}, {2, 0.82, 4.2}, {5, 0.57, 5.0}, {0, 0.88, 4.2}}));
  check_published("a sliding window uses what calls under way leave of it, and never more", row,
                  exact, check_sliding);
}

TEST_CASE("a sliding window of calls that no API refuses uses what its formula says",
          "[calls][statistics]") {
  Random random("a sliding window of calls that no API refuses uses what its formula says");
  CAPTURE(random.repeat());
  const Word factor = GENERATE(0, 2, 5);
  CAPTURE(factor);
  const Row mean = mean_of(random, 2, {factor * mean_tokens, false}, exact, check_sliding);
  CHECK(mean.used >= 0.96 * mean.rule());
  CHECK(mean.used <= mean.rule());
}

TEST_CASE("a fixed window uses what calls under way leave of it", "[calls][statistics]") {
  const auto row =
      GENERATE(values<Row>({{1, 1.01, 2.6}, {2, 0.97, 3.6}, {5, 0.73, 4.3}, {0, 0.99, 3.3}}));
  check_published("a fixed window uses what calls under way leave of it", row, window,
                  check_aligned);
}

TEST_CASE("a sliding window counter uses what calls under way leave of it", "[calls][statistics]") {
  const auto row =
      GENERATE(values<Row>({{1, 0.97, 3.6}, {2, 0.825, 3.9}, {5, 0.57, 5.0}, {0, 0.885, 3.8}}));
  check_published("a sliding window counter uses what calls under way leave of it", row, counter,
                  check_counter);
}

TEST_CASE("figures of costs that are known late", "[.figures]") {
  print("`TokenBucket`, `Refund::in_full`", full_bucket);
  print("`TokenBucket`", bucket);
  print("`SlidingWindow`", exact);
  print("`FixedWindow`", window);
  print("`SlidingWindowCounter`", counter);
}

}  // namespace sluice::test
