// The kernel of the learned rate. Its twin is backends/redis/lua/rules/learned_rate.lua: same
// names, same order. Rates are at most 2^40, and spans that are multiplied at most 2^42.
#include "sluice/rules/learned_rate.hpp"

#include <algorithm>

namespace sluice {
namespace {

using Rule = LearnedRateRule;
using State = Rule::State;
using Pace = Rule::Pace;

__extension__ typedef __int128 Wide;

constexpr std::size_t state_words = sizeof(State) / sizeof(Word);

constexpr Word failed(Errc code) noexcept { return -static_cast<Word>(code); }

/// floor(a * b / c). The twin computes it in parts of ten bits.
Word scale(Word a, Word b, Word c) noexcept { return static_cast<Word>(Wide{a} * b / c); }

/// The state at one instant.
struct RateView {
  State s;
  Word at = 0;   // the time of the decision
  Word end = 0;  // when the state means nothing any more
};

void restart(State& s, Word at) noexcept {
  s.empty = s.fell = s.first = s.current = s.previous = 0;
  s.told_until = s.left_until = s.closed = 0;
  s.grown = s.start = at;
}

/// False if the words cannot be a learned rate's.
bool read(const StateView& view, State& s) noexcept {
  std::array<Word, state_words> words;
  for (std::size_t i = 0; i < state_words; ++i) words[i] = view[i];
  s = detail::unpack<State>(words);
  if (s.stamp == 0) return !view.is_corrupt();
  const bool fits = s.rate >= 1 && std::max({s.rate, s.peak, s.ceiling}) <= Rule::max_rate &&
                    std::max(s.current, s.previous - 1) <= Rule::max_count &&
                    std::max({s.grown, s.fell, s.first, s.start}) <= s.stamp;
  if (!fits) view.call_corrupt();
  return fits;
}

/// Advances the state to `now`.
void measure(RateView& m, const Pace& pace, Word now) noexcept {
  State& s = m.s;
  m.at = now;
  m.end = std::max({s.stamp + pace.forget, s.closed, s.left_until});
  if (s.stamp == 0 || now >= m.end) {
    s = {.rate = pace.initial};
    restart(s, now);
    m.end = now;
  } else if (s.stamp > now + Rule::max_ahead) {  // the clock was set back
    restart(s, now);
  } else {
    m.at = std::max(now, s.stamp);
  }
  const Word top = m.at < s.told_until ? std::min(pace.most, s.ceiling) : pace.most;
  s.rate = std::max(pace.least, std::min(s.rate, top));
  if (m.at - s.start >= 2 * Rule::minute) {
    s.start = m.at;
    s.current = s.previous = 0;
  } else if (m.at - s.start >= Rule::minute) {
    s.start += Rule::minute;
    s.previous = s.current + 1;
    s.current = 0;
  }
}

/// The span whose units a request of this need may have saved.
Word kept_for(Word need) noexcept { return std::max(2 * need, Rule::saved); }

/// What was accepted in the last minute, as a rate.
Word accepted(const RateView& m) noexcept {
  const Word elapsed = (m.at - m.s.start) / 1'000'000 + 1;
  if (m.s.previous == 0) return m.s.current * 1'000'000 / elapsed;
  return (m.s.current + (m.s.previous - 1) * (60 - elapsed) / 60) * 1'000'000 / 60;
}

/// The verdict on a request that is admitted and spends nothing.
Verdict standing(const RateView& m, const Pace& pace, Word now) noexcept {
  const State& s = m.s;
  const Word kept = kept_for(Rule::need(1, s.rate));
  const Word empty = std::max(s.empty, m.at - kept);
  Word left = 0;
  if (m.at >= s.closed && m.at > empty) left = scale(m.at - empty, s.rate, 1'000'000'000'000);
  if (m.at < s.left_until) left = std::min(left, s.left);
  const Word full = std::max(s.empty + kept, s.closed);
  return {Verdict::allowed, std::min(left, pace.limit), 0, std::max<Word>(0, full - now)};
}

/// What a grant of this need makes of the rate, which grows only if it leaves less than the same
/// again. What it leaves stays the same number of units.
void grow(RateView& m, const Pace& pace, Word need) noexcept {
  State& s = m.s;
  if (s.first == 0) {
    s.first = s.grown = m.at;
    return;
  }
  const Word rest = m.at - s.empty;
  if (rest >= need) return;
  const Word passed = (m.at - s.grown) / 1'000;
  s.grown = passed > Rule::step ? m.at : s.grown + passed * 1'000;
  const Word ms = std::min(passed, Rule::step);
  Word more = s.rate * ms / 3'000;
  if (s.peak > 0) {
    const Word away =
        s.peak > s.rate ? (s.peak - s.rate) * ms / 6'000 : (s.rate - s.peak) * ms / 20'000;
    more = std::max(away, s.peak * ms / 100'000);
  }
  const Word top = m.at < s.told_until ? std::min(pace.most, s.ceiling) : pace.most;
  const Word grown = std::max(s.rate, std::min(s.rate + more, top));
  s.empty = m.at - scale(rest, s.rate, grown);
  s.rate = grown;
}

/// REQUIRES: a grant was refused that is not of the last episode.
void fall(RateView& m, const Pace& pace, Word granted) noexcept {
  State& s = m.s;
  const Word before = s.peak > 0 ? s.peak : s.rate;
  const Word now_accepted = accepted(m);
  const Word kept = std::min(before, now_accepted);
  Word rate = s.rate - s.rate / 20;
  if (s.first > 0 && granted > s.first) {
    s.peak = std::max(s.rate, kept);
  } else {
    const bool tells = now_accepted * 8 >= before;
    s.peak = tells ? kept : before;
    rate = std::min(s.rate, std::max(s.rate / 2, tells ? s.peak / 16 : 0));
  }
  s.rate = std::max(pace.least, rate);
  s.empty = std::max(s.empty, m.at);
  s.fell = s.grown = m.at;
  s.first = 0;
}

void write(RateView& m, Effects& effects) noexcept {
  m.s.stamp = std::max<Word>(m.at, 1);
  std::array<Word, state_words> words;
  detail::pack(words, m.s);
  for (std::size_t i = 0; i < state_words; ++i) effects.put(i, words[i]);
}

Word check(const Pace& pace) noexcept {
  const bool fits = pace.limit >= 1 && pace.limit <= word_limit && pace.least >= 1 &&
                    pace.least <= pace.initial && pace.initial <= pace.most &&
                    pace.most <= Rule::max_rate && pace.forget >= Rule::min_forget &&
                    pace.forget <= Rule::max_forget;
  return fits ? Verdict::allowed : failed(Errc::invalid_argument);
}

Word check_acquire(const Arguments& words) noexcept {
  const auto args = detail::unpack<Rule::Args>(words);
  if (const Word status = check(args.pace); status < 0) return status;
  if (args.cost < 0) return failed(Errc::invalid_cost);
  const bool fits =
      args.cost <= Rule::max_cost && Rule::need(args.cost, args.pace.least) < Rule::max_need;
  return fits ? Verdict::allowed : failed(Errc::cost_exceeds_capacity);
}

/// Of what was granted before.
Word check_amount(const Pace& pace, Word amount, bool rest_fits) noexcept {
  if (const Word status = check(pace); status < 0) return status;
  if (amount < 0 || amount > Rule::max_cost) return failed(Errc::invalid_cost);
  return rest_fits ? Verdict::allowed : failed(Errc::invalid_argument);
}

Word check_limited(const Arguments& words) noexcept {
  const auto args = detail::unpack<Rule::LimitedArgs>(words);
  return check_amount(args.pace, args.amount, args.granted >= 0 && args.granted <= word_limit);
}

Word check_adjust(const Arguments& words) noexcept {
  const auto args = detail::unpack<Rule::AdjustArgs>(words);
  return check_amount(args.pace, args.amount, args.change == 0 || args.change == 1);
}

Word check_told(const Arguments& words) noexcept {
  const auto args = detail::unpack<Rule::ToldArgs>(words);
  const bool fits = args.ceiling >= 0 && args.ceiling <= Rule::max_rate && args.remaining >= 0 &&
                    args.remaining <= word_limit && args.reset >= 0 &&
                    args.reset <= Rule::max_block;
  return check_amount(args.pace, 0, fits);
}

Word check_block(const Arguments& words) noexcept {
  const auto args = detail::unpack<Rule::BlockArgs>(words);
  return check_amount(args.pace, 0, args.length >= 0 && args.length <= Rule::max_block);
}

Word check_reset(const Arguments& args) noexcept {
  const bool fits = args[0] >= 1 && args[0] <= word_limit;
  return fits ? Verdict::allowed : failed(Errc::invalid_argument);
}

/// Takes units that were not accepted off the count of the minute in which they were granted.
void uncount(State& s, Word amount, Word granted) noexcept {
  if (granted >= s.start) {
    s.current -= std::min(s.current, amount);
  } else if (s.previous > 0) {
    s.previous -= std::min(s.previous - 1, amount);
  }
}

Verdict decide(const StateView& view, const RuleRequest& request, Word now, Effects& effects,
               bool spends) noexcept {
  const auto args = detail::unpack<Rule::Args>(request.args);
  if (const Word status = check_acquire(request.args); status < 0) return {status, 0, 0, 0};
  RateView m;
  if (!read(view, m.s)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args.pace, now);
  State& s = m.s;
  const Verdict seen = standing(m, args.pace, now);
  const Word need = Rule::need(args.cost, s.rate);
  const Word empty = std::max(s.empty, m.at - kept_for(need));
  const bool is_told = m.at < s.left_until && args.cost > s.left;
  const Word ready = std::max({empty + need, s.closed, is_told ? s.left_until : 0});
  if (!spends) {
    effects.add_output(s.rate);
    effects.add_output(s.peak);
  }
  if (ready > m.at) {
    return {Verdict::refused, seen.remaining, std::min(ready, m.end) - now, seen.reset_after};
  }
  if (!spends || args.cost == 0) return seen;
  if (m.at < s.left_until) s.left -= args.cost;
  s.empty = empty + need;
  s.current = std::min(s.current + args.cost, Rule::max_count);
  grow(m, args.pace, need);
  write(m, effects);
  return standing(m, args.pace, now);
}

Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                Effects& effects) noexcept {
  return decide(state, request, now, effects, true);
}

Verdict peek(const StateView& state, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  return decide(state, request, now, effects, false);
}

Verdict limited(const StateView& view, const RuleRequest& request, Word now,
                Effects& effects) noexcept {
  const auto args = detail::unpack<Rule::LimitedArgs>(request.args);
  if (const Word status = check_limited(request.args); status < 0) return {status, 0, 0, 0};
  RateView m;
  if (!read(view, m.s)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args.pace, now);
  uncount(m.s, args.amount, args.granted);
  const bool falls = args.granted > m.s.fell && args.granted <= m.at;
  if (falls) fall(m, args.pace, args.granted);
  effects.add_output(falls ? 1 : 0);
  write(m, effects);
  return standing(m, args.pace, now);
}

Verdict adjust(const StateView& view, const RuleRequest& request, Word now,
               Effects& effects) noexcept {
  const auto args = detail::unpack<Rule::AdjustArgs>(request.args);
  if (const Word status = check_adjust(request.args); status < 0) return {status, 0, 0, 0};
  RateView m;
  if (!read(view, m.s)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args.pace, now);
  State& s = m.s;
  const Word need = Rule::need(args.amount, s.rate);
  if (args.change == static_cast<Word>(Rule::Change::refund)) {
    s.empty = std::max<Word>(0, s.empty - need);
    uncount(s, args.amount, m.at);
  } else {
    const Word empty = std::max(s.empty, m.at - kept_for(need));
    const Word latest = std::min(m.at + Rule::max_debt, word_limit);
    s.empty = std::max(s.empty, std::min(empty + need, latest));
    s.current = std::min(s.current + args.amount, Rule::max_count);
  }
  effects.add_output(args.amount);
  if (args.amount > 0) write(m, effects);
  return standing(m, args.pace, now);
}

Verdict told(const StateView& view, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  const auto args = detail::unpack<Rule::ToldArgs>(request.args);
  if (const Word status = check_told(request.args); status < 0) return {status, 0, 0, 0};
  RateView m;
  if (!read(view, m.s)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args.pace, now);
  State& s = m.s;
  if (args.ceiling > 0) {
    if (m.at >= s.told_until || s.ceiling != args.ceiling) s.peak = args.ceiling;
    s.ceiling = args.ceiling;
    s.told_until = std::min(m.at + args.pace.forget, word_limit);
    const Word top = std::min(args.pace.most, s.ceiling);
    s.rate = std::max(args.pace.least, std::min(s.rate, top));
  }
  if (args.remaining < word_limit) {
    if (m.at < s.left_until) {
      s.left = std::min(s.left, args.remaining);
    } else {
      s.left = args.remaining;
      s.left_until = std::min(m.at + args.reset, word_limit);
    }
  }
  if (args.ceiling > 0 || args.remaining < word_limit) write(m, effects);
  return standing(m, args.pace, now);
}

Verdict block(const StateView& view, const RuleRequest& request, Word now,
              Effects& effects) noexcept {
  const auto args = detail::unpack<Rule::BlockArgs>(request.args);
  if (const Word status = check_block(request.args); status < 0) return {status, 0, 0, 0};
  RateView m;
  if (!read(view, m.s)) return Verdict::failed(Errc::corrupt_state);

  measure(m, args.pace, now);
  const Word until = std::min(now + args.length, word_limit);
  if (args.length > 0 && until > m.s.closed) {
    m.s.closed = until;
    write(m, effects);
  }
  return standing(m, args.pace, now);
}

Verdict reset(const StateView& state, const RuleRequest& request, Word /*now*/,
              Effects& effects) noexcept {
  if (const Word status = check_reset(request.args); status < 0) return {status, 0, 0, 0};
  for (std::size_t i = 0; i < state_words; ++i) (void)state[i];  // detects corrupt words
  effects.fill(0, state_words, 0);
  return {Verdict::allowed, request.args[0], 0, 0};
}

Word ttl(const Arguments& args) noexcept { return args[4] + Rule::max_ahead; }
Word ttl_block(const Arguments& args) noexcept {
  return std::max(args[4], args[5]) + Rule::max_ahead;
}
/// What remains until a time counts from the state's own time, which may be ahead of the clock by
/// max_ahead, and it counts again if the clock is set back by as much once more.
Word ttl_told(const Arguments& args) noexcept {
  return std::max(args[4], args[7] + Operation::clock_slack) + Rule::max_ahead;
}
Word ttl_reset(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

Word LearnedRateRule::need(Word cost, Word rate) noexcept {
  const Wide span = (Wide{cost} * 1'000'000'000'000 + rate - 1) / rate;
  return static_cast<Word>(std::min<Wide>(span, max_need));
}

constinit const Operation learned_rate_acquire{
    .name = "learned_rate.acquire",
    .id = 77,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 6,
    .check = check_acquire,
    .ttl = ttl,
    .decide = acquire,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::rates,
    .arguments = {{.index = 5, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation learned_rate_peek{
    .name = "learned_rate.peek",
    .id = 78,
    .kind = StateKind::learned_rate,
    .writes = false,
    .argument_count = 6,
    .check = check_acquire,
    .ttl = ttl,
    .decide = peek,
    .output = 2,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::rates,
    .arguments = {{.index = 5, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation learned_rate_limited{
    .name = "learned_rate.limited",
    .id = 79,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 7,
    .check = check_limited,
    .ttl = ttl,
    .decide = limited,
    .output = 1,
    .without_store = Operation::WithoutStore::local_only,
    .share = Operation::Share::rates,
    .arguments = {{.index = 5, .name = "amount"}},
};
constinit const Operation learned_rate_adjust{
    .name = "learned_rate.adjust",
    .id = 80,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 7,
    .check = check_adjust,
    .ttl = ttl,
    .decide = adjust,
    .output = 1,
    .arguments = {{.index = 5, .name = "amount"}},
};
constinit const Operation learned_rate_told{
    .name = "learned_rate.told",
    .id = 81,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 8,
    .check = check_told,
    .ttl = ttl_told,
    .decide = told,
    .without_store = Operation::WithoutStore::local_only,
    .share = Operation::Share::rates,
};
constinit const Operation learned_rate_block{
    .name = "learned_rate.block",
    .id = 82,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 6,
    .check = check_block,
    .ttl = ttl_block,
    .decide = block,
    .arguments = {{.index = 5, .name = "span", .unit = "us"}},
};
constinit const Operation learned_rate_reset{
    .name = "learned_rate.reset",
    .id = 83,
    .kind = StateKind::learned_rate,
    .writes = true,
    .argument_count = 1,
    .check = check_reset,
    .ttl = ttl_reset,
    .decide = reset,
};

}  // namespace sluice
