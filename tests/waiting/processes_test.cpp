// Lines across processes: several limiters of one name on one store are as many processes. All in
// virtual time.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"
#include "tests/waiting/processes.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr Span ttl = 3s;
constexpr WaitQueueOptions line{.ticket_ttl = ttl};

std::vector<int> numbers(int first, int last) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("processes are served in the order in which their callers came", "[waiting][processes]") {
  Processes<FixedWindow> p(3, line, 2, Calendar::every(1min));
  for (int i = 0; i < 30; ++i) {
    p.wait(i * 7 % 3, i);
    p.time.advance(1ms);
  }
  p.time.advance(1h);
  CHECK(p.order() == numbers(0, 29));
  for (const auto& [name, at] : p.grants) CHECK(at == (name < 2 ? name * 1ms : name / 2 * 1min));
}

TEST_CASE("leases go to the callers in the order in which they came, in whichever process",
          "[waiting][processes][leases]") {
  Processes<ConcurrencyLimiter> p(3, line, 2, LeaseOptions{.ttl = 10min});
  for (int i = 0; i < 12; ++i) {
    p.wait(i * 5 % 3, i);
    p.time.advance(1ms);
  }
  // Each is given back a second after it was granted: then the next has it, at this instant.
  for (int i = 0; i < 12; i += 2) {
    REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 2));
    const Span before = p.time.now() - p.start;
    p.give_back(i);
    p.give_back(i + 1);
    if (i + 2 < 12) {
      REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 4));
      CHECK(p.grants.back().second == before);
    }
    p.time.advance(1s);
  }
  CHECK(p.order() == numbers(0, 11));
}

TEST_CASE("a process that reserves ahead keeps the limit beside those that wait, and comes first",
          "[waiting][processes]") {
  Processes<TokenBucket> p(2, line, Quota::per_second(10).burst(1));
  int reserved = 0;
  for (int i = 0; i < 600; ++i) {
    p.wait(0, i);
    // Half of what the limit grants, up to a second ahead.
    if (i % 2 == 0) reserved += p.limiter(1).reserve("a", 1, 1s).allowed;
    p.time.advance(100ms);
  }
  CHECK(reserved == 300);
  CHECK(p.grants.size() + 300 <= 601);
  CHECK(p.grants.size() + 300 >= 590);
  p.limiter(0).cancel_waits();
}

TEST_CASE("a lease that expires goes to the first waiter when it does, in whichever process",
          "[waiting][processes][leases]") {
  Processes<ConcurrencyLimiter> p(2, line, 1, LeaseOptions{.ttl = 10s});
  p.wait(0, 0);
  static_cast<void>(p.held.at(0)->renew());
  p.wait(1, 1);
  p.time.advance(1h);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back() == std::pair{1, Span{10s}});
}

TEST_CASE("a big request is not starved by small ones of another process", "[waiting][processes]") {
  Processes<FixedWindow> p(2, line, 10, Calendar::every(1min));
  for (int i = 0; i < 6; ++i) p.wait(1, i);
  p.time.advance(1ms);
  p.wait(0, 100, 10);  // all of a window
  for (int i = 6; i < 40; ++i) {
    p.time.advance(1s);
    p.wait(1, i);
  }
  p.time.advance(1h);
  REQUIRE(p.grants.size() == 41);
  CHECK(p.grants.at(6) == std::pair{100, Span{1min}});
  CHECK(p.grants.at(7) == std::pair{6, Span{2min}});
}

TEST_CASE("without a caller before it a process asks once, and leaves no trace",
          "[waiting][processes]") {
  Processes<FixedWindow> p(2, line, 100, Calendar::every(1min));
  for (int i = 0; i < 50; ++i) p.wait(i % 2, i);
  CHECK(p.grants.size() == 50);
  CHECK(p.operations() == 50);
}

