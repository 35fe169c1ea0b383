// FallbackStore: a store with a failure policy in front of a store that may fail.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/circuit_breaker.hpp"
#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/in_flight.hpp"
#include "sluice/extend/store_wrapper.hpp"

namespace sluice {

/// How a FallbackStore decides requests without its primary store. There is no default.
class FailurePolicy {
 public:
  /// Admits every request: nothing is limited during an outage. Decision::source is Source::policy.
  [[nodiscard]] static FailurePolicy open() noexcept { return {Kind::open, {}, 1}; }
  /// Refuses every request; `retry_after` is the earliest time at which the primary is called
  /// again. Decision::source is Source::policy.
  [[nodiscard]] static FailurePolicy closed() noexcept { return {Kind::closed, {}, 1}; }
  /// Decides requests in a local `store`, with each limit divided by `clients`, so that this many
  /// clients together keep the limit. Decision::source is Source::fallback. REQUIRES: a store that
  /// is not owned (StoreHandle) outlives the FallbackStore. Throws std::invalid_argument unless 1
  /// <= clients <= 2^20.
  ///
  /// Divided, rounded down, are the capacity and the rate of token buckets, the limits of windows
  /// and of leases, and the rate of slots (each client's slots are `clients` times as far apart). A
  /// request that exceeds its share is refused as by closed(), with its step. Gates and shedders
  /// are not divided, and use this client's closures and samples.
  ///
  /// There are no reservations ahead of time: reserve() and borrow() grant what is available now,
  /// or refuse with a hint. A reservation would come due when the primary grants as well.
  [[nodiscard]] static FailurePolicy local(const StoreHandle& store, Word clients);

  enum class Kind : std::uint8_t { open, closed, local };
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] Store* store() const noexcept { return store_ ? &**store_ : nullptr; }
  [[nodiscard]] Word clients() const noexcept { return clients_; }

 private:
  FailurePolicy(Kind kind, std::optional<StoreHandle> store, Word clients) noexcept
      : kind_(kind), store_(std::move(store)), clients_(clients) {}
  Kind kind_;
  std::optional<StoreHandle> store_;
  Word clients_;
};

/// Statistics of a FallbackStore. Counters never decrease.
struct FallbackStats {
  std::uint64_t primary = 0;            ///< plans sent to the primary
  std::uint64_t failures = 0;           ///< of them, those that it failed to decide
  std::uint64_t degraded_grants = 0;    ///< admitted without the primary
  std::uint64_t degraded_refusals = 0;  ///< refused without the primary
  std::uint64_t degraded_errors = 0;    ///< failed: the request has no answer without the primary
  std::uint64_t unreadable = 0;         ///< of the primary's answers, wrong_type and corrupt_state
};

/// Calls `primary` while its circuit breaker allows that, and decides by the policy otherwise, or
/// when the primary fails:
///
///     CircuitBreaker breaker(redis->clock());
///     FallbackStore store(*redis, breaker, FailurePolicy::local(*memory, 20));
///     TokenBucket bucket(store, "api", Quota::per_second(1000).burst(100));
///
/// After BreakerOptions::failures failed calls in a row, calls take no time until a probe succeeds;
/// at most one caller at a time waits for an unavailable server.
///
/// The parts of the primary (Store::part_of), such as the nodes of a cluster, fail apart: the
/// breaker has a state for each, and plans whose part answers are decided by the primary. A part
/// that becomes reachable again is called at once, without the rest of the pause.
///
/// Decision::source is that of the primary, Source::policy or Source::fallback. A decision without
/// the primary has charged nothing there. If the primary's answer was lost (Failure::unknown), it
/// may have charged as well.
///
/// The policy answers requests for grants, and peeks. Operations on the state in the primary
/// (refunds, settling, resets, configuration, closing and opening gates), and plans with such a
/// step, fail with the primary's error, or with Errc::circuit_open if it was not called. Under
/// local() these work as well:
/// - releasing and renewing leases that the local store has granted, by their ids;
/// - closing a gate and samples of utilization, which count for this client alone meanwhile.
///
/// A shared sliding window whose configuration was not read before, and under local() a shared
/// token bucket, fail with the primary's error.
///
/// Grants without the primary have nothing to refund there: refund(), cancel() and settle()
/// recognise them and return nothing. A lease granted without the primary has fence 0, which a
/// resource that checks fences rejects; under open() no store holds it, so that renewing it later
/// reports it as lost.
///
/// If a key holds something else (wrong_type, corrupt_state), the policy answers as well, with a
/// counter of its own; this does not affect the breaker.
///
/// Passed to the caller and not counted as failures are errors of the request
/// (cost_exceeds_capacity, invalid_..., wrong_kind, not_configured...), cancelled and
/// would_deadlock, store_full, because otherwise a flood of new keys could disable the limit,
/// shut_down and forked.
///
/// In a forked child every plan goes to the primary, and its errors to the caller: the child makes
/// a FallbackStore of its own. Request ids are for the primary: the policy and a local store do not
/// keep them, so that ids do not fill the local store, and a plan that is repeated without the
/// primary is decided anew.
///
/// Bound: with M clients under local(), capacity C and rate r, an outage of a primary that keeps
/// its state adds at most M * floor(C / M) <= C, and r * d over the d seconds for which clients
/// decide alone. See docs/failures.md for other limiters.
///
/// By default, if there are calls, the primary is called again within 350 ms after it has
/// recovered: BreakerOptions::longest_pause, and `within` for a call that was pending before.
///
/// Threading: any member from any thread; answers come on the threads of the two stores, or before
/// execute() returns. Waits are measured on the primary's clock. A call costs three or more
/// allocations and three short locks in addition to the primary's own cost. REQUIRES: the breaker,
/// and stores that it does not own (StoreHandle), outlive it; its completions do not destroy it.
class FallbackStore final : public StoreWrapper {
 public:
  /// `within`: the timeout of the primary for a call without Plan::within(), and the longest for a
  /// probe. A call with a shorter timeout that gets no answer is answered by the policy, but does
  /// not count for the breaker. Throws std::invalid_argument if it is not at least 1 us.
  FallbackStore(const StoreHandle& primary, CircuitBreaker& breaker, const FailurePolicy& policy,
                Span within = std::chrono::milliseconds{100});
  /// Pending calls fail with Errc::unknown.
  ~FallbackStore() override { end(); }

