// What callers are told while the primary fails, and how often it is asked.
#include "sluice/calls/guarded.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/learned_rate.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "src/core/error_names.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {
namespace {

constexpr auto ten = [](Store& store) {
  return TokenBucket(store, "api", Quota::per_second(10).burst(5));
};

}  // namespace

TEST_CASE("a learned rate learns alone while its store is away, by a part of its bounds",
          "[fallback]") {
  Rig rig(2);
  const LearnedRate rate(rig.store, "api",
                         {.initial = Quota::per_second(40), .least = Quota::per_second(2)});
  REQUIRE(rate.try_acquire("a"));
  rig.trip();
  const Reservation grant = rate.reserve("a", 1);
  CHECK(grant.source == Source::fallback);
  CHECK(rate.learned("a").rate == 20'000'000);
  CHECK(rate.limited("a", grant).source == Source::fallback);
  CHECK(rate.learned("a").rate == 10'000'000);
  CHECK(rate.told("a", {.limit = 5, .span = 1s}).source == Source::fallback);
  CHECK(rate.learned("a").rate == 5'000'000);
  CHECK(rate.told("a", {.limit = 1, .span = 10s}).source == Source::fallback);
  CHECK(rate.learned("a").rate == 1'000'000);
  std::error_code error;
  rate.reset("a", error);
  CHECK(error);
  rig.heal();
  CHECK(rate.learned("a").rate == 40'000'000);
}

TEST_CASE("an error about the request is passed on, and trips nothing", "[fallback]") {
  for (const auto& named : detail::error_names()) {
    CAPTURE(named.name);
    Rig rig(FailurePolicy::open());
    const std::error_code told = named.code;
    rig.primary.fail_all(Fault::not_executed(told));
    std::error_code error;
    for (int i = 0; i < 10; ++i) (void)ten(rig.store).try_acquire("a", error);
    using enum Errc;
    constexpr std::array failures{queue_full,
                                  not_connected,
                                  timed_out,
                                  no_script,
                                  loading,
                                  read_only,
                                  moved,
                                  ask,
                                  try_again,
                                  cluster_down,
                                  no_replicas,
                                  out_of_memory,
                                  master_down,
                                  busy,
                                  misconfigured,
                                  no_auth,
                                  wrong_password,
                                  no_permission,
                                  too_many_clients,
                                  server_error,
                                  unknown,
                                  protocol_error,
                                  circuit_open,
                                  no_function,
                                  unknown_command,
                                  tls_failed};
    const bool counts = std::ranges::find(failures, named.code) != failures.end();
    const bool unreadable = named.code == Errc::wrong_type || named.code == Errc::corrupt_state;
    CHECK(error == (counts || unreadable ? std::error_code{} : told));
    CHECK((rig.breaker.state() == State::open) == counts);
    CHECK(rig.store.stats().unreadable == (unreadable ? 10U : 0U));

    // A row of failures goes on behind it, unless the store has read the key.
    constexpr std::array reads{wrong_kind, not_configured, config_changed, outside_calendar,
                               id_reused};
    const bool works = unreadable || std::ranges::find(reads, named.code) != reads.end();
    Rig row(FailurePolicy::open());
    const std::error_code away = Errc::not_connected;
    for (const std::error_code& each : {away, away, told, away}) {
      row.primary.fail_all(Fault::not_executed(each));
      (void)ten(row.store).try_acquire("a", error);
    }
    CHECK((row.breaker.state() == State::open) == !works);
  }
}

TEST_CASE("what lies under the key and is no state is answered by the policy, and counted",
          "[fallback][C-014][C-028]") {
  for (const Errc code : {Errc::wrong_type, Errc::corrupt_state}) {
    for (const bool admits : {true, false}) {
      Rig rig(admits ? FailurePolicy::open() : FailurePolicy::closed());
      rig.primary.fail_all(Fault::not_executed(code));
      const Decision decision = ten(rig.store).try_acquire("a");
      CHECK(decision.allowed == admits);
      CHECK(decision.source == Source::policy);
      std::error_code error;
      ten(rig.store).reset("a", error);  // has no answer without the state
      CHECK(error == code);
    }
    Rig rig(2);
    rig.primary.fail_all(Fault::not_executed(code));
    for (int i = 0; i < 20; ++i) (void)ten(rig.store).try_acquire("a");
    CHECK(rig.breaker.state() == State::closed);
    CHECK(rig.store.stats().unreadable == 20);
    CHECK(rig.store.stats().failures == 0);
    CHECK(rig.store.stats().degraded_grants == 2);
    CHECK(ten(rig.store).try_acquire("a").source == Source::fallback);
  }
}

