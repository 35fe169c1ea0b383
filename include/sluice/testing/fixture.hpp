// What a unit test of limited code needs, ready made: a clock that stands still, a store on it that
// fails when told to, and a record of all that was asked.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/idle.hpp"
#include "sluice/testing/moments.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::testing {

/// Hand `store` to the code under test. A base or a member of a test case, whatever the framework:
///
///     TEST_CASE_METHOD(sluice::testing::VirtualFixture, "...")              // Catch2
///     class Reminders : public ::testing::Test, protected VirtualFixture {};  // GoogleTest
class VirtualFixture {
 public:
  VirtualClock clock;

 private:
  const std::unique_ptr<Store> behind_ = make_virtual_store(clock);

 public:
  FaultyStore faults{*behind_};  ///< what goes wrong with the calls
  RecordingStore store{faults};  ///< records what the code asked, and what it was told

  /// Moves the clock: `move(at(1s))` to 1 s after the start of the test, `move(after(5ms))` on.
  void move(Moment moment) {
    clock.set((moment.since_last ? clock.now() : VirtualClock::default_start) + moment.span);
  }
  /// Plays a table of moments, which count from the present time.
  Played play(std::initializer_list<Row> rows) { return testing::play(clock, rows); }
  /// Lets everything that waits on the clock go on.
  Span advance_until_idle() { return testing::advance_until_idle(clock); }

  /// Notes a fault, or its end, for recovers_within().
  void mark(sluice::detail::TextArg text) { store.mark(text); }
  [[nodiscard]] Trace trace() const { return store.trace(); }
};

}  // namespace sluice::testing
