// What ConcurrencyLimiter and FleetShedder share: how they ask for leases. Immutable.
#pragma once

#include <string>

#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/detail/exceptions.hpp"
#include "sluice/detail/held_lease.hpp"
#include "sluice/detail/verb.hpp"
#include "sluice/limiters/lease.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/store_handle.hpp"

namespace sluice::detail {

class LeaseManager {
 public:
  /// The limit that applies to a request, and its tier.
  struct Share {
    Word limit;
    Word tier;
  };

  /// Throws std::invalid_argument if the name or an option is out of range.
  LeaseManager(const StoreHandle& store, TextArg name, const LeaseOptions& options,
               std::shared_ptr<WaitQueues> queues = nullptr);

  /// Whether somebody else may know the id of a lease, and have one with it.
  enum Seek : Word { fresh_id, known_id };

  class Asking;
  /// Asks for a lease with an id that is drawn for it.
  [[nodiscard]] Asking asking(const Key& key, Share share, Cost weight) const noexcept;
  /// Asks for a lease with this id; if one is live, for that one.
  [[nodiscard]] Asking asking(const Key& key, Share share, Cost weight,
                              const LeaseId& id) const noexcept;
  /// The lease that acquire_step() was granted in a plan. `output`: the output words of its step.
  Lease adopt(const Key& key, Share share, Cost weight, const LeaseId& id, const Decision& decision,
              std::span<const Word> output, Time asked_at, Seek seek = known_id) const;

  /// Releases what acquire_new_step() may have been granted; does not wait for the store.
  void answer_lost(const Key& key, Share share, Cost weight, const LeaseId& id) const noexcept;
  /// Before a request for a lease.
  void send_failed_releases() const noexcept;

  [[nodiscard]] Step acquire_step(const Key& key, Share share, Cost weight,
                                  const LeaseId& id) const noexcept;
  /// The same for an id that was just drawn: the rule does not look for a live lease with it.
  [[nodiscard]] Step acquire_new_step(const Key& key, Share share, Cost weight,
                                      const LeaseId& id) const noexcept;
  /// Throws what the generator of LeaseOptions::rng throws.
  [[nodiscard]] LeaseId draw_id() const;
  [[nodiscard]] Step peek_step(const Key& key, Share share, Cost weight) const noexcept;
  [[nodiscard]] Step release_step(const Key& key, Word limit, const LeaseId& id) const noexcept;
  [[nodiscard]] Step renew_step(const Key& key, Word limit, const LeaseId& id) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key, Word limit) const noexcept;
  [[nodiscard]] Step block_step(const Key& key, Word limit, Span span) const noexcept;

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  void borrow_store() noexcept { store_.borrow(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const LeaseOptions& options() const noexcept { return options_; }

  /// The key, with the limiter's name if it has none of its own.
  [[nodiscard]] LimiterKey named(const Key& key) const noexcept {
    return {key.with_default_name(name_), store_.address()};
  }

 private:
  [[nodiscard]] std::shared_ptr<HeldLease> hold(const Key& key, Share share, Cost weight,
                                                const LeaseId& id, Seek seek) const;
  [[nodiscard]] Asking ask(const Key& key, Share share, Cost weight, const LeaseId& id,
                           Seek seek) const;
  /// The lease of a decision; refused without `held`.
  [[nodiscard]] Lease granted(const Decision& decision, std::span<const Word> output,
                              std::shared_ptr<HeldLease> held, Time asked_at) const;

  StoreHandle store_;
  std::string name_;
  LeaseOptions options_;
  CopyOnMovePtr<WaitQueues> queues_;  // null: callers cannot wait
  CopyOnMovePtr<FailedReleases> failed_;
};

/// Asks for a lease; see sluice/detail/verb.hpp. The manager must live until it is over.
class LeaseManager::Asking {
 public:
  using Result = Lease;

  /// A call that is over at once.
  Asking(const LeaseManager& leases, std::error_code error) noexcept
      : leases_(&leases), error_(error) {}
  Asking(const LeaseManager& leases, const Step& step, std::shared_ptr<HeldLease> held,
         Seek seek) noexcept
      : leases_(&leases), step_(step), held_(std::move(held)), seek_(seek) {}

  [[nodiscard]] Store& store() const noexcept { return leases_->store(); }
  [[nodiscard]] std::optional<Plan> next() noexcept;
  void hear(const Outcome& outcome) noexcept;
  /// The result is for an event loop.
  void never_block() noexcept { lease_.never_block(); }
  [[nodiscard]] Lease take(std::error_code& error) noexcept {
    error = error_;
    return std::move(lease_);
  }

 private:
  const LeaseManager* leases_;
  std::optional<Step> step_;
  std::shared_ptr<HeldLease> held_;
  Seek seek_ = known_id;
  Time asked_at_{};
  std::error_code error_;
  Lease lease_;
};

}  // namespace sluice::detail
