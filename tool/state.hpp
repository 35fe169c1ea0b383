// A state as it is stored in Redis: its kind and its words. Pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::tool {

struct StoredState {
  StateKind kind;
  std::vector<Word> words;  ///< those of the rule
};

/// Null if there is no such kind.
[[nodiscard]] const StateDescription* description_of(unsigned kind) noexcept;

/// Takes a value of Redis apart. Empty if a state of the library has another form.
[[nodiscard]] std::optional<StoredState> decode_state(std::string_view value);

/// The value of a state, as the scripts write it; a cell contains the expiry of its key.
[[nodiscard]] std::string encode_state(const StoredState& state, Word expiry = 0);

}  // namespace sluice::tool
