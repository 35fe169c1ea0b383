// The kernels of the sliding windows that give back. Their twins are
// backends/redis/lua/sliding_windows_{give_back,reset}.lua: same names, same order.
#include <algorithm>

#include "src/algorithms/sliding_windows_find.hpp"

namespace sluice {
namespace {

using namespace sliding_windows;

/// How old the units that gave way to those granted for `time` count when they come back. They
/// were the oldest, and had left an interval as long as any for which the ring is large enough.
Word returned(const Log& log, Word given, Word time) noexcept {
  const Word oldest = given < log.head().size ? log.unit(log.head().size - 1) : time;
  return std::max(Word{0}, std::min(oldest, time - log.head().span));
}

/// Takes the newest `given` units out of the log and out of what is left.
Word withdraw(Effects& effects, const Log& log, const Windows& windows, Finding& found, Word given,
              Word time, Word at) noexcept {
  const Rule::State& head = log.head();
  const Word back = std::min(head.dropped, given);
  const Word old = returned(log, given, time);
  const Word size = head.size - given + back;
  const Word next = head.next - given;
  const Word newest = size == 0 ? 0 : given < head.size ? log.unit(given) : old;
  const Rule::State after{
      head.stamp,          newest,    head.capacity, next < 0 ? next + head.capacity : next, size,
      head.dropped - back, head.span, head.layout};
  put_head(effects, after);
  forget_places(effects, log, 0);
  write(effects, log.base(), head.capacity, after.next - size, back, old);
  const Word total = size + std::min(after.dropped, log.capacity() - size);
  for (Word k = 0; k < windows.count; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const Word held = std::max(Word{0}, found.places[i].count - given);
    const Word within = old > at - windows[k].span ? held + back : held;
    found.left[i] = std::max(Word{0}, windows[k].limit - std::min(within, total));
  }
  return newest;
}

}  // namespace

Verdict SlidingWindowsRule::give_back(const StateView& state, const RuleRequest& request, Word now,
                                      Effects& effects) noexcept {
  const auto args = args_of<BackArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  const Windows windows(request.table);
  if (!windows.good) return Verdict::failed(Errc::invalid_argument);

  const Log log(state, windows.most, windows.count);
  const Word at = std::max(now, log.head().stamp);
  Finding found = find(log, windows, {}, 0, at, false);
  Word newest = log.head().newest;
  Word given = 0;
  if (args.units > 0 && newest == args.time) {
    const Word there = log.locate({unknown, 0, 0}, args.time - 1).count;
    given = std::min({args.units, there, log.head().size});
  }
  if (given > 0) newest = withdraw(effects, log, windows, found, given, args.time, at);
  effects.tell(given);
  tell_left(effects, windows, found);
  const Word part = subtract(found, windows.count, 0);
  return {Verdict::allowed, newest > at ? 0 : found.left[static_cast<std::size_t>(part)], 0,
          log.total() == 0 ? 0 : clear_after(windows, newest, 0, now)};
}

Verdict SlidingWindowsRule::reset(const StateView& state, const RuleRequest& request, Word /*now*/,
                                  Effects& effects) noexcept {
  const Windows windows(request.table);
  if (!windows.good) return Verdict::failed(Errc::invalid_argument);
  sliding_windows::judge_head(state);
  effects.fill(0, head_words, 0);
  effects.tell(0);
  for (Word k = 0; k < windows.count; ++k) effects.tell(windows[k].limit);
  return {Verdict::allowed, windows.least, 0, 0};
}

Word SlidingWindowsRule::check(const BackArgs& args) noexcept {
  if (args.units < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.units > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (args.time < 0 || args.time > word_limit || args.keep < 0 || args.keep > word_limit) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

namespace {

Word check_back(const Arguments& args) noexcept {
  return Rule::check(args_of<Rule::BackArgs>(args));
}
Word check_reset(const Arguments& /*args*/) noexcept { return Verdict::allowed; }

Word keep_back(const Arguments& args) noexcept { return args_of<Rule::BackArgs>(args).keep; }
Word keep_reset(const Arguments& /*args*/) noexcept { return 0; }

constexpr auto per_window = Operation::detail_per_window;

}  // namespace

constinit const Operation sliding_windows_give_back{"sliding_windows.give_back",
                                                    10,
                                                    StateKind::sliding_windows,
                                                    true,
                                                    4,
                                                    nullptr,
                                                    check_back,
                                                    keep_back,
                                                    nullptr,
                                                    Rule::give_back,
                                                    per_window,
                                                    false};
constinit const Operation sliding_windows_reset{"sliding_windows.reset",
                                                11,
                                                StateKind::sliding_windows,
                                                true,
                                                1,
                                                nullptr,
                                                check_reset,
                                                keep_reset,
                                                nullptr,
                                                Rule::reset,
                                                per_window,
                                                true};

}  // namespace sluice
