// The kernels acquire, peek and block of the sliding windows. Their twin is
// backends/redis/lua/rules/sliding_window.lua: same names, same order. lua/fast/sliding_window.lua
// decides the common calls. Times stay within 2^52 and sums of a time and a span within 2^53.
#include "sluice/rules/sliding_window.hpp"

#include <algorithm>

#include "src/rules/sliding_window_find.hpp"

namespace sluice {
namespace {

using namespace sliding_window;
using Args = Rule::Args;

/// What is asked of a log, and when.
struct Asked {
  Word cost;
  Word at;
  bool given_up;  // the log is too far ahead of the clock
  Word block;     // the end of a block that stands, or 0
};

/// Finds the first instant at which the request fits, and what it waits for.
void schedule(Finding& found, const Log& log, const Windows& windows, const Asked& asked) noexcept {
  found.grant = asked.given_up ? asked.at : std::max(asked.at, log.newest());
  std::array<Word, Rule::max_windows> rooms{};
  for (Word r = 0; r < windows.count; ++r) {
    const Word k = windows.ranked(r);
    const Place& place = found.place(r);
    const Word excess = place.units + asked.cost - windows[k].limit;
    if (asked.given_up) {
      found.left_of(k) = std::max(found.left_of(k), asked.cost);
    } else if (excess > 0) {
      rooms[static_cast<std::size_t>(k)] = log.leaving(place, excess) + windows[k].span;
    }
  }
  // Entries later than the clock leave room for one.
  const bool makes_room = asked.given_up && log.newest() > asked.at;
  if (!makes_room && shut_if_full(found, windows, log.first(), log.total()) && asked.cost > 0) {
    found.opens = found.place(windows.count - 1).first + windows.longest;
    Word& room = rooms[static_cast<std::size_t>(windows.ranked(windows.count - 1))];
    room = std::max(room, found.opens);
  }
  Word latest = 0;
  for (Word k = 0; k < windows.count; ++k) {
    if (rooms[static_cast<std::size_t>(k)] <= latest) continue;
    latest = rooms[static_cast<std::size_t>(k)];
    found.culprit = k;
  }
  if (asked.block > latest) {
    latest = asked.block;
    found.culprit = windows.count;
  }
  found.grant = std::max(found.grant, latest);
}

/// The state after a request.
struct Mark {
  Word keep;   // how long its entry is kept
  Word cost;   // units to log, with the time found
  Word block;  // the end of the block afterwards, or 0
  Word at;
  Log::Later later;  // entries that become one with the request's
};

/// The entries of a ring that has to take `total`.
Word grown(Word capacity, Word total, Word most) noexcept {
  while (capacity < total) {
    const bool has_most = capacity < most && most < 2 * capacity;  // as many as units are admitted
    capacity = std::min(has_most ? most : 2 * capacity, Rule::max_entries);
  }
  return capacity;
}

/// Turns the ring so that its oldest entry is the first, and moves it behind `places` places.
void turn(Effects& effects, const Log& log, Word places) noexcept {
  const auto base = static_cast<std::size_t>(head_words + place_words * log.head().places);
  const std::size_t end = base + 2 * static_cast<std::size_t>(log.head().capacity);
  const std::size_t oldest = base + 2 * static_cast<std::size_t>(log.slot(log.oldest()));
  if (oldest > base) effects.rotate(base, oldest, end);
  const auto shift = static_cast<std::size_t>(place_words * (places - log.head().places));
  if (shift > 0) effects.rotate(base, end, end + shift);
}

/// Logs units, if there are any, with those that are later.
Rule::State admit(Effects& effects, const Log& log, const Windows& windows, const Finding& found,
                  const Mark& mark) noexcept {
  const Rule::State& head = log.head();
  const Word number = head.sequence - mark.later.count;
  // These bounds matter for words that no rule has written.
  const Entry entry{found.grant, std::min(mark.later.units + mark.cost, word_limit)};
  const Word logged = entry.units > 0 ? 1 : 0;
  const Word kept = log.total() - mark.later.count;
  const bool overwrites =
      kept == head.capacity && found.place(windows.count - 1).entry > log.first();
  const Word total = overwrites ? kept : std::min(kept + logged, Rule::max_entries);

  Rule::State after = head;
  after.capacity = grown(head.capacity, total, windows.most);
  after.places = std::max(head.places, windows.count);
  const bool turns =
      !log.is_fresh() && (after.capacity > head.capacity || after.places > head.places);
  if (turns) turn(effects, log, after.places);
  const auto slot = [&](Word each) {
    const Word at = turns ? each - log.oldest() : log.slot(each);
    return at < 0 ? at + after.capacity : at % after.capacity;
  };
  after.stamp = mark.at;
  after.newest = logged > 0 ? entry.time : log.newest();
  after.next = slot(number + logged);
  after.size = total;
  after.sequence = number + logged;
  if (logged > 0) after.until = std::max(head.until, std::min(entry.time + mark.keep, word_limit));
  after.blocked = mark.block;
  after.span = windows.longest;
  if (!log.is_fresh() && windows.longest > head.span) after.since = head.newest;
  after.older = log.is_fresh() ? windows.longest : std::min(head.older, windows.longest);
  after.limit = std::max(head.limit, windows.most);
  put_head(effects, after);
  for (Word r = 0; r < windows.count; ++r) {
    Place place = found.place(r);
    place.units = std::min(place.units + mark.cost, word_limit);
    if (logged > 0 && place.entry >= number)
      place = {entry.units, number, entry.time, entry.units, place.edge};
    put_place(effects, r, place);
  }
  forget_places(effects, windows.count, after.places);
  for (Word each = log.first(); each < log.oldest(); ++each) {
    put_entry(effects, after.places, slot(each), log.entry(each));
  }
  if (logged > 0) put_entry(effects, after.places, slot(number), entry);
  return after;
}

/// Makes the change, also of what was found. Returns the number of the request's entry, or 0.
Word change(Effects& effects, const Log& log, const Windows& windows, Finding& found,
            const Mark& mark) noexcept {
  const Rule::State after = admit(effects, log, windows, found, mark);
  for (Word k = 0; k < windows.count; ++k) {
    found.left_of(k) = std::max(Word{0}, found.left_of(k) - mark.cost);
  }
  shut_if_full(found, windows, after.sequence - after.size, after.size);
  return mark.cost > 0 ? after.sequence - 1 : 0;
}

enum class Call { acquire, peek, block };

/// `span`: the length of the block.
template <Call call>
Verdict decide(const StateView& state, const RuleRequest& request, Word now, Effects& effects,
               Word span = 0) noexcept {
  const Args args = args_of<Args>(request.args);
  if (const Word status = Rule::check(args); status < 0) return failed(status);
  const Windows windows(request.table);
  if (!windows.good) return Verdict::failed(Errc::invalid_argument);
  if (args.cost > windows.least) return Verdict::failed(Errc::cost_exceeds_capacity);

  Log log(state, windows, now);
  const bool given_up = log.head().stamp > now + Rule::max_ahead;
  const Word at = given_up ? now : std::max(now, log.head().stamp);
  const Word stands = given_up || log.head().blocked <= at ? 0 : log.head().blocked;
  if (!given_up) log.assume(windows, at - windows.longest);
  Finding found = find(log, windows, at);
  schedule(found, log, windows, {args.cost, at, given_up, stands});
  const bool blocks = call == Call::block;
  const Word wait = blocks || found.grant == at ? 0 : found.grant - now;
  const bool allowed =
      blocks || (wait <= args.max_wait && found.grant <= word_limit && found.opens == 0);
  const Word taken = allowed && call == Call::acquire ? args.cost : 0;
  const Word block = span > 0 ? std::max(stands, std::min(at + span, word_limit)) : stands;
  Word number = 0;
  if (taken > 0 || block > stands) {
    const Log::Later later = given_up ? log.later_than(at) : Log::Later{};
    number = change(effects, log, windows, found, {args.longest, taken, block, at, later});
  }

  const Word part = least_left(found, windows);
  effects.add_output(allowed || found.culprit < 0 ? part : found.culprit);
  effects.add_output(number);
  effects.add_output(number > 0 ? found.grant : 0);
  tell_left(effects, windows, found);
  const Word newest = taken > 0  ? found.grant
                      : given_up ? std::min(log.newest(), at)
                                 : log.newest();
  const bool queue =
      std::max(newest, block) > at;  // a reservation is ahead: no request is scheduled before it
  const bool empty = log.total() == 0 && taken == 0;
  const Word retry = allowed ? 0 : std::max({wait - args.max_wait, found.opens - now, Word{1}});
  return {allowed ? Verdict::allowed : Verdict::refused, queue ? 0 : found.left_of(part),
          allowed ? wait : std::min(retry, word_limit),
          empty ? std::max(Word{0}, block - now) : clear_after(windows, newest, block, now)};
}

}  // namespace

Verdict SlidingWindowRule::acquire(const StateView& state, const RuleRequest& request, Word now,
                                   Effects& effects) noexcept {
  return decide<Call::acquire>(state, request, now, effects);
}

Verdict SlidingWindowRule::peek(const StateView& state, const RuleRequest& request, Word now,
                                Effects& effects) noexcept {
  return decide<Call::peek>(state, request, now, effects);
}

Verdict SlidingWindowRule::block(const StateView& state, const RuleRequest& request, Word now,
                                 Effects& effects) noexcept {
  const auto args = detail::unpack<BlockArgs>(request.args);
  if (const Word status = check(args); status < 0) return failed(status);
  const Arguments nothing{args.limit, 0, 0, args.longest};
  return decide<Call::block>(state, {nothing, request.table}, now, effects, args.span);
}

Word SlidingWindowRule::check(const BlockArgs& args) noexcept {
  if (args.span < 0 || args.span > max_block) return -static_cast<Word>(Errc::invalid_argument);
  return check(Args{args.limit, 0, 0, args.longest});
}

Word SlidingWindowRule::check(const Args& args) noexcept {
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  if (args.max_wait < 0 || args.max_wait > max_ahead_of_time || args.longest < 1 ||
      args.longest > max_span) {
    return -static_cast<Word>(Errc::invalid_argument);
  }
  return Verdict::allowed;
}

namespace {

Word check_acquire(const Arguments& args) noexcept { return Rule::check(args_of<Args>(args)); }

Word check_block(const Arguments& args) noexcept {
  return Rule::check(detail::unpack<Rule::BlockArgs>(args));
}

/// After the clock was set back, the wait counts from the stamp. (The request that wrote the stamp
/// has kept the state for as long where there is none.)
Word ttl_take(const Arguments& args) noexcept {
  const auto a = args_of<Args>(args);
  const Word ahead = a.max_wait > 0 ? a.max_wait + Rule::max_ahead : 0;
  return a.longest + ahead + Operation::clock_slack;
}

Word ttl_block(const Arguments& args) noexcept {
  const auto a = detail::unpack<Rule::BlockArgs>(args);
  return std::max(a.longest, a.span) + Rule::max_ahead + Operation::clock_slack;
}

}  // namespace

constinit const Operation sliding_window_acquire{
    .name = "sliding_window.acquire",
    .id = 68,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 4,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::acquire,
    .output = 3,
    .tells_windows = true,
    .names_part = true,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::windows,
    .charge_output = {.first = 1, .count = 2},
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation sliding_window_peek{
    .name = "sliding_window.peek",
    .id = 69,
    .kind = StateKind::sliding_window,
    .writes = false,
    .argument_count = 4,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::peek,
    .output = 3,
    .tells_windows = true,
    .names_part = true,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::windows,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation sliding_window_block{
    .name = "sliding_window.block",
    .id = 71,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 3,
    .check = check_block,
    .ttl = ttl_block,
    .decide = Rule::block,
    .output = 3,
    .tells_windows = true,
    .names_part = true,
    .arguments = {{.index = 1, .name = "span", .unit = "us"}},
};
}  // namespace sluice
