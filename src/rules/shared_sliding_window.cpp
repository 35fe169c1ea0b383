// The kernel of the shared sliding window's configuration. Its twin is
// backends/redis/lua/rules/shared_sliding_window.lua: same names, same order.
#include "sluice/rules/shared_sliding_window.hpp"

#include <algorithm>
#include <array>

#include "sluice/decision.hpp"

namespace sluice {
namespace {

using Setting = SharedSlidingWindowRule::State;
using Mode = SharedSlidingWindowRule::Mode;
using Kept = SharedSlidingWindowRule::Kept;
using Windows = std::array<Kept, SharedSlidingWindowRule::max_kept>;

Word error(Errc code) noexcept { return -static_cast<Word>(code); }

/// 0 and unlimited are rates as well, of which the log knows nothing.
bool is_rate(Word rate) noexcept {
  return rate == unlimited || (rate >= 0 && rate <= SharedSlidingWindowRule::max_rate);
}

/// The configuration; version 0 if there is none, or if it has expired.
Setting setting(const StateView& state, Word now) noexcept {
  const Setting s{state[0], state[1], state[2], state[3], state[4], state[5], state[6]};
  if (s.version == 0 || now >= s.touched + s.keep_alive) return {};
  if (!is_rate(s.rate) || s.interval < 1 || s.interval > SharedSlidingWindowRule::max_interval ||
      s.per_client > 1 || s.generation > s.version ||
      s.keep_alive > SharedSlidingWindowRule::max_keep_alive) {
    state.call_corrupt();
    return {};
  }
  return s;
}

/// The kept windows that have not ended; the rest are zeros.
Windows kept(const StateView& state, Word now) noexcept {
  Windows all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Kept k{state[7 + 3 * i], state[8 + 3 * i], state[9 + 3 * i]};
    if (k.limit > SharedSlidingWindowRule::max_rate ||
        k.span > SharedSlidingWindowRule::max_interval || (k.limit == 0) != (k.span == 0)) {
      state.call_corrupt();
    } else if (k.until > now) {
      all[i] = k;
    }
  }
  return all;
}

/// The part of a window that is kept with a new rate, for a span and max_reserved at most; none if
/// the rate admits no more.
Kept shaped(const Kept& old, Word rate, Word interval, Word now) noexcept {
  if (old.limit == unlimited || old.limit <= rate) return {};
  Word limit = old.limit;
  Word span = old.span;
  if (rate > 0) {  // otherwise it is for the rate after this one
    if (old.span <= interval) return {};
    const Word times =
        std::min((old.limit + rate - 1) / rate, SharedSlidingWindowRule::max_rate / rate);
    if (times <= old.span / interval) span = interval * times;
    if (span <= interval) return {};
    limit = std::max(old.limit, rate * ((span + interval - 1) / interval));
  }
  return {limit, span, std::min(old.until, now + span + SharedSlidingWindowRule::max_reserved)};
}

/// Adds a kept window, unless another one is at least as strict; drops those that it makes
/// redundant. If there is no room, drops the one that ends first.
void add(Windows& all, const Kept& more) noexcept {
  const auto covers = [](const Kept& a, const Kept& b) {
    return a.limit != 0 && a.limit <= b.limit && a.span >= b.span && a.until >= b.until;
  };
  if (more.limit == 0) return;
  std::size_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (covers(all[i], more)) return;
    if (covers(more, all[i])) all[i] = {};
    if (all[i].until < all[first].until) first = i;
  }
  if (more.until > all[first].until) all[first] = more;
}

bool is_keep_alive(Word keep_alive) noexcept {
  return keep_alive >= 1 && keep_alive <= SharedSlidingWindowRule::max_keep_alive;
}
bool is_word(Word word) noexcept { return word >= 0 && word <= word_limit; }

/// Keeps the configuration for `keep_alive` from now on.
void touch(Effects& effects, const Setting& s, Word now, Word keep_alive) noexcept {
  effects.put(0, s.version);
  effects.put(1, s.generation);
  effects.put(2, s.rate);
  effects.put(3, s.interval);
  effects.put(4, s.per_client);
  effects.put(5, now);
  effects.put(6, keep_alive);
}

