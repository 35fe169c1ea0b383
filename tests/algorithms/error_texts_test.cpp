// What an exception says: the call that was made, and why it failed. Threading: single-threaded.
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
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

/// `step` on this key: what another limiter, whose keys are alike, would ask.
Step at_key(const Key& key, Step step) {
  step.key = key;
  return step;
}

}  // namespace

TEST_CASE("an exception names the call that failed", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const RequestId id{1, 2};
        const auto common = [&](const auto& limiter, const std::string& type) {
          CHECK(named_by([&] { return limiter.try_acquire(bad); }) == type + "::try_acquire");
          CHECK(named_by([&] { return limiter.try_acquire(bad, 1, id); }) ==
                type + "::try_acquire");
          CHECK(named_by([&] { limiter.future_try_acquire(bad).get(); }) ==
                type + "::future_try_acquire");
          CHECK(named_by([&] { return limiter.peek(bad); }) == type + "::peek");
          CHECK(named_by([&] { limiter.reset(bad); }) == type + "::reset");
          CHECK(named_by([&] { limiter.block(bad, 1s); }) == type + "::block");
          CHECK(named_by([&] { limiter.reward(bad, 1); }) == type + "::reward");
        };
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        common(bucket, "TokenBucket");
        CHECK(named_by([&] { bucket.penalize(bad, 1); }) == "TokenBucket::penalize");
        CHECK(named_by([&] { return bucket.borrow(bad, 1, 1s); }) == "TokenBucket::borrow");
        Reservation tokens = bucket.reserve("alice", 1);
        CHECK(named_by([&] { bucket.cancel(bad, tokens); }) == "TokenBucket::cancel");
        BoundTokenBucket bound = bucket.at("alice");
        CHECK(named_by([&] { return bound.try_acquire(-1); }) == "BoundTokenBucket::try_acquire");
        CHECK(named_by([&] { return bound.try_acquire(11, id); }) ==
              "BoundTokenBucket::try_acquire");
        CHECK(named_by([&] { bound.future_try_acquire(11).get(); }) ==
              "BoundTokenBucket::future_try_acquire");
        CHECK(named_by([&] { return bound.peek(11); }) == "BoundTokenBucket::peek");

        const FixedWindow window(store, "window", 10, Calendar::every(1s));
        common(window, "FixedWindow");
        CHECK(named_by([&] { window.penalize(bad, 1); }) == "FixedWindow::penalize");
        Reservation granted = window.reserve("alice", 1);
        CHECK(named_by([&] { window.refund(bad, granted, 1); }) == "FixedWindow::refund");

        const SlidingWindowCounter counter(store, "counter", {10, 1s});
        common(counter, "SlidingWindowCounter");
        CHECK(named_by([&] { counter.penalize(bad, 1); }) == "SlidingWindowCounter::penalize");

        const SlidingWindow windows(store, "windows", {{10, 1s}});
        common(windows, "SlidingWindow");
        granted = windows.reserve("alice", 1, 1s);
        CHECK(named_by([&] { windows.cancel(bad, granted); }) == "SlidingWindow::cancel");

        const SharedTokenBucket shared(store, "shared");
        common(shared, "SharedTokenBucket");
        CHECK(named_by([&] { return shared.borrow(bad, 1, 1s); }) == "SharedTokenBucket::borrow");
        shared.configure("alice", Quota::per_second(10));
        tokens = shared.reserve("alice", 1);
        CHECK(named_by([&] { shared.cancel(bad, tokens); }) == "SharedTokenBucket::cancel");

        const SlotLock lock(store, "lock", 1s);
        CHECK(named_by([&] { return lock.try_acquire(bad); }) == "SlotLock::try_acquire");
        CHECK(named_by([&] { return lock.reserve(bad, 1s); }) == "SlotLock::reserve");
        CHECK(named_by([&] { return lock.peek(bad); }) == "SlotLock::peek");
        CHECK(named_by([&] { lock.block(bad, 1s); }) == "SlotLock::block");
        CHECK(named_by([&] { lock.reset(bad); }) == "SlotLock::reset");
        const SlotPermit permit = lock.try_acquire("alice");
        CHECK(named_by([&] { lock.cancel(bad, permit); }) == "SlotLock::cancel");

        const ConcurrencyLimiter jobs(store, "jobs", 3);
        CHECK(named_by([&] { return jobs.peek(bad); }) == "ConcurrencyLimiter::peek");
        CHECK(named_by([&] { jobs.block(bad, 1s); }) == "ConcurrencyLimiter::block");
        CHECK(named_by([&] { jobs.reset(bad); }) == "ConcurrencyLimiter::reset");
        CHECK(named_by([&] { jobs.release(bad, {1, 2}); }) == "ConcurrencyLimiter::release");

        const FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
        CHECK(named_by([&] { (void)fleet.try_acquire("all", 4); }) == "FleetShedder::try_acquire");
        CHECK(named_by([&] { return fleet.peek("all", 4); }) == "FleetShedder::peek");
        CHECK(named_by([&] { fleet.block(-1s); }) == "FleetShedder::block");

        CHECK_THROWS_WITH(fleet.share_of("none"),
                          "FleetShedder: unknown tier \"none\"; there are \"all\"");
        CHECK_THROWS_WITH(fleet.share_of("a\n"),
                          "FleetShedder: unknown tier \"a\\x0a\"; there are \"all\"");
        CHECK_THROWS_WITH(
            SharedSlidingWindow(store, "rate", {.client = std::string(1 << 20, 'c')}),
            "the names of a limiter and its client must have 1048551 bytes at most together, got "
            "1048580");

        const Gates gates(store, "gates", {"account"});
        const std::vector<Scope> none_at_all;
        CHECK(named_by([&] { return gates.pass(none_at_all); }) == "Gates::pass");
        CHECK(named_by([&] { return gates.peek(none_at_all); }) == "Gates::peek");

        const UtilizationShedder shedder(store, "shedder");
        CHECK(named_by([&] { shedder.sample(7.5); }) == "UtilizationShedder::sample");
        CHECK(named_by([&] { shedder.reset(bad); }) == "UtilizationShedder::reset");
        CHECK(told_by([&] {
                static_cast<void>(shedder.peek("nobody"));
              }).starts_with("UtilizationShedder::peek: no tier \"nobody\"; the tiers are"));
        CHECK(told_by([&] { return shedder.peek("a\n"); }) ==
              "UtilizationShedder::peek: no tier \"a\\x0a\"; the tiers are \"critical\" "
              "\"sheddable\"");
        CHECK(told_by([&] {
                static_cast<void>(shedder.try_acquire("nobody"));
              }).starts_with("UtilizationShedder::try_acquire: no tier"));

        const SharedSlidingWindow rate(store, "rate");
        CHECK(named_by([&] { return rate.peek("rate"); }) == "SharedSlidingWindow::peek");
        CHECK(named_by([&] { rate.future_try_acquire("rate", 1).get(); }) ==
              "SharedSlidingWindow::future_try_acquire");
      },
      Stores::virtual_time);
}

