// The model: the state of each key, replayed through the kernels at the times of the store's
// decisions. Threading: one thread a subject.
#pragma once

#include <array>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/extend/binding.hpp"
#include "sluice/extend/operation.hpp"
#include "src/testing/context.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail {

/// The rows of one kind.
[[nodiscard]] std::vector<const Operation*> rows_of(StateKind kind);

/// One key of a history: its configuration, and the state after the kernels. Must not move while a
/// step of it is in use.
struct Subject {
  Subject(std::string key_tag, std::string key_name, const Generator& how, Configuration what)
      : tag(std::move(key_tag)),
        name(std::move(key_name)),
        generator(&how),
        config(std::move(what)),
        state(cell_words) {}

  [[nodiscard]] Key key() const { return Key{tag, name}.with_unit(unit); }
  /// This row with these arguments.
  [[nodiscard]] Step step(const Operation& row, const Arguments& args) {
    return {&row, key(), args, bound ? &binding : nullptr, config.table};
  }
  /// This row with random arguments.
  [[nodiscard]] Step draw(Rng& rng, const Operation& row) {
    Arguments args = config.args;
    generator->draw(rng, row, args);
    return step(row, args);
  }
  /// A random row of the subject's kind with random arguments.
  [[nodiscard]] Step draw(Rng& rng) {
    const auto rows = rows_of(generator->kind);
    // Rows that write make a history; half of the rows that do not are drawn again.
    const Operation* row = rows[rng.below(rows.size())];
    if (!row->writes && rng.below(2) == 0) row = rows[rng.below(rows.size())];
    return draw(rng, *row);
  }

  /// A request for `units` units. REQUIRES: the kind has a spender.
  [[nodiscard]] Step acquire(Word units) { return spend(*generator->spender->acquire, units); }
  [[nodiscard]] Step peek(Word units) { return spend(*generator->spender->peek, units); }

  std::string tag;
  std::string name;
  std::string unit{};
  const Generator* generator;
  Configuration config;
  std::vector<Word> state;
  Binding binding{};
  bool bound = false;
  bool asked_plainly = false;

 private:
  Step spend(const Operation& row, Word units) {
    Arguments args = config.args;
    generator->spender->ask(args, units);
    return step(row, args);
  }
};

[[nodiscard]] std::string describe(const Step& step);
[[nodiscard]] std::string describe(std::span<const Step> steps);
[[nodiscard]] std::string describe(const Decision& d);
[[nodiscard]] std::string describe(std::error_code error);
[[nodiscard]] std::string describe(std::span<const Word> words);
[[nodiscard]] bool same(const Decision& a, const Decision& b);

/// The answer of a store to one plan.
struct Answered {
  static constexpr Word untold = -1;  // no rule has this output word

  std::error_code error;
  Decision decision;
  std::array<Decision, Plan::max_steps> each{};
  std::array<Word, Plan::max_steps * max_output> output{};
  bool has_each = false;  // and output words
  Time asked_at{};        // an error has no time
};

/// An answer by another form of the call.
[[nodiscard]] Answered answered_plainly(Store& store, const std::error_code& error,
                                        const Decision& decision);

/// Executes a plan with the blocking form, with the answer of each step or without: a store may
/// process the plain form differently.
[[nodiscard]] Answered ask(Store& store, const Plan& plan, bool with_each = true);

/// Requires that `answered` is the kernels' answer, and applies the effects.
void verify(std::span<const Step> steps, std::span<Subject* const> subjects,
            const Answered& answered);

/// Executes one step and verifies the answer, which may be an error.
Answered answer_once(Store& store, Subject& subject, const Step& step);

Decision step_once(Store& store, Subject& subject, const Step& step);

/// The store's answer to one step, which must not be an error.
[[nodiscard]] Decision ask_one(Store& store, const Step& step);

/// Requires that the store answers `steps` with this error, about this step.
void require_error(Store& store, std::span<const Step> steps, Errc code, std::size_t step);

}  // namespace sluice::testing::detail
