// What an exception says: the call that was made, and why it failed. Threading: single-threaded.
#include <functional>
#include <string>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::for_each_store;
using sluice::test::Stores;

namespace {

/// What stands before the reason.
std::string told_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::system_error& error) {
    const std::string reason = ": " + error.code().message();
    const std::string text = error.what();
    CHECK(text.ends_with(reason));
    return text.substr(0, text.size() - std::min(reason.size(), text.size()));
  }
  return "no exception";
}

/// The call that `call` fails by.
std::string named_by(const std::function<void()>& call) {
  const std::string told = told_by(call);
  return told.substr(0, told.find(": "));
}

const Key bad{"", "name"};  // no call takes it

}  // namespace

TEST_CASE("an exception names the call that failed", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const RequestId id{1, 2};
        const auto common = [&](const auto& limiter, const std::string& type) {
          CHECK(named_by([&] { limiter.try_acquire(bad); }) == type + "::try_acquire");
          CHECK(named_by([&] { limiter.try_acquire(bad, 1, id); }) == type + "::try_acquire");
          CHECK(named_by([&] { limiter.future_try_acquire(bad).get(); }) ==
                type + "::future_try_acquire");
          CHECK(named_by([&] { limiter.peek(bad); }) == type + "::peek");
          CHECK(named_by([&] { limiter.reset(bad); }) == type + "::reset");
          CHECK(named_by([&] { limiter.block(bad, 1s); }) == type + "::block");
          CHECK(named_by([&] { limiter.reward(bad, 1); }) == type + "::reward");
        };
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        common(bucket, "TokenBucket");
        CHECK(named_by([&] { bucket.penalize(bad, 1); }) == "TokenBucket::penalize");
        CHECK(named_by([&] { bucket.borrow(bad, 1, 1s); }) == "TokenBucket::borrow");
        Reservation none;
        CHECK(named_by([&] { bucket.cancel(bad, none); }) == "TokenBucket::cancel");
        BoundTokenBucket bound = bucket.at("alice");
        CHECK(named_by([&] { bound.try_acquire(-1); }) == "BoundTokenBucket::try_acquire");
        CHECK(named_by([&] { bound.try_acquire(11, id); }) == "BoundTokenBucket::try_acquire");
        CHECK(named_by([&] { bound.future_try_acquire(11).get(); }) ==
              "BoundTokenBucket::future_try_acquire");
        CHECK(named_by([&] { bound.peek(11); }) == "BoundTokenBucket::peek");

        const FixedWindow window(store, "window", 10, Calendar::every(1s));
        common(window, "FixedWindow");
        CHECK(named_by([&] { window.penalize(bad, 1); }) == "FixedWindow::penalize");
        CHECK(named_by([&] { window.refund(bad, {}, 1); }) == "FixedWindow::refund");

        const SlidingCounter counter(store, "counter", {10, 1s});
        common(counter, "SlidingCounter");
        CHECK(named_by([&] { counter.penalize(bad, 1); }) == "SlidingCounter::penalize");

        const SlidingWindows windows(store, "windows", {{10, 1s}});
        common(windows, "SlidingWindows");
        const WindowsReservation granted = windows.reserve("alice", 1, 1s);
        CHECK(named_by([&] { windows.cancel(bad, granted); }) == "SlidingWindows::cancel");

        const SharedBucket shared(store, "shared");
        common(shared, "SharedBucket");
        CHECK(named_by([&] { shared.borrow(bad, 1, 1s); }) == "SharedBucket::borrow");
        CHECK(named_by([&] { shared.cancel(bad, none); }) == "SharedBucket::cancel");

        const SlotLock lock(store, "lock", 1s);
        CHECK(named_by([&] { lock.try_acquire(bad); }) == "SlotLock::try_acquire");
        CHECK(named_by([&] { lock.reserve(bad, 1s); }) == "SlotLock::reserve");
        CHECK(named_by([&] { lock.peek(bad); }) == "SlotLock::peek");
        CHECK(named_by([&] { lock.block(bad, 1s); }) == "SlotLock::block");
        CHECK(named_by([&] { lock.reset(bad); }) == "SlotLock::reset");
        const SlotPermit permit = lock.try_acquire("alice");
        CHECK(named_by([&] { lock.cancel(bad, permit); }) == "SlotLock::cancel");

        const ConcurrencyLimiter jobs(store, "jobs", 3);
        CHECK(named_by([&] { jobs.peek(bad); }) == "ConcurrencyLimiter::peek");
        CHECK(named_by([&] { jobs.block(bad, 1s); }) == "ConcurrencyLimiter::block");
        CHECK(named_by([&] { jobs.reset(bad); }) == "ConcurrencyLimiter::reset");
        CHECK(named_by([&] { jobs.release(bad, {1, 2}); }) == "ConcurrencyLimiter::release");

        const FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
        CHECK(named_by([&] { (void)fleet.try_acquire("all", 4); }) == "FleetShedder::try_acquire");
        CHECK(named_by([&] { fleet.peek("all", 4); }) == "FleetShedder::peek");
        CHECK(named_by([&] { fleet.block(-1s); }) == "FleetShedder::block");

        CHECK_THROWS_WITH(fleet.share_of("none"),
                          "FleetShedder: unknown tier \"none\"; there are \"all\"");
        CHECK_THROWS_WITH(
            SharedRateLimiter(store, "t", "rate", {.client = std::string(1 << 20, 'c')}),
            "the names of a limiter and its client must have 1048554 bytes at most together, got "
            "1048580");

        const Gates gates(store, "gates", {"account"});
        const std::vector<Scope> none_at_all;
        CHECK(named_by([&] { gates.pass(none_at_all); }) == "Gates::pass");
        CHECK(named_by([&] { gates.peek(none_at_all); }) == "Gates::peek");

        const UtilizationShedder shedder(store, "shedder");
        CHECK(named_by([&] { shedder.sample(7.5); }) == "UtilizationShedder::sample");
        CHECK(named_by([&] { shedder.reset(bad); }) == "UtilizationShedder::reset");
        CHECK(told_by([&] {
                shedder.peek("nobody");
              }).starts_with("UtilizationShedder::peek: no tier \"nobody\"; the tiers are"));
        CHECK(told_by([&] {
                shedder.try_acquire("nobody");
              }).starts_with("UtilizationShedder::try_acquire: no tier"));

        const SharedRateLimiter rate(store, "rate", "rate");
        CHECK(named_by([&] { rate.available_permits(); }) ==
              "SharedRateLimiter::available_permits");
        CHECK(named_by([&] { rate.future_try_acquire(1).get(); }) ==
              "SharedRateLimiter::future_try_acquire");
      },
      Stores::virtual_time);
}

