// ObservedStore: a store that tells an Observer what is decided, who waits and what is leased.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/observer.hpp"

namespace sluice {

/// A store in front of another one, which tells an observer what happens:
///
///     Metrics metrics;
///     ObservedStore store(make_memory_store(), metrics);
///     TokenBucket bucket(store, "api", Quota::per_second(100));
///     ...
///     std::cout << metrics.text();
///
/// Decisions are those of calls that ask for something: try_acquire(), reserve(), the tries of
/// waits and of calls; peek(), refunds and changes are none. A call that was not executed because
/// its alternative was granted is none either. Waits, leases and retries are told of limiters on
/// this store, or on one that wraps it: put it in front of a FallbackStore and a PrefetchStore to
/// count their decisions as well, behind them to count requests.
///
/// Costs a virtual call and that of the observer, and O(steps) for a plan; no allocation once it
/// has seen as many requests under way as there ever are. Without memory, a request is made and not
/// told. Thread-safe. REQUIRES: the observer outlives the store.
class ObservedStore final : public StoreWrapper {
 public:
  /// `name`: of the store, in events.
  ObservedStore(const StoreHandle& inner, Observer& observer, detail::TextArg name = "store");
  ~ObservedStore() override;

  void execute(const Plan& plan, Completion done) noexcept override;
  [[nodiscard]] Decision decide_one(const Step& step, std::error_code& error) noexcept override;
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  void execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  [[nodiscard]] Observer* observer() const noexcept override;

  [[nodiscard]] const std::string& name() const noexcept;

 private:
  struct Request;
  struct Trip;
  struct Watch;

  [[nodiscard]] Completion observed(const Plan& plan, Completion done,
                                    bool may_be_skipped) noexcept;
  [[nodiscard]] unsigned part_asked(std::span<const Step> steps) const noexcept;
  void observe_all(std::span<const Plan> plans, std::span<Completion> done,
                   bool may_be_skipped) noexcept;

  Clock* clock_;  // of how long the store takes; null: it answers at once
  std::shared_ptr<Watch> watch_;
};

}  // namespace sluice
