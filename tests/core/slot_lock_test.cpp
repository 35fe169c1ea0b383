// The kernel of the slot lock as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/slot_lock.hpp"

#include "tests/catch.hpp"
#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Word start = 946'684'800'000'000;
constexpr Span second = 1s;

Ask acquire(Span max_wait = 0s, Span interval = second) {
  return {&slot_lock_acquire, {1, interval.count(), max_wait.count()}};
}
Ask peek(Span max_wait = 0s) { return {&slot_lock_peek, {1, second.count(), max_wait.count()}}; }
Ask cancel(Span slot, Span interval = second) {
  return {&slot_lock_cancel, {1, interval.count(), start + slot.count()}};
}
Ask block(Span span, Span interval = second) {
  return {&slot_lock_block, {1, interval.count(), span.count()}};
}
const Ask reset{&slot_lock_reset, {1}};

/// A grant `wait` ahead, after which no slot is free for `until_free`.
Verdict granted(Span wait, Span until_free) {
  return {Verdict::allowed, 0, wait.count(), until_free.count()};
}
Verdict refused(Span retry_after, Span until_free) {
  return {Verdict::refused, 0, retry_after.count(), until_free.count()};
}
Verdict none_to_refund(Word free, Span until_free) {
  return {Verdict::refused, free, 0, until_free.count()};
}
Verdict given_back(Word free, Span until_free) {
  return {Verdict::allowed, free, 0, until_free.count()};
}
/// A block after which no slot is free for `until_free`.
Verdict closed(Span until_free) { return {Verdict::allowed, 0, 0, until_free.count()}; }
const Verdict free_now{Verdict::allowed, 1, 0, 0};

}  // namespace

TEST_CASE("slots lie an interval apart, to the microsecond", "[core][slot_lock]") {
  check_moments(start, {
                           {0ms, acquire(), granted(0s, 1s)},
                           {0ms, acquire(), refused(1s, 1s)},
                           {1s - 1us, acquire(), refused(1us, 1us)},
                           {1s, acquire(), granted(0s, 1s)},
                           {1s, peek(), refused(1s, 1s)},
                           {2s - 1us, peek(), refused(1us, 1us)},
                           {2s, peek(), free_now},
                           {5s, acquire(), granted(0s, 1s)},  // slots do not pile up
                           {5s, acquire(), refused(1s, 1s)},
                       });
}

TEST_CASE("a reservation gets the next free slot and its exact wait", "[core][slot_lock]") {
  check_moments(start, {
                           {0ms, acquire(2s), granted(0s, 1s)},
                           {0ms, acquire(2s), granted(1s, 2s)},
                           {0ms, peek(2s), Verdict{Verdict::allowed, 0, 2'000'000, 2'000'000}},
                           {0ms, acquire(2s), granted(2s, 3s)},
                           {0ms, acquire(2s), refused(1s, 3s)},
                           {0ms, acquire(), refused(3s, 3s)},
                           {1s - 1us, acquire(2s), refused(1us, 2s + 1us)},
                           {1s, acquire(2s), granted(2s, 3s)},
                           {1s, acquire(3s), granted(3s, 4s)},
                           {10s, acquire(), granted(0s, 1s)},
                       });
}

TEST_CASE("only the last reservation can be given back, and then it never was",
          "[core][slot_lock]") {
  check_moments(start, {
                           {0ms, cancel(0s), none_to_refund(1, 0s)},
                           {0ms, acquire(9s), granted(0s, 1s)},
                           {0ms, acquire(9s), granted(1s, 2s)},
                           {0ms, acquire(9s), granted(2s, 3s)},
                           {0ms, cancel(1s), none_to_refund(0, 3s)},
                           {0ms, cancel(2s), given_back(0, 2s)},
                           {0ms, cancel(2s), none_to_refund(0, 2s)},
                           {0ms, acquire(9s), granted(2s, 3s)},
                           {500ms, cancel(2s), given_back(0, 1500ms)},
                           {500ms, cancel(1s), given_back(0, 500ms)},
                           {500ms, cancel(0s), given_back(1, 0s)},
                           {500ms, acquire(), granted(0s, 1s)},
                       });
}

