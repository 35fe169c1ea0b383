// What an exception says: the call that was made, and why it failed. Threading: single-threaded.
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/algorithms/charged.hpp"
#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Call = std::function<void()>;

/// What stands before the reason.
std::string told_by(const Call& call) {
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

void tells(const std::string& text, const Call& call) { CHECK(told_by(call) == text); }

/// Only which call it was.
void names(const std::string& name, const Call& call) {
  const std::string told = told_by(call);
  CHECK(told.substr(0, told.find(": ")) == name);
}

const Key bad{"", "name"};  // no call takes it
const RequestId id{1, 2};

/// `step` on this key: what another limiter, whose keys are alike, would ask.
Step at_key(const Key& key, Step step) {
  step.key = key;
  return step;
}

struct Site {
  Site() { shared.configure("a", Quota::per_second(10), Inheritance::reset); }

  VirtualClock clock;
  std::unique_ptr<Store> owned = make_virtual_store(clock);
  Store& store = *owned;
  TokenBucket bucket{store, "bucket", Quota::per_second(10)};
  SharedTokenBucket shared{store, "shared"};
  SharedSlidingWindow rate{store, "rate"};
  Gates gates{store, "gates", {"account"}};
};

}  // namespace

TEST_CASE_METHOD(Site, "an exception names the call that failed", "[errors]") {
  Reservation grant;
  grant.allowed = true;
  grant.granted = 1;
  for_each_limiter([&](const std::string&, auto make, auto) {
    using L = decltype(make(store));
    const L l = make(store);
    const auto is = [](const char* verb, const Call& call) {
      names(std::string(L::type_name) + "::" + verb, call);
    };
    if constexpr (requires { l.try_acquire(bad); }) {
      is("try_acquire", [&] { (void)l.try_acquire(bad); });
      is("peek", [&] { (void)l.peek(bad); });
      is("block", [&] { l.block(bad, 1s); });
    }
    if constexpr (requires { l.reset(bad); }) is("reset", [&] { l.reset(bad); });
    if constexpr (requires { l.try_acquire(bad, 1, id); }) {
      is("try_acquire", [&] { (void)l.try_acquire(bad, 1, id); });
      is("future_try_acquire", [&] { l.future_try_acquire(bad).get(); });
      is("acquire", [&] { (void)l.acquire(bad, 1, 0s); });
      is("reserve", [&] { (void)l.reserve(bad, 1); });
      is("cancel", [&] { l.cancel(bad, grant); });
      is("refund", [&] { l.refund(bad, grant, 1); });
      is("settle", [&] { l.settle(bad, grant, 2); });
    }
    if constexpr (requires { l.reward(bad, 1); }) is("reward", [&] { l.reward(bad, 1); });
    if constexpr (requires { l.penalize(bad, 1); }) is("penalize", [&] { l.penalize(bad, 1); });
    if constexpr (requires { l.borrow(bad, 1, 1s); })
      is("borrow", [&] { (void)l.borrow(bad, 1, 1s); });
    if constexpr (requires { l.release(bad, LeaseId{}); }) {
      is("release", [&] { l.release(bad, LeaseId{}); });
    }
  });
  names("TokenBucket::try_acquire_up_to", [&] { (void)bucket.try_acquire_up_to(bad, 2); });
  const BoundTokenBucket bound = bucket.at("alice");
  names("BoundTokenBucket::try_acquire", [&] { return bound.try_acquire(-1); });
  names("BoundTokenBucket::try_acquire", [&] { return bound.try_acquire(11, id); });
  names("BoundTokenBucket::future_try_acquire", [&] { bound.future_try_acquire(11).get(); });
  names("BoundTokenBucket::peek", [&] { return bound.peek(11); });
  const SlotLock lock(store, "lock", 1s);
  names("SlotLock::reserve", [&] { return lock.reserve(bad, 1s); });
  const SlotPermit permit = lock.try_acquire("alice");
  names("SlotLock::cancel", [&] { lock.cancel(bad, permit); });
  names("SharedSlidingWindow::refresh", [&] { rate.refresh(bad); });
  const FixedWindow days(store, "days", 1, Calendar::daily());
  names("FixedWindow::synchronize", [&] { days.synchronize(bad); });
  names("sluice::decide", [&] { return decide(store, bucket.acquire_step(bad)); });
  names("sluice::future_decide", [&] { future_decide(store, bucket.acquire_step(bad)).get(); });
}

