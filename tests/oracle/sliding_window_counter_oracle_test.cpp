// The sliding window counter against a list of admissions and its estimate in wide integers, and
// its error against an exact count. Threading: single-threaded.
#include "sluice/limiters/sliding_window_counter.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

__extension__ typedef __int128 Wide;

struct Admission {
  Word at;
  Word units;
};

class Oracle {
 public:
  explicit Oracle(Word span) : span_(span) {}

  [[nodiscard]] Word estimate(Word at) const {
    const Word start = at / span_ * span_;
    Word current = 0;
    Wide previous = 0;
    for (const auto& [when, units] : admissions_) {
      if (when >= start) current += units;
      if (when < start && when >= start - span_) previous += units;
    }
    const Wide weight = previous * (start + span_ - at);
    return current + static_cast<Word>((weight + span_ - 1) / span_);
  }
  void admit(Word at, Word units) { admissions_.push_back({at, units}); }
  void forget(Word before) {
    std::erase_if(admissions_, [&](const Admission& a) { return a.at < before; });
  }

 private:
  Word span_;
  std::vector<Admission> admissions_;
};

}  // namespace

TEST_CASE("every answer is the estimate's, and every hint is exact to the tick",
          "[oracle][sliding_window_counter]") {
  Random random("every answer is the estimate's, and every hint is exact to the tick");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < test::scaled(300, 10); ++i) {
    const bool large = random.one_in(3);
    const Word most = large ? SlidingWindowCounterRule::max_limit : 50;
    const std::array limits{random.between(1, most), random.between(1, most)};
    const Word span =
        large ? random.between(1, SlidingWindowCounterRule::max_span) : random.between(1, 90);
    const bool in_turn = random.one_in(3);  // limiters of two limits
    Oracle oracle(span);
    for (int step = 0; step < 120; ++step) {
      const Word now = to_word(clock.now());
      const Word limit = limits[in_turn ? random.below(2) : 0];
      const SlidingWindowCounter limiter(*store, "o" + std::to_string(i), {limit, Span{span}});
      const auto fits_at = [&](Word at, Word units) {
        return oracle.estimate(at) + units <= limit;
      };
      const Word cost = random.one_in(3) ? random.between(0, limit) : random.between(0, limit / 4);
      INFO(limit << "/" << span << ", cost " << cost << ", step " << step);
      const bool fits = fits_at(now, cost);
      const bool asks = random.one_in(5);
      const Decision decision = asks ? limiter.peek("k", cost) : limiter.try_acquire("k", cost);
      REQUIRE(decision.allowed == fits);
      if (fits && !asks) oracle.admit(now, cost);
      REQUIRE(decision.remaining == std::max(Word{0}, limit - oracle.estimate(now)));
      Word ahead = random.between(0, random.one_in(10) ? 3 * span : span / 3 + 1);
      if (!fits) {
        ++refused;
        const Word hint = decision.retry_after.count();
        REQUIRE(hint > 0);
        REQUIRE_FALSE(fits_at(now + hint - 1, cost));
        REQUIRE(fits_at(now + hint, cost));
        if (random.one_in(2)) ahead = hint - random.between(0, 1);
      }
      clock.advance(Span{std::min(ahead, word_limit / 4096)});
      oracle.forget(to_word(clock.now()) - 3 * span);
      if (to_word(clock.now()) > word_limit / 4 * 3) clock.set(VirtualClock::default_start);
      if (to_word(clock.now()) < now) break;
    }
  }
  CHECK(refused > 100);
}

namespace {

/// The most units in any `span` ticks, over all ways to spend greedily or not in three windows.
Word search_most(Word limit, Word span, Random& random, int tries) {
  VirtualClock clock(to_time(0));
  const auto store = make_virtual_store(clock);
  const SlidingWindowCounter limiter(*store, "s", {limit, Span{span}});
  Word most = 0;
  for (int i = 0; i < tries; ++i) {
    limiter.reset("k");
    clock.set(to_time(0));
    std::vector<Word> ticks(static_cast<std::size_t>(3 * span));
    const Word quiet = random.between(0, span);  // nothing is asked before this tick
    for (Word tick = 0; tick < 3 * span; ++tick) {
      if (tick >= quiet && (i % 2 == 0 || !random.one_in(3))) {
        const Word cost = limiter.peek("k", 0).remaining;
        if (cost > 0 && limiter.try_acquire("k", cost))
          ticks[static_cast<std::size_t>(tick)] = cost;
      }
      clock.advance(Span{1});
    }
    for (std::size_t end = 0; end < ticks.size(); ++end) {
      Word sum = 0;
      for (std::size_t j = 0; j < static_cast<std::size_t>(span) && j <= end; ++j) {
        sum += ticks[end - j];
      }
      most = std::max(most, sum);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("the worst case in any window is what is documented, and is reached",
          "[oracle][sliding_window_counter]") {
  Random random("the worst case in any window is what is documented, and is reached");
  CAPTURE(random.repeat());
  for (const Word limit : {1, 2, 3, 7, 10, 50}) {
    for (const Word span : {1, 2, 3, 5, 8, 20}) {
      INFO(limit << " in " << span << " us");
      CHECK(search_most(limit, span, random, 60) <=
            SlidingWindowCounterRule::worst_case(limit, span));
    }
  }
  for (const Word limit : {2, 7, 10, 50}) {
    for (const Word span : {3, 5, 8, 20}) {
      VirtualClock clock(to_time(span - 1));
      const auto store = make_virtual_store(clock);
      const SlidingWindowCounter limiter(*store, "s", {limit, Span{span}});
      Word sum = limiter.try_acquire("k", limit) ? limit : 0;
      clock.set(to_time(2 * span - 2));  // the last instant whose window holds the first one
      const Word rest = limiter.peek("k", 0).remaining;
      if (limiter.try_acquire("k", rest)) sum += rest;
      INFO(limit << " in " << span << " us");
      CHECK(sum == limiter.worst_case());
    }
  }
}