TEST_CASE("a plan that is decided by hand is named as such", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        CHECK(named_by([&] { return decide(store, bucket.acquire_step(bad)); }) ==
              "sluice::decide");
        CHECK(named_by([&] { future_decide(store, bucket.acquire_step(bad)).get(); }) ==
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
        const auto common = [&](const auto& limiter, const std::string& type, Span longest) {
          CHECK(told_by([&] { return limiter.try_acquire("a", 11); }) ==
                type + "::try_acquire: " + too_much);
          CHECK(told_by([&] { return limiter.try_acquire("a", -1, id); }) ==
                type + "::try_acquire: " + negative);
          CHECK(told_by([&] { limiter.future_try_acquire("a", 11).get(); }) ==
                type + "::future_try_acquire: " + too_much);
          CHECK(told_by([&] { return limiter.peek("a", 11); }) == type + "::peek: " + too_much);
          CHECK(told_by([&] { return limiter.acquire("a", 11, 0s); }) ==
                type + "::acquire: " + too_much);
          CHECK(told_by([&] { return limiter.acquire("a", 1, 0s, {.priority = 4}); }) ==
                type + "::acquire: priority 4, allowed -3 to 3");
          CHECK(told_by([&] { return limiter.acquire("a", 1, 0s, {.weight = 1001}); }) ==
                type + "::acquire: weight 1001, allowed 1 to 1000");
          CHECK(told_by([&] { limiter.reward("a", -1); }) ==
                type + "::reward: amount -1, allowed 0 to 2^52");
          CHECK(told_by([&] { limiter.reward("a", word_limit + 1); }) ==
                type + "::reward: amount 4503599627370497, allowed 0 to 2^52");
          CHECK(told_by([&] { limiter.block("a", -1us); }) ==
                type + "::block: span -1 us, allowed 0 to " + std::to_string(longest.count()) +
                    " us");
          CHECK(told_by([&] { return limiter.try_acquire(bad); }) ==
                type + "::try_acquire: a tag of 0 bytes, a name of 4 bytes");
        };
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        common(bucket, "TokenBucket", bucket.longest());
        CHECK(told_by([&] { return bucket.reserve("a", 11, 1s); }) ==
              "TokenBucket::reserve: " + too_much);
        CHECK(told_by([&] { return bucket.reserve("a", 1, -1us); }) ==
              "TokenBucket::reserve: wait -1 us, allowed 0 to 60000000 us");
        CHECK(told_by([&] { return bucket.try_acquire_up_to("a", 2, 3); }) ==
              "TokenBucket::try_acquire_up_to: least 3, allowed 0 to 2");
        Reservation taken = bucket.reserve("a", 3, 0s);
        CHECK(told_by([&] { bucket.refund("a", taken, 4); }) ==
              "TokenBucket::refund: amount 4, allowed 0 to 3");
        CHECK(told_by([&] { bucket.settle("a", taken, -1); }) ==
              "TokenBucket::settle: actual -1, allowed 0 to 4503599627370499");
        CHECK(told_by([&] { return bucket.at("alice").try_acquire(11); }) ==
              "BoundTokenBucket::try_acquire: " + too_much);

        const FixedWindow window(store, "window", 10, Calendar::every(1s));
        common(window, "FixedWindow", FixedWindow::max_block);
        CHECK(told_by([&] { window.penalize("a", word_limit + 1); }) ==
              "FixedWindow::penalize: amount 4503599627370497, allowed 0 to 2^52");
        CHECK(told_by([&] { window.penalize("a", -1); }) ==
              "FixedWindow::penalize: amount -1, allowed 0 to 2^52");
        CHECK(told_by([&] { return decide(store, window.reward_step("a", -1)); }) ==
              "sluice::decide: amount not in 0 to 2^52");
        CHECK(told_by([&] { return decide(store, window.penalize_step("a", -1)); }) ==
              "sluice::decide: amount not in 0 to 2^52");
        const SlidingWindowCounter counter(store, "counter", {10, 1s});
        common(counter, "SlidingWindowCounter", SlidingWindowCounter::max_block);
        const SlidingWindow windows(store, "windows", {{10, 1s}});
        common(windows, "SlidingWindow", SlidingWindow::max_block);

        const SharedTokenBucket shared(store, "shared");
        CHECK(told_by([&] { return shared.try_acquire("a", 1); }) ==
              "SharedTokenBucket::try_acquire: key {a}:shared");
        shared.configure("a", Quota::per_second(10), Inheritance::reset);
        CHECK(told_by([&] { return shared.try_acquire("a", 11); }) ==
              "SharedTokenBucket::try_acquire: cost 11");
        CHECK(told_by([&] { shared.penalize("a", -1); }) ==
              "SharedTokenBucket::penalize: amount -1, allowed 0 to 2^52");

        const SlotLock lock(store, "lock", 1s);
        CHECK(told_by([&] { return lock.reserve("a", -1us); }) ==
              "SlotLock::reserve: wait -1 us, allowed 0 to 86400000000 us");
        const ConcurrencyLimiter jobs(store, "jobs", 3);
        CHECK(told_by([&] { (void)jobs.try_acquire("a", 4); }) ==
              "ConcurrencyLimiter::try_acquire: weight 4, allowed 1 to 3");
        CHECK(told_by([&] { (void)jobs.acquire("a", 4, 0s); }) ==
              "ConcurrencyLimiter::acquire: weight 4, allowed 1 to 3");
        for (const Word weight : {0, -3}) {
          const std::string text = "weight " + std::to_string(weight) + ", allowed 1 to ";
          const std::string type = "ConcurrencyLimiter::";
          CHECK(told_by([&] { (void)jobs.try_acquire("a", weight); }) ==
                type + "try_acquire: " + text + "3");
          CHECK(told_by([&] { (void)jobs.peek("a", weight); }) == type + "peek: " + text + "3");
          CHECK(told_by([&] { (void)jobs.acquire("a", weight, 0s); }) ==
                type + "acquire: " + text + "3");
          CHECK_THAT(told_by([&] { (void)decide(store, jobs.acquire_step("a", {}, weight)); }),
                     sluice::test::contains_text(text + "3"));
          for (const Word limit : {Word{0}, unlimited}) {
            const ConcurrencyLimiter constant(store, "constant", limit);
            CHECK(told_by([&] { (void)constant.try_acquire("a", weight); }) ==
                  type + "try_acquire: " + text + "2^52");
          }
        }
        const FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
        CHECK(told_by([&] { (void)fleet.try_acquire("all", 4); }) ==
              "FleetShedder::try_acquire: weight 4, allowed 1 to 3");
        const UtilizationShedder shedder(store, "shedder");
        CHECK(told_by([&] { shedder.sample(7.5); }) ==
              "UtilizationShedder::sample: utilization not in 0.0 to 1.0");

        const SharedSlidingWindow rate(store, "rate");
        CHECK(told_by([&] {
                rate.configure("rate", RateType::overall, -1, 1s, SpentUnits::forgotten);
              }) == "SharedSlidingWindow::configure: rate not in 0 to 65536, or unlimited");
        rate.configure("rate", RateType::overall, 5, 1s, SpentUnits::forgotten);
        CHECK(rate.try_acquire("rate"));
        CHECK(told_by([&] { return rate.try_acquire("rate", 6); }) ==
              "SharedSlidingWindow::try_acquire: cost 6, allowed 0 to 5");
        CHECK(told_by([&] { return rate.acquire("rate", 6, 0s); }) ==
              "SharedSlidingWindow::acquire: cost 6, allowed 0 to 5");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception of refund() or settle() names the amount and its range", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const auto check = [](const auto& limiter, const std::string& most) {
          const std::string type = std::remove_cvref_t<decltype(limiter)>::type_name;
          Reservation taken = limiter.reserve("a", 3);
          const auto refund = [&](Word amount) {
            return told_by([&] { limiter.refund("a", taken, amount); });
          };
          const auto settle = [&](Word actual) {
            return told_by([&] { limiter.settle("a", taken, actual); });
          };
          CHECK(refund(-1) == type + "::refund: amount -1, allowed 0 to 3");
          CHECK(refund(4) == type + "::refund: amount 4, allowed 0 to 3");
          CHECK(settle(-7) == type + "::settle: actual -7, allowed 0 to " + most);
          CHECK(settle(word_limit + 4) ==
                type + "::settle: actual 4503599627370500, allowed 0 to " + most);
          CHECK(taken.granted == 3);
          Reservation none;
          CHECK(told_by([&] { limiter.refund("a", none, 1); }) ==
                type + "::refund: amount 1, allowed 0 to 0");
        };
        const std::string any = "4503599627370499";  // 2^52 and three
        check(TokenBucket(store, "bucket", Quota::per_second(10)), any);
        const SharedTokenBucket shared(store, "shared");
        shared.configure("a", Quota::per_second(10));
        check(shared, any);
        check(FixedWindow(store, "window", 10, Calendar::every(1s)), any);
        check(SlidingWindowCounter(store, "counter", {10, 1s}), any);
        check(SlidingWindow(store, "windows", {{10, 1s}}), any);
      },
      Stores::virtual_time);
}

