// Tables of moments, and the moves of a virtual clock from timer to timer.
#include "sluice/testing/fixture.hpp"

#include <stdexcept>

namespace sluice::testing {
namespace {

/// How the answer to a row was wrong, or an empty text.
std::string play_row(const Row& row) {
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

}  // namespace

Played play(VirtualClock& clock, std::initializer_list<Row> rows) {
  Played played;
  const Time start = clock.now();
  std::size_t number = 0;
  for (const Row& row : rows) {
    ++number;
    const Time when = (row.when.since_last ? clock.now() : start) + row.when.span;
    if (when != clock.now()) clock.set(when);
    const std::string wrong = play_row(row);
    if (wrong.empty()) continue;
    played.failures +=
        "row " + std::to_string(number) + ", at " + to_text(when - start) + ": " + wrong + '\n';
  }
  return played;
}

Span advance_until_idle(VirtualClock& clock, std::size_t most) {
  const Time start = clock.now();
  std::size_t moves = 0;
  while (clock.timers() > 0) {
    if (moves++ == most) {
      throw std::runtime_error("advance_until_idle: after " + std::to_string(most) +
                               " moves, the clock " + to_text(clock.now() - start) + " on, " +
                               std::to_string(clock.timers()) +
                               " timers are still set: something waits again and again");
    }
    clock.advance_to_next();
  }
  return clock.now() - start;
}

}  // namespace sluice::testing
