// Descriptions of leases, gates, loads, lines and records.
#include <fmt/format.h>

#include <algorithm>

#include "cli/text.hpp"
#include "sluice/extend/idempotency_record.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"
#include "src/rules/lease_table.hpp"
#include "src/waiting/wake_up.hpp"
#include "tool/describe_parts.hpp"

namespace sluice::tool {
namespace {

/// The id as 32 digits, as LeaseId's two numbers one behind the other.
std::string id_text(const Word (&id)[3]) {
  return fmt::format("{:013x}{:013x}{:06x}", id[0], id[1], id[2]);
}

bool is_block(const Word (&id)[3]) { return std::ranges::equal(id, LeasesRule::block_id); }

}  // namespace

void describe_leases(const Subject& subject) {
  const StateView state(subject.words);
  Effects effects;
  const LeaseTable table(state, subject.now, effects);
  Word held = 0;
  Word blocked_until = 0;
  subject.result.rows_name = "holders";
  Word slot = table.lapsed(word_limit, 0).first;
  for (Word i = 0; slot != 0 && i < table.head.slots && !state.is_corrupt(); ++i) {
    const LeaseTable::Record lease = table.record(slot);
    const Word expiry = lease.node.expiry - table.head.ahead;
    if (is_block(lease.id)) {
      blocked_until = std::max(blocked_until, expiry);
    } else {
      held += lease.node.weight;
      subject.result.rows.push_back({{"id", id_text(lease.id)},
                                     {"weight", lease.node.weight},
                                     {"fence", lease.fence},
                                     {"until", Moment{expiry}}});
    }
    slot = slot == table.head.tail ? 0 : table.link(lease.node.next);
  }
  const auto limit = only_limit(subject.given);
  const Verdict verdict =
      ask(subject, leases_peek, {limit.value_or(word_limit), subject.given.cost, 0}).verdict;
  if (state.is_corrupt() || !subject.result.is_sound) {
    subject.result.is_sound = false;
    return;
  }
  subject.result.used = held;
  subject.add("held", held);
  subject.add("holders", static_cast<Word>(subject.result.rows.size()));
  if (limit) tell_limit(subject, *limit, verdict);
  const std::string of = limit ? " of " + thousands(static_cast<std::uint64_t>(*limit)) : "";
  subject.result.summary = fmt::format("{}{} held", held, of);
  if (blocked_until > 0) {
    subject.add("closed_until", Moment{blocked_until});
    subject.result.summary += ", closed for " + duration(Span{blocked_until - subject.now});
  }
}

void describe_gate(const Subject& subject) {
  // Without a ramp, which is the limiter's own.
  const Verdict verdict = ask(subject, gate_peek, {1, GateRule::max_cap, 0, 0}).verdict;
  if (verdict.status < 0) return;
  const auto state =
      detail::unpack<GateRule::State>(StateWords{subject.words[0], subject.words[1]});
  if (verdict.status == Verdict::refused) {
    subject.result.summary = "closed for " + duration(Span{verdict.retry_after});
    subject.add("closed_until", Moment{subject.now + verdict.retry_after});
    if (state.mark <= state.until) subject.add("closed_at", Moment{state.mark});
  } else if (state.mark > subject.now) {
    subject.result.summary = "reopening";
    subject.add("next_at", Moment{state.mark});
  } else {
    subject.result.summary = "open";
  }
  subject.result.verdict = verdict;
}

void describe_utilization(const Subject& subject) {
  // The widest bounds, so that the level is as it is stored.
  constexpr Word grace = UtilizationRule::max_span - 1;
  const auto [verdict, output] =
      ask(subject, utilization_peek,
          {UtilizationRule::one, grace, 1, 1, UtilizationRule::max_span, 1, 0});
  if (verdict.status < 0) return;
  subject.result.summary = "level " + duration(Span{output[2]});
  subject.add("level", Span{output[2]});
  if (output[3] > 0) subject.add("sampled_at", Moment{output[3]});
}

std::string wait_line_of(const KeyName& name) {
  if (name.is_hashed) return {};
  const std::string line = detail::wait_line_name(name.key());
  return line.size() > Key::max_plain_bytes
             ? std::string()
             : name.prefix + render(Key{name.tag, std::string_view(line)});
}

void describe_wait_line(const Subject& subject) {
  using Rule = WaitLineRule;
  const auto [verdict, output] = ask(subject, wait_line_peek, {word_limit});
  if (verdict.status < 0) return;
  const StateView state(subject.words);
  Word first = subject.now;
  subject.result.rows_name = "waiting";
  for (Word i = 0; i < state[0]; ++i) {
    const auto at = static_cast<std::size_t>(Rule::place_at(i));
    const Word until = state[at + Rule::until];
    if (state[at + Rule::client] == 0 || until <= subject.now) continue;
    first = std::min(first, state[at + Rule::arrival]);
    subject.result.rows.push_back({{"process", state[at + Rule::client]},
                                   {"since", Moment{state[at + Rule::arrival]}},
                                   {"first_wants", state[at + Rule::units]},
                                   {"alive_until", Moment{until}}});
  }
  std::ranges::stable_sort(subject.result.rows, {},
                           [](const Fields& row) { return std::get<Moment>(row[1].value).us; });
  subject.result.summary = plural(subject.result.rows.size(), "process") + " waiting";
  if (!subject.result.rows.empty()) {
    subject.result.summary += ", the first for " + duration(Span{subject.now - first});
  }
  subject.add("processes", static_cast<Word>(subject.result.rows.size()));
  subject.add("units_wanted_first", output[0]);
  subject.add("granted", output[2]);
}

void describe_idempotency_record(const Subject& subject) {
  const StateView state(subject.words);
  const Word at = state[0];
  const bool is_one = subject.words.size() >= IdempotencyRecord::words_for(1, 0) &&
                      subject.words.size() <= IdempotencyRecord::max_words && at > 0;
  if (!is_one || state.is_corrupt()) {
    subject.result.is_sound = false;
    return;
  }
  subject.result.summary = "answered";
  subject.add("answered_at", Moment{at});
  subject.add("repeated_until", Moment{at + id_kept_for / Span{1}});
}

void describe_constant(const Subject& subject) { subject.result.is_sound = false; }

}  // namespace sluice::tool