TEST_CASE("an exception about a block has a span, and one about a loan a debt", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        const std::string a_minute = "span -1 us, allowed 0 to 60000000 us";
        CHECK(told_by([&] { return decide(store, bucket.block_step("a", -1us)); }) ==
              "sluice::decide: " + a_minute);
        CHECK(told_by([&] { future_decide(store, bucket.block_step("a", -1us)).get(); }) ==
              "sluice::future_decide: " + a_minute);
        CHECK(told_by([&] { bucket.block("a", -1us); }) == "TokenBucket::block: " + a_minute);
        CHECK(told_by([&] { return bucket.borrow("a", 1, -1us); }) ==
              "TokenBucket::borrow: debt -1 us, allowed 0 to 60000000 us");
        const SharedTokenBucket shared(store, "shared");
        shared.configure("a", Quota::per_second(10), Inheritance::reset);
        CHECK(told_by([&] { return decide(store, shared.block_step("a", -1us)); }) ==
              "sluice::decide: " + a_minute);
        CHECK(told_by([&] { shared.block("a", -1us); }) == "SharedTokenBucket::block: " + a_minute);
        CHECK(told_by([&] { return shared.borrow("a", 1, -1us); }) ==
              "SharedTokenBucket::borrow: debt -1 us, allowed 0 to 60000000 us");
        CHECK(told_by([&] { return shared.borrow("a", 11, 1s); }) ==
              "SharedTokenBucket::borrow: cost 11");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception tells the first reason if several arguments are wrong", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        CHECK(told_by([&] { return bucket.try_acquire_up_to("a", 11, 11); }) ==
              "TokenBucket::try_acquire_up_to: most 11, allowed 0 to 10");
        CHECK(told_by([&] { return bucket.try_acquire_up_to("a", -1, -1); }) ==
              "TokenBucket::try_acquire_up_to: most -1, allowed 0 to 10");
        CHECK(told_by([&] { return bucket.reserve("a", 11, -1us); }) ==
              "TokenBucket::reserve: cost 11, allowed 0 to 10");
        const SharedSlidingWindow rate(store, "rate");
        CHECK(
            told_by([&] {
              rate.configure("rate", RateType::overall, -1, -1s, SpentUnits::forgotten);
            }) ==
            "SharedSlidingWindow::configure: interval -1000000 us, allowed 1 to 2592000000000 us");
        const SharedTokenBucket shared(store, "shared", 1h);
        CHECK(told_by([&] { shared.configure("a", Quota::per(1, 2h)); }) ==
              "SharedTokenBucket::configure: keep_alive 3600000000 us, allowed 7200000001 to "
              "2251799813685248 us");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception of a shared sliding window tells what the call was about", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const SharedSlidingWindow rate(store, "rate");
        rate.configure("t", RateType::overall, 10, 1s, SpentUnits::forgotten);
        Reservation taken = rate.reserve("t", 3, 0s);
        CHECK(told_by([&] { rate.refund("t", taken, 11); }) ==
              "SharedSlidingWindow::refund: amount 11, allowed 0 to 3");
        CHECK(told_by([&] { rate.refund("t", taken, 4); }) ==
              "SharedSlidingWindow::refund: amount 4, allowed 0 to 3");
        CHECK(told_by([&] { rate.refund("t", taken, -1); }) ==
              "SharedSlidingWindow::refund: amount -1, allowed 0 to 3");
        Reservation forged;  // that no limiter has made
        forged.granted = std::numeric_limits<Word>::min();
        CHECK(told_by([&] { rate.cancel("t", forged); }) ==
              "SharedSlidingWindow::cancel: amount -9223372036854775808, allowed 0 to 0");
        std::error_code error;
        rate.settle("t", forged, std::numeric_limits<Word>::max(), error);
        CHECK(error == Errc::invalid_cost);
        CHECK(rate.peek("t", 0).remaining == 7);
        CHECK(told_by([&] { rate.settle("t", taken, -1); }) ==
              "SharedSlidingWindow::settle: actual -1, allowed 0 to 4503599627370499");
        CHECK(told_by([&] { return rate.reserve("t", 1, -1us); }) ==
              "SharedSlidingWindow::reserve: wait -1 us, allowed 0 to 31622400000000 us");

        const SharedSlidingWindow other(store, "rate");
        CHECK(told_by([&] { other.future_try_acquire("t", 101).get(); }) ==
              "SharedSlidingWindow::future_try_acquire: cost 101, allowed 0 to 10");
        rate.configure("t", RateType::overall, 100, 1s, SpentUnits::forgotten);
        CHECK(told_by([&] { other.future_try_acquire("t", 101).get(); }) ==
              "SharedSlidingWindow::future_try_acquire: cost 101, allowed 0 to 100");
        CHECK(told_by([&] { return other.acquire("t", 101, 0s); }) ==
              "SharedSlidingWindow::acquire: cost 101, allowed 0 to 100");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception of a shared sliding window names the key that was at fault", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const SharedSlidingWindow rate(store, "rate");
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        rate.configure("t", RateType::overall, 10, 1s, SpentUnits::forgotten);
        const std::string log(rate.acquire_steps("t")[1].key.name());
        CHECK(decide(store, at_key(Key{"t", log}, bucket.acquire_step("t"))));
        const std::string of_log = ": \"" + render(Key{"t", log}) +
                                   "\" holds a token bucket and was asked as a sliding window";
        CHECK(told_by([&] { return rate.try_acquire("t"); }) ==
              "SharedSlidingWindow::try_acquire" + of_log);
        CHECK(told_by([&] { return rate.reserve("t", 1, 0s); }) ==
              "SharedSlidingWindow::reserve" + of_log);
        CHECK(told_by([&] { return rate.peek("t"); }) == "SharedSlidingWindow::peek" + of_log);
        CHECK(told_by([&] { rate.block("t", 1s); }) == "SharedSlidingWindow::block" + of_log);
        CHECK(told_by([&] { rate.reward("t", 1); }) == "SharedSlidingWindow::reward" + of_log);
        CHECK(told_by([&] { return rate.acquire("t", 1, 0s); }) == "SharedSlidingWindow::acquire");
        CHECK(told_by([&] { rate.future_try_acquire("t").get(); }) ==
              "SharedSlidingWindow::future_try_acquire");

        const SharedSlidingWindow unset(store, "unset");
        CHECK(told_by([&] { return unset.acquire("t", 1, 0s); }) ==
              "SharedSlidingWindow::acquire: key {t}:unset");
        CHECK(decide(store, at_key(Key{"t", "broken"}, bucket.acquire_step("t"))));
        const SharedSlidingWindow broken(store, "broken");
        CHECK(told_by([&] { return broken.try_acquire("t"); }) ==
              "SharedSlidingWindow::try_acquire: \"{t}:broken\" holds a token bucket and was asked "
              "as "
              "a shared sliding window");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception of a wait tells what one of a call does", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const SlotLock lock(store, "lock", 1s);
        const std::string sizes = "a tag of 0 bytes, a name of 4 bytes";
        CHECK(told_by([&] { return lock.acquire(bad, 0s); }) == "SlotLock::acquire: " + sizes);

        const Gates gates(store, "gates", {"account"});
        std::vector<Scope> scopes;
        const std::string none = "0 scopes, allowed 1 to 16";
        CHECK(told_by([&] { return gates.pass(scopes); }) == "Gates::pass: " + none);
        CHECK(told_by([&] { return gates.acquire(scopes, 0s); }) == "Gates::acquire: " + none);
        for (int i = 0; i < 17; ++i) scopes.push_back(gates.scope("account", std::to_string(i)));
        const std::string many = "17 scopes, allowed 1 to 16";
        CHECK(told_by([&] { return gates.pass(scopes); }) == "Gates::pass: " + many);
        CHECK(told_by([&] { return gates.peek(scopes); }) == "Gates::peek: " + many);
        CHECK(told_by([&] { return gates.acquire(scopes, 0s); }) == "Gates::acquire: " + many);

        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        CHECK(decide(store, at_key(scopes[0].key(), bucket.acquire_step("t"))));
        const std::string key =
            "\"{gates}:account=0\" holds a token bucket and was asked as a gate";
        CHECK(told_by([&] { return gates.pass(scopes[0]); }) == "Gates::pass: " + key);
        CHECK(told_by([&] { return gates.acquire(std::span(scopes).first(1), 0s); }) ==
              "Gates::acquire: " + key);
        CHECK(told_by([&] { return gates.pass(std::span(scopes).first(2)); }) ==
              "Gates::pass: step 0: " + key);
        CHECK(told_by([&] { return gates.acquire(std::span(scopes).first(2), 0s); }) ==
              "Gates::acquire: step 0: " + key);
      },
      Stores::virtual_time);
}

