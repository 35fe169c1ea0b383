// What a state says: decoded by the library's own kernels and State structs. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sluice/quota.hpp"
#include "src/core/key_name.hpp"
#include "tool/state.hpp"

namespace sluice::tool {

using detail::KeyName;

/// An instant of the server's clock, in microseconds.
struct Moment {
  Word us = 0;
};
using Value = std::variant<Word, double, Span, Moment, std::string>;

/// One fact. Its name has underscores.
struct Field {
  std::string name;
  Value value;
};
using Fields = std::vector<Field>;

/// What the caller knows, and most states do not contain.
struct Given {
  std::optional<Quota> quota{};
  std::vector<Word> limits{};  ///< one, or one for each window
  /// Of a key that the table never or always admits: 0, or unlimited.
  std::optional<Word> constant{};
  Word cost = 1;  ///< of the request that Description::verdict is about
  /// Sets `quota`, `limits` or `constant` to those of a key with a state of this kind, where a
  /// table has them. Throws std::invalid_argument if the table is one of other limiters.
  std::function<void(Given&, const KeyName&, StateKind)> fill{};
};

struct Description {
  std::string kind{};     ///< "a token bucket"
  bool is_sound = true;   ///< false: no rule writes such words
  std::string summary{};  ///< "3 of 5 used"
  Fields fields{};
  std::string rows_name{};  ///< "holders", "waiting"
  std::vector<Fields> rows{};
  std::optional<Word> used{};
  std::optional<Word> limit{};
  /// On a request, where the rule can tell; it may be an error, such as of a cost beyond the limit.
  std::optional<Verdict> verdict{};
};

/// The key of those who wait for this one; empty if that cannot be told.
[[nodiscard]] std::string wait_line_of(const KeyName& name);

/// The text of a field; empty if there is none.
[[nodiscard]] std::string field_text(const Description& description, std::string_view name);

/// Throws std::invalid_argument if what is given contradicts the key.
[[nodiscard]] Description describe(const KeyName& name, const StoredState& state,
                                   const Given& given, Word now);

}  // namespace sluice::tool
