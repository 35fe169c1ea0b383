// The model: the state of each key, replayed through the kernels at the times of the store's
// decisions. Threading: one thread a subject.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "sluice/decide.hpp"
#include "src/testing/context.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail {

/// The rows of one kind.
inline std::vector<const Operation*> rows_of(StateKind kind) {
  std::vector<const Operation*> rows;
  for (const Operation* row : operations()) {
    if (row->kind == kind) rows.push_back(row);
  }
  return rows;
}

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

inline std::string describe(const Step& step) {
  std::string out(step.operation->name);
  out += '(';
  for (std::size_t i = 0; i < step.operation->argument_count; ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(step.args[i]);
  }
  for (std::size_t i = 0; i < step.table.size(); ++i) {
    out += (i == 0 ? "; " : ", ") + std::to_string(step.table[i]);
  }
  return out + ") on " + render(step.key);
}

inline std::string describe(std::span<const Step> steps) {
  std::string out;
  for (const Step& step : steps) out += (out.empty() ? "" : "; ") + describe(step);
  return out;
}

inline std::string describe(const Decision& d) {
  return std::string(d.allowed ? "allowed" : "refused") + "{step " + std::to_string(d.step) +
         ", part " + std::to_string(d.part) + ", limit " + std::to_string(d.limit) +
         ", remaining " + std::to_string(d.remaining) + ", retry_after " +
         std::to_string(d.retry_after.count()) + " us, reset_after " +
         std::to_string(d.reset_after.count()) + " us, at " + std::to_string(to_word(d.at)) + "}";
}

inline std::string describe(std::error_code error) {
  return error ? "the error \"" + error.message() + '"' : "no error";
}

inline std::string describe(std::span<const Word> words) {
  std::string out;
  for (const Word word : words) out += (out.empty() ? "" : ", ") + std::to_string(word);
  return '[' + out + ']';
}

inline bool same(const Decision& a, const Decision& b) {
  return a.allowed == b.allowed && a.step == b.step && a.part == b.part && a.limit == b.limit &&
         a.remaining == b.remaining && a.retry_after == b.retry_after &&
         a.reset_after == b.reset_after && a.at == b.at;
}

inline std::size_t count_output(std::span<const Step> steps) {
  std::size_t count = 0;
  for (const Step& step : steps) count += output_count(*step.operation, step.table.size());
  return count;
}

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
inline Answered answered_plainly(Store& store, const std::error_code& error,
                                 const Decision& decision) {
  Answered answered;
  answered.error = error;
  answered.decision = decision;
  answered.asked_at = store.clock().now();
  return answered;
}

/// Executes a plan with the blocking form, with the answer of each step or without: a store may
/// process the plain form differently.
inline Answered ask(Store& store, const Plan& plan, bool with_each = true) {
  Answered answered;
  answered.asked_at = store.clock().now();
  const bool fits = with_each && plan.steps().size() <= answered.each.size();
  answered.output.fill(Answered::untold);
  answered.decision =
      decide(store, plan, answered.error, fits ? std::span(answered.each) : std::span<Decision>(),
             fits ? std::span(answered.output) : std::span<Word>());
  answered.has_each = fits;
  return answered;
}

/// The answer of the kernels to the plan at `at`, and their effects.
class Expected {
 public:
  Expected(std::span<const Step> steps, std::span<Subject* const> subjects, Time at)
      : each_(steps.size()), effects_(steps.size()) {
    Span wait{0};
    for (std::size_t i = 0; i < steps.size() && !error_; ++i) {
      const Step& step = steps[i];
      const Verdict v = run(*step.operation, subjects[i]->state, {step.args, step.table},
                            to_word(at), effects_[i]);
      if (v.status < 0) {
        error_ = static_cast<Errc>(-v.status);
        decisive_ = i;
        return;
      }
      const auto told = effects_[i].output();
      output_.insert(output_.end(), told.begin(), told.end());
      const Word part = step.operation->names_part ? told[0] : 0;
      each_[i] = {v.status == Verdict::allowed,
                  Source::other,
                  static_cast<std::uint16_t>(i),
                  static_cast<std::uint16_t>(part),
                  step.args[0],
                  v.remaining,
                  Span{v.retry_after},
                  Span{v.reset_after},
                  at};
      all_ = all_ && each_[i].allowed;
      if (i > 0 && outranks(each_[i], each_[decisive_])) decisive_ = i;
      wait = std::max(wait, each_[i].retry_after);
    }
    decision_ = each_[decisive_];
    if (all_) decision_.retry_after = wait;  // until the last reservation's time
  }

