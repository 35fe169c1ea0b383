// Limits of 0 and unlimited ones, of every limiter, on every store. Threading: single-threaded.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::for_each_store;

namespace {

Quota quota_of(Word limit) {
  return limit == 0           ? Quota::never()
         : limit == unlimited ? Quota::unlimited()
                              : Quota::per_hour(limit);
}

/// Calls `check(limiter)` for each kind of limiter over keys that has this limit.
template <class Check>
void for_each_limiter(Store& store, Word limit, Check check) {
  check(TokenBucket(store, "bucket", quota_of(limit)));
  check(TokenBucket(store, "shaped", quota_of(limit), {.refill = Refill::per_interval(1s)}));
  check(TokenBucket(store, "late", quota_of(limit), {.refund = Refund::in_full}));
  check(SlidingWindow(store, "windows", {{limit, 1h}}));
  check(SlidingWindow(store, "mixed", {{limit, 1h}, {limit, 2h}}));
  check(SlidingWindowCounter(store, "counter", {limit, 1h}));
  check(FixedWindow(store, "fixed", limit, Calendar::every(1h)));
  check(FixedWindow(store, "month", limit, Calendar::monthly(TimeZone::utc(), 31)));
}

void check_never(const Decision& decision) {
  CHECK_FALSE(decision.allowed);
  CHECK(decision.limit == 0);
  CHECK(decision.remaining == 0);
  CHECK(decision.retry_after == Decision::never);
  CHECK(decision.reset_after == 0us);
}
void check_unlimited(const Decision& decision) {
  CHECK(decision.allowed);
  CHECK(decision.limit == unlimited);
  CHECK(decision.remaining == unlimited);
  CHECK(decision.retry_after == 0us);
  CHECK(decision.reset_after == 0us);
}

/// Counts the plans that come to a store.
class Counting final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++plans;
    StoreWrapper::execute(plan, std::move(done));
  }
  int plans = 0;
};

}  // namespace

TEST_CASE("a limit of 0 refuses every cost, and a cost of 0 it admits", "[constant]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    for_each_limiter(store, 0, [&](const auto& limiter) {
      INFO(limiter.name());
      const Time start = clock.now();
      for (const Cost cost : {Cost(1), Cost(7), Cost(word_limit)}) {
        check_never(limiter.try_acquire("k", cost));
        check_never(limiter.peek("k", cost));
        check_never(limiter.reserve("k", cost));
        check_never(limiter.acquire("k", cost, 1h));
        check_never(limiter.acquire("k", cost, Deadline::never()));
      }
      CHECK(limiter.try_acquire("k", 0).allowed);
      CHECK(limiter.peek("k", 0).allowed);
      CHECK(limiter.reserve("k", 0).granted == 0);
      CHECK(to_string(limiter.try_acquire("k")).starts_with("refused, 0 of 0 left, never, from "));
      CHECK(clock.now() == start);
      CHECK(limiter.waiting("k") == 0);
    });
  });
}

TEST_CASE("an unlimited limiter admits every cost, and takes nothing back", "[constant]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_limiter(store, unlimited, [&](const auto& limiter) {
      INFO(limiter.name());
      for (const Cost cost : {Cost(0), Cost(1), Cost(1'000'000'000), Cost(word_limit)}) {
        check_unlimited(limiter.try_acquire("k", cost));
        check_unlimited(limiter.peek("k", cost));
        check_unlimited(limiter.acquire("k", cost, 1h));
      }
      Reservation grant = limiter.reserve("k", 5);
      check_unlimited(grant);
      CHECK(grant.granted == 5);
      CHECK(limiter.refund("k", grant, 2) == 0);
      CHECK(grant.granted == 3);
      const Settlement settled = limiter.settle("k", grant, 10);
      CHECK((settled.charged == 0 && settled.refunded == 0));
      CHECK(limiter.cancel("k", grant) == 0);
      check_unlimited(limiter.reward("k", 5));
      check_unlimited(limiter.block("k", 1min));
      limiter.reset("k");
      CHECK(to_string(limiter.peek("k")).starts_with("allowed, unlimited, from "));
    });
  });
}

