// The shared sliding window under random changes of its rate, against the list of all permits and
// the windows that earlier rates left. Threading: single-threaded.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using test::for_each_store;
using test::Random;

namespace {

/// At most so many permits in any interval of the span: a rate, or a window that an update keeps
/// beside it.
struct Limit {
  Word permits = 0;
  Word span = 0;
  Word until = word_limit;

  /// Whatever keeps to this keeps to the other.
  [[nodiscard]] bool implies(const Limit& other) const {
    return permits <= other.permits && span >= other.span && until >= other.until;
  }
};

struct Permit {
  Word time;
  Limit under;
};

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
    clients_[random.below(2)].configure(RateType::overall, rate_.permits, Span{rate_.span});
    shortest_ = std::min(shortest_, rate_.span);
    std::vector<Limit> old = std::exchange(kept_, {});
    std::erase_if(old, [&](const Limit& window) { return window.until <= now(); });
    if (before.permits > 0) old.push_back(before);
    for (const Limit& window : old) keep(window);
    drop_needless();
    constexpr auto room = SharedSlidingWindowRule::max_kept;
    std::ranges::sort(kept_, std::greater<>(), &Limit::until);
    if (kept_.size() <= room) return;
    if (kept_[room - 1].until == kept_[room].until) is_exact_ = false;
    kept_.resize(room);
  }

  void step(Random& random) {
    if (random.one_in(changes_)) set(random, random.between(1, most_));
    if (random.one_in(60)) {
      block(random.between(1, 60));
    } else {
      ask(random);
    }
    if (rewards_ && random.one_in(40)) reward(random.between(0, 6));
    clock_.advance(Span{random.between(0, random.one_in(10) ? 60 : 4)});
    if (random.one_in(100)) outlast();
  }

  /// No interval that is as short as any in force holds more than the largest rate in force.
  void check() const {
    for (const Permit& last : permits_) {
      REQUIRE(held(last.time - shortest_, last.time) <= largest_under(last.time));
    }
  }

  /// How often windows that were kept decided alone.
  [[nodiscard]] std::size_t by_kept() const { return by_kept_; }

 private:
  [[nodiscard]] Word now() const { return to_word(clock_.now()); }
  [[nodiscard]] Word newest() const { return permits_.empty() ? 0 : permits_.back().time; }
  /// Permits that a full log has no room for, one of them perhaps from before an hour's pause.
  [[nodiscard]] bool has_dropped() const {
    return ring_ > 0 && std::ssize(permits_) + (has_paused_ ? 1 : 0) > ring_;
  }

  void ask(Random& random) {
    const std::vector<Limit> windows = windows_now();
    const Word asked = random.between(1, std::min(rate_.permits, Word{4}));
    const Word by_rate = fits_under({&rate_, 1}, asked);
    const Word by_windows = fits_under(windows, asked);
    const Word fits = std::max(by_windows, block_);
    const Word needs = std::ranges::max(windows, {}, &Limit::permits).permits;
    // A log that grows counts what it has dropped as if it had been full.
    if (needs > ring_ && has_dropped()) is_exact_ = false;

    const Word wait = random.one_in(4) ? random.between(0, 90) : 0;
    const RateReservation decision = clients_[random.below(2)].reserve(asked, Span{wait});
    const Word grant = decision.allowed ? now() + decision.retry_after.count() : 0;
    INFO("now " << now() << ", asked " << asked << ", wait " << wait << ", fits at " << fits);
    if (is_exact_) {
      REQUIRE(decision.allowed == (fits <= now() + wait));
      REQUIRE(decision.retry_after.count() == fits - now() - (decision.allowed ? 0 : wait));
      if (!decision.allowed && newest() <= now()) {
        REQUIRE((decision.part == 0) == (by_rate == fits));
        REQUIRE((decision.part == windows.size()) == (by_windows < fits));
      }
      if (by_windows > by_rate) ++by_kept_;
    }
    if (!decision.allowed) return;
    REQUIRE(grant >= fits);
    permits_.insert(permits_.end(), static_cast<std::size_t>(asked), {grant, rate_});
    ring_ = std::max(ring_, needs);
  }

  void block(Word span) {
    const std::vector<Limit> windows = windows_now();
    const Word needs = std::ranges::max(windows, {}, &Limit::permits).permits;
    if (needs > ring_ && has_dropped()) is_exact_ = false;
    const Decision blocked = clients_[0].block(Span{span});
    REQUIRE((blocked.allowed && blocked.remaining == 0));
    if (now() + span <= block_) return;
    block_ = now() + span;
    ring_ = std::max(ring_, needs);
  }

  void reward(Word permits) {
    if (has_dropped()) is_exact_ = false;  // what it had dropped comes back
    clients_[0].reward(permits);
    const auto gone = std::min<std::size_t>(permits_.size(), static_cast<std::size_t>(permits));
    permits_.erase(permits_.end() - static_cast<std::ptrdiff_t>(gone), permits_.end());
  }

  /// Whatever was granted has left all windows, and the log may have been collected.
  void outlast() {
    check();
    clock_.advance(Span{SharedSlidingWindowRule::max_reserved});
    permits_.clear();
    has_paused_ = true;
    ring_ = 0;
  }

  /// The old rate beside the new one, for as long as that is the stricter of the two.
  void keep(Limit window) {
    if (window.permits <= rate_.permits || window.span <= rate_.span) return;
    Word parts = 1;  // of the new interval, until the new rate admits as much
    while (parts * rate_.permits < window.permits) ++parts;
    window.span = std::min(window.span, parts * rate_.span);
    while (rate_.span * (parts - 1) >= window.span) --parts;
    window.permits = std::max(window.permits, parts * rate_.permits);
    const Word end = now() + window.span + SharedSlidingWindowRule::max_reserved;
    window.until = std::min(window.until, end);
    kept_.push_back(window);
  }

  /// Takes out what another one that stays says as well.
  void drop_needless() {
    for (std::size_t i = kept_.size(); i-- > 0;) {
      for (std::size_t j = 0; j < kept_.size(); ++j) {
        if (i == j || !kept_[j].implies(kept_[i])) continue;
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
  }

  /// What is asked under.
  [[nodiscard]] std::vector<Limit> windows_now() const {
    std::vector<Limit> windows{rate_};
    for (const Limit& window : kept_) {
      if (window.until > now()) windows.push_back(window);
    }
    return windows;
  }

  [[nodiscard]] Word held(Word after, Word until) const {
    return std::ranges::count_if(permits_, [&](const Permit& permit) {
      return permit.time > after && permit.time <= until;
    });
  }

  /// The first instant, behind all that was granted, at which each of the limits has room.
  [[nodiscard]] Word fits_under(std::span<const Limit> limits, Word asked) const {
    Word at = std::max(now(), newest());
    for (const Limit& limit : limits) {
      while (held(at - limit.span, at) + asked > limit.permits) ++at;
    }
    return at;
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
  Word ring_ = 0;   // permits that the log has room for
  Word block_ = 0;  // its end
  bool has_paused_ = false;
  bool is_exact_ = true;
  std::size_t by_kept_ = 0;
};

/// What a rate allows in any interval of so long.
Word allowed_in(const Limit& rate, Word length) {
  return rate.permits * ((length + rate.span - 1) / rate.span);
}

/// Over an update, less than one new rate too many in any interval, and nothing too much in one as
/// long as the old or the new interval.
void check_update(const std::vector<std::pair<Word, Word>>& grants, const Limit& before,
                  const Limit& after) {
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

}  // namespace

TEST_CASE("every decision is what counting all permits gives, under the rate and what others left",
          "[oracle][shared_sliding_window]") {
  Random random(
      "every decision is what counting all permits gives, under the rate and what others left");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t by_kept = 0;
    const std::size_t trials = test::scaled(40, 5);
    for (std::size_t i = 0; i < trials || (by_kept == 0 && i < 200 * trials); ++i) {
      INFO("trial " << i);
      const Word most = random.between(1, 30);
      Trial trial(store, clock, "r" + std::to_string(i), most, random.one_in(2) ? 5 : 25,
                  random.one_in(4));
      trial.set(random, random.one_in(2) ? most : random.between(1, most));
      for (int step = 0; step < 300; ++step) trial.step(random);
      trial.check();
      by_kept += trial.by_kept();
    }
    CHECK(by_kept > 0);
  });
}

