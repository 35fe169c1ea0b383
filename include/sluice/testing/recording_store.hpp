// RecordingStore: records every plan, its outcome and the times of both, in front of another store.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/detail/in_flight.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing {

/// The recording of one or several RecordingStores. Thread-safe.
class Recording {
 public:
  /// Calls beyond `max_calls` are passed on and counted, but not recorded.
  explicit Recording(std::size_t max_calls = 1'000'000) : max_calls_(max_calls) {}

  /// The answered calls so far, in the order in which they were made.
  [[nodiscard]] Trace trace() const;

  /// Adds a mark between two calls. Line breaks in `text` become spaces.
  void mark(Time at, sluice::detail::TextArg given);

  /// Clears the recording. Pending calls are not recorded.
  void clear();

  /// The number of calls beyond max_calls.
  [[nodiscard]] std::size_t left_out() const;

 private:
  friend class RecordingStore;

  /// The index of the next call, or none if there is no room. Throws std::bad_alloc.
  std::optional<std::size_t> begin();
  void end(std::size_t place, TracedCall call) noexcept;

  const std::size_t max_calls_;
  mutable std::mutex mutex_;
  std::deque<std::optional<TracedCall>> calls_;  // empty until it is answered
  std::vector<Mark> marks_;
  std::size_t first_ = 0;  // the index of calls_[0]
  std::size_t left_out_ = 0;
};

/// Records the calls to another store, and changes no answer.
///
///     RecordingStore store(*inner);
///     const TokenBucket bucket(store, "api", Quota::per_second(10));
///     ...
///     CHECK_THAT(store.trace(), never_exceeds(10, 1s));
///
/// To record the callers, give each worker its own RecordingStore on one Recording. The destructor
/// fails pending calls with Errc::unknown. Costs a few allocations a call. REQUIRES: the inner
/// store and the recording outlive it.
class RecordingStore final : public StoreWrapper {
 public:
  /// Makes its own recording.
  explicit RecordingStore(Store& inner);
  /// Uses a shared recording, in which its calls have this caller.
  RecordingStore(Store& inner, Recording& recording, sluice::detail::TextArg caller);
  ~RecordingStore() override;

  void execute(const Plan& plan, Completion done) noexcept override;

  [[nodiscard]] Recording& recording() noexcept { return recording_; }
  /// As Recording::trace(), mark() (now) and clear().
  [[nodiscard]] Trace trace() const { return recording_.trace(); }
  void mark(sluice::detail::TextArg text) { recording_.mark(clock().now(), text); }
  void clear() { recording_.clear(); }

 private:
  class Call;

  std::unique_ptr<Recording> own_;
  Recording& recording_;
  std::string caller_;
  sluice::detail::InFlight in_flight_;
};

}  // namespace sluice::testing