TEST_CASE("a constant limit takes no bad number", "[constant]") {
  for_each_store([](Store& store, VirtualClock&) {
    for (const Word limit : {Word{0}, unlimited}) {
      for_each_limiter(store, limit, [&](const auto& limiter) {
        INFO(limiter.name());
        std::error_code error;
        (void)limiter.try_acquire("k", -1, error);
        CHECK(error == Errc::invalid_cost);
        (void)limiter.try_acquire("k", ~std::uint64_t{0}, error);
        CHECK(error == Errc::cost_exceeds_capacity);
        (void)limiter.reward("k", -1, error);
        CHECK(error == Errc::invalid_cost);
        (void)limiter.reward("k", ~std::uint64_t{0}, error);
        CHECK(error == Errc::invalid_cost);
        (void)limiter.block("k", -1us, error);
        CHECK(error == Errc::invalid_argument);
        (void)limiter.acquire("k", -1, 1s, {}, error);
        CHECK(error == Errc::invalid_cost);
      });
      const TokenBucket bucket(store, "b", quota_of(limit));
      std::error_code error;
      (void)bucket.reserve("k", 1, -1s, error);
      CHECK(error == Errc::invalid_argument);
      (void)bucket.try_acquire_up_to("k", 3, 4, error);
      CHECK(error == Errc::invalid_argument);
    }
  });
}

TEST_CASE("what is spent waits for the end of a limit of 0 or of none", "[constant]") {
  for_each_store([](Store& store, VirtualClock&) {
    for (const Word between : {Word{0}, unlimited}) {
      const std::string name = std::to_string(between);
      const auto check = [&](const auto& usual, const auto& other) {
        REQUIRE(usual.try_acquire(name, 3).remaining == 2);
        CHECK(other.try_acquire(name, 4).allowed == (between != 0));
        other.reset(name);
        CHECK(usual.peek(name).remaining == 2);
      };
      check(SlidingWindow(store, "w", {{5, 1h}}), SlidingWindow(store, "w", {{between, 1h}}));
      check(SlidingWindowCounter(store, "c", {5, 1h}),
            SlidingWindowCounter(store, "c", {between, 1h}));
      check(FixedWindow(store, "f", 5, Calendar::daily()),
            FixedWindow(store, "f", between, Calendar::daily()));
      check(TokenBucket(store, "t", Quota::per_day(5)), TokenBucket(store, "t", quota_of(between)));
    }
  });
}

TEST_CASE("up to a cost, unlimited grants all and a limit of 0 nothing", "[constant]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket all(store, "b", Quota::unlimited());
    const TokenBucket none(store, "b", Quota::never());
    CHECK(all.try_acquire_up_to("k", 9, 2).granted == 9);
    check_never(none.try_acquire_up_to("k", 9, 2));
    CHECK(none.try_acquire_up_to("k", 9, 0).allowed);
    CHECK(none.try_acquire_up_to("k", 9, 0).granted == 0);
    CHECK(all.borrow("k", 9, 1min).granted == 9);
    CHECK(all.at("k").try_acquire(1'000).allowed);
    check_never(none.at("k").try_acquire(1));
  });
}

TEST_CASE("one window of 0 refuses all, and one that is unlimited leaves it to the others",
          "[constant][sliding_window]") {
  for_each_store([](Store& store, VirtualClock&) {
    check_never(SlidingWindow(store, "a", {{5, 1s}, {0, 1min}}).try_acquire("k"));
    const SlidingWindow windows(store, "b", {{unlimited, 1s}, {5, 1min}});
    const Decision first = windows.try_acquire("k", 2);
    CHECK(first.limit == 5);
    CHECK(first.remaining == 3);
    CHECK(windows.remaining("k") == std::vector<Word>{unlimited, 3});
    CHECK(windows.try_acquire("k", 4).retry_after == 1min);
    // The same windows, so that what is spent counts on.
    CHECK(SlidingWindow(store, "b", {{1, 1s}, {5, 1min}}).peek("k").remaining == 0);
    CHECK(SlidingWindow(store, "c", {{unlimited, 1s}, {unlimited, 1min}}).remaining("k") ==
          std::vector<Word>{unlimited, unlimited});
    CHECK(SlidingWindow(store, "d", {{0, 1s}, {7, 1min}}).remaining("k") ==
          std::vector<Word>{0, 0});
    CHECK(SlidingWindow(store, "e", {{0, 1s}, {7, 1min}}).redundant_windows().empty());
    CHECK(SlidingWindow(store, "f", {{unlimited, 1s}, {7, 1min}}).redundant_windows().size() == 1);
  });
}

