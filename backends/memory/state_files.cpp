// Files of states: apart from the store, which links no rules that a program does not use.
#include <utility>
#include <vector>

#include "sluice/memory_store.hpp"
#include "src/core/key_name.hpp"
#include "src/core/state_file.hpp"

namespace sluice {

SavedStates save_states(MemoryStore& store, const std::string& path) {
  std::vector<detail::SavedState> states;
  SavedStates result;
  result.unnamed = store.copy_states(states);
  result.saved = detail::write_states(path, std::move(states));
  return result;
}

LoadedStates load_states(MemoryStore& store, const std::string& path) {
  const Word now = to_word(store.clock().now());
  LoadedStates result;
  for (const detail::SavedState& state : detail::read_states(path, now)) {
    const auto name = detail::KeyName::parse(state.key);
    if (state.expiry <= now) {
      ++result.expired;
    } else if (name->is_hashed) {
      ++result.hashed;
    } else {
      store.restore_state(state, name->key(), now, result);
    }
  }
  return result;
}

}  // namespace sluice
