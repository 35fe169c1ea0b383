// Limits that decide and are told, and hold up nobody.
#include <algorithm>
#include <array>
#include <concepts>
#include <memory>

#include "sluice/testing/faulty_store.hpp"
#include "src/core/error_names.hpp"
#include "tests/catch.hpp"
#include "tests/observe/events.hpp"
#include "tests/support/limiters.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temporary_file.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct Shadowed {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> decides = make_virtual_store(clock);
  testing::FaultyStore inner{*decides};
  Events events;
  ShadowStore store{inner, events, {"next"}};
};

}  // namespace

TEST_CASE("what a shadow refuses goes ahead, and is told; other limits are obeyed",
          "[observe][shadow]") {
  Shadowed s;
  const TokenBucket next(s.store, "next", Quota::per_second(1).burst(2));
  CHECK(next.try_acquire("a").remaining == 1);
  CHECK(next.try_acquire("a").remaining == 0);
  CHECK(s.events.take().empty());
  const Decision third = next.try_acquire("a");
  CHECK(third);
  CHECK(third.retry_after == 0s);
  CHECK(third.limit == unlimited);
  CHECK(third.source == Source::virtual_store);
  CHECK(next.try_acquire("a", 3));  // which is more than its limit
  CHECK(s.events.take() ==
        Lines{"decided next a 1 refused (shadow)", "decided next a 3 refused (shadow)"});
  // It charged nothing for that.
  s.clock.advance(1s);
  CHECK(next.try_acquire("a").remaining == 0);
  const TokenBucket bucket(s.store, "api", Quota::per_second(1).burst(1));
  CHECK(bucket.try_acquire("b"));
  CHECK_FALSE(bucket.try_acquire("b"));
  CHECK(s.events.take().empty());
  for (int i = 0; i < 2; ++i) CHECK(bucket.try_acquire(Key{"b", "next"}));
  CHECK(s.events.take() == Lines{"decided next b 1 refused (shadow)"});  // by the key's name
}

namespace {

/// Asks a limiter for one unit, which it refuses once exhaust() has taken all.
template <class Limiter>
auto ask(const Limiter& limiter) {
  if constexpr (std::same_as<Limiter, FleetShedder>) {
    return limiter.try_acquire("all");
  } else if constexpr (std::same_as<Limiter, UtilizationShedder>) {
    return limiter.try_acquire("sheddable");
  } else if constexpr (std::same_as<Limiter, Gates>) {
    return limiter.pass(limiter.scope("account", "1"));
  } else {
    return limiter.try_acquire("a");
  }
}

/// What it returns keeps the limiter as it is.
template <class Limiter>
auto exhaust(const Limiter& limiter, VirtualClock& clock) {
  if constexpr (std::same_as<Limiter, UtilizationShedder>) {
    for (int i = 0; i < 10; ++i) {
      clock.advance(20s);
      limiter.sample(1.0);
    }
  } else if constexpr (std::same_as<Limiter, Gates>) {
    limiter.close(limiter.scope("account", "1"), 30s);
  }
  std::vector<decltype(ask(limiter))> granted;
  do {
    granted.push_back(ask(limiter));
  } while (granted.back());
  return granted;
}

std::string states_of(MemoryStore& store) {
  const TemporaryFile file;
  save_states(store, file.path);
  return file.text();
}

}  // namespace

TEST_CASE("a refusal of any limiter but a slot lock goes ahead, charges nothing and is told once",
          "[observe][shadow]") {
  for_each_limiter([](const std::string& key, auto make, auto ask_first) {
    INFO(key);
    VirtualClock clock;
    const auto decides = make_memory_store({.clock = &clock, .keep_names = true});
    const std::string tag = key.substr(1, key.find('}') - 1);
    const auto name_at = key.find('}') + 2;
    const std::string name = key.substr(name_at, key.find(':', name_at) - name_at);
    const bool is_gate = tag == "gates";
    const std::string& limiter = is_gate ? tag : name;
    const std::string& of = is_gate ? name : tag;
    Events events;
    ShadowStore store(static_cast<Store&>(*decides), events, {limiter});
    const auto alone = allocate(make, *decides);
    const auto shadow = allocate(make, store);
    using Limiter = std::decay_t<decltype(*shadow)>;
    std::error_code error;
    REQUIRE(ask_first(*alone, error));  // which configures it, if it must be
    const auto held = exhaust(*alone, clock);
    const std::string before = states_of(*decides);
    const Lines told{"decided " + limiter + " " + of + " 1 refused (shadow)"};
    const bool is_obeyed = std::same_as<Limiter, SlotLock>;
    for (int i = 0; i < 2; ++i) {
      const auto answer = ask(*shadow);
      CHECK(static_cast<bool>(answer) == !is_obeyed);
      CHECK(states_of(*decides) == before);
      CHECK(events.take() == (is_obeyed ? Lines{} : told));
    }
  });
}

