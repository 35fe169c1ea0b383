// ReplicatedStore: a virtual store with a replica that lags, and fails over to it. Threading: the
// thread that runs the timeline.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/virtual_clock.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::sim {

/// A primary that acknowledges writes before its replicas have them, as Redis does. fail_over()
/// makes a replica the primary: the writes of the last `lag` are forgotten, although their callers
/// were told that they are granted.
///
/// Each replica decides the plans of the primary once more, at their own times, and so comes to the
/// same states. REQUIRES: `clock` outlives it.
class ReplicatedStore final : public Store {
 public:
  /// `replicas`: how often fail_over() and lose_all() may be called together. A plan that writes is
  /// decided 1 + `replicas` times.
  ReplicatedStore(VirtualClock& clock, Span lag, std::size_t replicas = 1);

  void execute(const Plan& plan, Completion done) noexcept override;
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  void notify(const Key& key) noexcept override { watchers_.notify_key(key); }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override {
    return watchers_.subscribe_key(key, std::move(seen));
  }

  /// Forgets the writes of the last `lag`. Throws std::logic_error if no replica is left.
  void fail_over();
  /// The same for all writes, as a server without persistence that starts anew.
  void lose_all();

  /// The number of plans that fail_over() would forget now.
  [[nodiscard]] std::size_t unreplicated();
  /// The number of plans that lose_all() would forget now.
  [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }

 private:
  /// A store with a clock of its own, which shows the time of each plan.
  struct Copy {
    VirtualClock clock;
    std::unique_ptr<Store> store = make_virtual_store(clock);
  };
  struct Entry {
    Time at;
    OwnedPlan plan;
  };

  void replicate();
  std::unique_ptr<Copy> take_replica();

  VirtualClock& clock_;
  Span lag_;
  std::unique_ptr<Copy> primary_;
  std::vector<std::unique_ptr<Copy>> replicas_;
  std::uint64_t writes_ = 0;
  std::deque<Entry> log_;  // what the replicas have not decided yet
  Subscriptions watchers_;
};

}  // namespace sluice::sim