TEST_CASE_METHOD(Site, "an exception about a tier or a scope says what there is", "[errors]") {
  const FleetShedder fleet(store, "fleet", 3, {{"all", FleetShare::percent(100)}});
  const std::string weight = "weight 4, allowed 1 to 3";
  tells("FleetShedder::try_acquire: " + weight, [&] { (void)fleet.try_acquire("all", 4); });
  tells("FleetShedder::peek: " + weight, [&] { return fleet.peek("all", 4); });
  names("FleetShedder::block", [&] { fleet.block(-1s); });
  for (const auto& [tier, shown] : {std::pair("none", "none"), {"a\n", "a\\x0a"}}) {
    CHECK_THROWS_WITH(fleet.share_of(tier), "FleetShedder: unknown tier \"" + std::string(shown) +
                                                "\"; there are \"all\"");
  }

  const UtilizationShedder shedder(store, "shedder");
  const std::string tiers = ": no tier \"a\\x0a\"; the tiers are \"critical\" \"sheddable\"";
  tells("UtilizationShedder::peek" + tiers, [&] { return shedder.peek("a\n"); });
  tells("UtilizationShedder::try_acquire" + tiers, [&] { return shedder.try_acquire("a\n"); });
  tells("UtilizationShedder::sample: utilization not in 0.0 to 1.0", [&] { shedder.sample(7.5); });

  std::vector<Scope> scopes;
  const auto counted = [&](const std::string& count) {
    const std::string text = ": " + count + " scopes, allowed 1 to 16";
    tells("Gates::pass" + text, [&] { return gates.pass(scopes); });
    tells("Gates::peek" + text, [&] { return gates.peek(scopes); });
    tells("Gates::acquire" + text, [&] { return gates.acquire(scopes, 0s); });
  };
  counted("0");
  for (int i = 0; i < 17; ++i) scopes.push_back(gates.scope("account", std::to_string(i)));
  counted("17");
  CHECK(decide(store, at_key(scopes[0].key(), bucket.acquire_step("t"))));
  const std::string key = "\"{gates}:account=0\" holds a token bucket and was asked as a gate";
  const auto first = [&](std::size_t count) { return std::span(scopes).first(count); };
  tells("Gates::pass: " + key, [&] { return gates.pass(scopes[0]); });
  tells("Gates::acquire: " + key, [&] { return gates.acquire(first(1), 0s); });
  tells("Gates::pass: step 0: " + key, [&] { return gates.pass(first(2)); });
  tells("Gates::acquire: step 0: " + key, [&] { return gates.acquire(first(2), 0s); });
}

