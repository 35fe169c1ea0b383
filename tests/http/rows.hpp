// Tables of responses as text, and what is told of each. A table has a line with the name of each
// response, lines with its headers and lines with what is told, which is all that is told:
//
//     Azure OpenAI
//     < retry-after-ms: 20 | retry-after: 1
//     > retry 20ms, wait 20ms
//     Kong
//     < X-RateLimit-Limit-Minute: 10 | X-RateLimit-Remaining-Minute: 9
//     > x-ratelimit minute: limit 10, remaining 9
#pragma once

#include <sstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

namespace sluice::http {

/// The fields that are told, in the form "name value, name value".
class Told {
 public:
  void add(const char* name, const std::optional<Word>& count) {
    if (count) put(name, std::to_string(*count));
  }
  void add(const char* name, const std::optional<Span>& span) {
    if (!span) return;
    const Word us = span->count();
    put(name, us % 1'000'000 == 0 ? std::to_string(us / 1'000'000) + "s"
              : us % 1'000 == 0   ? std::to_string(us / 1'000) + "ms"
                                  : std::to_string(us) + "us");
  }
  void add(const char* name, const Text& text) {
    if (!text.empty()) put(name, std::string(text.view()));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void put(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + std::string(name) + " " + value;
  }
  std::string text_;
};

inline std::string to_text(const Window& window) {
  Told told;
  told.add("limit", window.limit);
  told.add("remaining", window.remaining);
  told.add("used", window.used);
  told.add("reset", window.reset);
  told.add("length", window.length);
  told.add("interval", window.interval);
  told.add("resource", window.resource);
  told.add("partition", window.partition);
  told.add("unit", window.unit);
  const std::string name(window.name.view());
  return std::string(window.source.view()) + (name.empty() ? "" : " " + name) + ": " + told.text();
}

/// Lines of what is told, each with its end.
inline std::string to_text(const Feedback& feedback) {
  Told told;
  told.add("retry", feedback.retry_after);
  told.add("wait", feedback.wait());
  told.add("scope", feedback.scope);
  told.add("reason", feedback.reason);
  std::string text = told.text().empty() ? "" : told.text() + "\n";
  for (const Window& window : feedback.windows()) text += to_text(window) + "\n";
  return text;
}

/// Adds "name: value | name: value".
inline void add_headers(HeaderLines& lines, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t colon = text.find(": ", at);
    const std::size_t end = std::min(text.find(" | ", colon), text.size());
    lines.emplace_back(text.substr(at, colon - at), text.substr(colon + 2, end - colon - 2));
    at = end + 3;
  }
}

inline void check_told(const std::string& name, const HeaderLines& lines, const std::string& told) {
  CAPTURE(name);
  const Feedback feedback = parse_lines(lines);
  CHECK(to_text(feedback) == told);
  for (const Note& note : feedback.notes()) {
    CAPTURE(note.header, text(note.fate));
    CHECK((note.fate == Fate::used || note.fate == Fate::superseded));
  }
}

inline void check_table(const std::string& table) {
  std::istringstream rows(table);
  std::string name, told;
  HeaderLines lines;
  for (std::string line; std::getline(rows, line);) {
    if (line.starts_with("< ")) {
      add_headers(lines, line.substr(2));
    } else if (line.starts_with("> ")) {
      told += line.substr(2) + "\n";
    } else {
      if (!lines.empty()) check_told(name, lines, told);
      name = line;
      told.clear();
      lines.clear();
    }
  }
  check_told(name, lines, told);
}

}  // namespace sluice::http