TEST_CASE(
    "a call waits for a dead store exactly as long as was allowed, and not at all once the "
    "breaker is open",
    "[fallback][C-036]") {
  /// Answers nothing, until the time that a call has is over.
  class Hanging final : public Store {
   public:
    explicit Hanging(VirtualClock& clock) : clock_(clock), inner_(make_virtual_store(clock)) {}
    void execute(const Plan& plan, Completion done) noexcept override {
      if (!hangs) return inner_->execute(plan, std::move(done));
      ++asked;
      ManualResetEvent nobody;
      clock_.wait_until(clock_.now() + (plan.timeout() > 0us ? plan.timeout() : Span{1h}), nobody);
      done.fail(Errc::timed_out);
    }
    [[nodiscard]] Clock& clock() noexcept override { return clock_; }
    bool hangs = true;
    int asked = 0;

   private:
    VirtualClock& clock_;
    std::unique_ptr<Store> inner_;
  };
  const auto policy = GENERATE(0, 1, 2);
  CAPTURE(policy);
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  Hanging primary(clock);
  const auto local = make_virtual_store(clock);
  SeededRng rng{7};
  CircuitBreaker breaker(clock,
                         {.failures = 3, .first_pause = 1s, .longest_pause = 1s, .rng = &rng});
  const FailurePolicy policies[] = {FailurePolicy::open(), FailurePolicy::closed(),
                                    FailurePolicy::local(*local, 2)};
  FallbackStore store(primary, breaker, policies[policy], 30ms);
  const TokenBucket bucket = ten(store);
  const Step step = bucket.acquire_step("a");
  const auto taken = [&](const Plan& plan) {
    const Time asked = clock.now();
    std::error_code error;
    (void)decide(store, plan, error);
    CHECK_FALSE(error);
    return clock.now() - asked;
  };
  // Without a breaker every call of an outage would pay this.
  CHECK(taken(step) == 30ms);
  CHECK(taken(Plan(step).within(7ms)) ==
        7ms);  // and says nothing to the breaker: it was in a hurry
  CHECK(taken(step) == 30ms);
  CHECK(breaker.state() == State::closed);
  CHECK(taken(step) == 30ms);
  CHECK(breaker.state() == State::open);
  Span paid{0};
  constexpr int calls = 10'000;
  for (int i = 0; i < calls; ++i) {
    const Span one = taken(step);
    CHECK((one == 0us || one == 30ms));
    paid += one;
    clock.advance(1ms);
  }
  const int probes = primary.asked - 4;
  CHECK(paid == probes * 30ms);
  CHECK(probes >= 5);   // ten seconds of pauses of at most one
  CHECK(probes <= 40);  // and of half of one on average
  // Back again, it is found by the first probe behind the pause.
  primary.hangs = false;
  clock.advance(1s);
  CHECK(taken(step) == 0us);
  CHECK(breaker.state() == State::closed);
}

TEST_CASE("what was granted without the primary gives nothing back there", "[fallback]") {
  for (const PolicyKind kind : {PolicyKind::open, PolicyKind::local}) {
    Rig rig(kind, 1);
    const TokenBucket bucket = ten(rig.store);
    const SlidingWindow windows(rig.store, "w", {{.limit = 5, .span = 10min}});
    const FixedWindow fixed(rig.store, "f", 5, Calendar::every(24h));
    const SlotLock slots(rig.store, "s", 1h);
    rig.trip();
    Reservation tokens = bucket.reserve("a", 2, 0s);
    Reservation units = windows.reserve("a", 2, 0s);
    Reservation used = fixed.reserve("a", 2);
    const SlotPermit slot = slots.reserve("a", 1h);
    REQUIRE((tokens && units && used && slot));
    CHECK(tokens.granted == 2);
    rig.primary.heal();
    while (rig.breaker.state() != State::closed) {
      rig.clock.advance(100ms);
      (void)bucket.peek("b");
    }
    // At the very instant that the degraded grants bear, if clocks go back: what is there now.
    rig.clock.set(used.at);
    REQUIRE(bucket.reserve("a", 3, 0s));
    REQUIRE(windows.try_acquire("a", 3));
    REQUIRE(fixed.try_acquire("a", 3));
    REQUIRE(slots.reserve("a", 1h));
    CHECK(bucket.cancel("a", tokens) == 0);
    CHECK(windows.cancel("a", units) == 0);
    CHECK(fixed.refund("a", used, 2) == 0);
    CHECK_FALSE(slots.cancel("a", slot));
    CHECK(bucket.peek("a", 0).remaining == 2);
    CHECK(windows.peek("a", 0).remaining == 2);
    CHECK(fixed.peek("a", 0).remaining == 2);
    CHECK(slots.peek("a").remaining == 0);
  }
}

