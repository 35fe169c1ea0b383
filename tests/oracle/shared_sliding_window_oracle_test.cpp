// The shared sliding window under random changes of its rate, against the list of all permits and
// what earlier rates hold later ones to. Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "sluice/rules/sliding_window.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

/// At most so many permits in any interval of the span: a rate, a window that an update keeps
/// beside it, or a guard of the log.
struct Limit {
  Word permits = 0;
  Word span = 0;
  Word until = word_limit;

  /// Whatever keeps to this keeps to the other.
  [[nodiscard]] bool implies(const Limit& other) const {
    return permits <= other.permits && span >= other.span;
  }
};

struct Permit {
  Word time;
  Limit under;
};

bool same_windows(const std::vector<Limit>& a, const std::vector<Limit>& b) {
  return std::ranges::is_permutation(a, b, [](const Limit& one, const Limit& other) {
    return one.permits == other.permits && one.span == other.span;
  });
}

/// Takes out what another one that stays says as well.
template <class Says>
void drop_needless(std::vector<Limit>& limits, Says says) {
  for (std::size_t i = limits.size(); i-- > 0;) {
    for (std::size_t j = 0; j < limits.size(); ++j) {
      if (i == j || !std::invoke(says, limits[j], limits[i])) continue;
      limits.erase(limits.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
}

/// Two clients of one rate, and every permit that they were given.
class Trial {
 public:
  /// `changes`: of so many requests one comes after a change. `rewards`: permits are rewarded.
  Trial(Store& store, VirtualClock& clock, const std::string& name, Word most,
        std::uint64_t changes, bool rewards)
      : clock_(clock),
        clients_{{{store, "t", name}, {store, "t", name}}},
        most_(most),
        changes_(changes),
        rewards_(rewards) {}

  void set(Random& random, Word permits) {
    const Limit before = std::exchange(rate_, {permits, random.between(1, 80)});
    clients_[random.below(2)].update_rate(RateType::overall, rate_.permits, Span{rate_.span});
    shortest_ = std::min(shortest_, rate_.span);
    const Word now = to_word(clock_.now());
    std::vector<Limit> old = std::exchange(kept_, {});
    std::erase_if(old, [&](const Limit& window) { return window.until <= now; });
    if (before.permits > 0) old.push_back(before);
    for (const Limit& window : old) keep(window, now);
    drop_needless(kept_, &Limit::implies);
    std::ranges::sort(kept_, std::greater<>(), &Limit::span);
    if (kept_.size() > SharedSlidingWindowRule::max_kept)
      kept_.resize(SharedSlidingWindowRule::max_kept);
  }

  void step(Random& random) {
    if (random.one_in(changes_)) set(random, random.between(1, most_));
    const Word now = to_word(clock_.now());
    const std::vector<Limit> windows = windows_at(now);
    const std::vector<Limit> guards = guards_at(now, windows);
    const Word asked = random.between(1, std::min(rate_.permits, Word{4}));
    const Word by_rate = fits_under({&rate_, 1}, asked, now);
    const Word by_windows = fits_under(windows, asked, now);
    const Word by_guards = fits_under(guards, asked, now);
    const Word fits = std::max({by_windows, by_guards, block_});
    Word needs = 0;
    for (const auto& limits : {windows, guards}) {
      for (const Limit& limit : limits) needs = std::max(needs, limit.permits);
    }
    // A log counts what it has dropped as if it had been full, and has room for few guards.
    const bool dropped = ring_ > 0 && needs > ring_ && std::ssize(permits_) > ring_;
    if (dropped || guards.size() > SlidingWindowRule::max_guards) is_exact_ = false;
    const auto come_into_force = [&] {
      under_ = windows;
      guards_ = guards;
      ring_ = std::max(ring_, needs);
    };
    if (random.one_in(60)) {
      const Word span = random.between(1, 60);
      const Decision blocked = clients_[random.below(2)].block(Span{span});
      REQUIRE((blocked.allowed && blocked.remaining == 0));
      if (now + span <= block_) return;
      block_ = now + span;
      return come_into_force();
    }

    const Decision decision = clients_[random.below(2)].try_acquire(asked);
    INFO("now " << now << ", asked " << asked << ", fits at " << fits);
    if (is_exact_) {
      REQUIRE(decision.allowed == (fits == now));
      REQUIRE(decision.retry_after == Span{fits - now});
      if (fits > now) {
        REQUIRE((decision.part == 0) == (by_rate == fits));
        REQUIRE((decision.part == windows.size()) == (by_windows < fits));
      }
      if (by_windows > by_rate) ++by_kept_;
      if (by_guards > by_windows) ++by_guards_;
    }
    if (decision.allowed) {
      REQUIRE(by_windows == now);
      REQUIRE(now >= block_);
      permits_.insert(permits_.end(), static_cast<std::size_t>(asked), {now, rate_});
      come_into_force();
    }
    if (rewards_ && random.one_in(40)) reward(random.between(0, 6));
    clock_.advance(Span{random.between(0, random.one_in(10) ? 60 : 4)});
  }

  void reward(Word permits) {
    if (std::ssize(permits_) > ring_) is_exact_ = false;  // what it had dropped comes back
    clients_[0].reward(permits);
    const auto gone = std::min<std::size_t>(permits_.size(), static_cast<std::size_t>(permits));
    permits_.erase(permits_.end() - static_cast<std::ptrdiff_t>(gone), permits_.end());
  }

  /// No interval that is as short as any in force holds more than the largest rate in force.
  void check() const {
    for (const Permit& last : permits_) {
      REQUIRE(held(last.time - shortest_, last.time) <= largest_under(last.time));
    }
  }

  /// How often windows that were kept, and how often guards, decided alone.
  [[nodiscard]] std::size_t by_kept() const { return by_kept_; }
  [[nodiscard]] std::size_t by_guards() const { return by_guards_; }

 private:
  /// The old quota beside the new one, for as long as that is the stricter of the two.
  void keep(Limit window, Word now) {
    if (window.permits <= rate_.permits || window.span <= rate_.span) return;
    Word parts = 1;  // of the new interval, until the new rate admits as much
    while (parts * rate_.permits < window.permits) ++parts;
    window.span = std::min(window.span, parts * rate_.span);
    while (rate_.span * (parts - 1) >= window.span) --parts;
    window.permits = std::max(window.permits, parts * rate_.permits);
    window.until = now + window.span;
    kept_.push_back(window);
  }

  /// What is asked under.
  [[nodiscard]] std::vector<Limit> windows_at(Word now) const {
    std::vector<Limit> windows{rate_};
    for (const Limit& window : kept_) {
      if (window.until > now) windows.push_back({window.permits, window.span});
    }
    return windows;
  }

  /// What the log holds those to besides.
  [[nodiscard]] std::vector<Limit> guards_at(Word now, const std::vector<Limit>& windows) const {
    std::vector<Limit> guards = guards_;
    if (permits_.empty()) return {};
    if (!same_windows(windows, under_)) {
      guards.insert(guards.end(), under_.begin(), under_.end());
      for (Limit& guard : guards) reshape(guard);
    }
    std::erase_if(guards, [&](const Limit& guard) {
      return guard.until <= now || std::ranges::any_of(windows, [&](const Limit& window) {
               return window.span == guard.span && window.permits <= guard.permits;
             });
    });
    drop_needless(guards, [](const Limit& one, const Limit& other) {
      return one.span == other.span && one.permits <= other.permits && one.until >= other.until;
    });
    return guards;
  }

  /// Of all windows that are asked under, the rate's allows the least in any span.
  void reshape(Limit& guard) const {
    Word parts = 1;
    while (rate_.span * parts < guard.span &&
           (rate_.permits * parts < guard.permits ||
            rate_.permits * (parts + 1) <= SlidingWindowRule::whole_guard)) {
      ++parts;
    }
    guard.permits = std::max(guard.permits, rate_.permits * parts);
    guard.span = std::min(guard.span, rate_.span * parts);
    guard.until = std::min(guard.until, permits_.back().time + guard.span);
  }

  [[nodiscard]] Word held(Word after, Word until) const {
    return std::ranges::count_if(permits_, [&](const Permit& permit) {
      return permit.time > after && permit.time <= until;
    });
  }

  /// The first instant from now at which each of the limits has had room, if nobody else asks.
  [[nodiscard]] Word fits_under(std::span<const Limit> limits, Word asked, Word now) const {
    Word latest = now;
    for (const Limit& limit : limits) {
      Word at = now;
      while (at < limit.until && held(at - limit.span, at) + asked > limit.permits) ++at;
      latest = std::max(latest, at);
    }
    return latest;
  }

  [[nodiscard]] Word largest_under(Word until) const {
    Word largest = 0;
    for (const Permit& permit : permits_) {
      if (permit.time > until - shortest_ && permit.time <= until) {
        largest = std::max(largest, permit.under.permits);
      }
    }
    return largest;
  }

  VirtualClock& clock_;
  std::array<SharedSlidingWindow, 2> clients_;
  Word most_;
  std::uint64_t changes_;
  bool rewards_;
  Limit rate_;
  std::vector<Limit> kept_;
  Word shortest_ = word_limit;
  std::vector<Permit> permits_;
  std::vector<Limit> under_;   // what the last of them was asked under
  std::vector<Limit> guards_;  // and what guards there were
  Word ring_ = 0;              // permits that the log has room for
  Word block_ = 0;             // its end
  bool is_exact_ = true;
  std::size_t by_kept_ = 0;
  std::size_t by_guards_ = 0;
};

/// What a rate allows in any interval of so long.
Word allowed_in(const Limit& rate, Word length) {
  return rate.permits * ((length + rate.span - 1) / rate.span);
}

}  // namespace

TEST_CASE("every decision is what counting all permits gives, under the rate and what others left",
          "[oracle][shared_sliding_window]") {
  Random random(
      "every decision is what counting all permits gives, under the rate and what others left");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  std::size_t by_kept = 0;
  std::size_t by_guards = 0;
  const std::size_t trials = test::scaled(100, 10);
  for (std::size_t i = 0; i < 200 * trials; ++i) {
    if (i >= trials && by_kept > 0 && by_guards > 0) break;
    INFO("trial " << i);
    const Word most = random.between(1, 30);
    Trial trial(*store, clock, "r" + std::to_string(i), most, random.one_in(2) ? 5 : 25,
                random.one_in(4));
    trial.set(random, random.one_in(2) ? most : random.between(1, most));
    for (int step = 0; step < 300; ++step) trial.step(random);
    trial.check();
    by_kept += trial.by_kept();
    by_guards += trial.by_guards();
  }
  CHECK(by_kept > 0);
  CHECK(by_guards > 0);
}

TEST_CASE("an interval of any length over an update holds less than one new rate too many",
          "[oracle][shared_sliding_window]") {
  Random random("an interval of any length over an update holds less than one new rate too many");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  for (std::size_t i = 0; i < test::scaled(1000, 20); ++i) {
    const SharedSlidingWindow limiter(*store, "t", "u" + std::to_string(i));
    std::vector<std::pair<Word, Word>> grants;  // when, and how many
    const auto live = [&] {
      const Limit rate{random.between(1, 40), random.between(1, 60)};
      limiter.update_rate(RateType::overall, rate.permits, Span{rate.span});
      for (int step = 0; step < 30; ++step) {
        const Word there = limiter.available_permits();
        const Word asked = random.one_in(3) ? std::min(there, Word{1}) : there;
        if (asked > 0 && limiter.try_acquire(asked))
          grants.push_back({to_word(clock.now()), asked});
        clock.advance(Span{random.between(0, random.one_in(8) ? 60 : 5)});
      }
      return rate;
    };
    const Limit before = live();
    const Limit after = live();
    INFO(before.permits << " in " << before.span << " to " << after.permits << " in "
                        << after.span);
    for (std::size_t last = 0; last < grants.size(); ++last) {
      Word sum = 0;
      for (std::size_t first = last + 1; first-- > 0;) {
        const Word length = grants[last].first - grants[first].first + 1;
        if (length > std::max(before.span, after.span)) break;
        sum += grants[first].second;
        const Word most = std::max(allowed_in(before, length), allowed_in(after, length));
        REQUIRE(sum < most + after.permits);
        if (length == before.span || length == after.span) REQUIRE(sum <= most);
      }
    }
  }
}
