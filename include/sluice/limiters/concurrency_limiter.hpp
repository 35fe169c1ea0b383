// At most so many at once, on any store. See sluice/rules/leases.hpp for the rule.
#pragma once

#include "sluice/detail/acquire.hpp"
#include "sluice/detail/lease_manager.hpp"

namespace sluice {

/// Limits what each key holds at once. What is granted is a Lease: it gives the place back when it
/// ends, and if its holder dies, the place comes back within the TTL.
///
///     ConcurrencyLimiter jobs{*store, "jobs", 20, {.ttl = 30s}};
///     if (Lease lease = jobs.try_acquire("alice")) run();
///     else retry_later(lease.decision().retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name on the same store share
/// their leases, also under different limits: each grants up to its own. Give them the same TTL;
/// leases that expire out of turn cost a walk past those that expire later.
/// Immutable: one object serves any number of threads. A grant and a return are one store operation
/// each, O(1) amortised unless an id must be searched; a lease costs an allocation. Borrows or
/// owns its store: see StoreHandle.
class ConcurrencyLimiter : public Waitable {
 public:
  static constexpr const char* type_name = "ConcurrencyLimiter";  ///< in texts of exceptions

  /// `limit`: 1 to 2^52. Of one key no more than LeasesRule::max_holders leases are held at once,
  /// whatever their weights. Throws std::invalid_argument if it, `name` (1 byte to 1 MiB) or an
  /// option is out of range.
  ConcurrencyLimiter(const StoreHandle& store, std::string name, Word limit,
                     const LeaseOptions& options = {});

  /// A lease of `weight` places, 1 to limit(), if they are free; never waits. A refusal is a lease
  /// that is false. Throws std::system_error if the store could not decide, or if the weight can
  /// never be granted (Errc::invalid_cost, Errc::cost_exceeds_capacity).
  Lease try_acquire(const Key& key, Cost weight = 1) const;
  Lease try_acquire(const Key& key, std::error_code& error) const noexcept;
  Lease try_acquire(const Key& key, Cost weight, std::error_code& error) const noexcept;
  /// Under an id of the caller's, so that asking again after a lost answer takes no second place:
  /// if the id is live, this is that lease as it is, not renewed. O(leases of the key).
  Lease try_acquire(const Key& key, Cost weight, const LeaseId& id) const;
  Lease try_acquire(const Key& key, Cost weight, const LeaseId& id,
                    std::error_code& error) const noexcept;

  /// Waits until `weight` places are free, or until the deadline; blocks this thread meanwhile. A
  /// lease that is given back in this process goes to the first in line at once; of those that
  /// others give back it hears within WaitQueueOptions::recheck, or at once where all processes
  /// stand in one line (WaitQueueOptions::across_processes). See KeyedLimiter::acquire().
  Lease acquire(const Key& key, Cost weight, const Deadline& deadline,
                const WaitOptions& options = {}) const;
  Lease acquire(const Key& key, Cost weight, const Deadline& deadline, const WaitOptions& options,
                std::error_code& error) const;
  /// Callers in this process that wait for the key.
  [[nodiscard]] std::size_t waiting(const Key& key) const {
    return waiters_of(manager_.named(key));
  }

  /// What try_acquire() would answer, with what remains now; changes nothing.
  [[nodiscard]] Decision peek(const Key& key, Cost weight = 1) const {
    return decide_as("peek", peek_step(key, weight));
  }
  [[nodiscard]] Decision peek(const Key& key, std::error_code& error) const noexcept {
    return decide(store(), peek_step(key), error);
  }
  [[nodiscard]] Decision peek(const Key& key, Cost weight, std::error_code& error) const noexcept {
    return decide(store(), peek_step(key, weight), error);
  }

  /// Gives back a lease of which only the id is left. False, and nothing changes, if none with it
  /// is live under this key: it was given back, has lapsed, or is another key's. The second form
  /// then leaves Errc::lease_not_live; the first throws only if the store could not decide.
  /// O(leases of the key).
  bool release(const Key& key, const LeaseId& id) const;
  bool release(const Key& key, const LeaseId& id, std::error_code& error) const noexcept;

  static constexpr Span max_block{LeasesRule::max_block};  ///< 365 days

  /// No lease is granted until `span` from now, under whatever limit up to 2^50, and hints say so:
  /// an upstream has asked to wait. A later time stands, and so do the leases that are held: they
  /// are renewed and given back as ever. reset() opens the key. Not allowed, and nothing changes,
  /// in the one case that LeasesRule::max_holders leases leave no place. `remaining` is 0, and
  /// `reset_after` when the last lease and the block will have ended. Range: 0, which changes
  /// nothing, to max_block, else Errc::invalid_argument, as for a limit above 2^50. A clock that is
  /// set back by up to a minute lengthens a block by as much; after one that is set back further
  /// the first request is granted, whatever is held or blocked. O(leases of the key).
  ///
  ///     if (response.status == 503) jobs.block("alice", feedback.wait());
  Decision block(const Key& key, Span span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const Key& key, Span span, std::error_code& error) const noexcept {
    return decide(store(), block_step(key, span), error);
  }

  /// Takes all leases of the key from their holders, and opens it if it is blocked.
  void reset(const Key& key) const;
  void reset(const Key& key, std::error_code& error) const noexcept;