TEST_CASE("a dead process is passed over when its ticket ends", "[waiting][processes]") {
  Processes<ConcurrencyLimiter> p(3, line, 1, LeaseOptions{.ttl = 10min});
  p.wait(2, 0);
  p.time.advance(1ms);
  p.wait(0, 1);  // enters, and renews its ticket at three quarters of the TTL
  p.time.advance(1ms);
  p.wait(1, 2);
  p.time.advance(ttl);
  p.kill(0);
  const Span renewed = 1ms + ttl * 3 / 4;
  p.time.advance(10ms);
  p.give_back(0);
  p.time.advance(1h);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back().first == 2);
  CHECK(p.grants.back().second == renewed + ttl);
}

TEST_CASE("who is dead when a window begins keeps those behind it waiting for one TTL",
          "[waiting][processes]") {
  Processes<FixedWindow> p(2, line, 1, Calendar::every(1min));
  p.wait(0, 0);
  p.wait(0, 1);
  p.time.advance(1s);
  p.wait(1, 2);
  p.kill(0);
  p.time.advance(1min - 1s + ttl - 1us);
  CHECK(p.grants.size() == 1);
  p.time.advance(1us);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back() == std::pair{2, 1min + ttl});
}

TEST_CASE("who dies in a line of a bucket holds up those behind it for one TTL at most",
          "[waiting][processes]") {
  constexpr Span refill = 100ms;
  for (Span lived = 0s; lived < 2 * ttl; lived += 73ms) {
    CAPTURE(lived);
    Processes<TokenBucket> p(3, line, Quota::per_second(10).burst(1));
    for (int i = 0; i < 300; ++i) p.wait(i % 3, i);
    p.time.advance(lived);
    p.kill(0);
    p.time.advance(1min);
    REQUIRE(p.grants.size() + p.over.size() == 300);
    Span longest{0};
    for (std::size_t i = 1; i < p.grants.size(); ++i) {
      longest = std::max(longest, p.grants[i].second - p.grants[i - 1].second);
    }
    CHECK(longest <= ttl + refill);
  }
}

TEST_CASE("a look at those ahead that fails is not repeated at once", "[waiting][processes]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore wire(*store);
  const ConcurrencyLimiter ahead(*store, "x", 1, {.ttl = 10min});
  ConcurrencyLimiter behind(wire, "x", 1, {.ttl = 10min});
  behind.set_wait_queue({.recheck = 1h});
  const Lease held = ahead.try_acquire("a");
  const auto ignore = [](std::error_code, const Lease&) {};
  const auto first = wait_for(ahead, Wanted{"a", 1}, Deadline::never(), ignore);
  time.advance(1ms);
  const auto second = wait_for(behind, Wanted{"a", 1}, Deadline::never(), ignore);
  time.advance(1ms);
  wire.fail_all(testing::Fault::not_executed(Errc::not_connected).late(1us));
  const std::uint64_t calls = wire.counts().calls;
  time.advance(10s);
  CHECK(wire.counts().calls - calls <= 10);
  CHECK(wire.counts().calls - calls >= 2);
  ahead.cancel_waits();
  behind.cancel_waits();
}

TEST_CASE("a process has its place by those who wait there, also after one of them has left",
          "[waiting][processes]") {
  Processes<TokenBucket> p(2, line, Quota::per(1, 3s).burst(4));
  static_cast<void>(p.limiter(0).try_acquire("a", 4));
  p.wait(0, 1);
  p.time.advance(1ms);
  p.wait(1, 2, 4);
  const auto interactive = p.wait(1, 3, 1, Deadline::never(), 1);
  p.time.advance(2s);  // the first process has looked again, and is behind
  interactive->cancel();
  p.time.advance(20s);
  CHECK(p.grants == Granted{{1, 3s}, {2, 15s}});
}

TEST_CASE("a deadline holds to the tick, whoever stands before", "[waiting][processes]") {
  Processes<ConcurrencyLimiter> p(2, line, 1, LeaseOptions{.ttl = 10min});
  p.wait(0, 0);
  p.wait(0, 1);
  p.wait(1, 2, 1, 5s);
  p.time.advance(5s - 1us);
  CHECK(p.over.empty());
  p.time.advance(1us);
  CHECK(p.over == std::vector{2});
  p.give_back(0);
  CHECK(p.order() == std::vector{0, 1});
}

