// States and configurations that a limiter may meet: of extreme words, torn, of another kind.
// Threading: pure functions of their draws.
#pragma once

#include <string>
#include <vector>

#include "src/testing/generators.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// The rows that share a kind of state, and how their requests are drawn.
struct Subject {
  const testing::detail::Generator* generator;
  std::vector<const Operation*> rows;
  [[nodiscard]] StateKind kind() const { return generator->kind; }
};

/// Sets what one call of `row`, which may be a copy of the table's, asks.
void draw_call(Random& random, const Subject& subject, const Operation& row, Arguments& args);
/// Makes a drawn call one that can never be admitted, if its row has any.
void draw_impossible(Random& random, const Subject& subject, const Operation& row, Arguments& args);
/// Puts a word into the windows of a request that no window can have.
void draw_impossible_table(Random& random, const Subject& subject, std::span<Word> table);

/// One for each kind of the table. Throws std::runtime_error if a kind has no generator.
[[nodiscard]] std::vector<Subject> subjects();

/// Any configuration, often at a corner of what it may hold.
[[nodiscard]] testing::detail::Configuration draw_config(Random& random, const Subject& subject);
/// Another configuration than this one; of windows often the same ones but for one span.
[[nodiscard]] testing::detail::Configuration draw_change(
    Random& random, const Subject& subject, const testing::detail::Configuration& config);

/// The bytes of some state that no rule need have written, or of none. `raw` is what lies there
/// now; a variable state's driver looks at `head` words of it.
[[nodiscard]] std::string draw_state(Random& random, StateKind kind, std::size_t head,
                                     const std::string& raw,
                                     const testing::detail::Configuration& config, Word now);

}  // namespace sluice::test
