// A client of an API with requests and tokens a minute, a gate and rare refusals, in a World: what
// it costs, and how close it comes to a planner that knows all jobs.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <deque>
#include <queue>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr int workers = 40;
constexpr int jobs = 150;
constexpr Span closure = 5s;
constexpr Word requests_a_minute = 120;
constexpr Word request_burst = 10;
constexpr Word tokens_a_minute = 72'000;
constexpr Word token_burst = 6'000;

struct Job {
  Word estimate;
  Word tokens;
  Span latency;
  bool refused_once;
};

/// Estimates are up to `excess` per cent too high.
std::vector<Job> draw_jobs(Random& random, Word excess) {
  std::vector<Job> all;
  for (int i = 0; i < jobs; ++i) {
    const Word tokens = random.between(200, 1'000);
    all.push_back({tokens * random.between(100, 100 + excess) / 100, tokens,
                   Span{random.between(200'000, 2'000'000)}, random.one_in(50)});
  }
  return all;
}

/// A bucket of the planner, which spends in the order of time.
class PlannedBucket {
 public:
  PlannedBucket(Word a_minute, Word burst)
      : rate_(static_cast<double>(a_minute) / 60e6), burst_(static_cast<double>(burst)) {}
  /// The first time from `at` on at which `cost` is there.
  [[nodiscard]] double when(double at, double cost) const {
    return std::max(at, at_ + (cost - level_) / rate_);
  }
  void spend(double at, double cost) {
    level_ = std::min(burst_, level_ + (at - at_) * rate_) - cost;
    at_ = at;
  }

 private:
  double rate_;
  double burst_;
  double level_ = burst_;
  double at_ = 0;
};

/// A planner that knows all jobs, and what each is charged: each try begins as early as the limits,
/// the gate and the workers allow. A refused try costs nothing but the closure.
class Planner {
 public:
  /// When the last job ends.
  static double end(const std::vector<Job>& all) {
    Planner planner;
    for (int i = 0; i < workers; ++i) planner.free_at_.push(0);
    auto next = all.begin();
    double end = 0;
    while (next != all.end() || !planner.retries_.empty()) {
      const bool retries =
          !planner.retries_.empty() && (next == all.end() || planner.free_at_.empty() ||
                                        planner.retries_.top().first <= planner.free_at_.top());
      end = std::max(end, retries ? planner.retry() : planner.begin(*next++));
    }
    return end;
  }

 private:
  template <class T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;

  double begin(const Job& job) {
    const double at = start(free_at_.top(), job);
    free_at_.pop();
    const double answer = at + static_cast<double>(job.latency.count());
    if (!job.refused_once) return serve(at, job);
    refusals_.push(answer);
    retries_.push({answer, &job});
    return 0;
  }
  double retry() {
    const auto [ready, job] = retries_.top();
    retries_.pop();
    return serve(start(ready, *job), *job);
  }
  double serve(double at, const Job& job) {
    requests_.spend(at, 1);
    tokens_.spend(at, static_cast<double>(job.estimate));
    const double answer = at + static_cast<double>(job.latency.count());
    free_at_.push(answer);
    return answer;
  }
  /// The first instant from `ready` on at which all let it begin.
  double start(double ready, const Job& job) {
    const auto when = [&] {
      const double at = requests_.when(std::max(ready, open_), 1);
      return tokens_.when(at, static_cast<double>(job.estimate));
    };
    double at = when();
    for (; !refusals_.empty() && refusals_.top() <= at; refusals_.pop()) {
      open_ = std::max(open_, refusals_.top() + static_cast<double>(closure.count()));
      at = when();
    }
    return at;
  }

  PlannedBucket requests_{requests_a_minute, request_burst};
  PlannedBucket tokens_{tokens_a_minute, token_burst};
  Earliest<double> free_at_;   // of the workers
  Earliest<double> refusals_;  // when each is known
  Earliest<std::pair<double, const Job*>> retries_;
  double open_ = 0;
};

/// Counts the requests for grants: plans of more steps than a settlement and the wait line.
class CountingStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    if (plan.steps().size() > 2) ++requests;
    StoreWrapper::execute(plan, std::move(done));
  }

  std::uint64_t requests = 0;
};

struct Client {
  explicit Client(std::vector<Job> all) : list(all.begin(), all.end()) {}

  World world;
  CountingStore store{world.store()};
  TokenBucket requests{store, "requests",
                       Quota::per_minute(requests_a_minute).burst(request_burst)};
  TokenBucket tokens{store, "tokens", Quota::per_minute(tokens_a_minute).burst(token_burst)};
  Gates gates{store, "api", {"account"}};
  Scope account = gates.scope("account", 1);
  std::deque<Job> list;
  Time closed_until{};
  Time last_answer{};
  int calls = 0;
  int calls_while_closed = 0;
  int served = 0;

  net::awaitable<Costed<int>> api(const Job& job, bool& refuses) {
    ++calls;
    if (world.now() < closed_until) ++calls_while_closed;
    co_await asio::sleep_for(world.clock(), job.latency, net::use_awaitable);
    if (std::exchange(refuses, false)) {
      closed_until = std::max(closed_until, world.now() + closure);
      throw RateLimited(closure);
    }
    last_answer = world.now();
    ++served;
    co_return Costed<int>{0, job.tokens};
  }

  net::awaitable<void> work() {
    while (!list.empty()) {
      const Job job = list.front();
      list.pop_front();
      bool refuses = job.refused_once;
      const std::array claims{Claim(requests, "key"), Claim(tokens, "key", Estimate{job.estimate}),
                              Claim(gates, account)};
      const Call call(claims);
      co_await asio::async_call(call, [&] { return api(job, refuses); });
    }
  }
};

}  // namespace

TEST_CASE("a client of requests and tokens a minute keeps to both, and to the gate",
          "[calls][claims]") {
  Random random("a client of requests and tokens a minute keeps to both, and to the gate");
  CAPTURE(random.repeat());
  // A bucket takes back of an estimate only what has not drained since; the planner is charged the
  // estimates as well.
  const Word excess = GENERATE(0, 50);
  CAPTURE(excess);
  double planned = 0;
  double taken = 0;
  double requests = 0;
  double calls = 0;
  for (int run = 0; run < 100; ++run) {
    const auto all = draw_jobs(random, excess);
    Client client(all);
    for (int i = 0; i < workers; ++i) {
      net::co_spawn(client.world, client.work(), Rethrow{});
    }
    const Time start = client.world.now();
    client.world.run();
    CHECK(client.served == jobs);
    CHECK(client.calls_while_closed == 0);
    CHECK(2 * client.store.requests <= 5U * static_cast<unsigned>(client.calls));
    requests += static_cast<double>(client.store.requests);
    calls += client.calls;
    planned += Planner::end(all);
    taken += static_cast<double>((client.last_answer - start).count());
  }
  CHECK(requests <= 1.5 * calls);
  CAPTURE(planned / taken);
  CHECK(planned / taken >= 0.97);
}

}  // namespace sluice::test