TEST_CASE_METHOD(Site, "an exception says which value was wrong, and what is allowed", "[errors]") {
  for_each_charged(store, [&](const auto& limiter) {
    using L = std::remove_cvref_t<decltype(limiter)>;
    const std::string type = std::string(L::type_name) + "::";
    // What the state has, it does not tell before it is read.
    const bool is_told = !std::is_same_v<L, SharedTokenBucket>;
    const std::string too_much = is_told ? "cost 6, allowed 0 to 5" : "cost 6";
    tells(type + "try_acquire: " + too_much, [&] { return limiter.try_acquire("k", 6); });
    tells(type + "future_try_acquire: " + too_much,
          [&] { limiter.future_try_acquire("k", 6).get(); });
    tells(type + "peek: " + too_much, [&] { return limiter.peek("k", 6); });
    tells(type + "reserve: " + too_much, [&] { return limiter.reserve("k", 6); });
    tells(type + "acquire: " + too_much, [&] { return limiter.acquire("k", 6, 0s); });
    tells(type + "acquire: priority 4, allowed -3 to 3",
          [&] { return limiter.acquire("k", 1, 0s, {.priority = 4}); });
    tells(type + "acquire: weight 1001, allowed 1 to 1000",
          [&] { return limiter.acquire("k", 1, 0s, {.weight = 1001}); });
    const std::string negative = "cost -1, allowed 0 to " + std::string(is_told ? "5" : "2^52");
    tells(type + "try_acquire: " + negative, [&] { return limiter.try_acquire("k", -1, id); });
    const std::string amounts = ", allowed 0 to 2^52";
    tells(type + "reward: amount -1" + amounts, [&] { limiter.reward("k", -1); });
    tells(type + "reward: amount 4503599627370497" + amounts,
          [&] { limiter.reward("k", word_limit + 1); });
    if constexpr (requires { limiter.penalize("k", 1); }) {
      tells(type + "penalize: amount -1" + amounts, [&] { limiter.penalize("k", -1); });
    }
    Span longest;
    if constexpr (requires { limiter.longest(); }) {
      longest = limiter.longest();
    } else {
      longest = L::max_block;
    }
    tells(type + "block: span -1 us, allowed 0 to " + std::to_string(longest.count()) + " us",
          [&] { limiter.block("k", -1us); });
    if constexpr (requires { limiter.borrow("k", 1, 1s); }) {
      tells(type + "borrow: debt -1 us, allowed 0 to 60000000 us",
            [&] { return limiter.borrow("k", 1, -1us); });
    }
    tells(type + "try_acquire: a tag of 0 bytes, a name of 4 bytes",
          [&] { return limiter.try_acquire(bad); });

    Reservation taken = limiter.reserve("k", 3);
    const std::string granted = ", allowed 0 to 3";
    tells(type + "refund: amount -1" + granted, [&] { limiter.refund("k", taken, -1); });
    tells(type + "refund: amount 4" + granted, [&] { limiter.refund("k", taken, 4); });
    const std::string most = ", allowed 0 to 4503599627370499";  // 2^52 and three
    tells(type + "settle: actual -7" + most, [&] { limiter.settle("k", taken, -7); });
    tells(type + "settle: actual 4503599627370500" + most,
          [&] { limiter.settle("k", taken, word_limit + 4); });
    CHECK(taken.granted == 3);
    Reservation none;
    tells(type + "refund: amount 1, allowed 0 to 0", [&] { limiter.refund("k", none, 1); });
  });

  const std::string too_much = "cost 11, allowed 0 to 10";
  tells("TokenBucket::reserve: wait -1 us, allowed 0 to 60000000 us",
        [&] { return bucket.reserve("a", 1, -1us); });
  tells("TokenBucket::try_acquire_up_to: least 3, allowed 0 to 2",
        [&] { return bucket.try_acquire_up_to("a", 2, 3); });
  tells("BoundTokenBucket::try_acquire: " + too_much,
        [&] { return bucket.at("alice").try_acquire(11); });
  tells("SharedTokenBucket::try_acquire: key {b}:shared", [&] { return shared.try_acquire("b"); });
  const FixedWindow window(store, "window", 10, Calendar::every(1s));
  tells("sluice::decide: amount not in 0 to 2^52",
        [&] { return decide(store, window.reward_step("a", -1)); });
  tells("sluice::decide: amount not in 0 to 2^52",
        [&] { return decide(store, window.penalize_step("a", -1)); });
  const std::string a_minute = ": span -1 us, allowed 0 to 60000000 us";
  tells("sluice::decide" + a_minute, [&] { return decide(store, bucket.block_step("a", -1us)); });
  tells("sluice::decide" + a_minute, [&] { return decide(store, shared.block_step("a", -1us)); });
  tells("sluice::future_decide" + a_minute,
        [&] { future_decide(store, bucket.block_step("a", -1us)).get(); });
  const SlotLock lock(store, "lock", 1s);
  tells("SlotLock::reserve: wait -1 us, allowed 0 to 86400000000 us",
        [&] { return lock.reserve("a", -1us); });
  tells("SlotLock::acquire: a tag of 0 bytes, a name of 4 bytes",
        [&] { return lock.acquire(bad, 0s); });
  tells("SharedSlidingWindow::configure: rate not in 0 to 65536, or unlimited",
        [&] { rate.configure("a", RateType::overall, -1, 1s); });
  CHECK_THROWS_WITH(SharedSlidingWindow(store, "rate", {.client = std::string(1 << 20, 'c')}),
                    "the names of a limiter and its client must have 1048551 bytes at most "
                    "together, got 1048580");
}

