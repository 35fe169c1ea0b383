// VirtualFixture: a virtual clock, a store on it with injected faults, and a recording of all
// calls.
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
