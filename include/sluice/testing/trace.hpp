// Trace: the calls to a store with their times and answers, which RecordingStore records and
// matchers.hpp checks; and its text: one line a call, deterministic, so that it can be stored next
// to a test and reviewed.
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
// Plain values, and pure functions of them.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "sluice/decision.hpp"
#include "sluice/detail/arguments.hpp"
#include "sluice/plan.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"

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
  explicit TracedStep(const Step& step);

  /// A view of it.
  [[nodiscard]] Step step() const { return {operation, key(), args, nullptr, table}; }
  [[nodiscard]] Key key() const { return Key{tag, name}.with_unit(unit); }

  /// Equal steps; copies of an operation are equal.
  friend bool operator==(const TracedStep& a, const TracedStep& b);
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
  [[nodiscard]] Time start() const noexcept;

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// The calls with a step on `key`, reduced to that step. Without a name, `key` is the first key of
/// its tag in each call, or a text as in traces and exceptions: "{alice}:api:10/s", or
/// "{alice}:api" for any unit. The decisions stay those of the whole plans; all marks stay.
[[nodiscard]] Trace calls_on(const Trace& trace, const Key& key);

/// The trace as text. Arguments that an operation does not use are omitted.
[[nodiscard]] std::string to_text(const Trace& trace);

/// The first lines of to_text(), and the number of omitted ones.
[[nodiscard]] std::string excerpt(const Trace& trace, std::size_t lines = 20);

/// Parses the output of to_text(). Throws std::invalid_argument with the number of the line and the
/// reason: `line 3: expected a key such as {tag}:name, got "alice"`. Errors of other categories
/// than "sluice", "generic" and "system" can be written, but not read.
[[nodiscard]] Trace parse_trace(sluice::detail::TextArg given);

/// Writes to_text() to a file. Throws std::runtime_error with the path.
void save_trace(const Trace& trace, sluice::detail::TextArg to);

/// Reads a file. Throws std::runtime_error with the path if it cannot be read, else as
/// parse_trace(), with the path in front.
[[nodiscard]] Trace load_trace(sluice::detail::TextArg from);

/// The first difference of two traces, "line 3: expected ..., got ...", or empty.
[[nodiscard]] Checked find_difference(const Trace& expected, const Trace& got);

}  // namespace sluice::testing
