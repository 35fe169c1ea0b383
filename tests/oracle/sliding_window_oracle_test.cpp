// The sliding windows limiter against a list of admissions that is counted anew for every answer,
// while callers with other limits, in another order, share its logs. Threading: single-threaded.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using test::for_each_store;
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

/// Longer windows with larger limits, so that each may bind; then the same spans in another order
/// and under other limits.
std::vector<Windows> random_configurations(Random& random, Word most) {
  Windows windows;
  Word span = random.between(1, 40);
  Word limit = random.between(1, 6);
  const auto count = random.between(1, random.one_in(4) ? 8 : 3);
  for (Word k = 0; k < count && limit <= most; ++k) {
    windows.push_back({limit, Span{span}});
    span += random.between(1, 60);
    limit += random.between(1, 6);
  }
  std::vector<Windows> all{windows};
  for (std::size_t more = random.below(3); more > 0; --more) {
    for (WindowLimit& window : windows) window.limit = random.between(1, most);
    all.push_back(windows);
  }
  for (Windows& one : all) {
    for (std::size_t k = one.size(); k > 1; --k) std::swap(one[k - 1], one[random.below(k)]);
  }
  return all;
}

std::vector<SlidingWindow> limiters_of(Store& store, const std::string& name,
                                       const std::vector<Windows>& all) {
  std::vector<SlidingWindow> limiters;
  for (const Windows& windows : all) limiters.emplace_back(store, name, windows);
  return limiters;
}

Word largest(const Windows& windows) {
  return std::ranges::max(windows, {}, &WindowLimit::limit).limit;
}

/// An admitted request names the window with the least.
void check_part(const WindowsDecision& decision) {
  CHECK(decision.windows()[decision.part] == std::ranges::min(decision.windows()));
}

/// Limiters that share one key, and the oracle's list.
class Trial {
 public:
  Trial(Store& store, VirtualClock& clock, std::vector<Windows> all, const std::string& name)
      : limiters_(limiters_of(store, name, all)), clock_(clock), all_(std::move(all)) {
    for (const Windows& windows : all_) smallest_ring_ = std::min(smallest_ring_, largest(windows));
  }

