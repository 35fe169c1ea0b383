// What a wait must know of a limiter. src/waiting/claim_of.hpp implements most of it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/detail/gives_back.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/reservation.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

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

  /// The same claim, of so many units if it has a cost, for another wait.
  [[nodiscard]] virtual std::unique_ptr<ClaimedLimit> fresh(Word units) const = 0;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual Store& store() const noexcept = 0;
  /// Of the queue.
  [[nodiscard]] virtual Key key() const noexcept = 0;
  [[nodiscard]] virtual const std::shared_ptr<WaitQueues>& queues() const noexcept = 0;
  [[nodiscard]] virtual Word units() const noexcept { return 1; }
  /// Beyond it, no claim is ever granted. word_limit: not known, since the limit is in the store.
  [[nodiscard]] virtual Word most_units() const noexcept { return word_limit; }
  /// A grant of others may be released before a refusal's hint.
  [[nodiscard]] virtual bool freed_early() const noexcept { return false; }
  /// The limit may be another one while the call waits, by a table.
  [[nodiscard]] virtual bool may_change() const noexcept { return false; }
  /// Whether the limit that is asked is that of all processes with this key.
  [[nodiscard]] virtual bool is_shared() const noexcept { return !is_constant(); }
  /// A limit of 0 or an unlimited one, and not because the store says so: it stays so.
  [[nodiscard]] bool is_constant() const noexcept;

  /// The step that decides.
  [[nodiscard]] virtual Step step() const noexcept = 0;
  /// The step before it in the plan, if there is one: a condition, which is allowed or fails.
  /// Always, or never.
  [[nodiscard]] virtual std::optional<Step> condition() const noexcept { return {}; }
  [[nodiscard]] std::size_t step_count() const noexcept { return condition() ? 2 : 1; }
  /// Called before each request. What must be asked of the store before condition() and step() are
  /// known, if anything. An error ends the wait.
  [[nodiscard]] virtual std::optional<Step> preparation(std::error_code& /*error*/) noexcept {
    return {};
  }
  /// The answer to that. An error ends the wait.
  [[nodiscard]] virtual std::error_code prepared(const Outcome& /*own*/) noexcept { return {}; }
  /// True if this error of condition() or step() only says that another preparation() is needed.
  [[nodiscard]] virtual bool is_outdated(const std::error_code& /*error*/) noexcept {
    return false;
  }

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

  /// Keeps the answer to step(), before any refund(). May throw std::bad_alloc.
  virtual void answered(const Outcome& own, Time asked) = 0;
  /// step() may have been granted, and its answer is lost: gives that back if the limit can.
  virtual void answer_lost() noexcept {}
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
  [[nodiscard]] virtual bool is_settled() const noexcept { return false; }
  /// The verb of a settle_step(), which wakes who waits if it gives something back.
  using Settle = GivesBackDecision<>;
  [[nodiscard]] Settle settle(const Step& step) const noexcept {
    return detail::give_back<>(lowers_charge() ? WakeUp(queues().get(), key()) : WakeUp(), store(),
                               step);
  }
  /// Closes a gate; none for other limits.
  [[nodiscard]] virtual std::optional<Step> close_step(Span) const noexcept { return {}; }
  /// The limit learns from what the API refuses.
  [[nodiscard]] virtual bool learns() const noexcept { return false; }
  /// Tells such a limit that the API has refused what was granted, in place of a refund(); once.
  [[nodiscard]] virtual std::optional<Step> limited_step() noexcept { return {}; }
  /// The exception of a call that failed with this error.
  [[nodiscard]] virtual std::system_error failed(const CallName& call,
                                                 const std::error_code& error) const;

 protected:
  /// The last settle_step() is a refund.
  [[nodiscard]] virtual bool lowers_charge() const noexcept { return false; }
  /// Executes the step of a refund, and wakes who waits. This must live until the completion.
  void execute_refund(const Step& step, Completion done) const noexcept;
};

/// What one call claims of each of several alternatives.
struct Alternatives {
  std::vector<ClaimedLimits> limits;
  std::vector<std::size_t> order;  ///< in which they are asked: indices into `limits`
};

/// The same claims, for another wait. May throw std::bad_alloc.
[[nodiscard]] ClaimedLimits fresh_limits(const ClaimedLimits& limits);
[[nodiscard]] Alternatives fresh_limits(const Alternatives& alternatives);

/// Refunds what was granted of these, as far as each allows. They must live until the completion.
void refund_all(std::span<const std::unique_ptr<ClaimedLimit>> limits, Completion done) noexcept;

template <class Grant>
[[nodiscard]] const Decision& decision_of(const Grant& grant) noexcept {
  if constexpr (std::is_convertible_v<const Grant&, const Decision&>) {
    return grant;
  } else {
    return grant.decision();
  }
}

/// True if the cost of a grant of this limiter may be settled afterwards.
template <class L>
concept Settled = std::same_as<typename L::Grant, Reservation>;

}  // namespace sluice::detail
