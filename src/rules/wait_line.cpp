// The kernel of the wait line. Its twin is backends/redis/lua/rules/wait_line.lua: same names, same
// order; Scan is its piece wait_line_scan.
#include "sluice/rules/wait_line.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice {
namespace {

using Rule = WaitLineRule;

bool within(Word word, Word low, Word high) noexcept { return word >= low && word <= high; }

bool is_valid(const Rule::EnterArgs& a) noexcept {
  return within(a.limit, 0, word_limit) && within(a.client, 1, word_limit) &&
         within(a.arrival, 1, word_limit) && within(a.ttl, Rule::min_ttl, Rule::max_ttl) &&
         within(a.units, 1, Rule::max_units);
}
bool is_valid(const Rule::TurnArgs& a) noexcept {
  return is_valid(Rule::EnterArgs{a.limit, a.client, a.arrival, a.ttl, a.units}) &&
         within(a.next, 0, word_limit) && within(a.next_units, 1, Rule::max_units) &&
         within(a.enough, 0, word_limit);
}
bool is_valid(const Rule::LeaveArgs& a) noexcept {
  return within(a.limit, 0, word_limit) && within(a.client, 1, word_limit) &&
         within(a.arrival, 0, word_limit);
}
struct PeekArgs {
  Word limit;
};
bool is_valid(const PeekArgs& a) noexcept { return within(a.limit, 0, word_limit); }

template <class Args>
Word check(const Arguments& args) noexcept {
  return is_valid(detail::unpack<Args>(args)) ? Verdict::allowed
                                              : -static_cast<Word>(Errc::invalid_argument);
}

/// The places at one instant, for one client.
struct Scan {
  Word places;
  Word granted;        // 0 if no place is live
  Word mine = -1;      // the client's place, also if it has expired
  Word since = 0;      // its arrival
  Word free = -1;      // an unused or expired place
  bool lives = false;  // any place, also the client's
  Word end = 0;        // the index after the last live place of another client
  Word before = 0;     // units of others ahead of `arrival`
  Word ahead = 0;      // units of others ahead of `next`
  Word gone_at = 0;    // when all of these have expired
  Word clear_at = 0;   // when all others ahead of `arrival` have expired
  Word idle_at = 0;    // when all others have expired
  Word first = 0;      // the client of the first other place
  Word first_since = 0;
  Word last = -1;  // the place of the last other client
  Word last_client = 0;
  Word last_since = 0;

  Scan(const StateView& state, Word client, Word arrival, Word next, Word now) noexcept
      : places(state[0]), granted(state[1]) {
    if (places > Rule::max_places) {
      state.call_corrupt();
      places = 0;
    }
    for (Word i = 0; i < places; ++i) {
      const auto at = static_cast<std::size_t>(Rule::place_at(i));
      const Word who = state[at + Rule::client];
      const Word came = state[at + Rule::arrival];
      const Word until = state[at + Rule::until];
      const Word units = state[at + Rule::units];
      if (units > Rule::max_units) state.call_corrupt();
      if (who == client && client != 0) {
        if (mine >= 0) state.call_corrupt();
        mine = i;
        since = came;
        lives = lives || is_live(until, now);
      } else if (who == 0 || !is_live(until, now)) {
        free = i;
      } else {
        lives = true;
        end = i + 1;
        idle_at = std::max(idle_at, until);
        if (came < arrival || (came == arrival && who < client)) {
          before += units;
          clear_at = std::max(clear_at, until);
        }
        if (next == 0 || came < next || (came == next && who < client)) {
          ahead += units;
          gone_at = std::max(gone_at, until);
        }
        if (first == 0 || came < first_since || (came == first_since && who < first)) {
          first = who;
          first_since = came;
        }
        if (last < 0 || came > last_since || (came == last_since && who > last_client)) {
          last = i;
          last_client = who;
          last_since = came;
        }
      }
    }
    if (!lives) granted = 0;
  }

