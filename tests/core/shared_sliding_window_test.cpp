// The kernel of the shared sliding window's setting as tables of moments: at this instant, this
// request, this answer. Threading: single-threaded.
#include "sluice/rules/shared_sliding_window.hpp"

#include "sluice/decision.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SharedSlidingWindowRule;
using Mode = Rule::Mode;

constexpr Span keep_alive = 1h;
constexpr Span interval = 1min;

constexpr Word us(Span span) { return span.count(); }

Ask set(Word rate, Mode mode, Word per_client = 0) {
  return {&shared_sliding_window_configure,
          {rate, interval.count(), per_client, static_cast<Word>(mode), keep_alive.count()}};
}
Ask expect(Word version, Word permits = 1) {
  return {&shared_sliding_window_expect, {0, version, permits, keep_alive.count()}};
}
const Ask ask_setting{&shared_sliding_window_config, {0, keep_alive.count()}};

Verdict fine(Word rate) { return admitted(rate, 0s); }
const Verdict none = Verdict::failed(Errc::not_configured);
const Verdict changed = Verdict::failed(Errc::config_changed);
Output setting(Word version, Word generation, Word rate, Word per_client = 0) {
  return {version, generation, rate, interval.count(), per_client, 0, 0, 0, 0, 0, 0, 0};
}

Ask update(Word rate, Span in) {
  return {&shared_sliding_window_configure,
          {rate, in.count(), 0, static_cast<Word>(Mode::update), word_limit / 2}};
}

/// What is kept: limit and span of each window, and when the first ends but for max_reserved.
void check_kept(Kernel& kernel, Span at, const std::vector<std::pair<Word, Span>>& windows,
                Span first_end) {
  kernel.ask(at, ask_setting);
  INFO("at " << at.count() << " us");
  for (std::size_t i = 0; i < Rule::max_kept; ++i) {
    const auto [limit, span] = i < windows.size() ? windows[i] : std::pair<Word, Span>{};
    CHECK(kernel.output[5 + 2 * i] == limit);
    CHECK(kernel.output[6 + 2 * i] == span.count());
  }
  CHECK(kernel.output.back() ==
        (windows.empty() ? 0 : start + first_end.count() + Rule::max_reserved));
}

}  // namespace

