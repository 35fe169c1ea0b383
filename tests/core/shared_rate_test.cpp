// The kernel of the shared rate's setting as tables of moments: at this instant, this request, this
// answer. Threading: single-threaded.
#include "sluice/algorithms/shared_rate.hpp"

#include "tests/core/long_kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SharedRateRule;
using Mode = Rule::Mode;

constexpr Word start = 946'684'800'000'000;
constexpr Span keep_alive = 1h;
constexpr Span interval = 1min;

Ask set(Word rate, Mode mode, Word per_client = 0) {
  return {&shared_rate_set,
          {rate, interval.count(), per_client, static_cast<Word>(mode), keep_alive.count()}};
}
Ask expect(Word version, Word permits = 1) {
  return {&shared_rate_expect, {0, version, permits, keep_alive.count()}};
}
const Ask ask_setting{&shared_rate_read, {0, keep_alive.count()}};

Verdict fine(Word rate) { return admitted(rate, 0s); }
const Verdict none = Verdict::failed(Errc::not_configured);
const Verdict changed = Verdict::failed(Errc::config_changed);
Details setting(Word version, Word generation, Word rate, Word per_client = 0) {
  return {version, generation, rate, interval.count(), per_client};
}

}  // namespace

TEST_CASE("each change is a new version, and only a fresh start a new log", "[core][shared_rate]") {
  check_moments(LongKernel(start),
                {{0us, ask_setting, none},
                 {0us, expect(0), none},
                 {0us, set(3, Mode::if_absent), fine(3), {start, 1}},
                 {1us, set(9, Mode::if_absent), fine(3), {start, 0}},
                 {1us, set(10, Mode::update), fine(10), {start + 1, 1}},
                 {1us, ask_setting, fine(10), setting(start + 1, start, 10)},
                 {1us, set(11, Mode::update), fine(11), {start + 2, 1}},
                 {1us, ask_setting, fine(11), setting(start + 2, start, 11)},
                 {2us, set(4, Mode::reset), fine(4), {start + 3, 1}},
                 {2us, ask_setting, fine(4), setting(start + 3, start + 3, 4)},
                 {9us, set(5, Mode::update, 1), fine(5), {start + 9, 1}},
                 {9us, ask_setting, fine(5), setting(start + 9, start + 9, 5, 1)},
                 {-1h, set(6, Mode::update, 1), fine(6), {start + 10, 1}},
                 {-1h, ask_setting, fine(6), setting(start + 10, start + 9, 6, 1)}});
}

TEST_CASE("a client is told when its version is not in force", "[core][shared_rate]") {
  check_moments(LongKernel(start),
                {{0us, set(3, Mode::if_absent), fine(3), {start, 1}},
                 {0us, expect(start), fine(3)},
                 {0us, expect(start, 0), fine(3)},
                 {0us, expect(start, 3), fine(3)},
                 {0us, expect(start, 4), Verdict::failed(Errc::cost_exceeds_capacity)},
                 {0us, expect(start - 1), changed},
                 {0us, set(4, Mode::update), fine(4), {start + 1, 1}},
                 {0us, expect(start), changed},
                 {0us, expect(start, 9), changed},
                 {0us, expect(start + 1, 4), fine(4)}});
}

TEST_CASE("a setting lives as long as it is kept after its last use", "[core][shared_rate]") {
  const std::vector<LongMoment> unused{
      {0us, set(3, Mode::reset), fine(3)},
      {15min - 1us, expect(start), fine(3)},
      {1h - 1us, ask_setting, fine(3), setting(start, start, 3)},
      {1h, ask_setting, none},
      {1h, expect(start), none},
      {1h, set(7, Mode::update), fine(7), {start + 3'600'000'000, 1}}};
  LongKernel lapsed(start);
  check_moments(lapsed, unused);
  CHECK(lapsed.state[1] == start + 3'600'000'000);  // its log is a new one
  check_moments(LongKernel(start), {{0us, set(3, Mode::reset), fine(3)},
                                    {15min, expect(start), fine(3)},
                                    {75min - 1us, ask_setting, fine(3)},
                                    {75min, ask_setting, none}});
  check_moments(LongKernel(start), {{0us, set(3, Mode::reset), fine(3)},
                                    {-1us, expect(start), fine(3)},
                                    {1h - 2us, ask_setting, fine(3)},
                                    {1h - 1us, ask_setting, none}});
}

TEST_CASE("a use within a quarter of the time that a setting is kept writes nothing",
          "[core][shared_rate]") {
  LongKernel kernel(start);
  kernel.ask(0us, set(3, Mode::reset));
  const auto before = kernel.state;
  kernel.ask(15min - 1us, expect(start));
  CHECK(kernel.state == before);
  kernel.ask(15min, expect(start));
  CHECK(kernel.state[5] == start + 900'000'000);
}

TEST_CASE("a shared rate's arguments out of range are errors", "[core][shared_rate][C-078]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Word minute = interval.count();
  for (const Arguments& args :
       {Arguments{0, minute, 0, 0, minute}, Arguments{Rule::max_rate + 1, minute, 0, 0, minute},
        Arguments{1, 0, 0, 0, minute}, Arguments{1, Rule::max_interval + 1, 0, 0, word_limit / 2},
        Arguments{1, minute, 2, 0, minute}, Arguments{1, minute, 0, 3, minute},
        Arguments{1, minute, 0, 0, minute - 1}}) {
    CHECK(LongKernel(start).ask(0s, {&shared_rate_set, args}) == wrong);
  }
  LongKernel kernel(start);
  check_moments(kernel, {{0s, {&shared_rate_set, {1, minute, 0, 0, minute}}, fine(1)},
                         {0s, expect(start, -1), Verdict::failed(Errc::invalid_cost)},
                         {0s, expect(start, Rule::max_rate + 1),
                          Verdict::failed(Errc::cost_exceeds_capacity)},
                         {0s, expect(-1), wrong},
                         {0s, {&shared_rate_read, {0, 0}}, wrong}});
  for (const auto& [index, value] :
       std::vector<std::pair<std::size_t, Word>>{{1, start + 1},
                                                 {2, 0},
                                                 {2, Rule::max_rate + 1},
                                                 {3, 0},
                                                 {3, Rule::max_interval + 1},
                                                 {4, 2},
                                                 {5, -1},
                                                 {6, Rule::max_keep_alive + 1}}) {
    LongKernel spoilt = kernel;
    spoilt.state[index] = value;
    INFO("word " << index << " is " << value);
    for (const Ask& ask : {ask_setting, expect(start), set(1, Mode::update)}) {
      CHECK(spoilt.ask(0s, ask) == Verdict::failed(Errc::corrupt_state));
    }
  }
}
