// Fairness of waiting: many equal workers for an hour, in virtual time.
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "sluice/extend/subscription.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct Counting final : Store {
  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    inner->execute(plan, std::move(done));
  }
  Clock& clock() noexcept override { return time; }
  void notify(const Key& key) noexcept override { inner->notify(key); }
  std::unique_ptr<Subscription> subscribe(const Key& key,
                                          std::function<void()> seen) noexcept override {
    return inner->subscribe(key, std::move(seen));
  }

  VirtualClock time;
  std::unique_ptr<Store> inner = make_virtual_store(time);
  std::uint64_t operations = 0;
};

/// Jain's index: 1 if all have the same, 1/n if one has all.
double jain(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

struct Report {
  double fairness;
  double operations_per_wait;
  double grants;
};

/// Workers that wait, work and wait again, for an hour.
template <class L>
class Fleet {
 public:
  /// Of each limiter as many workers.
  Fleet(Counting& store, std::vector<const L*> limiters, std::size_t workers)
      : store_(store), limiters_(std::move(limiters)), workers_(workers) {}

  /// `work`: how long a worker keeps its grant, or up to that, drawn each time.
  Report run(Span work, bool drawn = false) {
    drawn_ = drawn;
    const Time end = store_.time.now() + 1h;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].fleet = this;
      workers_[i].limiter = limiters_[i % limiters_.size()];
      workers_[i].work = work;
      idle_.push_back(&workers_[i]);
    }
    while (store_.time.now() <= end) {
      for (Worker* worker : std::exchange(idle_, {})) start(*worker);
      if (idle_.empty() && !store_.time.advance_to_next()) break;
    }
    for (const L* limiter : limiters_) limiter->cancel_waits();
    std::vector<double> grants;
    for (Worker& worker : workers_) {
      store_.time.cancel_timer(worker.timer);
      grants.push_back(worker.grants);
    }
    const double total = std::accumulate(grants.begin(), grants.end(), 0.0);
    return {jain(grants), static_cast<double>(operations_) / static_cast<double>(waits_), total};
  }

 private:
  struct Worker {
    Fleet* fleet = nullptr;
    const L* limiter = nullptr;
    Span work{0};
    double grants = 0;
    std::optional<typename L::Grant> grant{};
    std::shared_ptr<Probe<L>> waiting{};
    TimerCallback timer{[](void* self) noexcept { static_cast<Worker*>(self)->end(); }, this};

    void begin(typename L::Grant given) {
      grants += 1;
      grant.emplace(std::move(given));
      if (work == Span{0}) return end();
      const auto most = static_cast<std::uint64_t>(work.count());
      const Span taken = fleet->drawn_ ? Span{1 + fleet->rng_.below(most)} : work;
      fleet->store_.time.set_timer(timer, fleet->store_.time.now() + taken);
    }
    void end() noexcept {
      grant.reset();
      fleet->idle_.push_back(this);
    }
  };

  void start(Worker& worker) {
    ++waits_;
    worker.waiting = wait_for(*worker.limiter, request_of(*worker.limiter, "a"), Deadline::never(),
                              [&worker](std::error_code error, auto grant) {
                                if (error || !grant) return;
                                worker.begin(std::move(grant));
                              });
    operations_ = store_.operations;
  }

  Counting& store_;
  std::vector<const L*> limiters_;
  std::vector<Worker> workers_;
  std::vector<Worker*> idle_;
  SeededRng rng_{1};
  bool drawn_ = false;
  std::uint64_t waits_ = 0;
  std::uint64_t operations_ = 0;
};

/// How 2,000 workers share a limit for an hour: of so many processes, each with its limiter.
template <class L, class... Args>
Report share(int processes, Span work, const Args&... args) {
  Counting store;
  std::vector<L> limiters;
  for (int i = 0; i < processes; ++i) {
    limiters.emplace_back(store, "x", args...);
    limiters.back().set_wait_queue({.client = i + 1});
  }
  std::vector<const L*> all;
  for (const L& limiter : limiters) all.push_back(&limiter);
  // Drawn where nobody has to keep it: who comes in the same microsecond as others, time after
  // time, stands behind those of smaller numbers.
  const bool is_drawn = processes > 1 && std::is_same_v<L, FixedWindow>;
  return Fleet<L>(store, all, 2'000).run(work, is_drawn);
}

/// Of a limit of 36,000 an hour, and some at once.
void require_equal(const Report& report, double most_operations, double most_grants) {
  CAPTURE(report.fairness, report.operations_per_wait, report.grants);
  CHECK(report.fairness >= 0.999);
  CHECK(report.operations_per_wait <= most_operations);
  CHECK(report.grants >= 36'000 * 0.9999);
  CHECK(report.grants <= most_grants);
}

}  // namespace

TEST_CASE("2,000 workers share a limit equally, at few store operations a wait",
          "[waiting][fairness][leases][statistics]") {
  SeededRng rng(1);
  const LeaseOptions lease{.ttl = 10s, .rng = &rng};
  const std::vector<WindowLimit> windows{{50, 5s}, {600, 60s}};
  require_equal(share<SlotLock>(1, 0s, 100ms), 2, 36'002);
  require_equal(share<TokenBucket>(1, 0s, Quota::per_second(10).burst(1)), 1.01, 36'002);
  require_equal(share<SlidingWindow>(1, 0s, windows), 2, 36'600);
  require_equal(share<FixedWindow>(1, 0s, 600, Calendar::every(1min)), 2, 36'600);
  // Asking, perhaps being refused, and giving back.
  require_equal(share<ConcurrencyLimiter>(1, 2s, 20, lease), 3, 36'020);
  // Being told when a lease may expire, asking and releasing, and what keeps the tickets.
  require_equal(share<ConcurrencyLimiter>(4, 2s, 20, lease), 3.5, 36'020);
}

TEST_CASE("2,000 workers in four processes share a fixed window equally, at two operations a wait",
          "[waiting][fairness][processes]") {
  require_equal(share<FixedWindow>(4, 10ms, 100, Calendar::every(10s)), 2, 36'100);
}

}  // namespace sluice::test