TEST_CASE("over an update no interval of the old or new rate holds more than the larger allows",
          "[oracle][shared_sliding_window]") {
  Random random(
      "over an update no interval of the old or new rate holds more than the larger allows");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    for (std::size_t i = 0; i < test::scaled(300, 20); ++i) {
      const SharedSlidingWindow limiter(store, "t", "u" + std::to_string(i));
      std::vector<std::pair<Word, Word>> grants;  // for when, and how many
      const auto live = [&] {
        const Limit rate{random.between(1, 40), random.between(1, 60)};
        limiter.configure(RateType::overall, rate.permits, Span{rate.span});
        for (int step = 0; step < 30; ++step) {
          const Word there = std::max(Word{1}, limiter.available_permits());
          const Word asked = random.one_in(3) ? 1 : there;
          const Span wait{random.one_in(4) ? random.between(0, 100) : 0};
          const RateReservation grant = limiter.reserve(asked, wait);
          if (grant.allowed) {
            grants.emplace_back(to_word(grant.at()), asked);
          }
          clock.advance(Span{random.between(0, random.one_in(8) ? 60 : 5)});
        }
        return rate;
      };
      const Limit before = live();
      const Limit after = live();
      INFO(before.permits << " in " << before.span << " to " << after.permits << " in "
                          << after.span);
      check_update(grants, before, after);
    }
  });
}
