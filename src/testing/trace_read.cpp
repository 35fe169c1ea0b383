// Parses the lines of a trace's text. Every function throws std::invalid_argument with the expected
// and the actual text.
#include <algorithm>
#include <stdexcept>

#include "sluice/extend/operation.hpp"
#include "sluice/testing/text.hpp"
#include "src/core/error_names.hpp"
#include "src/testing/cursor.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing::detail {
namespace {

std::string unescaped(std::string_view text, std::string_view what) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto byte =
        i + 2 < text.size() ? parse_number<unsigned char>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!byte) expected(std::string(what) + " with % and two hex digits", text);
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

Span read_span(Cursor& line) {
  const std::string_view word = line.peek();
  const bool negative = word.starts_with('-');
  const auto span = parse_span(negative ? word.substr(1) : word);
  if (!span) expected("a length of time such as 100ms", word);
  line.take();
  return negative ? -*span : *span;
}

std::vector<Word> read_words(Cursor& line, std::string_view what, std::size_t most) {
  std::vector<Word> words;
  std::string_view left = line.peek();
  if (left == "-") left = {};
  while (!left.empty()) {
    const auto comma = left.find(',');
    const auto word = parse_number<Word>(left.substr(0, comma));
    if (!word || words.size() == most || comma == left.size() - 1) {
      expected(std::string(what) + ", at most " + std::to_string(most) + " numbers with commas",
               line.peek());
    }
    words.push_back(*word);
    left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
  }
  line.take();
  return words;
}

const Operation* read_operation(Cursor& line) {
  for (const Operation* const row : operations()) {
    if (row->name == line.peek()) {
      line.take();
      return row;
    }
  }
  expected("the name of an operation such as token_bucket.acquire", line.peek());
}

TracedStep read_step(Cursor& line) {
  TracedStep step;
  step.operation = read_operation(line);
  const std::string_view key = line.peek();
  const auto end = key.find("}:");
  if (!key.starts_with('{') || end == std::string_view::npos) {
    expected("a key such as {tag}:name", key);
  }
  step.tag = unescaped(key.substr(1, end - 1), "a tag");
  const std::string_view rest = key.substr(end + 2);
  const auto name_end = std::min(rest.find(':'), rest.size());
  step.name = unescaped(rest.substr(0, name_end), "a name");
  if (name_end < rest.size()) step.unit = unescaped(rest.substr(name_end + 1), "a unit");
  line.take();
  const auto args = read_words(line, "arguments", max_arguments);
  if (args.size() != step.operation->argument_count) {
    throw std::invalid_argument("expected " + std::to_string(step.operation->argument_count) +
                                " arguments of " + std::string(step.operation->name) + ", got " +
                                std::to_string(args.size()));
  }
  std::ranges::copy(args, step.args.begin());
  if (line.take_if("table")) step.table = read_words(line, "a table", max_table_words);
  return step;
}

RequestId read_id(Cursor& line) {
  const std::string_view word = line.peek();
  const auto half = [&](std::size_t first) {
    const auto value =
        word.size() == 32 ? parse_number<std::uint64_t>(word.substr(first, 16), 16) : std::nullopt;
    if (!value) expected("an id of 32 hex digits", word);
    return *value;
  };
  const RequestId id{half(0), half(16)};
  line.take();
  return id;
}

Source read_source(Cursor& line) {
  line.require("from");
  for (const Source source : {Source::memory, Source::virtual_store, Source::redis, Source::other,
                              Source::fallback, Source::policy, Source::prefetched}) {
    if (to_string(source) != line.peek()) continue;
    line.take();
    return source;
  }
  expected("memory, virtual, redis, other, fallback, policy or prefetched", line.peek());
}

