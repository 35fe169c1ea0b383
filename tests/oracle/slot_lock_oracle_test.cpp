// Slot locks against the list of all slots ever granted: random reservations, cancellations, late
// ones, resets, two intervals on one key, corrected clocks. Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

/// The definition, taken literally: a slot may begin where no earlier one still lasts.
class Oracle {
 public:
  /// The first instant from `now` on that no slot covers and none was granted behind.
  [[nodiscard]] Time earliest(Time now) const {
    Time at = std::max({now, given_back_, closed_});
    for (const Slot& slot : slots_) at = std::max(at, slot.begin + slot.interval);
    return at;
  }
  void grant(Time begin, Span interval) { slots_.push_back({begin, interval}); }
  /// True if it was the last one, also of those given back, and its end lies ahead.
  bool cancel(Time begin, Span interval, Time now) {
    if (slots_.empty() || earliest(Time{}) != begin + interval || now >= begin + interval) {
      return false;
    }
    const Slot& last = slots_.back();
    if (last.begin != begin || last.interval != interval) return false;
    given_back_ = begin;
    slots_.pop_back();
    return true;
  }
  /// Nothing begins before it, and what was granted before it stays granted.
  void block(Time now, Span span) {
    if (span == 0us) return;
    const Time free = earliest(now);
    closed_ = free < now + span ? now + span : free + 1us;
    slots_.clear();
  }
  void reset() { *this = {}; }

 private:
  struct Slot {
    Time begin;
    Span interval;
  };
  std::vector<Slot> slots_;
  Time given_back_{};
  Time closed_{};
};

struct Held {
  SlotPermit permit;
  std::size_t lock;
};

/// Moves the clock: often to the edge of a slot, sometimes back by less than a correction.
void move(Random& random, VirtualClock& clock, Time& latest, Span hint, Span interval) {
  switch (random.below(6)) {
    case 0:
      clock.advance(hint - Span{random.between(0, hint > 0us ? 1 : 0)});
      break;
    case 1:
      clock.advance(Span{random.between(0, 2 * interval.count())});
      break;
    case 2:
      clock.set(std::max(latest - 60s, clock.now() - Span{random.between(0, 90'000'000)}));
      break;
    default:
      break;
  }
  latest = std::max(latest, clock.now());
}

}  // namespace

TEST_CASE("every slot is what the list of all slots says", "[oracle][slot_lock]") {
  Random random("every slot is what the list of all slots says");
  CAPTURE(random.repeat());
  std::size_t granted = 0;
  std::size_t refused = 0;
  std::size_t cancelled = 0;
  std::size_t blocked = 0;
  std::size_t overtaken = 0;  // by what is reserved for longer
  for (std::size_t history = 0; history < scaled(400); ++history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const Span interval{random.one_in(4) ? random.between(1, 3) : random.between(1, 40'000'000)};
    const Span other{random.between(1, 3 * interval.count())};
    const std::array locks{SlotLock(*store, "lock", interval), SlotLock(*store, "lock", other)};
    Oracle oracle;
    std::vector<Held> held;
    Time latest = clock.now();
    Span hint{0};
    for (int i = 0; i < 100; ++i) {
      move(random, clock, latest, hint, interval);
      const std::size_t which = random.below(locks.size());
      const SlotLock& lock = locks[which];
      const Time now = clock.now();
      if (random.one_in(50)) {
        lock.reset("k");
        oracle.reset();
        held.clear();  // they are the holders' no more
        continue;
      }
      if (random.one_in(15)) {
        const Span span{random.one_in(5) ? 0 : random.between(1, 4 * interval.count())};
        const bool reserved = oracle.earliest(now) > now + span;
        oracle.block(now, span);
        const Decision d = lock.block("k", span);
        REQUIRE(d.allowed);
        REQUIRE(d.reset_after == oracle.earliest(now) - now);
        if (span > 0us && !held.empty()) ++(reserved ? overtaken : blocked);
        continue;
      }
      if (!held.empty() && random.one_in(4)) {
        const std::size_t place = random.one_in(2) ? held.size() - 1 : random.below(held.size());
        const Held victim = held[place];
        const bool expected = oracle.cancel(victim.permit.at(), locks[victim.lock].interval(), now);
        REQUIRE(locks[victim.lock].cancel("k", victim.permit) == expected);
        if (expected) held.erase(held.begin() + static_cast<std::ptrdiff_t>(place));
        cancelled += expected ? 1 : 0;
        continue;
      }
      const Span max_wait{random.one_in(3) ? 0 : random.between(0, 5 * interval.count())};
      const Span wait = oracle.earliest(now) - now;
      const bool peeks = random.one_in(5);
      const SlotPermit permit =
          peeks ? SlotPermit{lock.peek("k", max_wait)} : lock.reserve("k", max_wait);
      const Decision& d = permit.decision;
      INFO("history " << history << ", call " << i << ", wait " << wait.count());
      REQUIRE(d.allowed == (wait <= max_wait));
      REQUIRE(d.retry_after == (d.allowed ? wait : wait - max_wait));
      REQUIRE(d.remaining == (peeks && wait == 0us ? 1 : 0));
      hint = d.retry_after;
      if (!d.allowed) {
        ++refused;
        REQUIRE(d.reset_after == wait);
      } else if (!peeks) {
        ++granted;
        oracle.grant(now + wait, lock.interval());
        REQUIRE(d.reset_after == oracle.earliest(now) - now);
        held.push_back({permit, which});
      }
    }
  }
  CHECK(granted > scaled(4000));
  CHECK(refused > scaled(4000));
  CHECK(cancelled > scaled(400));
  CHECK(blocked > scaled(100));
  CHECK(overtaken > scaled(100));
}

TEST_CASE("slots that are kept never lie closer than the interval, in the order of asking",
          "[oracle][slot_lock][S4]") {
  Random random("slots that are kept never lie closer than the interval, in the order of asking");
  CAPTURE(random.repeat());
  std::size_t gaps = 0;
  for (std::size_t history = 0; history < scaled(100); ++history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const SlotLock lock(*store, "lock", Span{random.between(1, 5'000'000)});
    std::vector<SlotPermit> kept;
    Time latest = clock.now();
    Span hint{0};
    for (int i = 0; i < 200; ++i) {
      move(random, clock, latest, hint, lock.interval());
      const SlotPermit permit =
          lock.reserve("k", random.one_in(3) ? 0us : Span{random.between(0, 60'000'000)});
      hint = permit.decision.retry_after;
      if (permit) kept.push_back(permit);
      if (!kept.empty() && random.one_in(5) && lock.cancel("k", kept.back())) kept.pop_back();
    }
    for (std::size_t i = 1; i < kept.size(); ++i, ++gaps) {
      REQUIRE(kept[i].at() - kept[i - 1].at() >= lock.interval());
    }
  }
  CHECK(gaps > 20 * scaled(100));
}
