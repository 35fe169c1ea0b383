// StoreRef: a reference to a store that may be destroyed earlier. Threading: as detail::Life.
#pragma once

#include <span>
#include <utility>

#include "sluice/store.hpp"

namespace sluice::detail {

/// The store of a wait or a lease. When a coroutine ends late, its grant is released only if the
/// store still exists.
class StoreRef {
 public:
  explicit StoreRef(Store& store) noexcept
      : store_(&store), store_life_(store.life()), clock_life_(store.clock().life()) {}

  /// True if the store, or the simulated world of its clock, has ended: it must not be used.
  [[nodiscard]] bool is_over() const noexcept {
    return store_life_.is_over() || clock_life_.is_over();
  }
  /// REQUIRES: is_over() is false, unless only the address is used.
  [[nodiscard]] Store& get() const noexcept { return *store_; }

  /// Fails with Errc::shut_down if the store has ended.
  void execute(const Plan& plan, Completion done) const noexcept {
    if (is_over()) return done.fail(Errc::shut_down);
    store_->execute(plan, std::move(done));
  }
  void execute_first(std::span<const Plan> plans, std::span<Completion> done) const noexcept {
    if (!is_over()) return store_->execute_first(plans, done);
    for (Completion& each : done) each.fail(Errc::shut_down);
  }
  void notify(const Key& key) const noexcept {
    if (!is_over()) store_->notify(key);
  }

 private:
  Store* store_;
  Life::View store_life_;
  Life::View clock_life_;
};

}  // namespace sluice::detail
