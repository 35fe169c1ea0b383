// Random requests for the rows of the table of operations (configurations, calls, and calls that
// can never be admitted): one generator for each kind of state. A new algorithm adds its file and
// its line here, and every claim then covers its rows. Threading: pure functions.
#pragma once

#include <span>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/quota.hpp"
#include "sluice/rng.hpp"

namespace sluice::testing::detail {

__extension__ typedef __int128 Wide;  // products of words

/// From [1, 2^bits), each length in bits as likely as any other.
[[nodiscard]] inline Word log_uniform(Rng& rng, unsigned bits) {
  const auto length = 1 + rng.below(bits);
  const auto top = std::uint64_t{1} << (length - 1);
  return static_cast<Word>(top + rng.below(top));
}

/// A uniform draw from [low, high]. REQUIRES: low <= high, less than 2^63 apart.
[[nodiscard]] inline Word uniform(Rng& rng, Word low, Word high) {
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

/// What one argument of a call may be while the others stay as they are, and the errors beyond.
struct Bound {
  std::size_t index;
  Word least;
  Word most;
  Errc below = Errc::invalid_argument;
  Errc above = Errc::invalid_argument;
};
/// Below a cost that has to reach `least`.
[[nodiscard]] constexpr Errc error_below(Word least) noexcept {
  return least > 0 ? Errc::invalid_argument : Errc::invalid_cost;
}

/// The generator of random requests for one kind of rule.
struct Generator {
  StateKind kind;
  /// Any configuration that the rule accepts, extreme ones as likely as everyday ones.
  Configuration (*any)(Rng&);
  /// Makes a configuration's arguments those of one call of `row`, as check() accepts them.
  void (*draw)(Rng&, const Operation& row, Arguments&);
  /// The bounds of the arguments of a call of `row`.
  std::vector<Bound> (*bounds)(const Operation& row, const Arguments& call);
  const Spender* spender;  ///< null if the rule has no units that are refilled with time
};

/// One for each rule.
[[nodiscard]] std::span<const Generator> generators();
/// Null if the kind has none.
[[nodiscard]] const Generator* find_generator(StateKind kind);

/// An argument that a call cannot have.
struct Flaw {
  std::size_t index;
  Word value;
};
/// Flaws of this call of `row`: none is ever admitted.
[[nodiscard]] std::vector<Flaw> flaws(const Generator& generator, const Operation& row,
                                      const Arguments& call);
/// Gives a call one of them; false if it cannot have any.
bool spoil(Rng& rng, const Generator& generator, const Operation& row, Arguments& call);

/// Any quota that can be built, extreme ones as likely as everyday ones.
[[nodiscard]] Quota random_quota(Rng& rng);

/// The rules, by the stem of their files, in generators/.
// clang-format off
#define SLUICE_GENERATED_RULES(each) \
  each(token_bucket) \
  each(sliding_window) \
  each(sliding_window_counter) \
  each(fixed_window) \
  each(shared_sliding_window) \
  each(shared_token_bucket) \
  each(leases) \
  each(slot_lock) \
  each(utilization) \
  each(gate) \
  each(wait_line) \
  each(constant) \
  each(learned_rate)
// clang-format on

#define SLUICE_DECLARE_GENERATOR(rule) \
  namespace rule {                     \
  extern const Generator generator;    \
  }
SLUICE_GENERATED_RULES(SLUICE_DECLARE_GENERATOR)
#undef SLUICE_DECLARE_GENERATOR

namespace token_bucket {
/// The configuration of a token bucket with this quota.
[[nodiscard]] Configuration pack(const Quota& quota);
}  // namespace token_bucket
namespace sliding_window {
/// One more window.
void add(Configuration& config, Word limit, Word span);
/// An entry of a log.
struct LogEntry {
  Word number;
  Word time;
};
/// Any entry that a state holds; words of no meaning of one that is not sound.
LogEntry any_entry(Rng& rng, std::span<const Word> state);
}  // namespace sliding_window

}  // namespace sluice::testing::detail
