// The kernel of the shared rate's setting. Its twins are backends/redis/lua/shared_rate_*.lua: same
// names, same order.
#include "sluice/algorithms/shared_rate.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Setting = SharedRateRule::State;
using Mode = SharedRateRule::Mode;

Word error(Errc code) noexcept { return -static_cast<Word>(code); }

/// The setting; version 0 if there is none, or if it was not used for as long as it is kept.
Setting setting(const StateView& state, Word now) noexcept {
  const Setting s{state[0], state[1], state[2], state[3], state[4], state[5], state[6]};
  if (s.version == 0 || now >= s.touched + s.keep_alive) return {};
  if (s.rate < 1 || s.rate > SharedRateRule::max_rate || s.interval < 1 ||
      s.interval > SharedRateRule::max_interval || s.per_client > 1 || s.generation > s.version ||
      s.keep_alive > SharedRateRule::max_keep_alive) {
    state.call_corrupt();
    return {};
  }
  return s;
}

bool is_keep_alive(Word keep_alive) noexcept {
  return keep_alive >= 1 && keep_alive <= SharedRateRule::max_keep_alive;
}
bool is_word(Word word) noexcept { return word >= 0 && word <= word_limit; }

Word check_set(const Arguments& a) noexcept {
  const bool fits = a[0] >= 1 && a[0] <= SharedRateRule::max_rate && a[1] >= 1 &&
                    a[1] <= SharedRateRule::max_interval && (a[2] == 0 || a[2] == 1) && a[3] >= 0 &&
                    a[3] <= static_cast<Word>(Mode::update) && is_keep_alive(a[4]) && a[4] >= a[1];
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_set(const StateView& state, const RuleRequest& request, Word now,
                   Effects& effects) noexcept {
  if (const Word status = check_set(request.args); status < 0) return {status, 0, 0, 0};
  const auto [rate, interval, per_client, mode, keep_alive, unused5, unused6, unused7] =
      request.args;
  const Setting s = setting(state, now);
  const bool is_new = s.version == 0 || mode != static_cast<Word>(Mode::if_absent);
  Word version = s.version;
  if (is_new) {
    version = std::max({Word{1}, now, s.version < word_limit ? s.version + 1 : 1});
    const bool same_log =
        s.version != 0 && mode == static_cast<Word>(Mode::update) && s.per_client == per_client;
    effects.put(0, version);
    effects.put(1, same_log ? s.generation : version);
    effects.put(2, rate);
    effects.put(3, interval);
    effects.put(4, per_client);
    effects.put(5, now);
    effects.put(6, keep_alive);
  }
  effects.tell(version);
  effects.tell(is_new ? 1 : 0);
  return {Verdict::allowed, is_new ? rate : s.rate, 0, 0};
}

Word check_expect(const Arguments& a) noexcept {
  if (a[2] < 0) return error(Errc::invalid_cost);
  if (a[2] > SharedRateRule::max_rate) return error(Errc::cost_exceeds_capacity);
  const bool fits = is_word(a[0]) && is_word(a[1]) && is_keep_alive(a[3]);
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_expect(const StateView& state, const RuleRequest& request, Word now,
                      Effects& effects) noexcept {
  if (const Word status = check_expect(request.args); status < 0) return {status, 0, 0, 0};
  const Word version = request.args[1];
  const Word permits = request.args[2];
  const Word keep_alive = request.args[3];
  const Setting s = setting(state, now);
  if (s.version == 0) return {error(Errc::not_configured), 0, 0, 0};
  if (s.version != version) return {error(Errc::config_changed), 0, 0, 0};
  if (permits > s.rate) return {error(Errc::cost_exceeds_capacity), 0, 0, 0};
  // Now and then, and always if the setting would otherwise be gone before this use has left the
  // interval.
  if (now < s.touched || now - s.touched >= s.keep_alive / 4 ||
      s.keep_alive - (now - s.touched) < s.interval) {
    effects.put(0, s.version);
    effects.put(1, s.generation);
    effects.put(2, s.rate);
    effects.put(3, s.interval);
    effects.put(4, s.per_client);
    effects.put(5, now);
    effects.put(6, keep_alive);
  }
  return {Verdict::allowed, s.rate, 0, 0};
}

Word check_read(const Arguments& a) noexcept {
  const bool fits = is_word(a[0]) && is_keep_alive(a[1]);
  return fits ? Verdict::allowed : error(Errc::invalid_argument);
}

Verdict decide_read(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept {
  if (const Word status = check_read(request.args); status < 0) return {status, 0, 0, 0};
  const Setting s = setting(state, now);
  if (s.version == 0) return {error(Errc::not_configured), 0, 0, 0};
  for (const Word word : {s.version, s.generation, s.rate, s.interval, s.per_client}) {
    effects.tell(word);
  }
  return {Verdict::allowed, s.rate, 0, 0};
}

Word keep_set(const Arguments& args) noexcept { return args[4]; }
Word keep_expect(const Arguments& args) noexcept { return args[3]; }
Word keep_read(const Arguments& args) noexcept { return args[1]; }

}  // namespace

constinit const Operation shared_rate_set{
    "shared_rate.set", 20, StateKind::shared_rate, true, 5, nullptr, check_set, keep_set, nullptr,
    decide_set,        2};
constinit const Operation shared_rate_expect{
    "shared_rate.expect", 21,      StateKind::shared_rate, true, 4, nullptr, check_expect,
    keep_expect,          nullptr, decide_expect};
constinit const Operation shared_rate_read{"shared_rate.read",
                                           22,
                                           StateKind::shared_rate,
                                           false,
                                           2,
                                           nullptr,
                                           check_read,
                                           keep_read,
                                           nullptr,
                                           decide_read,
                                           5};

}  // namespace sluice