  void execute(const Plan& plan, Completion done) noexcept override;
  /// The primary gets the plans whose part is closed as one batch, and the policy answers those
  /// that fail; the others follow one after the other.
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  /// False: a local store may have another clock.
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
  [[nodiscard]] bool may_block() const noexcept override;

  /// The values are read one by one, not at one instant.
  [[nodiscard]] FallbackStats stats() const noexcept;

 private:
  class PrimaryCall;
  class LocalCall;

  /// The pending probes of this store, at most one for each part: they are reported to the breaker
  /// when the store ends.
  class Probes {
   public:
    explicit Probes(CircuitBreaker& breaker) noexcept : breaker_(breaker) {}
    Probes(const Probes&) = delete;
    Probes& operator=(const Probes&) = delete;
    ~Probes();
    /// Throws std::bad_alloc; the permit is then still to be passed to end().
    void begin(const CircuitBreaker::Permit& permit);
    void end(const CircuitBreaker::Permit& permit, CircuitBreaker::Result result) noexcept;

   private:
    CircuitBreaker& breaker_;
    detail::HomeProcess home_;
    std::mutex mutex_;
    std::vector<CircuitBreaker::Permit> pending_;
  };

  struct Counts {
    std::atomic<std::uint64_t> primary{0};
    std::atomic<std::uint64_t> failures{0};
    std::atomic<std::uint64_t> grants{0};
    std::atomic<std::uint64_t> refusals{0};
    std::atomic<std::uint64_t> errors{0};
    std::atomic<std::uint64_t> unreadable{0};
  };

  /// A call to the primary.
  struct Passed {
    Plan plan;
    Completion done;
  };

  using StepSet = std::bitset<Plan::max_steps>;

  [[nodiscard]] Plan timed(const Plan& plan, bool is_probe) const noexcept;
  [[nodiscard]] StorePart part_for(const Plan& plan) const noexcept;
  [[nodiscard]] std::optional<Passed> pass_on(const Plan& plan, const StorePart& part,
                                              Completion& done) noexcept;
  void decide_without(const Plan& plan, std::error_code error, Span hint, Completion done) noexcept;
  void answer_by_policy(const Plan& plan, StepSet refused, Span hint, Completion& done) noexcept;
  void decide_locally(const Plan& plan, std::error_code error, Span hint,
                      Completion& done) noexcept;
  void ask_local_holder(const Plan& plan, const Outcome& first, Completion& done) noexcept;
  void ask_local(const Plan& plan, std::unique_ptr<detail::PassedCall> call,
                 Completion& done) noexcept;
  void deliver(Completion& done, const Outcome& outcome) noexcept;
  /// `part`: of Errc::wrong_kind, what lies under the key; see Completion::fail().
  void fail(Completion& done, std::error_code error, std::size_t step,
            std::uint16_t part = 0) noexcept;

  /// The timeout of the plan is so short that a missing answer proves nothing about the primary.
  [[nodiscard]] bool is_impatient(const Plan& plan) const noexcept {
    return plan.timeout() != Span{0} && plan.timeout() < within_;
  }

  detail::HomeProcess home_;
  CircuitBreaker& breaker_;
  FailurePolicy policy_;
  Span within_;
  Counts counts_;
  std::atomic<bool> has_leased_{false};  // the local store has granted leases
  Probes probes_;
  detail::InFlight in_flight_;  // the last member: it fails pending calls
};

}  // namespace sluice
