// A call in the queues of the limits that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/time.hpp"

namespace sluice::detail {

class TurnInLine;
class WaitQueues;
struct WaitQueue;

/// What a call remembers of a limit while it waits for several: how long it has waited for it, and
/// whether something came back to it since the call has asked. Under the mutex of the waits.
class Standing {
 public:
  /// The call comes to the queue of the limit, or asks.
  void ask(const WaitQueue& queue) noexcept;
  /// The limit has no units before this, unless some come back.
  void refuse(Time until) noexcept { refused_until_ = until; }
  [[nodiscard]] Time refused_until(const WaitQueue& queue) const noexcept;
  /// Whether something came back since the call asked, or a turn did.
  [[nodiscard]] bool was_woken(const WaitQueue& queue) const noexcept;
  /// Whether something came back that the call does not know.
  [[nodiscard]] bool is_released(const WaitQueue& queue) const noexcept;
  void note_release(const WaitQueue& queue) noexcept;

  /// The call was first there for so long, and was then refused by another limit.
  void add_wait(Span span) noexcept { waited_ += span; }
  [[nodiscard]] bool has_waited() const noexcept { return waited_ > Span{0}; }
  [[nodiscard]] bool has_waited(Span span) const noexcept { return waited_ >= span; }
  /// It keeps its turn for as long.
  void keep_turn(Time now) noexcept { keeps_until_ = now + waited_; }
  [[nodiscard]] bool keeps_turn(Time now) const noexcept { return now <= keeps_until_; }
  [[nodiscard]] Time lapses_at() const noexcept { return keeps_until_ + Span{1}; }

 private:
  Span waited_{0};
  Time keeps_until_{};
  Time refused_until_{};
  std::uint64_t wakes_ = 0;     // of the queue
  std::uint64_t releases_ = 0;  // ...
};

/// What a call claims of one limiter.
struct Place {
  std::shared_ptr<WaitQueues> queues;
  std::string key;  ///< which of the queues
  Word units = 1;
  bool freed_early = false;
  WaitQueue* queue = nullptr;  ///< while the call waits
  bool is_in_line = false;     ///< its home, or one that it keeps for its return
  Standing standing{};
};

/// A call in the queues of its limits, with what these know of it. It waits in one at a time, its
/// home: of the first claim, then of the limiter that has refused it. There it keeps its place
/// among all callers, and wherever it has waited in vain, it is before all that come later; see
/// WaitQueue. Everything runs under the mutex of the waits.
class QueuedCall {
 protected:
  friend class TurnInLine;
  friend class WaitQueues;
  friend struct WaitQueue;

  /// From queue to queue, before it asks.
  static constexpr std::size_t most_moves = 32;

  QueuedCall(ClaimedLimits limits, const Deadline& deadline, Caller caller);

  [[nodiscard]] Place& home() noexcept { return places_[home_]; }
  [[nodiscard]] const Place& home() const noexcept { return places_[home_]; }
  [[nodiscard]] const ClaimedLimit& limit() const noexcept { return *limits_[home_]; }
  void take_places();
  void leave_places() noexcept;
  [[nodiscard]] bool quit_home() noexcept;
  [[nodiscard]] std::size_t place_at(std::size_t limit) const noexcept;
  [[nodiscard]] std::optional<std::size_t> place_in(const WaitQueue& queue) const noexcept;
  [[nodiscard]] bool is_first() const noexcept;
  [[nodiscard]] Word own_units() const noexcept;
  [[nodiscard]] bool shares_flow_with(const QueuedCall& other) const noexcept;
  // When it asks.
  void note_ask(Time now) noexcept;
  [[nodiscard]] bool was_woken() const noexcept;
  [[nodiscard]] Time units_at(std::size_t index, Time now) const noexcept;
  [[nodiscard]] Time pause_end(Time now) const noexcept { return units_at(home_, now); }
  [[nodiscard]] Time recheck_at() const noexcept;
  // Between queues.
  [[nodiscard]] std::optional<std::size_t> slower_limit(Time now) const noexcept;
  [[nodiscard]] std::optional<std::size_t> sleeper_ahead() const noexcept;
  [[nodiscard]] bool keeps_turn(std::size_t index, std::size_t next, Span hint) const noexcept;
  void keep_turns(std::size_t next, Time asked, Span hint) noexcept;
  [[nodiscard]] Time next_lapse() const noexcept;

  ClaimedLimits limits_;
  Clock& clock_;
  bool may_leave_ = false;  // it may be granted elsewhere, and take nothing here
  bool rechecks_;           // others may give back what this one waits for, or its limit may change
  Time deadline_;
  Caller caller_;
  Arrival arrival_{};
  std::vector<Place> places_;  // of limits_
  std::size_t home_ = 0;
  std::size_t moves_ = 0;    // since it asked or slept
  bool is_at_home_ = false;  // it is in that queue
  Time joined_{};            // when it came to it
  Time asked_at_{};          // when it last asked all its limits
};

}  // namespace sluice::detail
