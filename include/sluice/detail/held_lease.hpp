// What a lease is to the store: for limiters that grant leases, and for the renewer.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "sluice/detail/store_ref.hpp"
#include "sluice/limiters/lease.hpp"

namespace sluice::detail {

class WaitQueues;

/// What a lease is to the store. Shared by the Lease and whoever renews it. Thread-safe.
class HeldLease {
 public:
  struct Terms {
    Word limit;
    Word weight;
    Word ttl;
    Span release_within;
    std::shared_ptr<WaitQueues> queues;  ///< of the callers that wait for the place; may be null
  };
  HeldLease(Store& store, const Key& key, const LeaseId& id, const Terms& terms);

  /// What the grant told: the place, the fence and the expiry. `asked_at` by the store's clock.
  void granted(const Decision& decision, std::span<const Word> told, Time asked_at) noexcept;

  [[nodiscard]] Store& store() const noexcept { return store_.get(); }
  /// The store has gone: nobody can be asked, and the lease counts as lost.
  [[nodiscard]] bool is_orphaned() const noexcept { return store_.is_over(); }
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }
  [[nodiscard]] const LeaseId& id() const noexcept { return id_; }
  [[nodiscard]] const Terms& terms() const noexcept { return terms_; }
  [[nodiscard]] Word fence() const noexcept { return fence_; }
  [[nodiscard]] Time expires_at() const noexcept { return to_time(expires_at_.load()); }
  /// Until then the lease is held for sure: what was left of it, a TTL at most, counted from before
  /// the store was asked, or from the grant where Store::stamps_by_clock().
  [[nodiscard]] Time safe_until() const noexcept { return to_time(safe_until_.load()); }

  [[nodiscard]] Step renew_step() const noexcept;
  [[nodiscard]] Step release_step() const noexcept;
  /// Notes what the store said to renew_step(). False: the lease is lost, or was given back.
  bool renewed(const Decision& decision, std::span<const Word> told, Time asked_at) noexcept;
  /// True if this call gave back what was held. On an error nothing is settled, and it is renewed
  /// as before.
  bool release(Span within, std::error_code& error) noexcept;
  /// Gives it back without waiting: for threads that must not block.
  static void release_later(const std::shared_ptr<HeldLease>& held) noexcept;
  /// Nobody holds it any more: it is not renewed, and the place comes back by the TTL.
  void abandon() noexcept { state_ = State::returned; }

  [[nodiscard]] bool is_held() const noexcept { return state_.load() == State::held; }
  /// Told so; lost() is also true of one that has run out and nobody has told yet.
  [[nodiscard]] bool is_lost() const noexcept { return state_.load() == State::lost; }
  [[nodiscard]] bool is_open() const noexcept { return state_.load() != State::returned; }
  [[nodiscard]] bool lost() const noexcept;
  /// True if it is this call that turns a held lease into a lost one.
  bool lose() noexcept;

 private:
  enum class State : int { held, lost, returning, returned };

  StoreRef store_;
  std::string tag_;
  std::string name_;
  LeaseId id_;
  Terms terms_;
  Word slot_ = 0;
  Word fence_ = 0;
  std::atomic<Word> expires_at_{0};
  std::atomic<Word> safe_until_{0};
  std::atomic<State> state_{State::held};
};

}  // namespace sluice::detail