TEST_CASE("in a plan, an unlimited step never decides, and one of 0 refuses for ever",
          "[constant]") {
  for_each_store([](Store& store, VirtualClock&) {
    const TokenBucket all(store, "x", Quota::unlimited());
    const FixedWindow none(store, "x", 0, Calendar::daily());
    const SlidingWindow some(store, "x", {{2, 1h}});
    const std::array grants{all.acquire_step("k"), some.acquire_step("k")};
    const Decision granted = decide(store, grants);
    CHECK(granted.allowed);
    CHECK(granted.step == 1);
    CHECK(granted.remaining == 1);
    const std::array refuses{all.acquire_step("k"), some.acquire_step("k"), none.acquire_step("k")};
    const Decision refused = decide(store, refuses);
    check_never(refused);
    CHECK(refused.step == 2);
    CHECK(some.peek("k").remaining == 1);
    CHECK(decide(store, grants).allowed);
    const Decision over = decide(store, grants);
    CHECK_FALSE(over.allowed);
    CHECK(over.step == 1);
    CHECK(over.retry_after == 1h);
    // Twice the same key in one plan is an error, as of any limiter.
    std::error_code error;
    const std::array twice{all.acquire_step("k"), all.acquire_step("k")};
    (void)decide(store, twice, error);
    CHECK(error == Errc::duplicate_key);
  });
}

TEST_CASE("a wait for an unlimited limit and another one ends with the other", "[constant]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const TokenBucket all(store, "all", Quota::unlimited());
    const TokenBucket some(store, "some", Quota::per_second(1).burst(1));
    const TokenBucket none(store, "none", Quota::never());
    const Time start = clock.now();
    for (int i = 0; i < 3; ++i) {
      const Grants granted = acquire({Claim(all, "k", 5), Claim(some, "k")}, 1min);
      CHECK(granted);
      CHECK(clock.now() == start + i * 1s);
    }
    const Grants refused = acquire({Claim(all, "k", 5), Claim(none, "k")}, Deadline::never());
    CHECK_FALSE(refused);
    CHECK(refused.decision().retry_after == Decision::never);
    CHECK(clock.now() == start + 2s);
  });
}

TEST_CASE("a lease under no limit holds nothing, and is asked for nothing", "[constant][leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    Counting counted(store);
    const ConcurrencyLimiter jobs(counted, "jobs", unlimited, {.ttl = 1s});
    Lease lease = jobs.try_acquire("k", 1'000);
    REQUIRE(lease);
    check_unlimited(lease.decision());
    const int asked = counted.plans;
    clock.advance(1h);
    CHECK_FALSE(lease.lost());
    CHECK(lease.renew());
    CHECK(lease.release());
    CHECK_FALSE(lease);
    CHECK_FALSE(lease.renew());
    CHECK_FALSE(lease.release());
    { const Lease ends = jobs.acquire("k", 1, 1h); }
    Lease later = jobs.try_acquire("k");
    later.release_later();
    LeaseRenewer renewer(store.clock(), Renewing::by_hand);
    Lease kept = jobs.try_acquire("k");
    kept.keep_alive(renewer);
    CHECK(renewer.size() == 0);
    CHECK(counted.plans == asked + 3);
    check_unlimited(jobs.peek("k", 5));
    check_unlimited(jobs.block("k", 1min));
    CHECK(ConcurrencyLimiter(store, "jobs", 1).peek("k").remaining == 1);
  });
}