TEST_CASE("a slot that has passed cannot be given back", "[core][slot_lock]") {
  const std::vector<Moment> before{{0ms, acquire(), granted(0s, 1s)}};
  auto late = before;
  late.push_back({1s, cancel(0s), none_to_refund(1, 0s)});
  check_moments(start, late);
  auto in_time = before;
  in_time.push_back({1s - 1us, cancel(0s), given_back(1, 0s)});
  in_time.push_back({1s - 1us, acquire(), granted(0s, 1s)});
  check_moments(start, in_time);
  auto another_interval = before;
  another_interval.push_back({0ms, cancel(0s, 2s), none_to_refund(0, 1s)});
  check_moments(start, another_interval);
}

TEST_CASE("a reset forgets what is reserved", "[core][slot_lock]") {
  check_moments(start, {{0ms, acquire(9s), granted(0s, 1s)},
                        {0ms, acquire(9s), granted(1s, 2s)},
                        {0ms, reset, free_now},
                        {0ms, acquire(), granted(0s, 1s)}});
}

TEST_CASE("a block closes the key to the microsecond, and later slots follow it",
          "[core][slot_lock]") {
  check_moments(start, {
                           {0ms, block(5s), closed(5s)},
                           {0ms, acquire(), refused(5s, 5s)},
                           {5s - 1us, acquire(), refused(1us, 1us)},
                           {5s - 1us, acquire(1us), granted(1us, 1s + 1us)},
                           {5s, acquire(), refused(1s, 1s)},
                           {6s, acquire(), granted(0s, 1s)},
                           {6s, block(1us), closed(1s + 1us)},
                           {6s, block(0s), closed(1s + 1us)},  // nothing
                           {7s + 1us, acquire(), granted(0s, 1s)},
                           {20s, block(0s), free_now},
                           {20s, acquire(), granted(0s, 1s)},
                       });
}

TEST_CASE("a longer block stands, and a slot that was reserved keeps its time",
          "[core][slot_lock]") {
  check_moments(start, {
                           {0ms, acquire(9s), granted(0s, 1s)},
                           {0ms, acquire(9s), granted(1s, 2s)},
                           {0ms, block(10s), closed(10s)},
                           {1s, block(2s), closed(9s + 1us)},
                           {1s, acquire(10s), granted(9s + 1us, 10s + 1us)},
                           {1s, reset, free_now},
                           {1s, acquire(), granted(0s, 1s)},
                       });
}

TEST_CASE("no slot that is given back opens what was blocked since", "[core][slot_lock]") {
  const std::vector<Moment> queue{{0ms, acquire(9s), granted(0s, 1s)},
                                  {0ms, acquire(9s), granted(1s, 2s)},
                                  {0ms, acquire(9s), granted(2s, 3s)}};
  // Ended between slots, with the last one, at its beginning, behind all.
  for (const Span span : {1'500'000us, 3'000'000us, 2'000'000us, 3'000'001us, 1us}) {
    INFO(span.count());
    Kernel kernel(start);
    for (const Moment& moment : queue) kernel.ask(moment.at, moment.ask);
    const Span until = std::max(span, 3s + 1us);
    CHECK(kernel.ask(0ms, block(span)) == closed(until));
    for (const Span slot : {2s, 1s, 0s}) {
      CHECK(kernel.ask(0ms, cancel(slot)) == none_to_refund(0, until));
    }
    // Behind the block slots come back as ever, down to its end.
    CHECK(kernel.ask(0ms, acquire(9s)) == granted(until, until + 1s));
    CHECK(kernel.ask(0ms, cancel(until)) == given_back(0, until));
    CHECK(kernel.ask(until - 1us, acquire()) == refused(1us, 1us));
  }
}

