// The shared rate limiter under random changes of its rate, against the list of all permits.
// Threading: single-threaded.
#include "sluice/shared_rate.hpp"

#include <algorithm>
#include <array>
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
    setting_ = {rate, Span{random.between(1, 80)}};
    clients_[random.below(2)].update_rate(RateType::overall, setting_.rate, setting_.interval);
    shortest_ = std::min(shortest_, setting_.interval);
  }

  void step(Random& random) {
    if (random.one_in(25)) set(random, random.between(1, most_));
    const Word now = to_word(clock_.now());
    const Word asked = random.between(1, std::min(setting_.rate, Word{4}));
    const Word held = within(permits_, now - setting_.interval.count(), now);
    const Decision decision = clients_[random.below(2)].try_acquire(asked);
    if (decision.allowed) {
      REQUIRE(held + asked <= setting_.rate);
      if (permits_.empty()) keeps_all_ = setting_.rate == most_;
      permits_.insert(permits_.end(), static_cast<std::size_t>(asked), {now, setting_});
    } else if (keeps_all_ || permits_.empty()) {
      REQUIRE(held + asked > setting_.rate);
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
  Span shortest_ = Span::max();
  bool keeps_all_ = false;  // no rate is larger than the log's first
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
