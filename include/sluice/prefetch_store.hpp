// PrefetchStore: decisions without a trip, by units that were taken from another store ahead of
// need.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/extend/store_wrapper.hpp"

namespace sluice {

struct PrefetchStoreOptions {
  /// How long a unit may be held before it is spent, by the store's clock() in this process. 1 us
  /// to an hour.
  Span hold = std::chrono::seconds{1};
  /// The most units of a key that are held at once, beyond what callers wait for: 1 to 2^40. More
  /// than the burst or the limit of a key counts as that.
  Word most = 1000;
  /// After a refusal for longer than this, the store is asked again this often. 1 us or more.
  Span recheck = std::chrono::seconds{1};
  /// The most keys of which units are held. Others are decided by the store. 1 or more.
  std::size_t max_keys = 65'536;
};

/// Statistics of a PrefetchStore. Counters never decrease.
struct PrefetchStats {
  std::uint64_t local = 0;      ///< plans decided without the store
  std::uint64_t trips = 0;      ///< plans sent to the store for units
  std::uint64_t passed_on = 0;  ///< plans sent to the store as they were, or without some steps
  std::uint64_t taken = 0;      ///< units that the store granted ahead of need, or for callers
  std::uint64_t returned = 0;   ///< of them, units that were sent back
  std::uint64_t lapsed = 0;     ///< of them, units that were dropped at the end of `hold`
};

/// Takes units from `inner` ahead of need, keeps them for at most `hold`, and spends them without a
/// trip:
///
///     PrefetchStore prefetch(*redis, {.hold = 500ms});
///     TokenBucket bucket(prefetch, "api", Quota::per_second(100'000).burst(20'000));
///
/// Limiters are unchanged. Prefetched are units of try_acquire() and acquire() of TokenBucket,
/// SharedTokenBucket, FixedWindow and SlidingWindowCounter, and reserve() of the buckets;
/// everything else, and plans with a request id, are decided by `inner`. In a plan, the steps for
/// which enough units are held are decided here, the others by `inner`; it stays all or nothing.
///
/// Bound: a unit is spent at most `hold` after `inner` granted it. So in any interval of t at most
/// burst + rate * (t + hold) units are spent by all processes together, whatever dies or freezes,
/// and in the long run never more than was granted. Units of a window are spent in that window: a
/// fixed window admits no more than without. The price is unused capacity: what a process
/// holds, others cannot spend meanwhile. See docs/prefetch.md.
///
/// A lot is as large as what was spent in the last `hold / 2`, at most `most`, and at most a
/// quarter of what remains. The next one is requested when a quarter of the last is left, in one
/// round trip for all callers of a key. Units that a key has not spent for `hold / 2` are refunded.
///
/// After a refusal a request of the same cost is refused here until its hint, at the latest until
/// `recheck` has passed. A change of the limit through any PrefetchStore on `inner` (a refund,
/// reset, reward, another quota) ends that earlier, by Store::notify(). A block, a reset or another
/// quota also drops what is held here or on its way; others may spend what they hold for up to
/// `hold`.
///
/// Decisions of this store have Source::prefetched. Decision::remaining is then what this process
/// holds and what `inner` last told to remain; `at` is the store's time as far as it is known.
/// peek() asks `inner`, which does not count what is held. Every process of a fleet may choose
/// options of its own, or none.
///
/// After a fork the child holds nothing, and asks `inner` for each plan. If the clock is set back,
/// what is held is dropped. The destructor returns what is held.
///
/// Threading: any member from any thread; answers come on the threads of `inner`, or before
/// execute() returns. Where the clock has no timers, a thread of this store returns idle units.
/// REQUIRES: an inner store that is not owned (StoreHandle) outlives it; its completions do not
/// destroy it.
class PrefetchStore final : public StoreWrapper {
 public:
  /// Throws std::invalid_argument if an option is out of its range.
  explicit PrefetchStore(const StoreHandle& inner, const PrefetchStoreOptions& options = {});
  /// Returns what is held. Who waits for units gets Errc::unknown; `inner` answers all others.
  ~PrefetchStore() override;

  void execute(const Plan& plan, Completion done) noexcept override;
  void bind(const Key& key, Binding& binding) noexcept override;
  /// False: a request with a turn would go to the store, whatever is held here.
  [[nodiscard]] bool keeps_order() const noexcept override { return false; }

  /// The values are read one by one, not at one instant.
  [[nodiscard]] PrefetchStats stats() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
