// Lines: order, priorities, bounds, cancelling at every point; and that each wait ends once.
#include <map>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// A virtual store that counts.
struct CountingStore final : Store {
  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    inner->execute(plan, std::move(done));
  }
  Clock& clock() noexcept override { return time; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }

  VirtualClock time;
  std::unique_ptr<Store> inner = make_virtual_store(time);
  int operations = 0;
};

/// A virtual store at the end of a long wire: plans are decided when answer_all() is called.
struct HoldingStore final : Store {
  void execute(const Plan& plan, Completion done) noexcept override {
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
  std::vector<std::pair<OwnedPlan, Completion>> held;
};

/// Who was granted, and when.
struct Log {
  explicit Log(VirtualClock& clock) : time(clock), start(clock.now()) {}
  template <class Grant = Reservation>
  auto note(int name) {
    return [this, name](std::error_code error, const Grant& grant) {
      ++ends[name];
      if (error) {
        errors[name] = error;
      } else if (grant) {
        granted.emplace_back(name, time.now() - start);
      } else {
        refused.emplace_back(name, time.now() - start);
      }
    };
  }
  VirtualClock& time;
  Time start;
  std::vector<std::pair<int, Span>> granted;
  std::vector<std::pair<int, Span>> refused;
  std::map<int, std::error_code> errors;
  std::map<int, int> ends;
};

using Grants = std::vector<std::pair<int, Span>>;

}  // namespace

TEST_CASE("first come, first served, with one store operation a grant of a bucket",
          "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  Log log(store.time);
  for (int i = 0; i < 30; ++i) wait_for(bucket, {"a", 1}, 1min, log.note(i));
  CHECK(bucket.waiting("a") == 29);
  store.time.advance(1h);
  Grants expected;
  for (int i = 0; i < 30; ++i) expected.emplace_back(i, i * 1s);
  CHECK(log.granted == expected);
  CHECK(store.operations <= 31);  // the second asks before anybody knows that it must wait
  CHECK(bucket.waiting("a") == 0);
}

TEST_CASE("hundreds of waiters are served in order, at one operation a grant", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  Log log(store.time);
  constexpr int waiters = 500;
  std::vector<std::shared_ptr<Probe<TokenBucket>>> all;
  for (int i = 0; i < waiters; ++i) {
    all.push_back(wait_for(bucket, {"a", 1}, Deadline::never(), log.note(i)));
  }
  store.time.advance(1h);
  Grants expected;
  for (int i = 0; i < waiters; ++i) expected.emplace_back(i, i * 1s);
  CHECK(log.granted == expected);
  CHECK(store.operations <= waiters + 1);
}

TEST_CASE("a fixed window is waited for in order, at two operations a grant", "[waiting][queue]") {
  CountingStore store;
  const FixedWindow limit(store, "f", 10, Calendar::every(1min));
  Log log(store.time);
  std::vector<std::shared_ptr<Probe<FixedWindow>>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(wait_for(limit, {"a", 1}, 1h, log.note<Decision>(i)));
  }
  store.time.advance(1h);
  REQUIRE(log.granted.size() == 100);
  for (int i = 0; i < 100; ++i) {
    CHECK(log.granted[static_cast<std::size_t>(i)].first == i);
    CHECK(log.granted[static_cast<std::size_t>(i)].second == i / 10 * 1min);
  }
  CHECK(store.operations <= 200);
}

TEST_CASE("a big request is not starved by small ones behind it", "[waiting][queue]") {
  CountingStore store;
  const SlidingWindowCounter limit(store, "c", {10, 10s});
  Log log(store.time);
  std::vector<std::shared_ptr<Probe<SlidingWindowCounter>>> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(wait_for(limit, {"a", 1}, 1h, log.note<Decision>(i)));
  }
  all.push_back(wait_for(limit, {"a", 10}, 1h, log.note<Decision>(100)));
  for (int i = 101; i < 120; ++i) {
    all.push_back(wait_for(limit, {"a", 1}, 1h, log.note<Decision>(i)));
    store.time.advance(100ms);
  }
  store.time.advance(10min);
  REQUIRE(log.granted.size() == 30);
  CHECK(log.granted[10].first == 100);
}