TEST_CASE_METHOD(Site, "an exception about a lease names the weight and its range", "[errors]") {
  const ConcurrencyLimiter jobs(store, "jobs", 3);
  const std::string type = "ConcurrencyLimiter::";
  for (const Word weight : {4, 0, -3}) {
    const std::string text = "weight " + std::to_string(weight) + ", allowed 1 to ";
    tells(type + "try_acquire: " + text + "3", [&] { (void)jobs.try_acquire("a", weight); });
    tells(type + "peek: " + text + "3", [&] { (void)jobs.peek("a", weight); });
    tells(type + "acquire: " + text + "3", [&] { (void)jobs.acquire("a", weight, 0s); });
    CHECK_THAT(told_by([&] { (void)decide(store, jobs.acquire_step("a", {}, weight)); }),
               contains_text(text + "3"));
    if (weight > 0) continue;
    for (const Word limit : {Word{0}, unlimited}) {
      const ConcurrencyLimiter constant(store, "constant", limit);
      tells(type + "try_acquire: " + text + "2^52",
            [&] { (void)constant.try_acquire("a", weight); });
    }
  }
}

TEST_CASE_METHOD(Site, "an exception tells the first reason if several arguments are wrong",
                 "[errors]") {
  const std::string up_to = "TokenBucket::try_acquire_up_to: most ";
  tells(up_to + "11, allowed 0 to 10", [&] { return bucket.try_acquire_up_to("a", 11, 11); });
  tells(up_to + "-1, allowed 0 to 10", [&] { return bucket.try_acquire_up_to("a", -1, -1); });
  tells("TokenBucket::reserve: cost 11, allowed 0 to 10",
        [&] { return bucket.reserve("a", 11, -1us); });
  tells("SharedSlidingWindow::configure: interval -1000000 us, allowed 1 to 2592000000000 us",
        [&] { rate.configure("a", RateType::overall, -1, -1s); });
  const SharedTokenBucket brief(store, "shared", 1h);
  tells(
      "SharedTokenBucket::configure: keep_alive 3600000000 us, allowed 7200000001 to "
      "2251799813685248 us",
      [&] { brief.configure("a", Quota::per(1, 2h)); });
}

TEST_CASE_METHOD(Site, "an exception of a shared sliding window tells what the call was about",
                 "[errors]") {
  const std::string type = "SharedSlidingWindow::";
  rate.configure("t", RateType::overall, 10, 1s, SpentUnits::forgotten);
  Reservation forged;  // that no limiter has made
  forged.granted = std::numeric_limits<Word>::min();
  tells(type + "cancel: amount -9223372036854775808, allowed 0 to 0",
        [&] { rate.cancel("t", forged); });
  std::error_code error;
  rate.settle("t", forged, std::numeric_limits<Word>::max(), error);
  CHECK(error == Errc::invalid_cost);
  CHECK(rate.peek("t", 0).remaining == 10);
  tells(type + "reserve: wait -1 us, allowed 0 to 31622400000000 us",
        [&] { return rate.reserve("t", 1, -1us); });

  // The rate that is told is the stored one, also to who remembers another.
  const SharedSlidingWindow other(store, "rate");
  const auto ask = [&] { other.future_try_acquire("t", 101).get(); };
  tells(type + "future_try_acquire: cost 101, allowed 0 to 10", ask);
  rate.configure("t", RateType::overall, 100, 1s, SpentUnits::forgotten);
  tells(type + "future_try_acquire: cost 101, allowed 0 to 100", ask);
  tells(type + "acquire: cost 101, allowed 0 to 100", [&] { return other.acquire("t", 101, 0s); });
}

