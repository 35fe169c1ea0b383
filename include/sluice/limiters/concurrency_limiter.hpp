// The concurrency limiter, on any store. See sluice/rules/leases.hpp for the rule.
#pragma once

#include <concepts>

#include "sluice/detail/lease_manager.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/waitable.hpp"

namespace sluice {

/// Limits how many operations run at once for each key. A grant is a Lease, which holds a place
/// until it is released or destroyed; if its holder dies, the place is freed within the TTL.
///
///     ConcurrencyLimiter jobs{*store, "jobs", 20, {.ttl = 30s}};
///     if (Lease lease = jobs.try_acquire("alice")) run();
///     else retry_later(lease.decision().retry_after);
///
/// A key without a name gets the limiter's name. Limiters of the same name on the same store share
/// their leases, also with different limits: each grants up to its own limit. Give them the same
/// TTL: a lease that does not expire in the order of grants costs a walk past those that expire
/// later. Immutable: one object serves any number of threads. A grant and a release are one store
/// operation each, O(1) amortised unless an id must be searched; a lease costs one allocation.
/// Borrows or owns its store: see StoreHandle.
///
/// A lease under no limit holds nothing: it is never lost, and its renewal and release ask nothing.
class ConcurrencyLimiter : public Waitable {
 public:
  using Grant = Lease;                                            ///< what acquire() returns
  static constexpr const char* type_name = "ConcurrencyLimiter";  ///< in messages of exceptions

  /// `limit`: 0, which grants none, to 2^52, which is `unlimited`. One key has at most
  /// LeasesRule::max_holders leases at once, whatever their weights. Throws std::invalid_argument
  /// if it, `name` (1 byte to 1 MiB) or an option is out of range.
  template <CountType T>
  ConcurrencyLimiter(const StoreHandle& store, detail::TextArg name, T limit,
                     const LeaseOptions& options = {})
      : ConcurrencyLimiter(store, name, detail::Given(limit), options) {}
  template <std::floating_point T>
  ConcurrencyLimiter(const StoreHandle&, detail::TextArg, T, const LeaseOptions& = {}) = delete;
  /// The limit of each key by a table. Throws std::invalid_argument also for a null pointer.
  ConcurrencyLimiter(const StoreHandle& store, detail::TextArg name,
                     std::shared_ptr<const LimitTable<Word>> limits,
                     const LeaseOptions& options = {});

  /// Acquires a lease of `weight` places, 1 to limit(), if they are free; never waits. A refused
  /// lease converts to false. Throws std::system_error if the store could not decide, or if the
  /// weight can never be granted (Errc::invalid_cost, Errc::cost_exceeds_capacity). What may have
  /// been granted, if the answer is lost (Failure::unknown), is released behind it.
  Lease try_acquire(const KeyArg& key, Cost weight = 1) const;
  Lease try_acquire(const KeyArg& key, std::error_code& error) const noexcept;
  Lease try_acquire(const KeyArg& key, Cost weight, std::error_code& error) const noexcept;
  /// Under an id of the caller's: a retry after a lost answer takes no second place. If the id is
  /// live, this returns its lease, not renewed. O(leases of the key).
  Lease try_acquire(const KeyArg& key, Cost weight, const LeaseId& id) const;
  Lease try_acquire(const KeyArg& key, Cost weight, const LeaseId& id,
                    std::error_code& error) const noexcept;

  /// Waits until `weight` places are free, or until the deadline; blocks this thread meanwhile. A
  /// lease that is released in this process goes to the first waiter at once. Releases by other
  /// processes are noticed within WaitQueueOptions::recheck, or at once with
  /// WaitQueueOptions::across_processes. See KeyedLimiter::acquire().
  Lease acquire(const KeyArg& key, Cost weight, const Deadline& deadline,
                const WaitOptions& options = {}) const;
  Lease acquire(const KeyArg& key, Cost weight, const Deadline& deadline,
                const WaitOptions& options, std::error_code& error) const;
  /// The number of callers in this process that wait for the key.
  [[nodiscard]] std::size_t waiting(const KeyArg& key) const {
    return waiters_of(leases_.named(key));
  }

  /// The decision that try_acquire() would make, with what remains now; changes nothing.
  [[nodiscard]] Decision peek(const KeyArg& key, Cost weight = 1) const {
    return decide_as("peek", peek_step(key, weight));
  }
  [[nodiscard]] Decision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return decide(store(), peek_step(key), error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Cost weight,
                              std::error_code& error) const noexcept {
    return decide(store(), peek_step(key, weight), error);
  }

