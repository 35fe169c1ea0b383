// Tickets in the wait line of all processes: kept while their process lives, and found again when
// wake-ups are lost. Threading: everything on the thread that moves the clock.
#include <map>
#include <vector>

#include "src/waiting/queue_ticket.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/processes.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

using Leases = Processes<ConcurrencyLimiter>;
const LeaseOptions long_lease{.ttl = 24h};

/// One of so many places, by somebody whose release wakes nobody.
Lease hold_one(const Leases& of, Word places) {
  return ConcurrencyLimiter(*of.store, "x", places, long_lease).try_acquire("a");
}

/// The first process has died with its ticket: the second could be granted, but for its turn.
void enter_dead(const Leases& two) {
  const Step enter{&wait_line_enter,
                   two.line(),
                   {word_limit, 1, to_word(two.time.now()), Span{1min}.count(), 1}};
  decide_then(*two.store, enter, [](const Outcome&) noexcept {});
}

}  // namespace

TEST_CASE("a ticket is renewed in time as long as its process lives, over slow wires too",
          "[waiting][processes]") {
  for (const Span ttl : {Span{10ms}, Span{100ms}, Span{3s}, Span{60s}}) {
    for (const Span slowest : {Span{0}, ttl / 20, ttl / 9}) {
      for (const Span recheck : {Span{1ms}, Span{1s}, Span{1h}}) {
        CAPTURE(ttl, slowest, recheck);
        Leases two(2, {.ticket_ttl = ttl, .recheck = recheck}, 1, long_lease);
        const Lease held = hold_one(two, 1);
        two.slow_down(slowest);
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
        CHECK(two.grants.empty());
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
        Processes<FixedWindow> two(2, {.ticket_ttl = ttl}, 1, Calendar::every(window));
        two.time.advance(window - two.time.now().time_since_epoch() % window);
        two.wait(0, 0);
        two.slow_down(slowest);
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
        REQUIRE(two.order() == std::vector{0, 1, 2});
        CHECK(two.grants[1].second <= window + two.grants[0].second + 3 * slowest);
      }
    }
  }
}

TEST_CASE("two processes that stand before one another do not wake each other for ever",
          "[waiting][processes]") {
  // The first needs more than there is, so the second could be granted, but for its turn.
  Leases two(2, {.ticket_ttl = 3s, .recheck = 1s}, 2, long_lease);
  const Lease held = hold_one(two, 2);
  two.slow_down(100us);
  two.wait(0, 1, 2);
  two.time.advance(10ms);
  two.wait(1, 2, 1);
  two.time.advance(10s);
  const std::uint64_t asked = two.operations();
  const std::uint64_t woken = two.notices();
  two.time.advance(1min);
  CHECK(two.grants.empty());
  // Each asks once a second, wakes the other at most as often, and who is woken asks once more.
  CHECK(two.operations() - asked <= 2 * 60 * 2 + 2 * 40);
  CHECK(two.notices() - woken <= 2 * 60);
  CHECK(two.operations() - asked >= 60);
}

TEST_CASE("who was woken and is not first wakes nobody in turn", "[waiting][processes]") {
  Leases two(2, {.ticket_ttl = 1min, .recheck = 10s}, 2, long_lease);
  enter_dead(two);
  two.time.advance(1ms);
  two.wait(1, 2);
  two.time.advance(1ms);
  const std::uint64_t sent = two.wire(1).notices;
  const std::uint64_t asked = two.wire(1).operations;
  for (int i = 0; i < 10; ++i) {
    detail::wake_client(detail::StoreRef(*two.store), "a", two.line().name(), 2,
                        detail::Woken::by_turn);
    two.time.advance(1us);
  }
  CHECK(two.grants.empty());
  CHECK(two.wire(1).operations - asked >= 10);  // it looked each time
  CHECK(two.wire(1).notices == sent);
}

TEST_CASE("who misses every wake-up is granted within a recheck, in whichever process",
          "[waiting][processes][leases]") {
  for (const bool across : {false, true}) {
    for (const Span recheck : {Span{1ms}, Span{50ms}, Span{1s}, Span{10s}}) {
      CAPTURE(across, recheck);
      Leases two(2, {.recheck = recheck}, 1, long_lease);
      if (!across) {
        for (const auto& limiter : two.limiters) limiter->set_wait_queue({.recheck = recheck});
      }
      two.lose_wake_ups();
      two.slow_down(100us);
      two.wait(0, 1);
      two.time.advance(10ms);
      REQUIRE(two.grants.size() == 1);
      two.wait(1, 2);
      two.time.advance(7'777'777us);
      REQUIRE(two.grants.size() == 1);
      const Span freed = two.time.now() - two.start;
      two.held[1]->release_later();
      two.time.advance(1h);
      REQUIRE(two.grants.size() == 2);
      CHECK(two.grants[1].second <= freed + recheck + 1ms);
    }
  }
}

