// The kernels settle, reward and reset of the sliding windows. Their twin is
// backends/redis/lua/rules/sliding_window.lua: same names, same order.
#include <algorithm>

#include "src/rules/sliding_window_find.hpp"

namespace sluice {
namespace {

using namespace sliding_window;

/// A change of the units of entries in the log.
struct Edit {
  Word number;    // of the entry that has other units afterwards
  Word units;     // those
  Word sequence;  // entries from here on are taken out
  Word change;    // of what the windows hold that hold the entry
};

/// The place of a window after a change. The bounds matter for words that no rule has written.
Place edited(const Place& place, const Edit& edit) noexcept {
  if (place.entry >= edit.sequence) return {0, edit.sequence, 0, 0, place.edge};
  Place after = place;
  if (place.entry <= edit.number) {
    after.units = std::clamp(place.units + edit.change, Word{0}, word_limit);
  }
  if (place.entry == edit.number) after.first_units = edit.units;
  return after;
}

/// Makes the change, also of what was found.
void edit(Effects& effects, const Log& log, const Windows& windows, Finding& found,
          const Edit& edit) noexcept {
  const Rule::State& head = log.head();
  Rule::State after = head;
  after.next = log.slot(edit.sequence);
  after.size = edit.sequence - log.oldest();
  after.sequence = edit.sequence;
  after.newest = after.size > 0 ? log.entry(edit.sequence - 1).time : 0;
  put_head(effects, after);
  // Assumed entries are in no place that is stored.
  const Word known = log.assumed() > 0 ? 0 : std::min(windows.count, head.places);
  for (Word r = 0; r < windows.count; ++r) {
    const Place place = edited(found.place(r), edit);
    if (r < known) put_place(effects, r, place);
    found.places[static_cast<std::size_t>(r)] = place;
    const Word k = windows.ranked(r);
    found.left_of(k) = std::max(Word{0}, windows[k].limit - place.units);
  }
  forget_places(effects, known, head.places);
  if (edit.number < edit.sequence) {
    const Entry entry{log.entry(edit.number).time, edit.units};
    put_entry(effects, head.places, log.slot(edit.number), entry);
  }
  shut_if_full(found, windows, log.first(), after.size + log.assumed());
}

/// A log, and the windows that are asked about it, before a change.
struct Before {
  Windows windows;
  Log log;
  Word at;
  Finding found;

