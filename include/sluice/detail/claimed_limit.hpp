// What a wait must know of a limiter. src/waiting/claim_of.hpp implements most of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/reservation.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

class WaitQueues;

/// One object for each type, so that a grant is only read as what it is.
template <class T>
inline constexpr char type_tag{};

/// What one call claims of one limiter, and what it was granted. It keeps a copy of the limiter
/// that does not own the store: the last reference to a wait may end on a thread of the store, or
/// inside one of its completions, where some stores cannot be destroyed. Threading: one thread at a
/// time.
class ClaimedLimit {
 public:
  ClaimedLimit() = default;
  ClaimedLimit(const ClaimedLimit&) = delete;
  ClaimedLimit& operator=(const ClaimedLimit&) = delete;
  virtual ~ClaimedLimit() = default;

  /// The same claim, for another wait.
  [[nodiscard]] virtual std::unique_ptr<ClaimedLimit> fresh() const = 0;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual Store& store() const noexcept = 0;
  /// Of the queue.
  [[nodiscard]] virtual Key key() const noexcept = 0;
  [[nodiscard]] virtual const std::shared_ptr<WaitQueues>& queues() const noexcept = 0;
  [[nodiscard]] virtual Word units() const noexcept { return 1; }
  /// A grant of others may be released before a refusal's hint.
  [[nodiscard]] virtual bool freed_early() const noexcept { return false; }
  [[nodiscard]] virtual Step step() const noexcept = 0;
  /// How long the limit takes, after a grant that left this, until the claim could be granted.
  /// Zero: not known.
  [[nodiscard]] virtual Span refill_time(const Decision& /*left*/) const noexcept {
    return Span{0};
  }
  /// How long the limit takes at least, after it has granted `first` units as soon as it could,
  /// until it has granted `further` units. Zero: not known, or this claim is never granted.
  [[nodiscard]] virtual Span time_for(Word /*first*/, Word /*further*/) const noexcept {
    return Span{0};
  }

  /// A limit that needs more than one step is claimed alone: step() is for messages, and this asks.
  [[nodiscard]] virtual bool asks_by_itself() const noexcept { return false; }
  virtual void ask(Completion done) noexcept { done.fail(Errc::invalid_plan); }

  /// Keeps the answer to step(), before any refund(). May throw std::bad_alloc.
  virtual void answered(const Outcome& own, Time asked) = 0;
  [[nodiscard]] virtual const Decision& decision() const noexcept = 0;
  /// The grant if type_tag of its type has this address, else null.
  [[nodiscard]] virtual void* grant(const char* tag) noexcept = 0;
  /// Refunds what surely stands charged of the grant, as far as the limit allows; once.
  virtual void refund(Completion done) noexcept = 0;
  /// Replaces what was charged with `actual`; none if there is nothing to do. settled() follows if
  /// the store has done it. Throws std::invalid_argument if the limiter has no settle() or it was
  /// settled before, and std::system_error (Errc::invalid_cost) if the cost is negative.
  [[nodiscard]] virtual std::optional<Step> settle_step(Cost actual) = 0;
  virtual void settled() noexcept {}
  /// Has the first waiter of this process ask again, since units have come back. Not for a lease,
  /// whose release does so when it has arrived.
  void wake_waiters() const noexcept;
  /// Closes a gate; none for other limits.
  [[nodiscard]] virtual std::optional<Step> close_step(Span) const noexcept { return {}; }
  /// The exception of a call that failed with this error.
  [[nodiscard]] virtual std::system_error failed(const CallName& call,
                                                 const std::error_code& error) const;
};

/// The claims of one call: one or more, all on one store.
using ClaimedLimits = std::vector<std::unique_ptr<ClaimedLimit>>;
/// Refunds what was granted of these, as far as each allows. They must live until the completion.
void refund_all(std::span<const std::unique_ptr<ClaimedLimit>> limits, Completion done) noexcept;

template <class Grant>
[[nodiscard]] const Decision& decision_of(const Grant& grant) noexcept {
  if constexpr (std::is_convertible_v<const Grant&, const Decision&>) {
    return grant;
  } else if constexpr (requires { grant.decision(); }) {
    return grant.decision();
  } else {
    return grant.decision;
  }
}

/// The limiters that settle a grant by the costs, since it does not contain what it charged.
template <class L>
concept SettledByCost = requires(const L& limiter, const Key& key, const typename L::Grant& grant) {
  limiter.settle_step(key, grant, SettledCost{0, 0});
};
/// True if the cost of a grant of this limiter may be settled afterwards.
template <class L>
concept Settled = SettledByCost<L> ||
    requires(const L& limiter, const Key& key, const typename L::Grant& grant) {
  limiter.penalize_step(key, 1);
  limiter.refund_step(key, grant, 1);
  grant.granted;
};

}  // namespace sluice::detail