TEST_CASE("who cannot make its deadline behind others is refused when that is known",
          "[waiting][queue]") {
  CountingStore store;
  const FixedWindow limit(store, "f", 1, Calendar::every(1min));
  Log log(store.time);
  auto first = wait_for(limit, {"a", 1}, 1h, log.note<Decision>(0));
  auto second = wait_for(limit, {"a", 1}, 1h, log.note<Decision>(1));
  auto third = wait_for(limit, {"a", 1}, 59s, log.note<Decision>(2));
  CHECK(log.refused == Grants{{2, 0s}});
  auto fourth = wait_for(limit, {"a", 1}, 90s, log.note<Decision>(3));
  CHECK(log.refused.size() == 1);
  store.time.advance(1h);
  CHECK(log.granted == Grants{{0, 0s}, {1, 1min}});
  // Refused when the one before it had its grant, and the next was too late.
  CHECK(log.refused == Grants{{2, 0s}, {3, 1min}});
}

TEST_CASE("callers that come together are judged by those ahead of them", "[waiting][queue]") {
  HoldingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(4));
  const TokenBucket elsewhere(*store.inner, "b", bucket.quota());
  REQUIRE(elsewhere.try_acquire("a", 4));
  Log log(store.time);
  const auto wait = [&](int name, Cost cost, const Deadline& deadline) {
    return wait_for(bucket, request_of(bucket, "a", cost), deadline, log.note(name));
  };
  const auto first = wait(1, 2, Deadline::never());
  store.answer_all();
  store.time.advance(2s);
  REQUIRE(elsewhere.try_acquire("a", 2));  // another process comes before it
  const auto hasty = wait(2, 3, 4s);       // 2 + 3 s
  const auto second = wait(3, 3, 5s);      // without the second, 2 + 3 s
  const auto third = wait(4, 1, 6s);
  const auto late = wait(5, 1, 7s - 1us);
  const auto wrong = wait(6, 5, 6s);  // never granted, which is no matter of time
  store.answer_all();
  CHECK(log.refused == Grants{{2, 2s}, {5, 2s}});
  CHECK(log.ends[6] == 0);
  wrong->cancel();
  const auto last = wait(7, 1, 7s - 1us);  // at 2 + 3 + 1 + 1 s
  store.answer_all();
  CHECK(log.refused == Grants{{2, 2s}, {5, 2s}, {7, 2s}});
  for (const auto& waiter : {first, second, third}) waiter->cancel();
  store.answer_all();
}

TEST_CASE("a higher priority comes first, and a lower one has its share", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.lower_share = 25});
  Log log(store.time);
  std::vector<std::shared_ptr<Probe<TokenBucket>>> all;
  const auto wait = [&](int name, int priority) {
    all.push_back(wait_for(bucket, {"a", 1}, 1h, log.note(name), {.priority = priority}));
  };
  wait(0, 0);  // takes the token
  for (int i = 1; i <= 3; ++i) wait(i, 0);
  for (int i = 11; i <= 17; ++i) wait(i, 1);
  wait(21, 3);
  store.time.advance(1h);
  std::vector<int> order;
  for (const auto& [name, at] : log.granted) order.push_back(name);
  CHECK(order == std::vector{0, 21, 11, 12, 13, 1, 14, 15, 16, 2, 17, 3});
}

TEST_CASE("without a share for lower priorities, these wait for all others", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.lower_share = 0});
  Log log(store.time);
  std::vector<std::shared_ptr<Probe<TokenBucket>>> all;
  const auto wait = [&](int name, int priority) {
    all.push_back(wait_for(bucket, {"a", 1}, 1h, log.note(name), {.priority = priority}));
  };
  wait(0, -3);
  wait(1, -3);
  for (int i = 0; i < 100; ++i) wait(100 + i, -2);
  store.time.advance(1h);
  CHECK(log.granted.back() == std::pair{1, Span{101s}});
}

