// Grants: what a call under several limits was granted of each.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"

namespace sluice {

/// The answer to a call that claimed of several limiters at one instant: all of it, or nothing.
///
///     Grants granted = acquire({{requests, "alice"}, {jobs, "alice"}}, 10s);
///     if (!granted) return retry_later(granted.decision().retry_after);
///     granted.get<Lease>(1).keep_alive(renewer);
///
/// Leases are released when it is destroyed, as by ~Lease(); what else was granted stays charged.
/// In a condition it must be a variable: `if (!acquire(claims, 10s)) return;` does not compile,
/// because its leases would be released there. Move-only. Use by one thread at a time. REQUIRES:
/// the store outlives it.
class [[nodiscard]] Grants {
 public:
  Grants() = default;
  Grants(Grants&& other) noexcept
      : decision_(std::exchange(other.decision_, {})),
        limits_(std::move(other.limits_)),
        arrival_(other.arrival_),
        alternative_(other.alternative_) {}
  Grants& operator=(Grants&& other) noexcept {
    decision_ = std::exchange(other.decision_, {});
    limits_ = std::move(other.limits_);
    arrival_ = other.arrival_;
    alternative_ = other.alternative_;
    return *this;
  }

  /// True if all was granted, and it was not moved from.
  [[nodiscard]] explicit operator bool() const& noexcept { return decision_.allowed; }
  explicit operator bool() const&& = delete;  // write: if (Grants granted = acquire(...)) run();
  /// On the whole. Refused: `step` is the claim with the longest wait, counted from 0.
  [[nodiscard]] const Decision& decision() const& noexcept { return decision_; }
  [[nodiscard]] Decision decision() const&& noexcept { return decision_; }

  /// Which alternative of a FirstOf was granted, counted from 0; or, refused, which would have been
  /// granted first. `step` of the decision, and all claims, are of that one.
  [[nodiscard]] std::size_t alternative() const noexcept { return alternative_; }

  /// The number of claims; 0 if refused.
  [[nodiscard]] std::size_t size() const noexcept { return limits_.size(); }
  /// Of one claim. Throws std::out_of_range.
  [[nodiscard]] const Decision& decision(std::size_t claim) const&;
  [[nodiscard]] Decision decision(std::size_t claim) const&& { return decision(claim); }
  /// What the acquire() of that limiter returns: a Reservation, a SlotPermit, a Lease or a
  /// Decision. Throws std::out_of_range, or std::invalid_argument if it is another type.
  template <class Grant>
  [[nodiscard]] Grant& get(std::size_t claim) & {
    return *static_cast<Grant*>(grant(claim, &detail::type_tag<Grant>));
  }
  template <class Grant>
  [[nodiscard]] Grant get(std::size_t claim) && {
    return std::move(get<Grant>(claim));
  }

  /// Charges `actual` units of a claim instead of what was granted; what is too much goes back.
  /// Throws std::system_error if the store could not, std::out_of_range, and std::invalid_argument
  /// if that limiter has no settle() or the claim was settled before. After a refund() it changes
  /// nothing.
  void settle(std::size_t claim, Cost actual);
  /// Refunds everything, as far as each limit allows, and releases the leases; of a claim that was
  /// settled, what still stands charged of the grant. One store operation for each claim; the
  /// errors of a store are ignored. Another refund, as that of a Call whose function throws
  /// RateLimited, gives nothing back again. Blocks.
  void refund();

  /// True if one of its leases is lost, and was not released before: another holder may have the
  /// place. See Lease::lost().
  [[nodiscard]] bool lost() const noexcept;
  /// Lease::never_block() of all its leases.
  void never_block() noexcept;

  // For implementations of waits.
  [[nodiscard]] std::span<const std::unique_ptr<detail::ClaimedLimit>> limits() const noexcept {
    return limits_;
  }
  [[nodiscard]] const std::optional<detail::Arrival>& arrival() const noexcept { return arrival_; }
  Grants(const Decision& decision, detail::ClaimedLimits limits,
         const std::optional<detail::Arrival>& arrival, std::size_t alternative = 0) noexcept
      : decision_(decision),
        limits_(std::move(limits)),
        arrival_(arrival),
        alternative_(alternative) {}
  [[nodiscard]] Grants of_alternative(std::size_t alternative,
                                      const std::optional<detail::Arrival>& arrival) && noexcept {
    return {decision_, std::move(limits_), arrival, alternative};
  }

 private:
  [[nodiscard]] void* grant(std::size_t claim, const char* tag);

  Decision decision_{};
  detail::ClaimedLimits limits_;
  std::optional<detail::Arrival> arrival_;
  std::size_t alternative_ = 0;
};

}  // namespace sluice
