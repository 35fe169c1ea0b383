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

TEST_CASE("a gate is closed for exactly as long as was said", "[core][gate][C-081]") {
  check_moments(start, {{0s, close(30s), closed(31s)},
                        {0s, pass(), refused(30s, 31s)},
                        {999ms, pass(), refused(29'001ms, 30'001ms)},
                        {30s - 1us, pass(), refused(1us, 1s + 1us)},
                        {30s - 1us, peek(), refused(1us, 1s + 1us)},
                        {30s, peek(), passable(1s)},
                        {30s, pass(), passed(1s)}});
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

TEST_CASE(
    "beyond a minute back one call passes, and what was left of a closure counts, up to the cap",
    "[core][gate][C-082]") {
  const Moment shut{100s, close(30s), closed(31s)};
  check_moments(start, {shut,
                        {40s, pass(), refused(90s, 91s)},
                        {40s - 1us, peek(), passable(31s)},
                        {40s - 1us, pass(), passed(31s)},
                        {40s - 1us, pass(), refused(30s, 31s)},
                        {70s - 1us, pass(), passed(1s)}});
  const Pace shorter{10s, 1s, 100ms};
  check_moments(start, {shut, {-10h, pass(shorter), passed(11s)}});
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
