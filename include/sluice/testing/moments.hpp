// Unit tests as tables of moments: the time of a call, the call, and the expected answer.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "sluice/testing/matchers.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::testing {

/// The time of a row of a table.
struct Moment {
  Span span;
  bool since_last;
};

/// This long after the start of the table.
[[nodiscard]] constexpr Moment at(Span since_start) noexcept { return {since_start, false}; }
/// This long after the previous row, or after the start.
[[nodiscard]] constexpr Moment after(Span since_last) noexcept { return {since_last, true}; }

/// Expects that the call fails with this error.
struct Fails {
  std::error_code error;
};
[[nodiscard]] inline Fails fails(std::error_code error) noexcept { return {error}; }

/// One row: a time, a call, and the expected answer. The call throws std::system_error to fail, as
/// the throwing forms of the limiters do.
struct Row {
  Moment when;
  std::function<Decision()> ask;
  std::variant<DecisionMatcher, Fails> expected;
};

/// The result of a table: true if every row had the expected answer.
struct Played {
  std::string failures;  ///< a line for each row that had not

  [[nodiscard]] explicit operator bool() const noexcept { return failures.empty(); }
};

namespace detail {

/// How the answer to a row was wrong, or an empty text.
inline std::string play_row(const Row& row) {
  const auto* const error = std::get_if<Fails>(&row.expected);
  try {
    const Decision decision = row.ask();
    if (error != nullptr) {
      return "expected the error " + to_text(error->error) + ", it was " + to_string(decision);
    }
    const auto& matcher = std::get<DecisionMatcher>(row.expected);
    const Checked broken = matcher.check(decision);
    return broken ? "expected that it " + matcher.description() + ", " + broken->what : "";
  } catch (const std::system_error& thrown) {
    if (error != nullptr && thrown.code() == error->error) return {};
    const std::string expected =
        error != nullptr
            ? "expected the error " + to_text(error->error)
            : "expected that it " + std::get<DecisionMatcher>(row.expected).description();
    return expected + ", it failed: " + to_text(thrown.code());
  }
}

}  // namespace detail

/// Plays every row, with the clock moved to its time:
///
///     const auto take = [&] { return bucket.try_acquire("alice"); };
///     CHECK(play(clock, {
///         {at(0s), take, allowed(0)},
///         {at(99ms), take, refused(1ms)},
///         {after(1ms), take, allowed(0)},
///     }));
///
/// Rows may set the clock back. Throws exceptions of a call other than std::system_error, and
/// std::out_of_range as VirtualClock::advance() does.
inline Played play(VirtualClock& clock, std::initializer_list<Row> rows) {
  Played played;
  const Time start = clock.now();
  std::size_t number = 0;
  for (const Row& row : rows) {
    ++number;
    const Time when = (row.when.since_last ? clock.now() : start) + row.when.span;
    if (when != clock.now()) clock.set(when);
    const std::string wrong = detail::play_row(row);
    if (wrong.empty()) continue;
    played.failures +=
        "row " + std::to_string(number) + ", at " + to_text(when - start) + ": " + wrong + '\n';
  }
  return played;
}

}  // namespace sluice::testing