TEST_CASE("a future's exception tells what it can without the keys", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        const Key b{"a", "b"};
        const std::string name = "sluice::future_decide";
        CHECK(told_by([&] { future_decide(store, std::vector<Step>{}).get(); }) ==
              name + ": 0 steps, allowed 1 to 16");
        const std::array steps{bucket.acquire_step("a"), bucket.acquire_step(b, 11)};
        CHECK(told_by([&] { future_decide(store, steps).get(); }) == name + ": step 1");
        CHECK(told_by([&] { future_decide(store, bucket.acquire_step(bad)).get(); }) == name);

        BoundTokenBucket bound = bucket.at("alice");
        const BoundTokenBucket moved = std::move(bound);
        CHECK(told_by([&] { return bound.try_acquire(1); }) ==  // NOLINT(bugprone-use-after-move)
              "BoundTokenBucket::try_acquire: a tag of 0 bytes, a name of 0 bytes");

        TokenBucket source(store, "source", Quota::per_second(10));
        const TokenBucket target = std::move(source);
        CHECK(
            told_by([&] { return source.peek("a"); }) ==  // NOLINT(bugprone-use-after-move)
            "TokenBucket::peek: a tag of 1 byte, a name of 0 bytes (a limiter that was moved from "
            "has none)");
      },
      Stores::virtual_time);
}