TEST_CASE("a limit of 0 grants no lease, and held ones end", "[constant][leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const VirtualClock::AutoAdvance moving(clock);
    const ConcurrencyLimiter open(store, "jobs", 2);
    const ConcurrencyLimiter shut(store, "jobs", 0);
    Lease held = open.try_acquire("k", 1, LeaseId{1, 2});
    REQUIRE(held);
    const Lease refused = shut.try_acquire("k");
    CHECK_FALSE(refused);
    check_never(refused.decision());
    check_never(shut.acquire("k", 1, Deadline::never()).decision());
    check_never(shut.peek("k"));
    CHECK(held.renew());
    CHECK(shut.release("k", LeaseId{1, 2}));
    CHECK(open.peek("k").remaining == 2);
    std::error_code error;
    (void)shut.try_acquire("k", 0, error);
    CHECK(error == Errc::invalid_cost);
    const Lease another = open.try_acquire("k", 2);
    shut.reset("k");
    CHECK(open.peek("k").remaining == 2);
    CHECK_THROWS_AS(ConcurrencyLimiter(store, "jobs", -1), std::invalid_argument);
  });
}

TEST_CASE("a shared bucket stores never and unlimited, and knows afterwards what was spent",
          "[constant][shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "shared");
    const SharedTokenBucket another(store, "shared");  // of another process
    (void)bucket.configure("k", Quota::per_hour(10));
    Reservation before = bucket.reserve("k", 4);
    REQUIRE(before.remaining == 6);
    CHECK(bucket.configure("k", Quota::never()).changed);
    CHECK_FALSE(bucket.configure("k", Quota::never()).changed);
    check_never(another.try_acquire("k"));
    check_never(another.peek("k", 3));
    check_never(another.reserve("k", 1, 1min));
    CHECK(another.try_acquire("k", 0).allowed);
    CHECK(another.configuration("k")->quota == Quota::never());
    CHECK(another.refund("k", before, 1) == 0);
    check_never(another.acquire("k", 1, 1h));
    CHECK(another.penalize("k", 3).remaining == 0);
    CHECK(another.block("k", 1min).allowed);
    another.reset("k");

    CHECK(bucket.configure("k", Quota::unlimited()).changed);
    check_unlimited(another.try_acquire("k", 1'000'000));
    check_unlimited(another.peek("k"));
    Reservation grant = another.reserve("k", 5, 1min);
    check_unlimited(grant);
    CHECK(grant.granted == 5);
    CHECK(another.refund("k", grant, 2) == 0);
    CHECK(another.settle("k", grant, 9).charged == 0);
    check_unlimited(another.acquire("k", 5, 1h));
    CHECK(another.configuration("k")->quota == Quota::unlimited());

    CHECK(bucket.configure("k", Quota::per_hour(10)).changed);
    CHECK(another.peek("k").remaining == 6);
    CHECK(bucket.configure("k", Quota::never()).changed);
    clock.advance(30min);  // what is spent drains at the last rate
    CHECK(bucket.configure("k", Quota::per_hour(20), Inheritance::proportional).changed);
    CHECK(another.peek("k").remaining == 20);

    // A first quota of never begins full.
    (void)bucket.configure("new", Quota::never());
    (void)bucket.configure("new", Quota::per_hour(10), Inheritance::additive);
    CHECK(bucket.try_acquire("new", 10).remaining == 0);
    (void)bucket.configure("new", Quota::unlimited(), Inheritance::reset);
    (void)bucket.configure("new", Quota::per_hour(10), Inheritance::reset);
    CHECK(bucket.peek("new").remaining == 0);
  });
}

TEST_CASE("a bucket that is used under no limit is kept", "[constant][shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "kept", 1h);
    (void)bucket.configure("k", Quota::unlimited());
    for (int i = 0; i < 5; ++i) {
      clock.advance(45min);
      check_unlimited(bucket.try_acquire("k"));
    }
    clock.advance(1h);
    std::error_code error;
    (void)bucket.try_acquire("k", error);
    CHECK(error == Errc::not_configured);
  });
}