Word check_configure(const Arguments& a) noexcept {
  const bool fits = is_rate(a[0]) && a[1] >= 1 && a[1] <= SharedSlidingWindowRule::max_interval &&
                    (a[2] == 0 || a[2] == 1) && a[3] >= 0 &&
                    a[3] <= static_cast<Word>(Mode::update) && is_keep_alive(a[4]) && a[4] >= a[1];
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_configure(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept {
  if (const Word status = check_configure(request.args); status < 0) return {status, 0, 0, 0};
  const auto [rate, interval, per_client, mode, keep_alive, unused5, unused6, unused7] =
      request.args;
  const Setting s = setting(state, now);
  const Windows before = kept(state, now);
  const bool is_same = s.version != 0 && mode == static_cast<Word>(Mode::update) &&
                       s.rate == rate && s.interval == interval && s.per_client == per_client;
  const bool is_new = s.version == 0 || (mode != static_cast<Word>(Mode::if_absent) && !is_same);
  Word version = s.version;
  if (is_new) {
    version = std::max({Word{1}, now, s.version < word_limit ? s.version + 1 : 1});
    // After the largest version, smaller ones follow, and no log is newer than its configuration.
    const bool same_log = s.version != 0 && mode == static_cast<Word>(Mode::update) &&
                          s.per_client == per_client && s.generation <= version;
    effects.put(0, version);
    effects.put(1, same_log ? s.generation : version);
    effects.put(2, rate);
    effects.put(3, interval);
    effects.put(4, per_client);
    effects.put(5, now);
    effects.put(6, keep_alive);
    Windows after{};
    if (same_log) {
      add(after, shaped({s.rate, s.interval, word_limit}, rate, interval, now));
      for (const Kept& k : before) add(after, shaped(k, rate, interval, now));
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      effects.put(7 + 3 * i, after[i].limit);
      effects.put(8 + 3 * i, after[i].span);
      effects.put(9 + 3 * i, after[i].until);
    }
  }
  if (is_same) touch(effects, s, now, keep_alive);
  effects.add_output(version);
  effects.add_output(is_new ? 1 : 0);
  return {Verdict::allowed, is_new ? rate : s.rate, 0, 0};
}

Word check_expect(const Arguments& a) noexcept {
  if (a[2] < 0) return error(Errc::invalid_cost);
  if (a[2] > SharedSlidingWindowRule::max_rate) return error(Errc::cost_exceeds_capacity);
  const bool fits = is_word(a[0]) && is_word(a[1]) && is_keep_alive(a[3]) && is_word(a[4]);
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_expect(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  if (const Word status = check_expect(request.args); status < 0) return {status, 0, 0, 0};
  const Word version = request.args[1];
  const Word permits = request.args[2];
  const Word keep_alive = request.args[3];
  const Word first_end = request.args[4];
  const Setting s = setting(state, now);
  if (s.version == 0) return {error(Errc::not_configured), 0, 0, 0};
  const bool has_ended = first_end != 0 && now >= first_end;
  if (s.version != version || has_ended) return {error(Errc::config_changed), 0, 0, 0};
  if (permits > s.rate) return {error(Errc::cost_exceeds_capacity), 0, 0, 0};
  // Written rarely, and always if the configuration could otherwise expire before this use has left
  // the interval.
  if (now < s.touched || now - s.touched >= s.keep_alive / 4 ||
      s.keep_alive - (now - s.touched) < s.interval) {
    touch(effects, s, now, keep_alive);
  }
  return {Verdict::allowed, s.rate, 0, 0};
}

Word check_config(const Arguments& a) noexcept {
  const bool fits = is_word(a[0]) && is_keep_alive(a[1]);
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_config(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  if (const Word status = check_config(request.args); status < 0) return {status, 0, 0, 0};
  const Setting s = setting(state, now);
  const Windows windows = kept(state, now);
  if (s.version == 0) return {error(Errc::not_configured), 0, 0, 0};
  for (const Word word : {s.version, s.generation, s.rate, s.interval, s.per_client}) {
    effects.add_output(word);
  }
  Word first_end = 0;
  for (const Kept& k : windows) {
    effects.add_output(k.limit);
    effects.add_output(k.span);
    if (k.limit != 0 && (first_end == 0 || k.until < first_end)) first_end = k.until;
  }
  effects.add_output(first_end);
  return {Verdict::allowed, s.rate, 0, 0};
}

Word ttl_set(const Arguments& args) noexcept { return args[4] + Operation::clock_slack; }
Word ttl_expect(const Arguments& args) noexcept { return args[3] + Operation::clock_slack; }
Word ttl_read(const Arguments& args) noexcept { return args[1] + Operation::clock_slack; }

}  // namespace

constinit const Operation shared_sliding_window_configure{
    .name = "shared_sliding_window.configure",
    .id = 20,
    .kind = StateKind::shared_sliding_window,
    .writes = true,
    .argument_count = 5,
    .check = check_configure,
    .ttl = ttl_set,
    .decide = decide_configure,
    .output = 2,
    .arguments = {{.index = 0, .name = "rate", .range = "0 to 65536, or unlimited"},
                  {.index = 1, .name = "interval", .unit = "us"}},
};
constinit const Operation shared_sliding_window_expect{
    .name = "shared_sliding_window.expect",
    .id = 21,
    .kind = StateKind::shared_sliding_window,
    .writes = true,
    .argument_count = 5,
    .check = check_expect,
    .ttl = ttl_expect,
    .decide = decide_expect,
    .without_store = Operation::WithoutStore::skipped,
};
constinit const Operation shared_sliding_window_config{
    .name = "shared_sliding_window.config",
    .id = 22,
    .kind = StateKind::shared_sliding_window,
    .writes = false,
    .argument_count = 2,
    .check = check_config,
    .ttl = ttl_read,
    .decide = decide_config,
    .output = SharedSlidingWindowRule::read_output,
};

}  // namespace sluice
