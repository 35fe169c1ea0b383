// The kernels of the sliding windows as tables of moments: at this instant, this request, this
// answer. Threading: single-threaded.
#include "sluice/rules/sliding_window.hpp"

#include "tests/core/long_kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SlidingWindowRule;

constexpr Word start = 946'684'800'000'000;
constexpr Word limit = 100;  // what a request reports; the windows in the table decide

Ask acquire(Word cost, Span max_wait = 0s) {
  return {&sliding_window_acquire, {limit, cost, max_wait.count(), Rule::max_span}};
}
Ask peek(Word cost, Span max_wait = 0s) {
  return {&sliding_window_peek, {limit, cost, max_wait.count(), Rule::max_span}};
}
Ask back(Word units, Span time) {
  return {&sliding_window_refund, {limit, units, start + time.count(), Rule::max_span}};
}
Ask block(Span span) { return {&sliding_window_block, {limit, span.count(), Rule::max_span}}; }
Ask reward(Word units) { return {&sliding_window_reward, {limit, units, Rule::max_span}}; }
const Ask reset{&sliding_window_reset, {limit}};

LongKernel windows(std::vector<std::pair<Word, Span>> all) {
  LongKernel kernel(start);
  for (const auto& [most, span] : all)
    kernel.table.insert(kernel.table.end(), {most, span.count()});
  return kernel;
}

}  // namespace

TEST_CASE("a unit counts until a span after it, in every window, and not at that microsecond",
          "[core][sliding_window][C-002][C-003]") {
  check_moments(windows({{2, 5s}, {3, 60s}}),
                {{0s, acquire(2), admitted(0, 60s), {0, 0, 1}},
                 {0s, acquire(1), turned_away(5s, 60s), {0, 0, 1}},
                 {5s - 1us, acquire(1), turned_away(1us, 55s + 1us), {0, 0, 1}},
                 {5s, acquire(1), admitted(0, 60s), {1, 1, 0}},
                 {5s, acquire(1), turned_away(55s, 60s), {1, 1, 0}},
                 {60s - 1us, acquire(1), turned_away(1us, 5s + 1us), {1, 2, 0}},
                 {60s, acquire(1), admitted(1, 60s), {0, 1, 1}}});
}

TEST_CASE("the hint waits for as many units as a cost needs, in the window that needs longest",
          "[core][sliding_window][C-005]") {
  LongKernel kernel = windows({{4, 5s}, {6, 60s}});
  check_moments(kernel, {{0s, acquire(2), admitted(2, 60s), {0, 2, 4}},
                         {3s, acquire(2), admitted(0, 60s), {0, 0, 2}},
                         {4s, acquire(1), turned_away(1s, 59s), {0, 0, 2}},
                         {4s, peek(2), turned_away(1s, 59s), {0, 0, 2}},
                         {4s, acquire(3), turned_away(56s, 59s), {1, 0, 2}},
                         {5s - 1us, acquire(2), turned_away(1us, 58s + 1us), {0, 0, 2}},
                         {5s, peek(2), admitted(2, 58s), {0, 2, 2}}});
  kernel.table.resize(2);
  check_moments(kernel,
                {{8s - 1us, acquire(3), turned_away(1us, 1us, 2)}, {8s, peek(3), admitted(4, 0s)}});
}

TEST_CASE("a reservation is granted for the first instant with room, and nothing overtakes it",
          "[core][sliding_window]") {
  check_moments(windows({{2, 5s}}), {{0s, acquire(2), admitted(0, 5s)},
                                     {1s, acquire(1, 4s - 1us), turned_away(1us, 4s)},
                                     {1s, acquire(1, 4s), admitted(0, 9s, 4s), {0, 0}},
                                     {1s, acquire(1), turned_away(4s, 9s)},
                                     {1s, peek(1, 4s - 1us), turned_away(1us, 9s)},
                                     {1s, peek(1, 4s), admitted(0, 9s, 4s)},
                                     {1s, peek(0), turned_away(4s, 9s)},
                                     {1s, peek(0, 4s), admitted(0, 9s, 4s)},
                                     {5s - 1us, acquire(1), turned_away(1us, 5s + 1us)},
                                     {5s, acquire(1), admitted(0, 5s)},
                                     {5s, acquire(1), turned_away(5s, 5s)}});
}

