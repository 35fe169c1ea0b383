// How the slot lock behaves, in exact integers, on every store. Threading: single-threaded, but for
// the tests that say so.
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/extend/store_wrapper.hpp"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/testing/fixture.hpp"
#include "tests/catch.hpp"
#include "tests/support/far_client.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"
#include "tests/waiting/probe.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// A store in front of another that counts what is asked of it, and takes `stall` to answer.
class Relay final : public StoreWrapper {
 public:
  Relay(Store& store, VirtualClock& clock) : StoreWrapper(store), clock_(clock) {}
  void execute(const Plan& plan, Completion done) noexcept override {
    ++asked;
    clock_.advance(way_there);
    inner().execute(plan,
                    Completion(&Answer::receive, new Answer{clock_, way_back, std::move(done)}));
  }

  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }

  int asked = 0;
  Span way_there{0};
  Span way_back{0};

 private:
  struct Answer {
    static void receive(void* self, const Outcome& outcome) noexcept {
      const std::unique_ptr<Answer> answer(static_cast<Answer*>(self));
      answer->clock.advance(answer->way_back);
      answer->done(outcome);
    }
    VirtualClock& clock;
    Span way_back;
    Completion done;
  };

  VirtualClock& clock_;
};

/// A clock that a microsecond passes on whenever it is read.
class Ticking final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return start + Span{++readings}; }
  static constexpr Time start = VirtualClock::default_start;
  mutable int readings = 0;
};

std::string why(Store& store, const std::string& name, Span interval,
                SlotLockOptions options = {}) {
  return refusal([&] { SlotLock(store, name, interval, options); });
}

}  // namespace

TEST_CASE("a permit tells when the call may begin, and a late one is told so",
          "[slot_lock][C-070]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlotLock lock(store, "toggl", 1s, {.slack = 100ms});
    const SlotPermit first = lock.try_acquire("token");
    const SlotPermit second = lock.reserve("token", 5s);
    REQUIRE(first);
    REQUIRE(second);
    const Time now = clock.now();
    CHECK(second.ready_at() == first.ready_at() + 1s);
    CHECK(first.valid_at(now));
    CHECK(first.valid_at(now + 100ms));
    CHECK_FALSE(first.valid_at(now + 100ms + 1us));  // stalled: 900 ms to the next are not kept
    CHECK_FALSE(second.valid_at(now + 1s - 1us));
    CHECK(second.valid_at(now + 1s));
    CHECK_FALSE(second.valid_at(now + 1100ms + 1us));
    CHECK_FALSE(lock.try_acquire("token").valid_at(now));  // a refusal is no permit
    const SlotPermit usual = SlotLock(store, "usual", 1s).try_acquire("token");
    CHECK(usual.valid_at(now + 1s));  // for an interval
    CHECK_FALSE(usual.valid_at(now + 1s + 1us));
  });
}

