// Fixed windows against the list of all that was spent and given back, each with the name of its
// window: random costs, refunds, limits and corrected clocks. Threading: single-threaded.
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

__extension__ typedef __int128 Wide;

constexpr Time start = VirtualClock::default_start;  // 2000-01-01 00:00 UTC, a Saturday
constexpr Word day_us = 86'400'000'000;

/// Which window an instant lies in, by a number that rises from one to the next.
using Naming = std::function<Word(Time)>;

struct Kind {
  Calendar calendar;
  Naming window;
  Span about;  // the width, roughly
};

/// The clocks of this place jump from 0:00 to 1:00 on 2000-03-26, and from 1:00 back to 0:00 on
/// 2000-10-29.
Span local_offset(Time t) {
  return t >= start + 85 * 24h && t < start + 302 * 24h ? Span{1h} : Span{0};
}

Kind draw_kind(Random& random) {
  switch (random.below(4)) {
    case 0: {
      const Word width = random.between(1, random.one_in(2) ? 20 : 200'000'000);
      const Word origin = random.between(0, 3 * width);
      return {
          Calendar::every(Span{width}, Time{Span{origin}}),
          [=](Time t) {
            return static_cast<Word>((Wide{to_word(t)} - Wide{origin} + Wide{4} * width) / width);
          },
          Span{width}};
    }
    case 1: {
      const TimeZone zone("Place", {{Time{}, 0h}, {start + 85 * 24h, 1h}, {start + 302 * 24h, 0h}});
      return {Calendar::daily(zone),
              [](Time t) {
                // The clock shows the old date again for no moment: it goes back to 0:00.
                return to_word(t + local_offset(t)) / day_us;
              },
              24h};
    }
    case 2:
      return {Calendar::weekly(),
              [](Time t) { return (to_word(t) / day_us + 3) / 7; },  // 1970 began on a Thursday
              7 * 24h};
    default:
      return {Calendar::monthly(),
              [](Time t) {
                // By counting days from the year 2000 on.
                Word day = (to_word(t) - to_word(start)) / day_us;
                Word month = 0;
                for (;; ++month) {
                  const Word year = 2000 + month / 12;
                  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
                  constexpr std::array<Word, 12> days{31, 28, 31, 30, 31, 30,
                                                      31, 31, 30, 31, 30, 31};
                  const Word length = days[std::size_t(month % 12)] + (leap && month % 12 == 1);
                  if (day < length) return month;
                  day -= length;
                }
              },
              30 * 24h};
  }
}

/// The first instant after `from` that lies in a later window: by halving, since names rise.
Time next_window(const Naming& window, Time from, Span about) {
  Time low = from;
  Time high = from + about + about / 2;
  while (high - low > 1us) {
    const Time middle = low + (high - low) / 2;
    (window(middle) > window(from) ? high : low) = middle;
  }
  return high;
}

/// The first instant after `from` that lies in the window of `to`, a later one.
Time first_of(const Naming& window, Time from, Time to) {
  while (to - from > 1us) {
    const Time middle = from + (to - from) / 2;
    (window(middle) < window(to) ? from : to) = middle;
  }
  return to;
}

/// The definition, taken literally.
struct Oracle {
  struct Entry {
    Word window;
    Word units;
  };
  std::vector<Entry> spent;
  std::optional<Time> latest{};  // in the last window that was spent of
  Time closed{};                 // until then nothing is admitted

  /// The window of `at` is remembered, and no block.
  void keep(Time at) {
    latest = at;
    closed = {};
  }
  [[nodiscard]] Word used(Word window) const {
    Word sum = 0;
    for (const Entry& entry : spent) sum += entry.window == window ? entry.units : 0;
    return sum;
  }
};

}  // namespace

