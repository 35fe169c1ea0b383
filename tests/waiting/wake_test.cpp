// Who waits is woken by whatever gives units back: at once in this process, by a notification in
// others, and within WaitQueueOptions::recheck if that is lost. One table of limiters and calls, in
// virtual time. Threading: the blocking waits have threads of their own; everything else is on the
// thread that moves the clock.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/processes.hpp"
#include "tests/waiting/wake_rows.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr Span recheck = 777ms;

/// As many processes as there are limiters of one name, each with a store of its own in front of
/// the one that they share.
struct Fleet {
  Fleet(const WakeRow& row, std::size_t processes) {
    time.advance(1us);
    for (std::size_t i = 0; i < processes; ++i) {
      wires.push_back(std::make_unique<testing::FaultyStore>(*store));
      limits.push_back(row.make(*wires.back()));
      limits.back()->limiter().set_wait_queue(
          {.client = static_cast<std::int64_t>(i + 1), .recheck = recheck});
    }
    // Limits of an hour begin now.
    time.advance(1h - time.now().time_since_epoch() % 1h);
  }
  void wait(std::size_t process) {
    limits[process]->wait([this, process](const Decision& decision) {
      if (!decision.allowed) return;
      granted.push_back(time.now());
      order.push_back(process);
    });
  }

  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  std::vector<std::unique_ptr<testing::FaultyStore>> wires;
  std::vector<std::unique_ptr<Limit>> limits;
  std::vector<Time> granted;
  std::vector<std::size_t> order;  // of the processes that were granted
};

template <class Body>
void for_each_row(Body body) {
  for (const WakeRow& row : wake_rows()) {
    for (const Form form : forms()) {
      CAPTURE(row.limiter, row.call, static_cast<int>(form));
      body(row, form);
    }
  }
}

}  // namespace

TEST_CASE("what comes back wakes who waits in this process, at once, in every form of the calls",
          "[waiting][wake]") {
  for_each_row([](const WakeRow& row, Form form) {
    VirtualClock time;
    time.advance(1h - time.now().time_since_epoch() % 1h);
    const auto store = make_virtual_store(time);
    const auto limit = row.make(*store);
    limit->fill();
    std::atomic<bool> is_over = false;
    Decision decision;
    std::thread waits([&] {
      decision = limit->acquire(form);
      is_over = true;
    });
    const auto until = [](auto done) {
      const auto end = std::chrono::steady_clock::now() + 20s;
      while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      return done();
    };
    const bool waited = until([&] { return limit->waiting() == 1; });
    time.advance(row.later);
    const bool was_over = is_over;
    const Time then = time.now();
    limit->give_back(form);
    const bool woken = until([&] { return is_over.load(); });
    if (!woken) time.advance(2h);
    waits.join();
    CHECK(waited);
    CHECK_FALSE(was_over);
    CHECK(woken);
    CHECK(decision.allowed);
    CHECK(decision.at == then);
  });
}

TEST_CASE("what comes back wakes as many as it is enough for, in this process", "[waiting][wake]") {
  for_each_row([](const WakeRow& row, Form form) {
    Fleet one(row, 1);
    one.limits[0]->limiter().set_wait_queue({.across_processes = false, .recheck = 24h});
    one.limits[0]->fill();
    for (int i = 0; i < 6; ++i) one.wait(0);
    one.time.advance(row.later);
    CHECK(one.granted.empty());
    const Time then = one.time.now();
    one.limits[0]->give_back(form);
    const std::size_t granted = one.granted.size();
    CHECK(one.granted == std::vector<Time>(granted, then));
    CHECK((granted == 6) == (row.call == "open"));
    // Nothing is left for another.
    const auto other = row.make(*one.store);
    bool is_free = false;
    other->wait([&](const Decision& decision) { is_free = decision.allowed; });
    CHECK(is_free == (granted == 6));
    one.time.advance(1s);
    CHECK(one.granted.size() == granted);
  });
}

