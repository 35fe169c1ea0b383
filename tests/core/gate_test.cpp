// The kernel of the gate as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/gate.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

struct Pace {
  Span cap = 1h;
  Span ramp = 1s;
  Span spacing = 100ms;
};

Ask ask(const Operation& row, Pace p, Span span = 0s) {
  return {&row, {1, p.cap.count(), p.ramp.count(), p.spacing.count(), span.count()}};
}
Ask close(Span span, Pace p = {}) { return ask(gate_close, p, span); }
Ask pass(Pace p = {}) { return ask(gate_pass, p); }
Ask peek(Pace p = {}) { return ask(gate_peek, p); }

/// Closed, and free again after so long.
Verdict closed(Span until_free) { return admitted(0, until_free); }
/// One call, and no other at once.
Verdict passed(Span until_free) { return admitted(0, until_free); }
Verdict passable(Span until_free) { return admitted(1, until_free); }
Verdict refused(Span retry_after, Span until_free) { return turned_away(retry_after, until_free); }
const Verdict free_now = admitted(1, 0s);

}  // namespace

TEST_CASE("a gate is closed for as long as was said, reopens call by call, and then is free",
          "[core][gate][C-081][C-084]") {
  check_moments({{0s, close(30s), closed(31s)},
                 {0s, pass(), refused(30s, 31s)},
                 {30s - 1us, pass(), refused(1us, 1s + 1us)},
                 {30s - 1us, peek(), refused(1us, 1s + 1us)},
                 {30s, peek(), passable(1s)},
                 {30s, pass(), passed(1s)},
                 {30s, pass(), refused(100ms, 1s)},
                 {30'100ms - 1us, pass(), refused(1us, 900'001us)},
                 {30'100ms, pass(), passed(900ms)},
                 {30'950ms, pass(), passed(50ms)},
                 {30'950ms, pass(), refused(50ms, 50ms)},  // not after the ramp's end
                 {31s - 1us, pass(), refused(1us, 1us)},
                 {31s, pass(), free_now},
                 {31s, pass(), free_now}});
}

TEST_CASE(
    "beyond a minute back one call passes, and what was left of a closure counts, up to the cap",
    "[core][gate][C-082]") {
  const Moment shut{100s, close(30s), closed(31s)};
  check_moments({shut,
                 {40s, pass(), refused(90s, 91s)},
                 {40s - 1us, peek(), passable(31s)},
                 {40s - 1us, pass(), passed(31s)},
                 {40s - 1us, pass(), refused(30s, 31s)},
                 {70s - 1us, pass(), passed(1s)}});
  const Pace shorter{10s, 1s, 100ms};
  check_moments({shut, {-10h, pass(shorter), passed(11s)}});
}

TEST_CASE("words that no gate leaves are corrupt", "[core][gate]") {
  for (const Output& words : {Output{start + GateRule::max_cap + 1, start},
                              Output{start, start + 2 * GateRule::max_ramp + 1}}) {
    Kernel kernel;
    kernel.state = words;
    check_corrupt(kernel, 0s, {{0, words[0]}}, {pass(), peek(), close(1s)});
  }
  check_corrupt(Kernel(), 0s, {{0, -1}, {1, word_limit + 1}}, {pass(), peek(), close(1s)});
}