  [[nodiscard]] const std::error_code& error() const { return error_; }
  [[nodiscard]] std::size_t decisive() const { return decisive_; }
  [[nodiscard]] const Decision& decision() const { return decision_; }
  [[nodiscard]] const Decision& of(std::size_t step) const { return each_[step]; }
  [[nodiscard]] std::span<const Word> output() const { return output_; }

  /// Applies the effects, if every step allows.
  void make(std::span<Subject* const> subjects) const {
    for (std::size_t i = 0; i < subjects.size() && all_ && !error_; ++i) {
      auto& state = subjects[i]->state;
      if (!effects_[i].changes()) continue;
      state.resize(std::max(state.size(), effects_[i].extent()));
      effects_[i].make(state);
    }
  }

 private:
  /// A refusal outranks an admission, the longer wait the shorter, the scarcer the more plentiful.
  static bool outranks(const Decision& a, const Decision& b) {
    if (a.allowed != b.allowed) return b.allowed;
    return a.allowed ? a.remaining < b.remaining : a.retry_after > b.retry_after;
  }

  std::vector<Decision> each_;
  std::vector<Effects> effects_;
  std::vector<Word> output_;
  std::error_code error_;
  Decision decision_;
  std::size_t decisive_ = 0;
  bool all_ = true;
};

/// Requires that `answered` is the kernels' answer.
inline void compare(std::span<const Step> steps, const Expected& expected,
                    const Answered& answered) {
  const auto about = [&](const std::string& what) { return describe(steps) + ": " + what; };
  require(answered.error == expected.error(),
          about("expected " + describe(expected.error()) + ", got " + describe(answered.error)));
  if (expected.error()) {
    return require(answered.decision.step == expected.decisive(),
                   about("the error is about step " + std::to_string(expected.decisive()) +
                         ", it names " + std::to_string(answered.decision.step)));
  }
  require(
      same(answered.decision, expected.decision()),
      about("expected " + describe(expected.decision()) + ", got " + describe(answered.decision)));
  if (!answered.has_each) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    require(same(answered.each[i], expected.of(i)),
            about("of step " + std::to_string(i) + " expected " + describe(expected.of(i)) +
                  ", got " + describe(answered.each[i])));
  }
  const auto told = std::span(answered.output).first(expected.output().size());
  require(std::ranges::equal(told, expected.output()),
          about("expected the output " + describe(expected.output()) + ", got " + describe(told)));
}

/// Requires that `answered` is the kernels' answer, and applies the effects.
inline void verify(std::span<const Step> steps, std::span<Subject* const> subjects,
                   const Answered& answered) {
  const Time at = answered.error ? answered.asked_at : answered.decision.at;
  const Expected expected(steps, subjects, at);
  compare(steps, expected, answered);
  expected.make(subjects);
}

/// Executes one step and verifies the answer, which may be an error.
inline Answered answer_once(Store& store, Subject& subject, const Step& step) {
  subject.asked_plainly = !subject.asked_plainly;
  const Answered answered = ask(store, step, !subject.asked_plainly);
  Subject* const subjects[] = {&subject};
  verify({&step, 1}, subjects, answered);
  return answered;
}

inline Decision step_once(Store& store, Subject& subject, const Step& step) {
  return answer_once(store, subject, step).decision;
}

/// The store's answer to one step, which must not be an error.
inline Decision ask_one(Store& store, const Step& step) {
  std::error_code error;
  const Decision decision = decide(store, step, error);
  require(!error, describe(step) + ": " + describe(error));
  return decision;
}

/// Requires that the store answers `steps` with this error, about this step.
inline void require_error(Store& store, std::span<const Step> steps, Errc code, std::size_t step) {
  for (const bool with_each : {true, false}) {
    const Answered answered = ask(store, steps, with_each);
    require(answered.error == make_error_code(code),
            "expected " + describe(make_error_code(code)) + ", got " +
                (answered.error ? describe(answered.error) : describe(answered.decision)));
    require(answered.decision.step == step, "expected the error to name step " +
                                                std::to_string(step) + ", it names " +
                                                std::to_string(answered.decision.step));
    require(!answered.decision.allowed, "an error with a decision that is allowed");
  }
}

}  // namespace sluice::testing::detail
