// The utilization shedder against an oracle that keeps every sample and works the level out anew
// from all of them, in exact fractions. It shares no code with the kernel.
// Threading: single-threaded.
#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/limiters/utilization_shedder.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

__extension__ typedef __int128 Wide;

constexpr Wide million = 1'000'000;

struct Setting {
  Word good, bad;  // millionths
  Word grace, full_after, rest_after, max_gap;
  Word tiers;  // that can be shed
};

struct Sample {
  Word at;
  Word utilization;
};

/// Levels are fractions of a microsecond with one denominator, in which every speed is whole.
class Oracle {
 public:
  /// `rounded`: speeds are whole millionths, as the rule says; else they are exact.
  Oracle(const Setting& setting, bool rounded)
      : s_(setting),
        rounded_(rounded),
        denominator_((million - s_.bad) * s_.good * million),
        full_((Wide{s_.grace} + s_.full_after) * denominator_) {
    const Wide span = Wide{s_.grace} + s_.full_after;
    const Wide decay = (span * million + s_.rest_after - 1) / s_.rest_after;  // millionths
    decay_ = decay * (denominator_ / million);
    rest_ = (full_ + decay_ - 1) / decay_;
  }

  void sample(Word now, Word utilization) {
    if (!counts(now)) samples_.clear();
    const Word at = samples_.empty() ? now : std::max(now, samples_.back().at);
    samples_.push_back({at, utilization});
  }
  void reset() { samples_.clear(); }

  /// Whole microseconds of level.
  [[nodiscard]] Word level_us(Word now) const {
    return static_cast<Word>(level(now) / denominator_);
  }
  [[nodiscard]] bool sheds(Word now, Word tier, Word draw) const {
    // draw / full_after < clamp(amount * tiers - tier, 0, 1), both sides times full_after
    const Wide amount = std::max<Wide>(0, level_us(now) - s_.grace);
    return draw <
           std::clamp<Wide>(amount * s_.tiers - Wide{tier} * s_.full_after, 0, s_.full_after);
  }
  /// The first instant at which nothing is left.
  [[nodiscard]] Word rests_after(Word now) const {
    if (level(now) == 0) return 0;
    Word none = 0;
    Word some = static_cast<Word>(rest_) + s_.max_gap + 60'000'002;
    while (some - none > 1) {
      const Word middle = none + (some - none) / 2;
      (fallen(now + middle) == 0 ? some : none) = middle;
    }
    return some;
  }
  /// How much of the time since it last rested is moved by samples, in microseconds: what rounding
  /// can add up to, in millionths of it.
  [[nodiscard]] Word moved() const {
    Word sum = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i) {
      sum += std::min(samples_[i].at - samples_[i - 1].at, s_.max_gap);
    }
    return sum;
  }
  [[nodiscard]] bool counts(Word now) const {
    if (samples_.empty() || samples_.back().at > now + 60'000'000) return false;
    return now - samples_.back().at < rest_ + s_.max_gap + 1;
  }

 private:
  [[nodiscard]] Wide speed(Word u) const {
    Wide up = 0;
    Wide down = decay_;
    if (u > s_.bad) up = denominator_ / (million - s_.bad) * (u - s_.bad);
    if (u < s_.good) down = std::max(down, rounded(denominator_ / s_.good * (s_.good - u)));
    return up > 0 ? rounded(up) : -down;
  }
  [[nodiscard]] Wide rounded(Wide speed) const {
    return rounded_ ? speed - speed % (denominator_ / million) : speed;
  }
  [[nodiscard]] Wide level(Word now) const { return counts(now) ? fallen(now) : 0; }

  /// After the last sample, the time beyond max_gap takes its toll.
  [[nodiscard]] Wide fallen(Word now) const {
    Wide level = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i) {
      const Word gap = samples_[i].at - samples_[i - 1].at;
      level = after(level, gap) + speed(samples_[i].utilization) * std::min(gap, s_.max_gap);
      level = std::clamp<Wide>(level, 0, full_);
    }
    return after(level, now - samples_.back().at);
  }
  [[nodiscard]] Wide after(Wide level, Word gap) const {
    return gap > s_.max_gap ? std::max<Wide>(0, level - decay_ * (gap - s_.max_gap)) : level;
  }

  Setting s_;
  bool rounded_;
  Wide denominator_;
  Wide full_;
  Wide decay_ = 0;
  Wide rest_ = 0;
  std::vector<Sample> samples_;
};