TEST_CASE("what comes back is known at once here and where wake-ups arrive, else within a recheck",
          "[waiting][wake]") {
  struct Way {
    std::size_t waits;  // in which process; the first gives back
    bool is_notified;
    bool across = true;
  };
  for (const Way& way : {Way{0, false}, Way{1, true}, Way{1, false}, Way{1, false, false}}) {
    for_each_row([&](const WakeRow& row, Form form) {
      CAPTURE(way.waits, way.is_notified, way.across);
      Fleet two(row, 2);
      for (std::size_t i = 0; i < 2; ++i) {
        if (!way.is_notified) two.wires[i]->lose_wake_ups();
        if (way.across) continue;
        two.limits[i]->limiter().set_wait_queue({.across_processes = false, .recheck = recheck});
      }
      two.limits[0]->fill();
      two.wait(way.waits);
      two.time.advance(1ms);
      two.wait(1);  // behind it
      two.time.advance(row.later);
      CHECK(two.granted.empty());
      const Time then = two.time.now();
      two.limits[0]->give_back(form);
      const bool is_at_once = way.waits == 0 || way.is_notified;
      CHECK(two.granted.empty() != is_at_once);
      two.time.advance(recheck);
      REQUIRE(!two.granted.empty());
      CHECK(two.granted[0] <= (is_at_once ? then : then + recheck));
      CHECK(two.order[0] == way.waits);
    });
  }
}

TEST_CASE("what is enough for several processes wakes all of them, in the order of their callers",
          "[waiting][wake]") {
  for (const WakeRow& row : wake_rows()) {
    // A slot lock has one slot, and a rate of which nothing is known two units.
    const bool is_few = row.limiter == SlotLock::type_name || row.limiter == LearnedRate::type_name;
    if (row.call != "reset" || is_few) continue;
    CAPTURE(row.limiter);
    Fleet fleet(row, 5);
    for (std::size_t i = 0; i < 5; ++i) {
      fleet.limits[i]->limiter().set_wait_queue(
          {.client = static_cast<std::int64_t>(i + 1), .recheck = 24h});
    }
    fleet.limits[0]->fill();
    for (const std::size_t process : {3U, 1U, 4U, 2U}) {
      fleet.wait(process);
      fleet.time.advance(10ms);
    }
    fleet.time.advance(row.later);
    CHECK(fleet.granted.empty());
    const Time then = fleet.time.now();
    fleet.limits[0]->give_back(Form::throwing);
    CHECK(fleet.granted == std::vector<Time>(4, then));
    CHECK(fleet.order == std::vector<std::size_t>{3, 1, 4, 2});
  }
}

TEST_CASE("who gives nothing back, or fails to, wakes nobody", "[waiting][wake]") {
  VirtualClock time;
  time.advance(1h - time.now().time_since_epoch() % 1h);
  const auto store = make_virtual_store(time);
  for (const bool across : {false, true}) {
    CAPTURE(across);
    testing::FaultyStore wire(*store);
    const WaitQueueOptions options{.across_processes = across, .client = 1, .recheck = 24h};
    std::vector<std::shared_ptr<detail::Waiter>> waits;
    const auto wait_for_one = [&](const auto& limiter) {
      limiter.set_wait_queue(options);
      waits.push_back(wait_for(limiter, claims_of(limiter), Deadline::never(),
                               [](std::error_code, const auto&) {}));
      time.advance(1ms);
    };
    /// The requests of a call, which is one.
    const auto requests = [&](auto call) {
      const std::uint64_t before = wire.counts().calls;
      call();
      return wire.counts().calls - before;
    };
    const std::string name = across ? "across" : "here";

    const TokenBucket bucket(wire, name, Quota::per(5, 1h).burst(5));
    Reservation held = bucket.reserve("a", 5, 0s);
    Reservation refused = bucket.reserve("a", 5, 0s);
    Reservation others = bucket.reserve("b", 5, 0s);
    wait_for_one(bucket);
    CHECK(requests([&] { bucket.refund("a", held, 0); }) == 0);
    CHECK(requests([&] { bucket.cancel("a", refused); }) == 0);
    CHECK(requests([&] { bucket.settle("a", held, 5); }) == 0);
    CHECK(requests([&] { bucket.settle("a", held, 6); }) == 1);
    std::error_code error;
    wire.fail_call(1, testing::Fault::not_executed(Errc::not_connected));
    CHECK(requests([&] { bucket.refund("a", held, 1, error); }) == 1);
    CHECK(error == Errc::not_connected);
    CHECK(requests([&] { bucket.refund("b", others, 1, error); }) == 1);  // another key
    CHECK(requests([&] { bucket.refund("b", held, 1, error); }) == 0);
    CHECK(error == Errc::invalid_argument);
    CHECK(requests([&] { bucket.refund("a", held, 99, error); }) == 0);
    CHECK(error == Errc::invalid_argument);
    CHECK(bucket.waiting("a") == 1);

    const SharedTokenBucket shared(wire, name);
    shared.configure("a", Quota::per(5, 1h).burst(5));
    Reservation of_shared = shared.reserve("a", 5, 0s);
    wait_for_one(shared);
    CHECK(requests([&] { shared.refund("a", of_shared, 0); }) == 0);
    CHECK(requests([&] { shared.configure("a", Quota::per(5, 1h).burst(5)); }) == 1);

    const auto rewards_nothing = [&](const auto& limiter) {
      Reservation of_limiter = limiter.reserve("a", 5);
      wait_for_one(limiter);
      CHECK(requests([&] { limiter.reward("a", 0); }) == 1);
      CHECK(requests([&] { limiter.refund("a", of_limiter, 0); }) == 0);
      CHECK(requests([&] { limiter.settle("a", of_limiter, 6); }) == 1);
    };
    const SharedSlidingWindow rate(wire, name + "-rate");
    rate.configure("a", RateType::overall, 5, 1h);
    rewards_nothing(rate);
    CHECK(requests([&] { rate.configure("a", RateType::overall, 5, 1h); }) == 1);
    rewards_nothing(SlidingWindow(wire, name + "-windows", {{5, 1h}}));
    rewards_nothing(FixedWindow(wire, name + "-window", 5, Calendar::every(1h)));
    rewards_nothing(SlidingWindowCounter(wire, name, {5, 1h}));

    const SlotLock lock(wire, name + "-lock", 1h);
    const SlotPermit slot = lock.try_acquire("a");
    REQUIRE(lock.reserve("a", 2h));
    wait_for_one(lock);
    CHECK(requests([&] { lock.cancel("a", slot); }) == 1);  // a later one was reserved since

    const ConcurrencyLimiter jobs(wire, name + "-jobs", 1, {.ttl = 24h});
    const Lease lease = jobs.try_acquire("a");
    wait_for_one(jobs);
    CHECK(requests([&] { CHECK_FALSE(jobs.release("a", LeaseId{1, 2})); }) == 1);
    for (const auto& wait : waits) wait->cancel();
  }
}

