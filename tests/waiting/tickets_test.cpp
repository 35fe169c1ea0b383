// Tickets in the wait line of all processes: kept while their process lives, and found again when
// wake-ups are lost. Threading: everything on the thread that moves the clock.
#include <map>
#include <vector>

#include "src/waiting/queue_ticket.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// One limit, two processes, each behind a wire of its own, and one that looks on.
template <class L>
struct Two {
  template <class... Args>
  explicit Two(const WaitQueueOptions& queue, Args... args)
      : limiters{L(wires[0], "x", args...), L(wires[1], "x", args...)} {
    WaitQueueOptions options = queue;
    options.across_processes = true;
    for (std::size_t i = 0; i < 2; ++i) {
      options.client = static_cast<std::int64_t>(i + 1);
      limiters[i].set_wait_queue(options);
    }
  }
  ~Two() {
    for (const L& limiter : limiters) limiter.cancel_waits();
    time.advance(1min);                               // for what is under way
    for (Wire& wire : wires) wire.slowest = Span{0};  // leases go back at once
  }

  void wait(std::size_t process, int name, Cost cost = 1,
            const Deadline& deadline = Deadline::never()) {
    const L& limiter = limiters.at(process);
    probes.push_back(wait_for(limiter, request_of(limiter, "a", cost), deadline,
                              [this, name](std::error_code error, auto grant) {
                                if (error || !grant) return;
                                granted[name] = time.now();
                                if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
                                  leases[name] = std::make_unique<Lease>(std::move(grant));
                                }
                              }));
  }
  /// Whose turn it is in the store; 0: nobody waits there.
  [[nodiscard]] Word first() {
    Word client = 0;
    const L& limiter = limiters.front();
    const auto request = request_of(limiter, "a", 1);
    const std::string name = detail::wait_line_name(request.front()->key());
    const Step peek{&wait_line_peek, {"a", name}, {word_limit}};
    decide_then(*store, peek, [&](const Outcome& outcome) noexcept {
      if (!outcome.error) client = outcome.output[1];
    });
    return client;
  }

  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  std::array<Wire, 2> wires{Wire(*store, time, 1), Wire(*store, time, 2)};
  std::array<L, 2> limiters;
  std::vector<std::shared_ptr<Probe<L>>> probes;
  std::map<int, Time> granted;
  std::map<int, std::unique_ptr<Lease>> leases;
};

using Leases = Two<ConcurrencyLimiter>;
const LeaseOptions long_lease{.ttl = 24h};

}  // namespace

