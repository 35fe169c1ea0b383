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

/// Grows the ring at `next`, where its oldest unit is, and fills the new words with the assumed
/// units.
void grow(Effects& effects, const Log& log) noexcept {
  const Rule::State& head = log.head();
  if (head.size > head.next) {
    const auto base = static_cast<std::size_t>(log.base());
    effects.rotate(base + static_cast<std::size_t>(head.next),
                   base + static_cast<std::size_t>(head.capacity),
                   base + static_cast<std::size_t>(log.capacity()));
  }
  Word interval = 0;
  for (Word age = head.size; age < log.total(); ++interval) {
    const bool last = interval == Rule::max_assumed - 1;
    const Word end = last ? log.total() : std::min(log.total(), age + head.capacity);
    write(effects, log, head.next - end, end - age, log.assumed(interval));
    age = end;
  }
}

/// The edge of the k-th window after `cost` more units.
Place moved(const Log& log, const Place& place, Word cost, Word grant) noexcept {
  const Word count = place.count + cost;
  if (count <= log.capacity()) return {count, place.before, place.count > 0 ? place.first : grant};
  const Word kept = log.capacity() - cost;
  return {log.capacity(), 0, kept > 0 ? log.unit(kept - 1) : grant};
}

/// The state after a request.
struct Mark {
  Word keep;    // how long its units are kept
  Word cost;    // units to log, with the time found
  Word newest;  // the newest time afterwards
  Word block;   // the end of the block afterwards, or 0
  Word at;
  bool given_up;
};

void admit(Effects& effects, const Log& log, const Windows& windows, const Finding& found,
           const Mark& mark) noexcept {
  const auto [keep, cost, newest, block, at, given_up] = mark;
  const Rule::State& head = log.head();
  const bool grows = log.grows();
  if (grows) grow(effects, log);
  if (given_up) {
    const Word later = log.locate({unknown, 0, 0}, at).count;
    write(effects, log, head.next - later, later, at);
  }
  const Word over = std::max(Word{0}, log.total() + cost - log.capacity());
  const Word assumed = log.total() - head.size;
  const Word next = head.next + cost;
  const Word places = log.layout().places;
  const Word until = cost > 0 ? std::min(found.grant + keep, word_limit) : 0;
  const bool lengthens = !log.is_fresh() && windows.longest > head.span;
  put_head(effects,
           {at, newest, log.capacity(), next < log.capacity() ? next : next - log.capacity(),
            log.total() + cost - over, std::min(head.dropped - assumed + over, word_limit / 2),
            windows.longest, places + (block > 0 ? 16 : 0), lengthens ? head.newest : head.since,
            log.is_fresh() ? windows.longest : std::min(head.older, windows.longest),
            std::max(head.until, until)});
  Word known = 0;
  if (!grows && !given_up && block == 0) {
    known = std::min(windows.count, places);
    for (Word k = 0; k < known; ++k) {
      const Place place = moved(log, found.places[static_cast<std::size_t>(k)], cost, found.grant);
      const auto index = static_cast<std::size_t>(head_words + place_words * k);
      effects.put(index, place.count);
      effects.put(index + 1, place.before);
      effects.put(index + 2, place.first);
    }
  }
  forget_places(effects, log, known, block);
  write(effects, log, head.next, cost, found.grant);
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

  const Log log(state, windows.most, windows.count, now);
  const bool given_up = log.head().stamp > now + Rule::max_ahead;
  const Word at = given_up ? now : std::max(now, log.head().stamp);
  const Word stands = given_up || log.block_end() <= at ? 0 : log.block_end();
  Finding found = find(log, windows, stands, args.cost, at, given_up);
  const bool blocks = call == Call::block;
  const Word wait = blocks || found.grant == at ? 0 : found.grant - now;
  const bool allowed = blocks || (wait <= args.max_wait && found.grant <= word_limit);
  const Word taken = allowed && call == Call::acquire ? args.cost : 0;
  Word newest = given_up ? std::min(log.head().newest, at) : log.head().newest;
  if (taken > 0) newest = found.grant;
  const Word block = span > 0 ? std::max(stands, std::min(at + span, word_limit)) : stands;
  if (taken > 0 || block > stands) {
    admit(effects, log, windows, found, {args.longest, taken, newest, block, at, given_up});
  }

  const Word part = subtract(found, windows, taken);
  effects.add_output(allowed || found.culprit < 0 ? part : found.culprit);
  tell_left(effects, windows, found);
  const bool queue =
      std::max(newest, block) > at;  // a reservation is ahead: no request is scheduled before it
  const bool empty = log.total() == 0 && taken == 0;
  const Word retry = allowed ? wait : std::clamp(wait - args.max_wait, Word{1}, word_limit);
  return {allowed ? Verdict::allowed : Verdict::refused,
          queue ? 0 : found.left[static_cast<std::size_t>(part)], retry,
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

constexpr auto per_window = Operation::output_per_window;

}  // namespace

constinit const Operation sliding_window_acquire{
    .name = "sliding_window.acquire",
    .id = 8,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 4,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::acquire,
    .output = per_window,
    .names_part = true,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::windows,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation sliding_window_peek{
    .name = "sliding_window.peek",
    .id = 9,
    .kind = StateKind::sliding_window,
    .writes = false,
    .argument_count = 4,
    .check = check_acquire,
    .ttl = ttl_take,
    .decide = Rule::peek,
    .output = per_window,
    .names_part = true,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::windows,
    .arguments = {{.index = 1, .name = "cost", .role = Argument::Role::cost},
                  {.index = 2, .name = "wait", .unit = "us", .role = Argument::Role::wait}},
};
constinit const Operation sliding_window_block{
    .name = "sliding_window.block",
    .id = 45,
    .kind = StateKind::sliding_window,
    .writes = true,
    .argument_count = 3,
    .check = check_block,
    .ttl = ttl_block,
    .decide = Rule::block,
    .output = per_window,
    .names_part = true,
    .arguments = {{.index = 1, .name = "span", .unit = "us"}},
};
}  // namespace sluice
