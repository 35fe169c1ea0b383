// Lease: a grant of a ConcurrencyLimiter or a FleetShedder. See docs/concurrency.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/quota.hpp"
#include "sluice/stop_token.hpp"

namespace sluice {

class LeaseRenewer;

/// The 128-bit id of a lease. Random ids do not collide in practice: among 10^12 live leases the
/// probability is 1 in 10^15.
struct LeaseId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] static LeaseId draw(Rng& rng);
  friend bool operator==(const LeaseId&, const LeaseId&) = default;
};

/// Options of limiters that grant leases.
struct LeaseOptions {
  /// How long a lease lasts without renewal: 1 ms to 2^40 us (12.7 days). The place of a holder
  /// that has died is freed after that.
  Span ttl = std::chrono::seconds{60};
  /// The generator of ids; null: rng_of() the store's clock. REQUIRES: it is as thread-safe as its
  /// use.
  Rng* rng = nullptr;
  /// Renews every lease that is granted, as Lease::keep_alive(); null: leases are not renewed
  /// automatically. REQUIRES: it outlives the limiter.
  LeaseRenewer* renewer = nullptr;
  /// Called by `renewer`, on its thread and at most once, when a lease is lost. What it
  /// throws is ignored.
  std::function<void(const LeaseId&)> on_lost = {};
  /// The longest time that the destructor of a lease waits for the store. Real time. That of a
  /// lease which an asynchronous call has granted never waits: see Lease::never_block().
  Span release_within = std::chrono::seconds{1};
};

namespace detail {
class HeldLease;
class LeaseManager;
class ReleaseVerb;
class RenewVerb;
}  // namespace detail

/// Holds places of a limiter, and releases them when it is destroyed. Or it is a refusal: then it
/// converts to false, and decision() has the reason and the time of a retry.
///
///     if (Lease lease = jobs.try_acquire("alice")) run();          // released here
///
/// In a condition it must be a variable: `if (jobs.try_acquire("alice")) run();` does not compile,
/// because that lease would be released before run().
///
/// Move-only. lost(), id(), fence() and expires_at() may be called from any thread; the other
/// members by one thread at a time. REQUIRES: the store outlives it. (A lease whose store was
/// destroyed earlier on the same thread releases nothing and counts as lost.)
class [[nodiscard]] Lease {
 public:
  /// Called at most once, when a lease that is kept alive is lost. What it throws is ignored.
  using OnLost = std::function<void(const LeaseId&)>;

  Lease() noexcept = default;
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  /// Releases the lease, if it was not released. Never throws, and waits no longer than
  /// LeaseOptions::release_within, or not at all: after never_block(), and on a thread of the
  /// store. If the store does not answer by then, the limiter goes on trying; if that never
  /// succeeds, the place is freed when the TTL has passed.
  ~Lease();

  /// True if it was granted, and not released or moved from. A lost lease is still true.
  [[nodiscard]] explicit operator bool() const& noexcept;
  explicit operator bool() const&& = delete;  // write: if (Lease lease = jobs.acquire(...)) run();
  /// The decision that granted or refused it.
  [[nodiscard]] const Decision& decision() const& noexcept { return decision_; }
  [[nodiscard]] Decision decision() const&& noexcept { return decision_; }

  /// Of a refusal, and after a move, the id, the fence and the expiry are zero.
  [[nodiscard]] LeaseId id() const noexcept;
  /// The fencing token: a number higher than those of all leases granted on this key before. Send
  /// it with every write to the protected resource, which must reject a number below the highest
  /// that it has seen.
  [[nodiscard]] Word fence() const noexcept;
  /// When the lease expires unless it is renewed, by the clock of the store's decisions.
  [[nodiscard]] Time expires_at() const noexcept;

  /// True if another holder may have the place by now: the store has reported it, or the TTL has
  /// passed since the last grant or renewal was requested. Does not call the store.
  [[nodiscard]] bool lost() const noexcept;

  /// Extends the lease to a whole TTL from now. False: it is lost, or the answer took longer than a
  /// TTL. Throws std::system_error if the store could not decide; the lease may then still be held,
  /// until lost().
  [[nodiscard]] bool renew();
  [[nodiscard]] bool renew(std::error_code& error) noexcept;

  /// Releases the lease. True if it was held until now; false, and nothing changes, if it had
  /// expired or been released before. Throws std::system_error if the store could not decide; the
  /// lease then counts as held, and the destructor tries again.
  bool release();
  bool release(std::error_code& error) noexcept;

  /// Releases the lease without waiting for the store's answer: for threads that must not block.
  void release_later() noexcept;
  /// From now on the destructor does as release_later(). The calls of sluice::asio have said so of
  /// every lease that they grant, as it lives on an event loop; say it of one that adopt() has made
  /// there.
  void never_block() noexcept;

  /// Lets `renewer` renew the lease until it is released or lost; starts its thread, unless it is
  /// Renewing::by_hand. `on_lost` runs on the renewer's thread. Not for a lease that
  /// LeaseOptions::renewer already renews. Throws std::bad_alloc, and std::system_error if there
  /// can be no thread.
  void keep_alive(LeaseRenewer& renewer, OnLost on_lost = {});
  /// A renewer renews the lease before this time only, by the store's clock, so that a holder that
  /// hangs has the place for a TTL more at most. renew() still extends it.
  void renew_until(Time end) noexcept;

  /// Stopped when the lease is found to be lost: by its renewer, on that thread, or by renew(), on
  /// the thread of the store's answer. Nobody looks for the end of the TTL of a lease that no
  /// renewer has: see lost(). Throws std::bad_alloc.
  [[nodiscard]] StopToken lost_token();

  // For the library; see sluice/limiters/detail/lease.hpp.
  struct Verbs;

 private:
  friend class detail::LeaseManager;
  friend class detail::ReleaseVerb;
  friend class detail::RenewVerb;

  Lease(Decision decision, std::shared_ptr<detail::HeldLease> held) noexcept
      : decision_(decision), held_(std::move(held)) {}
  void end() noexcept;

  Decision decision_;
  std::shared_ptr<detail::HeldLease> held_;  // null: refused
};

}  // namespace sluice
