// Calls of several limits among others: their places in each order, what is left free, and what
// happens while they ask and move. Threading: everything on the thread that moves the clock.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// Calls `sent` before each request, and counts. Without order over processes. Calls that ask for
/// ever at one instant are told that the store has gone, so that the test ends.
class Tap final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    const Time now = clock().now();
    at_once_ = std::exchange(last_, now) == now ? at_once_ + 1 : 1;
    if (at_once_ > 1'000) return done.fail(Errc::not_connected);
    for (const Step& step : plan.steps()) ++of_key[std::string(step.key.tag())];
    if (sent) sent();
    StoreWrapper::execute(plan, std::move(done));
  }

  std::function<void()> sent;
  std::uint64_t operations = 0;
  std::map<std::string, int> of_key;

 private:
  Time last_{};
  int at_once_ = 0;
};

/// How a call ended.
struct Ended {
  Time came;
  int times = 0;
  bool is_granted = false;
  std::error_code error{};
  Time at{};
  int overtaken = 0;  // by later calls that were granted before
};

/// One process behind a wire, whose calls are numbered.
class Bench {
 public:
  using Waiting = std::shared_ptr<Probe<Several>>;

  explicit Bench(Span slowest = 0s) { wire.slowest = slowest; }
  ~Bench() {
    while (!held.empty()) release(held.begin()->first);
    for (const auto& stream : streams_) clock.cancel_timer(stream->timer);
    for (const auto& [name, waiting] : waiting_) waiting->cancel();
    tap.sent = {};
    clock.advance(1min);
    wire.slowest = 0s;
  }
  Bench(const Bench&) = delete;

  void wait(int name, const std::vector<Claim>& claims,
            const Deadline& deadline = Deadline::never(), const detail::Caller& caller = {}) {
    ends[name].came = clock.now();
    waiting_[name] = wait_for(
        Several{}, detail::limits_of(claims), deadline,
        [this, name](std::error_code error, Grants grants) { end(name, error, std::move(grants)); },
        caller);
  }
  void cancel(int name) {
    if (waiting_[name]) waiting_[name]->cancel();
  }
  void release(int name) {
    auto given = held.extract(name);
    if (given.empty()) return;
    for (std::size_t i = 0; i < given.mapped().size(); ++i) {
      if (is_place(given.mapped(), i)) given.mapped().get<Lease>(i).release_later();
    }
  }
  /// Calls at regular times, which hold places for `hold`.
  void stream(Span first, Span gap, const std::vector<Claim>& claims,
              const detail::Caller& caller = {}, Span hold = Span::max()) {
    streams_.push_back(std::make_unique<Stream>(*this, gap, claims, caller, hold));
    Stream& stream = *streams_.back();
    if (clock.set_timer(stream.timer, start + first) == TimerState::due) Stream::ring(&stream);
  }
  void run_until(Span end) { clock.advance(start + end - clock.now()); }
  [[nodiscard]] Span granted_at(int name) { return granted(name) ? ends[name].at - start : -1s; }
  [[nodiscard]] bool granted(int name) { return ends[name].is_granted; }
  [[nodiscard]] int most_overtaken() const {
    int most = 0;
    for (const auto& [name, end] : ends) most = std::max(most, end.overtaken);
    return most;
  }
  [[nodiscard]] int grants() const {
    return static_cast<int>(
        std::ranges::count_if(ends, [](const auto& end) { return end.second.is_granted; }));
  }

  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  Tap tap{*store};
  Wire wire{tap, clock, 1};
  Time start = clock.now();
  std::map<int, Ended> ends;
  std::function<void(int)> on_grant = [](int) {};
  std::map<int, Grants> held;

 private:
  struct Stream {
    Stream(Bench& owner, Span between, std::vector<Claim> its, detail::Caller who, Span until)
        : bench(owner), gap(between), claims(std::move(its)), caller(std::move(who)), hold(until) {}
    static void ring(void* self) noexcept {
      auto& stream = *static_cast<Stream*>(self);
      Bench& bench = stream.bench;
      const int name = bench.next_name_++;
      bench.holds_[name] = stream.hold;
      bench.wait(name, stream.claims, Deadline::never(), stream.caller);
      bench.clock.set_timer(stream.timer, bench.clock.now() + stream.gap);
    }
    Bench& bench;
    Span gap;
    std::vector<Claim> claims;
    detail::Caller caller;
    Span hold;
    TimerCallback timer{&Stream::ring, this};
  };
  struct Holder {
    Holder(Bench& owner, int its) : bench(owner), name(its) {}
    static void ring(void* self) noexcept {
      auto& holder = *static_cast<Holder*>(self);
      holder.bench.release(holder.name);
    }
    Bench& bench;
    int name;
    TimerCallback timer{&Holder::ring, this};
  };