TEST_CASE("who gives back asks for the wait line in the same plan, where processes share one",
          "[waiting][wake]") {
  struct Counted final : StoreWrapper {
    using StoreWrapper::StoreWrapper;
    void execute(const Plan& plan, Completion done) noexcept override {
      steps = plan.steps().size();
      StoreWrapper::execute(plan, std::move(done));
    }
    [[nodiscard]] bool stamps_by_clock() const noexcept override { return is_local; }
    std::size_t steps = 0;
    bool is_local = false;
  };
  VirtualClock time;
  const auto store = make_virtual_store(time);
  Counted counted(*store);
  const TokenBucket bucket(counted, "x", Quota::per(5, 1h).burst(5));
  for (const bool is_local : {false, true}) {
    for (const bool across : {true, false}) {
      counted.is_local = is_local;
      bucket.set_wait_queue({.across_processes = across});
      bucket.reward("a", 1);
      CHECK(counted.steps == (across && !is_local ? 2 : 1));
    }
  }
}

TEST_CASE("who waits for one key is woken after those of another have left", "[waiting][wake]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  const TokenBucket bucket(*store, "x", Quota::per(5, 1h).burst(5));
  int granted = 0;
  const auto wait = [&](const char* key) {
    static_cast<void>(bucket.try_acquire(key, 5));
    return wait_for(bucket, request_of(bucket, key), Deadline::never(),
                    [&](std::error_code error, const auto&) { granted += !error; });
  };
  const auto one = wait("a");
  const auto two = wait("b");
  two->cancel();
  bucket.reward("b", 1);
  CHECK(granted == 0);
  bucket.reward("a", 1);
  CHECK(granted == 1);
  const auto three = wait("b");
  bucket.reward("b", 1);
  CHECK(granted == 2);
}

TEST_CASE("who waits for a bucket that got less than it waits for asks when the rest is there",
          "[waiting][wake]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore wire(*store);
  const TokenBucket bucket(wire, "x", Quota::per_second(1).burst(10));
  bucket.set_wait_queue({.recheck = 1h});
  Reservation spent = bucket.reserve("a", 10, 0s);
  const Time start = time.now();
  Time granted{};
  const auto call = wait_for(bucket, request_of(bucket, "a", 8), Deadline::never(),
                             [&](std::error_code, const auto&) { granted = time.now(); });
  time.advance(1s);
  const auto before = wire.counts().calls;
  SECTION("by a settlement") {
    bucket.settle("a", spent, 6);
    time.advance(3s - 1us);
    CHECK(granted == Time{});
    CHECK(wire.counts().calls == before + 1);
    time.advance(1us);
    CHECK(granted - start == 4s);
  }
  SECTION("by several") {
    bucket.reward("a", 1);
    bucket.reward("a", 1);
    bucket.refund("a", spent, 1);
    CHECK(wire.counts().calls == before + 3);
    time.advance(4s);
    CHECK(granted - start == 5s);
  }
  SECTION("or all") {
    bucket.reward("a", 7);
    CHECK(granted - start == 1s);
  }
  CHECK(wire.counts().calls <= before + 4);
}