  /// The step that grants a lease under `id`, for a plan of several steps. If the plan was allowed,
  /// adopt() makes a Lease of its outcome:
  ///
  ///     const LeaseId id = LeaseId::draw(rng);
  ///     const std::array steps{bucket.acquire_step("alice"), jobs.acquire_step(Key{"alice",
  ///     "jobs"}, id)}; std::array<Decision, 2> each; std::array<Word, ConcurrencyLimiter::output>
  ///     told; const Time asked_at = store.clock().now(); if (decide(store, steps, error, each,
  ///     told))
  ///       lease = jobs.adopt(key, id, 1, each[1], told, asked_at);
  [[nodiscard]] Step acquire_step(const Key& key, const LeaseId& id,
                                  Cost weight = 1) const noexcept {
    return manager_.acquire_step(key, {limit_, 0}, weight, id);
  }
  /// The step that peek() asks: in a plan, a condition that takes nothing.
  [[nodiscard]] Step peek_step(const Key& key, Cost weight = 1) const noexcept {
    return manager_.peek_step(key, {limit_, 0}, weight);
  }
  /// The step that release() asks. It always allows; its one detail is 1 if the lease was live.
  [[nodiscard]] Step release_step(const Key& key, const LeaseId& id) const noexcept {
    return manager_.release_step(key, limit_, id);
  }
  /// The step that renews: it refuses, with nothing to wait for, if the lease is not live.
  [[nodiscard]] Step renew_step(const Key& key, const LeaseId& id) const noexcept {
    return manager_.renew_step(key, limit_, id);
  }

  /// The step that block() asks.
  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return manager_.block_step(key, limit_, span);
  }

  /// How many output words the step of acquire_step() has.
  static constexpr std::size_t output = 4;
  /// The lease that a plan's acquire_step() was granted; false if the step was refused. `asked_at`
  /// is what store().clock() showed before the plan was asked, under an id (Plan::once) for the
  /// first time: from then on the holder counts the TTL. Throws std::invalid_argument if `told` is
  /// not `output` words. REQUIRES: the plan as a whole was allowed.
  Lease adopt(const Key& key, const LeaseId& id, Cost weight, const Decision& decision,
              std::span<const Word> told, Time asked_at) const {
    return manager_.adopt(key, {limit_, 0}, weight, id, decision, told, asked_at);
  }

  [[nodiscard]] Word limit() const noexcept { return limit_; }
  [[nodiscard]] const LeaseOptions& options() const noexcept { return manager_.options(); }
  [[nodiscard]] const std::string& name() const noexcept { return manager_.name(); }
  [[nodiscard]] Store& store() const noexcept { return manager_.store(); }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, store(), step);
  }

  detail::LeaseManager manager_;
  Word limit_;
};

/// How acquire() waits; see detail::WaiterFor.
struct ConcurrencyLimiter::Waiting {
  using Grant = Lease;
  struct Request : detail::KeyedRequest {
    Request(const Key& key, Cost weight, const LeaseId& drawn)
        : KeyedRequest(key, weight), id(drawn) {}
    LeaseId id;
  };
  static constexpr bool freed_early = true;
  static Request request(const ConcurrencyLimiter& jobs, const Key& key, Cost weight) {
    return {key, weight, jobs.manager_.draw_id()};
  }
  static Key key(const ConcurrencyLimiter& jobs, const Request& request) noexcept {
    return jobs.manager_.named(request.key());
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(
      const ConcurrencyLimiter& jobs) noexcept {
    return jobs.queues();
  }
  static void borrow_store(ConcurrencyLimiter& jobs) noexcept { jobs.manager_.borrow_store(); }
  static Span reach(const ConcurrencyLimiter&) noexcept { return Span{0}; }
  static Step acquire_step(const ConcurrencyLimiter& jobs, const Request& request) noexcept {
    return jobs.manager_.acquire_new_step(request.key(), {jobs.limit_, 0}, request.cost,
                                          request.id);
  }
  static void ask(const ConcurrencyLimiter& jobs, const Request& request, Span,
                  Completion done) noexcept {
    jobs.store().execute(acquire_step(jobs, request), std::move(done));
  }
  static Grant grant(const ConcurrencyLimiter& jobs, const Request& request, const Outcome& outcome,
                     Time asked) {
    static constexpr std::array<Word, output> none{};
    return jobs.adopt(request.key(), request.id, request.cost, outcome.decision,
                      outcome.output.empty() ? none : outcome.output, asked);
  }
  static void refund(const ConcurrencyLimiter&, const Request&, Grant& grant,
                     Completion done) noexcept {
    grant.release_later();
    done(Outcome{});
  }
};

inline Lease ConcurrencyLimiter::acquire(const Key& key, Cost weight, const Deadline& deadline,
                                         const WaitOptions& options) const {
  return detail::block(*this, Waiting::request(*this, key, weight), deadline, options);
}
inline Lease ConcurrencyLimiter::acquire(const Key& key, Cost weight, const Deadline& deadline,
                                         const WaitOptions& options, std::error_code& error) const {
  return detail::block(*this, Waiting::request(*this, key, weight), deadline, options, error);
}

}  // namespace sluice
