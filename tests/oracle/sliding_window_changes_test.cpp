// Sliding windows that change under one name, against sums over every interval of what was granted.
// Threading: single-threaded.
#include <algorithm>
#include <set>
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

using Windows = std::vector<WindowLimit>;

/// One of them has this span.
bool promise(const Windows& windows, Word span) {
  return std::ranges::find(windows, Span{span}, &WindowLimit::span) != windows.end();
}

/// What windows promise of an interval that is one of their spans, or else allow in it.
Word allowed_in(const Windows& windows, Word span) {
  Word least = word_limit;
  for (const WindowLimit& window : windows) {
    if (window.span.count() == span) return window.limit;
    const Word begun = (span - 1) / window.span.count() + 1;
    least = std::min(least, window.limit * begun);
  }
  return least;
}

/// Its windows are in force from when it was asked for until its time.
struct Grant {
  Word asked;
  Word time;
  std::size_t windows;
  Word units;  // that were not given back
};

/// By how much some interval that ends with `last` exceeds the largest of what the windows in force
/// in it allow.
Word excess_until(Word last, Word span, const std::vector<Grant>& grants,
                  const std::vector<Windows>& all) {
  Word units = 0;
  Word most = 0;
  bool promised = false;
  for (const Grant& grant : grants) {
    if (grant.time <= last - span || grant.asked > last) continue;
    most = std::max(most, allowed_in(all[grant.windows], span));
    if (grant.time > last || grant.units == 0) continue;
    units += grant.units;
    promised = promised || promise(all[grant.windows], span);
  }
  return promised ? units - most : 0;
}

/// The largest excess of any interval as long as a span of windows in force in it.
Word worst_excess(const std::vector<Grant>& grants, const std::vector<Windows>& all) {
  std::set<Word> spans;
  for (const Windows& windows : all) {
    for (const WindowLimit& window : windows) spans.insert(window.span.count());
  }
  Word worst = 0;
  for (const Word span : spans) {
    for (const Grant& last : grants) {
      worst = std::max(worst, excess_until(last.time, span, grants, all));
    }
  }
  return worst;
}

/// How lives are drawn.
struct Draw {
  std::size_t configurations;
  Word most_windows;
  Word most_limit;
  Word most_span;
  bool alternate;  // callers of all of them at any time; else one after the other
};

Windows draw_windows(Random& random, const Draw& draw) {
  Windows windows;
  for (Word k = random.between(1, draw.most_windows); k > 0; --k) {
    const Span span{random.between(1, draw.most_span)};
    if (!promise(windows, span.count())) {
      windows.push_back({random.between(1, draw.most_limit), span});
    }
  }
  return windows;
}

/// One key under several configurations.
class Life {
 public:
  Life(Random& random, const Draw& draw, Store& store, VirtualClock& clock, const std::string& name)
      : random_(random), draw_(draw), clock_(clock) {
    for (std::size_t i = 0; i < draw.configurations; ++i) {
      all_.push_back(draw_windows(random, draw));
      limiters_.emplace_back(store, name, all_.back());
    }
  }

  void live() {
    constexpr std::size_t steps = 160;
    for (std::size_t step = 0; step < steps; ++step) {
      if (!draw_.alternate) {
        present_ = step * limiters_.size() / steps;
      } else if (random_.one_in(3)) {
        present_ = static_cast<std::size_t>(random_.below(limiters_.size()));
      }
      if (random_.one_in(20)) block();
      ask();
      if (random_.one_in(2)) clock_.advance(Span{random_.between(0, draw_.most_span / 8 + 1)});
    }
    REQUIRE(worst_excess(grants_, all_) == 0);
  }

  /// How often it was refused by what earlier windows had left.
  [[nodiscard]] std::size_t guarded() const { return guarded_; }

