// Lines: order, priorities, bounds, cancelling at every point; and that each wait ends once.
#include <map>
#include <vector>

#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// A virtual store, which counts. While it holds, plans are decided when answer_all() is called.
struct CountingStore final : Store {
  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    if (!holds) return inner->execute(plan, std::move(done));
    held.emplace_back(OwnedPlan(plan), std::move(done));
  }
  Clock& clock() noexcept override { return time; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }
  void answer_all() {
    for (auto now = std::exchange(held, {}); auto& [plan, done] : now) {
      inner->execute(plan.view(), std::move(done));
    }
  }

  VirtualClock time;
  std::unique_ptr<Store> inner = make_virtual_store(time);
  int operations = 0;
  bool holds = false;
  std::vector<std::pair<OwnedPlan, Completion>> held;
};

using Grants = std::vector<std::pair<int, Span>>;

/// A limiter on a store of its own, and callers of key "a".
template <class L>
struct Bench {
  template <class... Args>
  explicit Bench(const Args&... args) : limiter(store, "x", args...) {}

  std::shared_ptr<Probe<L>> wait(int name, Cost cost = 1, const Deadline& deadline = 1h,
                                 int priority = 0) {
    return callers[name] = wait_for(limiter, request_of(limiter, "a", cost), deadline,
                                    [this, name](std::error_code error, const auto& grant) {
                                      const Span at = store.time.now() - start;
                                      if (error) {
                                        errors[name] = error;
                                      } else {
                                        (grant ? granted : refused).emplace_back(name, at);
                                      }
                                    },
                                    {.priority = priority});
  }
  [[nodiscard]] std::vector<int> order() const {
    std::vector<int> names;
    for (const auto& [name, at] : granted) names.push_back(name);
    return names;
  }
  void check_ended_once() const {
    for (const auto& [name, caller] : callers) CHECK(caller->times_over() == 1);
  }

  CountingStore store;
  const L limiter;
  Time start = store.time.now();
  std::map<int, std::shared_ptr<Probe<L>>> callers;
  Grants granted;
  Grants refused;
  std::map<int, std::error_code> errors;
};

const Quota one_a_second = Quota::per_second(1).burst(1);

}  // namespace

TEST_CASE("first come, first served, with one operation a grant of a bucket, and two of a window",
          "[waiting][queue]") {
  constexpr int waiters = 500;
  Bench<TokenBucket> bucket(one_a_second);
  Bench<FixedWindow> window(10, Calendar::every(1min));
  for (int i = 0; i < waiters; ++i) bucket.wait(i);
  for (int i = 0; i < 100; ++i) window.wait(i);
  CHECK(bucket.limiter.waiting("a") == waiters - 1);
  bucket.store.time.advance(1h);
  window.store.time.advance(1h);
  Grants of_bucket;
  Grants of_window;
  for (int i = 0; i < waiters; ++i) of_bucket.emplace_back(i, i * 1s);
  for (int i = 0; i < 100; ++i) of_window.emplace_back(i, i / 10 * 1min);
  CHECK(bucket.granted == of_bucket);
  CHECK(window.granted == of_window);
  // The second asks before anybody knows that it must wait.
  CHECK(bucket.store.operations <= waiters + 1);
  CHECK(window.store.operations <= 200);
  CHECK(bucket.limiter.waiting("a") == 0);
}

TEST_CASE("who cannot make its deadline behind others is refused when that is known",
          "[waiting][queue]") {
  Bench<FixedWindow> bench(1, Calendar::every(1min));
  bench.wait(0);
  bench.wait(1);
  bench.wait(2, 1, 59s);
  CHECK(bench.refused == Grants{{2, 0s}});
  bench.wait(3, 1, 90s);
  CHECK(bench.refused.size() == 1);
  bench.store.time.advance(1h);
  CHECK(bench.granted == Grants{{0, 0s}, {1, 1min}});
  // Refused when the one before it had its grant, and the next was too late.
  CHECK(bench.refused == Grants{{2, 0s}, {3, 1min}});
}

