// The verbs of a Lease, and of a lease that is known by its id; see sluice/detail/verb.hpp.
#pragma once

#include <memory>
#include <optional>
#include <system_error>

#include "sluice/detail/gives_back.hpp"
#include "sluice/detail/held_lease.hpp"
#include "sluice/detail/verb.hpp"
#include "sluice/limiters/lease.hpp"

namespace sluice::detail {

/// Lease::renew(). The lease may be moved or destroyed meanwhile.
class RenewVerb {
 public:
  using Result = bool;

  /// REQUIRES: the store lives, if the lease is held.
  explicit RenewVerb(Lease& lease) noexcept : held_(lease.held_) {}

  [[nodiscard]] Store& store() const noexcept { return held_->store(); }
  [[nodiscard]] std::optional<Plan> next() noexcept;
  void hear(const Outcome& outcome) noexcept;
  [[nodiscard]] bool take(std::error_code& error) const noexcept {
    error = error_;
    return renewed_;
  }

 private:
  std::shared_ptr<HeldLease> held_;  // null: refused
  std::optional<Step> step_{};       // once it has asked
  Time asked_at_{};
  bool renewed_ = false;
  std::error_code error_{};
};

/// Lease::release(), but for the wake-up. The lease may be moved or destroyed meanwhile.
class ReleaseVerb {
 public:
  using Result = bool;

  explicit ReleaseVerb(Lease& lease) noexcept : held_(lease.held_) {}

  [[nodiscard]] Store& store() const noexcept { return held_->store(); }
  [[nodiscard]] std::optional<Plan> next() noexcept;
  void hear(const Outcome& outcome) noexcept;
  [[nodiscard]] bool take(std::error_code& error) const noexcept {
    error = error_;
    return released_;
  }

 private:
  std::shared_ptr<HeldLease> held_;  // null: refused
  std::optional<HeldLease::Releasing> releasing_{};
  std::optional<Step> step_{};  // once it has asked
  bool released_ = false;
  std::error_code error_{};
};

/// Whether a lease was live until it was released.
struct AsReleased {
  bool operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
    return word_of(outcome, 0) == 1;
  }
};
/// The release of a lease whose state is not kept.
using ReleaseStepVerb = GivesBack<StepVerb<AsReleased>, WhenUnits>;

}  // namespace sluice::detail

/// Verbs of the calls that ask the store; see sluice/detail/verb.hpp.
struct sluice::Lease::Verbs {
  static detail::RenewVerb renew(Lease& lease) noexcept { return detail::RenewVerb(lease); }
  static detail::GivesBack<detail::ReleaseVerb, detail::WhenUnits> release(Lease& lease) {
    const auto& held = lease.held_;
    return {held ? detail::WakeUp(held->terms().queues.get()) : detail::WakeUp(),
            [&] { return detail::ReleaseVerb(lease); }};
  }
  static const std::shared_ptr<detail::HeldLease>& held(const Lease& lease) noexcept {
    return lease.held_;
  }
};
