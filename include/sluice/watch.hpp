// Wake-ups: who watches a key is told when somebody thinks that it should look again. They cost no
// round trip, and any of them may be lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/key.hpp"

namespace sluice {

/// Ends what it stands for when it is destroyed; see Store::watch(). May outlive the store.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
};

/// Who watches what within one process. For those who write stores: a store that decides in this
/// process needs nothing else for Store::notify() and Store::watch(); one that hears of wake-ups
/// from outside hands them on here. Thread-safe.
class Watchers {
 public:
  Watchers();
  ~Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  /// Has `seen` called for each notify() of the channel until the watch is destroyed. May throw
  /// what allocating throws.
  [[nodiscard]] std::unique_ptr<Watch> watch(std::string channel, std::function<void()> seen);
  /// Calls who watches the channel, on this thread and in the order in which they came. No lock is
  /// held meanwhile. O(1) if nobody watches it.
  void notify(std::string_view channel) noexcept;
  /// The same for a key, as Store has them: null, if there is no memory.
  [[nodiscard]] std::unique_ptr<Watch> watch_key(const Key& key,
                                                 std::function<void()> seen) noexcept;
  void notify_key(const Key& key) noexcept;
  [[nodiscard]] bool is_watched(std::string_view channel) const;

 private:
  struct Table;
  class Entry;
  std::shared_ptr<Table> table_;
};

}  // namespace sluice