  static bool is_place(Grants& grants, std::size_t claim) {
    try {
      return bool(grants.get<Lease>(claim));
    } catch (const std::invalid_argument&) {
      return false;
    }
  }
  void end(int name, std::error_code error, Grants grants) {
    Ended& own = ends[name];
    ++own.times;
    own.error = error;
    own.at = clock.now();
    if (error || !grants) return;
    own.is_granted = true;
    for (auto& [other, its] : ends) {
      if (its.times == 0 && its.came < own.came) ++its.overtaken;
    }
    held[name] = std::move(grants);
    if (holds_.contains(name) && holds_[name] != Span::max()) {
      holders_.push_back(std::make_unique<Holder>(*this, name));
      clock.set_timer(holders_.back()->timer, clock.now() + holds_[name]);
    }
    on_grant(name);
  }

  std::map<int, Waiting> waiting_;
  std::map<int, Span> holds_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Holder>> holders_;
  int next_name_ = 1'000;
};

constexpr int call = 1;  // the one that is looked at

}  // namespace

TEST_CASE("a call is overtaken only while it waits elsewhere for longer than it has waited",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(1));
  const TokenBucket c(bench.wire, "c", Quota::per_second(9).burst(9));
  bench.wait(10, {{a, "k"}, {c, "k"}});
  bench.run_until(500ms);
  bench.wait(11, {{b, "k"}, {c, "l"}});
  bench.run_until(600ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(700ms);
  bench.wait(12, {{a, "k"}, {c, "k"}});
  bench.run_until(800ms);
  bench.wait(13, {{b, "k"}, {c, "l"}});
  bench.run_until(10s);
  CHECK(bench.granted_at(12) == 1s);  // the call had waited 400 ms, and had to wait 500 ms more
  CHECK(bench.granted_at(call) == 2s);
  CHECK(bench.ends[call].overtaken == 1);
  CHECK(bench.granted(12));
  CHECK(bench.granted(13));
}

TEST_CASE("a limit stands still for a call no longer than the call has waited for it",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(10).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_hour(1).burst(1));
  bench.wait(10, {{a, "k"}});
  bench.wait(11, {{a, "k"}});
  bench.run_until(50ms);
  bench.wait(12, {{b, "k"}});
  bench.wait(call, {{a, "k"}, {b, "k"}});
  for (int later = 13; later < 20; ++later) bench.wait(later, {{a, "k"}});
  bench.run_until(900ms);
  CHECK(bench.granted_at(19) == 800ms);  // one every 100 ms, as if the call were not there
  CHECK_FALSE(bench.granted(call));
}

TEST_CASE("a limit stands still for a call that waits for a place no longer than it has waited",
          "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const ConcurrencyLimiter b(bench.wire, "b", 1, {.ttl = 1h});
  bench.wait(10, {{a, "k"}});
  bench.run_until(400ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});  // it waits for 600 ms, and is refused by the other
  bench.wait(11, {{a, "k"}});
  bench.wait(12, {{b, "k"}});
  bench.run_until(5s);
  CHECK(bench.granted_at(11) == 1'600ms + 1us);
  bench.release(12);
  bench.run_until(6s);
  CHECK(bench.granted(call));
}

