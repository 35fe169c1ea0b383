// The kernel of the utilization shedder as tables of moments: at this instant, this sample or this
// call, this level and this answer.
// Threading: single-threaded.
#include "sluice/rules/utilization.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

using Rule = UtilizationRule;

constexpr Word start = 946'684'800'000'000;
constexpr Word us_a_second = 1'000'000;
constexpr Word full = 120 * us_a_second;
constexpr Word decay = 246'667;  // 148 s in 10 min, rounded up
constexpr Rule::Pace pace{
    .grace = 28 * us_a_second, .full_after = full, .decay = decay, .max_gap = 20 * us_a_second};

Arguments sample_of(Word utilization, const Rule::Pace& with = pace) {
  Arguments args{};
  detail::pack(args, Rule::SampleArgs{with, 700'000, 800'000, utilization});
  return args;
}
Arguments shed_of(Word tier, Word draw, Word tiers = 1) {
  Arguments args{};
  detail::pack(args, Rule::ShedArgs{pace, tiers, tier, draw});
  return args;
}

/// One key's state, and rows run on it.
struct Cell {
  StateWords words{};
  std::vector<Word> output{};

  Verdict run(const Operation& row, const Arguments& args, Word now) {
    Effects effects;
    const Verdict verdict = sluice::run(row, words, {args, {}}, now, effects);
    if (verdict.status == Verdict::allowed) effects.make(words);
    output.assign(effects.output().begin(), effects.output().end());
    return verdict;
  }
  /// The level in whole microseconds after a sample.
  Word sample(Span at, Word utilization, const Rule::Pace& with = pace) {
    REQUIRE(run(utilization_sample, sample_of(utilization, with), start + at.count()).status == 1);
    return output[0];
  }
  bool shed(Span at, Word draw, Word tier = 1, Word tiers = 1) {
    return run(utilization_shed, shed_of(tier, draw, tiers), start + at.count()).status == 0;
  }
  /// Samples 1.0 often enough until `at`.
  void overload(Span from, Span at) {
    for (Span t = from; t < at; t += 8s) sample(t, Rule::one);
    sample(at, Rule::one);
  }
};

struct Moment {
  Span at;
  Word utilization;
  Word level_us;
};

void check(const std::vector<Moment>& table) {
  Cell cell;
  for (const Moment& moment : table) {
    INFO("at " << moment.at.count() << " us, utilization " << moment.utilization);
    CHECK(cell.sample(moment.at, moment.utilization) == moment.level_us);
  }
}

}  // namespace

TEST_CASE("a wholly busy service is borne for exactly 28 s, and shed wholly after 148 s",
          "[core][utilization][C-040]") {
  Cell cell;
  cell.overload(0s, 28s);
  CHECK(cell.output[0] == pace.grace);
  CHECK_FALSE(cell.shed(28s, 0));
  cell.sample(28s + 1us, Rule::one);
  CHECK(cell.shed(28s + 1us, 0));
  CHECK_FALSE(cell.shed(28s + 1us, 1));

  cell.overload(28s + 1us, 148s - 1us);
  CHECK(cell.shed(148s - 1us, full - 2));
  CHECK_FALSE(cell.shed(148s - 1us, full - 1));
  cell.sample(148s, Rule::one);
  CHECK(cell.shed(148s, full - 1));
  cell.sample(156s, Rule::one);
  CHECK(cell.output[0] == 148 * us_a_second);
}

TEST_CASE("the level moves in proportion to how far the thresholds are passed",
          "[core][utilization]") {
  check({
      {0s, Rule::one, 0},
      {10s, Rule::one, 10'000'000},
      {20s, 900'000, 15'000'000},       // half way from bad to all
      {30s, 800'001, 15'000'000 + 50},  // 1/200,000, in whole millionths: 5
      {40s, 350'000, 10'000'050},       // half of good
      {50s, 0, 50},
      {60s, 0, 0},
      {70s, 0, 0},
      {80s, Rule::one, 10'000'000},
  });
}

TEST_CASE("a sample at the first instant of all is remembered", "[core][utilization]") {
  Cell cell;
  cell.run(utilization_sample, sample_of(Rule::one), 0);
  CHECK(cell.words == StateWords{0, 1});
  cell.run(utilization_sample, sample_of(Rule::one), 10);
  CHECK(cell.words == StateWords{9 * Rule::one, 10});
}

TEST_CASE("a level without a stamp is corrupt, and too high a one is cut down",
          "[core][utilization]") {
  Cell cell{{1, 0}};
  const Word corrupt = -static_cast<Word>(Errc::corrupt_state);
  CHECK(cell.run(utilization_sample, sample_of(0), start).status == corrupt);
  CHECK(cell.run(utilization_shed, shed_of(0, 0), start).status == corrupt);
  CHECK(cell.run(utilization_peek, shed_of(0, 0), start).status == corrupt);
  CHECK(cell.output == std::vector<Word>(4, 0));
  CHECK(cell.run(utilization_reset, {Rule::one}, start).status == 1);

  cell.words = {word_limit, start};
  CHECK(cell.sample(0s, Rule::one) == 148'000'000);
}

TEST_CASE("arguments out of range are errors and change nothing", "[core][utilization]") {
  const Word invalid = -static_cast<Word>(Errc::invalid_argument);
  const auto rejects = [&](const Operation& row, const Arguments& args) {
    Cell cell{{0, start}};
    CHECK(row.check(args) == invalid);
    CHECK(cell.run(row, args, start + us_a_second).status == invalid);
    CHECK(cell.words == StateWords{0, start});
  };
  const Arguments sample = sample_of(500'000);
  const Arguments shed = shed_of(0, 0);
  const std::vector<std::pair<std::size_t, std::vector<Word>>> wrong_pace{
      {0, {0, 999'999, 1'000'001}},
      {1, {-1, Rule::max_span - full + 1, INT64_MAX}},
      {2, {0, -1, Rule::max_span + 1, INT64_MIN}},
      {3, {0, Rule::one + 1}},
      {4, {0, Rule::max_span + 1}},
  };
  for (const auto& [place, values] : wrong_pace) {
    for (const Word value : values) {
      for (const auto& [row, right] : {std::pair{&utilization_sample, sample},
                                       {&utilization_shed, shed},
                                       {&utilization_peek, shed}}) {
        INFO(row->name << ", argument " << place << " = " << value);
        Arguments args = right;
        args[place] = value;
        rejects(*row, args);
      }
    }
  }
  const auto with = [](Arguments args, std::size_t place, Word value) {
    args[place] = value;
    return args;
  };
  for (const Word good : {Word{0}, Word{800'001}})
    rejects(utilization_sample, with(sample, 5, good));
  for (const Word bad : {Word{699'999}, Rule::one})
    rejects(utilization_sample, with(sample, 6, bad));
  for (const Word u : {Word{-1}, Rule::one + 1}) rejects(utilization_sample, with(sample, 7, u));
  for (const Word tiers : {Word{0}, Rule::max_tiers + 1})
    rejects(utilization_shed, with(shed, 5, tiers));
  for (const Word tier : {Word{-1}, Word{2}}) rejects(utilization_peek, with(shed, 6, tier));
  for (const Word draw : {Word{-1}, full}) rejects(utilization_shed, with(shed, 7, draw));
  rejects(utilization_reset, {999'999});
}