TEST_CASE("a block counts from the new time of a clock that was set back", "[core][slot_lock]") {
  // Reserved until 102 s at 100 s: two seconds of it are left at any earlier time.
  for (const Span span : {Span{1s}, Span{5s}}) {
    Kernel kernel(start);
    kernel.ask(100s, acquire(9s));
    kernel.ask(100s, acquire(9s));
    const Span until = span < 2s ? 2s + 1us : span;
    CHECK(kernel.ask(-10h, block(span)) == closed(until));
    CHECK(kernel.ask(-10h, acquire()) == refused(until, until));
    CHECK(kernel.ask(-10h + until, acquire()) == granted(0s, 1s));
  }
}

TEST_CASE("a block is kept for as long as it closes, and writes nothing that it could forget",
          "[core][slot_lock]") {
  const auto keep = [](Span span) {
    return Span{slot_lock_block.ttl({1, second.count(), span.count()})};
  };
  const Span longest{SlotLockRule::max_block};
  CHECK(keep(longest) == longest + 1us + Span{Operation::clock_slack});
  // A slot reserved by another interval, up to the bound of this one's block and beyond.
  const Span most = 24h + 60s + second;
  for (const Span beyond : {0us, 1us}) {
    Kernel kernel(start);
    kernel.ask(0us, acquire(0s, most + beyond));
    const StateWords before = kernel.words();
    CHECK(kernel.ask(0us, block(1s)) == closed(beyond > 0us ? most + beyond : most + 1us));
    CHECK((kernel.words() == before) == (beyond > 0us));
    CHECK(kernel.words()[0] - start <= keep(1s).count() + beyond.count());
  }
}

TEST_CASE("another interval counts from the next slot on", "[core][slot_lock]") {
  check_moments(start, {{0ms, acquire(0s, 10s), granted(0s, 10s)},
                        {1s, acquire(0s, 1s), refused(9s, 9s)},
                        {10s, acquire(0s, 1s), granted(0s, 1s)},
                        {11s, acquire(0s, 10s), granted(0s, 10s)}});
}

TEST_CASE("a clock set back by up to a minute leaves the slots where they are",
          "[core][slot_lock]") {
  check_moments(start, {{100s, acquire(9s), granted(0s, 1s)},
                        {100s, acquire(9s), granted(1s, 2s)},
                        {40s, acquire(61s), refused(1s, 62s)},
                        {40s, acquire(62s), granted(62s, 63s)},
                        {102s, acquire(), refused(1s, 1s)},
                        {103s, acquire(), granted(0s, 1s)}});
}

TEST_CASE("beyond a minute the queue counts from the clock's new time", "[core][slot_lock]") {
  // Three slots are reserved at 100 s, until 103 s. At 40 s less a tick the queue is as long.
  const std::vector<Moment> queue{{100s, acquire(9s), granted(0s, 1s)},
                                  {100s, acquire(9s), granted(1s, 2s)},
                                  {100s, acquire(9s), granted(2s, 3s)}};
  auto kept = queue;
  kept.push_back({40s - 1us, peek(9s), Verdict{Verdict::allowed, 0, 3'000'000, 3'000'000}});
  kept.push_back({40s - 1us, acquire(9s), granted(3s, 4s)});
  kept.push_back({40s - 1us, acquire(9s), granted(4s, 5s)});
  kept.push_back({44s - 1us, acquire(), refused(1s, 1s)});
  kept.push_back({45s - 1us, acquire(), granted(0s, 1s)});
  check_moments(start, kept);

  // Who would not wait for it passes once; a refusal could not note the new time.
  auto passed = queue;
  passed.push_back({-10h, acquire(), granted(0s, 1s)});
  passed.push_back({-10h, acquire(), refused(1s, 1s)});
  passed.push_back({-10h + 1s, acquire(), granted(0s, 1s)});
  check_moments(start, passed);

  auto not_given_back = queue;
  not_given_back.push_back({-10h, cancel(2s + 100s), none_to_refund(1, 0s)});
  check_moments(start, not_given_back);
}

TEST_CASE("a day of reservations is no clock set back", "[core][slot_lock]") {
  check_moments(start, {{0ms, acquire(24h, 1h), granted(0s, 1h)},
                        {0ms, acquire(24h, 24h), granted(1h, 25h)},
                        {0ms, acquire(24h, 1h), refused(1h, 25h)},
                        {1h, acquire(24h, 1h), granted(24h, 25h)}});
}

