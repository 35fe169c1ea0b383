// The kernel of the gate as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/gate.hpp"

#include "tests/catch.hpp"
#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Word start = 946'684'800'000'000;

struct Pace {
  Span cap = 1h;
  Span ramp = 1s;
  Span spacing = 100ms;
};

Ask close(Span span, Pace p = {}) {
  return {&gate_close, {1, p.cap.count(), p.ramp.count(), p.spacing.count(), span.count()}};
}
Ask pass(Pace p = {}) {
  return {&gate_pass, {1, p.cap.count(), p.ramp.count(), p.spacing.count()}};
}
Ask peek(Pace p = {}) {
  return {&gate_peek, {1, p.cap.count(), p.ramp.count(), p.spacing.count()}};
}
const Ask open{&gate_open, {1}};

/// Closed, and free again after so long.
Verdict closed(Span until_free) { return {Verdict::allowed, 0, 0, until_free.count()}; }
Verdict refused(Span retry_after, Span until_free) {
  return {Verdict::refused, 0, retry_after.count(), until_free.count()};
}
/// One call, and no other at once.
Verdict passed(Span until_free) { return {Verdict::allowed, 0, 0, until_free.count()}; }
Verdict passable(Span until_free) { return {Verdict::allowed, 1, 0, until_free.count()}; }
const Verdict free_now{Verdict::allowed, 1, 0, 0};

}  // namespace

TEST_CASE("a gate that was never closed is free and keeps no state", "[core][gate]") {
  Kernel kernel(start);
  for (int i = 0; i < 3; ++i) CHECK(kernel.ask(0s, pass()) == free_now);
  CHECK(kernel.ask(0s, peek()) == free_now);
  CHECK(kernel.words() == StateWords{});
  Kernel at_the_epoch(0);
  CHECK(at_the_epoch.ask(0s, pass()) == free_now);
}

TEST_CASE("a gate is closed for exactly as long as was said", "[core][gate][C-081]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {0s, pass(), refused(30s, 31s)},
                        {999ms, pass(), refused(29'001ms, 30'001ms)},
                        {30s - 1us, pass(), refused(1us, 1s + 1us)},
                        {30s - 1us, peek(), refused(1us, 1s + 1us)},
                        {30s, peek(), passable(1s)},
                        {30s, pass(), passed(1s)}});
}

TEST_CASE("the later time wins, in whichever order it comes", "[core][gate][C-080]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {0s, close(1s), closed(31s)},
                        {5s, pass(), refused(25s, 26s)},
                        {5s, close(25s - 1us), closed(26s)},
                        {5s, pass(), refused(25s, 26s)},
                        {5s, close(25s + 1us), closed(26s + 1us)},
                        {5s, pass(), refused(25s + 1us, 26s + 1us)}});
}

TEST_CASE("no closure is longer than the cap, and none of no time closes", "[core][gate][C-085]") {
  check_moments(start, {{0s, close(0s), free_now},
                        {0s, pass(), free_now},
                        {0s, close(Span{word_limit}), closed(1h + 1s)},
                        {0s, pass(), refused(1h, 1h + 1s)},
                        {1s, close(1h - 1s), closed(1h)},
                        {1s, close(1h), closed(1h + 1s)},
                        {1h + 1s, pass(), passed(1s)},
                        {1h + 1s, close(0s), closed(1s)}});
}