TEST_CASE("who waits under a quota that is raised waits as long as the new one says",
          "[waiting][wake]") {
  for (const int waits : {0, 1}) {
    Processes<SharedTokenBucket> two(2, {});
    two.limiter(0).configure("a", Quota::per(5, 1h).burst(5));
    REQUIRE(two.limiter(0).try_acquire("a", 5));
    two.wait(waits, 1);
    two.time.advance(10ms);
    two.limiter(0).configure("a", Quota::per(4, 1s).burst(5));
    CHECK(two.grants.empty());
    two.time.advance(1s);
    REQUIRE(two.grants.size() == 1);
    CHECK(two.grants[0].second <= 10ms + 250ms);
    CHECK(two.grants[0].second >= 10ms + 249ms);
  }
}

TEST_CASE("a wait line that cannot be read does not keep a refund from being made",
          "[waiting][wake]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore wire(*store);
  const TokenBucket bucket(wire, "x", Quota::per(5, 1h).burst(5));
  Reservation held = bucket.reserve("a", 5, 0s);
  // Something else has the key of the wait line.
  const std::string line = detail::wait_line_name(bucket.refund_step("a", held, 1).key);
  const SlotLock other(*store, "y", 1h);
  REQUIRE(other.try_acquire(Key{"a", line}));
  std::error_code error;
  CHECK(bucket.refund("a", held, 3, error) == 3);
  CHECK(!error);
  CHECK(held.granted == 2);
  CHECK(bucket.peek("a").remaining == 3);
}

TEST_CASE("a settlement that charges more wakes no other process", "[waiting][wake]") {
  Processes<TokenBucket> two(2, {.recheck = 1h}, Quota::per(5, 1h).burst(5));
  Reservation held = two.limiter(0).reserve("a", 4, 0s);
  two.wait(1, 1, 3);
  two.limiter(0).settle("a", held, 5);
  CHECK(two.notices() == 0);
  two.limiter(0).reward("a", 1);
  CHECK(two.notices() == 1);
}

TEST_CASE("the first looks again a recheck after the last answer, whichever caller had that",
          "[waiting][wake]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore wire(*store);
  const TokenBucket bucket(wire, "x", Quota::per(1, 1h).burst(1));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1s});
  const auto wait = [&] {
    return wait_for(bucket, request_of(bucket, "a"), Deadline::never(),
                    [](std::error_code, const auto&) {});
  };
  REQUIRE(bucket.try_acquire("a"));
  const auto first = wait();
  const auto second = wait();
  const auto third = wait();
  time.advance(300ms);
  bucket.reward("a", 1);
  CHECK(first->times_over() == 1);
  const auto asked = [&, before = wire.counts().calls] { return wire.counts().calls - before; };
  time.advance(1s - 1us);
  CHECK(asked() == 0);
  time.advance(1us);
  CHECK(asked() == 1);
  time.advance(500ms);
  second->cancel();
  time.advance(500ms - 1us);
  CHECK(asked() == 1);
  time.advance(1us);
  CHECK(asked() == 2);
  third->cancel();
}

TEST_CASE("no wake-up is missed by who begins to wait meanwhile", "[waiting][wake][threads]") {
  const auto store = make_memory_store();
  const TokenBucket bucket(*store, "x", Quota::per(1, 24h));
  REQUIRE(bucket.try_acquire("a"));
  const std::size_t rounds = scaled(2'000, 500);
  std::atomic<std::size_t> granted = 0;
  std::thread waits([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      std::error_code error;
      if (!bucket.acquire("a", 1, Deadline::never(), {}, error)) return;
      ++granted;
    }
  });
  std::size_t missed = 0;
  std::size_t woken = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    // At another moment of the other thread's call each time.
    for (std::size_t pause = 0; pause < i % 50 * 20 && bucket.waiting("a") == 0; ++pause) {
    }
    if (i % 50 > 25 && bucket.waiting("a") == 1) ++woken;
    bucket.reward("a", 1);
    const auto end = std::chrono::steady_clock::now() + 20s;
    for (int spins = 0; granted <= i && std::chrono::steady_clock::now() < end; ++spins) {
      if (spins > 1'000) std::this_thread::yield();
    }
    if (granted <= i) {
      ++missed;
      break;
    }
  }
  bucket.cancel_waits();
  waits.join();
  CHECK(missed == 0);
  CHECK(woken > 0);
}

}  // namespace sluice::test
