// The sliding windows limiter against a list of admissions that is counted anew for every answer.
// Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

using Units = std::vector<Word>;  // the time of each admitted unit, never decreasing
using Windows = std::vector<WindowLimit>;

Word within(const Units& units, Word after, Word until) {
  return std::count_if(units.begin(), units.end(),
                       [&](Word unit) { return unit > after && unit <= until; });
}

bool fits(const Units& units, const Windows& windows, Word at, Word cost) {
  return std::ranges::all_of(windows, [&](const WindowLimit& window) {
    return within(units, at - window.span.count(), word_limit) + cost <= window.limit;
  });
}

/// The first instant at which the cost fits behind all that is there and `block`: room comes only
/// as a unit leaves a window. Nothing always fits.
Word grant_of(const Units& units, const Windows& windows, Word block, Word now, Word cost) {
  const Word from = std::max({now, block, units.empty() ? now : units.back()});
  Word best = fits(units, windows, from, cost) ? from : word_limit;
  for (const Word unit : units) {
    for (const WindowLimit& window : windows) {
      const Word at = unit + window.span.count();
      if (at > from && at < best && fits(units, windows, at, cost)) best = at;
    }
  }
  return best;
}

std::vector<Word> left_of(const Units& units, const Windows& windows, Word now) {
  std::vector<Word> left;
  for (const WindowLimit& window : windows) {
    const Word held = within(units, now - window.span.count(), word_limit);
    left.push_back(std::max(Word{0}, window.limit - held));
  }
  return left;
}

/// Longer windows with larger limits, so that each may bind.
Windows random_windows(Random& random, Word most) {
  Windows windows;
  Word span = random.between(1, 40);
  Word limit = random.between(1, 6);
  const auto count = random.between(1, random.one_in(4) ? 8 : 3);
  for (Word k = 0; k < count && limit <= most; ++k) {
    windows.push_back({limit, Span{span}});
    span += random.between(1, 60);
    limit += random.between(1, 6);
  }
  for (std::size_t k = windows.size(); k > 1; --k) {
    std::swap(windows[k - 1], windows[random.below(k)]);
  }
  return windows;
}

void check_left(const WindowsDecision& decision, const Units& units, const Windows& windows,
                Word block, Word now) {
  const std::vector<Word> left = left_of(units, windows, now);
  CHECK(std::ranges::equal(decision.windows(), left));
  const bool queue = block > now || (!units.empty() && units.back() > now);
  CHECK(decision.remaining == (queue ? 0 : std::ranges::min(left)));
}

/// An admitted request names the window with the least.
void check_part(const WindowsDecision& decision) {
  CHECK(decision.windows()[decision.part] == std::ranges::min(decision.windows()));
}

/// One limiter, one key, and the oracle's list.
class Trial {
 public:
  Trial(Store& store, VirtualClock& clock, const Windows& windows, int number)
      : limiter_(store, "w" + std::to_string(number), windows), clock_(clock), windows_(windows) {}

  void step(Random& random) {
    const Word cost = random.between(0, least());
    switch (random.below(13)) {
      case 0:
        return ask(cost, 0, false);
      case 1:
      case 2:
        return ask(cost, random.between(0, 150), true);
      case 3:
        if (!random.one_in(8)) return give_back(random.between(0, least()));
        limiter_.reset("k");
        block_ = 0;
        return units_.clear();
      case 4:
        return settle(random.between(0, 2 * least() + 1));
      case 5:
        if (random.one_in(3)) return reward(random.between(0, random.one_in(4) ? 100 : least()));
        return random.one_in(3) ? block(random.between(0, 100)) : ask(cost, 0, true);
      default:
        return ask(cost, 0, true);
    }
  }

  void move(Random& random) {
    if (random.one_in(3)) return;
    if (random.one_in(3) && hint_ > 0) {
      clock_.advance(Span{std::max(Word{0}, hint_ - 1 + random.between(0, 1))});
    } else {
      clock_.advance(Span{random.between(0, random.one_in(20) ? 400 : 25)});
    }
    hint_ = 0;
  }

