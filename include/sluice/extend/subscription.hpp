// Wake-ups: the subscriber of a key is told when somebody thinks that it should look again. They
// cost no round trip, and any of them may be lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/key.hpp"

namespace sluice {

/// Ends what it stands for when it is destroyed; see Store::subscribe(). May outlive the store.
class Subscription {
 public:
  Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  virtual ~Subscription() = default;
};

/// The subscriptions within one process. For those who write stores: a store that decides in this
/// process needs nothing else for Store::notify() and Store::subscribe(); one that hears of
/// wake-ups from outside hands them on here. Thread-safe.
class Subscriptions {
 public:
  Subscriptions();
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// Has `seen` called for each notify() of the channel until the subscription is destroyed. May
  /// throw what allocating throws.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::string channel,
                                                        std::function<void()> seen);
  /// Calls the subscribers of the channel, on this thread and in the order in which they came. No
  /// lock is held meanwhile. O(1) if there is none.
  void notify(std::string_view channel) noexcept;
  /// The same for a key, as Store has them: null, if there is no memory.
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