TEST_CASE("pauses double from 1 ms to recheck for who could be granted but for its turn",
          "[waiting][processes]") {
  std::vector<Time> asked;
  Leases two(2, {.ticket_ttl = 1min, .recheck = 200ms}, 2, long_lease);
  two.wire(1).is_deaf = true;
  const Lease held = hold_one(two, 2);
  enter_dead(two);
  two.wire(1).asked_at = &asked;
  two.time.advance(1ms);
  two.wait(1, 2);
  two.time.advance(2s);
  CHECK(two.grants.empty());
  std::vector<Span> pauses;
  for (std::size_t i = 1; i < asked.size(); ++i) {
    if (asked[i] > asked[i - 1]) pauses.push_back(asked[i] - asked[i - 1]);
  }
  const std::vector<Span> expected{1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 200ms, 200ms};
  REQUIRE(pauses.size() >= expected.size());
  pauses.resize(expected.size());
  CHECK(pauses == expected);
  two.time.advance(58s);
  CHECK(two.order() == std::vector{2});
}

TEST_CASE("who is refused behind others is told when their tickets end", "[waiting][processes]") {
  Leases two(2, {.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  enter_dead(two);
  Decision refusal;
  const auto waits = wait_for(two.limiter(1), request_of(two.limiter(1), "a", 1), 5s,
                              [&](std::error_code, const Lease& no) { refusal = no.decision(); });
  two.time.advance(5s);
  CHECK(waits->times_over() == 1);
  CHECK(refusal.retry_after == 55s);
}

TEST_CASE("a cancelled waiter gives the ticket of its process up at once", "[waiting][processes]") {
  Leases two(2, {.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  const Lease held = hold_one(two, 1);
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

TEST_CASE("a process that leaves its place, or moves back, wakes the one that is first then",
          "[waiting][processes][leases]") {
  const bool moves_back = GENERATE(false, true);
  const bool has_hint = GENERATE(false, true);
  // The first needs more than there is: with it goes what keeps the other waiting.
  Leases two(2, {.ticket_ttl = 1min, .recheck = 1h}, 2, long_lease);
  const Lease held = hold_one(two, 2);
  Lease also;
  if (has_hint) also = hold_one(two, 2);
  two.wait(0, 1, 2);
  two.time.advance(10ms);
  two.wait(1, 2);
  two.time.advance(10ms);
  also = {};
  if (moves_back) two.wait(0, 3, 2);
  two.time.advance(10ms);
  CHECK(two.grants.empty());
  two.probes[0]->cancel();
  CHECK(two.order() == std::vector{2});
}

TEST_CASE("a call that keeps its turn while it waits elsewhere keeps no other process waiting",
          "[waiting][processes][claims]") {
  const bool is_alone = GENERATE(true, false);
  Processes<TokenBucket> two(2, {.recheck = 1h}, Quota::per_second(1).burst(1));
  const TokenBucket other(two.wire(0), "other", Quota::per(1, 700ms).burst(1));
  REQUIRE(two.limiter(0).try_acquire("a"));
  const std::vector<Claim> claims{{two.limiter(0), "a"}, {other, "a"}};
  const auto both = wait_for(Several{}, detail::limits_of(claims), Deadline::never(),
                             [](std::error_code, const Grants&) {});
  two.time.advance(500ms);
  two.wait(1, 1);
  two.time.advance(300ms);
  if (!is_alone) two.wait(0, 2);
  REQUIRE(TokenBucket(*two.store, "other", other.quota()).try_acquire("a"));
  two.time.advance(200ms);  // the first is refused by its other limit
  CHECK(two.grants == Granted{{1, 1s}});
  both->cancel();
}

TEST_CASE("an option that changes while callers wait holds for those who come when none do",
          "[waiting][processes]") {
  Leases two(2, {.ticket_ttl = 1min, .recheck = 1h}, 1, long_lease);
  Lease held = hold_one(two, 1);
  two.wait(0, 1);
  two.time.advance(10ms);
  REQUIRE(two.first() == 1);
  two.limiter(0).set_wait_queue({.across_processes = false, .recheck = 1h});
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

}  // namespace sluice::test