TEST_CASE("a cancelled reservation leaves the window as it was", "[core][sliding_window]") {
  check_moments(windows({{3, 5s}}), {{0s, acquire(2), admitted(1, 5s)},
                                     {1s, acquire(2, 9s), admitted(0, 9s, 4s), {0, 0}},
                                     {1s, back(2, 5s - 1us), admitted(0, 9s), {0, 0}},
                                     {1s, back(2, 5s), admitted(1, 4s), {2, 1}},
                                     {1s, back(2, 5s), admitted(1, 4s), {0, 1}},
                                     {1s, acquire(1), admitted(0, 5s), {0, 0}},
                                     {5s - 1us, acquire(2), turned_away(1us, 1s + 1us)},
                                     {5s, acquire(2), admitted(0, 5s)}});
}

TEST_CASE("units that were not used come back while they are the newest",
          "[core][sliding_window]") {
  check_moments(windows({{3, 5s}}), {{0s, acquire(2), admitted(1, 5s)},
                                     {1us, back(1, 0s), admitted(2, 5s - 1us), {1, 2}},
                                     {1us, acquire(1), admitted(1, 5s)},
                                     {1us, back(1, 0s), admitted(1, 5s), {0, 1}},
                                     {1us, back(3, 1us), admitted(2, 5s - 1us), {1, 2}},
                                     {1us, reset, admitted(3, 0s), {0, 3}},
                                     {1us, acquire(3), admitted(0, 5s)}});
}

TEST_CASE(
    "a log is inherited by other limits, and what a full one has dropped counts in wider windows",
    "[core][sliding_window]") {
  const std::vector<LongMoment> three{{0s, acquire(1), admitted(2, 10s)},
                                      {1s, acquire(1), admitted(1, 10s)},
                                      {2s, acquire(1), admitted(0, 10s)}};
  LongKernel lowered = windows({{3, 10s}});
  check_moments(lowered, three);
  lowered.table[0] = 2;
  check_moments(lowered, {{3s, acquire(1), turned_away(8s, 9s)},
                          {11s - 1us, acquire(1), turned_away(1us, 1s + 1us)},
                          {11s, acquire(1), admitted(0, 10s)}});
  // Two units at 0 and one at 5 s, of which the ring of two has dropped the first.
  LongKernel raised = windows({{2, 5s}});
  check_moments(raised, {{0s, acquire(2), admitted(0, 5s)}, {5s, acquire(1), admitted(1, 5s)}});
  raised.table = {4, Word{10'000'000}};
  check_moments(raised, {{5s, acquire(2), turned_away(5s, 10s, 1)},
                         {10s - 1us, acquire(2), turned_away(1us, 5s + 1us, 1)},
                         {10s, acquire(2), admitted(1, 10s)}});
}

TEST_CASE("beyond a minute back the log restarts with one request", "[core][sliding_window]") {
  LongKernel kernel = windows({{1, 5s}});
  check_moments(kernel, {{100s, acquire(1), admitted(0, 5s)},
                         {40s, acquire(1), turned_away(65s, 65s)},
                         {40s - 1us, peek(1), admitted(1, 5s)},
                         {40s - 1us, acquire(1), admitted(0, 5s)},
                         {40s - 1us, acquire(1), turned_away(5s, 5s)},
                         {45s - 2us, acquire(1), turned_away(1us, 1us)},
                         {45s - 1us, acquire(1), admitted(0, 5s)}});
}

TEST_CASE("windows and arguments out of range are errors", "[core][sliding_window][C-078]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  check_moments(windows({{2, 5s}}),
                {{0s, acquire(-1), Verdict::failed(Errc::invalid_cost)},
                 {0s, acquire(3), Verdict::failed(Errc::cost_exceeds_capacity)},
                 {0s, acquire(101), Verdict::failed(Errc::cost_exceeds_capacity)},
                 {0s, acquire(1, -1us), wrong},
                 {0s, back(-1, 0s), Verdict::failed(Errc::invalid_cost)},
                 {0s, back(1, Span{-start - 1}), wrong},
                 {0s, acquire(2), admitted(0, 5s)}});
  for (const std::vector<Word>& table : std::vector<std::vector<Word>>{
           {}, {2}, {0, 1}, {2, 0}, {Rule::max_limit + 1, 1}, {2, Rule::max_span + 1}}) {
    for (const Ask& ask : {acquire(0), peek(0), back(0, 0s), reset}) {
      CHECK(LongKernel(start, table).ask(0s, ask) == wrong);
    }
  }
}