TEST_CASE("a full queue refuses the newest, or drops the oldest", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  Log log(store.time);
  bucket.set_wait_queue({.max_waiters = 3});
  std::vector<std::shared_ptr<Probe<TokenBucket>>> all;
  for (int i = 0; i < 6; ++i) all.push_back(wait_for(bucket, {"a", 1}, 1h, log.note(i)));
  CHECK(log.errors.size() == 2);
  CHECK(log.errors[4] == Errc::too_many_waiters);
  CHECK(log.errors[5] == Errc::too_many_waiters);
  store.time.advance(1h);
  CHECK(log.granted == Grants{{0, 0s}, {1, 1s}, {2, 2s}, {3, 3s}});

  CountingStore other;
  const FixedWindow limit(other, "f", 1, Calendar::every(1min));
  limit.set_wait_queue({.max_waiters = 3, .overflow = Overflow::drop_oldest});
  Log dropping(other.time);
  std::vector<std::shared_ptr<Probe<FixedWindow>>> more;
  for (int i = 0; i < 6; ++i) {
    more.push_back(wait_for(limit, {"a", 1}, 1h, dropping.note<Decision>(i)));
  }
  CHECK(dropping.errors.size() == 2);
  CHECK(dropping.errors[1] == Errc::too_many_waiters);
  CHECK(dropping.errors[2] == Errc::too_many_waiters);
  other.time.advance(1h);
  CHECK(dropping.granted == Grants{{0, 0s}, {3, 1min}, {4, 2min}, {5, 3min}});
}

TEST_CASE("dropping the first leaves its time to the next", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.max_waiters = 1, .overflow = Overflow::drop_oldest});
  Log log(store.time);
  std::vector<std::shared_ptr<Probe<TokenBucket>>> all;
  for (int i = 0; i < 3; ++i) all.push_back(wait_for(bucket, {"a", 1}, 1h, log.note(i)));
  CHECK(log.errors[1] == Errc::too_many_waiters);
  store.time.advance(1h);
  REQUIRE(log.granted.size() == 2);
  CHECK(log.granted[1] == std::pair<int, Span>{2, 1s});
}

TEST_CASE("options out of range are refused with what is allowed", "[waiting][queue]") {
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1));
  CHECK_THROWS_WITH(bucket.set_wait_queue({.max_waiters = 0}),
                    "WaitQueueOptions::max_waiters must be 1 or more, got 0");
  CHECK_THROWS_WITH(bucket.set_wait_queue({.lower_share = 51}),
                    "WaitQueueOptions::lower_share must be 0 to 50, got 51");
  CHECK_THROWS_WITH(bucket.set_wait_queue({.lower_share = -1}),
                    "WaitQueueOptions::lower_share must be 0 to 50, got -1");
  CHECK_THROWS_WITH(bucket.set_wait_queue({.recheck = 999us}),
                    "WaitQueueOptions::recheck must be 1000 us to 86400000000 us, got 999 us");
  CHECK(bucket.wait_queue().max_waiters == 100'000);
}

TEST_CASE("a wait can be cancelled at every point, ends once, and blocks nobody behind it",
          "[waiting][queue]") {
  // Points: queued, asking (before and after the answer), sleeping.
  CountingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  Log log(store.time);
  auto granted = wait_for(bucket, {"a", 1}, 1h, log.note(0));
  granted->cancel();  // over already
  auto sleeps = wait_for(bucket, {"a", 1}, 1h, log.note(1));
  sleeps->cancel();
  CHECK(log.errors[1] == Errc::cancelled);
  auto next = wait_for(bucket, {"a", 1}, 1h, log.note(2));
  store.time.advance(1s);
  CHECK(log.granted == Grants{{0, 0s}, {2, 1s}});
  sleeps->cancel();
  next->cancel();

  const FixedWindow limit(store, "f", 1, Calendar::every(1min));
  Log minutes(store.time);
  std::vector<std::shared_ptr<Probe<FixedWindow>>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(wait_for(limit, {"a", 1}, 1h, minutes.note<Decision>(i)));
  }
  all[2]->cancel();  // queued
  all[1]->cancel();  // sleeping, first waiter
  store.time.advance(1min);
  REQUIRE(minutes.granted.size() == 2);
  CHECK(minutes.granted[1].first == 3);
  for (const auto& [name, times] : minutes.ends) CHECK(times == 1);
  for (const auto& [name, times] : log.ends) CHECK(times == 1);
}

TEST_CASE("what is granted after a cancellation is given back", "[waiting][queue]") {
  HoldingStore store;
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
  Log log(store.time);
  auto probe = wait_for(bucket, {"a", 1}, 1h, log.note(0));
  probe->cancel();
  CHECK(log.ends.empty());  // the store has it
  store.answer_all();
  CHECK(log.ends.empty());  // it is being given back
  store.answer_all();
  CHECK(log.errors[0] == Errc::cancelled);
  CHECK(log.ends[0] == 1);
  auto next = wait_for(bucket, {"a", 1}, 1h, log.note(1));
  store.answer_all();
  CHECK(log.granted == Grants{{1, 0s}});
}

