// A store as those refer to it who may outlive it. Threading: as detail::Life.
#pragma once

#include <utility>

#include "sluice/store.hpp"

namespace sluice::detail {

/// Of who waits for a limiter, and of who holds a lease: what is to be given back when a coroutine
/// ends is given back only while somebody can take it.
class StoreRef {
 public:
  explicit StoreRef(Store& store) noexcept
      : store_(&store), store_life_(store.life()), clock_life_(store.clock().life()) {}

  /// The store has ended, or the simulated world that its clock belongs to: it is not to be used.
  [[nodiscard]] bool is_over() const noexcept {
    return store_life_.is_over() || clock_life_.is_over();
  }
  /// REQUIRES: it is not over, unless only the address is of interest.
  [[nodiscard]] Store& get() const noexcept { return *store_; }

  /// Errc::shut_down if it is over.
  void execute(const Plan& plan, Completion done) const noexcept {
    if (is_over()) return done.fail(Errc::shut_down);
    store_->execute(plan, std::move(done));
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
