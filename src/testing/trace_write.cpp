// Writes the lines of a trace's text.
#include <algorithm>
#include <cstdlib>

#include "sluice/extend/operation.hpp"
#include "sluice/testing/text.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing::detail {
namespace {

/// "100ms".
std::string span_text(Span span) {
  if (std::abs(span.count()) > word_limit) return std::to_string(span.count()) + "us";
  std::string text = to_text(span);
  std::erase(text, ' ');
  return text;
}

std::string words_text(std::span<const Word> words) {
  std::string out;
  for (const Word word : words) out += (out.empty() ? "" : ",") + std::to_string(word);
  return out.empty() ? "-" : out;
}

std::string id_text(const RequestId& id) {
  const auto name = record_name(id);  // "once:" and 32 hex digits
  return {name.data() + 5, 32};
}

/// A decision as text. `usual` has the step and the time that are omitted.
std::string decision_text(const Decision& d, std::size_t usual_step, Time usual_at) {
  std::string out = std::string(d.allowed ? "allowed " : "refused ") + std::to_string(d.remaining) +
                    '/' + std::to_string(d.limit);
  if (d.retry_after != Span{0}) out += " retry " + span_text(d.retry_after);
  if (d.reset_after != Span{0}) out += " reset " + span_text(d.reset_after);
  if (d.step != usual_step) out += " step " + std::to_string(d.step);
  if (d.part != 0) out += " part " + std::to_string(d.part);
  if (d.at != usual_at) out += " at " + offset_text(d.at - usual_at);
  return out.append(" from ").append(to_string(d.source));
}

}  // namespace

std::string escaped(std::string_view bytes) {
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

std::string key_text(const TracedStep& step) {
  const std::string unit = step.unit.empty() ? "" : ':' + escaped(step.unit);
  return '{' + escaped(step.tag) + "}:" + escaped(step.name) + unit;
}

std::string offset_text(Span since) {
  const std::int64_t us = since.count();
  const auto magnitude = us < 0 ? -static_cast<std::uint64_t>(us) : static_cast<std::uint64_t>(us);
  return (us < 0 ? "-" : "+") + std::to_string(magnitude / 1'000'000) + '.' +
         std::to_string(1'000'000 + magnitude % 1'000'000).substr(1);
}

std::string step_text(const TracedStep& step) {
  const std::size_t count = std::min<std::size_t>(step.operation->argument_count, max_arguments);
  std::string out = std::string(step.operation->name) + ' ' + key_text(step) + ' ' +
                    words_text(std::span(step.args).first(count));
  if (!step.table.empty()) out += " table " + words_text(step.table);
  return out;
}

std::string question_text(std::span<const TracedStep> steps, const std::optional<RequestId>& id) {
  std::string out = id ? "once " + id_text(*id) + ' ' : "";
  for (std::size_t i = 0; i < steps.size(); ++i) out += (i == 0 ? "" : " & ") + step_text(steps[i]);
  return steps.empty() ? out + "nothing" : out;
}

std::string answer_text(const TracedCall& call) {
  if (call.error) {
    const auto step = call.decision.step;
    const auto part = call.decision.part;
    return "error " + to_text(call.error) + (step == 0 ? "" : " step " + std::to_string(step)) +
           (part == 0 ? "" : " part " + std::to_string(part));
  }
  std::string out = decision_text(call.decision, 0, call.asked);
  // The decision on the only step of a plan is that of the plan.
  if (call.each.size() != 1 || call.each.front() != call.decision) {
    for (std::size_t i = 0; i < call.each.size(); ++i) {
      out += " & " + decision_text(call.each[i], i, call.asked);
    }
  }
  if (!call.output.empty()) out += " output " + words_text(call.output);
  return out;
}

std::string call_text(const TracedCall& call, Time start) {
  std::string out = offset_text(call.asked - start) + ' ';
  if (call.answered != call.asked) out += "took " + span_text(call.answered - call.asked) + ' ';
  if (!call.caller.empty()) out += "by " + escaped(call.caller) + ' ';
  if (!call.whole) out += "part-of ";
  return out + question_text(call.steps, call.id) + " -> " + answer_text(call);
}

}  // namespace sluice::testing::detail