TEST_CASE("a gate reopens one call after the other, and then is free", "[core][gate][C-084]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {30s, pass(), passed(1s)},
                        {30s, pass(), refused(100ms, 1s)},
                        {30s, peek(), refused(100ms, 1s)},
                        {30'100ms - 1us, pass(), refused(1us, 900'001us)},
                        {30'100ms, pass(), passed(900ms)},
                        {30'350ms, pass(), passed(650ms)},
                        {30'350ms, pass(), refused(100ms, 650ms)},
                        {30'950ms, pass(), passed(50ms)},
                        {30'950ms, pass(), refused(50ms, 50ms)},  // not after the ramp's end
                        {31s - 1us, pass(), refused(1us, 1us)},
                        {31s, pass(), free_now},
                        {31s, pass(), free_now}});
}

TEST_CASE("a gate that is closed anew during the ramp is closed", "[core][gate]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {30s, pass(), passed(1s)},
                        {30'050ms, close(2s), closed(3s)},
                        {30'100ms, pass(), refused(1'950ms, 2'950ms)},
                        {32'050ms, pass(), passed(1s)},
                        {32'050ms, pass(), refused(100ms, 1s)}});
}

TEST_CASE("without a ramp a gate is free at once", "[core][gate]") {
  const Pace none{1h, 0s, 0s};
  check_moments(start, {{0s, close(30s, none), closed(30s)},
                        {30s - 1us, pass(none), refused(1us, 1us)},
                        {30s, pass(none), free_now},
                        {30s, pass(none), free_now}});
  const Pace unspaced{1h, 1s, 0s};
  check_moments(start, {{0s, close(30s, unspaced), closed(31s)},
                        {30s, pass(unspaced), passable(1s)},
                        {30s, pass(unspaced), passable(1s)},
                        {30'500ms, pass(unspaced), passable(500ms)}});
}

TEST_CASE("opening a gate frees it", "[core][gate]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {0s, open, free_now},
                        {0s, pass(), free_now},
                        {0s, pass(), free_now}});
}

TEST_CASE("a clock set back by up to a minute keeps a gate closed that much longer",
          "[core][gate]") {
  check_moments(start, {{100s, close(30s), closed(31s)},
                        {40s, pass(), refused(90s, 91s)},
                        {130s - 1us, pass(), refused(1us, 1s + 1us)},
                        {130s, pass(), passed(1s)},
                        {70s, pass(), refused(60'100ms, 61s)}});  // during the ramp as well
}

TEST_CASE("beyond a minute one call passes and the closure counts from the new time",
          "[core][gate][C-082]") {
  const Moment shut{100s, close(30s), closed(31s)};
  check_moments(start, {shut,
                        {40s - 1us, peek(), passable(31s)},
                        {40s - 1us, pass(), passed(31s)},
                        {40s - 1us, pass(), refused(30s, 31s)},
                        {70s - 1us, pass(), passed(1s)}});
  check_moments(start, {shut, {-10h, close(5s), closed(31s)}, {-10h, pass(), refused(30s, 31s)}});
  check_moments(start, {shut, {-10h, close(50s), closed(51s)}, {-10h, pass(), refused(50s, 51s)}});
  check_moments(start, {shut, {-10h, close(0s), passable(31s)}, {-10h, pass(), passed(31s)}});
  // A shorter cap holds for what was left.
  const Pace shorter{10s, 1s, 100ms};
  check_moments(start, {shut, {-10h, pass(shorter), passed(11s)}});
  // Of a gate that had reopened, the ramp begins anew.
  check_moments(start, {shut,
                        {130s, pass(), passed(1s)},
                        {-10h, pass(), passed(1s)},
                        {-10h, pass(), refused(100ms, 1s)},
                        {-10h + 1s, pass(), free_now}});
}

TEST_CASE("a refused call passes at its hint and not a microsecond before", "[core][gate][L1]") {
  for (const Span asked : std::initializer_list<Span>{0s, 29s, 30s, 30'050ms, 30'930ms, 30'990ms}) {
    INFO("asked at " << asked.count() << " us");
    Kernel kernel(start);
    kernel.ask(0s, close(30s));
    if (asked >= 30s) kernel.ask(asked, pass());
    const Verdict refusal = kernel.ask(asked, pass());
    REQUIRE(refusal.status == Verdict::refused);
    const Span due = asked + Span{refusal.retry_after};
    CHECK(kernel.ask(due - 1us, pass()).retry_after == 1);
    CHECK(kernel.ask(due, pass()).status == Verdict::allowed);
  }
}

TEST_CASE("a gate's arguments out of range are errors", "[core][gate]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  check_moments(start, {{0s, pass({0s, 1s, 100ms}), wrong},
                        {0s, pass({Span{GateRule::max_cap + 1}, 1s, 100ms}), wrong},
                        {0s, pass({1h, -1us, 0us}), wrong},
                        {0s, pass({1h, 24h + 1us, 0us}), wrong},
                        {0s, pass({1h, 1s, 1s + 1us}), wrong},
                        {0s, peek({1h, 1s, -1us}), wrong},
                        {0s, close(-1us), wrong},
                        {0s, close(Span{word_limit + 1}), wrong},
                        {0s, {&gate_open, {0}}, wrong},
                        {0s, pass({Span{GateRule::max_cap}, 24h, 24h}), free_now}});
}

TEST_CASE("words that no gate leaves are a corrupt state", "[core][gate]") {
  const Verdict corrupt = Verdict::failed(Errc::corrupt_state);
  for (const StateWords& words : {StateWords{start + GateRule::max_cap + 1, start},
                                  StateWords{start, start + 2 * GateRule::max_ramp + 1},
                                  StateWords{-1, 0}, StateWords{0, word_limit + 1}}) {
    Kernel kernel(start, words);
    CHECK(kernel.ask(0s, pass()) == corrupt);
    CHECK(kernel.ask(0s, peek()) == corrupt);
    CHECK(kernel.ask(0s, close(1s)) == corrupt);
    CHECK(kernel.words() == words);
  }
}