  static bool is_live(Word until, Word now) noexcept {
    return until > now && until <= now + Rule::max_ttl;
  }

  /// The index for the client's place; -1: there is none.
  [[nodiscard]] Word place_for(Word client, Word arrival) const noexcept {
    if (mine >= 0) return mine;
    if (free >= 0) return free;
    if (places < Rule::max_places) return places;
    return arrival < last_since || (arrival == last_since && client < last_client) ? last : -1;
  }
};

void put(Effects& effects, Word place, Rule::Field field, Word value) noexcept {
  effects.put(static_cast<std::size_t>(Rule::place_at(place) + field), value);
}

void put_head(Effects& effects, Word places, Word granted) noexcept {
  effects.put(0, places);
  effects.put(1, granted);
}

/// Writes the client's place with `arrival`. Returns until when any place is live.
Word hold(const Scan& scan, Word granted, Word client, Word arrival, Word ttl, Word units, Word now,
          Effects& effects) noexcept {
  const Word place = scan.place_for(client, arrival);
  put_head(effects, place < 0 ? scan.places : std::max(scan.end, place + 1), granted);
  if (place < 0) return scan.idle_at;
  const Word until = std::min(now + ttl, word_limit);
  put(effects, place, Rule::client, client);
  put(effects, place, Rule::arrival, arrival);
  put(effects, place, Rule::until, until);
  put(effects, place, Rule::units, units);
  return std::max(scan.idle_at, until);
}

/// Removes the client's place.
void drop(const Scan& scan, Word granted, Effects& effects) noexcept {
  put_head(effects, scan.end, granted);
  put(effects, scan.mine, Rule::client, 0);
}

/// What is told of the units `ahead`.
void tell(const Scan& scan, Word ahead, Word gone_at, Word granted, Word now,
          Effects& effects) noexcept {
  effects.add_output(ahead);
  effects.add_output(scan.first);
  effects.add_output(granted);
  effects.add_output(std::max(Word{0}, gone_at - now));
}

Verdict allowed(const Scan& scan, Word granted, Word limit, Word idle_at, Word now,
                Effects& effects) noexcept {
  tell(scan, scan.ahead, scan.gone_at, granted, now, effects);
  return {Verdict::allowed, limit, 0, std::max(Word{0}, idle_at - now)};
}

/// The end of a place that is ahead of a turn.
struct End {
  Word until;
  Word units;
};

/// When so few of those ahead are live that the turn is allowed, if nothing else changes.
Word allowed_at(const StateView& state, const Scan& scan, const Rule::TurnArgs& a,
                Word now) noexcept {
  std::array<End, Rule::max_places> ends;
  std::size_t count = 0;
  for (Word i = 0; i < scan.places; ++i) {
    const auto at = static_cast<std::size_t>(Rule::place_at(i));
    const Word who = state[at + Rule::client];
    const Word came = state[at + Rule::arrival];
    const Word until = state[at + Rule::until];
    if (who == 0 || who == a.client || !Scan::is_live(until, now)) continue;
    if (came > a.arrival || (came == a.arrival && who > a.client)) continue;
    ends[count++] = {until, state[at + Rule::units]};
  }
  std::sort(ends.data(), ends.data() + count,
            [](const End& one, const End& other) { return one.until < other.until; });
  Word units = scan.granted + scan.before;
  for (std::size_t i = 0; i < count; ++i) {
    units -= ends[i].units;
    if (units <= a.enough) return ends[i].until;
  }
  return scan.clear_at;
}

constexpr Verdict invalid = Verdict::failed(Errc::invalid_argument);

}  // namespace

Verdict WaitLineRule::enter(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  const auto a = detail::unpack<EnterArgs>(request.args);
  if (!is_valid(a)) return invalid;
  const Scan scan(state, a.client, a.arrival, a.arrival, now);
  const Word idle_at = hold(scan, scan.granted, a.client, a.arrival, a.ttl, a.units, now, effects);
  return allowed(scan, scan.granted, a.limit, idle_at, now, effects);
}