TEST_CASE("calls that begin while their permits are valid are an interval less slack apart",
          "[slot_lock][C-070][S4]") {
  Random random("calls that begin while their permits are valid are an interval less slack apart");
  CAPTURE(random.repeat());
  for_each_store([&](Store& direct, VirtualClock& clock) {
    Relay store(direct, clock);
    const SlotLock lock(store, "toggl", 1s, {.slack = 300ms});
    std::vector<Time> calls;
    int stalled = 0;
    for (int i = 0; i < 150; ++i) {
      store.way_there = Span{random.between(0, 100'000)};
      store.way_back = Span{random.between(0, 100'000)};
      const SlotPermit permit = lock.reserve("token", 24h);
      clock.advance(permit.wait());
      if (random.one_in(3)) clock.advance(Span{random.between(0, 900'000)});
      if (!permit.valid_at(clock.now())) {
        ++stalled;
        continue;
      }
      calls.push_back(clock.now());
    }
    CHECK(stalled > 0);
    REQUIRE(calls.size() > 20);
    for (std::size_t i = 1; i < calls.size(); ++i) REQUIRE(calls[i] - calls[i - 1] >= 700ms);
  });
}

TEST_CASE("a permit starts late rather than early when the answer was slow", "[slot_lock]") {
  for_each_store([](Store& direct, VirtualClock& clock) {
    Relay store(direct, clock);
    store.way_there = 30ms;
    store.way_back = 20ms;
    const SlotLock lock(store, "toggl", 1s, {.slack = 200ms});
    const Time asked = clock.now();
    const SlotPermit permit = lock.try_acquire("token");
    CHECK(permit.ready_at() == asked + 30ms);
    CHECK(permit.not_before == asked + 50ms);  // the slot began at most so late
    CHECK(permit.not_after == asked + 200ms);  // and at least so early
  });
}

TEST_CASE("where the store stamps by its clock, a permit's and a lease's times are exact",
          "[slot_lock][leases]") {
  Ticking clock;
  const auto store = make_memory_store({.max_keys = 16, .clock = &clock});
  const SlotLock lock(*store, "toggl", 1s, {.slack = 200ms});
  for (int i = 0; i < 3; ++i) {
    const SlotPermit permit = lock.reserve("token", 15s);
    CHECK(permit.not_before == permit.at + permit.wait());
    CHECK(permit.not_after == permit.not_before + 200ms);
    CHECK(permit.ready_at() == permit.not_before);
  }
  const ConcurrencyLimiter jobs(*store, "jobs", 1, {.ttl = 2ms});
  const Lease lease = jobs.try_acquire("key");
  while (!lease.lost()) {
  }
  CHECK(Ticking::start + Span{clock.readings} == lease.expires_at());
}

TEST_CASE("a plan of a slot and a place keeps calls apart and bounds how many are under way",
          "[slot_lock][leases][C-071]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlotLock lock(store, "toggl", 1s);
    const ConcurrencyLimiter calls(store, "calls", 2, {.ttl = 1min});
    // Each call takes 5 s: the slots alone would have five under way.
    SeededRng rng(7);
    std::vector<LeaseId> under_way;
    int begun = 0;
    for (int second = 0; second < 5; ++second, clock.advance(1s)) {
      const LeaseId id = LeaseId::draw(rng);
      const Decision d =
          decide(store, {lock.acquire_step("token"), calls.acquire_step("token", id)});
      if (second < 2) {
        CHECK(d.allowed);
        ++begun;
        under_way.push_back(id);
      } else {
        CHECK_FALSE(d.allowed);
        CHECK(d.step == 1);                        // the place is what is missing
        CHECK(lock.peek("token").remaining == 1);  // and no slot was taken in vain
      }
    }
    CHECK(begun == 2);
    CHECK(calls.release("token", under_way[0]));
    const LeaseId id = LeaseId::draw(rng);
    CHECK(decide(store, {lock.acquire_step("token"), calls.acquire_step("token", id)}).allowed);
  });
}

TEST_CASE("two hundred waiters of two processes use every slot, in the order of their arrival",
          "[slot_lock][C-074][C-075]") {
  for_each_store([](Store& direct, VirtualClock& clock) {
    FarClient here(direct, clock);
    FarClient there(direct, clock);
    const SlotLock first(here, "toggl", 1s);
    const SlotLock second(there, "toggl", 1s);
    const Time start = clock.now();
    constexpr int waiters = 200;
    std::vector<int> served;
    std::vector<std::shared_ptr<Probe<SlotLock>>> waiting;
    for (int i = 0; i < waiters; ++i) {
      const SlotLock& lock = i % 2 == 0 ? first : second;
      waiting.push_back(wait_for(lock, {"token", 1}, 1h, [&, i](auto error, const auto& permit) {
        CHECK_FALSE(error);
        CHECK(permit.valid_at(clock.now()));
        CHECK(clock.now() == start + i * 1s);
        served.push_back(i);
      }));
      clock.advance(1us);
    }
    testing::advance_until_idle(clock);
    REQUIRE(served.size() == waiters);
    CHECK(std::ranges::is_sorted(served));
  });
}

TEST_CASE("a server's clock that is set ends no wait at once, and makes one longer by its step",
          "[slot_lock][C-077]") {
  for_each_store([](Store& direct, VirtualClock& clock) {
    for (const Span step : std::initializer_list<Span>{1h, 24h, 10s, -10s, -30s, -3h}) {
      CAPTURE(step.count());
      FarClient client(direct, clock, 61s);
      VirtualClock& own = client.own_clock();
      const VirtualClock::AutoAdvance moving(own);
      const SlotLock lock(client, "toggl", 1s);
      lock.set_wait_queue({.recheck = 1h});  // asks at hints alone
      for (int i = 0; i < 5; ++i) REQUIRE(lock.reserve("token", 15s));
      const Time start = own.now();
      client.meanwhile = [&] { client.step_server(step); };
      const SlotPermit permit = lock.acquire("token", 15s);
      // Set back by hours, the slots count from the new time.
      const bool is_longer = step < 0s && step > -1h;
      const Span wait = is_longer ? 5s - step : Span{5s};
      CHECK(bool(permit) == (wait <= 15s));
      CHECK(own.now() == start + (permit ? wait : Span{5s}));
      if (permit) CHECK(permit.valid_at(own.now()));
      // Who asks from now on is served or turned away by its deadline, which is its own clock's.
      for (const Span patience : std::initializer_list<Span>{0s, 15s, 40s}) {
        const Time asked = own.now();
        const SlotPermit next = lock.acquire("token", patience);
        CHECK(own.now() - asked <= patience);
        CHECK((next || own.now() == asked));
      }
      lock.reset("token");
    }
  });
}

TEST_CASE("intervals count in microseconds, and none at all is refused", "[slot_lock][C-078]") {
  static_assert(!std::is_constructible_v<SlotLock, Store&, std::string, std::chrono::nanoseconds>);
  static_assert(!std::is_constructible_v<SlotLock, Store&, std::string, double>);
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlotLock fast(store, "fast", 1us);
    for (int i = 0; i < 5; ++i) {
      CHECK(fast.try_acquire("k"));
      CHECK(fast.try_acquire("k").retry_after == 1us);
      clock.advance(1us);
    }
    CHECK(why(store, "none", 0us) ==
          "the interval between slots must be 1 to 31536000000000 us, got 0 us");
    CHECK(why(store, "less", -1us).find("got -1 us") != std::string::npos);
    CHECK(why(store, "long", SlotLock::max_interval + 1us).find("got 3153600000") !=
          std::string::npos);
    CHECK(why(store, "", 1s).find("name") != std::string::npos);
    CHECK(why(store, "slack", 1s, {.slack = 1s + 1us}).find("slack") != std::string::npos);
    CHECK(why(store, "slack", 1s, {.slack = -1us}).find("got -1 us") != std::string::npos);
    CHECK(SlotLock(store, "l", SlotLock::max_interval).try_acquire("k"));
  });
}

TEST_CASE("each resource has slots of its own", "[slot_lock][C-079]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const SlotLock lock(store, "toggl", 1s);
    CHECK(lock.try_acquire("token of team a"));
    CHECK(lock.try_acquire("token of team b"));
    CHECK_FALSE(lock.try_acquire("token of team a"));
    CHECK(lock.try_acquire(Key{"token of team a", "reports"}));
    CHECK_FALSE(lock.try_acquire(Key{"token of team a", "toggl"}));
    CHECK_FALSE(SlotLock(store, "toggl", 2s).try_acquire("token of team a"));
  });
}

TEST_CASE("a slot is reset, peeked at and asked for without exceptions", "[slot_lock]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const SlotLock lock(store, "toggl", 1s);
    std::error_code error;
    CHECK(lock.peek("k").remaining == 1);
    CHECK(lock.reserve("k", 1h, error));
    CHECK(lock.peek("k").remaining == 0);
    CHECK(lock.peek("k", 2s, error).retry_after == 1s);
    CHECK(lock.peek("k", error).retry_after == 1s);
    CHECK_FALSE(lock.peek("", error).allowed);
    CHECK(error == Errc::invalid_key);
    CHECK_FALSE(lock.try_acquire("k", error));
    CHECK_FALSE(error);
    lock.reset("k");
    CHECK(lock.try_acquire("k", error));
    lock.reset("k", error);
    CHECK(lock.peek("k").remaining == 1);

    CHECK_FALSE(lock.reserve("k", -1us, error));
    CHECK(error == Errc::invalid_argument);
    CHECK_FALSE(lock.reserve("k", 24h + 1us, error));
    CHECK(error == Errc::invalid_argument);
    CHECK_THROWS_AS(lock.reserve("k", -1us), std::system_error);
    CHECK_FALSE(lock.reserve("", 1s, error));
    CHECK(error == Errc::invalid_key);
    CHECK(lock.peek("k").remaining == 1);
  });
}