TEST_CASE("a limit stands still for no call that is not the first where it waits",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(1));
  bench.wait(10, {{a, "k"}});
  bench.run_until(200ms);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k"}});
  bench.run_until(500ms);
  bench.wait(12, {{b, "k"}});
  bench.run_until(1'200ms);  // the call keeps its turn at one limit, and waits for the other
  CHECK_FALSE(bench.granted(11));
  bench.wait(13, {{b, "k"}}, Deadline::never(), {.priority = 1});
  CHECK(bench.granted_at(11) == 1'200ms);
  bench.run_until(5s);
  CHECK(bench.granted(call));
}

TEST_CASE("a call that has not waited for a limit keeps no turn there", "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const ConcurrencyLimiter b(bench.wire, "b", 1, {.ttl = 1h});
  bench.wait(10, {{b, "k"}});
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k"}});
  CHECK(bench.granted_at(11) == 0s);
}

TEST_CASE("no limit stands still for a call that waits for a gate, and no gate for a call",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const Gates gates(bench.wire, "gate", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", 1);
  SECTION("a limit") {
    bench.wait(10, {{a, "k"}});
    bench.wait(call, {{a, "k"}, {gates, scope}});
    bench.wait(11, {{a, "k"}});
    bench.run_until(900ms);
    gates.close(scope, 600ms);
  }
  SECTION("a gate") {
    gates.close(scope, 1s);
    bench.wait(call, {{gates, scope}, {a, "k"}});
    bench.wait(11, {{gates, scope}});
    bench.run_until(900ms);
    bench.wait(10, {{a, "k"}});
  }
  bench.run_until(5s);
  CHECK(bench.granted_at(11) == 1s);
  CHECK(bench.granted(call));
}

TEST_CASE("a turn ends when it has been kept for long enough, whichever else is kept longer",
          "[claims][rows][leases]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per(1, 100ms).burst(1));
  const ConcurrencyLimiter jobs(bench.wire, "jobs", 1, {.ttl = 1h});
  bench.wait(10, {{a, "k"}});
  bench.run_until(800ms);
  bench.wait(call, {{b, "k"}, {a, "k"}, {jobs, "k"}});  // it waits for the second for 200 ms
  bench.run_until(950ms);
  REQUIRE(TokenBucket(*bench.store, "b", b.quota()).try_acquire("k"));
  bench.run_until(1'010ms);
  bench.wait(11, {{jobs, "k"}});
  bench.run_until(1'060ms);  // and has waited for the first for 50 ms
  bench.wait(12, {{b, "k"}});
  bench.wait(13, {{a, "k"}});
  bench.run_until(2s);
  CHECK(bench.granted_at(12) == 1'100ms + 1us);
  CHECK(bench.granted_at(13) == 1'250ms + 1us);
}

TEST_CASE("what a grant leaves of each of its limits is known of that", "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(3));
  const TokenBucket b(bench.wire, "b", Quota::per_hour(1).burst(1));
  const FixedWindow c(bench.wire, "c", 1, Calendar::every(24h));
  a.set_wait_queue({.across_processes = false, .recheck = 1h});
  REQUIRE(c.try_acquire("k"));
  bench.wait(9, {{c, "k"}, {a, "k"}});  // the queue of the first limit remains
  bench.wait(10, {{a, "k"}, {b, "k"}});
  bench.wait(11, {{a, "k", 3}});
  bench.run_until(1s);
  CHECK(bench.granted_at(11) == 1s);
}

TEST_CASE("over a slow wire, too, a grant of a bucket costs one request", "[claims][rows]") {
  Bench bench(100ms);
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(1).burst(1));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1h});
  for (int name = 0; name < 10; ++name) bench.wait(name, {{bucket, "k"}});
  bench.run_until(500ms);
  const std::uint64_t before = bench.tap.operations;
  bench.run_until(20s);
  CHECK(bench.grants() == 10);
  CHECK(bench.tap.operations - before == 9);
}

TEST_CASE("those behind a call that waits for its units do not ask beside it", "[claims][rows]") {
  Bench bench(100ms);
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(1).burst(10));
  bucket.set_wait_queue({.across_processes = false, .recheck = 1h});
  for (const auto& [name, cost] : {std::pair{0, 10}, {1, 2}, {2, 8}, {3, 1}}) {
    bench.wait(name, {{bucket, "k", cost}});
  }
  bench.run_until(500ms);
  const std::uint64_t before = bench.tap.operations;
  bench.wire.slowest = 0s;  // a blocking call
  bucket.reward("k", 5);    // enough for the second, which leaves some
  bench.wire.slowest = 100ms;
  bench.run_until(20s);
  CHECK(bench.grants() == 4);
  CHECK(bench.tap.operations - before == 1 + 3);
}

TEST_CASE("a call that moves looks again a recheck after it asked all its limits",
          "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per(1, 10s).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per(1, 20s).burst(1));
  for (const TokenBucket* limit : {&a, &b}) {
    limit->set_wait_queue({.across_processes = false, .recheck = 1s});
  }
  REQUIRE(TokenBucket(*bench.store, "b", b.quota()).try_acquire("k"));
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.wait(10, {{a, "k"}});
  bench.run_until(5'500ms);
  const std::uint64_t before = bench.tap.operations;
  b.reward("k", 1);  // the call goes to wait for the other
  bench.run_until(6s - 1us);
  CHECK(bench.tap.operations == before + 1);
  bench.run_until(6s);
  CHECK(bench.tap.operations == before + 2);
}

TEST_CASE("a call keeps its place in the order of each of two busy limits", "[claims][rows]") {
  // As many later calls as the slower limit serves while it is refilled once.
  constexpr int most_overtaking = 3;
  Bench bench;
  const auto limit = [&](const char* name) {
    return TokenBucket(bench.wire, name, Quota::per_second(10).burst(1));
  };
  const TokenBucket a = limit("a");
  const TokenBucket b = limit("b");
  const TokenBucket c = limit("c");
  const TokenBucket d = limit("d");
  bench.stream(0ms, 90ms, {{a, "k"}, {c, "k"}});
  bench.stream(45ms, 90ms, {{b, "k"}, {d, "k"}});
  bench.run_until(1s);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(60s);
  CHECK(bench.granted(call));
  CHECK(bench.ends[call].overtaken <= most_overtaking);
  CHECK(bench.granted_at(call) <= 1'500ms);
  CHECK(bench.grants() >= 2 * 10 * 59);  // nothing is left unused for it
}

TEST_CASE("a call keeps its place in the order of the places of two limits",
          "[claims][rows][leases]") {
  constexpr int most_overtaking = 3;
  Bench bench;
  const ConcurrencyLimiter a(bench.wire, "a", 1, {.ttl = 1h});
  const ConcurrencyLimiter b(bench.wire, "b", 1, {.ttl = 1h});
  const TokenBucket c(bench.wire, "c", Quota::per_second(1'000).burst(100));
  bench.stream(0ms, 90ms, {{a, "k"}, {c, "k"}}, {}, 100ms);
  bench.stream(45ms, 90ms, {{b, "k"}, {c, "l"}}, {}, 100ms);
  bench.run_until(1s);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(30s);
  CHECK(bench.granted(call));
  CHECK(bench.ends[call].overtaken <= most_overtaking);
  CHECK(bench.granted_at(call) <= 1'500ms);
}

TEST_CASE("calls of three limits in a ring pass on, none far behind those that came later",
          "[claims][rows]") {
  constexpr int most_overtaking = 10;
  Bench bench;
  std::vector<TokenBucket> limits;
  for (const char* name : {"a", "b", "c"}) {
    limits.emplace_back(bench.wire, name, Quota::per_second(10).burst(2));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    bench.stream(Span{static_cast<Word>(i) * 55'000}, 165ms,
                 {{limits[i], "k"}, {limits[(i + 1) % 3], "k"}});
  }
  bench.run_until(60s);
  CHECK(bench.most_overtaken() <= most_overtaking);
  CHECK(bench.grants() >= 60 * 15 * 3 / 4);  // two units each, of 30 a second
}

TEST_CASE("a call of a lower priority has its share of two limits together", "[claims][rows]") {
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(10).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(10).burst(1));
  const TokenBucket c(bench.wire, "c", Quota::per_second(100).burst(100));
  bench.stream(0ms, 70ms, {{a, "k"}, {c, "k"}}, {.priority = 1});
  bench.stream(45ms, 70ms, {{b, "k"}, {c, "l"}}, {.priority = 1});
  bench.run_until(1s);
  bench.wait(call, {{a, "k"}, {b, "k"}});
  bench.run_until(10s);
  CHECK(bench.granted(call));
  CHECK(bench.granted_at(call) <= 4s);  // a tenth of each limit is one unit a second
}

TEST_CASE("two calls, each before the other at one of their limits, are both granted",
          "[claims][rows]") {
  const int priority = GENERATE(0, 1);
  Bench bench;
  const TokenBucket a(bench.wire, "a", Quota::per_second(10).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(10).burst(1));
  // A flow that has used much of a limit is behind the other there.
  const detail::Caller x{.flow = "x"};
  const detail::Caller y{.priority = priority, .flow = "y"};
  for (int i = 0; i < 5; ++i) bench.wait(10 + i, {{a, "k"}}, Deadline::never(), x);
  for (int i = 0; i < 5; ++i) bench.wait(20 + i, {{b, "k"}}, Deadline::never(), y);
  bench.run_until(50ms);
  for (int i = 0; i < 6; ++i) {
    bench.wait(30 + i, {{a, "k"}, {b, "k"}}, Deadline::never(), x);
    bench.wait(40 + i, {{b, "k"}, {a, "k"}}, Deadline::never(), y);
  }
  bench.run_until(4s);  // of 17 units of each
  CHECK(bench.grants() == 22);
}

TEST_CASE("calls of several flows, priorities and limits do not make each other ask for ever",
          "[claims][rows]") {
  Bench bench;
  const SlidingWindow a(bench.tap, "a", {{4, 5s}});
  const SlidingWindow b(bench.tap, "b", {{4, 2s}});
  const TokenBucket c(bench.tap, "c", Quota::per_second(2).burst(3));
  const auto wait = [&](int name, const std::vector<Claim>& claims, const char* flow,
                        int priority) {
    bench.wait(name, claims, Deadline::never(), {.priority = priority, .flow = flow});
  };
  wait(0, {{a, "k", 3}, {b, "k", 4}}, "x", 0);
  bench.run_until(200ms);
  wait(1, {{a, "k"}, {b, "k", 4}, {c, "k"}}, "y", 1);
  wait(2, {{b, "k", 4}, {c, "k", 3}}, "y", 0);
  bench.run_until(400ms);
  wait(3, {{b, "k", 2}, {c, "k", 2}}, "x", 1);
  wait(4, {{a, "k", 3}, {b, "k", 2}, {c, "k", 3}}, "x", 1);
  wait(5, {{a, "k", 3}, {b, "k", 2}, {c, "k"}}, "y", 1);
  wait(6, {{a, "k", 2}}, "y", 1);
  bench.run_until(1min);
  CHECK(bench.grants() == 7);
  CHECK(bench.tap.operations <= 7 * 20);
}

TEST_CASE("what a call leaves of its places goes to all who wait for them, at once",
          "[claims][rows][leases]") {
  const bool a_first = GENERATE(true, false);
  const Span slowest = GENERATE(Span{0}, Span{10us});
  Bench bench(slowest);
  const ConcurrencyLimiter a(bench.wire, "a", 3, {.ttl = 1h});
  const ConcurrencyLimiter b(bench.wire, "b", 2, {.ttl = 1h});
  const std::vector<Claim> all{{a, "k"}, {b, "k", 2}};
  bench.wait(10, a_first ? all : std::vector<Claim>{all[1], all[0]});
  bench.run_until(500us);
  REQUIRE(bench.granted(10));
  bench.wait(call, {{a, "k", 3}, {b, "k"}});
  bench.wait(11, {{b, "k"}});
  bench.run_until(1ms);
  bench.release(10);
  bench.run_until(1ms + 10 * slowest);
  CHECK(bench.granted(call));
  CHECK(bench.granted(11));
}

TEST_CASE("a release is for all whom it suffices, also those whom others have overtaken meanwhile",
          "[claims][rows][leases]") {
  const detail::Caller later = GENERATE(detail::Caller{.priority = 1}, detail::Caller{.flow = "x"});
  Bench bench;
  const ConcurrencyLimiter jobs(bench.wire, "jobs", 3, {.ttl = 1h});
  bench.wait(10, {{jobs, "k", 3}});
  bench.wait(call, {{jobs, "k", 2}});
  bench.wait(11, {{jobs, "k"}}, Deadline::never(), later);
  bench.run_until(1ms);
  bench.release(10);
  CHECK(bench.granted(call));
  CHECK(bench.granted(11));
}

TEST_CASE("a first waiter whose deadline lies before the refill is refused at once",
          "[claims][rows]") {
  const bool is_alone = GENERATE(true, false);
  const bool across = GENERATE(true, false);
  const Span slowest = GENERATE(Span{0}, Span{1ms});
  Bench bench(slowest);
  const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
  const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(9));
  a.set_wait_queue({.across_processes = across, .client = 1});
  std::vector<Claim> claims{{a, "k"}};
  if (!is_alone) claims.emplace_back(b, "k");
  // More than may ask at once, so that some come first behind the grant.
  for (int i = 0; i < 20; ++i) bench.wait(10 + i, claims, i == 0 ? Deadline(1h) : Deadline(500ms));
  bench.run_until(20 * slowest);
  CHECK(bench.granted(10));
  for (int name = 11; name < 30; ++name) {
    CHECK(bench.ends[name].times == 1);
    CHECK_FALSE(bench.granted(name));
  }
  CHECK(bench.tap.operations <= 2 * 20);
}

namespace {

/// Two limits and places, all used up; a call that is refused by the one moves to the other.
struct Scene {
  explicit Scene(Span slowest, bool across) : bench(slowest) {
    for (const Waitable* limit :
         {static_cast<const Waitable*>(&a), static_cast<const Waitable*>(&b),
          static_cast<const Waitable*>(&jobs)}) {
      limit->set_wait_queue({.across_processes = across, .client = 1, .recheck = 1h});
    }
    bench.wait(10, {{a, "k"}, {jobs, "k"}});
    bench.run_until(10ms);
    bench.wait(11, {{b, "k"}});
    bench.run_until(20ms);
  }
  /// Asks, and moves from a to b, and to the place.
  void begin(const Deadline& deadline = Deadline::never()) {
    bench.wait(call, {{a, "k"}, {b, "k"}, {jobs, "k"}}, deadline);
    bench.wait(12, {{b, "k"}, {jobs, "k"}, {a, "k"}});
  }
  Bench bench;
  TokenBucket a{bench.wire, "a", Quota::per_second(1'000).burst(1)};
  TokenBucket b{bench.wire, "b", Quota::per_second(900).burst(1)};
  ConcurrencyLimiter jobs{bench.wire, "jobs", 1, {.ttl = 1h}};
};

}  // namespace

TEST_CASE("a call that is cancelled at any instant ends once, and leaves all to the next",
          "[claims][rows]") {
  const bool across = GENERATE(true, false);
  for (const Span slowest : {Span{0}, Span{100us}}) {
    for (Span when{0}; when < 4ms; when += 13us) {
      CAPTURE(slowest, when);
      Scene scene(slowest, across);
      Bench& bench = scene.bench;
      scene.begin();
      bench.run_until(20ms + when / 2);
      bench.release(10);
      bench.run_until(20ms + when);
      bench.cancel(call);
      bench.run_until(20ms + when + 8 * slowest + 3ms);
      CHECK(bench.ends[call].times == 1);
      bench.release(call);
      bench.run_until(20ms + when + 16 * slowest + 6ms);
      CHECK(bench.granted(12));
    }
  }
}

TEST_CASE("a call that is cancelled while a request is sent ends once, and leaves all to the next",
          "[claims][rows]") {
  const bool across = GENERATE(true, false);
  const bool is_within = GENERATE(false, true);  // the first request after the release
  for (std::uint64_t number = 1; number < 30; ++number) {
    CAPTURE(number);
    Scene scene(0s, across);
    Bench& bench = scene.bench;
    const std::uint64_t before = bench.tap.operations;
    bench.tap.sent = [&] {
      if (bench.tap.operations == before + number) bench.cancel(is_within ? 12 : call);
    };
    scene.begin();
    bench.run_until(21ms);
    bench.release(10);
    bench.run_until(30ms);
    for (const int name : {call, 12}) bench.release(name);
    bench.run_until(40ms);
    for (const int name : {call, 12}) bench.release(name);
    bench.run_until(50ms);
    CHECK(bench.ends[call].times == 1);
    CHECK(bench.ends[12].times == 1);
    CHECK(bench.granted(is_within ? call : 12));
    CHECK(scene.jobs.waiting("k") + scene.a.waiting("k") + scene.b.waiting("k") == 0);
  }
}

TEST_CASE("a call that is cancelled while it moves from limit to limit is not granted any more",
          "[claims][rows]") {
  const bool across = GENERATE(true, false);
  for (std::uint64_t number = 1; number < 10; ++number) {
    CAPTURE(across, number);
    Bench bench;
    const TokenBucket a(bench.wire, "a", Quota::per_second(1).burst(1));
    const TokenBucket b(bench.wire, "b", Quota::per_second(1).burst(1));
    for (const TokenBucket* limit : {&a, &b}) {
      limit->set_wait_queue({.across_processes = across, .client = 1});
    }
    bench.wait(10, {{a, "k"}});
    bench.wait(call, {{a, "k"}, {b, "k"}});
    bench.run_until(900ms);
    bench.wait(11, {{b, "k"}});
    bool was_over = true;
    bench.tap.sent = [&, before = bench.tap.operations] {
      if (bench.tap.operations != before + number) return;
      was_over = bench.ends[call].times > 0;
      bench.cancel(call);
    };
    bench.run_until(10s);
    CHECK(bench.ends[call].times == 1);
    CHECK(bench.granted(call) == was_over);
    CHECK(b.peek("k").remaining == 1);
  }
}

TEST_CASE("a call is not overtaken by those of the same limits while it moves between these",
          "[claims][rows]") {
  const bool across = GENERATE(true, false);
  Bench bench;
  const FixedWindow a(bench.wire, "a", 4, Calendar::every(1h));
  const FixedWindow b(bench.wire, "b", 4, Calendar::every(1h));
  for (const FixedWindow* limit : {&a, &b}) {
    limit->set_wait_queue({.across_processes = across, .client = 1});
  }
  bench.wait(10, {{a, "k", 2}, {b, "k"}});
  bench.wait(11, {{b, "k", 4}});
  bench.wait(call, {{b, "k", 2}, {a, "k", 4}});  // behind the one before at b
  bench.wait(12, {{a, "k"}, {b, "k"}});
  bench.on_grant = [&](int name) {
    if (name == 13) bench.cancel(11);
  };
  bench.wait(13, {{a, "k"}});
  CHECK_FALSE(bench.granted(12));
  bench.run_until(2h);
  CHECK(bench.granted(call));
  CHECK(bench.ends[call].overtaken == 0);
}

TEST_CASE("a place that comes back while a call asks, moves or enters a line is not missed",
          "[claims][rows][leases]") {
  const bool across = GENERATE(true, false);
  for (const Span slowest : {Span{0}, Span{100us}}) {
    for (Span when{0}; when < 3ms; when += 7us) {
      CAPTURE(slowest, when);
      Scene scene(slowest, across);
      Bench& bench = scene.bench;
      scene.begin();
      bench.run_until(20ms + when);
      bench.release(10);
      bench.run_until(20ms + when + 12 * slowest + 3ms);
      CHECK(bench.granted(call));
      bench.release(call);
      bench.run_until(20ms + when + 24 * slowest + 6ms);
      CHECK(bench.granted(12));
    }
  }
}

TEST_CASE("a refund that arrives while a caller enters the line of all processes is not missed",
          "[claims][rows]") {
  for (Span when{0}; when < 10ms; when += 50us) {
    CAPTURE(when);
    Bench bench(1ms);
    const FixedWindow window(bench.wire, "w", 1, Calendar::every(1h));
    bench.wait(10, {{window, "k"}});
    bench.run_until(when);
    bench.wait(call, {{window, "k"}});
    bench.cancel(10);  // refunded if its request is under way
    const bool is_over = bench.granted(10);
    bench.run_until(when + 20ms);
    CHECK(bench.granted(call) == !is_over);
  }
}

TEST_CASE("a call of two keys of one limiter is granted among smaller ones of each",
          "[claims][rows]") {
  constexpr int most_overtaking = 30;  // of 11 a second, at each key while it waits at the other
  Bench bench;
  const TokenBucket bucket(bench.wire, "b", Quota::per_second(10).burst(10));
  bench.stream(0ms, 90ms, {{bucket, "a"}});
  bench.stream(45ms, 90ms, {{bucket, "b"}});
  bench.run_until(3s);
  bench.wait(call, {{bucket, "a", 10}, {bucket, "b", 10}});
  bench.run_until(30s);
  CHECK(bench.granted(call));
  CHECK(bench.ends[call].overtaken <= most_overtaking);
  CHECK(bench.granted_at(call) <= 6s);
}

TEST_CASE("a deadline holds for who is woken while one before it asks", "[claims][rows][leases]") {
  const bool across = GENERATE(false, true);
  for (Span when{0}; when < 3ms; when += 100us) {
    CAPTURE(across, when);
    Bench bench(1ms);
    const ConcurrencyLimiter jobs(bench.wire, "jobs", 3, {.ttl = 1h});
    jobs.set_wait_queue({.across_processes = across, .client = 1});
    bench.wait(10, {{jobs, "k", 2}});
    bench.wait(11, {{jobs, "k"}});
    bench.run_until(5ms);
    bench.wait(call, {{jobs, "k", 3}}, 2s);
    bench.run_until(20ms);
    bench.release(11);
    bench.run_until(20ms + when);
    bench.wait(12, {{jobs, "k", 2}}, Deadline::never(), {.priority = 1});
    bench.run_until(2'004ms);
    CHECK(bench.ends[call].times == 0);
    bench.run_until(2'010ms);
    CHECK(bench.ends[call].times == 1);
  }
}

namespace {

/// What the calls of random programs in one process have asked the store.
struct Asked {
  double mean = 0;
  int worst = 0;
};

struct Mix {
  bool has_places = false;
  bool closes = false;
  int flows = 1;
};

/// Each call has a key of its own besides, by which its requests are known.
Asked ask_at_random(Random& random, const Mix& mix) {
  int asked = 0;
  int calls = 0;
  Asked result;
  for (std::size_t program = 0; program < scaled(60, 10); ++program) {
    Bench bench;
    Store& store = bench.tap;
    const SlidingWindow marks(store, "mark", {{1'000, 1h}});
    const TokenBucket bucket(store, "bucket", Quota::per_second(5).burst(3));
    const SlidingWindow window(store, "window", {{10, 2s}});
    const FixedWindow fixed(store, "fixed", 10, Calendar::every(2s));
    const SlotLock slot(store, "slot", 200ms);
    const ConcurrencyLimiter jobs(store, "jobs", 3, {.ttl = 1h});
    const Gates gates(store, "gate", {"account"}, {.ramp = 0s, .spacing = 0s});
    const Scope scope = gates.scope("account", 1);
    int closures = 0;
    for (int name = 0; name < 40; ++name) {
      std::vector<Claim> claims;
      if (random.one_in(2)) claims.emplace_back(bucket, "k", random.between(1, 2));
      if (random.one_in(2)) claims.emplace_back(window, "k", random.between(1, 3));
      if (random.one_in(2)) claims.emplace_back(fixed, "k", random.between(1, 3));
      if (random.one_in(3)) claims.emplace_back(slot, "k");
      if (mix.has_places && random.one_in(2)) claims.emplace_back(jobs, "k", random.between(1, 2));
      if (mix.closes && random.one_in(2)) claims.emplace_back(gates, scope);
      claims.emplace_back(marks, "call " + std::to_string(name));
      bench.wait(name, claims, Deadline::never(),
                 {.flow = std::to_string(random.below(static_cast<std::uint64_t>(mix.flows)))});
      bench.run_until(bench.clock.now() - bench.start + Span{random.between(0, 400'000)});
      for (int held = 0; held < name; ++held) {
        if (random.one_in(3)) bench.release(held);
      }
      if (mix.closes && random.one_in(10)) {
        gates.close(scope, Span{random.between(1, 2'000'000)});
        ++closures;
      }
    }
    for (int i = 0; i < 400; ++i) {
      for (int name = 0; name < 40; ++name) bench.release(name);
      bench.run_until(bench.clock.now() - bench.start + 100ms);
    }
    CHECK(bench.grants() == 40);
    for (int name = 0; name < 40; ++name) {
      const int own = bench.tap.of_key["call " + std::to_string(name)];
      asked += own;
      ++calls;
      result.worst = std::max(result.worst, own - closures);
    }
  }
  result.mean = static_cast<double>(asked) / calls;
  return result;
}

}  // namespace

TEST_CASE("a grant of several limits costs two requests on average, and few at worst",
          "[claims][rows]") {
  Random random("a grant of several limits costs two requests on average, and few at worst");
  CAPTURE(random.repeat());
  const bool has_places = GENERATE(false, true);
  const bool closes = GENERATE(false, true);
  const int flows = GENERATE(1, 2);
  const Asked asked = ask_at_random(random, {has_places, closes, flows});
  CAPTURE(has_places, closes, flows, asked.mean);
  // Measured: 1.53 and 5, with places 1.74 and 9; of a tenth of the programs the mean deviates by
  // 0.06.
  CHECK(asked.mean <= (has_places ? 2.1 : 1.8));
  CHECK(asked.worst <= (has_places ? 18 : 10));  // without the closures
}

}  // namespace sluice::test