TEST_CASE_METHOD(Site, "an exception of a shared sliding window names the key that was at fault",
                 "[errors]") {
  const std::string type = "SharedSlidingWindow::";
  rate.configure("t", RateType::overall, 10, 1s, SpentUnits::forgotten);
  const std::string log(rate.acquire_steps("t")[1].key.name());
  CHECK(decide(store, at_key(Key{"t", log}, bucket.acquire_step("t"))));
  const std::string of_log =
      ": \"" + render(Key{"t", log}) + "\" holds a token bucket and was asked as a sliding window";
  tells(type + "try_acquire" + of_log, [&] { return rate.try_acquire("t"); });
  tells(type + "reserve" + of_log, [&] { return rate.reserve("t", 1, 0s); });
  tells(type + "peek" + of_log, [&] { return rate.peek("t"); });
  tells(type + "block" + of_log, [&] { rate.block("t", 1s); });
  tells(type + "reward" + of_log, [&] { rate.reward("t", 1); });
  tells(type + "acquire", [&] { return rate.acquire("t", 1, 0s); });
  tells(type + "future_try_acquire", [&] { rate.future_try_acquire("t").get(); });

  const SharedSlidingWindow unset(store, "unset");
  tells(type + "acquire: key {t}:unset", [&] { return unset.acquire("t", 1, 0s); });
  CHECK(decide(store, at_key(Key{"t", "broken"}, bucket.acquire_step("t"))));
  const SharedSlidingWindow broken(store, "broken");
  tells(type +
            "try_acquire: \"{t}:broken\" holds a token bucket and was asked as a shared sliding "
            "window",
        [&] { return broken.try_acquire("t"); });
}

TEST_CASE_METHOD(Site, "an exception about a plan says which step was wrong", "[errors]") {
  const Key b{"a", "b"};
  const std::array too_much{bucket.acquire_step("a"), bucket.acquire_step(b, 11)};
  tells("sluice::decide: step 1: cost 11, allowed 0 to 10",
        [&] { return decide(store, too_much); });
  tells("sluice::decide: step 1: key {a}:b:10/s", [&] {
    return decide(store, {bucket.acquire_step(b), bucket.acquire_step(b)});
  });
  const std::string none = ": 0 steps, allowed 1 to 16";
  tells("sluice::decide" + none, [&] { return decide(store, std::vector<Step>{}); });

  // A future's exception tells what it can without the keys.
  tells("sluice::future_decide" + none, [&] { future_decide(store, std::vector<Step>{}).get(); });
  tells("sluice::future_decide: step 1", [&] { future_decide(store, too_much).get(); });
  tells("sluice::future_decide", [&] { future_decide(store, bucket.acquire_step(bad)).get(); });
}