TEST_CASE("in a plan a shadow ends nothing, and charges nothing for what others refuse",
          "[observe][shadow]") {
  Shadowed s;
  const TokenBucket now(s.store, "now", Quota::per_second(2).burst(2));
  const SlidingWindow next(s.store, "next", {{1, 1s}, {5, 1min}});
  const FixedWindow daily(s.store, "daily", 4, Calendar::daily());
  const auto ask = [&](std::error_code& error, std::span<Decision> each = {}) {
    const std::array steps{now.acquire_step("a"), next.acquire_step("a"), daily.acquire_step("a")};
    return decide(s.store, steps, error, each);
  };
  std::error_code error;
  std::array<Decision, 3> each;
  const Decision first = ask(error, each);
  CHECK(first);
  CHECK(first.limit == 2);  // of a limit that is obeyed
  CHECK(each[0].remaining == 1);
  CHECK(each[1].remaining == 0);
  CHECK(each[2].remaining == 3);
  CHECK(s.events.take().empty());

  CHECK(ask(error, each));
  CHECK(each[1].limit == unlimited);
  CHECK(each[2].remaining == 2);
  CHECK(s.events.take() == Lines{"decided next a 1 refused (shadow)"});

  const Decision third = ask(error, each);
  CHECK_FALSE(third);
  CHECK(third.step == 0);
  CHECK(third.retry_after == 500ms);
  CHECK(s.events.take().empty());  // it did not go ahead
  CHECK(next.remaining("a") == std::vector<Word>{0, 4});
  const auto fails = [&](Word of_next, Word of_last, Errc code) {
    const TokenBucket last(s.store, "last", Quota::per_second(1).burst(1));
    const Decision decision = decide(
        s.store,
        {next.acquire_step("b", of_next), now.acquire_step("b"), last.acquire_step("b", of_last)},
        error);
    CHECK(error == code);
    CHECK(decision.step == (of_last > 1 ? 2 : 0));
  };
  fails(1, 2, Errc::cost_exceeds_capacity);
  fails(-1, 1, Errc::invalid_cost);
  const std::array behind{next.acquire_step("c"), now.acquire_step("c", 3)};
  CHECK(decide(s.store, behind, error).step == 1);
  CHECK(error == Errc::cost_exceeds_capacity);
}

TEST_CASE("the output words of a plan are those of its steps", "[observe][shadow]") {
  Shadowed s;
  const auto alone = make_virtual_store(s.clock);
  const auto words_of = [](Store& store, bool has_shadow) {
    const TokenBucket bucket(store, "bucket", Quota::per_minute(9));
    const TokenBucket next(store, "next", Quota::per_minute(1));
    const SlidingWindow window(store, "window", {{5, 1s}, {8, 1min}});
    std::vector<Step> steps{bucket.reserve_step("a", 2, 1s), window.acquire_step("a", 2)};
    if (has_shadow) steps.insert(steps.begin() + 1, next.reserve_step("a", 1, 0s));
    std::vector<Decision> each(steps.size());
    std::vector<Word> words(output_count(steps));
    std::error_code error;
    CHECK(decide(store, steps, error, each, words));
    std::vector<Word> of_others;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto own = output_of(words, steps, i);
      if (!has_shadow || i != 1) of_others.insert(of_others.end(), own.begin(), own.end());
      if (has_shadow && i == 1) CHECK(own[0] == 1);
    }
    return of_others;
  };
  CHECK(words_of(s.store, true) == words_of(*alone, false));
  CHECK(words_of(s.store, true) == words_of(*alone, false));  // the shadow refuses now
  CHECK(s.events.take().size() == 1);
}

