// ReplayingStore: answers from a recording, and reports calls that differ from it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "sluice/store.hpp"
#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::testing {

/// The errors of a ReplayingStore. Nothing was executed.
enum class ReplayErrc {
  asked_differently = 1,  ///< the recording has another call here; see differences()
  over = 2,               ///< the recording has no more calls
};

/// The category of ReplayErrc, named "sluice.replay".
[[nodiscard]] const std::error_category& replay_category() noexcept;

[[nodiscard]] std::error_code make_error_code(ReplayErrc code) noexcept;

/// How calls must match the recording.
struct ReplayOptions {
  /// The order of the calls.
  enum class Order : std::uint8_t {
    as_recorded,  ///< one after the other
    any,          ///< the first equal recorded call answers: for threads
  };
  Order order = Order::as_recorded;
  /// The time of the calls.
  enum class Times : std::uint8_t {
    any,     ///< the clock is not moved, and a call may come at any time
    follow,  ///< the clock is moved to the time of the recorded call
    same,    ///< a call at another time is a difference
  };
  Times times = Times::any;
  /// Whether request ids must equal the recorded ones; otherwise only their presence is compared.
  bool same_ids = false;
};

/// Answers each call as in the recording: decisions, output words and errors, at once. A different
/// call fails with ReplayErrc::asked_differently and is reported; the recording then continues
/// after it. Thread-safe.
///
///     VirtualClock clock;
///     ReplayingStore store(load_trace("orders.trace"), clock);
///     run_the_code(store);
///     CHECK(store.report() == "");
///
/// REQUIRES: the clock outlives it, and with Times::follow nothing else moves it.
class ReplayingStore final : public Store {
 public:
  ReplayingStore(Trace trace, VirtualClock& clock, ReplayOptions options = {});

  void execute(const Plan& plan, Completion done) noexcept override;

  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

  /// The differences, each as "call 3: expected ... at +1.5 s, got ... at +2 s". Calls count from
  /// 1, times from the first recorded call.
  [[nodiscard]] std::vector<std::string> differences() const;

  /// The number of recorded calls that were not made.
  [[nodiscard]] std::size_t unasked() const;

  /// Empty if exactly the recorded calls were made; else a line for each difference.
  [[nodiscard]] std::string report() const;

 private:
  [[nodiscard]] std::string question(const TracedCall& call) const;

  [[nodiscard]] bool same(const TracedCall& a, const TracedCall& b) const;

  /// The recorded call, or one with only an error.
  TracedCall find(const Plan& plan);

  TracedCall differ(const TracedCall& asked);

  VirtualClock& clock_;
  const ReplayOptions options_;
  const Time start_;
  mutable std::mutex mutex_;
  std::deque<TracedCall> left_;
  std::size_t calls_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace sluice::testing

template <>
struct std::is_error_code_enum<sluice::testing::ReplayErrc> : std::true_type {};
