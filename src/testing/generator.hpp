// The random requests for one algorithm: configurations, calls, and calls that can never be
// admitted. Threading: pure functions.
#pragma once

#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/rng.hpp"

namespace sluice::testing::detail {

__extension__ typedef __int128 Wide;  // products of words

/// From [1, 2^bits), each length in bits as likely as any other.
inline Word log_uniform(Rng& rng, unsigned bits) {
  const auto length = 1 + rng.below(bits);
  const auto top = std::uint64_t{1} << (length - 1);
  return static_cast<Word>(top + rng.below(top));
}

/// A uniform draw from [low, high]. REQUIRES: low <= high, less than 2^63 apart.
inline Word uniform(Rng& rng, Word low, Word high) {
  return low + static_cast<Word>(rng.below(static_cast<std::uint64_t>(high - low) + 1));
}

/// The configuration of a limiter: all arguments but those of one call, and its table.
struct Configuration {
  Arguments args{};
  std::vector<Word> table{};
};

/// For rules whose units are refilled with time.
struct Spender {
  const Operation* acquire;  ///< spends; admits a cost of 0
  const Operation* peek;     ///< decides the same and changes nothing
  /// `limit` units, all available on a fresh key; less than one is refilled in a day. REQUIRES:
  /// limit in [1, 2000].
  Configuration (*frozen)(Word limit);
  /// Takes an hour or more to recover, and refuses soon.
  Configuration (*slow)(Rng&);
  /// Sets the arguments of one call of `acquire` or `peek`: this many units, at once.
  void (*ask)(Arguments&, Word units);
  /// The most units that `acquire` may admit within any `us` microseconds.
  Wide (*most)(const Configuration&, Word us);
};

/// The generator of random requests for one kind of rule.
struct Generator {
  StateKind kind;
  /// Any configuration that the rule accepts, extreme ones as likely as everyday ones.
  Configuration (*any)(Rng&);
  /// Makes a configuration's arguments those of one call of `row`, as check() accepts them.
  void (*draw)(Rng&, const Operation& row, Arguments&);
  /// Makes them what `row` can never admit, for trial 0, 1, 2...; false past the end.
  bool (*impossible)(const Operation& row, Arguments&, std::size_t trial);
  const Spender* spender;  ///< null if the rule has no units that are refilled with time
};

}  // namespace sluice::testing::detail