TEST_CASE("a reservation that a shadow did not grant gives nothing back", "[observe][shadow]") {
  Shadowed s;
  const TokenBucket next(s.store, "next", Quota::per_minute(5), {.refund = Refund::in_full});
  const FixedWindow window(s.store, "next", 5, Calendar::daily());
  const auto gives_nothing = [](const auto& limiter) {
    REQUIRE(limiter.try_acquire("a", 5));
    Reservation free = limiter.reserve("a", 3);
    CHECK(free);
    CHECK(free.granted == 3);
    CHECK(free.wait() == 0s);
    (void)limiter.settle("a", free, 1);
    (void)limiter.cancel("a", free);
    CHECK(limiter.peek("a").remaining == 0);
  };
  gives_nothing(next);
  gives_nothing(window);
  // One that it granted is a grant.
  Reservation charged = next.reserve("b", 4);
  CHECK(next.cancel("b", charged) == 4);
  CHECK(next.peek("b").remaining == 5);
}

TEST_CASE("a lease that a shadow did not grant holds nothing and is never lost",
          "[observe][shadow]") {
  Shadowed s;
  const ConcurrencyLimiter jobs(s.store, "next", 1, {.ttl = 1s});
  Lease held = jobs.try_acquire("a");
  REQUIRE(held);
  Lease free = jobs.try_acquire("a");
  REQUIRE(free);
  CHECK(s.events.take() == Lines{"decided next a 1 refused (shadow)"});
  CHECK(held.renew());
  s.clock.advance(10s);
  CHECK(held.lost());
  CHECK_FALSE(free.lost());
  CHECK(free.renew());
  CHECK(free.release());
  Lease again = jobs.try_acquire("a");
  CHECK(again);
  CHECK(s.events.take().empty());
}

TEST_CASE("acquire() never waits for a shadow", "[observe][shadow]") {
  Shadowed s;
  const TokenBucket now(s.store, "now", Quota::per_second(10).burst(1));
  const TokenBucket next(s.store, "next", Quota::per_second(5).burst(1));
  const Time start = s.clock.now();
  for (int i = 0; i < 11; ++i) {
    const Grants grants = acquire({{now, "a"}, {next, "a"}}, 1min);
    REQUIRE(grants);
  }
  CHECK(s.clock.now() - start == 1s);
  CHECK(s.events.take() == Lines(5, "decided next a 1 refused (wait) (shadow)"));
  CHECK(next.acquire("a", 1, 0s));
  CHECK(s.clock.now() - start == 1s);
}

TEST_CASE("a store that fails does not fail a call for its shadow", "[observe][shadow]") {
  Shadowed s;
  const TokenBucket next(s.store, "next", Quota::per_second(1));
  const TokenBucket now(s.store, "now", Quota::per_second(5));
  s.clock.advance(1s);
  std::error_code error;
  for (const auto& [code, name] : detail::error_names()) {
    CAPTURE(name);
    s.inner.fail_all(testing::Fault::not_executed(code));
    constexpr std::array told{
        Errc::invalid_cost,   Errc::invalid_key,    Errc::invalid_argument,
        Errc::invalid_plan,   Errc::duplicate_key,  Errc::unsupported_operation,
        Errc::not_configured, Errc::config_changed, Errc::outside_calendar,
        Errc::would_deadlock, Errc::cancelled,      Errc::shut_down,
        Errc::forked};
    const bool fails = std::ranges::count(told, code) > 0;
    const bool is_refusal = code == Errc::cost_exceeds_capacity;
    const std::string what = is_refusal ? "refused" : make_error_code(code).message();
    const Lines lines{"decided next a 1 " + what + " (shadow)"};
    const std::error_code passed_on = fails ? make_error_code(code) : std::error_code();
    const auto check = [&](const std::error_code& failed, const Decision& decision) {
      CHECK(failed == passed_on);
      CHECK(s.events.take() == (fails ? Lines{} : lines));
      if (!failed) CHECK((decision.allowed && decision.at == s.clock.now()));
    };
    const Decision decision = next.try_acquire("a", 1, error);
    check(error, decision);
    next.try_acquire_then("a", 1, check);
  }
  s.inner.fail_all(testing::Fault::not_executed(Errc::not_connected));
  CHECK_FALSE(decide(s.store, {now.acquire_step("a"), next.acquire_step("a")}, error));
  CHECK(error == Errc::not_connected);
  CHECK(s.events.take().empty());
  s.inner.heal();
  CHECK(decide(s.store, {now.acquire_step("a"), next.acquire_step("a")}, error));
}