TEST_CASE("a log that contradicts itself is a corrupt state", "[core][sliding_window]") {
  LongKernel sound = windows({{2, 5s}});
  sound.ask(0s, acquire(2));
  const std::vector<std::pair<std::size_t, Word>> flaws{{2, Rule::max_limit + 1},
                                                        {3, 2},
                                                        {4, 3},
                                                        {4, 1},
                                                        {6, Rule::max_span + 1},
                                                        {7, 0},
                                                        {7, 9},
                                                        {7, 1 + 16},
                                                        {7, 1 + 2 * 16},
                                                        {9, Rule::max_span + 1},
                                                        {0, -1}};
  for (const auto& [index, value] : flaws) {
    LongKernel spoilt = sound;
    spoilt.state[5] = 1;  // a unit was dropped, so the ring must be full
    spoilt.state[index] = value;
    INFO("word " << index << " is " << value);
    CHECK(spoilt.ask(1s, acquire(1)) == Verdict::failed(Errc::corrupt_state));
    CHECK(spoilt.ask(1s, peek(0)) == Verdict::failed(Errc::corrupt_state));
    CHECK(spoilt.ask(1s, back(1, 0s)) == Verdict::failed(Errc::corrupt_state));
  }
}

TEST_CASE("nothing is granted for a time before the end of a block", "[core][sliding_window]") {
  LongKernel kernel = windows({{2, 5s}, {3, 60s}});
  check_moments(kernel, {{0s, acquire(1), admitted(1, 60s), {0, 1, 2}},
                         {1s, block(0s), admitted(1, 59s), {0, 1, 2}},
                         {1s, block(9s), admitted(0, 59s), {0, 1, 2}},
                         {1s, acquire(1), turned_away(9s, 59s), {2, 1, 2}},
                         {1s, peek(1, 9s - 1us), turned_away(1us, 59s), {2, 1, 2}},
                         {1s, acquire(1, 9s), admitted(0, 69s, 9s), {0, 0, 1}},
                         {1s, back(1, 10s), admitted(0, 59s), {1, 1, 2}},
                         {2s, block(8s - 1us), admitted(0, 58s), {0, 1, 2}},
                         {2s, reward(9), admitted(0, 8s), {1, 2, 3}},
                         {2s, reward(9), admitted(0, 8s), {0, 2, 3}},
                         {10s - 1us, peek(2), turned_away(1us, 1us), {2, 2, 3}},
                         {10s, peek(2), admitted(2, 0s), {0, 2, 3}},
                         {10s, acquire(2), admitted(0, 60s), {0, 0, 1}},
                         {11s, block(9s), admitted(0, 59s), {0, 0, 1}},
                         {11s, reset, admitted(2, 0s), {0, 2, 3}},
                         {11s, acquire(1), admitted(1, 60s), {0, 1, 2}}});
  CHECK(kernel.state[7] == 2);  // as if it had never been blocked
  CHECK(kernel.ask(11s, block(9s)).status == Verdict::allowed);
  CHECK(kernel.state[7] == 2 + 16);
  CHECK(kernel.state[12] == start + 20'000'000);
  CHECK(kernel.ask(20s, acquire(1)).status == Verdict::allowed);
  CHECK(kernel.state[7] == 2);
}

TEST_CASE("a reward tells the units that some window held", "[core][sliding_window]") {
  check_moments(windows({{2, 5s}, {3, 60s}}), {{0s, acquire(2), admitted(0, 60s)},
                                               {5s, acquire(1), admitted(0, 60s)},
                                               {60s, reward(1), admitted(2, 0s), {1, 2, 3}},
                                               {60s, reward(2), admitted(2, 0s), {0, 2, 3}}});
}

TEST_CASE("a block that no rule can have left is corrupt", "[core][sliding_window]") {
  LongKernel kernel = windows({{2, 5s}});
  CHECK(kernel.ask(0s, block(Span{Rule::max_block})).status == Verdict::allowed);
  CHECK(kernel.ask(0s, acquire(1)) == turned_away(Span{Rule::max_block}, Span{Rule::max_block}));
  const std::vector<Word> sound = kernel.state;
  for (const auto& [index, word] : {std::pair{12, sound[12] + 1}, {11, 0}, {7, sound[7] + 16}}) {
    INFO(index);
    kernel.state = sound;
    kernel.state[static_cast<std::size_t>(index)] = word;
    for (const Ask& ask : {acquire(1), peek(1), back(1, 0s), reward(1), block(1s)}) {
      CHECK(kernel.ask(0s, ask) == Verdict::failed(Errc::corrupt_state));
    }
  }
}