TEST_CASE("a refused slot is granted at its hint and not a microsecond before",
          "[core][slot_lock][L1]") {
  for (const Span max_wait : {0us, 1us, 400'000us, 999'999us}) {
    for (const Span asked : {0us, 1us, 300'000us, 999'998us}) {
      Kernel kernel(start);
      kernel.ask(0us, acquire(0s));
      kernel.ask(0us, acquire(1s));
      const Verdict refusal = kernel.ask(asked, acquire(max_wait));
      REQUIRE(refusal.status == Verdict::refused);
      const Span due = asked + Span{refusal.retry_after};
      CHECK(kernel.ask(due - 1us, acquire(max_wait)).retry_after == 1);
      CHECK(kernel.ask(due, acquire(max_wait)) == granted(max_wait, max_wait + 1s));
    }
  }
}

TEST_CASE("a slot lock's arguments out of range are errors", "[core][slot_lock][C-078]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Span longest{SlotLockRule::max_interval};
  check_moments(start, {
                           {0ms, acquire(0s, 0us), wrong},
                           {0ms, acquire(0s, -1us), wrong},
                           {0ms, acquire(0s, longest + 1us), wrong},
                           {0ms, acquire(-1us), wrong},
                           {0ms, acquire(24h + 1us), wrong},
                           {0ms, peek(-1us), wrong},
                           {0ms, cancel(Span{-start - 1}), wrong},
                           {0ms, block(-1us), wrong},
                           {0ms, block(longest + 1us), wrong},
                           {0ms, block(1s, 0us), wrong},
                           {0ms, block(1s, longest + 1us), wrong},
                           {0ms, {&slot_lock_block, {2, 1, 1}}, wrong},
                           {0ms, {&slot_lock_reset, {2}}, wrong},
                           {0ms, {&slot_lock_acquire, {2, 1, 0}}, wrong},
                           {0ms, acquire(24h, 1us), granted(0s, 1us)},
                           {1us, acquire(24h, longest), granted(0s, longest)},
                       });
  for (const Operation* row : {&slot_lock_acquire, &slot_lock_peek}) {
    CHECK(row->check({1, 1, 0}) == Verdict::allowed);
    CHECK(row->check({1, 0, 0}) == wrong.status);
    CHECK(row->check({1, 1, SlotLockRule::max_horizon + 1}) == wrong.status);
  }
}

TEST_CASE("words that no slot lock leaves are a corrupt state", "[core][slot_lock]") {
  const Verdict corrupt = Verdict::failed(Errc::corrupt_state);
  for (const StateWords& words : {StateWords{start, start + 1}, StateWords{0, 1}, StateWords{-1, 0},
                                  StateWords{word_limit + 1, 0}, StateWords{0, -1}}) {
    Kernel kernel(start, words);
    CHECK(kernel.ask(0ms, acquire()) == corrupt);
    CHECK(kernel.ask(0ms, peek()) == corrupt);
    CHECK(kernel.ask(0ms, cancel(0s)) == corrupt);
    CHECK(kernel.ask(0ms, block(1s)) == corrupt);
    CHECK(kernel.words() == words);
  }
}

TEST_CASE("at the ends of time a slot lock stays within its words", "[core][slot_lock]") {
  Kernel first(0);
  CHECK(first.ask(0us, acquire()) == granted(0s, 1s));
  CHECK(first.ask(0us, acquire()) == refused(1s, 1s));
  CHECK(first.ask(0us, {&slot_lock_cancel, {1, second.count(), 0}}) == given_back(1, 0s));
  CHECK(first.words() == StateWords{});
  Kernel last(word_limit);
  CHECK(last.ask(0us, acquire()) == granted(0s, 0s));
  CHECK(last.words() == StateWords{word_limit, word_limit});
  CHECK(last.ask(0us, block(Span{SlotLockRule::max_block})) == closed(0s));
  CHECK(last.words() == StateWords{word_limit, word_limit});
}