TEST_CASE("what a window grants after a cancellation is given back as well", "[waiting][queue]") {
  const auto check = [](HoldingStore& store, const auto& limiter) {
    Log log(store.time);
    const auto probe = wait_for(limiter, {"a", 2}, 1h, log.note<Decision>(0));
    probe->cancel();
    store.answer_all();
    CHECK(log.ends.empty());  // it is being given back
    store.answer_all();
    CHECK(log.errors[0] == Errc::cancelled);
    const auto next = wait_for(limiter, {"a", 3}, 1h, log.note<Decision>(1));
    store.answer_all();
    CHECK(log.granted == Grants{{1, 0s}});
  };
  HoldingStore store;
  check(store, FixedWindow(store, "f", 3, Calendar::daily()));
  check(store, SlidingWindowCounter(store, "c", {3, 24h}));
}

TEST_CASE("random waiters, cancelled at random, end once each, and no grant is lost",
          "[waiting][queue]") {
  Random random("random waiters, cancelled at random, end once each, and no grant is lost");
  CAPTURE(random.repeat());
  CountingStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 5, {.ttl = 10s});
  const std::size_t waiters = scaled(10'000, 1'000);
  std::vector<std::shared_ptr<Probe<ConcurrencyLimiter>>> all;
  std::vector<int> ends(waiters, 0);
  std::vector<Lease> held;
  std::size_t granted = 0;
  std::size_t cancelled = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < waiters; ++i) {
    const Span within = random.below(4) == 0 ? Span{random.between(0, 20'000'000)} : Span{1h};
    all.push_back(wait_for(jobs, {"a", 1}, within, [&, i](std::error_code error, Lease lease) {
      ++ends[i];
      if (error) {
        ++cancelled;
      } else if (lease) {
        ++granted;
        held.push_back(std::move(lease));
      } else {
        ++refused;
      }
    }));
    const auto choice = random.below(8);
    if (choice < 3 && !held.empty()) {
      std::swap(held[random.below(held.size())], held.back());
      Lease last = std::move(held.back());
      held.pop_back();
      last.release();
    } else if (choice == 3) {
      all[random.below(all.size())]->cancel();
    } else if (choice == 4) {
      store.time.advance(Span{random.between(0, 3'000'000)});
      std::erase_if(held, [](const Lease& lease) { return lease.lost(); });
    }
    REQUIRE(jobs.peek("a").remaining >= 0);
  }
  while (jobs.waiting("a") > 0) {
    std::vector<Lease> over = std::move(held);
    held.clear();
    over.clear();  // gives back
    store.time.advance(1s);
  }
  CHECK(granted + cancelled + refused == waiters);
  for (const int times : ends) REQUIRE(times == 1);
  CHECK(granted > 0);
  CHECK(cancelled > 0);
}

TEST_CASE("a place that comes back while a refusal is on its way is asked for at once",
          "[waiting][queue][leases]") {
  // Plans are decided at once, and answered later.
  struct LateStore final : Store {
    void execute(const Plan& plan, Completion done) noexcept override {
      if (!late) return inner->execute(plan, std::move(done));
      decide_then(
          *inner, plan,
          [this, kept = std::make_shared<Completion>(std::move(done))](const Outcome& outcome) {
            refused = !outcome.decision.allowed;
            decision = outcome.decision;
            answer = kept;
          });
    }
    Clock& clock() noexcept override { return time; }
    [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }

    VirtualClock time;
    std::unique_ptr<Store> inner = make_virtual_store(time);
    bool late = false;
    bool refused = false;
    Decision decision;
    std::shared_ptr<Completion> answer;
  };
  LateStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 30s});
  Lease held = jobs.try_acquire("a");
  Log log(store.time);
  store.late = true;
  const auto waiter = wait_for(jobs, request_of(jobs, "a", 1), 10s, log.note<Lease>(1));
  REQUIRE(store.refused);
  store.late = false;
  REQUIRE(held.release());
  (*store.answer)(Outcome{{}, store.decision, {}, {}});
  CHECK(log.granted == Grants{{1, 0s}});
}

}  // namespace sluice::test
