// The kernels refund, reward and reset of the sliding windows. Their twin is
// backends/redis/lua/rules/sliding_window.lua: same names, same order.
#include <algorithm>

#include "src/rules/sliding_window_find.hpp"

namespace sluice {
namespace {

using namespace sliding_window;

/// The latest possible time of the units that the newest had overwritten, and that come back.
Word returned(const Log& log) noexcept {
  const Word oldest = log.unit(log.head().size - 1);
  return std::max(Word{0}, std::min(oldest, log.ring_before(log.head().newest)));
}

/// Removes the newest `units` units from the log and from what is left. REQUIRES: there are some.
Word withdraw(Effects& effects, const Log& log, const Windows& windows, Finding& found, Word units,
              Word at) noexcept {
  const Rule::State& head = log.head();
  const Word given = std::min(units, head.size);
  const Word dropped = head.dropped - std::min(head.dropped, units - given);
  const Word back = std::min(dropped, given);
  const Word old = returned(log);
  const Word size = head.size - given + back;
  const Word next = head.next - given;
  const Word newest = size == 0 ? 0 : given < head.size ? log.unit(given) : old;
  Rule::State after = head;
  after.newest = newest;
  after.next = next < 0 ? next + head.capacity : next;
  after.size = size;
  after.dropped = dropped - back;
  after.since = std::min(head.since, newest);
  put_head(effects, after);
  forget_places(effects, log, 0, log.block_end());
  write(effects, log.base(), head.capacity, after.next - size, back, old);
  const Word total = size + std::min(after.dropped, log.capacity() - size);
  for (Word k = 0; k < windows.count; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const Word held = std::max(Word{0}, found.places[i].count - units);
    const Word within = old > at - windows[k].span ? held + back : held;
    found.left[i] = std::max(Word{0}, windows[k].limit - std::min(within, total));
  }
  return newest;
}

constexpr Word any_time = -1;

/// Refunds up to `units` of the newest units: those granted for `time`, or any.
Verdict give(const StateView& state, const RuleRequest& request, Word now, Effects& effects,
             Word units, Word time) noexcept {
  const Windows windows(request.table);
  if (!windows.good) return Verdict::failed(Errc::invalid_argument);

  const Log log(state, windows.most, windows.count, now);
  const Word at = std::max(now, log.head().stamp);
  // Nothing is to be granted, so that no unit is looked up for which a request would wait.
  Finding found = find(log, windows, 0, 0, at, true);
  Word newest = log.head().newest;
  Word given = 0;
  if (time == any_time) {
    given = std::min(units, log.head().size + log.head().dropped);
  } else if (units > 0 && newest == time) {
    const Word there = log.locate({unknown, 0, 0}, time - 1).count;
    given = std::min({units, there, log.head().size});
  }
  Word held = time == any_time ? 0 : given;  // units that some window held
  for (Word k = 0; k < windows.count; ++k) {
    held = std::max(held, found.places[static_cast<std::size_t>(k)].count);
  }
  if (given > 0) newest = withdraw(effects, log, windows, found, given, at);
  effects.add_output(std::min(given, held));
  tell_left(effects, windows, found);
  const Word part = subtract(found, windows, 0);
  const Word block = log.block_end() > at ? log.block_end() : 0;
  const bool queue = newest > at || block > at;
  return {
      Verdict::allowed, queue ? 0 : found.left[static_cast<std::size_t>(part)], 0,
      log.total() == 0 ? std::max(Word{0}, block - now) : clear_after(windows, newest, block, now)};
}

}  // namespace

Verdict SlidingWindowRule::refund(const StateView& state, const RuleRequest& request, Word now,
                                  Effects& effects) noexcept {
  const auto args = args_of<RefundArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  return give(state, request, now, effects, args.units, args.time);
}

Verdict SlidingWindowRule::reward(const StateView& state, const RuleRequest& request, Word now,
                                  Effects& effects) noexcept {
  const auto args = detail::unpack<RewardArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  return give(state, request, now, effects, args.units, any_time);
}

Verdict SlidingWindowRule::reset(const StateView& state, const RuleRequest& request, Word /*now*/,
                                 Effects& effects) noexcept {
  const Windows windows(request.table);
  if (!windows.good) return Verdict::failed(Errc::invalid_argument);
  sliding_window::judge_head(state);
  effects.fill(0, head_words, 0);
  effects.add_output(0);
  for (Word k = 0; k < windows.count; ++k) effects.add_output(windows[k].limit);
  return {Verdict::allowed, windows.least, 0, 0};
}

Word SlidingWindowRule::check(const RefundArgs& args) noexcept {
  if (args.units < 0 || args.units > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  if (args.time < 0 || args.time > word_limit || args.keep < 0 || args.keep > word_limit) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

Word SlidingWindowRule::check(const RewardArgs& args) noexcept {
  if (args.units < 0 || args.units > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fits = args.longest >= 1 && args.longest <= max_span;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

namespace {

Word check_back(const Arguments& args) noexcept {
  return Rule::check(args_of<Rule::RefundArgs>(args));
}
Word check_reward(const Arguments& args) noexcept {
  return Rule::check(detail::unpack<Rule::RewardArgs>(args));
}
Word check_reset(const Arguments& /*args*/) noexcept { return Verdict::allowed; }

Word keep_back(const Arguments& args) noexcept { return args_of<Rule::RefundArgs>(args).keep; }
Word keep_reward(const Arguments& args) noexcept {
  return detail::unpack<Rule::RewardArgs>(args).longest + Rule::max_ahead;
}
Word keep_reset(const Arguments& /*args*/) noexcept { return 0; }

constexpr auto per_window = Operation::output_per_window;

}  // namespace

constinit const Operation sliding_window_refund{
    .name = "sliding_window.refund",
    .id = 10,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 4,
    .check = check_back,
    .ttl = keep_back,
    .decide = Rule::refund,
    .output = per_window,
    .arguments = {{.index = 1, .name = "amount"}},
};
constinit const Operation sliding_window_reward{
    .name = "sliding_window.reward",
    .id = 46,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 3,
    .check = check_reward,
    .ttl = keep_reward,
    .decide = Rule::reward,
    .output = per_window,
    .arguments = {{.index = 1, .name = "amount"}},
};
constinit const Operation sliding_window_reset{
    .name = "sliding_window.reset",
    .id = 11,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = keep_reset,
    .decide = Rule::reset,
    .output = per_window,
    .names_part = true,
};

}  // namespace sluice
