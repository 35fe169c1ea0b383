// The model of the utilization shedder: every sample, from which the level is worked out anew for
// every answer. Threading: single-threaded.
#include "sluice/limiters/utilization_shedder.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

constexpr Word million = 1'000'000;

struct Setting {
  Word good, bad;  // millionths
  Word grace, full_after, rest_after, max_gap;
  Word tiers;  // that can be shed

  [[nodiscard]] Word full() const { return (grace + full_after) * million; }
  [[nodiscard]] Word decay() const { return (full() + rest_after - 1) / rest_after; }
  /// From full, without a sample.
  [[nodiscard]] Word rest() const { return (full() + decay() - 1) / decay(); }
};

Setting draw_setting(Random& random) {
  Setting s{};
  s.good = random.between(1, million - 1);
  s.bad = random.between(s.good, million - 1);
  const bool small = random.one_in(2);
  s.grace = random.between(0, small ? 10'000'000 : 1'800'000'000);
  s.full_after = random.between(1, small ? 20'000'000 : 1'800'000'000);
  s.rest_after = (s.grace + s.full_after) * random.between(1, 6) + random.between(0, 1000);
  s.max_gap = random.between(1, s.grace + s.full_after);
  s.tiers = random.between(1, 15);
  return s;
}

UtilizationOptions options_of(const Setting& s) {
  UtilizationOptions options{.good = static_cast<double>(s.good) / 1e6,
                             .bad = static_cast<double>(s.bad) / 1e6,
                             .grace = Span{s.grace},
                             .full_after = Span{s.full_after},
                             .rest_after = Span{s.rest_after},
                             .max_gap = Span{s.max_gap},
                             .most_critical_first = {}};
  for (Word i = 0; i <= s.tiers; ++i) options.most_critical_first.push_back(std::to_string(i));
  return options;
}

/// The definition. A level is in microseconds times millionths.
class Samples {
 public:
  explicit Samples(const Setting& setting) : s_(setting) {}

  /// Returns whether it changed anything.
  bool add(Word now, Word utilization) {
    if (!counts(now)) all_.clear();
    const bool is_later = all_.empty() || now > all_.back().at;
    all_.push_back({is_later ? now : all_.back().at, utilization});
    return is_later;
  }
  void clear() { all_.clear(); }

  [[nodiscard]] bool counts(Word now) const {
    return !all_.empty() && all_.back().at <= now + UtilizationRule::max_ahead &&
           now - all_.back().at < counts_for().count();
  }
  [[nodiscard]] Span counts_for() const { return Span{s_.max_gap + s_.rest() + 1}; }
  /// 0: none counts.
  [[nodiscard]] Word last(Word now) const { return counts(now) ? all_.back().at : 0; }
  [[nodiscard]] Word level(Word now) const { return counts(now) ? fallen<Word>(now) : 0; }
  /// The first instant at which nothing is left.
  [[nodiscard]] Word rests_after(Word now) const {
    if (level(now) == 0) return 0;
    Word none = 0;
    Word some = s_.rest() + s_.max_gap + UtilizationRule::max_ahead + 2;
    while (some - none > 1) {
      const Word middle = none + (some - none) / 2;
      (fallen<Word>(now + middle) == 0 ? some : none) = middle;
    }
    return some;
  }
  /// Speeds that are whole millionths cost at most a millionth of the time that samples moved, and
  /// the microsecond begun.
  void require_exact(Word now) const {
    if (!counts(now)) return;
    Word moved = 0;
    for (std::size_t i = 1; i < all_.size(); ++i) {
      moved += std::min(all_[i].at - all_[i - 1].at, s_.max_gap);
    }
    const double off = static_cast<double>(fallen<Word>(now)) - fallen<double>(now);
    REQUIRE(std::abs(off) <= static_cast<double>(moved + 2 * million));
  }

 private:
  struct Sample {
    Word at;
    Word utilization;
  };

  /// In whole millionths, rounded towards zero, or exactly.
  template <class Number>
  [[nodiscard]] Number speed(Word u) const {
    const Number down{static_cast<Number>(s_.decay())};
    if (u > s_.bad) return Number(u - s_.bad) * million / Number(million - s_.bad);
    if (u < s_.good) return -std::max(down, Number(s_.good - u) * million / Number(s_.good));
    return -down;
  }
  /// Time beyond max_gap after a sample takes its toll.
  template <class Number>
  [[nodiscard]] Number idle(Number level, Word gap) const {
    const auto toll = static_cast<Number>(std::max<Word>(0, gap - s_.max_gap) * s_.decay());
    return std::max<Number>(0, level - toll);
  }
  template <class Number>
  [[nodiscard]] Number fallen(Word now) const {
    Number level = 0;
    for (std::size_t i = 1; i < all_.size(); ++i) {
      const Word gap = all_[i].at - all_[i - 1].at;
      level = idle(level, gap) +
              speed<Number>(all_[i].utilization) * static_cast<Number>(std::min(gap, s_.max_gap));
      level = std::clamp<Number>(level, 0, static_cast<Number>(s_.full()));
    }
    return idle(level, now - all_.back().at);
  }

  const Setting& s_;
  std::vector<Sample> all_;
};

class UtilizationModel final : public Model {
 public:
  explicit UtilizationModel(Life& life)
      : life_(life),
        setting_(draw_setting(life.random)),
        shedder_(life.store, life.name, options_of(setting_), life.random),
        samples_(setting_) {}

  std::vector<Verb> verbs() override {
    return {{"sample", 40, [this] { sample(); }},
            {"shed", 16, [this] { shed(); }},
            {"peek", 8, [this] { peek(); }},
            {"report", 8, [this] { report(); }},
            {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override {
    const Span gap{setting_.max_gap};
    const bool rests = life_.random.one_in(5);
    return {gap, rests ? Span{setting_.rest_after} + gap : 4 * gap, life_.draw_back(gap)};
  }
  std::optional<Time> edge() const override {
    const Word last = samples_.last(life_.tick());
    return last > 0 ? std::optional(to_time(last - UtilizationRule::max_ahead)) : std::nullopt;
  }
  /// Each answer is required to be the one predicted, the order of the tiers with it.
  void judge(const History&) override {}

 private:
  [[nodiscard]] Word level_us() const { return samples_.level(life_.tick()) / million; }
  /// The part of a tier that is shed, times full_after.
  [[nodiscard]] Word shed_span(Word tier) const {
    const Word amount = std::max<Word>(0, level_us() - setting_.grace);
    return std::clamp<Word>(
        (amount - setting_.full_after) * setting_.tiers + tier * setting_.full_after, 0,
        setting_.full_after);
  }
  [[nodiscard]] Word millionths(Word span) const { return span * million / setting_.full_after; }
  [[nodiscard]] UtilizationShedder::Tier tier(Word index) const {
    return shedder_.tier(std::to_string(index));
  }

  /// Of a tier, with what is told.
  Decision require(const Step& step, Word tier, bool allowed) {
    std::error_code error;
    std::array<Word, 4> told{};
    const Decision d = decide(life_.store, step, error, {}, told);
    REQUIRE_FALSE(error);
    const Word now = life_.tick();
    const Word shed = millionths(shed_span(tier));
    life_.require(d, {allowed, million - shed, 0, samples_.rests_after(now)});
    REQUIRE(told == std::array{tier, shed, level_us(), samples_.last(now)});
    REQUIRE((d.part == tier && d.limit == million));
    return d;
  }

  void sample() {
    Random& random = life_.random;
    if (random.one_in(20)) is_busy_ = random.one_in(2);
    const std::array edges{Word{0}, setting_.good - 1, setting_.good, setting_.bad,
                           setting_.bad + 1};
    const Word utilization = random.one_in(3)   ? random.between(0, million)
                             : random.one_in(3) ? edges[random.below(edges.size())]
                             : is_busy_         ? million
                                                : setting_.good;
    life_.tell("millionths", utilization);
    const Word now = life_.tick();
    if (!samples_.counts(now)) life_.saw("the first that counts");
    if (samples_.add(now, utilization)) {
      life_.wrote();
      if (random.one_in(20)) life_.due(life_.now() + samples_.counts_for());
    } else {
      life_.saw("counts no more");
    }
    const Decision d = shedder_.sample(static_cast<double>(utilization) / 1e6);
    const Word shed = std::max<Word>(0, level_us() - setting_.grace);
    life_.require(
        d, {.remaining = million - millionths(shed), .reset_after = samples_.rests_after(now)});
    samples_.require_exact(now);
  }

  /// One draw for all tiers: the less important are shed first, the first never.
  void shed() {
    const Word most = setting_.full_after - 1;
    const Word edge =
        shed_span(life_.random.between(0, setting_.tiers)) - life_.random.between(0, 1);
    const Word draw =
        life_.random.one_in(2) ? std::clamp<Word>(edge, 0, most) : life_.random.between(0, most);
    life_.tell("draw", draw);
    bool admits = false;
    for (Word i = setting_.tiers; i >= 0; --i) {
      const Step step = shedder_.acquire_step(shedder_.whole(), tier(i), draw);
      const bool allowed = draw >= shed_span(i);
      REQUIRE((allowed || !admits));
      admits = allowed;
      life_.note(require(step, i, allowed), 1);
      if (allowed && shed_span(i) > 0) life_.saw("spared by the draw");
    }
    REQUIRE(admits);
  }
  /// Refused only if it is wholly shed.
  void peek() {
    const Word i = life_.random.between(0, setting_.tiers);
    const bool wholly = shed_span(i) == setting_.full_after;
    require(shedder_.peek_step(shedder_.whole(), tier(i)), i, !wholly);
    if (wholly) life_.saw("wholly shed");
  }
  void report() {
    const Word now = life_.tick();
    const UtilizationReport report = shedder_.report();
    const auto full = static_cast<double>(setting_.full_after);
    REQUIRE(report.amount == static_cast<double>(level_us() - setting_.grace) / full);
    REQUIRE(std::ssize(report.probabilities) == setting_.tiers + 1);
    for (Word i = 0; i <= setting_.tiers; ++i) {
      REQUIRE(report.probabilities[static_cast<std::size_t>(i)] ==
              static_cast<double>(shed_span(i)) / full);
    }
    REQUIRE(report.last_sample.has_value() == samples_.counts(now));
    if (report.last_sample) REQUIRE(to_word(*report.last_sample) == samples_.last(now));
    REQUIRE(report.rests_after.count() == samples_.rests_after(now));
    if (samples_.counts(now) && level_us() == 0) life_.saw("at rest");
  }
  void reset() {
    shedder_.reset();
    samples_.clear();
  }

  Life& life_;
  Setting setting_;
  UtilizationShedder shedder_;
  Samples samples_;
  bool is_busy_ = true;
};

}  // namespace

TEST_CASE("the utilization shedder answers what all its samples give, whoever asks in between",
          "[model][utilization][S5][C-041][C-042]") {
  live<UtilizationModel>({.outcomes = {"admitted", "refused", "spared by the draw", "wholly shed",
                                       "at rest", "the first that counts", "counts no more"},
                          .patient_in = 0});
}