  /// Releases a lease by its id. False, and nothing changes, if no lease with the id is live under
  /// this key: it was released, has expired, or belongs to another key. The second form then sets
  /// Errc::lease_not_live; the first throws only if the store could not decide. O(leases of the
  /// key).
  bool release(const KeyArg& key, const LeaseId& id) const;
  bool release(const KeyArg& key, const LeaseId& id, std::error_code& error) const noexcept;

  static constexpr Span max_block{LeasesRule::max_block};  ///< 365 days

  /// Grants no lease until `span` from now, under any limit up to 2^50, and wait hints include the
  /// block: for an API that asks for a pause. A later end of an earlier block stays in force;
  /// held leases stay held and can be renewed and released. reset() ends the block. Refused, and
  /// nothing changes, only if LeasesRule::max_holders leases leave no room for it. `remaining` is
  /// 0, and `reset_after` is when the last lease and the block will have ended. Range: 0, which
  /// changes nothing, to max_block, else Errc::invalid_argument, as for a limit above 2^50. If the
  /// clock is set back by up to a minute, the block lasts longer by that; if it is set back
  /// further, the first request is granted, whatever is held or blocked. O(leases of the key).
  ///
  ///     if (response.status == 503) jobs.block("alice", feedback.wait().value_or(pause));
  Decision block(const KeyArg& key, SpanArg span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }

  /// Revokes all leases of the key, and ends a block.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The step that grants a lease under `id`, for a plan of several steps. If the plan was allowed,
  /// adopt() makes a Lease of its outcome:
  ///
  ///     const LeaseId id = LeaseId::draw(rng);
  ///     const std::array steps{bucket.acquire_step("alice"),
  ///                            jobs.acquire_step(Key{"alice", "jobs"}, id)};
  ///     std::array<Decision, 2> each;
  ///     std::array<Word, ConcurrencyLimiter::output> words;
  ///     const Time asked_at = store.clock().now();
  ///     if (decide(store, steps, error, each, words))
  ///       lease = jobs.adopt(Key{"alice", "jobs"}, id, 1, each[1], words, asked_at);
  [[nodiscard]] Step acquire_step(const Key& key, const LeaseId& id,
                                  Cost weight = 1) const noexcept {
    return leases_.acquire_step(key, {limit_.of(key), 0}, weight, id);
  }
  /// The step of peek(): in a plan, a condition that takes nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost weight = 1) const noexcept {
    return leases_.peek_step(key, {limit_.of(key), 0}, weight);
  }
  /// The step of release(). It is always allowed; its output word is 1 if the lease was live.
  [[nodiscard]] Step release_step(const Key& key, const LeaseId& id) const noexcept {
    return leases_.release_step(key, limit_.of(key), id);
  }
  /// The step of Lease::renew(). It refuses, without a time to wait for, if the lease is not live.
  [[nodiscard]] Step renew_step(const Key& key, const LeaseId& id) const noexcept {
    return leases_.renew_step(key, limit_.of(key), id);
  }

  /// The step of block().
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return leases_.block_step(key, limit_.of(key), span);
  }

  /// The number of output words of acquire_step().
  static constexpr std::size_t output = 4;
  /// The lease that a plan's acquire_step() granted; false if the step was refused. `words` are the
  /// output words of that step. `asked_at` is the reading of store().clock() before the plan was
  /// executed, for an idempotent plan for the first time: the holder counts the TTL from it. Throws
  /// std::invalid_argument if there are not `output` words. REQUIRES: the plan as a whole was
  /// allowed.
  Lease adopt(const KeyArg& key, const LeaseId& id, Cost weight, const Decision& decision,
              std::span<const Word> words, Time asked_at) const {
    return leases_.adopt(key, {limit_.of(key), 0}, weight, id, decision, words, asked_at);
  }

  /// With a table, that of everyone.
  [[nodiscard]] Word limit() const noexcept { return limit_.everyone(); }
  [[nodiscard]] const LeaseOptions& options() const noexcept { return leases_.options(); }
  [[nodiscard]] const std::string& name() const noexcept { return leases_.name(); }
  [[nodiscard]] Store& store() const noexcept { return leases_.store(); }

  // For the library; see sluice/limiters/detail/concurrency_limiter.hpp.
  [[nodiscard]] bool has_table() const noexcept { return limit_.has_table(); }
  struct Verbs;
  void borrow_store() noexcept { leases_.borrow_store(); }

 private:
  ConcurrencyLimiter(const StoreHandle& store, detail::TextArg name, detail::Given limit,
                     const LeaseOptions& options);

  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, store(), step);
  }

  detail::LeaseManager leases_;
  detail::LimitOf<Word> limit_;
};

}  // namespace sluice

#include "sluice/limiters/detail/concurrency_limiter.hpp"