Setting any_setting(Random& random) {
  Setting s{};
  s.good = random.between(1, 999'999);
  s.bad = random.between(s.good, 999'999);
  const bool small = random.one_in(2);
  s.grace = random.between(0, small ? 10'000'000 : 1'800'000'000);
  s.full_after = random.between(1, small ? 20'000'000 : 1'800'000'000);
  const Word span = s.grace + s.full_after;
  s.rest_after = span * random.between(1, 6) + random.between(0, 1000);
  s.max_gap = random.between(1, span);
  s.tiers = random.between(1, 15);
  return s;
}

UtilizationOptions options_of(const Setting& s) {
  UtilizationOptions options;
  options.good = static_cast<double>(s.good) / 1e6;
  options.bad = static_cast<double>(s.bad) / 1e6;
  options.grace = Span{s.grace};
  options.full_after = Span{s.full_after};
  options.rest_after = Span{s.rest_after};
  options.max_gap = Span{s.max_gap};
  options.tiers.clear();
  for (Word i = 0; i <= s.tiers; ++i) options.tiers.push_back(std::to_string(i));
  return options;
}

/// One shedder, its oracles, and random commands for both.
class Run {
 public:
  Run(Random& random, VirtualClock& clock, Store& store)
      : random_(random),
        clock_(clock),
        store_(store),
        setting_(any_setting(random)),
        shedder_(store, "api", options_of(setting_), random),
        rounded_(setting_, true),
        exact_(setting_, false) {
    shedder_.reset();
  }

  void step() {
    move_time();
    const Word now = to_word(clock_.now());
    switch (random_.below(8)) {
      case 0:
      case 1:
        return call(now);
      case 2:
        return report(now);
      default:
        if (random_.one_in(60)) return reset();
        return sample(now);
    }
  }

  [[nodiscard]] bool met_all() const { return shed_ && admitted_while_shedding_; }

 private:
  void move_time() {
    const Word gap = setting_.max_gap;
    switch (random_.below(12)) {
      case 0:
        return;
      case 1:
        clock_.advance(Span{random_.between(0, 4 * gap)});
        return;
      case 2:
        if (!random_.one_in(10)) return;
        clock_.advance(Span{-random_.between(0, 120'000'000)});
        return;
      case 3:
        if (random_.one_in(20)) clock_.advance(Span{setting_.rest_after + random_.between(0, gap)});
        return;
      default:
        clock_.advance(Span{random_.between(0, gap)});
    }
  }
  void sample(Word now) {
    if (random_.one_in(20)) worst_ = random_.one_in(2);
    const Word utilization = random_.one_in(3) ? random_.between(0, 1'000'000)
                             : worst_          ? 1'000'000
                                               : setting_.good;
    shedder_.sample(static_cast<double>(utilization) / 1e6);
    rounded_.sample(now, utilization);
    exact_.sample(now, utilization);
  }
  void call(Word now) {
    const Word tier = random_.between(0, setting_.tiers);
    const Word draw = random_.between(0, setting_.full_after - 1);
    const auto named = shedder_.tier(std::to_string(tier));
    const Decision decision =
        decide(store_, shedder_.acquire_step({"api", "utilization"}, named, draw));
    const bool sheds = rounded_.sheds(now, tier, draw);
    CHECK(decision.allowed == !sheds);
    CHECK(decision.reset_after.count() == rounded_.rests_after(now));
    shed_ = shed_ || sheds;
    admitted_while_shedding_ =
        admitted_while_shedding_ || (!sheds && rounded_.level_us(now) > setting_.grace);
  }
  void report(Word now) {
    const UtilizationReport report = shedder_.report();
    const Word level = static_cast<Word>(
        std::llround(report.amount * static_cast<double>(setting_.full_after)) + setting_.grace);
    CHECK(level == rounded_.level_us(now));
    CHECK(report.last_sample.has_value() == rounded_.counts(now));
    // What rounding costs: a millionth of the time moved, and the unfinished microsecond.
    CHECK(std::abs(level - exact_.level_us(now)) <= exact_.moved() / 1'000'000 + 2);
  }
  void reset() {
    shedder_.reset();
    rounded_.reset();
    exact_.reset();
  }

  Random& random_;
  VirtualClock& clock_;
  Store& store_;
  Setting setting_;
  UtilizationShedder shedder_;
  Oracle rounded_;
  Oracle exact_;
  bool worst_ = true;
  bool shed_ = false;
  bool admitted_while_shedding_ = false;
};

}  // namespace

TEST_CASE("the utilization shedder agrees with an oracle that keeps every sample",
          "[oracle][utilization]") {
  Random random("the utilization shedder agrees with an oracle that keeps every sample");
  CAPTURE(random.repeat());
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  std::size_t met = 0;
  const std::size_t runs = scaled(300, 20);
  for (std::size_t run = 0; run < runs; ++run) {
    Run commands(random, clock, *store);
    for (int command = 0; command < 400; ++command) commands.step();
    if (commands.met_all()) ++met;
  }
  CHECK(met > runs / 4);
}