TEST_CASE_METHOD(Site, "an exception of what was moved from tells that it has no name",
                 "[errors]") {
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  BoundTokenBucket bound = bucket.at("alice");
  const BoundTokenBucket moved = std::move(bound);
  tells("BoundTokenBucket::try_acquire: a tag of 0 bytes, a name of 0 bytes",
        [&] { return bound.try_acquire(1); });
  TokenBucket source(store, "source", Quota::per_second(10));
  const TokenBucket target = std::move(source);
  tells(
      "TokenBucket::peek: a tag of 1 byte, a name of 0 bytes (a limiter that was moved from has "
      "none)",
      [&] { return source.peek("a"); });
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("a key of another kind is told with what lies there and as what it was asked",
          "[errors]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlidingWindow windows(store, "rpm", {{10, 60s}});
    const TokenBucket bucket(store, "rpm", Quota::per_minute(10));
    const FixedWindow fixed(store, "rpm", 10, Calendar::every(60s));
    const ConcurrencyLimiter jobs(store, "rpm", 3);
    CHECK(decide(store, at_key(bucket.peek_step("acme").key, windows.acquire_step("acme"))));
    for (const Key& key : {windows.peek_step("other").key, jobs.peek_step("other").key,
                           fixed.peek_step("other").key}) {
      CHECK(decide(store, at_key(key, bucket.acquire_step("other"))));
    }

    const std::string asked =
        ": \"{acme}:rpm:10/min\" holds a sliding window and was asked as a token bucket";
    tells("TokenBucket::try_acquire" + asked, [&] { return bucket.try_acquire("acme"); });
    tells("TokenBucket::try_acquire" + asked, [&] { return bucket.try_acquire("acme", 1, id); });
    tells("BoundTokenBucket::try_acquire" + asked, [&] { return bucket.at("acme").try_acquire(); });
    tells("TokenBucket::reserve" + asked, [&] { return bucket.reserve("acme", 1, 1s); });
    tells("TokenBucket::acquire" + asked, [&] { return bucket.acquire("acme", 1, 1s); });
    tells("TokenBucket::peek" + asked, [&] { return bucket.peek("acme"); });
    tells(
        "TokenBucket::future_try_acquire: the key holds a sliding window and was asked as a token "
        "bucket",
        [&] { bucket.future_try_acquire("acme").get(); });
    const std::string held = " holds a token bucket and was asked as ";
    tells("SlidingWindow::try_acquire: \"{other}:rpm:1min,grants\"" + held + "a sliding window",
          [&] { return windows.try_acquire("other"); });
    const std::string leases = ": \"{other}:rpm\"" + held + "leases";
    tells("ConcurrencyLimiter::try_acquire" + leases, [&] { (void)jobs.try_acquire("other"); });
    tells("ConcurrencyLimiter::acquire" + leases, [&] { (void)jobs.acquire("other", 1, 1s); });
    tells("FixedWindow::try_acquire: \"{other}:rpm:1min\"" + held + "a fixed window",
          [&] { return fixed.try_acquire("other"); });

    // In a plan the step is named.
    const std::string of_step = ": step 1" + asked;
    const std::array steps{bucket.acquire_step("fresh"), bucket.acquire_step("acme")};
    tells("sluice::decide" + of_step, [&] { return decide(store, steps); });
    tells("sluice::decide" + of_step, [&] {
      return decide(store, {windows.acquire_step("fresh"), bucket.acquire_step("acme")});
    });
    tells("sluice::decide" + of_step, [&] {
      return decide(store, Plan(steps).idempotent({3, 4}));
    });
    tells("sluice::future_decide: step 1: the key holds a sliding window",
          [&] { future_decide(store, steps).get(); });
    std::error_code error;
    const Decision decision = decide(store, steps, error);
    CHECK(error == Errc::wrong_kind);
    CHECK(decision.step == 1);
    CHECK(decision.part == static_cast<std::uint16_t>(StateKind::sliding_window));
  });
}

TEST_CASE_METHOD(Site, "a store that does not tell what it found has the key and the asker named",
                 "[errors]") {
  testing::FaultyStore faulty(store);
  faulty.fail_all(testing::Fault::not_executed(Errc::wrong_kind));
  const TokenBucket asked(faulty, "rpm", Quota::per_minute(10));
  tells("TokenBucket::try_acquire: key {acme}:rpm:10/min, asked as a token bucket",
        [&] { return asked.try_acquire("acme"); });
}
