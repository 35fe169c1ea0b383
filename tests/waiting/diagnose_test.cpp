// diagnose(): what it tells of those who wait, and whether that comes true. Threading: everything
// on the thread that moves the clock.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/processes.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// Callers of one process.
struct Callers {
  template <class L>
  void wait(const L& limiter, const Wanted& wanted, detail::Caller caller = {},
            const Deadline& deadline = Deadline::never()) {
    hold(wait_for(
        limiter, wanted, deadline, [](std::error_code, const auto&) {}, std::move(caller)));
  }
  void wait(const std::vector<Claim>& claims) {
    auto probe = std::make_shared<Probe<Several>>(detail::limits_of(claims), Deadline::never(),
                                                  detail::Caller{});
    probe->start([](std::error_code, const Grants&) {});
    hold(probe);
  }
  void wait(const FirstOf& alternatives) {
    hold(wait_for(alternatives, Deadline::never(), [](std::error_code, const Grants&) {}));
  }
  template <class P>
  void hold(std::shared_ptr<P> probe) {
    end.emplace_back([probe] { probe->cancel(); });
  }
  void cancel() const {
    for (const auto& each : end) each();
  }
  ~Callers() { cancel(); }

  std::vector<std::function<void()>> end;
};

std::vector<std::string> texts(const std::vector<WaitingCall>& calls) {
  std::vector<std::string> all;
  for (const WaitingCall& call : calls) all.push_back(to_string(call));
  return all;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("who waits is told by key, in order, and until when at the earliest",
          "[waiting][diagnose]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "api", Quota::per_second(1).burst(1));
  CHECK(diagnose(bucket).empty());
  (void)bucket.try_acquire("alice");
  (void)bucket.try_acquire("bob");
  Callers callers;
  callers.wait(bucket, {"bob", 1});
  clock.advance(250ms);
  callers.wait(bucket, {"alice", 1});
  clock.advance(250ms);
  callers.wait(bucket, {"alice", 1}, {.priority = -1});
  callers.wait(bucket, {"alice", 1}, {.flow = "batch"});

  const auto calls = diagnose(bucket);
  CHECK(texts(calls) ==
        Texts{"api of alice: waiting 250 ms for 1 unit, at least 500 ms more",
              "api of alice: waiting 0 s for 1 unit, behind 1 call, at least 1.5 s more, flow "
              "batch",
              "api of alice: waiting 0 s for 1 unit, behind 2 calls, at least 1.5 s more, "
              "priority -1",
              "api of bob: waiting 500 ms for 1 unit, at least 500 ms more"});
  CHECK(calls[0].at == clock.now());
  CHECK(calls[3].waited == 500ms);

  callers.end[1]();  // alice's first
  callers.end[0]();  // bob's only one
  clock.advance(500ms);
  CHECK(texts(diagnose(bucket)) ==
        Texts{"api of alice: waiting 500 ms for 1 unit, at least 1 s more, priority -1"});
  clock.advance(1s);
  CHECK(diagnose(bucket).empty());
}

TEST_CASE("a place that may be released at any time has no earliest time", "[waiting][diagnose]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const ConcurrencyLimiter jobs(*store, "jobs", 1, {.ttl = 1h});
  const auto held = jobs.try_acquire("a");
  Callers callers;
  callers.wait(jobs, {"a", 1});
  callers.wait(jobs, {"a", 1});
  CHECK(texts(diagnose(jobs)) == Texts{"jobs of a: waiting 0 s for 1 unit",
                                       "jobs of a: waiting 0 s for 1 unit, behind 1 call"});
}

TEST_CASE("a call of several limits waits for the one that has refused it", "[waiting][diagnose]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket fast(*store, "fast", Quota::per_second(2).burst(1));
  const TokenBucket slow(*store, "slow", Quota::per_minute(1).burst(1));
  const Gates gates(*store, "gates", {"account"});
  const Scope account = gates.scope("account", "acme");
  (void)slow.try_acquire("a");
  Callers callers;
  callers.wait({{fast, "a"}, {slow, "a"}});
  CHECK(diagnose(fast).empty());
  CHECK(texts(diagnose(slow)) == Texts{"slow of a: waiting 0 s for 1 unit, at least 1 min more"});

  gates.close(account, 90s);
  callers.wait({{fast, "b"}, {gates, account}});
  clock.advance(30s);
  CHECK(texts(diagnose(gates)) ==
        Texts{"gates of account=acme: waiting 30 s for 1 unit, at least 1 min more"});

  const Call call{{fast, "a"}, {slow, "a"}, {gates, account}};
  CHECK(texts(diagnose(call)) ==
        Texts{"gates of account=acme: waiting 30 s for 1 unit, at least 1 min more",
              "slow of a: waiting 30 s for 1 unit, at least 30 s more"});
  CHECK(diagnose(Call{{slow, "another key"}, {fast, "a"}}).empty());
}

TEST_CASE("a call that keeps its turn elsewhere is ahead there, and waits since it came",
          "[waiting][diagnose]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket first(*store, "first", Quota::per(1, 10s).burst(1));
  const TokenBucket second(*store, "second", Quota::per(1, 1s).burst(5));
  (void)first.try_acquire("a");
  Callers callers;
  callers.wait({{first, "a"}, {second, "a", 5}});
  callers.wait(first, {"a", 1});
  clock.advance(10s - Span{1});
  (void)second.try_acquire("a", 5);
  clock.advance(Span{1});
  CHECK(texts(diagnose(second)) ==
        Texts{"second of a: waiting 10 s for 5 units, at least 4.999999 s more"});
  CHECK(texts(diagnose(first)) == Texts{"first of a: waiting 10 s for 1 unit, behind 1 call"});
}

TEST_CASE("while the store is asked, or away, no earliest time is known", "[waiting][diagnose]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  Wire wire(*inner, clock, 1);
  const TokenBucket bucket(wire, "api", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.across_processes = false});
  (void)bucket.try_acquire("a");
  wire.slowest = 1ms;
  Callers callers;
  callers.wait(bucket, {"a", 1});
  clock.advance(10ms);
  callers.wait(bucket, {"a", 1}, {.priority = 1});
  const auto asking = diagnose(bucket);
  REQUIRE(asking.size() == 2);
  CHECK(asking[0].is_asking);
  CHECK_FALSE(asking[0].at_least);
  callers.cancel();
  clock.advance(10ms);  // the answer comes

  testing::FaultyStore faulty(*inner);
  faulty.fail_all(testing::Fault::not_executed());
  CircuitBreaker breaker(clock);
  const auto local = make_virtual_store(clock);
  FallbackStore store(faulty, breaker, FailurePolicy::local(*local, 1));
  const TokenBucket degraded(store, "degraded", Quota::per_second(1).burst(1));
  (void)degraded.try_acquire("a");
  callers.wait(degraded, {"a", 1});
  CHECK(texts(diagnose(degraded)) == Texts{"degraded of a: waiting 0 s for 1 unit"});
}