TEST_CASE("what was granted without the primary is settled without it: there is nothing to settle",
          "[fallback]") {
  for (const PolicyKind kind : {PolicyKind::open, PolicyKind::local}) {
    Rig rig(kind, 1);
    rig.trip();
    const auto check = [](const auto& limiter) {
      for (const Word actual : {1, 4}) {
        CHECK(guarded(limiter, "a", 2, 0s, [&] { return Costed<Word>{actual, actual}; }) == actual);
      }
      Reservation taken = limiter.reserve("a", 1);
      REQUIRE(taken);
      std::error_code error = make_error_code(Errc::unknown);
      CHECK(limiter.settle("a", taken, 3, error).charged == 0);
      CHECK_FALSE(error);
      CHECK(limiter.cancel("a", taken, error) == 0);
      CHECK_FALSE(error);
    };
    check(ten(rig.store));
    check(SlidingWindow(rig.store, "w", {{.limit = 5, .span = 10min}}));
    check(SlidingWindowCounter(rig.store, "c", {.limit = 5, .span = 10min}));
    check(FixedWindow(rig.store, "f", 5, Calendar::every(24h)));
  }
}

TEST_CASE("what the primary granted is not settled without it: an error says so", "[fallback]") {
  for (const PolicyKind kind : every_policy) {
    CAPTURE(static_cast<int>(kind));
    Rig rig(kind, 2);
    const TokenBucket bucket = ten(rig.store);
    const SlidingWindow windows(rig.store, "w", {{.limit = 5, .span = 10min}});
    const SlidingWindowCounter counter(rig.store, "c", {.limit = 5, .span = 10min});
    const FixedWindow fixed(rig.store, "f", 5, Calendar::every(24h));
    const SharedSlidingWindow shared(rig.store, "a");
    shared.configure("s", RateType::overall, 5, 10min);
    Reservation tokens = bucket.reserve("a", 2, 0s);
    Reservation units = windows.reserve("a", 2);
    Reservation counted = counter.reserve("a", 2);
    Reservation used = fixed.reserve("a", 2);
    Reservation permits = shared.reserve("s", 2, 0s);
    rig.trip();
    const auto check = [](const auto& limiter, const char* key, Reservation& taken) {
      for (const Word actual : {1, 3}) {
        std::error_code error;
        CHECK(limiter.settle(key, taken, actual, error).charged == 0);
        CHECK(error == Errc::circuit_open);
      }
    };
    check(bucket, "a", tokens);
    check(windows, "a", units);
    check(counter, "a", counted);
    check(fixed, "a", used);
    check(shared, "s", permits);
  }
}

TEST_CASE("a shared sliding window that is known goes on under every policy", "[fallback]") {
  for (const PolicyKind kind : every_policy) {
    Rig rig(kind, 2);
    const SharedSlidingWindow limiter(rig.store, "api");
    limiter.configure("partner", RateType::overall, 10, 1s, SpentUnits::forgotten);
    REQUIRE(limiter.try_acquire("partner"));
    rig.trip();
    const SharedSlidingWindow stranger(rig.store, "api");
    std::error_code error;
    (void)stranger.try_acquire("partner", 1, error);
    CHECK(error == Errc::circuit_open);
    const Decision decision = limiter.try_acquire("partner");
    CHECK(decision.allowed == (kind != PolicyKind::closed));
    CHECK(decision.source == (kind == PolicyKind::local ? Source::fallback : Source::policy));
    if (kind != PolicyKind::local) continue;
    int more = 0;
    while (limiter.try_acquire("partner")) ++more;
    CHECK(more == 4);
  }
}

TEST_CASE("a gate that is closed during an outage holds back this client", "[fallback]") {
  Rig rig(3);
  const Gates gates(rig.store, "api", {"account"});
  const Scope scope = gates.scope("account", "7");
  rig.trip();
  CHECK(gates.pass({&scope, 1}));
  const Decision closed = decide(rig.store, gates.close_step(scope, 30s));
  CHECK(closed.source == Source::fallback);
  const Decision refused = gates.pass({&scope, 1});
  CHECK_FALSE(refused);
  CHECK(refused.retry_after == 30s);
}

TEST_CASE("by default a call has a tenth of a second", "[fallback][C-036]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  WireStore primary(*inner);
  CircuitBreaker breaker(clock);
  FallbackStore store(primary, breaker, FailurePolicy::open());
  ten(store).try_acquire_then("a", 1, [](const std::error_code&, const Decision&) {});
  CHECK(primary.plan(0).timeout() == 100ms);
}

TEST_CASE("a thread may block for a call if it may for each store that may decide it",
          "[fallback]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  WireStore primary(*inner);
  WireStore local(*inner);
  CircuitBreaker breaker(clock);
  const FallbackStore by_policy(primary, breaker, FailurePolicy::closed());
  const FallbackStore by_share(primary, breaker, FailurePolicy::local(local, 2));
  for (const bool far : {true, false}) {
    for (const bool near : {true, false}) {
      primary.blocks = far;
      local.blocks = near;
      CHECK(by_policy.may_block() == far);
      CHECK(by_share.may_block() == (far && near));
    }
  }
  CHECK_FALSE(FallbackStore(*inner, breaker, FailurePolicy::closed()).stamps_by_clock());
}

}  // namespace sluice::test
