// The sliding window counter's counts changed by hand, against a count for each aligned window; and
// its worst case, while units are given back and while its limit changes.
// Threading: single-threaded.
#include <algorithm>
#include <map>
#include <vector>

#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

__extension__ typedef __int128 Wide;

/// Units by aligned window, for ever.
class Oracle {
 public:
  explicit Oracle(Word span) : span_(span) {}

  [[nodiscard]] Word estimate(Word at) const {
    const Word window = at / span_;
    const Wide weight = Wide{of(window - 1)} * (span_ - at % span_);
    return of(window) + static_cast<Word>((weight + span_ - 1) / span_);
  }
  /// Adds units to the window of `taken`, or takes them off; none if nobody counts it any more.
  Word change(Word taken, Word units, Word now) {
    if (taken / span_ + 1 < now / span_) return 0;
    Word& count = units_[taken / span_];
    const Word change = std::max(units, -count);
    count += change;
    return std::abs(change);
  }
  Word reward(Word units, Word now) {
    const Word off = change(now, -units, now);
    return off + change(now - span_, -(units - off), now);
  }

 private:
  [[nodiscard]] Word of(Word window) const {
    const auto found = units_.find(window);
    return found == units_.end() ? 0 : found->second;
  }

  Word span_;
  std::map<Word, Word> units_;
};

struct Taken {
  Decision decision;
  Word units;
};

/// The most units that any `span` holds.
Word most_in(const std::vector<Taken>& all, Word span) {
  Word most = 0;
  for (std::size_t from = 0; from < all.size(); ++from) {
    Word sum = 0;
    for (std::size_t i = from; i < all.size(); ++i) {
      if (to_word(all[i].decision.at) - to_word(all[from].decision.at) >= span) break;
      sum += all[i].units;
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("what is given back, charged and rewarded is counted in its own window",
          "[oracle][sliding_window_counter]") {
  Random random("what is given back, charged and rewarded is counted in its own window");
  CAPTURE(random.repeat());
  std::size_t given = 0;
  std::size_t held_off = 0;
  const std::size_t lives = test::scaled(300, 10);
  for (std::size_t life = 0; life < lives; ++life) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const Word limit = random.between(1, 60);
    const Word span = random.between(1, 90);
    const SlidingWindowCounter limiter(*store, "v", {limit, Span{span}});
    Oracle oracle(span);
    std::vector<Taken> taken;
    Time closed{};
    for (int step = 0; step < 120; ++step) {
      const Word now = to_word(clock.now());
      const Word units = random.between(0, limit / 2 + 1);
      INFO(limit << "/" << span << ", step " << step << ", " << units << " units");
      switch (random.below(8)) {
        case 0:
          limiter.penalize("k", units);
          oracle.change(now, units, now);
          break;
        case 1:
          limiter.reward("k", units);
          oracle.reward(units, now);
          if (random.one_in(2)) {
            const Span length{random.between(0, random.one_in(3) ? 3 * span : 1 + span / 4)};
            closed = std::max(closed, clock.now() + length);
            REQUIRE(limiter.block("k", length).allowed);
          }
          break;
        case 2:
        case 3:
          if (!taken.empty()) {
            const Taken& one = taken[random.below(taken.size())];
            const Word at = to_word(one.decision.at);
            const Word actual = random.between(0, 2 * one.units);
            const Settlement s =
                limiter.settle("k", one.decision, {.estimated = one.units, .actual = actual});
            const Word changed = oracle.change(at, actual - one.units, now);
            REQUIRE(s.given_back + s.charged == changed);
            REQUIRE((actual < one.units ? s.charged : s.given_back) == 0);
            given += s.given_back > 0 ? 1 : 0;
          }
          break;
        default:
          if (const Decision d = limiter.try_acquire("k", std::min(units, limit))) {
            REQUIRE((clock.now() >= closed || units == 0));
            oracle.change(now, std::min(units, limit), now);
            taken.push_back({d, std::min(units, limit)});
          }
      }
      const Decision seen = limiter.peek("k", 1);
      if (clock.now() < closed) {
        REQUIRE_FALSE(seen.allowed);
        REQUIRE(seen.remaining == 0);
        // The counts only ever weigh less.
        REQUIRE((seen.retry_after == closed - clock.now()) ==
                (oracle.estimate(to_word(closed)) < limit));
        REQUIRE(seen.retry_after >= closed - clock.now());
        ++held_off;
      } else {
        REQUIRE(seen.remaining == std::max<Word>(0, limit - oracle.estimate(now)));
        REQUIRE(seen.allowed == (oracle.estimate(now) < limit));
      }
      if (!seen && random.one_in(2)) {  // the hint is exact
        clock.advance(seen.retry_after - Span{1});
        REQUIRE(limiter.peek("k").retry_after == Span{1});
        clock.advance(Span{1});
        REQUIRE(limiter.peek("k").allowed);
      }
      if (random.one_in(2)) clock.advance(Span{random.between(0, span / 2 + 1)});
    }
  }
  CHECK(given > lives);
  CHECK(held_off > lives);
}

TEST_CASE("what is given back never lifts the worst case, whoever asks with which limit",
          "[oracle][sliding_window_counter]") {
  Random random("what is given back never lifts the worst case, whoever asks with which limit");
  CAPTURE(random.repeat());
  std::size_t given = 0;
  const std::size_t lives = test::scaled(2000, 100);
  for (std::size_t life = 0; life < lives; ++life) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const Word span = random.between(2, 20);
    const std::array limits{random.between(1, 20), random.between(1, 20)};
    const std::array callers{SlidingWindowCounter(*store, "v", {limits[0], Span{span}}),
                             SlidingWindowCounter(*store, "v", {limits[1], Span{span}})};
    const std::size_t fixed = random.below(4);  // only one, only the other, both in turn
    std::vector<Taken> taken;
    for (int step = 0; step < 60; ++step) {
      const SlidingWindowCounter& caller = callers[fixed < 2 ? fixed : random.below(2)];
      if (!taken.empty() && random.one_in(4)) {
        Taken& one = taken[taken.size() - 1 - random.below(std::min<std::size_t>(taken.size(), 6))];
        const Word back = caller.refund("k", one.decision, random.between(0, one.units));
        one.units -= back;
        given += back > 0 ? 1 : 0;
      }
      const Word cost = random.one_in(2) ? caller.peek("k", 0).remaining : 1;
      if (const Decision d = caller.try_acquire("k", cost)) taken.push_back({d, cost});
      if (random.one_in(2)) clock.advance(Span{random.one_in(2) ? 1 : random.between(0, span)});
    }
    const Word limit = fixed < 2 ? limits[fixed] : std::max(limits[0], limits[1]);
    INFO(limits[0] << ", " << limits[1] << " in " << span << " us");
    REQUIRE(most_in(taken, span) <= SlidingWindowCounterRule::worst_case(limit, span));
  }
  CHECK(given > lives);
}
