// The kernel of the fixed window. Its twins are backends/redis/lua/fixed_window_*.lua: same names,
// same order.
#include "sluice/rules/fixed_window.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace sluice {
namespace {

using Rule = FixedWindowRule;
using BlockArgs = Rule::BlockArgs;
using GiveBackArgs = Rule::GiveBackArgs;

__extension__ typedef __int128 Wide;

/// Rule::Args, whose boundaries stay where they are: a copy would read in pairs what was just
/// written word by word, and wait until those stores have left the processor's store buffer.
struct Args {
  explicit Args(const Arguments& words) noexcept
      : limit(words[0]), width(words[1]), boundary(words.data() + 2), cost(words[7]) {}

  Word limit;
  Word width;
  const Word* boundary;
  Word cost;
};
static_assert(offsetof(Rule::Args, boundary) == 2 * sizeof(Word) &&
              offsetof(Rule::Args, cost) == 7 * sizeof(Word));

/// The window that was last spent of; or a block and what is used of the window that it ends in.
struct Stored {
  Word end;
  Word used;
  Word code;  // of its width, or Rule::blocked
};

Stored stored_of(const StateView& state) noexcept {
  const Word code = state[1] % Rule::codes;
  if (code > Rule::blocked) {
    state.call_corrupt();
    return {0, 0, 0};
  }
  return {state[0], state[1] / Rule::codes, code};
}

/// The widest window of a code, in eighths of a microsecond.
Word eighths(Word code) noexcept { return (8 + code % 8) << (code / 8); }

/// The same, rounded up to a microsecond.
Word widest(Word code) noexcept { return (eighths(code) + 7) / 8; }

bool are_windows(const Args& args) noexcept {
  const Word* const b = args.boundary;
  if (args.limit > Rule::max_limit || args.width < 0 || args.width > Rule::max_width) return false;
  if (args.width > 0) return b[0] >= 0 && b[0] < args.width;
  return b[0] >= 0 && b[4] <= word_limit && std::is_sorted(b, b + Rule::boundaries);
}

Word check(const Arguments& words) noexcept {
  const Args args(words);
  if (args.cost < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args.cost > args.limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return are_windows(args) ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_adjust(const Arguments& words) noexcept {
  const Args args(words);
  const Word amount = args.cost;
  if (amount < -word_limit || amount > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fine = args.limit >= 0 && are_windows(args);
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_block(const Arguments& words) noexcept {
  const auto args = detail::unpack<BlockArgs>(words);
  const bool fine =
      args.span >= 0 && args.span <= Rule::max_block && args.limit >= 1 && are_windows(Args(words));
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_give_back(const Arguments& words) noexcept {
  const auto args = detail::unpack<GiveBackArgs>(words);
  if (args.cost < 0 || args.cost > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fine = args.limit >= 0 && args.limit <= Rule::max_limit && args.begin >= 0 &&
                    args.begin <= args.end && args.end <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_reset(const Arguments& words) noexcept {
  const bool fine = words[0] >= 0 && words[0] <= Rule::max_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

struct Window {
  Word begin;
  Word end;  // not after `begin`: there is none
};

Window window_at(const Args& args, Word at) noexcept {
  const Word* const b = args.boundary;
  if (args.width > 0) {
    if (at < b[0]) return {0, b[0]};
    const Word begin = at - (at - b[0]) % args.width;
    return {begin, begin + args.width};
  }
  for (std::size_t i = 0; i + 1 < Rule::boundaries; ++i) {
    if (b[i] <= at && at < b[i + 1]) return {b[i], b[i + 1]};
  }
  return {0, 0};
}

/// As it is stored.
Word cut(Word end) noexcept { return std::min(end, word_limit); }

/// True if the stored window is, as far as its code tells, this one.
bool is_stored(const Stored& stored, Window window) noexcept {
  const Word width = 8 * (window.end - window.begin);
  const Word top = eighths(stored.code);
  return stored.end == cut(window.end) && width <= top &&
         width > top - (Word{1} << (stored.code / 8));
}

/// The part of the limit that the time up to `at` stands for, rounded up. The twin makes the
/// product of parts of ten bits, so that wide windows are measured by 1024 us.
Word share(Word limit, Window window, Word at) noexcept {
  if (at == window.begin) return 0;
  Word rest = window.end - at;
  Word width = window.end - window.begin;
  if (width > Word{1} << 42) {
    rest /= 1024;
    width = (width + 1023) / 1024;
  }
  return limit - static_cast<Word>(Wide{limit} * rest / width);
}

/// True if a block ends inside of the window, which what the block found used is of. One that ends
/// as the window begins never finds anything used.
bool ends_in(const Stored& block, Window window) noexcept {
  return window.begin < block.end && block.end < window.end;
}

/// The present window, before a request is looked at.
struct WindowView {
  Word begin;  // of the window that a grant is of
  Word end;
  Word used;       // of it; blocked: more than the limit
  Word fits_at;    // when a cost that does not fit now will
  Word unused_at;  // when nothing will be used any more
  Word code;       // of the window, if it is the stored one; else -1
};

/// The same where a block is stored which was not over when the present window began.
WindowView blocked(const Stored& block, const Args& args, Window window, Word now) noexcept {
  if (block.end <= now) return {window.begin, window.end, block.used, window.end, window.end, -1};
  const Window last = window_at(args, block.end);
  const bool rests = block.used > 0 && ends_in(block, last);
  const Word clear = rests ? last.end : block.end;
  const Word fits_at = rests && block.used + args.cost > args.limit ? clear : block.end;
  return {window.begin, window.end, args.limit + 1, fits_at, clear, -1};
}

/// The same where another window than the present one is stored and was not over before it began.
WindowView foreign(const Stored& stored, const Args& args, Window window, Word now) noexcept {
  const Word forgotten = stored.end + widest(stored.code);
  if (stored.end <= now) {
    if (now >= forgotten) return {window.begin, window.end, 0, window.end, window.end, -1};
    const Word clear = std::min(window.end, forgotten);
    return {window.begin, window.end, share(args.limit, window, stored.end), clear, clear, -1};
  }

  const Window last = window_at(args, stored.end - 1);
  bool set_back = stored.end - widest(stored.code) > now + Rule::max_ahead;
  if (is_stored(stored, last)) {  // one's own, by a clock that was corrected
    if (last.begin <= now + Rule::max_ahead)
      return {last.begin, last.end, stored.used, last.end, last.end, -1};
    set_back = true;
  }
  if (set_back) {
    return {window.begin, window.end, std::min(stored.used, args.limit - args.cost),
            window.end,   window.end, -1};
  }

  const Window next = window_at(args, stored.end);
  Word left = 0;
  Word clear = stored.end;
  if (next.begin < stored.end && stored.end < next.end) {
    left = share(args.limit, next, stored.end);
    clear = std::min(next.end, forgotten);
  }
  Word fits_at = left + args.cost <= args.limit ? stored.end : clear;
  if (window.end < stored.end && stored.used + args.cost <= args.limit) fits_at = window.end;
  return {window.begin, window.end, stored.used + share(args.limit, window, now),
          fits_at,      clear,      -1};
}

/// Inlined, so that the common case stays in registers.
[[gnu::always_inline]] inline WindowView moment(const Stored& stored, const Args& args,
                                                Window window, Word now) noexcept {
  if (stored.end <= window.begin) return {window.begin, window.end, 0, window.end, window.end, -1};
  if (is_stored(stored, window))
    return {window.begin, window.end, stored.used, window.end, window.end, stored.code};
  if (stored.code == Rule::blocked) return blocked(stored, args, window, now);
  return foreign(stored, args, window, now);
}

void store(Effects& effects, const Stored& stored) noexcept {
  effects.put(0, stored.end);
  effects.put(1, stored.used * Rule::codes + stored.code);
}

void store(Effects& effects, const WindowView& m, Word used) noexcept {
  const Word code = m.code < 0 ? Rule::code_of(m.end - m.begin) : m.code;
  store(effects, {cut(m.end), used, code});
}

Verdict decided(const StateView& view, const RuleRequest& request, Word now, Effects* effects) {
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  const Stored stored = stored_of(view);
  const Args args(request.args);

  const Window window = window_at(args, now);
  if (window.end <= window.begin) return Verdict::failed(Errc::outside_calendar);
  const WindowView m = moment(stored, args, window, now);
  const Word used = std::min(m.used, args.limit);
  const Word want = m.used + args.cost;
  const Word unused_after = used > 0 ? m.unused_at - now : 0;
  if (want > args.limit) {
    return {Verdict::refused, args.limit - used, m.fits_at - now, unused_after};
  }
  if (effects == nullptr || args.cost == 0) {
    return {Verdict::allowed, args.limit - used, 0, unused_after};
  }
  store(*effects, m, want);
  return {Verdict::allowed, args.limit - want, 0, m.end - now};
}

Verdict take(const StateView& view, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  return decided(view, request, now, &effects);
}

Verdict peek(const StateView& view, const RuleRequest& request, Word now,
             Effects& /*effects*/) noexcept {
  return decided(view, request, now, nullptr);
}

Verdict give_back(const StateView& view, const RuleRequest& request, Word now,
                  Effects& effects) noexcept {
  if (const Word status = check_give_back(request.args); status < 0) return {status, 0, 0, 0};
  Stored stored = stored_of(view);
  const auto args = detail::unpack<GiveBackArgs>(request.args);

  const Window window{args.begin, args.end};
  const bool is_block = stored.code == Rule::blocked;
  const bool same = (is_block ? ends_in(stored, window) : is_stored(stored, window)) &&
                    now < args.end && args.begin <= now + Rule::max_ahead && stored.used > 0;
  const Word given = same ? std::min(args.cost, stored.used) : 0;
  effects.add_output(given);
  if (!same) return {Verdict::refused, 0, 0, 0};
  stored.used -= given;
  if (given > 0) store(effects, stored);
  const Word closed = is_block ? std::max(Word{0}, stored.end - now) : 0;
  const Word remaining = closed > 0 ? 0 : std::max(Word{0}, args.limit - stored.used);
  return {Verdict::allowed, remaining, 0, stored.used > 0 ? args.end - now : closed};
}

/// What is asked for nothing is answered so.
Verdict standing(const Stored& stored, const Args& args, Window window, Word now) noexcept {
  const WindowView m = moment(stored, args, window, now);
  const Word used = std::min(m.used, args.limit);
  return {Verdict::allowed, args.limit - used, 0, used > 0 ? m.unused_at - now : 0};
}

Word changed(Word used, Word amount) noexcept {
  return std::clamp(used + amount, Word{0}, Rule::max_used);
}

Verdict adjust(const StateView& view, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  Stored stored = stored_of(view);
  Args args(request.args);
  const Word amount = std::exchange(args.cost, 0);

  const Window window = window_at(args, now);
  if (window.end <= window.begin) return Verdict::failed(Errc::outside_calendar);
  if (stored.code == Rule::blocked && now < stored.end) {
    // A window that is over before the block has no use for what is charged to it.
    const Word used = changed(stored.used, amount);
    if (used != stored.used && ends_in(stored, window)) {
      stored.used = used;
      store(effects, stored);
    }
    return standing(stored, args, window, now);
  }
  const WindowView m = moment(stored, args, window, now);
  const Word used = changed(m.used, amount);
  if (used != m.used) store(effects, m, used);
  const Word unused_at = used != m.used ? m.end : m.unused_at;
  return {Verdict::allowed, std::max(Word{0}, args.limit - used), 0,
          used > 0 ? unused_at - now : 0};
}

/// What counts at the end of a block if nothing is admitted until then.
Stored block_until(Word until, const Stored& stored, const Args& args) noexcept {
  const Window last = window_at(args, until);
  if (last.end <= last.begin) {  // further off than the calendar was sent
    return {until, stored.end > until ? stored.used : 0, Rule::blocked};
  }
  const WindowView m = moment(stored, args, last, until);
  if (m.used > 0 || until < m.begin) until = std::max(until, m.begin + 1);
  return {until, std::min(m.used, Rule::max_used), Rule::blocked};
}

Verdict block(const StateView& view, const RuleRequest& request, Word now,
              Effects& effects) noexcept {
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  Stored stored = stored_of(view);
  Args args(request.args);
  const Word span = std::exchange(args.cost, 0);

  const Window window = window_at(args, now);
  if (window.end <= window.begin) return Verdict::failed(Errc::outside_calendar);
  const Word until = cut(now + span);
  const bool stands = stored.code == Rule::blocked && stored.end >= until;
  if (span > 0 && !stands) {
    stored = block_until(until, stored, args);
    store(effects, stored);
  }
  return standing(stored, args, window, now);
}

Verdict reset(const StateView& view, const RuleRequest& request, Word /*now*/,
              Effects& effects) noexcept {
  if (const Word status = check_reset(request.args); status < 0) return {status, 0, 0, 0};
  (void)stored_of(view);
  effects.put(0, 0);
  effects.put(1, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

/// The stored window may begin ahead of the clock by max_ahead, and counts for others for as long
/// again as it was wide.
Word kept_for(Word width) noexcept {
  return std::min(width + Rule::max_ahead + widest(Rule::code_of(width)), word_limit);
}

Word ttl(const Arguments& words) noexcept {
  const Args args(words);
  Word longest = std::max(Word{1}, args.width);
  for (std::size_t i = 0; args.width == 0 && i + 1 < Rule::boundaries; ++i) {
    longest = std::max(longest, args.boundary[i + 1] - args.boundary[i]);
  }
  return kept_for(longest);
}

Word ttl_blocked(const Arguments& words) noexcept {
  return std::min(ttl(words) + detail::unpack<BlockArgs>(words).span, word_limit);
}

Word ttl_given_back(const Arguments& words) noexcept {
  const auto args = detail::unpack<GiveBackArgs>(words);
  return kept_for(std::max(Word{1}, args.end - args.begin));
}

Word no_ttl(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

Word FixedWindowRule::code_of(Word width) noexcept {
  const auto exponent = static_cast<Word>(std::bit_width(static_cast<std::uint64_t>(width))) - 1;
  const Word unit = Word{1} << exponent;
  return 8 * exponent + (8 * width + unit - 1) / unit - 8;
}

constinit const Operation fixed_window_take{
    .name = "fixed_window.take",
    .id = 16,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 8,
    .check = check,
    .ttl = ttl,
    .decide = take,
};
constinit const Operation fixed_window_peek{
    .name = "fixed_window.peek",
    .id = 17,
    .kind = StateKind::fixed_window,
    .writes = false,
    .argument_count = 8,
    .check = check,
    .ttl = ttl,
    .decide = peek,
};
constinit const Operation fixed_window_give_back{
    .name = "fixed_window.give_back",
    .id = 18,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 4,
    .check = check_give_back,
    .ttl = ttl_given_back,
    .decide = give_back,
    .output = 1,
};
constinit const Operation fixed_window_reset{
    .name = "fixed_window.reset",
    .id = 19,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = no_ttl,
    .decide = reset,
};

constinit const Operation fixed_window_adjust{
    .name = "fixed_window.adjust",
    .id = 23,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 8,
    .check = check_adjust,
    .ttl = ttl,
    .decide = adjust,
};
constinit const Operation fixed_window_block{
    .name = "fixed_window.block",
    .id = 30,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 8,
    .check = check_block,
    .ttl = ttl_blocked,
    .decide = block,
};

}  // namespace sluice