TEST_CASE("each change is a new version, and only a fresh start a new log",
          "[core][shared_sliding_window]") {
  check_moments({{0us, ask_setting, none},
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

TEST_CASE("behind the last version of all an update starts a new log",
          "[core][shared_sliding_window]") {
  const Word last = word_limit - 1;
  check_moments(Kernel(last), {{0us, set(3, Mode::reset), fine(3), {last, 1}},
                               {0us, set(4, Mode::reset), fine(4), {word_limit, 1}},
                               {0us, set(5, Mode::update), fine(5), {last, 1}},
                               {0us, ask_setting, fine(5), setting(last, last, 5)},
                               {0us, set(6, Mode::update), fine(6), {word_limit, 1}},
                               {0us, ask_setting, fine(6), setting(word_limit, last, 6)}});
}

TEST_CASE("an update to a shorter interval keeps a window of the old rate for one span and an hour",
          "[core][shared_sliding_window]") {
  Kernel kernel;
  kernel.ask(0s, update(100, 10s));
  kernel.ask(1s, update(200, 5s));  // as many at once: none
  check_kept(kernel, 1s, {}, 0s);
  kernel.ask(2s, update(100, 10s));
  kernel.ask(3s, update(50, 20s));  // longer: none
  check_kept(kernel, 3s, {}, 0s);
  kernel.ask(4s, update(20, 6s));  // lowered: for the whole of the old interval, 3 * 20 in 20 s
  check_kept(kernel, 4s, {{60, 18s}}, 22s);
  check_kept(kernel, 1h + 22s - 1us, {{60, 18s}}, 22s);
  check_kept(kernel, 1h + 22s, {}, 0s);
  const auto under_kept = [&](Span at) {
    const Word version = start + 4'000'000;
    const Word end = start + 22'000'000 + Rule::max_reserved;
    return kernel.ask(at, {&shared_sliding_window_expect, {0, version, 1, word_limit / 2, end}});
  };
  CHECK(under_kept(1h + 22s - 1us) == fine(20));
  CHECK(under_kept(1h + 22s) == changed);  // read it again: it is no longer kept
}

TEST_CASE("what is kept of the largest rates stays within what a log holds",
          "[core][shared_sliding_window]") {
  Kernel kernel;
  kernel.ask(0s, update(Rule::max_rate, 1h));
  kernel.ask(0s, update(20'000, 1s));  // four times it is more than a log can hold
  check_kept(kernel, 0s, {{Rule::max_rate, 3s}}, 3s);
  kernel.ask(9s, update(Rule::max_rate, 1h));
  kernel.ask(9s, update(40'000, 1s));
  check_kept(kernel, 9s, {}, 0s);
  kernel.ask(10s, update(Rule::max_rate, Span{Rule::max_interval}));
  kernel.ask(10s, update(1, 1us));
  check_kept(kernel, 10s, {{Rule::max_rate, Span{Rule::max_rate}}}, 10s + Span{Rule::max_rate});
}

TEST_CASE("a setting lives as long as it is kept after its last use",
          "[core][shared_sliding_window]") {
  Kernel lapsed;
  check_moments(lapsed, {{0us, set(3, Mode::reset), fine(3)},
                         {15min - 1us, expect(start), fine(3)},  // writes nothing
                         {1h - 1us, ask_setting, fine(3), setting(start, start, 3)},
                         {1h, ask_setting, none},
                         {1h, expect(start), none},
                         {1h, set(7, Mode::update), fine(7), {start + 3'600'000'000, 1}}});
  CHECK(lapsed.state[1] == start + 3'600'000'000);  // its log is a new one
  check_moments({{0us, set(3, Mode::reset), fine(3)},
                 {15min, expect(start), fine(3)},
                 {75min - 1us, ask_setting, fine(3)},
                 {75min, ask_setting, none}});
  // An interval as long: a use is counted in it for all of it.
  check_moments({{0us, {&shared_sliding_window_configure, {3, us(1h), 0, 0, us(1h)}}, fine(3)},
                 {1us, expect(start), fine(3)},
                 {1h, ask_setting, fine(3)},
                 {1h + 1us, ask_setting, none}});
  check_moments({{0us, set(3, Mode::reset), fine(3)},
                 {-1us, expect(start), fine(3)},
                 {1h - 2us, ask_setting, fine(3)},
                 {1h - 1us, ask_setting, none}});
}

TEST_CASE("a setting that contradicts itself is corrupt", "[core][shared_sliding_window]") {
  Kernel kernel;
  kernel.ask(0s, set(1, Mode::if_absent));
  check_corrupt(kernel, 0s,
                {{1, start + 1},
                 {2, -1},
                 {2, Rule::max_rate + 1},
                 {3, 0},
                 {3, Rule::max_interval + 1},
                 {4, 2},
                 {5, -1},
                 {6, Rule::max_keep_alive + 1}},
                {ask_setting, expect(start), set(1, Mode::update)});
  // Of what is kept, which expect() does not look at.
  check_corrupt(kernel, 0s,
                {{7, 1}, {8, 1}, {7, Rule::max_rate + 1}, {11, Rule::max_interval + 1}, {15, -1}},
                {ask_setting, set(1, Mode::update)});
}

TEST_CASE("0 and unlimited are rates, and a window is kept over a rate of 0",
          "[core][shared_sliding_window][constant]") {
  const auto put = [](Word rate, Span of) {
    return Ask{&shared_sliding_window_configure,
               {rate, of.count(), 0, static_cast<Word>(Mode::update), Rule::max_keep_alive}};
  };
  const auto kept_by = [&](Word between) {
    Kernel kernel;
    CHECK(kernel.ask(0s, put(10, 1h)).status == Verdict::allowed);
    CHECK(kernel.ask(0s, put(between, 1h)) == Verdict{Verdict::allowed, between, 0, 0});
    CHECK(kernel.ask(0s, put(between, 1h)).status == Verdict::allowed);
    CHECK(kernel.output.back() == 0);  // the same
    CHECK(kernel.ask(0s, {&shared_sliding_window_expect,
                          {between, start + 1, 0, Rule::max_keep_alive, 0}}) ==
          Verdict{Verdict::allowed, between, 0, 0});
    CHECK(kernel.ask(0s, put(5, 1min)).status == Verdict::allowed);
    CHECK(kernel.ask(0s, {&shared_sliding_window_config, {0, Rule::max_keep_alive}}).remaining ==
          5);
    return kernel.output;
  };
  CHECK(kept_by(0) == Output{start + 2, start, 5, 60'000'000, 0, 10, 120'000'000, 0, 0, 0, 0,
                             start + 120'000'000 + Rule::max_reserved});
  CHECK(kept_by(unlimited) == Output{start + 2, start, 5, 60'000'000, 0, 0, 0, 0, 0, 0, 0, 0});
}
