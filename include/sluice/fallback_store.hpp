// A store in front of one that may fail: what is decided when it does, chosen by name.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/circuit_breaker.hpp"
#include "sluice/detail/in_flight.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// What becomes of a request that a store cannot decide. There is no default.
class FailurePolicy {
 public:
  /// Admits it: while the store is away nothing is limited. Decision::source is Source::policy.
  [[nodiscard]] static FailurePolicy open() noexcept { return {Kind::open, {}, 1}; }
  /// Refuses it; `retry_after` is when the store is tried again at the earliest, not a promise.
  /// Decision::source is Source::policy.
  [[nodiscard]] static FailurePolicy closed() noexcept { return {Kind::closed, {}, 1}; }
  /// Decides it in `store`, each limit divided by `clients`, so that as many clients that do the
  /// same keep it together. Decision::source is Source::fallback. REQUIRES: a store that is not
  /// owned (StoreHandle) outlives the FallbackStore. Throws std::invalid_argument unless 1 <=
  /// clients <= 2^20.
  ///
  /// Divided, rounded down: the capacity and the rate of token buckets; the limits of windows and
  /// of leases; the rate of slots (each client's lie `clients` times as far apart). A request that
  /// exceeds its share is refused as by closed(), and its step is named. Gates and shedders are as
  /// they are, and know what this client has told them.
  ///
  /// Nothing is granted for a time ahead: reserve() and borrow() answer what is there now, or a
  /// refusal that says when it will be. Else what is promised here would come due when the primary
  /// grants as well.
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

/// What went through a FallbackStore. Counters only rise.
struct FallbackStats {
  std::uint64_t primary = 0;            ///< plans that the primary was asked
  std::uint64_t failures = 0;           ///< of them, those that it could not decide
  std::uint64_t degraded_grants = 0;    ///< admitted without it
  std::uint64_t degraded_refusals = 0;  ///< refused without it
  std::uint64_t degraded_errors = 0;    ///< no honest answer without it: an error
  std::uint64_t unreadable = 0;         ///< answered by it with wrong_type or corrupt_state
};

/// Asks `primary` while its breaker lets it, and decides by the policy when the primary cannot or
/// is not to be asked:
///
///     CircuitBreaker breaker(redis->clock());
///     FallbackStore store(*redis, breaker, FailurePolicy::local(*memory, 20));
///     TokenBucket bucket(store, "api", Quota::per_second(1000).burst(100));
///
/// Once `failures` calls in a row have failed, calls cost nothing until a probe finds the primary
/// again; at most one caller at a time waits for a dead server.
///
/// A decision says how it came about: Decision::source is that of the primary, or Source::policy,
/// or Source::fallback. One without the primary has charged nothing there. If the primary's answer
/// was lost (Failure::unknown), it may have charged as well.
///
/// What the policy answers are requests to be let through, and questions (`take`, `reserve`,
/// `acquire`, `peek`...). What is only meaningful where the state lies ends in the primary's error,
/// or in Errc::circuit_open if it was not asked: giving back, settling, resetting, configuring,
/// closing and opening gates, and plans that hold such a step. Under local() these work as well:
/// - returning and renewing leases, which are known by their ids: here if it was granted here;
/// - closing a gate and samples of utilization, which count for this client alone meanwhile.
/// A shared sliding window that was not read before, and under local() a shared token bucket, end
/// in the error.
///
/// What was granted without the primary has nothing to give back there: refund(), cancel() and
/// settle() know it and return nothing. A lease granted so has fence 0, which whoever checks fences
/// refuses; under open() nobody holds it, so renewing it later says that it is lost.
///
/// What lies under a key and is no state (wrong_type, corrupt_state) is answered by the policy as
/// well, and counted apart: the primary is well, and the breaker stays as it is.
///
/// Not replaced, and not counted as failures: errors about the request (cost_exceeds_capacity,
/// invalid_..., wrong_kind, not_configured...), cancelled and would_deadlock, store_full, which a
/// flood of new keys would turn into an open door, and shut_down.
///
/// A bound: with M clients under local(), capacity C and rate r, an outage of the primary that
/// keeps its state adds at most M * floor(C / M) <= C, and r * d over the d seconds for which
/// clients decide alone. Other limiters: see docs/failures.md.
///
/// By default the primary is asked again within 350 ms of when it answers, if anybody asks:
/// BreakerOptions::longest_pause, and `within` for a call that was out before.
///
/// Threading: any member from any thread; answers come on the threads of the two stores, or before
/// execute() returns. Waiting is measured on the primary's clock. A call costs three or more
/// allocations and three short locks beside the primary's own cost. REQUIRES: the breaker, and
/// stores that it does not own (StoreHandle), outlive it; it is not destroyed by what it answers.
class FallbackStore final : public Store {
 public:
  /// `within`: how long the primary may take for a call that does not say Plan::within(), and for
  /// a probe that says more. A call that allows less and gets no answer is answered by the policy,
  /// but tells the breaker nothing.
  /// Throws std::invalid_argument if it is not at least 1 us.
  FallbackStore(const StoreHandle& primary, CircuitBreaker& breaker, const FailurePolicy& policy,
                Span within = std::chrono::milliseconds{100});
  /// Calls under way end in Errc::unknown.
  ~FallbackStore() override { end(); }