TEST_CASE("a plan that is decided by hand is named as such", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        CHECK(named_by([&] { decide(store, bucket.take(bad)); }) == "sluice::decide");
        CHECK(named_by([&] { future_decide(store, bucket.take(bad)).get(); }) ==
              "sluice::future_decide");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception says which value was wrong, and what is allowed", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const RequestId id{1, 2};
        const std::string too_much = "cost 11, allowed 0 to 10";
        const std::string negative = "cost -1, allowed 0 to 10";
        const auto common = [&](const auto& limiter, const std::string& type) {
          CHECK(told_by([&] { limiter.try_acquire("a", 11); }) ==
                type + "::try_acquire: " + too_much);
          CHECK(told_by([&] { limiter.try_acquire("a", -1, id); }) ==
                type + "::try_acquire: " + negative);
          CHECK(told_by([&] { limiter.future_try_acquire("a", 11).get(); }) ==
                type + "::future_try_acquire: " + too_much);
          CHECK(told_by([&] { limiter.peek("a", 11); }) == type + "::peek: " + too_much);
          CHECK(told_by([&] { limiter.acquire("a", 11, 0s); }) == type + "::acquire: " + too_much);
          CHECK(told_by([&] { limiter.acquire("a", 1, 0s, {.priority = 1001}); }) ==
                type + "::acquire: priority 1001, allowed -1000 to 1000");
          CHECK(
              told_by([&] { limiter.reward("a", -1); }).starts_with(type + "::reward: amount -1"));
          CHECK(told_by([&] {
                  limiter.reward("a", word_limit + 1);
                }).starts_with(type + "::reward: amount 4503599627370497, allowed "));
          CHECK(told_by([&] {
                  limiter.block("a", -1us);
                }).starts_with(type + "::block: span -1 us, allowed 0 to "));
          CHECK(told_by([&] { limiter.try_acquire(bad); }) ==
                type + "::try_acquire: a tag of 0 bytes, a name of 4 bytes");
        };
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        common(bucket, "TokenBucket");
        CHECK(told_by([&] { bucket.reserve("a", 11, 1s); }) == "TokenBucket::reserve: " + too_much);
        CHECK(told_by([&] {
                bucket.reserve("a", 1, -1us);
              }).starts_with("TokenBucket::reserve: wait -1 us, allowed 0 to "));
        CHECK(told_by([&] { bucket.try_acquire_up_to("a", 2, 3); }) ==
              "TokenBucket::try_acquire_up_to: least 3, allowed 0 to 2");
        Reservation taken = bucket.reserve("a", 3, 0s);
        CHECK(told_by([&] { bucket.refund("a", taken, 4); }) ==
              "TokenBucket::refund: amount 4, allowed 0 to 3");
        CHECK(told_by([&] { bucket.settle("a", taken, -1); }) ==
              "TokenBucket::settle: amount -1, allowed 0 to 2^52");
        CHECK(told_by([&] { bucket.at("alice").try_acquire(11); }) ==
              "BoundTokenBucket::try_acquire: " + too_much);

        const FixedWindow window(store, "window", 10, Calendar::every(1s));
        common(window, "FixedWindow");
        const SlidingCounter counter(store, "counter", {10, 1s});
        common(counter, "SlidingCounter");
        const SlidingWindows windows(store, "windows", {{10, 1s}});
        common(windows, "SlidingWindows");

        const SharedBucket shared(store, "shared");
        CHECK(told_by([&] { shared.try_acquire("a", 1); }) ==
              "SharedBucket::try_acquire: key {a}:shared");
        shared.set("a", Quota::per_second(10), Inheritance::reset);
        CHECK(told_by([&] { shared.try_acquire("a", 11); }) ==
              "SharedBucket::try_acquire: cost 11");
        CHECK(told_by([&] { shared.penalize("a", -1); }) ==
              "SharedBucket::penalize: amount -1, allowed 0 to 2^52");

        const SlotLock lock(store, "lock", 1s);
        CHECK(told_by([&] {
                lock.reserve("a", -1us);
              }).starts_with("SlotLock::reserve: wait -1 us, allowed 0 to "));
        const ConcurrencyLimiter jobs(store, "jobs", 3);
        CHECK(told_by([&] { (void)jobs.try_acquire("a", 4); }) ==
              "ConcurrencyLimiter::try_acquire: weight 4, allowed 1 to 3");
        CHECK(told_by([&] { (void)jobs.acquire("a", 4, 0s); }) ==
              "ConcurrencyLimiter::acquire: weight 4, allowed 1 to 3");
        const FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
        CHECK(told_by([&] { (void)fleet.try_acquire("all", 4); }) ==
              "FleetShedder::try_acquire: weight 4, allowed 1 to 3");
        const UtilizationShedder shedder(store, "shedder");
        CHECK(
            told_by([&] { shedder.sample(7.5); }).starts_with("UtilizationShedder::sample: util"));

        const SharedRateLimiter rate(store, "rate", "rate");
        CHECK(told_by([&] { rate.set_rate(RateType::overall, 0, 1s); }) ==
              "SharedRateLimiter::set_rate: rate 0, allowed 1 to 65536");
        rate.set_rate(RateType::overall, 5, 1s);
        CHECK(rate.try_acquire());
        CHECK(told_by([&] { rate.try_acquire(6); }) ==
              "SharedRateLimiter::try_acquire: cost 6, allowed 0 to 5");
        CHECK(told_by([&] { rate.acquire(6, 0s); }) ==
              "SharedRateLimiter::acquire: cost 6, allowed 0 to 5");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception about a plan says which step was wrong", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        const Key b{"a", "b"};
        CHECK(told_by([&] {
                decide(store, {bucket.take("a"), bucket.take(b, 11)});
              }) == "sluice::decide: step 1: cost 11, allowed 0 to 10");
        CHECK(told_by([&] {
                decide(store, {bucket.take(b), bucket.take(b)});
              }) == "sluice::decide: step 1: key {a}:b");
        CHECK(told_by([&] { decide(store, std::vector<Step>{}); }) ==
              "sluice::decide: 0 steps, allowed 1 to 16");
      },
      Stores::virtual_time);
}
