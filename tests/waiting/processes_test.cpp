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
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr Span ttl = 3s;

WaitQueueOptions shared_line(std::int64_t client) {
  WaitQueueOptions options;
  options.across_processes = true;
  options.ticket_ttl = ttl;
  options.client = client;
  return options;
}

using Grants = std::vector<std::pair<int, Span>>;

/// Processes that share one store and one limit.
template <class L>
class Processes {
  VirtualClock time_;
  std::unique_ptr<Store> store_ = make_virtual_store(time_);
  std::vector<std::unique_ptr<testing::FaultyStore>> wires_;
  std::vector<std::unique_ptr<L>> limiters_;
  std::vector<std::shared_ptr<Probe<L>>> probes_;

 public:
  VirtualClock& time = time_;
  const Time start = time.now();
  Grants grants;
  std::vector<int> over;  // without a grant
  using Grant = typename L::Grant;
  std::map<int, std::unique_ptr<Grant>> held;

  template <class... Args>
  explicit Processes(int count, Args... args) {
    for (int i = 0; i < count; ++i) {
      wires_.push_back(std::make_unique<testing::FaultyStore>(*store_));
      limiters_.push_back(std::make_unique<L>(*wires_.back(), "x", args...));
      limiters_.back()->set_wait_queue(shared_line(i + 1));
    }
  }

  /// Starts to wait; grants are written down under `name`, and kept.
  std::shared_ptr<Probe<L>> wait(int process, int name, Cost cost = 1,
                                 const Deadline& deadline = Deadline::never(), int priority = 0,
                                 std::string flow = {}) {
    auto probe = wait_for(limiter(process), request_of(limiter(process), "a", cost), deadline,
                          [this, name](std::error_code error, Grant grant) {
                            if (error || !grant) return over.push_back(name);
                            grants.emplace_back(name, time.now() - start);
                            held[name] = std::make_unique<Grant>(std::move(grant));
                          },
                          {.priority = priority, .flow = std::move(flow)});
    probes_.push_back(probe);
    return probe;
  }

  /// Not by erase(): who is granted meanwhile is put into the map.
  void refund(int name) { held.extract(name); }
  L& limiter(int process) { return *limiters_.at(static_cast<std::size_t>(process)); }
  /// Nothing of this process reaches the store any more, and it hears nothing.
  void kill(int process) {
    auto& wire = *wires_.at(static_cast<std::size_t>(process));
    wire.fail_all(testing::Fault::not_executed(Errc::not_connected));
    wire.lose_wake_ups();
    limiter(process).cancel_waits();
  }
  void lose_wake_ups() {
    for (auto& wire : wires_) wire->lose_wake_ups();
  }
  [[nodiscard]] std::uint64_t operations() const {
    std::uint64_t sum = 0;
    for (const auto& wire : wires_) sum += wire->counts().calls;
    return sum;
  }
  [[nodiscard]] std::vector<int> order() const {
    std::vector<int> names;
    for (const auto& [name, at] : grants) names.push_back(name);
    return names;
  }
};

std::vector<int> numbers(int first, int last) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("processes are served in the order in which their callers came", "[waiting][processes]") {
  Processes<FixedWindow> p(3, 2, Calendar::every(1min));
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
  Processes<ConcurrencyLimiter> p(3, 2, LeaseOptions{.ttl = 10min});
  for (int i = 0; i < 12; ++i) {
    p.wait(i * 5 % 3, i);
    p.time.advance(1ms);
  }
  // Each is given back a second after it was granted: then the next has it, at this instant.
  for (int i = 0; i < 12; i += 2) {
    REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 2));
    const Span before = p.time.now() - p.start;
    p.refund(i);
    p.refund(i + 1);
    if (i + 2 < 12) {
      REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 4));
      CHECK(p.grants.back().second == before);
    }
    p.time.advance(1s);
  }
  CHECK(p.order() == numbers(0, 11));
}