TEST_CASE("a process has its turn by the highest priority that waits there, while it waits",
          "[waiting][processes]") {
  Processes<FixedWindow> p(3, line, 1, Calendar::every(1min));
  const auto wait = [&](int process, int name, int priority, const char* flow = "") {
    p.time.advance(1ms);
    return p.wait(process, name, 1, Deadline::never(), priority, flow);
  };
  p.wait(0, 0);
  wait(1, 1, 0);
  wait(0, 2, 0);
  wait(2, 3, -1);
  wait(2, 4, 3, "a");
  const auto gone = wait(0, 5, 2);
  wait(0, 6, 1);
  wait(2, 7, 3, "b");
  p.time.advance(30s);
  gone->cancel();
  p.time.advance(1h);
  CHECK(p.order() == std::vector{0, 4, 7, 6, 1, 2, 3});
}

TEST_CASE("a lower priority has its share in the turns of its process", "[waiting][processes]") {
  Processes<FixedWindow> p(2, line, 1, Calendar::every(1min));
  WaitQueueOptions options = {.ticket_ttl = ttl, .client = 1};
  options.lower_share = 50;
  p.limiter(0).set_wait_queue(options);
  const auto wait = [&](int process, int name, int priority) {
    p.time.advance(1ms);
    p.wait(process, name, 1, Deadline::never(), priority);
  };
  p.wait(0, 0);
  wait(0, 1, 1);
  wait(0, 2, 1);
  wait(0, 3, 0);
  wait(1, 4, 1);
  wait(1, 5, 1);
  p.time.advance(1h);
  CHECK(p.order() == std::vector{0, 1, 3, 2, 4, 5});
}

TEST_CASE("when every wake-up is lost, all are served all the same", "[waiting][processes]") {
  SECTION("at the windows of a calendar") {
    Processes<FixedWindow> p(3, line, 10, Calendar::every(1min));
    p.lose_wake_ups();
    for (int i = 0; i < 90; ++i) {
      p.wait(i % 3, i);
      p.time.advance(1us);
    }
    p.time.advance(1h);
    CHECK(p.order() == numbers(0, 89));
    // A window's ten are served within a few seconds of its beginning.
    for (const auto& [name, at] : p.grants) CHECK(at < name / 10 * 1min + 10s);
  }
  SECTION("when leases come back") {
    Processes<ConcurrencyLimiter> p(3, line, 1, LeaseOptions{.ttl = 10min});
    p.lose_wake_ups();
    for (int i = 0; i < 9; ++i) p.wait(i % 3, i);
    for (int i = 0; i < 9; ++i) {
      REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 1));
      p.give_back(p.grants.back().first);
      p.time.advance(ttl);
    }
  }
}

TEST_CASE("processes are served in the order of their callers, though the rate changes",
          "[waiting][preparation][processes]") {
  const bool changes = GENERATE(false, true);
  Processes<SharedSlidingWindow> p(2, line);
  const SharedSlidingWindow elsewhere(*p.store, "x");
  (void)elsewhere.configure("a", RateType::overall, 1, 1s);
  p.slow_down(GENERATE(Span{0}, Span{1ms}));
  std::vector<int> names;
  for (int i = 0; i < 20; ++i) {
    p.wait(i * 5 / 3 % 2, i);
    names.push_back(i);
    p.time.advance(20ms);
  }
  for (int i = 0; i < 400; ++i) {
    if (changes && i % 7 == 0) (void)elsewhere.configure("a", RateType::overall, 1 + i % 2, 1s);
    p.time.advance(100ms);
  }
  CHECK(p.order() == names);
  for (const auto& wire : p.wires) CHECK(wire->entries > 0);
}

