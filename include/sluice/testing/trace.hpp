// Trace: the calls to a store with their times and answers. Plain values. RecordingStore makes
// traces, trace_text.hpp writes and reads them, matchers.hpp checks them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/decision.hpp"
#include "sluice/plan.hpp"

namespace sluice::testing {

/// One step of a plan, with the bytes of its key.
struct TracedStep {
  const Operation* operation = nullptr;
  std::string tag;
  std::string name;
  std::string unit;
  Arguments args{};
  std::vector<Word> table{};

  TracedStep() = default;
  explicit TracedStep(const Step& step)
      : operation(step.operation),
        tag(step.key.tag()),
        name(step.key.name()),
        unit(step.key.unit()),
        args(step.args),
        table(step.table.begin(), step.table.end()) {}

  /// A view of it.
  [[nodiscard]] Step step() const { return {operation, key(), args, nullptr, table}; }
  [[nodiscard]] Key key() const { return Key{tag, name}.with_unit(unit); }

  /// Equal steps; copies of an operation are equal.
  friend bool operator==(const TracedStep& a, const TracedStep& b) {
    return a.operation->name == b.operation->name && a.tag == b.tag && a.name == b.name &&
           a.unit == b.unit && a.args == b.args && a.table == b.table;
  }
};

/// One call and its outcome. An error has neither decisions nor output words.
struct TracedCall {
  Time asked{};        ///< by Store::clock() in this process
  Time answered{};     ///< the same
  std::string caller;  ///< the caller in a shared recording
  std::vector<TracedStep> steps;
  std::optional<RequestId> id;
  std::error_code error;
  Decision decision;
  std::vector<Decision> each;  ///< one for each step
  std::vector<Word> output;    ///< of all steps, one after the other
  /// False: steps on other keys were omitted, as calls_on() does.
  bool whole = true;

  friend bool operator==(const TracedCall&, const TracedCall&) = default;
};

/// A note of a test between two calls: a fault, its end.
struct Mark {
  Time at{};
  std::size_t before = 0;  ///< the index of the next call
  std::string text;

  friend bool operator==(const Mark&, const Mark&) = default;
};

/// Calls in the order in which they were made, and marks in the order in which they were set.
struct Trace {
  std::vector<TracedCall> calls;
  std::vector<Mark> marks;
  /// The origin of times in texts, if it is not start(): for parts of a trace.
  std::optional<Time> origin{};

  /// The first time in the trace, the epoch if it is empty. Times in texts count from it.
  [[nodiscard]] Time start() const noexcept {
    if (origin) return *origin;
    if (calls.empty() && marks.empty()) return {};
    if (calls.empty()) return marks.front().at;
    if (marks.empty()) return calls.front().asked;
    return std::min(calls.front().asked, marks.front().at);
  }

  friend bool operator==(const Trace&, const Trace&) = default;
};

namespace detail {

/// Letters, digits and `-._~@+=/` are written as they are, every other byte as %XX, so that no
/// blank is left.
inline std::string escaped(std::string_view bytes) {
  constexpr std::string_view plain = "-._~@+=/";
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stands = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || plain.find(c) != std::string_view::npos;
    if (stands) {
      out += c;
    } else {
      out += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return out;
}

/// "{alice}:api:10/s", or "{alice}:api" for a key without a unit.
inline std::string key_text(const TracedStep& step) {
  const std::string unit = step.unit.empty() ? "" : ':' + escaped(step.unit);
  return '{' + escaped(step.tag) + "}:" + escaped(step.name) + unit;
}

/// The step at `index` of a call, with the decision of the whole plan.
inline TracedCall part_of(const TracedCall& call, std::size_t index) {
  const auto output = [&](std::size_t i) {
    return output_count(*call.steps[i].operation, call.steps[i].table.size());
  };
  std::size_t first = 0;
  for (std::size_t i = 0; i < index; ++i) first += output(i);
  TracedCall part;
  part.asked = call.asked;
  part.answered = call.answered;
  part.caller = call.caller;
  part.steps = {call.steps[index]};
  part.id = call.id;
  part.error = call.error;
  part.decision = call.decision;
  part.whole = call.whole && call.steps.size() == 1;
  if (index < call.each.size()) part.each = {call.each[index]};
  if (first + output(index) <= call.output.size()) {
    const auto from = call.output.begin() + static_cast<std::ptrdiff_t>(first);
    part.output.assign(from, from + static_cast<std::ptrdiff_t>(output(index)));
  }
  return part;
}

/// True if `text`, "{alice}:api:10/s", equals `spelt` or continues it with a unit.
inline bool is_spelt(std::string_view text, std::string_view spelt) {
  return text.starts_with(spelt) && (text.size() == spelt.size() || text[spelt.size()] == ':') &&
         spelt.find("}:") != std::string_view::npos;
}

/// True if the step is on `key`, which may be one of several spellings: see calls_on().
inline bool is_about(const TracedStep& step, const Key& key) {
  if (!key.name().empty()) {
    return step.tag == key.tag() && step.name == key.name() &&
           (key.unit().empty() || step.unit == key.unit());
  }
  return step.tag == key.tag() || is_spelt(key_text(step), key.tag()) ||
         is_spelt(render(step.key()), key.tag());
}

}  // namespace detail

/// The calls with a step on `key`, reduced to that step. Without a name, `key` is the first key of
/// its tag in each call, or a text as in traces and exceptions: "{alice}:api:10/s", or
/// "{alice}:api" for any unit. The decisions stay those of the whole plans; all marks stay.
[[nodiscard]] inline Trace calls_on(const Trace& trace, const Key& key) {
  Trace result{{}, trace.marks, trace.start()};
  std::size_t marked = 0;
  for (std::size_t i = 0; i <= trace.calls.size(); ++i) {
    for (; marked < trace.marks.size() && trace.marks[marked].before <= i; ++marked) {
      result.marks[marked].before = result.calls.size();
    }
    if (i == trace.calls.size()) break;
    const auto& steps = trace.calls[i].steps;
    const auto found = std::ranges::find_if(
        steps, [&](const TracedStep& step) { return detail::is_about(step, key); });
    if (found == steps.end()) continue;
    const auto index = static_cast<std::size_t>(found - steps.begin());
    result.calls.push_back(detail::part_of(trace.calls[i], index));
  }
  return result;
}

}  // namespace sluice::testing
