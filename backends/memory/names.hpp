// Names: the name of the key in each slot of a table, for a store whose states are saved. The table
// itself knows only their hashes. Threading: any thread may call any member, under short locks.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/memory/slot.hpp"
#include "sluice/key.hpp"

namespace sluice::memory {

class Names {
 public:
  explicit Names(std::size_t slots) : names_(slots) {}

  /// Notes the name of a key whose slot was just claimed, unless the slot has another owner again.
  void put(std::size_t index, const Slot& slot, const SlotId& id, const Key& key) noexcept {
    std::string text;
    try {
      text = render(key);
      const std::lock_guard lock(lock_of(index));
      if (!id.matches(slot.identity.low(), slot.identity.high())) return;
      names_[index] = std::make_unique<Name>(Name{id.low(), std::move(text)});
    } catch (const std::bad_alloc&) {  // the state stays without a name
    }
  }

  /// The name of the owner with this hash; empty: not known, or not yet.
  [[nodiscard]] std::string find(std::size_t index, std::uint64_t hash) const {
    const std::lock_guard lock(lock_of(index));
    const auto& name = names_[index];
    return name && name->hash == hash ? name->text : std::string();
  }

 private:
  struct Name {
    std::uint64_t hash;
    std::string text;
  };

  [[nodiscard]] std::mutex& lock_of(std::size_t index) const noexcept {
    return locks_[index % locks_.size()];
  }

  std::vector<std::unique_ptr<Name>> names_;
  mutable std::array<std::mutex, 64> locks_;
};

}  // namespace sluice::memory