TEST_CASE("callers that come together are judged by those ahead of them", "[waiting][queue]") {
  Bench<TokenBucket> bench(Quota::per_second(1).burst(4));
  CountingStore& store = bench.store;
  const TokenBucket elsewhere(*store.inner, "x", bench.limiter.quota());
  REQUIRE(elsewhere.try_acquire("a", 4));
  store.holds = true;
  bench.wait(1, 2, Deadline::never());
  store.answer_all();
  store.time.advance(2s);
  REQUIRE(elsewhere.try_acquire("a", 2));  // another process comes before it
  bench.wait(2, 3, 4s);                    // 2 + 3 s
  bench.wait(3, 3, 5s);                    // without the second, 2 + 3 s
  bench.wait(4, 1, 6s);
  bench.wait(5, 1, 7s - 1us);
  bench.wait(6, 5, 6s);  // never granted, which is no matter of time
  store.answer_all();
  CHECK(bench.refused == Grants{{2, 2s}, {5, 2s}});
  CHECK(bench.callers[6]->times_over() == 0);
  bench.callers[6]->cancel();
  bench.wait(7, 1, 7s - 1us);  // at 2 + 3 + 1 + 1 s
  store.answer_all();
  CHECK(bench.refused == Grants{{2, 2s}, {5, 2s}, {7, 2s}});
  bench.limiter.cancel_waits();
  store.answer_all();
}

TEST_CASE("a higher priority comes first, and a lower one has its share", "[waiting][queue]") {
  Bench<TokenBucket> bench(one_a_second);
  bench.limiter.set_wait_queue({.lower_share = 25});
  for (int i = 0; i <= 3; ++i) bench.wait(i);  // the first takes the token
  for (int i = 11; i <= 17; ++i) bench.wait(i, 1, 1h, 1);
  bench.wait(21, 1, 1h, 3);
  bench.store.time.advance(1h);
  CHECK(bench.order() == std::vector{0, 21, 11, 12, 13, 1, 14, 15, 16, 2, 17, 3});

  Bench<TokenBucket> without(one_a_second);
  without.limiter.set_wait_queue({.lower_share = 0});
  for (const int name : {0, 1}) without.wait(name, 1, 1h, -3);
  for (int i = 0; i < 100; ++i) without.wait(100 + i, 1, 1h, -2);
  without.store.time.advance(1h);
  CHECK(without.granted.back() == std::pair{1, Span{101s}});
}

TEST_CASE("a full queue refuses the newest, or drops the oldest", "[waiting][queue]") {
  struct Row {
    WaitQueueOptions options;
    int callers;
    std::vector<int> dropped;
    Grants granted;
  };
  for (const Row& row :
       {Row{{.max_waiters = 3}, 6, {4, 5}, {{0, 0s}, {1, 1s}, {2, 2s}, {3, 3s}}},
        Row{{.max_waiters = 3, .overflow = Overflow::drop_oldest},
            6,
            {1, 2},
            {{0, 0s}, {3, 1s}, {4, 2s}, {5, 3s}}},
        Row{{.max_waiters = 1, .overflow = Overflow::drop_oldest}, 3, {1}, {{0, 0s}, {2, 1s}}}}) {
    CAPTURE(row.dropped);
    Bench<TokenBucket> bench(one_a_second);
    bench.limiter.set_wait_queue(row.options);
    for (int i = 0; i < row.callers; ++i) bench.wait(i);
    std::vector<int> dropped;
    for (const auto& [name, error] : bench.errors) {
      CHECK(error == Errc::too_many_waiters);
      dropped.push_back(name);
    }
    CHECK(dropped == row.dropped);
    bench.store.time.advance(1h);
    CHECK(bench.granted == row.granted);
  }
}

TEST_CASE("options out of range are refused with what is allowed", "[waiting][queue]") {
  const Bench<TokenBucket> bench(Quota::per_second(1));
  const auto says = [&](const WaitQueueOptions& options, const char* text) {
    CHECK_THROWS_WITH(bench.limiter.set_wait_queue(options),
                      std::string("WaitQueueOptions::") + text);
  };
  says({.max_waiters = 0}, "max_waiters must be 1 or more, got 0");
  says({.lower_share = 51}, "lower_share must be 0 to 50, got 51");
  says({.lower_share = -1}, "lower_share must be 0 to 50, got -1");
  says({.recheck = 999us}, "recheck must be 1000 us to 86400000000 us, got 999 us");
  says({.recheck = 24h + 1us}, "recheck must be 1000 us to 86400000000 us, got 86400000001 us");
  CHECK(bench.limiter.wait_queue().max_waiters == 100'000);
  CHECK_NOTHROW(bench.limiter.set_wait_queue({.recheck = 24h}));
}

}  // namespace sluice::test