  void step(Random& random) {
    if (random.one_in(10)) present_ = random.below(all_.size());
    const Word cost = random.between(0, least());
    switch (random.below(13)) {
      case 0:
        return ask(cost, 0, false);
      case 1:
      case 2:
        return ask(cost, random.between(0, 150), true);
      case 3:
        if (!random.one_in(8)) return refund(random.between(0, least()));
        limiter().reset("k");
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
  [[nodiscard]] const SlidingWindow& limiter() const { return limiters_[present_]; }
  [[nodiscard]] const Windows& windows() const { return all_[present_]; }
  /// Some units have left a full log.
  [[nodiscard]] bool has_dropped() const { return std::ssize(units_) > smallest_ring_; }
  [[nodiscard]] Word least() const {
    return std::ranges::min(windows(), {}, &WindowLimit::limit).limit;
  }
  [[nodiscard]] Word longest() const {
    return std::ranges::max(windows(), {}, &WindowLimit::span).span.count();
  }

  void ask(Word cost, Word max_wait, bool spends) {
    const Word now = to_word(clock_.now());
    const Word grant = grant_of(units_, windows(), block_, now, cost);
    const WindowsDecision decision = !spends         ? limiter().peek("k", cost)
                                     : max_wait == 0 ? limiter().try_acquire("k", cost)
                                                     : limiter().reserve("k", cost, Span{max_wait});
    INFO("cost " << cost << ", max_wait " << max_wait << ", now " << now << ", grant " << grant);
    REQUIRE(decision.allowed == (grant - now <= max_wait));
    const Word wait = decision.allowed ? grant - now : grant - now - max_wait;
    CHECK(decision.retry_after.count() == wait);
    if (decision.allowed && spends) {
      units_.insert(units_.end(), static_cast<std::size_t>(cost), grant);
      last_ = decision;
      last_units_ = cost;
    }
    check_left(decision, now);
    if (decision.allowed) {
      check_part(decision);
    } else {
      const bool by_block = grant_of(units_, windows(), 0, now, cost) < block_;
      CHECK((!by_block || decision.part == windows().size()));
    }
    hint_ = wait;
  }

  /// What had left a log that has grown since counts beside what is reserved ahead, until then.
  void check_left(const WindowsDecision& decision, Word now) const {
    const std::vector<Word> left = left_of(units_, windows(), now);
    const bool ahead = !units_.empty() && units_.back() > now;
    if (ahead && has_dropped() && all_.size() > 1) {
      CHECK(std::ranges::equal(decision.windows(), left, std::less_equal<>()));
    } else {
      CHECK(std::ranges::equal(decision.windows(), left));
      CHECK(decision.remaining == (ahead || block_ > now ? 0 : std::ranges::min(left)));
    }
  }

  void block(Word span) {
    const Word now = to_word(clock_.now());
    const WindowsDecision decision = limiter().block("k", Span{span});
    if (span > 0) block_ = std::max(block_, now + span);
    check_left(decision, now);
    check_part(decision);
    Word clear = block_ - now;
    if (!units_.empty()) clear = std::max(clear, units_.back() + longest() - now);
    CHECK(decision.reset_after.count() == std::max(Word{0}, clear));
    CHECK(limiter().peek("k", 1).reset_after == decision.reset_after);
  }

  /// What had left a full log comes back: it counts only beside what is reserved ahead.
  void reward(Word amount) {
    const Word now = to_word(clock_.now());
    if (has_dropped() && units_.back() > now) return;
    units_.resize(units_.size() - std::min(units_.size(), static_cast<std::size_t>(amount)));
    check_left(limiter().reward("k", amount), now);
    last_ = {};
  }

  /// Only of what was granted for at once: see the page for what a cancelled wait gives back.
  void refund(Word unused, std::optional<Word> true_cost = {}) {
    if (!last_.allowed || last_.retry_after.count() > 0) return;
    const Word time = to_word(last_.at);
    Word given = 0;
    while (given < std::min(unused, last_units_) && !units_.empty() && units_.back() == time) {
      units_.pop_back();
      ++given;
    }
    if (true_cost) {
      CHECK(limiter().settle("k", last_, {last_units_, *true_cost}).given_back == given);
    } else {
      CHECK(limiter().refund("k", last_, std::min(unused, last_units_)) == given);
    }
    last_ = {};
  }

  /// The last grant turns out to have cost less, or more.
  void settle(Word actual) {
    if (!last_.allowed || last_.retry_after.count() > 0) return;
    if (actual <= last_units_) return refund(last_units_ - actual, actual);
    const Word more = actual - last_units_;
    const SettledCost cost{.estimated = last_units_, .actual = actual};
    std::error_code error;
    const Settlement settled = limiter().settle("k", last_, cost, error);
    last_ = {};
    if (more > least()) {
      CHECK(error == Errc::cost_exceeds_capacity);
      CHECK(settled.charged == 0);
      return;
    }
    CHECK_FALSE(error);
    CHECK(settled.charged == more);
    const Word grant = grant_of(units_, windows(), block_, to_word(clock_.now()), more);
    units_.insert(units_.end(), static_cast<std::size_t>(more), grant);
  }

  std::vector<SlidingWindow> limiters_;
  VirtualClock& clock_;
  std::vector<Windows> all_;
  std::size_t present_ = 0;
  Word smallest_ring_ = word_limit;
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

}  // namespace

TEST_CASE("every answer is what counting all admissions gives, under any limits, on every store",
          "[oracle][sliding_window][C-001][C-002][C-003][C-004][C-005]") {
  Random random(
      "every answer is what counting all admissions gives, under any limits, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    for (std::size_t i = 0; i < test::scaled(100, 10); ++i) {
      Trial trial(store, clock, random_configurations(random, 30), "w" + std::to_string(i));
      for (int step = 0; step < 150; ++step) {
        INFO("trial " << i << ", step " << step);
        trial.step(random);
        trial.move(random);
      }
    }
  });
}

TEST_CASE("cancelled reservations never let a window admit too much", "[oracle][sliding_window]") {
  Random random("cancelled reservations never let a window admit too much");
  CAPTURE(random.repeat());
  std::size_t cancelled = 0;
  for_each_store([&](Store& store, VirtualClock& clock) {
    for (std::size_t i = 0; i < test::scaled(100, 10); ++i) {
      const std::vector<Windows> all = random_configurations(random, 20);
      const auto limiters = limiters_of(store, "c" + std::to_string(i), all);
      Units units;
      for (int step = 0; step < 150; ++step) {
        const std::size_t present = random.below(all.size());
        const SlidingWindow& limiter = limiters[present];
        const Word least = std::ranges::min(all[present], {}, &WindowLimit::limit).limit;
        const auto held = limiter.reserve("k", random.between(1, least),
                                          Span{random.between(0, random.one_in(2) ? 0 : 300)});
        if (held.allowed && held.retry_after.count() > 0 && random.one_in(2)) {
          REQUIRE(limiter.cancel("k", held) == held.granted);
          ++cancelled;
        } else if (held.allowed) {
          units.insert(units.end(), static_cast<std::size_t>(held.granted), to_word(held.at()));
        }
        clock.advance(Span{random.between(0, 12)});
      }
      for (const WindowLimit& window : all.front()) {
        Word most = 0;
        for (const Windows& windows : all) {
          most = std::max(most, std::ranges::find(windows, window.span, &WindowLimit::span)->limit);
        }
        check_bound(units, window, most);
      }
    }
  });
  CHECK(cancelled > 100);
}