TEST_CASE("whatever the names contain, a call is one line", "[waiting][diagnose]") {
  CHECK(
      to_string(WaitingCall{.limiter = "a b", .key = "x\ny", .flow = "\xff", .is_asking = true}) ==
      "a%20b of x%0ay: waiting 0 s for 1 unit, flow %ff, the store is asked");
}

TEST_CASE("each alternative waits by itself, and a call tells of all", "[waiting][diagnose]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "api", Quota::per_second(1).burst(1));
  (void)bucket.try_acquire("a");
  (void)bucket.try_acquire("b");
  const auto keys = first_of({{{bucket, "a"}}, {{bucket, "b"}}, {{bucket, "a"}}});
  Callers callers;
  callers.wait(keys);
  const Call call(keys);
  const auto calls = diagnose(call);
  CHECK(calls.size() == 3);  // of "a" two: each alternative is in the queue
  CHECK(std::ranges::count(calls, "b", &WaitingCall::key) == 1);
  clock.advance(1s);
  CHECK(diagnose(call).empty());
}

TEST_CASE("a request at the store, and what other processes take first, are told",
          "[waiting][diagnose]") {
  Processes<TokenBucket> two(2, {}, Quota::per_minute(1).burst(5));
  (void)TokenBucket(*two.store, "x", Quota::per_minute(1).burst(5)).try_acquire("a", 5);
  two.wire(1).slowest = 10ms;
  two.wait(0, 0, 4);
  two.time.advance(10s);
  two.wait(1, 1);
  CHECK(diagnose(two.limiter(1)).at(0).is_asking);
  two.time.advance(10s);
  const auto calls = diagnose(two.limiter(1));
  REQUIRE(calls.size() == 1);
  CHECK_FALSE(calls[0].is_asking);
  CHECK(calls[0].ahead_elsewhere == 4);
  CHECK(calls[0].ahead == 0);
  CHECK(to_string(calls[0]).find("behind 4 units of other processes") != std::string::npos);
  CHECK(diagnose(two.limiter(0)).at(0).ahead_elsewhere == 0);
  two.probes[0]->cancel();
  two.time.advance(1min);
  CHECK(diagnose(two.limiter(1)).empty());
}

TEST_CASE("random programs: calls are served as told, and not before", "[waiting][diagnose]") {
  Random random("random programs: calls are served as told, and not before");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(300); ++program) {
    INFO("program " << program);
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const TokenBucket bucket(*store, "api", Quota::per_second(4).burst(7));
    bucket.set_wait_queue({.lower_share = 0});
    std::vector<int> served;
    std::map<int, Time> at;
    std::vector<std::shared_ptr<Probe<TokenBucket>>> probes;
    (void)bucket.try_acquire("a", 7);
    const auto come = [&](int name) {
      detail::Caller caller{.priority = static_cast<int>(random.between(-1, 1)),
                            .flow = std::string(1, static_cast<char>('a' + random.below(3))),
                            .weight = static_cast<int>(random.between(1, 4))};
      probes.push_back(wait_for(
          bucket, {"a", static_cast<Word>(random.between(1, 7))}, Deadline::never(),
          [&, name](std::error_code error, const Reservation& grant) {
            if (error || !grant) return;
            served.push_back(name);
            at[name] = clock.now();
          },
          caller));
    };
    // Each is known by the time at which it came.
    std::map<Time, int> came;
    for (int name = 0; name < 20; ++name) {
      came[clock.now()] = name;
      come(name);
      clock.advance(Span{random.between(1, 900'000)});
      if (random.one_in(6)) probes[random.below(probes.size())]->cancel();
    }
    const auto calls = diagnose(bucket);
    served.clear();
    std::vector<int> told;
    for (const WaitingCall& call : calls) {
      CHECK(call.ahead == told.size());
      told.push_back(came.at(call.at - call.waited));
    }
    clock.advance(10min);
    CHECK(served == told);
    CAPTURE(texts(calls));
    bool is_first = true;
    for (const WaitingCall& call : calls) {
      REQUIRE(call.at_least);
      const Time granted = at.at(came.at(call.at - call.waited));
      INFO(call << ", granted after " << (granted - call.at).count() << " us");
      CHECK(granted >= call.at + *call.at_least);
      if (std::exchange(is_first, false)) CHECK(granted == call.at + *call.at_least);
    }
  }
}

}  // namespace sluice::test