TEST_CASE("a shared limiter as a shadow learns its configuration", "[observe][shadow]") {
  Shadowed s;
  const SharedTokenBucket next(s.store, "next");
  std::error_code error;
  CHECK_FALSE(next.try_acquire("a", 1, error));
  CHECK(error == Errc::not_configured);
  next.configure("a", Quota::per_second(1).burst(1));
  CHECK(next.try_acquire("a"));
  CHECK(next.try_acquire("a"));
  CHECK(s.events.take() == Lines{"decided next a 1 refused (shadow)"});
}

TEST_CASE("a shadow becomes a limit, and a limit a shadow, while in use", "[observe][shadow]") {
  Shadowed s;
  const TokenBucket next(s.store, "next", Quota::per_minute(1));
  const TokenBucket now(s.store, "now", Quota::per_minute(1));
  CHECK(next.try_acquire("a"));
  CHECK(next.try_acquire("a"));
  s.store.set_shadows({"now", "now"});
  CHECK(s.store.shadows() == std::vector<std::string>{"now"});
  CHECK_THROWS_WITH(s.store.set_shadows({"next", ""}),
                    "ShadowStore: the name of a limiter is empty");
  CHECK(s.store.shadows() == std::vector<std::string>{"now"});
  CHECK_FALSE(next.try_acquire("a"));
  CHECK(now.try_acquire("a"));
  CHECK(now.try_acquire("a"));
}

TEST_CASE("alternatives and batches have shadows too", "[observe][shadow]") {
  Shadowed s;
  s.store.set_shadows({"next", "later", "after"});
  const TokenBucket next(s.store, "next", Quota::per_minute(1));
  const TokenBucket after(s.store, "after", Quota::per_minute(1));
  const TokenBucket now(s.store, "now", Quota::per_minute(5));
  const TokenBucket other(s.store, "other", Quota::per_minute(5));
  REQUIRE(next.try_acquire("a"));
  REQUIRE(after.try_acquire("a"));
  const std::vector<Claim> first{{next, "a"}, {now, "a"}};
  const std::vector<Claim> second{{other, "a"}};
  const Grants grants = acquire(first_of({first, second}), 1min);
  REQUIRE(grants);
  CHECK(now.peek("a").remaining == 4);
  CHECK(other.peek("a").remaining == 5);
  (void)s.events.take();

  const std::array steps{next.acquire_step("a"), after.acquire_step("a"), now.acquire_step("a", 4),
                         now.acquire_step("b", 5)};
  const std::array plans{Plan(steps[0]), Plan(steps[1]), Plan(steps[2]), Plan(steps[3])};
  std::array<Decision, 4> results;
  std::array<std::error_code, 4> errors;
  decide_batch(s.store, plans, results, errors);
  const auto allowed = std::count_if(results.begin(), results.end(),
                                     [](const Decision& decision) { return decision.allowed; });
  CHECK(allowed == 4);
  CHECK(s.events.take() ==
        Lines{"decided next a 1 refused (shadow)", "decided after a 1 refused (shadow)"});
}

TEST_CASE("a shadow is asked within the time and under the stop token of its plan",
          "[observe][shadow]") {
  VirtualClock clock;
  const auto decides = make_virtual_store(clock);
  WireStore wire(*decides);
  Events events;
  ShadowStore store(static_cast<Store&>(wire), events, {"next"});
  const TokenBucket now(store, "now", Quota::per_minute(1));
  const TokenBucket next(store, "next", Quota::per_minute(1));
  const std::array steps{next.acquire_step("a"), now.acquire_step("a")};
  StopSource stop;
  bool is_answered = false;
  decide_then(store, Plan(steps).within(7ms).cancelled_by(stop.get_token()),
              [&](const Outcome& outcome) { is_answered = !outcome.error; });
  for (const char* const name : {"now", "next"}) {
    INFO(name);
    REQUIRE(wire.pending() == 1);
    CHECK(wire.plan(0).steps()[0].key.name() == name);
    CHECK(wire.plan(0).timeout() == 7ms);
    CHECK(wire.plan(0).stop().stop_possible());
    wire.decide(0);
    wire.deliver(0);
  }
  CHECK(is_answered);
}

TEST_CASE("calls under way end with a shadow store", "[observe][shadow]") {
  VirtualClock clock;
  const auto decides = make_virtual_store(clock);
  testing::FaultyStore inner{*decides};
  Events events;
  std::error_code ended;
  {
    ShadowStore store(static_cast<Store&>(inner), events, {"next"});
    const TokenBucket next(store, "next", Quota::per_second(1));
    inner.fail_all(testing::Fault::none().late(1h));
    next.try_acquire_then("a", 1, [&](std::error_code error, const Decision&) { ended = error; });
    CHECK_FALSE(ended);
  }
  CHECK(ended);
  clock.advance(2h);
}