Decision read_decision(Cursor& line, std::size_t usual_step, Time usual_at) {
  Decision d;
  d.allowed = line.take_if("allowed");
  if (!d.allowed && !line.take_if("refused")) expected("allowed, refused or error", line.peek());
  const std::string_view left = line.peek();
  const auto slash = left.find('/');
  const auto remaining = parse_number<Word>(left.substr(0, slash));
  const auto limit =
      slash == std::string_view::npos ? std::nullopt : parse_number<Word>(left.substr(slash + 1));
  if (!remaining || !limit) expected("what remains and the limit, such as 4/5", left);
  line.take();
  d.remaining = *remaining;
  d.limit = *limit;
  if (line.take_if("retry")) d.retry_after = read_span(line);
  if (line.take_if("reset")) d.reset_after = read_span(line);
  d.step = line.take_if("step") ? line.number<std::uint16_t>("a step")
                                : static_cast<std::uint16_t>(usual_step);
  if (line.take_if("part")) d.part = line.number<std::uint16_t>("a part");
  d.at = line.take_if("at") ? usual_at + read_offset(line) : usual_at;
  d.source = read_source(line);
  return d;
}

/// "timed_out", "sluice:90", "system:110".
std::error_code read_error(Cursor& line) {
  const std::string_view word = line.peek();
  if (const auto code = sluice::detail::find_errc(word)) {
    line.take();
    return *code;
  }
  const auto colon = word.find(':');
  const auto value =
      colon == std::string_view::npos ? std::nullopt : parse_number<int>(word.substr(colon + 1));
  const std::error_category* category = nullptr;
  for (const std::error_category* const known :
       {&error_category(), &std::generic_category(), &std::system_category()}) {
    if (value && word.substr(0, colon) == known->name()) category = known;
  }
  if (category == nullptr || *value == 0) {
    expected("the name of an error such as timed_out, or generic:110", word);
  }
  line.take();
  return {*value, *category};
}

void read_answer(Cursor& line, TracedCall& call) {
  if (line.take_if("error")) {
    call.error = read_error(line);
    if (line.take_if("step")) call.decision.step = line.number<std::uint16_t>("a step");
    if (line.take_if("part")) call.decision.part = line.number<std::uint16_t>("a part");
    return;
  }
  call.decision = read_decision(line, 0, call.asked);
  while (line.take_if("&")) {
    call.each.push_back(read_decision(line, call.each.size(), call.asked));
  }
  if (call.each.empty()) call.each.push_back(call.decision);
  if (call.each.size() != call.steps.size()) {
    throw std::invalid_argument("expected a decision for each of " +
                                std::to_string(call.steps.size()) + " steps, got " +
                                std::to_string(call.each.size()));
  }
  if (line.take_if("output")) {
    call.output = read_words(line, "output", Plan::max_steps * max_output);
  }
}

}  // namespace

Span read_offset(Cursor& line) {
  const std::string_view word = line.peek();
  const auto point = word.find('.');
  const bool signed_ = word.starts_with('+') || word.starts_with('-');
  if (!signed_ || point == std::string_view::npos || word.size() != point + 7) {
    expected("a time such as +1.500000", word);
  }
  const auto seconds = parse_number<std::uint64_t>(word.substr(1, point - 1));
  const auto micros = parse_number<std::uint32_t>(word.substr(point + 1));
  if (!seconds || !micros || *seconds > static_cast<std::uint64_t>(word_limit / 1'000'000)) {
    expected("a time such as +1.500000", word);
  }
  line.take();
  const auto us = static_cast<std::int64_t>(*seconds) * 1'000'000 + *micros;
  return Span{word.front() == '-' ? -us : us};
}

TracedCall read_call(Cursor& line, Time asked) {
  TracedCall call;
  call.asked = asked;
  call.answered = asked + (line.take_if("took") ? read_span(line) : Span{0});
  if (line.take_if("by")) call.caller = unescaped(line.take(), "a caller");
  call.whole = !line.take_if("part-of");
  if (line.take_if("once")) call.id = read_id(line);
  if (!line.take_if("nothing")) {
    do call.steps.push_back(read_step(line));
    while (line.take_if("&"));
  }
  line.require("->");
  read_answer(line, call);
  if (!line.at_end()) expected("the end of the line", line.rest());
  return call;
}

}  // namespace sluice::testing::detail
