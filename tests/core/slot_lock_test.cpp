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

/// A grant `wait` ahead, after which no slot is free for `until_free`.
Verdict granted(Span wait, Span until_free) {
  return {Verdict::allowed, 0, wait.count(), until_free.count()};
}
Verdict refused(Span retry_after, Span until_free) {
  return {Verdict::refused, 0, retry_after.count(), until_free.count()};
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