TEST_CASE("a ticket is renewed in time as long as its process lives, over slow wires too",
          "[waiting][processes]") {
  for (const Span ttl : {Span{10ms}, Span{100ms}, Span{3s}, Span{60s}}) {
    for (const Span slowest : {Span{0}, ttl / 20, ttl / 9}) {
      for (const Span recheck : {Span{1ms}, Span{1s}, Span{1h}}) {
        CAPTURE(ttl, slowest, recheck);
        Leases two({.ticket_ttl = ttl, .recheck = recheck}, 1, long_lease);
        const Lease held = ConcurrencyLimiter(*two.store, "x", 1, long_lease).try_acquire("a");
        for (Wire& wire : two.wires) wire.slowest = slowest;
        two.wait(0, 1);
        two.time.advance(5 * slowest + 1ms);
        two.wait(1, 2);
        two.time.advance(5 * slowest + 1ms);
        bool stood = true;
        for (std::size_t i = 0; i < scaled(1'000, 200); ++i) {
          two.time.advance(ttl / 37);
          if (two.first() != 1) stood = false;
        }
        CHECK(stood);
        CHECK(two.granted.empty());
      }
    }
  }
}

TEST_CASE("a ticket lasts through a limiter's exact hint and is first when it ends",
          "[waiting][processes]") {
  for (const Span ttl : {Span{10ms}, Span{3s}}) {
    for (const Span window :
         {Span{1min}, Span{20min}, Span{3h}}) {  // beyond QueueTicket::longest_hint
      for (const Span slowest : {Span{0}, Span{1ms}}) {
        CAPTURE(ttl, window, slowest);
        Two<FixedWindow> two({.ticket_ttl = ttl}, 1, Calendar::every(window));
        two.time.advance(window - two.time.now().time_since_epoch() % window);
        two.wait(0, 0);
        for (Wire& wire : two.wires) wire.slowest = slowest;
        two.wait(0, 1);
        two.time.advance(10ms);
        two.wait(1, 2);
        two.time.advance(10ms);
        bool stood = true;
        for (int i = 0; i < 500; ++i) {
          two.time.advance((window - 100ms) / 500);
          if (two.first() != 1) stood = false;
        }
        CHECK(stood);
        two.time.advance(2 * window);
        REQUIRE(two.granted.size() == 3);
        CHECK(two.granted[1] < two.granted[2]);
        CHECK(two.granted[1] - two.granted[0] <= window + 3 * slowest);
      }
    }
  }
}

TEST_CASE("two processes that stand before one another do not wake each other for ever",
          "[waiting][processes]") {
  // The first needs more than there is, so the second could be granted, but for its turn.
  Leases two({.ticket_ttl = 3s, .recheck = 1s}, 2, long_lease);
  const Lease held = ConcurrencyLimiter(*two.store, "x", 2, long_lease).try_acquire("a");
  for (Wire& wire : two.wires) wire.slowest = 100us;
  two.wait(0, 1, 2);
  two.time.advance(10ms);
  two.wait(1, 2, 1);
  two.time.advance(10s);
  const auto operations = [&] { return two.wires[0].operations + two.wires[1].operations; };
  const auto notices = [&] { return two.wires[0].notices + two.wires[1].notices; };
  const std::uint64_t asked = operations();
  const std::uint64_t woken = notices();
  two.time.advance(1min);
  CHECK(two.granted.empty());
  // Each asks once a second, wakes the other at most as often, and who is woken asks once more.
  CHECK(operations() - asked <= 2 * 60 * 2 + 2 * 40);
  CHECK(notices() - woken <= 2 * 60);
  CHECK(operations() - asked >= 60);
}

TEST_CASE("who was woken and is not first wakes nobody in turn", "[waiting][processes]") {
  // The first process died with its ticket: the second could be granted, but for its turn.
  Leases two({.ticket_ttl = 1min, .recheck = 10s}, 2, long_lease);
  const std::string name = detail::wait_line_name({"any", "x"});
  const Step enter{&wait_line_enter,
                   {"a", name},
                   {word_limit, 1, to_word(two.time.now()), Span{1min}.count(), 1}};
  decide_then(*two.store, enter, [](const Outcome&) noexcept {});
  two.time.advance(1ms);
  two.wait(1, 2);
  two.time.advance(1ms);
  const std::uint64_t sent = two.wires[1].notices;
  const std::uint64_t asked = two.wires[1].operations;
  for (int i = 0; i < 10; ++i) {
    detail::wake_client(detail::StoreRef(*two.store), "a", name, 2, detail::Woken::by_turn);
    two.time.advance(1us);
  }
  CHECK(two.granted.empty());
  CHECK(two.wires[1].operations - asked >= 10);  // it looked each time
  CHECK(two.wires[1].notices == sent);
}

TEST_CASE("who misses every wake-up is granted within a recheck, in whichever process",
          "[waiting][processes][leases]") {
  for (const bool across : {false, true}) {
    for (const Span recheck : {Span{1ms}, Span{50ms}, Span{1s}, Span{10s}}) {
      CAPTURE(across, recheck);
      Leases two({.recheck = recheck}, 1, long_lease);
      if (!across) {
        for (const auto& limiter : two.limiters) limiter.set_wait_queue({.recheck = recheck});
      }
      for (Wire& wire : two.wires) {
        wire.loses_wake_ups = true;
        wire.slowest = 100us;
      }
      two.wait(0, 1);
      two.time.advance(10ms);
      REQUIRE(two.granted.size() == 1);
      two.wait(1, 2);
      two.time.advance(7'777'777us);
      REQUIRE(two.granted.size() == 1);
      const Time freed = two.time.now();
      two.leases[1]->release_later();
      two.time.advance(1h);
      REQUIRE(two.granted.size() == 2);
      CHECK(two.granted[2] - freed <= recheck + 1ms);
    }
  }
}

TEST_CASE("pauses double from 1 ms to recheck for who could be granted but for its turn",
          "[waiting][processes]") {
  // The first process died with its ticket: the limit has room, and nobody says so.
  std::vector<Time> asked;
  Leases two({.ticket_ttl = 1min, .recheck = 200ms}, 2, long_lease);
  two.wires[1].is_deaf = true;
  Lease held = ConcurrencyLimiter(*two.store, "x", 2, long_lease).try_acquire("a");
  const std::string name = detail::wait_line_name({"any", "x"});
  const Word since = to_word(two.time.now());
  const Step enter{&wait_line_enter, {"a", name}, {word_limit, 1, since, Span{1min}.count(), 1}};
  decide_then(*two.store, enter, [](const Outcome&) noexcept {});
  two.wires[1].asked_at = &asked;
  two.time.advance(1ms);
  two.wait(1, 2);
  const Time came = two.time.now();
  two.time.advance(2s);
  CHECK(two.granted.empty());
  std::vector<Span> pauses;
  for (std::size_t i = 1; i < asked.size(); ++i) {
    if (asked[i] > asked[i - 1]) pauses.push_back(asked[i] - asked[i - 1]);
  }
  const std::vector<Span> expected{1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 200ms, 200ms};
  REQUIRE(pauses.size() >= expected.size());
  pauses.resize(expected.size());
  CHECK(pauses == expected);
  two.time.advance(1min);
  REQUIRE(two.granted.size() == 1);
  CHECK(two.granted[2] - came <= 1min);
}

TEST_CASE("a cancelled waiter gives the ticket of its process up at once", "[waiting][processes]") {
  Leases two({.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  const Lease held = ConcurrencyLimiter(*two.store, "x", 1, long_lease).try_acquire("a");
  two.wait(0, 1);
  two.time.advance(10ms);
  two.wait(1, 2);
  two.time.advance(10ms);
  REQUIRE(two.first() == 1);
  two.probes[0]->cancel();
  CHECK(two.first() == 2);
  two.probes[1]->cancel();
  CHECK(two.first() == 0);
}

TEST_CASE("a waiter that leaves wakes the process behind it", "[waiting][processes][leases]") {
  // The first needs more than there is: with it goes what keeps the other waiting.
  Leases two({.ticket_ttl = 1min, .recheck = 1h}, 2, long_lease);
  const Lease held = ConcurrencyLimiter(*two.store, "x", 2, long_lease).try_acquire("a");
  two.wait(0, 1, 2);
  two.time.advance(10ms);
  two.wait(1, 2);
  two.time.advance(10ms);
  CHECK(two.granted.empty());
  two.probes[0]->cancel();
  CHECK(two.granted.count(2) == 1);
}

TEST_CASE("a process that moves back in the line wakes the one that is first then",
          "[waiting][processes][leases]") {
  Leases two({.ticket_ttl = 1min, .recheck = 1h}, 2, long_lease);
  const Lease held = ConcurrencyLimiter(*two.store, "x", 2, long_lease).try_acquire("a");
  two.wait(0, 1, 2);
  two.time.advance(10ms);
  two.wait(1, 2);
  two.time.advance(10ms);
  two.wait(0, 3, 2);
  two.time.advance(10ms);
  CHECK(two.granted.empty());
  two.probes[0]->cancel();  // its process has a later caller
  CHECK(two.granted.count(2) == 1);
}

TEST_CASE("a call that keeps its turn while it waits elsewhere keeps no other process waiting",
          "[waiting][processes][claims]") {
  const bool is_alone = GENERATE(true, false);
  VirtualClock time;
  const auto store = make_virtual_store(time);
  std::array<Wire, 2> wires{Wire(*store, time, 1), Wire(*store, time, 2)};
  const Quota quota = Quota::per_second(1).burst(1);
  const std::array limits{TokenBucket(wires[0], "a", quota), TokenBucket(wires[1], "a", quota)};
  const TokenBucket other(wires[0], "b", Quota::per(1, 700ms).burst(1));
  for (std::size_t i = 0; i < 2; ++i) {
    limits[i].set_wait_queue({.client = static_cast<std::int64_t>(i + 1), .recheck = 1h});
  }
  REQUIRE(limits[0].try_acquire("k"));
  const Time start = time.now();
  const std::vector<Claim> claims{{limits[0], "k"}, {other, "k"}};
  const auto both = wait_for(Several{}, detail::limits_of(claims), Deadline::never(),
                             [](std::error_code, const Grants&) {});
  time.advance(500ms);
  Time granted{};
  const auto behind = wait_for(limits[1], request_of(limits[1], "k"), Deadline::never(),
                               [&](std::error_code, const auto&) { granted = time.now(); });
  time.advance(300ms);
  std::shared_ptr<detail::Waiter> later;
  if (!is_alone) {
    later = wait_for(limits[0], request_of(limits[0], "k"), Deadline::never(),
                     [](std::error_code, const auto&) {});
  }
  REQUIRE(TokenBucket(*store, "b", other.quota()).try_acquire("k"));
  time.advance(200ms);  // the first is refused by its other limit
  CHECK(granted - start == 1s);
  both->cancel();
  behind->cancel();
  if (later) later->cancel();
}

TEST_CASE("an option that changes while callers wait holds for those who come when none do",
          "[waiting][processes]") {
  Leases two({.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  Lease held = ConcurrencyLimiter(*two.store, "x", 1, long_lease).try_acquire("a");
  two.wait(0, 1);
  two.time.advance(10ms);
  REQUIRE(two.first() == 1);
  two.limiters[0].set_wait_queue({.across_processes = false, .recheck = 1h});
  two.wait(0, 2);
  two.probes[0]->cancel();
  two.time.advance(10ms);
  CHECK(two.first() == 1);  // of the second caller
  two.probes[1]->cancel();
  two.time.advance(10ms);
  CHECK(two.first() == 0);
  two.wait(0, 3);
  two.time.advance(10ms);
  CHECK(two.first() == 0);
}

TEST_CASE("a release wakes the first process of the wait line", "[waiting][processes][leases]") {
  Leases two({.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  two.wait(0, 1);
  REQUIRE(two.granted.size() == 1);
  two.time.advance(10ms);
  two.wait(1, 2);
  two.time.advance(10ms);
  REQUIRE(two.granted.size() == 1);
  const Time released = two.time.now();
  REQUIRE(two.leases[1]->release());
  REQUIRE(two.granted.size() == 2);
  CHECK(two.granted[2] == released);
}

}  // namespace sluice::test