TEST_CASE("an exception about a plan says which step was wrong", "[errors]") {
  for_each_store(
      [](Store& store, VirtualClock&) {
        const TokenBucket bucket(store, "bucket", Quota::per_second(10));
        const Key b{"a", "b"};
        CHECK(told_by([&] {
                static_cast<void>(
                    decide(store, {bucket.acquire_step("a"), bucket.acquire_step(b, 11)}));
              }) == "sluice::decide: step 1: cost 11, allowed 0 to 10");
        CHECK(told_by([&] {
                static_cast<void>(decide(store, {bucket.acquire_step(b), bucket.acquire_step(b)}));
              }) == "sluice::decide: step 1: key {a}:b:10/s");
        CHECK(told_by([&] { return decide(store, std::vector<Step>{}); }) ==
              "sluice::decide: 0 steps, allowed 1 to 16");
      },
      Stores::virtual_time);
}

TEST_CASE("a key of another kind is told with what lies there and as what it was asked",
          "[errors]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow windows(store, "rpm", {{10, 60s}});
    const TokenBucket bucket(store, "rpm", Quota::per_minute(10));
    const FixedWindow fixed(store, "rpm", 10, Calendar::every(60s));
    const ConcurrencyLimiter jobs(store, "rpm", 3);
    CHECK(decide(store, at_key(bucket.peek_step("acme").key, windows.acquire_step("acme"))));
    CHECK(decide(store, at_key(windows.peek_step("other").key, bucket.acquire_step("other"))));
    CHECK(decide(store, at_key(jobs.peek_step("other").key, bucket.acquire_step("other"))));
    CHECK(decide(store, at_key(fixed.peek_step("other").key, bucket.acquire_step("other"))));

    const std::string bucket_asked =
        "\"{acme}:rpm:10/min\" holds a sliding window and was asked as a token bucket";
    CHECK(told_by([&] { return bucket.try_acquire("acme"); }) ==
          "TokenBucket::try_acquire: " + bucket_asked);
    CHECK(told_by([&] { return bucket.at("acme").try_acquire(); }) ==
          "BoundTokenBucket::try_acquire: " + bucket_asked);
    CHECK(told_by([&] { return bucket.reserve("acme", 1, 1s); }) ==
          "TokenBucket::reserve: " + bucket_asked);
    CHECK(told_by([&] { return bucket.acquire("acme", 1, 1s); }) ==
          "TokenBucket::acquire: " + bucket_asked);
    CHECK(told_by([&] { return bucket.peek("acme"); }) == "TokenBucket::peek: " + bucket_asked);
    CHECK(told_by([&] {
            return bucket.try_acquire("acme", 1, RequestId{1, 2});
          }) == "TokenBucket::try_acquire: " + bucket_asked);
    CHECK(
        told_by([&] { bucket.future_try_acquire("acme").get(); }) ==
        "TokenBucket::future_try_acquire: the key holds a sliding window and was asked as a token "
        "bucket");
    CHECK(told_by([&] { return windows.try_acquire("other"); }) ==
          "SlidingWindow::try_acquire: \"{other}:rpm:1min,grants\" holds a token bucket and was "
          "asked as a sliding window");
    CHECK(told_by([&] { return jobs.try_acquire("other"); }) ==
          "ConcurrencyLimiter::try_acquire: \"{other}:rpm\" holds a token bucket and was asked as "
          "leases");
    CHECK(told_by([&] { return jobs.acquire("other", 1, 1s); }) ==
          "ConcurrencyLimiter::acquire: \"{other}:rpm\" holds a token bucket and was asked as "
          "leases");
    CHECK(told_by([&] { return fixed.try_acquire("other"); }) ==
          "FixedWindow::try_acquire: \"{other}:rpm:1min\" holds a token bucket and was asked as a "
          "fixed "
          "window");
  });
}

