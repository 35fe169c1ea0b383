// Unit tests in virtual time: tables of moments (the time of a call, the call, and the expected
// answer), and VirtualFixture: a virtual clock, a store on it with injected faults, and a recording
// of all calls. Threading: one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <system_error>
#include <variant>

#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/matchers.hpp"
#include "sluice/testing/recording_store.hpp"
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
Played play(VirtualClock& clock, std::initializer_list<Row> rows);

/// Moves the clock to the next timer, runs it, and repeats until none is set: all waits have then
/// ended, each at its own time, and so have the waits that followed. Returns how far the clock has
/// moved. Throws std::runtime_error after `most` moves: a timer is set again and again (a renewer,
/// a sampler, a loop), and its owner must be stopped first.
Span advance_until_idle(VirtualClock& clock, std::size_t most = 100'000);

/// Pass `store` to the code under test. A base or a member of a test case in any framework:
///
///     TEST_CASE_METHOD(sluice::testing::VirtualFixture, "...")              // Catch2
///     class Reminders : public ::testing::Test, protected VirtualFixture {};  // GoogleTest
class VirtualFixture {
 public:
  VirtualClock clock;

 private:
  const std::unique_ptr<Store> behind_ = make_virtual_store(clock);

 public:
  FaultyStore faults{*behind_};  ///< injects faults
  RecordingStore store{faults};  ///< records the calls of the code and their answers

  /// Moves the clock: `move(at(1s))` to 1 s after the start of the test, `move(after(5ms))` by 5
  /// ms.
  void move(Moment moment) {
    clock.set((moment.since_last ? clock.now() : VirtualClock::default_start) + moment.span);
  }
  /// Plays a table of moments, which count from now.
  Played play(std::initializer_list<Row> rows) { return testing::play(clock, rows); }
  /// Moves the clock until nothing waits on it.
  Span advance_until_idle() { return testing::advance_until_idle(clock); }

  /// Records a fault, or its end, for recovers_within().
  void mark(sluice::detail::TextArg text) { store.mark(text); }
  [[nodiscard]] Trace trace() const { return store.trace(); }
};

}  // namespace sluice::testing
