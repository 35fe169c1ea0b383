// The kernel of the fixed window. Its twin is backends/redis/lua/rules/fixed_window.lua: same
// names, same order.
#include "sluice/rules/fixed_window.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sluice {
namespace {

using Rule = FixedWindowRule;
using BlockArgs = Rule::BlockArgs;
using RefundArgs = Rule::RefundArgs;

/// A view of Rule::Args. A copy would load pairs of words that were just stored one by one, and
/// stall until the stores have left the processor's store buffer.
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

/// The stored window; or a block, and the use of the window in which it ends.
struct Stored {
  Word begin;  // the begin of the window, or the end of the block
  Word used;
  bool is_block;
};

Stored stored_of(const StateView& state) noexcept {
  const Word packed = state[1];
  if (packed / 2 > Rule::max_used) state.call_corrupt();
  return {state[0], packed / 2, packed % 2 == 1};
}

void store(Effects& effects, const Stored& stored) noexcept {
  effects.put(0, stored.begin);
  effects.put(1, 2 * stored.used + (stored.is_block ? 1 : 0));
}

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

Word check_refund(const Arguments& words) noexcept {
  const auto args = detail::unpack<RefundArgs>(words);
  if (args.cost < 0 || args.cost > word_limit) return -static_cast<Word>(Errc::invalid_cost);
  const bool fine = args.limit >= 0 && args.limit <= Rule::max_limit && args.begin >= 0 &&
                    args.begin <= args.end && args.end <= word_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

Word check_reset(const Arguments& words) noexcept {
  const bool fine = words[0] >= 0 && words[0] <= Rule::max_limit;
  return fine ? Verdict::allowed : -static_cast<Word>(Errc::invalid_argument);
}

/// True if the caller's calendar has a window that contains `now`.
bool holds(const Args& args, Word now) noexcept {
  const Word* const b = args.boundary;
  return args.width > 0 || (b[0] <= now && now < b[Rule::boundaries - 1]);
}

struct Window {
  Word begin;
  Word end;
};

/// The window that contains `at`. The time before the calendar counts as one window; so does the
/// time after it, whose end is unknown: as if it ended as soon as possible.
Window window_at(const Args& args, Word at) noexcept {
  const Word* const b = args.boundary;
  if (at < b[0]) return {0, b[0]};
  if (args.width > 0) {
    const Word begin = at - (at - b[0]) % args.width;
    return {begin, begin + args.width};
  }
  for (std::size_t i = 1; i < Rule::boundaries; ++i) {
    if (at < b[i]) return {b[i - 1], b[i]};
  }
  return {b[Rule::boundaries - 1], at + 1};
}

/// The window in which a request is decided.
struct WindowView {
  Window window;
  Word begin;   // stored with a grant: that of the window, or a later stored one
  Word used;    // units used of the window
  bool closed;  // blocked until `begin`
};

/// The time of the key is the later of `now` and the stored begin: the use that is stored for the
/// window of that time is never dropped.
WindowView view_at(const Stored& stored, const Args& args, Word now) noexcept {
  const Window window = window_at(args, std::max(now, stored.begin));
  if (window.begin > now + Rule::max_ahead && !stored.is_block) {  // the clock was set back
    const Window present = window_at(args, now);
    return {present, present.begin, std::min(stored.used, args.limit - args.cost), false};
  }
  if (stored.begin < window.begin) return {window, window.begin, 0, false};
  return {window, stored.begin, stored.used, stored.is_block && now < stored.begin};
}

Word remaining(const WindowView& m, Word limit) noexcept {
  return m.closed ? 0 : std::max(Word{0}, limit - m.used);
}

/// From `now` until nothing of the window is used any more.
Word clear_after(const WindowView& m, Word now) noexcept {
  if (m.used > 0) return m.window.end - now;
  return m.closed ? m.begin - now : 0;
}

/// The verdict on a request that is admitted and spends nothing.
Verdict standing(const WindowView& m, Word limit, Word now) noexcept {
  return {Verdict::allowed, remaining(m, limit), 0, clear_after(m, now)};
}

/// Inlined, so that the common case stays in registers.
[[gnu::always_inline]] inline Verdict decided(const StateView& view, const RuleRequest& request,
                                              Word now, Effects* effects) noexcept {
  if (const Word status = check(request.args); status < 0) return {status, 0, 0, 0};
  const Stored stored = stored_of(view);
  const Args args(request.args);
  if (!holds(args, now)) return Verdict::failed(Errc::outside_calendar);

  const WindowView m = view_at(stored, args, now);
  const Word want = m.used + args.cost;
  if (m.closed || want > args.limit) {
    const Word fits_at = want > args.limit ? m.window.end : m.begin;
    return {Verdict::refused, remaining(m, args.limit), fits_at - now, clear_after(m, now)};
  }
  if (effects == nullptr || args.cost == 0) return standing(m, args.limit, now);
  store(*effects, {m.begin, want, false});
  return {Verdict::allowed, args.limit - want, 0, m.window.end - now};
}

Verdict acquire(const StateView& view, const RuleRequest& request, Word now,
                Effects& effects) noexcept {
  return decided(view, request, now, &effects);
}

Verdict peek(const StateView& view, const RuleRequest& request, Word now,
             Effects& /*effects*/) noexcept {
  return decided(view, request, now, nullptr);
}

Verdict refund(const StateView& view, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  if (const Word status = check_refund(request.args); status < 0) return {status, 0, 0, 0};
  Stored stored = stored_of(view);
  const auto args = detail::unpack<RefundArgs>(request.args);

  const bool is_stored = args.begin <= stored.begin && stored.begin < args.end;
  const bool is_present = now < args.end && args.begin <= now + Rule::max_ahead;
  const bool found = is_stored && is_present && stored.used > 0;
  const Word given = found ? std::min(args.cost, stored.used) : 0;
  effects.add_output(given);
  if (!found) return {Verdict::refused, 0, 0, 0};
  stored.used -= given;
  if (given > 0) store(effects, stored);
  const bool closed = stored.is_block && now < stored.begin;
  return standing({{args.begin, args.end}, stored.begin, stored.used, closed}, args.limit, now);
}

Verdict adjust(const StateView& view, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  const Stored stored = stored_of(view);
  Args args(request.args);
  const Word amount = std::exchange(args.cost, 0);
  if (!holds(args, now)) return Verdict::failed(Errc::outside_calendar);

  WindowView m = view_at(stored, args, now);
  Word used = std::clamp(m.used + amount, Word{0}, Rule::max_used);
  // Charges to a window that ends before the block are dropped.
  if (m.closed && now < m.window.begin) used = m.used;
  if (used != m.used) store(effects, {m.begin, used, m.closed});
  effects.add_output(std::max(used - m.used, m.used - used));
  m.used = used;
  return standing(m, args.limit, now);
}

Verdict block(const StateView& view, const RuleRequest& request, Word now,
              Effects& effects) noexcept {
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  Stored stored = stored_of(view);
  Args args(request.args);
  const Word span = std::exchange(args.cost, 0);
  if (!holds(args, now)) return Verdict::failed(Errc::outside_calendar);

  const Word until = std::min(now + span, word_limit);
  if (span > 0 && !(stored.is_block && stored.begin >= until)) {
    const WindowView last = view_at(stored, args, until);
    stored = {std::max(until, last.window.begin), last.used, true};
    store(effects, stored);
  }
  return standing(view_at(stored, args, now), args.limit, now);
}

Verdict reset(const StateView& view, const RuleRequest& request, Word /*now*/,
              Effects& effects) noexcept {
  if (const Word status = check_reset(request.args); status < 0) return {status, 0, 0, 0};
  (void)stored_of(view);
  effects.put(0, 0);
  effects.put(1, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

/// The stored window may begin ahead of the clock by max_ahead.
Word kept_for(Word width) noexcept { return std::min(width + Rule::max_ahead, word_limit); }

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
  const auto args = detail::unpack<RefundArgs>(words);
  return kept_for(std::max(Word{1}, args.end - args.begin));
}

Word no_ttl(const Arguments& /*words*/) noexcept { return 0; }

}  // namespace

constinit const Operation fixed_window_acquire{
    .name = "fixed_window.acquire",
    .id = 16,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 8,
    .check = check,
    .ttl = ttl,
    .decide = acquire,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 7, .name = "cost", .role = Argument::Role::cost}},
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
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 7, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation fixed_window_refund{
    .name = "fixed_window.refund",
    .id = 18,
    .kind = StateKind::fixed_window,
    .writes = true,
    .argument_count = 4,
    .check = check_refund,
    .ttl = ttl_given_back,
    .decide = refund,
    .output = 1,
    .arguments = {{.index = 3, .name = "amount"}},
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
    .output = 1,
    .arguments = {{.index = 7, .name = "amount", .range = "0 to 2^52"}},
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
    .arguments = {{.index = 7, .name = "span", .unit = "us"}},
};

}  // namespace sluice
