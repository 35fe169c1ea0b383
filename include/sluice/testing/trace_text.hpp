// The text of a trace: one line a call, deterministic, so that it can be stored next to a test and
// reviewed.
// clang-format off
//     sluice-trace 1 from 946684800000000
//     +0.000000 token_bucket.acquire {alice}:api 1,1,100000,100000,1021,1 -> allowed 0/1 reset 100ms from virtual
//     +0.099999 token_bucket.acquire {alice}:api 1,1,100000,100000,1021,1 -> refused 0/1 retry 1us reset 1us from virtual
//     +0.100000 # the server restarts
//     +0.100000 token_bucket.acquire {alice}:api 1,1,100000,100000,1021,1 -> error timed_out
// clang-format on
// The first line has the version and the microsecond from which times count. A line of a call has
// its time, how long it took and its caller (if they are not the default), its steps with `&`
// between them, `->`, and the plan's decision, followed by those of the steps if there are several.
// A `#` after the time begins a mark. Lines that begin with `#`, and empty ones, are skipped.
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sluice/testing/detail/trace_read.hpp"
#include "sluice/testing/detail/trace_write.hpp"
#include "sluice/testing/history.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing {

/// The trace as text. Arguments that an operation does not use are omitted.
[[nodiscard]] inline std::string to_text(const Trace& trace) {
  const Time start = trace.start();
  std::string out(detail::trace_title);
  out += std::to_string(to_word(start)) + '\n';
  std::size_t marked = 0;
  for (std::size_t i = 0; i <= trace.calls.size(); ++i) {
    for (; marked < trace.marks.size() && trace.marks[marked].before <= i; ++marked) {
      const Mark& mark = trace.marks[marked];
      out += detail::offset_text(mark.at - start) + " # " + mark.text + '\n';
    }
    if (i < trace.calls.size()) out += detail::call_text(trace.calls[i], start) + '\n';
  }
  return out;
}

/// The first lines of to_text(), and the number of omitted ones.
[[nodiscard]] inline std::string excerpt(const Trace& trace, std::size_t lines = 20) {
  std::string text = to_text(trace);
  std::size_t end = 0;
  for (; lines > 0 && end < text.size(); --lines) end = text.find('\n', end) + 1;
  const auto left = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  text.resize(end);
  return left == 0 ? text : text + "... and " + std::to_string(left) + " lines more\n";
}

/// Parses the output of to_text(). Throws std::invalid_argument with the number of the line and the
/// reason: `line 3: expected a key such as {tag}:name, got "alice"`. Errors of other categories
/// than "sluice", "generic" and "system" can be written, but not read.
[[nodiscard]] inline Trace parse_trace(sluice::detail::TextArg given) {
  std::string_view text = given;
  Trace trace;
  bool titled = false;
  Time start{};
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view content = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), content.size() + 1));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.empty() || content.starts_with('#')) continue;
    try {
      if (!titled) {
        if (!content.starts_with(detail::trace_title)) {
          detail::expected('"' + std::string(detail::trace_title) + "...\"", content);
        }
        detail::Cursor title(content.substr(detail::trace_title.size()));
        start = to_time(title.number<Word>("microseconds since 1970"));
        if (!title.at_end() || start < Time{} || start > to_time(word_limit)) {
          detail::expected("microseconds from 0 to 2^52", content);
        }
        titled = true;
        continue;
      }
      detail::Cursor line(content);
      const Time at = start + detail::read_offset(line);
      if (line.take_if("#")) {
        trace.marks.push_back({at, trace.calls.size(), std::string(line.rest())});
      } else {
        trace.calls.push_back(detail::read_call(line, at));
      }
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("line " + std::to_string(number) + ": " + error.what());
    }
  }
  if (!titled) throw std::invalid_argument("line 1: a trace begins with its title");
  return trace;
}

/// Writes to_text() to a file. Throws std::runtime_error with the path.
inline void save_trace(const Trace& trace, sluice::detail::TextArg to) {
  const std::string path(to.view());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_text(trace);
  file.close();
  if (!file) throw std::runtime_error("cannot write the trace to " + path);
}

/// Reads a file. Throws std::runtime_error with the path if it cannot be read, else as
/// parse_trace(), with the path in front.
[[nodiscard]] inline Trace load_trace(sluice::detail::TextArg from) {
  const std::string path(from.view());
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw std::runtime_error("cannot read the trace from " + path);
  try {
    return parse_trace(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

/// The first difference of two traces, "line 3: expected ..., got ...", or empty.
[[nodiscard]] inline Checked find_difference(const Trace& expected, const Trace& got) {
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
