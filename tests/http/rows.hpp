// One response of a vendor as a row of a table, and what is made of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

namespace sluice::http {

/// What a row expects of one window; what is not named must not be told.
struct Expected {
  std::string source{};
  std::string name{};
  std::optional<Word> limit{};
  std::optional<Word> remaining{};
  std::optional<Word> used{};
  std::optional<Span> reset{};
  std::optional<Span> length{};
  std::optional<Span> interval{};
  std::string resource{};
  std::string partition{};
  std::string unit{};
};

struct Row {
  std::string who;
  HeaderLines lines;
  std::optional<Span> retry_after{};
  std::vector<Expected> windows{};
  std::string scope{};
  std::string reason{};
};

inline void check(const Row& row) {
  CAPTURE(row.who);
  const Feedback feedback = parse_lines(row.lines);
  CHECK(feedback.retry_after == row.retry_after);
  CHECK(feedback.scope.view() == row.scope);
  CHECK(feedback.reason.view() == row.reason);
  REQUIRE(feedback.windows().size() == row.windows.size());
  for (std::size_t i = 0; i < row.windows.size(); ++i) {
    const Window& window = feedback.windows()[i];
    const Expected& expected = row.windows[i];
    CAPTURE(i, expected.name);
    CHECK(window.source.view() == expected.source);
    CHECK(window.name.view() == expected.name);
    CHECK(window.limit == expected.limit);
    CHECK(window.remaining == expected.remaining);
    CHECK(window.reset == expected.reset);
    CHECK(window.used == expected.used);
    CHECK(window.length == expected.length);
    CHECK(window.interval == expected.interval);
    CHECK(window.resource.view() == expected.resource);
    CHECK(window.partition.view() == expected.partition);
    CHECK(window.unit.view() == expected.unit);
  }
  for (const Note& note : feedback.notes()) {
    CAPTURE(note.header, text(note.fate));
    CHECK((note.fate == Fate::used || note.fate == Fate::superseded));
  }
}

}  // namespace sluice::http