 private:
  void ask() {
    const SlidingWindow& limiter = limiters_[present_];
    const Word least = std::ranges::min(all_[present_], {}, &WindowLimit::limit).limit;
    const Word cost = random_.one_in(3) ? least : random_.between(1, least);
    const Span wait{random_.one_in(8) ? random_.between(0, draw_.most_span) : 0};
    const auto decision = limiter.reserve("k", cost, wait);
    if (decision.allowed) return note(decision, cost);
    if (decision.part == all_[present_].size() && block_ <= to_word(clock_.now())) ++guarded_;
    if (!random_.one_in(3)) return;
    clock_.advance(decision.retry_after - Span{1});
    const auto early = limiter.reserve("k", cost, wait);
    REQUIRE_FALSE(early.allowed);
    REQUIRE(early.retry_after == Span{1});
    clock_.advance(Span{1});
    const auto due = limiter.reserve("k", cost, wait);
    REQUIRE(due.allowed);
    note(due, cost);
  }

  /// Its windows are in force from then on, as if nothing were granted behind all that is reserved.
  void block() {
    const Word now = to_word(clock_.now());
    const Word span = random_.between(0, draw_.most_span / 2);
    CHECK(limiters_[present_].block("k", Span{span}).allowed);
    if (span == 0 || now + span <= block_) return;
    block_ = now + span;
    Word latest = now;
    for (const Grant& grant : grants_) latest = std::max(latest, grant.time);
    grants_.push_back({now, latest, present_, 0});
  }

  void note(const WindowReservation& grant, Word cost) {
    REQUIRE(to_word(grant.time()) >= block_);
    Word units = cost;
    if (random_.one_in(6)) {
      units -= limiters_[present_].refund("k", grant, random_.between(0, cost));
    }
    grants_.push_back({to_word(grant.at), to_word(grant.time()), present_, units});
  }

  Random& random_;
  const Draw& draw_;
  VirtualClock& clock_;
  std::vector<Windows> all_;
  std::vector<SlidingWindow> limiters_;
  std::vector<Grant> grants_;
  std::size_t present_ = 0;
  std::size_t guarded_ = 0;
  Word block_ = 0;  // its end
};

void live_often(Random& random, const Draw& draw) {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  std::size_t guarded = 0;
  const std::size_t lives = test::scaled(1000, 20);
  for (std::size_t i = 0; i < lives || (guarded == 0 && i < 20 * lives); ++i) {
    INFO("life " << i);
    Life life(random, draw, *store, clock, "w" + std::to_string(i));
    life.live();
    guarded += life.guarded();
  }
  CHECK(guarded > 0);
}

}  // namespace

TEST_CASE("over a change of windows no interval holds more than the larger quota allows",
          "[oracle][sliding_window]") {
  Random random("over a change of windows no interval holds more than the larger quota allows");
  CAPTURE(random.repeat());
  live_often(random, {2, 3, 12, 100, false});
  live_often(random, {2, 8, 400, 2'000, false});
}

TEST_CASE("old and new callers side by side keep the larger of their quotas",
          "[oracle][sliding_window]") {
  Random random("old and new callers side by side keep the larger of their quotas");
  CAPTURE(random.repeat());
  live_often(random, {2, 3, 12, 100, true});
  live_often(random, {2, 3, 400, 2'000, true});
}

TEST_CASE(
    "several changes within a span keep the larger of all quotas while their guards are short",
    "[oracle][sliding_window]") {
  Random random(
      "several changes within a span keep the larger of all quotas while their guards are short");
  CAPTURE(random.repeat());
  live_often(random, {3, 2, 8, 30, true});
  live_often(random, {3, 2, 8, 30, false});
}

TEST_CASE("what a long window admitted holds a short one back until it has left the long one",
          "[oracle][sliding_window]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  REQUIRE(SlidingWindow(*store, "w", {{17, Span{55}}}).try_acquire("k", 17).allowed);
  const SlidingWindow limiter(*store, "w", {{8, Span{33}}});
  Word units = 0;
  for (int at = 0; at < 55; ++at, clock.advance(Span{1})) {
    units += limiter.try_acquire("k", 1).allowed ? 1 : 0;
  }
  CHECK(units == 0);
  CHECK(limiter.try_acquire("k", 8).allowed);
}