 private:
  [[nodiscard]] Word least() const {
    return std::ranges::min(windows_, {}, &WindowLimit::limit).limit;
  }
  [[nodiscard]] Word longest() const {
    return std::ranges::max(windows_, {}, &WindowLimit::span).span.count();
  }

  void ask(Word cost, Word max_wait, bool spends) {
    const Word now = to_word(clock_.now());
    const Word grant = grant_of(units_, windows_, block_, now, cost);
    const WindowsDecision decision = !spends         ? limiter_.peek("k", cost)
                                     : max_wait == 0 ? limiter_.try_acquire("k", cost)
                                                     : limiter_.reserve("k", cost, Span{max_wait});
    INFO("cost " << cost << ", max_wait " << max_wait << ", now " << now << ", grant " << grant);
    REQUIRE(decision.allowed == (grant - now <= max_wait));
    const Word wait = decision.allowed ? grant - now : grant - now - max_wait;
    CHECK(decision.retry_after.count() == wait);
    if (decision.allowed && spends) {
      units_.insert(units_.end(), static_cast<std::size_t>(cost), grant);
      last_ = decision;
      last_units_ = cost;
    }
    check_left(decision, units_, windows_, block_, now);
    if (decision.allowed) {
      check_part(decision);
    } else {
      const bool by_block = grant_of(units_, windows_, 0, now, cost) < block_;
      CHECK((!by_block || decision.part == windows_.size()));
    }
    hint_ = wait;
  }

  void block(Word span) {
    const Word now = to_word(clock_.now());
    const WindowsDecision decision = limiter_.block("k", Span{span});
    if (span > 0) block_ = std::max(block_, now + span);
    check_left(decision, units_, windows_, block_, now);
    check_part(decision);
    Word clear = block_ - now;
    if (!units_.empty()) clear = std::max(clear, units_.back() + longest() - now);
    CHECK(decision.reset_after.count() == std::max(Word{0}, clear));
    CHECK(limiter_.peek("k", 1).reset_after == decision.reset_after);
  }

  /// What had left a full log comes back: it counts only beside what is reserved ahead.
  void reward(Word amount) {
    const Word now = to_word(clock_.now());
    const auto most = std::ranges::max(windows_, {}, &WindowLimit::limit).limit;
    if (std::ssize(units_) > most && units_.back() > now) return;
    units_.resize(units_.size() - std::min(units_.size(), static_cast<std::size_t>(amount)));
    check_left(limiter_.reward("k", amount), units_, windows_, block_, now);
    last_ = {};
  }

  /// Only of what was granted for at once: see the page for what a cancelled wait gives back.
  void give_back(Word unused, std::optional<Word> true_cost = {}) {
    if (!last_.allowed || last_.retry_after.count() > 0) return;
    const Word time = to_word(last_.at);
    Word given = 0;
    while (given < std::min(unused, last_units_) && !units_.empty() && units_.back() == time) {
      units_.pop_back();
      ++given;
    }
    if (true_cost) {
      CHECK(limiter_.settle("k", last_, {last_units_, *true_cost}).given_back == given);
    } else {
      CHECK(limiter_.refund("k", last_, std::min(unused, last_units_)) == given);
    }
    last_ = {};
  }

  /// The last grant turns out to have cost less, or more.
  void settle(Word actual) {
    if (!last_.allowed || last_.retry_after.count() > 0) return;
    if (actual <= last_units_) return give_back(last_units_ - actual, actual);
    const Word more = actual - last_units_;
    const SettledCost cost{.estimated = last_units_, .actual = actual};
    std::error_code error;
    const Settlement settled = limiter_.settle("k", last_, cost, error);
    last_ = {};
    if (more > least()) {
      CHECK(error == Errc::cost_exceeds_capacity);
      CHECK(settled.charged == 0);
      return;
    }
    CHECK_FALSE(error);
    CHECK(settled.charged == more);
    const Word grant = grant_of(units_, windows_, block_, to_word(clock_.now()), more);
    units_.insert(units_.end(), static_cast<std::size_t>(more), grant);
  }