Verdict WaitLineRule::turn(const StateView& state, const RuleRequest& request, Word now,
                           Effects& effects) noexcept {
  const auto a = detail::unpack<TurnArgs>(request.args);
  if (!is_valid(a)) return invalid;
  const Scan scan(state, a.client, a.arrival, a.next, now);
  if (scan.before > 0 && scan.granted + scan.before > a.enough) {
    tell(scan, scan.before, scan.clear_at, scan.granted, now, effects);
    const Word at = a.enough > scan.granted ? allowed_at(state, scan, a, now) : scan.clear_at;
    return {Verdict::refused, 0, at - now, scan.idle_at - now};
  }
  Word idle_at = scan.idle_at;
  Word granted = scan.granted + a.units;
  if (granted > word_limit || (a.next == 0 && !scan.lives)) granted = 0;
  if (a.next != 0) {
    idle_at = hold(scan, granted, a.client, a.next, a.ttl, a.next_units, now, effects);
  } else if (scan.mine >= 0) {
    drop(scan, granted, effects);
  } else if (scan.end > 0) {
    put_head(effects, scan.places, granted);
  }
  return allowed(scan, granted, a.limit, idle_at, now, effects);
}

Verdict WaitLineRule::leave(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  const auto a = detail::unpack<LeaveArgs>(request.args);
  if (!is_valid(a)) return invalid;
  const Scan scan(state, a.client, a.arrival, 0, now);
  if (scan.mine >= 0 && (a.arrival == 0 || a.arrival == scan.since)) {
    drop(scan, scan.granted, effects);
  };
  return allowed(scan, scan.granted, a.limit, scan.idle_at, now, effects);
}

Verdict WaitLineRule::peek(const StateView& state, const RuleRequest& request, Word now,
                           Effects& effects) noexcept {
  const auto a = detail::unpack<PeekArgs>(request.args);
  if (!is_valid(a)) return invalid;
  const Scan scan(state, 0, 0, 0, now);
  return allowed(scan, scan.granted, a.limit, scan.idle_at, now, effects);
}

namespace {

Word ttl(const Arguments& args) noexcept { return args[3] + Operation::clock_slack; }
/// It extends no place.
Word no_ttl(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation wait_line_enter{
    .name = "wait_line.enter",
    .id = 64,
    .kind = StateKind::wait_line,
    .writes = true,
    .argument_count = 5,
    .check = check<Rule::EnterArgs>,
    .ttl = ttl,
    .decide = Rule::enter,
    .output = Rule::output,
    .without_store = Operation::WithoutStore::skipped,
};
constinit const Operation wait_line_turn{
    .name = "wait_line.turn",
    .id = 65,
    .kind = StateKind::wait_line,
    .writes = true,
    .argument_count = 8,
    .check = check<Rule::TurnArgs>,
    .ttl = ttl,
    .decide = Rule::turn,
    .output = Rule::output,
    .without_store = Operation::WithoutStore::skipped,
};
constinit const Operation wait_line_leave{
    .name = "wait_line.leave",
    .id = 66,
    .kind = StateKind::wait_line,
    .writes = true,
    .argument_count = 3,
    .check = check<Rule::LeaveArgs>,
    .ttl = no_ttl,
    .decide = Rule::leave,
    .output = Rule::output,
    .without_store = Operation::WithoutStore::skipped,
};
constinit const Operation wait_line_peek{
    .name = "wait_line.peek",
    .id = 67,
    .kind = StateKind::wait_line,
    .writes = false,
    .argument_count = 1,
    .check = check<PeekArgs>,
    .ttl = no_ttl,
    .decide = Rule::peek,
    .output = Rule::output,
    .without_store = Operation::WithoutStore::skipped,
};

}  // namespace sluice