TEST_CASE("seven processes share five places in turn", "[waiting][processes][leases]") {
  Random random("seven processes share five places in turn");
  CAPTURE(random.repeat());
  Processes<ConcurrencyLimiter> p(7, 5, LeaseOptions{.ttl = 10min});
  std::array<int, 7> served{};
  std::array<Time, 7> came{};
  std::multimap<Time, int> ends;
  Span longest{0};
  std::size_t seen = 0;
  const auto come = [&](int process) {
    came[static_cast<std::size_t>(process)] = p.time.now();
    p.wait(process, process);
  };
  for (int process = 0; process < 7; ++process) come(process);
  while (p.time.now() - p.start < 10min) {
    for (; seen < p.grants.size(); ++seen) {
      const int process = p.grants[seen].first;
      const auto index = static_cast<std::size_t>(process);
      ++served[index];
      longest = std::max(longest, p.time.now() - came[index]);
      ends.emplace(p.time.now() + Span{random.between(300'000, 1'800'000)}, process);
    }
    p.time.set(ends.begin()->first);
    const int process = ends.begin()->second;
    ends.erase(ends.begin());
    p.refund(process);
    come(process);
  }
  for (const auto& [end, process] : ends) p.refund(process);
  p.time.advance(1s);
  CHECK(longest <= 1'800ms);
  const auto [least, most] = std::ranges::minmax(served);
  CHECK(10 * (most - least) <= 2 * most);
}

TEST_CASE("a process that reserves ahead keeps the limit beside those that wait, and comes first",
          "[waiting][processes]") {
  Processes<TokenBucket> p(2, Quota::per_second(10).burst(1));
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

TEST_CASE("a lease that a process without waiters gives back wakes the right one elsewhere",
          "[waiting][processes][leases]") {
  Processes<ConcurrencyLimiter> p(4, 1, LeaseOptions{.ttl = 10min});
  p.wait(3, 0);
  for (int i = 1; i <= 3; ++i) {
    p.time.advance(100ms);
    p.wait(3 - i, i);
  }
  p.time.advance(55'500us);
  for (int i = 0; i < 3; ++i) {
    p.refund(i);
    REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 2));
    CHECK(p.grants.back() == std::pair{i + 1, p.time.now() - p.start});
    p.time.advance(777ms);
  }
}

TEST_CASE("a lease that is given back by its id wakes who waits in another process",
          "[waiting][processes][leases]") {
  Processes<ConcurrencyLimiter> p(2, 1, LeaseOptions{.ttl = 10min});
  const LeaseId id{1, 2};
  Lease lease = p.limiter(0).try_acquire("a", 1, id);
  p.wait(1, 1);
  p.time.advance(123ms);
  CHECK(p.limiter(0).release("a", id));
  CHECK(p.grants == Grants{{1, 123ms}});
}

TEST_CASE("a lease that expires goes to the first waiter when it does, in whichever process",
          "[waiting][processes][leases]") {
  Processes<ConcurrencyLimiter> p(2, 1, LeaseOptions{.ttl = 10s});
  p.wait(0, 0);
  static_cast<void>(p.held.at(0)->renew());
  p.wait(1, 1);
  p.time.advance(1h);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back() == std::pair{1, Span{10s}});
}

TEST_CASE("a big request is not starved by small ones of another process", "[waiting][processes]") {
  Processes<FixedWindow> p(2, 10, Calendar::every(1min));
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
  Processes<FixedWindow> p(2, 100, Calendar::every(1min));
  for (int i = 0; i < 50; ++i) p.wait(i % 2, i);
  CHECK(p.grants.size() == 50);
  CHECK(p.operations() == 50);
}

TEST_CASE("a dead process is passed over when its ticket ends", "[waiting][processes]") {
  Processes<ConcurrencyLimiter> p(3, 1, LeaseOptions{.ttl = 10min});
  p.wait(2, 0);
  p.time.advance(1ms);
  p.wait(0, 1);  // enters, and renews its ticket at three quarters of the TTL
  p.time.advance(1ms);
  p.wait(1, 2);
  p.time.advance(ttl);
  p.kill(0);
  const Span renewed = 1ms + ttl * 3 / 4;
  p.time.advance(10ms);
  p.refund(0);
  p.time.advance(1h);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back().first == 2);
  CHECK(p.grants.back().second == renewed + ttl);
}

TEST_CASE("who is dead when a window begins keeps those behind it waiting for one TTL",
          "[waiting][processes]") {
  Processes<FixedWindow> p(2, 1, Calendar::every(1min));
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
    Processes<TokenBucket> p(3, Quota::per_second(10).burst(1));
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

TEST_CASE("a cancelled caller blocks nobody, in its process or another", "[waiting][processes]") {
  Processes<ConcurrencyLimiter> p(3, 1, LeaseOptions{.ttl = 10min});
  p.wait(2, 0);
  std::vector<std::shared_ptr<Probe<ConcurrencyLimiter>>> first;
  first.push_back(p.wait(0, 1));
  p.time.advance(1ms);
  p.wait(1, 2);
  p.time.advance(1ms);
  first.push_back(p.wait(0, 3));
  p.time.advance(1s);
  first[0]->cancel();
  p.refund(0);
  REQUIRE(p.grants.size() == 2);
  CHECK(p.grants.back() == std::pair{2, p.time.now() - p.start});
  first[1]->cancel();  // the last of its process
  p.time.advance(1ms);
  p.wait(2, 4);
  p.refund(2);
  REQUIRE(p.grants.size() == 3);
  CHECK(p.grants.back() == std::pair{4, p.time.now() - p.start});
}

TEST_CASE("a process has its place by those who wait there, also after one of them has left",
          "[waiting][processes]") {
  Processes<TokenBucket> p(2, Quota::per(1, 3s).burst(4));
  static_cast<void>(p.limiter(0).try_acquire("a", 4));
  p.wait(0, 1);
  p.time.advance(1ms);
  p.wait(1, 2, 4);
  const auto interactive = p.wait(1, 3, 1, Deadline::never(), 1);
  p.time.advance(2s);  // the first process has looked again, and is behind
  interactive->cancel();
  p.time.advance(20s);
  CHECK(p.grants == Grants{{1, 3s}, {2, 15s}});
}

TEST_CASE("a deadline holds to the tick, whoever stands before", "[waiting][processes]") {
  Processes<ConcurrencyLimiter> p(2, 1, LeaseOptions{.ttl = 10min});
  p.wait(0, 0);
  p.wait(0, 1);
  p.wait(1, 2, 1, 5s);
  p.time.advance(5s - 1us);
  CHECK(p.over.empty());
  p.time.advance(1us);
  CHECK(p.over == std::vector{2});
  p.refund(0);
  CHECK(p.order() == std::vector{0, 1});
}

TEST_CASE("a priority counts over all processes", "[waiting][processes]") {
  Processes<FixedWindow> p(2, 1, Calendar::every(1min));
  p.wait(0, 0);
  p.wait(0, 1);
  p.time.advance(1s);
  p.wait(1, 2, 1, Deadline::never(), 2);
  p.wait(1, 3);
  p.time.advance(1h);
  CHECK(p.order() == std::vector{0, 2, 1, 3});
}

TEST_CASE("a process has its turn by the highest priority that waits there, while it waits",
          "[waiting][processes]") {
  Processes<FixedWindow> p(3, 1, Calendar::every(1min));
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
  Processes<FixedWindow> p(2, 1, Calendar::every(1min));
  WaitQueueOptions options = shared_line(1);
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
    Processes<FixedWindow> p(3, 10, Calendar::every(1min));
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
    Processes<ConcurrencyLimiter> p(3, 1, LeaseOptions{.ttl = 10min});
    p.lose_wake_ups();
    for (int i = 0; i < 9; ++i) p.wait(i % 3, i);
    for (int i = 0; i < 9; ++i) {
      REQUIRE(p.grants.size() == static_cast<std::size_t>(i + 1));
      p.refund(p.grants.back().first);
      p.time.advance(ttl);
    }
  }
}

TEST_CASE("waiters that come, go, and die at random are each over once, and the queue goes on",
          "[waiting][processes]") {
  Random random(
      "waiters that come, go, and die at random are each over once, and the queue goes on");
  CAPTURE(random.repeat());
  for (std::size_t history = 0; history < scaled(20); ++history) {
    INFO("history " << history);
    const std::uint64_t flows = 1 + random.below(3);
    Processes<ConcurrencyLimiter> p(4, 3, LeaseOptions{.ttl = 20s});
    std::vector<std::shared_ptr<Probe<ConcurrencyLimiter>>> all;
    bool dead = false;
    for (int i = 0; i < 300; ++i) {
      const int process = static_cast<int>(random.below(dead ? 3 : 4));
      all.push_back(p.wait(
          process, i, random.between(1, 3),
          random.one_in(4) ? Deadline(Span{random.between(0, 9'000'000)}) : Deadline::never(),
          static_cast<int>(random.between(-1, 1)), std::to_string(random.below(flows))));
      if (random.one_in(3)) all[random.below(all.size())]->cancel();
      while (!p.held.empty() && random.one_in(2)) p.refund(p.held.begin()->first);
      if (random.one_in(2)) p.time.advance(Span{random.between(0, 2'000'000)});
      if (!dead && random.one_in(200)) {
        dead = true;
        p.kill(3);
      }
    }
    for (int i = 0; i < 400; ++i) {
      while (!p.held.empty()) p.refund(p.held.begin()->first);
      p.time.advance(1s);
    }
    for (const auto& probe : all) REQUIRE(probe->times_over() == 1);
  }
}

TEST_CASE("on every store of several processes, these are served in the order of their callers",
          "[waiting][processes]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    if (!store.keeps_order()) return;  // it has one process
    std::vector<std::unique_ptr<FixedWindow>> limits;
    for (int i = 0; i < 3; ++i) {
      limits.push_back(std::make_unique<FixedWindow>(store, "x", 1, Calendar::every(1min)));
      limits.back()->set_wait_queue(shared_line(i + 1));
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
    here.set_wait_queue(shared_line(1));
    there.set_wait_queue(shared_line(2));
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
