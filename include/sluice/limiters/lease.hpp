// A held place: what ConcurrencyLimiter and FleetShedder grant. See docs/concurrency.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/quota.hpp"

namespace sluice {

class LeaseRenewer;

/// 128 bits that name one lease. Two that were drawn alike are not to be expected: among 10^12
/// live leases the odds are 1 in 10^15.
struct LeaseId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] static LeaseId draw(Rng& rng);
  friend bool operator==(const LeaseId&, const LeaseId&) = default;
};

/// How leases are granted and kept.
struct LeaseOptions {
  /// How long a lease lasts that nobody renews: 1 ms to 2^40 us, which is 12.7 days. The place of a
  /// holder that died comes back after that.
  Span ttl = std::chrono::seconds{60};
  /// What ids are drawn from; null: rng_of() the store's clock. REQUIRES: as thread-safe as its
  /// use.
  Rng* rng = nullptr;
  /// Renews every lease that is granted; null: nobody does. REQUIRES: outlives the limiter.
  LeaseRenewer* renewer = nullptr;
  /// What `renewer` calls, on its thread and at most once, when a lease turns out to be lost. Must
  /// not throw.
  std::function<void(const LeaseId&)> on_lost = {};
  /// How long the destructor of a lease waits at most for a store that does not answer. Real time.
  Span release_within = std::chrono::seconds{1};
};

namespace detail {
class HeldLease;
class LeaseManager;
}  // namespace detail

/// A place that is held, given back when this object ends, whichever way the scope is left. Or the
/// refusal of one: then it is false, and decision() says why and when to come back.
///
///     if (Lease lease = jobs.try_acquire("alice")) run();          // given back here
///
/// Move-only. lost(), id(), fence() and expires_at() may be called from any thread; the rest by one
/// thread at a time. REQUIRES: the store outlives it; one that ends behind it on the same thread
/// gives nothing back, and is lost.
class [[nodiscard]] Lease {
 public:
  /// Called at most once, when a lease that is kept alive turns out to be lost. Must not throw.
  using OnLost = std::function<void(const LeaseId&)>;

  Lease() noexcept = default;
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  /// Gives the place back, if that was not done. Never throws and waits no longer than
  /// LeaseOptions::release_within; if the store does not answer, the place comes back by the TTL.
  ~Lease();

  /// It was granted, and not given back or moved from. A lease that was lost is still true.
  [[nodiscard]] explicit operator bool() const noexcept;
  /// The answer that granted or refused it.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }

  /// REQUIRES, here and below: it was granted, and not moved from.
  [[nodiscard]] const LeaseId& id() const noexcept;
  /// A number that is higher than those of all leases granted on this key before. Pass it on with
  /// every write to what the lease protects, and let that refuse a number below the highest seen.
  [[nodiscard]] Word fence() const noexcept;
  /// When it expires unless it is renewed, by the store's clock that decisions carry.
  [[nodiscard]] Time expires_at() const noexcept;

  /// True if the place may be somebody else's by now: the store said so, or the TTL has passed
  /// since the lease was last asked for or renewed. Asks no store.
  [[nodiscard]] bool lost() const noexcept;

  /// Lets it expire a whole TTL from now. False: it is lost, or the answer took a TTL. Throws
  /// std::system_error if the store could not say; the lease may still be held then, until lost().
  [[nodiscard]] bool renew();
  [[nodiscard]] bool renew(std::error_code& error) noexcept;

  /// Gives the place back. True if it was held until now; false if it had expired or been given
  /// back before, and nothing changed. Throws std::system_error if the store could not say; the
  /// lease is then not given back, as far as is known, and the destructor tries again.
  bool release();
  bool release(std::error_code& error) noexcept;

  /// Gives the place back without waiting for the store's answer: for threads that must not block.
  void release_later() noexcept;

  /// Has it renewed until it is given back or lost. `on_lost` runs on the renewer's thread. Not for
  /// a lease that LeaseOptions::renewer renews already. Throws std::bad_alloc.
  void keep_alive(LeaseRenewer& renewer, OnLost on_lost = {});

 private:
  friend class detail::LeaseManager;

  Lease(Decision decision, std::shared_ptr<detail::HeldLease> held) noexcept
      : decision_(decision), held_(std::move(held)) {}
  void end() noexcept;

  Decision decision_;
  std::shared_ptr<detail::HeldLease> held_;  // null: refused
};

}  // namespace sluice