TEST_CASE("clients with rates of their own do not wait for each other",
          "[waiting][preparation][processes]") {
  const bool was_overall = GENERATE(false, true);
  Processes<SharedSlidingWindow> p(2, line);
  const SharedSlidingWindow elsewhere(*p.store, "x");
  (void)elsewhere.configure("a", was_overall ? RateType::overall : RateType::per_client, 1, 1s);
  if (was_overall) {
    for (const int process : {0, 0, 1}) p.wait(process, -1);
    p.time.advance(10ms);
    (void)elsewhere.configure("a", RateType::per_client, 1, 1s);
    p.time.advance(10s);
    REQUIRE(p.grants.size() == 3);
  }
  for (int i = 0; i < 10; ++i) p.wait(0, i);
  p.time.advance(500ms);
  const Span before = p.time.now() - p.start;
  p.wait(1, 100);
  p.wait(1, 101);
  p.time.advance(20s);
  const auto at = [&](int name) {
    return std::ranges::find(p.grants, name, &std::pair<int, Span>::first)->second;
  };
  CHECK(at(100) == before);
  CHECK(at(101) == before + 1s);
  CHECK(at(9) <= before + 9s);
}

TEST_CASE("a rate that becomes one of each client ends their line",
          "[waiting][preparation][processes]") {
  Processes<SharedSlidingWindow> p(2, line);
  const SharedSlidingWindow elsewhere(*p.store, "x");
  (void)elsewhere.configure("a", RateType::overall, 1, 1s);
  for (int i = 0; i < 30; ++i) p.wait(0, i);
  p.time.advance(10ms);
  p.wait(1, 100);
  p.time.advance(10ms);
  (void)elsewhere.configure("a", RateType::per_client, 1, 1s);
  p.time.advance(6s);
  CHECK(std::ranges::count(p.order(), 100) == 1);
  p.time.advance(1h);
  CHECK(p.grants.size() == 31);
}

TEST_CASE("on every store of several processes, these are served in the order of their callers",
          "[waiting][processes]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    if (!store.keeps_order()) return;  // it has one process
    std::vector<std::unique_ptr<FixedWindow>> limits;
    for (int i = 0; i < 3; ++i) {
      limits.push_back(std::make_unique<FixedWindow>(store, "x", 1, Calendar::every(1min)));
      limits.back()->set_wait_queue({.ticket_ttl = ttl, .client = i + 1});
    }
    REQUIRE(limits[0]->try_acquire("a"));
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::string> errors;
    constexpr int count = 9;
    const auto call = [&](int i) {
      std::error_code error;
      const auto process = static_cast<std::size_t>(i * 2 % 3);
      const Decision granted = limits[process]->acquire("a", 1, Deadline::never(), {}, error);
      const std::lock_guard lock(mutex);
      if (granted) order.push_back(i);
      if (error) errors.push_back(error.message());
    };
    std::vector<std::jthread> callers;
    for (int i = 0; i + 1 < count; ++i) {
      const auto process = static_cast<std::size_t>(i * 2 % 3);
      const std::size_t before = limits[process]->waiting("a");
      callers.emplace_back([&, i] {
        const KnownThread known(clock);
        call(i);
      });
      while (limits[process]->waiting("a") == before) std::this_thread::yield();
      clock.advance(1ms);
    }
    {
      const VirtualClock::AutoAdvance moving(clock);
      call(count - 1);
    }
    for (const auto& limit : limits) limit->cancel_waits();  // whoever came behind the last
    callers.clear();
    CHECK(errors == std::vector<std::string>{});
    CHECK(order == numbers(0, count - 1));
  });
}

TEST_CASE("on every store, a lease wakes or is found by the first waiter of any process",
          "[waiting][processes][leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const ConcurrencyLimiter here(store, "x", 1, {.ttl = 10min});
    const ConcurrencyLimiter there(store, "x", 1, {.ttl = 10min});
    here.set_wait_queue({.ticket_ttl = ttl, .client = 1});
    there.set_wait_queue({.ticket_ttl = ttl, .client = 2});
    Lease held = here.try_acquire("a");
    std::atomic<bool> granted{false};
    std::atomic<bool> over{false};
    std::jthread waiting([&] {
      const Lease lease = there.acquire("a", 1, Deadline::never());
      granted = bool(lease);
      over = true;
    });
    while (clock.timers() == 0) std::this_thread::yield();
    const Time released = clock.now();
    REQUIRE(held.release());
    while (!over) {
      clock.advance(10ms);
      std::this_thread::yield();
    }
    CHECK(granted);
    CHECK(clock.now() >= released);
  });
}

}  // namespace sluice::test
