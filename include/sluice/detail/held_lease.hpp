// HeldLease: the state of a granted lease, for limiters that grant leases and for the renewer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "sluice/detail/store_ref.hpp"
#include "sluice/limiters/lease.hpp"
#include "sluice/observer.hpp"

namespace sluice::detail {

class FailedReleases;
class WaitQueues;

/// The state of a granted lease, shared by the Lease and its renewer. Thread-safe.
class HeldLease {
 public:
  struct Terms {
    Word limit;
    Word weight;
    Word ttl;
    Span release_within{0};
    std::shared_ptr<WaitQueues> queues{};    ///< notified when the lease is released; may be null
    std::weak_ptr<FailedReleases> failed{};  ///< gets a release that has failed; may be empty
  };
  HeldLease(Store& store, const Key& key, const LeaseId& id, const Terms& terms);

  /// Records the output of the grant: the slot, the fence and the expiry. `asked_at` is by the
  /// store's clock.
  void granted(const Decision& decision, std::span<const Word> output, Time asked_at) noexcept;

  [[nodiscard]] Store& store() const noexcept { return store_.get(); }
  /// True if the store was destroyed: the lease counts as lost.
  [[nodiscard]] bool is_orphaned() const noexcept { return store_.is_over(); }
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }
  [[nodiscard]] const LeaseId& id() const noexcept { return id_; }
  [[nodiscard]] const Terms& terms() const noexcept { return terms_; }
  /// Under an unlimited limit: its calls ask nothing, and it is held until it is released.
  [[nodiscard]] bool holds_nothing() const noexcept { return terms_.limit == unlimited; }
  [[nodiscard]] Word fence() const noexcept { return fence_; }
  [[nodiscard]] Time expires_at() const noexcept { return to_time(expires_at_.load()); }
  /// The lease is certainly held until then: a TTL at most, counted from before the request to the
  /// store, or from the grant where Store::stamps_by_clock().
  [[nodiscard]] Time safe_until() const noexcept { return to_time(safe_until_.load()); }

  [[nodiscard]] Step renew_step() const noexcept;
  [[nodiscard]] Step release_step() const noexcept;
  /// Records the result of renew_step(). False: the lease is lost or released.
  bool renewed(const Decision& decision, std::span<const Word> output, Time asked_at) noexcept;
  /// True if this call released the held lease. On an error it stays held, and is renewed as
  /// before.
  bool release(Span within, std::error_code& error) noexcept;
  /// The two halves of release(). None: it was released before, or there is an error.
  class Releasing;
  std::optional<Releasing> begin_release(std::error_code& error) noexcept;
  void end_release(Releasing releasing, bool released) noexcept;
  /// The destructor of the lease does not wait for the store.
  void never_block() noexcept { blocks_ = false; }
  [[nodiscard]] bool may_block() const noexcept { return blocks_.load(); }
  /// Releases it without waiting: for threads that must not block.
  static void release_later(const std::shared_ptr<HeldLease>& held) noexcept;
  /// Releases, without waiting, what may have been granted by a request whose answer is lost.
  static void release_unknown(const std::shared_ptr<HeldLease>& held) noexcept;
  /// The same of the steps of a plan that acquire leases under ids that nobody else knows.
  static void release_unknown(Store& store, const Plan& plan) noexcept;
  /// Sends a release that nobody waits for, of a lease that expires at `until`. While the store
  /// hangs it is under way.
  static void send_release(const std::shared_ptr<HeldLease>& held, Time until) noexcept;

  [[nodiscard]] bool is_held() const noexcept { return state_.load() == State::held; }
  /// True once it was marked as lost; lost() is also true for one that has expired since.
  [[nodiscard]] bool is_lost() const noexcept { return state_.load() == State::lost; }
  [[nodiscard]] bool is_open() const noexcept { return state_.load() != State::returned; }
  [[nodiscard]] bool lost() const noexcept;
  /// True if this call turns a held lease into a lost one. tell_lost() follows, where no lock is
  /// held.
  bool lose() noexcept;
  /// Tells the observer of the store, and stops the tokens, of a lease that was marked as lost.
  void tell_lost() noexcept;
  /// Tells the observer of the store, if there is one. No lock is held.
  void tell(LeaseEvent::Change change) const noexcept;
  [[nodiscard]] StopToken lost_token();

  void renew_until(Time end) noexcept { renew_until_ = to_word(end); }
  /// False: a renewer lets it expire.
  [[nodiscard]] bool is_renewed_at(Time now) const noexcept {
    return to_word(now) < renew_until_.load();
  }

 private:
  struct Sent;
  static void send_release(const std::shared_ptr<HeldLease>& held) noexcept;

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
  std::atomic<Word> renew_until_{to_word(Time::max())};
  std::atomic<bool> blocks_{true};
  std::atomic<bool> told_lost_{false};
  std::mutex telling_;
  std::optional<StopSource> lost_;  // guarded by telling_; none: nobody asked for a token
};

/// A release that has begun: the state before it.
class HeldLease::Releasing {
 private:
  friend class HeldLease;
  explicit Releasing(State before) noexcept : was(before) {}
  State was;
};

}  // namespace sluice::detail
