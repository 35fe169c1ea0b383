// The shared rate limiter under random changes of its rate, against the list of all permits.
// Threading: single-threaded.
#include "sluice/shared_rate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

struct Setting {
  Word rate;
  Span interval;
};

/// A window that a shorter interval leaves behind.
struct Left {
  Word limit;
  Word span;
  Word until;
};

struct Permit {
  Word time;
  Setting under;
};

Word within(const std::vector<Permit>& permits, Word after, Word until) {
  return std::ranges::count_if(
      permits, [&](const Permit& permit) { return permit.time > after && permit.time <= until; });
}

/// Two clients of one rate, and every permit that they were given.
class Trial {
 public:
  Trial(Store& store, VirtualClock& clock, const std::string& name, Word most)
      : clock_(clock), clients_{{{store, "t", name}, {store, "t", name}}}, most_(most) {}

  void set(Random& random, Word rate) {
    const Setting before = std::exchange(setting_, {rate, Span{random.between(1, 80)}});
    clients_[random.below(2)].update_rate(RateType::overall, setting_.rate, setting_.interval);
    shortest_ = std::min(shortest_, setting_.interval);
    const Word now = to_word(clock_.now());
    longest_ = std::max(longest_, before.interval);
    if (before.rate > 0) guarded_until_ = now + 2 * longest_.count();
    std::vector<Left> old = std::exchange(left_, {});
    if (before.rate > 0) old.push_back({before.rate, before.interval.count(), now + 1});
    for (const Left& window : old) {
      if (window.until > now) leave(window, now);
    }
    const auto is_needless = [&](const Left& one) {
      return std::ranges::any_of(left_, [&](const Left& other) {
        const bool equal = other.limit == one.limit && other.span == one.span;
        return equal ? &other < &one : other.limit <= one.limit && other.span >= one.span;
      });
    };
    std::vector<Left> needed;
    std::ranges::remove_copy_if(left_, std::back_inserter(needed), is_needless);
    std::ranges::sort(needed, std::greater<>(), &Left::span);
    if (needed.size() > SharedRateRule::max_kept) needed.resize(SharedRateRule::max_kept);
    left_ = std::move(needed);
  }

  void step(Random& random) {
    if (random.one_in(25)) set(random, random.between(1, most_));
    const Word now = to_word(clock_.now());
    const Word asked = random.between(1, std::min(setting_.rate, Word{4}));
    const Word held = within(permits_, now - setting_.interval.count(), now);
    const Decision decision = clients_[random.below(2)].try_acquire(asked);
    bool fits = held + asked <= setting_.rate;
    for (const Left& window : left_) {
      if (window.until <= now) continue;
      fits = fits && within(permits_, now - window.span, now) + asked <= window.limit;
    }
    if (decision.allowed) {
      REQUIRE(fits);
      if (permits_.empty()) keeps_all_ = setting_.rate == most_;
      permits_.insert(permits_.end(), static_cast<std::size_t>(asked), {now, setting_});
    } else if (decision.part > 0) {
      // The log's own guards look back over all changes of the last intervals; never further.
      REQUIRE(now < guarded_until_);
    } else if (keeps_all_ || permits_.empty()) {
      REQUIRE_FALSE(fits);
    }
    clock_.advance(Span{random.between(0, random.one_in(10) ? 60 : 4)});
  }

  /// No interval that is as short as any in force holds more than the largest rate in force.
  void check() const {
    for (const Permit& last : permits_) {
      const Word held = within(permits_, last.time - shortest_.count(), last.time);
      REQUIRE(held <= largest_under(last.time));
    }
  }

 private:
  /// The old quota beside the new one, for as long as that is the stricter of the two.
  void leave(Left window, Word now) {
    const Word s = setting_.interval.count();
    if (window.limit <= setting_.rate || window.span <= s) return;
    Word times = 1;  // of the new interval, until the new rate admits as much
    while (times * setting_.rate < window.limit) ++times;
    window.span = std::min(window.span, times * s);
    while (s * (times - 1) >= window.span) --times;
    window.limit = std::max(window.limit, times * setting_.rate);
    window.until = now + window.span;
    left_.push_back(window);
    if (window.limit > most_) keeps_all_ = false;
  }

  [[nodiscard]] Word largest_under(Word until) const {
    Word largest = 0;
    for (const Permit& permit : permits_) {
      if (permit.time > until - shortest_.count() && permit.time <= until) {
        largest = std::max(largest, permit.under.rate);
      }
    }
    return largest;
  }

  VirtualClock& clock_;
  std::array<SharedRateLimiter, 2> clients_;
  Word most_;
  Setting setting_{};
  std::vector<Left> left_;
  Span shortest_ = Span::max();
  Span longest_{0};
  Word guarded_until_ = 0;  // what a window that was left leaves in its turn included
  bool keeps_all_ = false;  // no window is larger than the log's first
  std::vector<Permit> permits_;
};

}  // namespace

TEST_CASE("every permit is within the rate in force, whatever was in force before",
          "[oracle][shared_rate]") {
  Random random("every permit is within the rate in force, whatever was in force before");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  for (std::size_t i = 0; i < test::scaled(100, 10); ++i) {
    INFO("trial " << i);
    const Word most = random.between(1, 30);
    Trial trial(*store, clock, "r" + std::to_string(i), most);
    trial.set(random, random.one_in(2) ? most : random.between(1, most));
    for (int step = 0; step < 300; ++step) trial.step(random);
    trial.check();
  }
}
