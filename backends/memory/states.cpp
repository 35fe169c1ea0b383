// Copying the states of a store, and restoring them.
#include <algorithm>
#include <stdexcept>

#include "backends/memory/engine.hpp"

namespace sluice::memory {

std::size_t Engine::copy_states(std::vector<detail::SavedState>& states) {
  if (!names_) throw std::logic_error("save_states() needs MemoryOptions::keep_names");
  const Word now = to_word(clock().now());
  std::vector<Word> buffer(max_state_words);
  std::size_t unnamed = 0;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    detail::SavedState state;
    if (!copy_state(i, now, buffer, state)) continue;
    if (state.key.empty()) {
      ++unnamed;
    } else {
      states.push_back(std::move(state));
    }
  }
  return unnamed;
}

/// False if the slot has no state that means something. The slot is locked while its words are
/// copied to the buffer, which allocates nothing.
bool Engine::copy_state(std::size_t index, Word now, std::span<Word> buffer,
                        detail::SavedState& state) {
  Slot& slot = table_.slot(index);
  ContentionStats contention;
  for (Pause pause;; pause()) {
    const Pair identity = slot.snapshot().identity;
    if (identity.high == 0) return false;
    LockedSlot mine{&slot, {{identity.low, identity.high}, Slot::kind(identity.high)}};
    if (!mine.hold(contention)) continue;  // it gets another owner
    const std::span<const Word> words =
        is_cell(mine.kind) ? std::span<const Word>(mine.words) : mine.state(blocks_);
    std::copy(words.begin(), words.end(), buffer.begin());
    mine.let_go();
    count(contention);
    const std::span<const Word> copy = buffer.first(words.size());
    const bool idle = mine.until != never && mine.until <= tick(now);
    if (idle || std::all_of(copy.begin(), copy.end(), [](Word w) { return w == 0; })) return false;
    state.key = name_in(index, identity.low);
    state.kind = mine.kind;
    state.expiry = std::min(instant(mine.until), word_limit);
    state.words.assign(copy.begin(), copy.end());
    return true;
  }
}

/// The thread that has claimed the slot notes the name behind that, so that a state may be there
/// first.
std::string Engine::name_in(std::size_t index, std::uint64_t hash) const {
  constexpr int patience = 1'000;
  Pause pause;
  std::string name;
  for (int i = 0; i < patience && name.empty(); ++i, pause()) name = names_->find(index, hash);
  return name;
}

void Engine::restore_state(const detail::SavedState& state, const Key& key, Word now,
                           LoadedStates& counts) noexcept {
  const SlotId id{hash(key), state.kind};
  ContentionStats contention;
  for (Pause pause;; pause()) {
    Slot* slot = table_.find_or_claim(id, soon(now));
    if (slot == nullptr) {
      const std::lock_guard lock(stripes_[stripe_of(id)]);
      slot = table_.find(id).slot;
      if (slot == nullptr) slot = take_over(id, {}, now);
    }
    if (slot == nullptr) {
      ++counts.no_room;
      return;
    }
    name(*slot, id, key);
    if (Slot::kind(slot->identity.high()) != id.kind) change_kind(*slot, id, now);
    LockedSlot mine{slot, id};
    if (!mine.hold(contention)) continue;
    restore_in(mine, state, now, counts);
    return;
  }
}

/// Unlocks the slot.
void Engine::restore_in(LockedSlot& mine, const detail::SavedState& state, Word now,
                        LoadedStates& counts) noexcept {
  const bool is_cell_state = is_cell(state.kind);
  const bool is_idle = mine.until != never && mine.until <= tick(now);
  const bool is_absent = is_cell(mine.kind) ? mine.words == StateWords{} : mine.words[0] == 0;
  const bool is_known = mine.kind != state.kind || (!is_absent && !is_idle);
  if (is_known || (!is_cell_state && !secure(mine, state.words.size(), now))) {
    ++(is_known ? counts.known : counts.no_room);
    mine.let_go();
  } else {
    const std::span<Word> words =
        is_cell_state ? std::span<Word>(mine.words) : mine.grow(blocks_, state.words.size());
    std::copy(state.words.begin(), state.words.end(), words.begin());
    if (!is_cell_state) mine.cut(state.words.size());
    mine.until = std::max(mine.until, tick_after(state.expiry));
    mine.let_go_changed();
    ++counts.restored;
  }
  blocks_.refund(mine.larger);
}

}  // namespace sluice::memory
