// See state.hpp. docs/redis_scripts.md has the form.
#include "tool/state.hpp"

#include <cstring>
#include <string>

namespace sluice::tool {
namespace {

/// The expiry of its key, which the scripts keep behind the words of a cell.
constexpr std::size_t expiry_words = 1;

}  // namespace

const StateDescription* description_of(unsigned kind) noexcept {
  for (const StateDescription& each : state_descriptions) {
    if (static_cast<unsigned>(each.kind) == kind) return &each;
  }
  return nullptr;
}

std::optional<StoredState> decode_state(std::string_view value) {
  if (value.size() % sizeof(Word) != 1) return std::nullopt;
  const StateDescription* const kind = description_of(static_cast<unsigned char>(value[0]));
  if (kind == nullptr) return std::nullopt;
  StoredState state{kind->kind, std::vector<Word>(value.size() / sizeof(Word))};
  if (kind->is_cell && state.words.size() != cell_words + expiry_words) return std::nullopt;
  if (state.words.empty() || state.words.size() > max_state_words) return std::nullopt;
  std::memcpy(state.words.data(), value.data() + 1, value.size() - 1);
  if (kind->is_cell) state.words.resize(cell_words);
  return state;
}

std::string encode_state(const StoredState& state, Word expiry) {
  std::vector<Word> words = state.words;
  if (is_cell(state.kind)) words.push_back(expiry);
  std::string value(1 + words.size() * sizeof(Word), static_cast<char>(state.kind));
  std::memcpy(value.data() + 1, words.data(), value.size() - 1);
  return value;
}

}  // namespace sluice::tool