  Before(const StateView& state, const RuleRequest& request, Word now) noexcept
      : windows(request.table), log(state, windows, now), at(std::max(now, log.head().stamp)) {
    log.assume(windows, at - windows.longest);
    found = find(log, windows, at);
    shut_if_full(found, windows, log.first(), log.total());
  }
  /// What the longest window holds.
  [[nodiscard]] const Place& longest() const noexcept { return found.place(windows.count - 1); }
};

/// Tells how many units were changed, and what remains. `newest`: the time of the newest entry.
Verdict tell(Effects& effects, const Before& before, Word units, Word newest, Word now) noexcept {
  const auto& [windows, log, at, found] = before;
  effects.add_output(units);
  tell_left(effects, windows, found);
  const Word part = least_left(found, windows);
  const Word block = log.head().blocked > at ? log.head().blocked : 0;
  const bool queue = newest > at || block > at;
  return {
      Verdict::allowed, queue ? 0 : found.left[static_cast<std::size_t>(part)], 0,
      log.total() == 0 ? std::max(Word{0}, block - now) : clear_after(windows, newest, block, now)};
}

/// The time of the newest entry below `sequence`.
Word newest_of(const Log& log, Word sequence) noexcept {
  return sequence > log.oldest() ? log.entry(sequence - 1).time : 0;
}

}  // namespace

Verdict SlidingWindowRule::settle(const StateView& state, const RuleRequest& request, Word now,
                                  Effects& effects) noexcept {
  const auto args = args_of<SettleArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  if (!Windows(request.table).good) return Verdict::failed(Errc::invalid_argument);

  Before before(state, request, now);
  const Log& log = before.log;
  Word newest = log.newest();
  Word changed = 0;
  if (args.entry >= std::max(log.oldest(), before.longest().entry) &&
      args.entry < log.head().sequence) {
    const Entry entry = log.entry(args.entry);
    const bool charges = args.change == static_cast<Word>(Change::charge);
    const Word most = charges ? std::max(Word{0}, max_units - before.longest().units) : entry.units;
    if (entry.time == args.time) changed = std::min(args.units, most);
    if (changed > 0) {
      const Word change = charges ? changed : -changed;
      const Word units = entry.units + change;
      const bool is_last = args.entry == log.head().sequence - 1 && units == 0;
      const Word sequence = is_last ? log.behind_units(args.entry) : log.head().sequence;
      edit(effects, log, before.windows, before.found, {args.entry, units, sequence, change});
      newest = newest_of(log, sequence);
    }
  }
  return tell(effects, before, changed, newest, now);
}

Verdict SlidingWindowRule::reward(const StateView& state, const RuleRequest& request, Word now,
                                  Effects& effects) noexcept {
  const auto args = args_of<RewardArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  if (!Windows(request.table).good) return Verdict::failed(Errc::invalid_argument);

  Before before(state, request, now);
  const Log& log = before.log;
  Word newest = log.newest();
  Word rest = std::min(args.units, before.longest().units);
  const Word most = rest;
  Word sequence = log.head().sequence;
  Word number = word_limit;  // of an entry of which a part is taken
  Word units = 0;
  while (rest > 0 && sequence > log.oldest()) {
    const Entry entry = log.entry(sequence - 1);
    if (entry.units > rest) {
      number = sequence - 1;
      units = entry.units - rest;
      rest = 0;
    } else {
      rest -= entry.units;
      --sequence;
    }
  }
  const Word changed = most - rest;
  if (changed > 0) {
    if (number == word_limit) sequence = log.behind_units(sequence);
    edit(effects, log, before.windows, before.found, {number, units, sequence, -changed});
    newest = newest_of(log, sequence);
  }
  return tell(effects, before, changed, newest, now);
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

Word SlidingWindowRule::check(const SettleArgs& args) noexcept {
  const auto is_word = [](Word word) { return word >= 0 && word <= word_limit; };
  if (!is_word(args.units)) return -static_cast<Word>(Errc::invalid_cost);
  const bool fits = is_word(args.entry) && is_word(args.time) && is_word(args.keep) &&
                    args.change >= 0 && args.change <= static_cast<Word>(Change::charge);
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word SlidingWindowRule::check(const RewardArgs& args) noexcept {
  if (args.units < 0 || args.units > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fits = args.longest >= 1 && args.longest <= max_span;
  return fits ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

namespace {

Word check_settle(const Arguments& args) noexcept {
  return Rule::check(args_of<Rule::SettleArgs>(args));
}
Word check_reward(const Arguments& args) noexcept {
  return Rule::check(args_of<Rule::RewardArgs>(args));
}
Word check_reset(const Arguments& /*args*/) noexcept { return Verdict::allowed; }

Word keep_settled(const Arguments& args) noexcept { return args_of<Rule::SettleArgs>(args).keep; }
Word keep_reward(const Arguments& args) noexcept {
  return args_of<Rule::RewardArgs>(args).longest + Rule::max_ahead;
}
Word keep_reset(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation sliding_window_settle{
    .name = "sliding_window.settle",
    .id = 70,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 6,
    .check = check_settle,
    .ttl = keep_settled,
    .decide = Rule::settle,
    .output = 1,
    .tells_windows = true,
    .arguments = {{.index = 1, .name = "amount"}},
};
constinit const Operation sliding_window_reward{
    .name = "sliding_window.reward",
    .id = 72,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 3,
    .check = check_reward,
    .ttl = keep_reward,
    .decide = Rule::reward,
    .output = 1,
    .tells_windows = true,
    .arguments = {{.index = 1, .name = "amount"}},
};
constinit const Operation sliding_window_reset{
    .name = "sliding_window.reset",
    .id = 73,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = keep_reset,
    .decide = Rule::reset,
    .output = 1,
    .tells_windows = true,
    .names_part = true,
};

}  // namespace sluice
