// Traces as values: their parts, and where two differ.
#include "sluice/testing/trace.hpp"

#include <algorithm>

#include "sluice/extend/operation.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing {
namespace detail {
namespace {

/// True if `text`, "{alice}:api:10/s", equals `spelt` or continues it with a unit.
bool is_spelt(std::string_view text, std::string_view spelt) {
  return text.starts_with(spelt) && (text.size() == spelt.size() || text[spelt.size()] == ':') &&
         spelt.find("}:") != std::string_view::npos;
}

/// True if the step is on `key`, which may be one of several spellings: see calls_on().
bool is_about(const TracedStep& step, const Key& key) {
  if (!key.name().empty()) {
    return step.tag == key.tag() && step.name == key.name() &&
           (key.unit().empty() || step.unit == key.unit());
  }
  return step.tag == key.tag() || is_spelt(key_text(step), key.tag()) ||
         is_spelt(render(step.key()), key.tag());
}

}  // namespace

TracedCall part_of(const TracedCall& call, std::size_t index) {
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

}  // namespace detail

TracedStep::TracedStep(const Step& step)
    : operation(step.operation),
      tag(step.key.tag()),
      name(step.key.name()),
      unit(step.key.unit()),
      args(step.args),
      table(step.table.begin(), step.table.end()) {}

bool operator==(const TracedStep& a, const TracedStep& b) {
  return a.operation->name == b.operation->name && a.tag == b.tag && a.name == b.name &&
         a.unit == b.unit && a.args == b.args && a.table == b.table;
}

Time Trace::start() const noexcept {
  if (origin) return *origin;
  if (calls.empty() && marks.empty()) return {};
  if (calls.empty()) return marks.front().at;
  if (marks.empty()) return calls.front().asked;
  return std::min(calls.front().asked, marks.front().at);
}

Trace calls_on(const Trace& trace, const Key& key) {
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

Checked find_difference(const Trace& expected, const Trace& got) {
  const std::string left = to_text(expected);
  const std::string right = to_text(got);
  std::string_view a = left;
  std::string_view b = right;
  const auto next = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  for (std::size_t number = 1; !a.empty() || !b.empty(); ++number) {
    const bool a_over = a.empty();
    const bool b_over = b.empty();
    const std::string_view from_a = next(a);
    const std::string_view from_b = next(b);
    if (from_a == from_b && a_over == b_over) continue;
    const auto shown = [](std::string_view line, bool over) {
      return over ? std::string("the end") : '"' + std::string(line) + '"';
    };
    return Breach{"line " + std::to_string(number) + " of the trace: expected " +
                      shown(from_a, a_over) + ", got " + shown(from_b, b_over),
                  0};
  }
  return {};
}

}  // namespace sluice::testing