  SlidingWindow limiter_;
  VirtualClock& clock_;
  Windows windows_;
  Units units_;
  Decision last_;
  Word last_units_ = 0;
  Word block_ = 0;  // its end
  Word hint_ = 0;
};

/// The units of a window of each span never exceed `most`.
void check_bound(const Units& units, const WindowLimit& window, Word most) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    while (units[first] <= units[i] - window.span.count()) ++first;
    REQUIRE(static_cast<Word>(i - first + 1) <= most);
  }
}

Word ceil_div(Span a, Span b) { return (a + b - Span{1}) / b; }

Word most_under(const WindowLimit& window, Span span) {
  return window.limit * ceil_div(span, window.span);
}

}  // namespace

TEST_CASE("every answer is what counting all admissions gives",
          "[oracle][sliding_window][C-001][C-002][C-003][C-005]") {
  Random random("every answer is what counting all admissions gives");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto trials = static_cast<int>(test::scaled(300, 10));
  for (int i = 0; i < trials; ++i) {
    const Windows windows = random_windows(random, 30);
    Trial trial(*store, clock, windows, i);
    for (int step = 0; step < 150; ++step) {
      INFO("trial " << i << ", step " << step);
      trial.step(random);
      trial.move(random);
    }
  }
}

TEST_CASE("cancelled reservations never let a window admit too much", "[oracle][sliding_window]") {
  Random random("cancelled reservations never let a window admit too much");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i < test::scaled(300, 10); ++i) {
    const Windows windows = random_windows(random, 20);
    const SlidingWindow limiter(*store, "c" + std::to_string(i), windows);
    Units units;
    for (int step = 0; step < 150; ++step) {
      const Word least = std::ranges::min(windows, {}, &WindowLimit::limit).limit;
      const auto held = limiter.reserve("k", random.between(1, least),
                                        Span{random.between(0, random.one_in(2) ? 0 : 300)});
      if (held.allowed && held.retry_after.count() > 0 && random.one_in(2)) {
        REQUIRE(limiter.cancel("k", held) == held.units);
        ++cancelled;
      } else if (held.allowed) {
        units.insert(units.end(), static_cast<std::size_t>(held.units), to_word(held.time()));
      }
      clock.advance(Span{random.between(0, 12)});
    }
    for (const WindowLimit& window : windows) check_bound(units, window, window.limit);
  }
  CHECK(cancelled > 100);
}

TEST_CASE("after a change no interval of either span holds more than one of the two allows",
          "[oracle][sliding_window]") {
  Random random("after a change no interval of either span holds more than one of the two allows");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  for (std::size_t i = 0; i < test::scaled(400, 10); ++i) {
    const auto draw = [&] {
      return WindowLimit{random.between(1, 40), Span{random.between(1, 100)}};
    };
    const WindowLimit before = draw();
    const WindowLimit after = draw();
    Units units;
    const auto ask = [&](const WindowLimit& window) {
      const SlidingWindow limiter(*store, "r" + std::to_string(i), {window});
      for (int step = 0; step < 100; ++step) {
        const Word cost = random.between(1, std::min(window.limit, Word{5}));
        const auto decision = limiter.try_acquire("k", cost);
        if (decision.allowed) {
          units.insert(units.end(), static_cast<std::size_t>(cost), to_word(decision.at));
        } else if (decision.retry_after.count() > 1) {
          clock.advance(decision.retry_after - Span{1});
          REQUIRE_FALSE(limiter.try_acquire("k", cost).allowed);
          clock.advance(Span{1});
          REQUIRE(limiter.peek("k", cost).allowed);
        }
        clock.advance(Span{random.between(0, 3)});
      }
    };
    ask(before);
    const std::size_t old_units = units.size();
    ask(after);
    INFO(before.limit << "/" << before.span.count() << " to " << after.limit << "/"
                      << after.span.count());
    check_bound(units, after, std::max(after.limit, most_under(before, after.span)));
    check_bound(units, before, std::max(before.limit, most_under(after, before.span)));
    units.resize(old_units);
    check_bound(units, before, before.limit);
  }
}