TEST_CASE("a shared window stores never and unlimited, and its log counts on afterwards",
          "[constant][shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Counting counted(store);
    const SharedSlidingWindow rate(store, "rate", {.client = "a"});
    const SharedSlidingWindow another(counted, "rate", {.client = "b"});
    const auto set = [&](Word limit) {
      return rate.configure("k", RateType::overall, limit, 1h).changed;
    };
    CHECK(set(5));
    Reservation before = another.reserve("k", 2);
    REQUIRE(before.remaining == 3);
    CHECK(set(0));
    check_never(another.try_acquire("k"));
    const int asked = counted.plans;
    check_never(another.try_acquire("k", 3));
    CHECK(counted.plans == asked + 1);  // by the rate that it knows
    check_never(another.peek("k"));
    check_never(another.reserve("k", 1, 1min));
    check_never(another.acquire("k", 1, 10min));
    CHECK(another.try_acquire("k", 0).allowed);
    CHECK(another.configuration("k")->rate == 0);
    CHECK(set(unlimited));
    check_unlimited(another.try_acquire("k", 1'000'000));
    Reservation grant = another.reserve("k", 7);
    CHECK(grant.granted == 7);
    CHECK(another.refund("k", grant, 1) == 0);
    check_unlimited(another.acquire("k", 1, 1h));
    CHECK(another.configuration("k")->rate == unlimited);
    CHECK(set(5));
    CHECK(another.peek("k").remaining == 3);
    CHECK(another.refund("k", before, 1) == 1);
    clock.advance(1h);
    CHECK(another.peek("k").remaining == 5);
  });
}

TEST_CASE("a window that an update keeps is kept over a rate of 0",
          "[constant][shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedSlidingWindow rate(store, "rate");
    (void)rate.configure("k", RateType::overall, 10, 1h);
    REQUIRE(rate.try_acquire("k", 10));
    (void)rate.configure("k", RateType::overall, 0, 1h);
    (void)rate.configure("k", RateType::overall, 5, 1min);
    clock.advance(1min);
    // Ten in an hour were granted, and the new rate allows no more in its first two minutes.
    CHECK_FALSE(rate.try_acquire("k").allowed);
    clock.advance(1min);
    CHECK(rate.try_acquire("k").allowed);
  });
}

TEST_CASE("who waits for a shared limit of 0 is woken when it becomes another",
          "[constant][waiting]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const SharedTokenBucket bucket(*store, "shared");
  (void)bucket.configure("k", Quota::never());
  bool granted = false;
  std::thread waiter([&] { granted = bucket.acquire("k", 1, Deadline::never()).allowed; });
  while (bucket.waiting("k") == 0) std::this_thread::yield();
  (void)bucket.configure("k", Quota::per_second(10));
  waiter.join();
  CHECK(granted);
}

TEST_CASE("a fallback store answers constant limits without its store", "[constant][fallback]") {
  VirtualClock clock;
  const auto primary = make_virtual_store(clock);
  testing::FaultyStore broken(*primary);
  broken.fail_all(testing::Fault::not_executed(Errc::not_connected));
  for (const FailurePolicy& policy : {FailurePolicy::open(), FailurePolicy::closed()}) {
    CircuitBreaker breaker(clock);
    FallbackStore store(broken, breaker, policy);
    for_each_limiter(store, 0, [&](const auto& limiter) {
      const Decision decision = limiter.try_acquire("k");
      check_never(decision);
      CHECK_FALSE(is_degraded(decision.source));
    });
    for_each_limiter(store, unlimited,
                     [&](const auto& limiter) { check_unlimited(limiter.try_acquire("k", 5)); });
    const TokenBucket none(store, "none", Quota::never());
    const TokenBucket all(store, "all", Quota::unlimited());
    const TokenBucket some(store, "some", Quota::per_second(1));
    const std::array refused{some.acquire_step("k"), none.acquire_step("k")};
    CHECK_FALSE(decide(store, refused).allowed);
    const std::array by_policy{some.acquire_step("k"), all.acquire_step("k")};
    CHECK(decide(store, by_policy).allowed == (policy.kind() == FailurePolicy::Kind::open));
  }
}
