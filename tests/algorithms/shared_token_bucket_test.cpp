// The shared token bucket's behaviour, in exact integers, on every store.
// Threading: single-threaded.
#include "sluice/limiters/shared_token_bucket.hpp"

#include <stdexcept>

#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("without a quota a key is not configured, and the first quota wins",
          "[shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedTokenBucket bucket(store, "b");
    CHECK(error_of([&](auto& e) { return bucket.try_acquire("a", 1, e); }) == Errc::not_configured);
    CHECK(error_of([&](auto& e) { return bucket.peek("a", 0, e); }) == Errc::not_configured);
    CHECK_FALSE(bucket.configuration("a").has_value());
    CHECK(bucket.try_configure("a", Quota::per_second(10).burst(5)).changed);
    const auto second = bucket.try_configure("a", Quota::per_second(99));
    CHECK_FALSE(second.changed);
    CHECK(second.version == 1);
    const auto setting = bucket.configuration("a");
    REQUIRE(setting.has_value());
    CHECK(setting->quota == Quota::per_second(10).burst(5));
    CHECK(setting->version == 1);
    CHECK(setting->decision.remaining == 5);
    CHECK(setting->decision.limit == 5);
    const Decision d = bucket.try_acquire("a", 2);
    CHECK(d.remaining == 3);
    CHECK(d.limit == 5);
    std::error_code error;
    const RequestId id{1, 2};
    for (const Decision& once :
         {bucket.try_acquire("a", 1, id), bucket.try_acquire("a", 1, id, error)}) {
      CHECK(once.remaining == 2);
      CHECK(once.limit == 5);
    }
    CHECK(bucket.peek("a", error).limit == 5);
    CHECK(bucket.try_acquire("a", error).limit == 5);
    CHECK_FALSE(error);
    CHECK_THROWS_AS(bucket.try_acquire("a", 6, RequestId{3, 4}), std::system_error);
  });
}

TEST_CASE("a quota is forgotten after keep_alive without a grant, and not before",
          "[shared_token_bucket][C-051]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "b", 1h);
    bucket.configure("a", Quota::per_second(1));
    clock.advance(50min);
    CHECK(bucket.try_acquire("a").allowed);
    clock.advance(1h - 1us);
    CHECK(bucket.peek("a").allowed);
    clock.advance(1us);
    CHECK(error_of([&](auto& e) { return bucket.peek("a", 1, e); }) == Errc::not_configured);
    CHECK(bucket.try_configure("a", Quota::per_second(2)).version == 1);
    clock.advance(1h - 1us);
    CHECK_FALSE(bucket.configure("a", Quota::per_second(2)).changed);
    clock.advance(1h - 1us);  // the same quota is kept from then on
    CHECK(bucket.peek("a").allowed);
  });
}

TEST_CASE("no hint leads beyond the time for which a quota is kept",
          "[shared_token_bucket][C-051]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "b", 11min);
    bucket.configure("debt", Quota::per_second(1).burst(600));
    CHECK(bucket.try_acquire("debt", 600).allowed);
    bucket.configure("debt", Quota::per(1, 1min).burst(10), Inheritance::additive);  // 590 owed
    const Span hint = bucket.try_acquire("debt", 10).retry_after;
    CHECK(hint == 11min - 1us);
    clock.advance(hint - 1us);
    CHECK(bucket.try_acquire("debt", 10).retry_after == 1us);
    clock.advance(1us);
    CHECK(bucket.try_acquire("debt", 10).allowed);

    CHECK(error_of([&](auto& e) {
            bucket.configure("full", Quota::per(1, 1min).burst(11), Inheritance::as_is, e);
          }) == Errc::invalid_argument);  // its whole burst would come back when it is forgotten
  });
}

TEST_CASE("what can never be is a typed error", "[shared_token_bucket][C-024][C-025]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedTokenBucket bucket(store, "b", 10s);
    CHECK_THROWS_AS(SharedTokenBucket(store, "b", 0s), std::invalid_argument);
    CHECK_THROWS_AS(SharedTokenBucket(store, "", 1s), std::invalid_argument);
    CHECK(error_of([&](auto& e) {
            bucket.configure("a", Quota::per(1, 11s), Inheritance::as_is, e);
          }) == Errc::invalid_argument);
    CHECK(error_of([&](auto& e) {
            bucket.configure("a", Quota::per_second(1), static_cast<Inheritance>(4), e);
          }) == Errc::invalid_argument);
    CHECK_THROWS_AS(bucket.try_acquire("a"), std::system_error);
    bucket.configure("a", Quota::per_second(5));
    CHECK(error_of([&](auto& e) { return bucket.try_acquire("a", 6, e); }) ==
          Errc::cost_exceeds_capacity);
    CHECK(error_of([&](auto& e) { return bucket.try_acquire("a", -1, e); }) == Errc::invalid_cost);
    CHECK(bucket.try_acquire("a", 0).remaining == 5);
    const SlotLock other(store, "b", 1s);
    CHECK(error_of([&](auto& e) { return other.try_acquire("a", e); }) == Errc::wrong_kind);
  });
}