  void execute(const Plan& plan, Completion done) noexcept override;
  /// While the breaker is closed the primary gets them as one batch, and each that fails is
  /// answered by the policy; else one after the other.
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  [[nodiscard]] Clock& clock() noexcept override { return primary_->clock(); }
  void bind(const Key& key, Binding& binding) noexcept override { primary_->bind(key, binding); }
  void notify(const Key& key) noexcept override { primary_->notify(key); }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override {
    return primary_->subscribe(key, std::move(seen));
  }
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept override {
    return primary_->reason_of(error);
  }
  [[nodiscard]] bool may_block() const noexcept override;

  /// The figures are read one by one.
  [[nodiscard]] FallbackStats stats() const noexcept;

 private:
  class PrimaryCall;
  class LocalCall;

  /// The one probe that this store may have out: not lost to the breaker when the store ends.
  class Probe {
   public:
    explicit Probe(CircuitBreaker& breaker) noexcept : breaker_(breaker) {}
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    ~Probe() {
      if (era_ != none)
        breaker_.answer({true, true, era_, Span{0}}, CircuitBreaker::Result::unclear);
    }
    void begin(const CircuitBreaker::Leave& leave) noexcept {
      if (leave.is_probe) era_ = leave.era;
    }
    void end(const CircuitBreaker::Leave& leave, CircuitBreaker::Result result) noexcept {
      if (leave.is_probe) era_ = none;  // before the breaker may let the next one out
      breaker_.answer(leave, result);
    }

   private:
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    CircuitBreaker& breaker_;
    std::atomic<std::uint64_t> era_{none};
  };

  struct Counts {
    std::atomic<std::uint64_t> primary{0};
    std::atomic<std::uint64_t> failures{0};
    std::atomic<std::uint64_t> grants{0};
    std::atomic<std::uint64_t> refusals{0};
    std::atomic<std::uint64_t> errors{0};
    std::atomic<std::uint64_t> unreadable{0};
  };

  /// What the primary is asked.
  struct Passed {
    Plan plan;
    Completion done;
  };

  using StepSet = std::bitset<Plan::max_steps>;

  [[nodiscard]] Plan timed(const Plan& plan, bool is_probe) const noexcept;
  [[nodiscard]] std::optional<Passed> pass_on(const Plan& plan, Completion& done) noexcept;
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

  /// It allows so little that no answer in time says nothing about the primary.
  [[nodiscard]] bool is_impatient(const Plan& plan) const noexcept {
    return plan.timeout() != Span{0} && plan.timeout() < within_;
  }

  StoreHandle primary_;
  CircuitBreaker& breaker_;
  FailurePolicy policy_;
  Span within_;
  Counts counts_;
  std::atomic<bool> has_leased_{false};  // the local store has granted leases
  Probe probe_;
  detail::InFlight in_flight_;  // the last: it answers what is under way
};

}  // namespace sluice