TEST_CASE("every window is what the list of all that was spent says", "[oracle][fixed_window]") {
  Random random("every window is what the list of all that was spent says");
  CAPTURE(random.repeat());
  std::size_t refused = 0;
  std::size_t refunded = 0;
  std::size_t adjusted = 0;
  std::size_t blocked_within = 0;  // with something used of the window that the block ends in
  std::size_t blocked_beyond = 0;
  std::size_t held_off = 0;
  for (std::size_t history = 0; history < scaled(400); ++history) {
    VirtualClock clock(start + Span{random.between(0, 330 * day_us)});
    const auto store = make_virtual_store(clock);
    const Kind kind = draw_kind(random);
    const auto draw_limit = [&] { return random.between(1, random.one_in(2) ? 5 : 1000); };
    Word limit = draw_limit();
    const bool changes = random.one_in(3);
    Oracle oracle;
    const auto clear_after = [&](Time now) {  // of a block
      const bool rests = oracle.used(kind.window(oracle.closed)) > 0;
      return (rests ? next_window(kind.window, oracle.closed, kind.about) : oracle.closed) - now;
    };
    std::vector<std::pair<Decision, Word>> grants;
    Time high = clock.now();
    Span hint{0};
    for (int i = 0; i < 100; ++i) {
      if (changes && random.one_in(8)) limit = draw_limit();
      const FixedWindow limiter(*store, "w", limit, kind.calendar);
      if (random.one_in(3)) clock.advance(hint - Span{random.between(0, hint > 0us ? 1 : 0)});
      if (random.one_in(3)) clock.advance(Span{random.between(0, kind.about.count() / 3)});
      if (random.one_in(12)) {
        clock.set(std::max(high - 60s, clock.now() - Span{random.between(0, 60'000'000)}));
      }
      high = std::max(high, clock.now());
      const Time now = clock.now();
      const bool closed = oracle.closed > now;
      // A window that was spent of stays the present one while a corrected clock lies before it.
      const bool ahead = oracle.latest && kind.window(*oracle.latest) > kind.window(now);
      const Time at = ahead ? *oracle.latest : now;
      const Word window = kind.window(at);
      const Time end = next_window(kind.window, at, kind.about);
      const Word used = oracle.used(window);
      INFO("history " << history << ", call " << i << ", used " << used << " of " << limit);
      if (random.one_in(20)) {
        const Word about = kind.about.count();
        const Span span{random.between(0, random.one_in(3) ? 3 * about : 1 + about / 4)};
        Time until = now + span;
        if (span > 0us && until > oracle.closed) {
          // A window ahead of a corrected clock was opened already.
          if (oracle.latest && kind.window(*oracle.latest) > kind.window(until)) {
            until = first_of(kind.window, until, *oracle.latest);
          }
          oracle.closed = until;
          oracle.latest.reset();
        }
        const Decision d = limiter.block("k", span);
        REQUIRE(d.allowed);
        REQUIRE(d.remaining == (oracle.closed > now ? 0 : std::max<Word>(0, limit - used)));
        if (oracle.closed > now) {
          REQUIRE(d.reset_after == clear_after(now));
          ++(oracle.used(kind.window(oracle.closed)) > 0 ? blocked_within : blocked_beyond);
        }
        hint = random.one_in(2) ? std::max(Span{0}, oracle.closed - now) : d.reset_after;
        continue;
      }
      if (!grants.empty() && random.one_in(5)) {
        const auto& [taken, units] = grants[random.below(grants.size())];
        const Word back = random.between(0, units);
        // While blocked, the window that the block ends in.
        const Word place = closed ? kind.window(oracle.closed) : window;
        const Word there = oracle.used(place);
        const bool same = kind.window(taken.at) == place && there > 0;
        REQUIRE(limiter.refund("k", taken, back) == (same ? std::min(back, there) : 0));
        if (same) {
          oracle.spent.push_back({place, -std::min(back, there)});
          const Decision d = limiter.peek("k");
          REQUIRE(d.remaining == (closed ? 0 : std::max<Word>(0, limit - oracle.used(place))));
          if (closed) REQUIRE(d.reset_after == clear_after(now));
          ++refunded;
        }
        continue;
      }
      if (random.one_in(8)) {
        const Word amount = random.between(0, random.one_in(4) ? 3 * limit : 3);
        const bool rewards = random.one_in(2);
        const Word change = rewards ? -std::min(amount, used) : amount;
        const Decision d = rewards ? limiter.reward("k", amount) : limiter.penalize("k", amount);
        REQUIRE(d.allowed);
        if (closed) {
          if (window == kind.window(oracle.closed)) oracle.spent.push_back({window, change});
          REQUIRE(d.remaining == 0);
          REQUIRE(d.reset_after == clear_after(now));
          continue;
        }
        REQUIRE(d.remaining == std::max<Word>(0, limit - used - change));
        REQUIRE(d.reset_after == (used + change > 0 ? end - now : Span{0}));
        if (change != 0) oracle.keep(at);
        oracle.spent.push_back({window, change});
        adjusted += change != 0 ? 1 : 0;
        continue;
      }
      const Word cost = random.between(0, std::min<Word>(limit, random.one_in(3) ? limit : 3));
      const bool peeks = random.one_in(5);
      const Decision d = peeks ? limiter.peek("k", cost) : limiter.try_acquire("k", cost);
      if (closed) {
        const bool fits = oracle.used(kind.window(oracle.closed)) + cost <= limit;
        REQUIRE_FALSE(d.allowed);
        REQUIRE(d.remaining == 0);
        REQUIRE(d.reset_after == clear_after(now));
        REQUIRE(d.retry_after == (fits ? oracle.closed - now : clear_after(now)));
        hint = d.retry_after;
        ++held_off;
        continue;
      }
      REQUIRE(d.allowed == (used + cost <= limit));
      REQUIRE(d.retry_after == (d.allowed ? Span{0} : end - now));
      const Word after = d.allowed && !peeks ? used + cost : used;
      REQUIRE(d.remaining == std::max<Word>(0, limit - after));
      REQUIRE(d.reset_after == (after > 0 ? end - now : Span{0}));
      hint = d.allowed ? d.reset_after : d.retry_after;
      refused += d.allowed ? 0 : 1;
      if (!d.allowed || peeks || cost == 0) continue;
      oracle.spent.push_back({window, cost});
      oracle.keep(at);
      if (kind.window(d.at) == window) grants.emplace_back(d, cost);
    }
  }
  CHECK(refused > scaled(1000));
  CHECK(refunded > scaled(200));
  CHECK(adjusted > scaled(200));
  CHECK(blocked_within > scaled(100));
  CHECK(blocked_beyond > scaled(200));
  CHECK(held_off > scaled(200));
}
