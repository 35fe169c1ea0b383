// Which step of a trace grants units, and the histories that checkers of invariants take.
#include "src/testing/trace_events.hpp"

#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing::detail {
namespace {

/// An answer, counted from the start of the trace.
Event event_of(const TracedCall& call, const Trace& trace, Word cost) {
  Event event = note(call.decision, cost);
  event.at = since_start(event.at, trace);
  event.effective = since_start(event.effective, trace);
  return event;
}

}  // namespace

std::optional<Asked> find_asked(const TracedCall& call) {
  std::size_t told = 0;
  for (const TracedStep& step : call.steps) {
    const Operation& row = *step.operation;
    switch (row.grants) {
      case Operation::Grants::nothing:
        break;
      case Operation::Grants::one:
        return Asked{&step, 1};
      case Operation::Grants::cost:
        return Asked{&step, step.args[row.arguments.find(Argument::Role::cost)->index]};
      case Operation::Grants::up_to_cost:
        return Asked{&step, told < call.output.size() ? call.output[told] : 0};
    }
    told += output_count(row, step.table.size());
  }
  return {};
}

bool is_granted(const TracedCall& call) {
  return !call.error && call.decision.allowed && find_asked(call).has_value();
}

History requests_of(const Trace& trace) {
  History history;
  for (const TracedCall& call : trace.calls) {
    if (call.error) continue;
    if (const auto asked = find_asked(call)) history.push_back(event_of(call, trace, asked->cost));
  }
  std::ranges::stable_sort(history, {}, &Event::at);
  return history;
}

std::vector<KeyTrace> split_by_key(const Trace& trace) {
  std::vector<KeyTrace> keys;
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<std::size_t>> calls;  // of each key: their indices in the trace
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    for (std::size_t j = 0; j < trace.calls[i].steps.size(); ++j) {
      const std::string text = key_text(trace.calls[i].steps[j]);
      const auto [place, is_new] = known.try_emplace(text, keys.size());
      if (is_new) {
        keys.push_back({text, {{}, trace.marks, trace.start()}});
        calls.emplace_back();
      }
      keys[place->second].trace.calls.push_back(part_of(trace.calls[i], j));
      calls[place->second].push_back(i);
    }
  }
  for (std::size_t k = 0; k < keys.size(); ++k) {
    for (Mark& mark : keys[k].trace.marks) {
      const auto next = std::ranges::lower_bound(calls[k], mark.before);
      mark.before = static_cast<std::size_t>(next - calls[k].begin());
    }
  }
  return keys;
}

std::map<std::string, History> hint_histories(const Trace& on_key, const Trace& whole) {
  const auto is_judged = [](const TracedCall& call) {
    return call.whole && !call.error && find_asked(call).has_value();
  };
  struct Seen {
    std::size_t times = 0;
    bool refused = false;
  };
  std::map<std::string, Seen> seen;
  std::vector<const TracedCall*> ordered;
  for (const TracedCall& call : on_key.calls) {
    ordered.push_back(&call);
    if (!is_judged(call)) continue;
    Seen& one = seen[step_text(call.steps[0])];
    ++one.times;
    one.refused = one.refused || !call.decision.allowed;
  }
  std::map<std::string, History> histories;
  for (const auto& [question, one] : seen) {
    if (one.times > 1 && one.refused) histories[question];
  }
  const auto decided = [](const TracedCall* call) {
    return call->error ? call->asked : call->decision.at;
  };
  std::ranges::stable_sort(ordered, {}, decided);
  for (const TracedCall* const call : ordered) {
    const std::string question = is_judged(*call) ? step_text(call->steps[0]) : std::string();
    const bool may_have_changed = call->error
                                      ? call->error == Failure::unknown
                                      : call->decision.allowed && call->steps[0].operation->writes;
    for (auto& [asked, history] : histories) {
      if (asked == question) {
        history.push_back(event_of(*call, whole, find_asked(*call)->cost));
      } else if (may_have_changed) {
        history.push_back({.at = since_start(decided(call), whole), .cost = -1, .allowed = true});
      }
    }
  }
  return histories;
}

}  // namespace sluice::testing::detail