TEST_CASE("metrics count what shadows would have refused, apart from refusals and failures",
          "[observe][shadow][metrics]") {
  VirtualClock clock;
  const auto decides = make_virtual_store(clock);
  testing::FaultyStore inner{*decides};
  Metrics metrics;
  ShadowStore trial(static_cast<Store&>(inner), metrics, {"next"}, "redis");
  ObservedStore store(static_cast<Store&>(trial), metrics);
  const TokenBucket next(store, "next", Quota::per_second(1).burst(3));
  for (int i = 0; i < 10; ++i) CHECK(next.try_acquire("a"));
  inner.fail_all(testing::Fault::not_executed(Errc::not_connected));
  CHECK(next.try_acquire("a"));
  const Metrics::Counts counts = metrics.counts("next");
  CHECK(counts.allowed == 11);
  CHECK(counts.refused == 0);
  CHECK(counts.failed == 0);  // the call went ahead
  CHECK(counts.shadow_refusals == 7);
  const std::string text = metrics.text();
  CHECK(text.find("sluice_shadow_refusals_total{limiter=\"next\"} 7\n") != std::string::npos);
  CHECK(text.find("sluice_shadow_refusals_total{limiter=\"other") == std::string::npos);
  CHECK(text.find("sluice_store_failures_total{store=\"redis\",") != std::string::npos);
}

TEST_CASE("an idempotent plan charges its others once, whatever its shadows say",
          "[observe][shadow]") {
  Shadowed s;
  const TokenBucket now(s.store, "now", Quota::per_minute(5));
  const TokenBucket next(s.store, "next", Quota::per_minute(1));
  const RequestId id{1, 2};
  std::error_code error;
  for (int i = 0; i < 3; ++i) {
    const std::array steps{now.acquire_step("a"), next.acquire_step("a")};
    CHECK(decide(s.store, Plan(steps).idempotent(id), error));
  }
  CHECK(now.peek("a").remaining == 4);
}

/// The reference is a program without the shadow, and the shadow alone on what went ahead.
TEST_CASE("programs run with a shadow as without it", "[observe][shadow]") {
  Random random("programs run with a shadow as without it");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(200, 20); ++program) {
    VirtualClock clock;
    const auto inner = make_virtual_store(clock);
    const auto reference = make_virtual_store(clock);
    Metrics metrics;
    ShadowStore store(static_cast<Store&>(*inner), metrics, {"next"});
    const auto quota = [&] {
      return Quota::per_second(random.between(1, 20)).burst(random.between(1, 10));
    };
    const Quota of_now = quota();
    const Quota of_next = quota();
    const TokenBucket now(store, "now", of_now);
    const TokenBucket next(store, "next", of_next);
    const TokenBucket now_alone(*reference, "now", of_now);
    const TokenBucket next_alone(*reference, "next", of_next);
    std::uint64_t refusals = 0;
    for (int i = 0; i < 60; ++i) {
      clock.advance(Span{random.between(0, 200'000)});
      const auto cost = random.between(1, of_now.capacity());
      const bool first = random.one_in(2);
      const Step a = now.acquire_step("k", cost);
      const Step b = next.acquire_step("k", cost);
      const std::array steps{first ? a : b, first ? b : a};
      std::array<Decision, 2> each;
      std::error_code error;
      const Decision decision = decide(store, steps, error, each);
      const Decision expected = now_alone.try_acquire("k", cost);
      REQUIRE(!error);
      REQUIRE(decision.allowed == expected.allowed);
      REQUIRE(decision.retry_after == expected.retry_after);
      REQUIRE(decision.remaining == expected.remaining);
      REQUIRE(decision.step == (first ? 0 : 1));
      if (!decision) continue;
      std::error_code too_large;
      const Decision shadow = next_alone.try_acquire("k", cost, too_large);
      const Decision& told = each[first ? 1 : 0];
      REQUIRE((told.limit == unlimited) == !shadow.allowed);
      if (shadow.allowed) REQUIRE(told.remaining == shadow.remaining);
      if (!shadow.allowed) ++refusals;
      REQUIRE(metrics.counts("next").shadow_refusals == refusals);
    }
  }
}

}  // namespace sluice::test
