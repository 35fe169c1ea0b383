// The kernel of the slot lock as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/slot_lock.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

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
Verdict granted(Span wait, Span until_free) { return admitted(0, until_free, wait); }
Verdict refused(Span retry_after, Span until_free) { return turned_away(retry_after, until_free); }
/// A block after which no slot is free for `until_free`.
Verdict closed(Span until_free) { return admitted(0, until_free); }
const Verdict free_now = admitted(1, 0s);

}  // namespace

TEST_CASE("slots lie an interval apart, and a reservation gets the next one with its exact wait",
          "[core][slot_lock]") {
  check_moments({{0ms, acquire(), granted(0s, 1s)},
                 {1s - 1us, acquire(), refused(1us, 1us)},
                 {1s, acquire(), granted(0s, 1s)},
                 {1s, peek(), refused(1s, 1s)},
                 {2s, peek(), free_now},
                 {5s, acquire(2s), granted(0s, 1s)},  // slots do not pile up
                 {5s, acquire(2s), granted(1s, 2s)},
                 {5s, peek(2s), admitted(0, 2s, 2s)},
                 {5s, acquire(2s), granted(2s, 3s)},
                 {5s, acquire(2s), refused(1s, 3s)},
                 {5s, acquire(), refused(3s, 3s)},
                 {6s - 1us, acquire(2s), refused(1us, 2s + 1us)},
                 {6s, acquire(2s), granted(2s, 3s)}});
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
    Kernel kernel;
    kernel.ask(0us, acquire(0s, most + beyond));
    const auto before = kernel.state;
    CHECK(kernel.ask(0us, block(1s)) == closed(beyond > 0us ? most + beyond : most + 1us));
    CHECK((kernel.state == before) == (beyond > 0us));
    CHECK(kernel.state[0] - start <= keep(1s).count() + beyond.count());
  }
}

TEST_CASE("words that no slot lock leaves are a corrupt state", "[core][slot_lock]") {
  const std::vector<Ask> all{acquire(), peek(), cancel(0s), block(1s)};
  Kernel used;
  used.ask(0s, acquire());
  check_corrupt(used, 0s, {{1, used.state[0] + 1}, {0, -1}, {0, word_limit + 1}, {1, -1}}, all);
  check_corrupt(Kernel(), 0s, {{1, 1}}, all);
}

TEST_CASE("at the ends of time a slot lock stays within its words", "[core][slot_lock]") {
  Kernel first(0);
  CHECK(first.ask(0us, acquire()) == granted(0s, 1s));
  CHECK(first.ask(0us, {&slot_lock_cancel, {1, second.count(), 0}}) == free_now);
  CHECK(first.state == Output{0, 0});
  Kernel last(word_limit);
  CHECK(last.ask(0us, acquire()) == granted(0s, 0s));
  CHECK(last.ask(0us, block(Span{SlotLockRule::max_block})) == closed(0s));
  CHECK(last.state == Output{word_limit, word_limit});
}
