// Wake-ups: notifications to the subscribers of a key that a retry may succeed. They cost no round
// trip, and any of them may be lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/key.hpp"

namespace sluice {

/// A subscription, which ends when this object is destroyed; see Store::subscribe(). May outlive
/// the store.
class Subscription {
 public:
  Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  virtual ~Subscription() = default;
};

/// The subscriptions in one process, for implementations of stores. For a store that decides in
/// this process they implement Store::notify() and Store::subscribe(); one that receives wake-ups
/// from outside forwards them here. Thread-safe.
class Subscriptions {
 public:
  Subscriptions();
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// Calls `seen` for each notify() of the channel until the subscription is destroyed. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::string channel,
                                                        std::function<void()> seen);
  /// Calls the subscribers of the channel on this thread, in the order of their subscriptions,
  /// without a lock. O(1) if there is none.
  void notify(std::string_view channel) noexcept;
  /// The same for a key, as in Store; null: no memory.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe_key(const Key& key,
                                                            std::function<void()> seen) noexcept;
  void notify_key(const Key& key) noexcept;
  [[nodiscard]] bool is_watched(std::string_view channel) const;

 private:
  struct Table;
  class Entry;
  std::shared_ptr<Table> table_;
};

}  // namespace sluice
