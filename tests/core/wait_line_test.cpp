// The kernel of the wait line as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/wait_line.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = WaitLineRule;

constexpr Span ttl = 3s;

Word at(Span arrival) { return start + arrival.count(); }

Ask enter(Word client, Span arrival, Span life = ttl, Word units = 1) {
  return {&wait_line_enter, {word_limit, client, at(arrival), life.count(), units}};
}
Ask turn(Word client, Span arrival) {
  return {&wait_line_turn, {word_limit, client, at(arrival), ttl.count(), 1, 0, 1, 0}};
}
/// The limit has units for those ahead up to this count.
Ask turn_with(Word enough, Word client, Span arrival, Word units = 1) {
  return {&wait_line_turn, {word_limit, client, at(arrival), ttl.count(), units, 0, 1, enough}};
}
Ask leave(Word client) { return {&wait_line_leave, {word_limit, client, 0}}; }
const Ask peek{&wait_line_peek, {word_limit}};

Word us(Span span) { return span.count(); }

/// Somebody lives for so long.
Verdict fine(Span alive) { return admitted(word_limit, alive); }
Verdict not_yet(Span retry_after, Span alive) {
  return {Verdict::refused, 0, retry_after.count(), alive.count()};
}

}  // namespace

TEST_CASE("who came first has its turn first, and who finds nobody in line leaves no trace",
          "[core][wait_line]") {
  Kernel kernel;
  check_moments(kernel,
                {{0s, turn(1, 0s), fine(0s)}, {0s, leave(2), fine(0s)}, {0s, peek, fine(0s)}});
  CHECK(kernel.state == Output(cell_words));
  check_moments({{1s, enter(7, 1s), fine(3s), {0, 0, 0, 0}},
                 {2s, enter(5, 2s), fine(3s), {1, 7, 0, us(2s)}},
                 {2s, turn(5, 2s), not_yet(2s, 2s), {1, 7, 0, us(2s)}},
                 {2s, turn(9, 3s), not_yet(3s, 3s), {2, 7, 0, us(3s)}},
                 {2s, turn(9, 500ms), fine(3s), {2, 7, 1, us(3s)}},  // it came earlier than all
                 {2s, turn(7, 1s), fine(3s), {1, 5, 2, us(3s)}},
                 {2s, turn(5, 2s), fine(0s), {0, 0, 3, 0}},
                 {2s, peek, fine(0s), {0, 0, 0, 0}}});
}

TEST_CASE("the count of what was granted begins again", "[core][wait_line]") {
  Kernel kernel;
  kernel.ask(0s, enter(1, 0s));
  kernel.state[1] = word_limit - 1;
  kernel.ask(0s, turn_with(0, 2, -1s));
  CHECK(kernel.output == Output{1, 1, word_limit, us(3s)});
  kernel.ask(0s, turn_with(0, 2, -1s));
  CHECK(kernel.output == Output{1, 1, 0, us(3s)});
}

TEST_CASE("after a clock was set back, a life left over is none, and a process has one place",
          "[core][wait_line]") {
  check_moments({{0s, enter(1, 0s, Span{Rule::max_ttl}), fine(10min), {0, 0, 0, 0}},
                 {-1us, turn(2, 1s), fine(0s), {0, 0, 0, 0}},
                 {0us, turn(2, 1s), not_yet(10min, 10min), {1, 1, 0, us(10min)}},
                 {-1h, enter(1, -1h), fine(3s), {0, 0, 0, 0}},
                 {0s, enter(1, 0s), fine(3s), {0, 0, 0, 0}},
                 {0s, peek, fine(3s), {1, 1, 0, us(3s)}}});
}

TEST_CASE("places are used again, and the state grows with those that live at once",
          "[core][wait_line]") {
  Kernel kernel;
  for (Word client = 1; client <= 100; ++client) {
    kernel.ask(client * 1s, enter(client, client * 1s, 2s));  // two at once
  }
  CHECK(kernel.state.size() <= Rule::first_place + 3 * Rule::place_words);
  for (Word client = 1; client <= 100; ++client) kernel.ask(200s, enter(client, 200s, 2s));
  kernel.ask(300s, enter(1, 300s));
  CHECK(kernel.state[0] <= 2);  // places that are looked at
}

TEST_CASE("states that contradict themselves are corrupt", "[core][wait_line]") {
  check_corrupt(Kernel(), 0s, {{0, Rule::max_places + 1}}, {peek});
  Kernel twice;
  twice.state = {2, 0, 7, at(0s), at(1s), 1, 7, at(0s), at(1s), 1};
  CHECK(twice.ask(0s, enter(7, 0s)) == Verdict::failed(Errc::corrupt_state));
  CHECK(twice.ask(0s, turn(8, 0s)).status >= 0);
}
