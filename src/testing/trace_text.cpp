// The text of a whole trace, and files of it.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "sluice/testing/trace.hpp"
#include "src/testing/cursor.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing {

std::string to_text(const Trace& trace) {
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

std::string excerpt(const Trace& trace, std::size_t lines) {
  std::string text = to_text(trace);
  std::size_t end = 0;
  for (; lines > 0 && end < text.size(); --lines) end = text.find('\n', end) + 1;
  const auto left = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  text.resize(end);
  return left == 0 ? text : text + "... and " + std::to_string(left) + " lines more\n";
}

Trace parse_trace(sluice::detail::TextArg given) {
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

void save_trace(const Trace& trace, sluice::detail::TextArg to) {
  const std::string path(to.view());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_text(trace);
  file.close();
  if (!file) throw std::runtime_error("cannot write the trace to " + path);
}

Trace load_trace(sluice::detail::TextArg from) {
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

}  // namespace sluice::testing