TEST_CASE("a shared token bucket reserves in order of arrival, and gives back what it can",
          "[shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SharedTokenBucket bucket(store, "b");
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 1, 1s, e); }) == Errc::not_configured);
    bucket.configure("a", Quota::per_second(10).burst(5));
    CHECK(bucket.reserve("a", 5, 0s).wait() == 0s);
    CHECK_FALSE(bucket.reserve("a", 2, 200ms - 1us));
    Reservation first = bucket.reserve("a", 2, 1s);
    Reservation second = bucket.reserve("a", 1, 1s);
    CHECK(first.wait() == 200ms);
    CHECK(first.limit == 5);
    CHECK(second.wait() == 300ms);
    CHECK(bucket.peek("a").retry_after == 400ms);
    CHECK(bucket.cancel("a", first) == 0);  // who waits behind it keeps its time
    CHECK(bucket.cancel("a", second) == 1);
    CHECK(second.granted == 0);
    CHECK(bucket.peek("a").retry_after == 300ms);
    const Reservation third = bucket.borrow("a", 1, 1s);
    CHECK(third.wait() == 300ms);
    clock.advance(300ms);
    Reservation fourth = bucket.reserve("a", 3, 1s);
    CHECK(bucket.refund("a", fourth, 2) == 2);
    CHECK(fourth.wait() == 100ms);
    CHECK(error_of([&](auto& e) { bucket.refund("a", fourth, 2, e); }) == Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 6, 1s, e); }) ==
          Errc::cost_exceeds_capacity);
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 1, -1us, e); }) ==
          Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { return bucket.reserve("a", 1, bucket.longest() + 1us, e); }) ==
          Errc::invalid_argument);
    CHECK_THROWS_AS(bucket.reserve("a", 6, 1s), std::system_error);
    CHECK_THROWS_AS(bucket.refund("a", fourth, 9), std::system_error);
  });
}

TEST_CASE("a shared token bucket is changed by hand within its range, if it has a quota",
          "[shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedTokenBucket bucket(store, "b");
    for (const auto& call : std::vector<void (*)(const SharedTokenBucket&, std::error_code&)>{
             [](auto&b, auto&e) { b.block("a", 1s, e); },
             [](auto&b, auto&e) { b.reward("a", 1, e); },
             [](auto&b, auto&e) { b.penalize("a", 1, e); },
             [](auto&b, auto&e) { b.reset("a", e); }}) {
      CHECK(error_of([&](auto& e) { call(bucket, e); }) == Errc::not_configured);
    }
    bucket.configure("a", Quota::per_second(10).burst(5));
    CHECK(error_of([&](auto& e) { bucket.block("a", bucket.longest() + 1us, e); }) ==
          Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { bucket.block("a", -1us, e); }) == Errc::invalid_argument);
    CHECK(error_of([&](auto& e) { bucket.reward("a", -1, e); }) == Errc::invalid_cost);
    CHECK_THROWS_AS(bucket.penalize("a", -1), std::system_error);
    CHECK(bucket.block("a", 1s).limit == 5);
    bucket.configure("a", Quota::per_second(1000).burst(50), Inheritance::reset);
    CHECK(bucket.peek("a").retry_after == 1001ms - 1us);  // one token of the new quota behind it
    bucket.reset("a");
    CHECK(bucket.peek("a").remaining == 50);
  });
}

TEST_CASE("a plan reserves of several shared token buckets, all or nothing",
          "[shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SharedTokenBucket bucket(store, "b");
    bucket.configure(Key{"t", "one"}, Quota::per_second(10).burst(1));
    bucket.configure(Key{"t", "two"}, Quota::per_second(1).burst(1));
    static_cast<void>(bucket.try_acquire(Key{"t", "two"}));
    const std::array steps{bucket.reserve_step(Key{"t", "one"}, 1, 500ms),
                           bucket.reserve_step(Key{"t", "two"}, 1, 500ms)};
    CHECK(decide(store, steps).retry_after == 500ms);
    CHECK(bucket.peek(Key{"t", "one"}).remaining == 1);
    const std::array longer{bucket.reserve_step(Key{"t", "one"}, 1, 1s),
                            bucket.reserve_step(Key{"t", "two"}, 1, 1s)};
    std::array<Word, 12> output{};
    std::error_code error;
    const Decision d = decide(store, longer, error, {}, output);
    CHECK(d.retry_after == 1s);
    Reservation one = SharedTokenBucket::reservation(d, std::span(output).first(6));
    CHECK(one.granted == 1);
    CHECK(bucket.cancel(Key{"t", "one"}, one) == 1);
  });
}
