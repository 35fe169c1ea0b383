// The kernel of the utilization shedder as tables of moments: at this instant, this sample or this
// call, this level and this answer.
// Threading: single-threaded.
#include "sluice/rules/utilization.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = UtilizationRule;

constexpr Word us_a_second = 1'000'000;
constexpr Word full = 120 * us_a_second;
constexpr Word decay = 246'667;  // 148 s in 10 min, rounded up
constexpr Rule::Pace pace{
    .grace = 28 * us_a_second, .full_after = full, .decay = decay, .max_gap = 20 * us_a_second};

Arguments sample_of(Word utilization) {
  Arguments args{};
  detail::pack(args, Rule::SampleArgs{pace, 700'000, 800'000, utilization});
  return args;
}
/// A call of one of two tiers.
Arguments shed_of(Word tier, Word draw) {
  Arguments args{};
  detail::pack(args, Rule::ShedArgs{pace, 1, tier, draw});
  return args;
}

/// One key's state, and samples and calls of it.
struct Cell : Kernel {
  using Kernel::Kernel;

  /// The level in whole microseconds after a sample.
  Word sample(Span at, Word utilization) {
    REQUIRE(ask(at, {&utilization_sample, sample_of(utilization)}).status == Verdict::allowed);
    return output[0];
  }
  bool shed(Span at, Word draw) {
    return ask(at, {&utilization_shed, shed_of(1, draw)}).status == Verdict::refused;
  }
  /// Samples 1.0 often enough until `at`.
  void overload(Span from, Span at) {
    for (Span t = from; t < at; t += 8s) sample(t, Rule::one);
    sample(at, Rule::one);
  }
};

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

TEST_CASE("a sample at the first instant of all is remembered", "[core][utilization]") {
  Cell cell(Word{0});
  cell.sample(0us, Rule::one);
  CHECK(cell.state == Output{0, 1});
  cell.sample(10us, Rule::one);
  CHECK(cell.state == Output{9 * Rule::one, 10});
}

TEST_CASE("a level without a stamp is corrupt, and too high a one is cut down",
          "[core][utilization]") {
  check_corrupt(Kernel(), 0s, {{0, 1}},
                {{&utilization_sample, sample_of(0)},
                 {&utilization_shed, shed_of(0, 0)},
                 {&utilization_peek, shed_of(0, 0)}});
  Cell cell;
  cell.state = {1, 0};
  CHECK(cell.ask(0s, {&utilization_reset, {Rule::one}}).status == Verdict::allowed);
  cell.state = {word_limit, start};
  CHECK(cell.sample(0s, Rule::one) == 148'000'000);
}