TEST_CASE("a plan names the step whose key is of another kind", "[errors]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow windows(store, "rpm", {{10, 60s}});
    const TokenBucket bucket(store, "rpm", Quota::per_minute(10));
    CHECK(decide(store, at_key(bucket.peek_step("acme").key, windows.acquire_step("acme"))));
    const std::string told =
        "step 1: \"{acme}:rpm:10/min\" holds a sliding window and was asked as a token bucket";
    CHECK(told_by([&] {
            return decide(store, {bucket.acquire_step("fresh"), bucket.acquire_step("acme")});
          }) == "sluice::decide: " + told);
    CHECK(told_by([&] {
            return decide(store, {windows.acquire_step("fresh"), bucket.acquire_step("acme")});
          }) == "sluice::decide: " + told);
    const std::array steps{bucket.acquire_step("fresh"), bucket.acquire_step("acme")};
    CHECK(told_by([&] {
            return decide(store, Plan(steps).idempotent({3, 4}));
          }) == "sluice::decide: " + told);
    CHECK(told_by([&] { future_decide(store, steps).get(); }) ==
          "sluice::future_decide: step 1: the key holds a sliding window");
    std::error_code error;
    const Decision decision = decide(store, steps, error);
    CHECK(error == Errc::wrong_kind);
    CHECK(decision.step == 1);
    CHECK(decision.part == static_cast<std::uint16_t>(StateKind::sliding_window));
  });
}

TEST_CASE("a store that does not tell what it found has the key and the asker named", "[errors]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore store(*inner);
  store.fail_all(testing::Fault::not_executed(Errc::wrong_kind));
  const TokenBucket bucket(store, "rpm", Quota::per_minute(10));
  CHECK(told_by([&] { return bucket.try_acquire("acme"); }) ==
        "TokenBucket::try_acquire: key {acme}:rpm:10/min, asked as a token bucket");
}
