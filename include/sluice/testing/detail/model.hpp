// The model: what each key's state must be, replayed through the kernels at the instants that the
// store's decisions carry. Threading: one thread.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/testing/detail/context.hpp"
#include "sluice/testing/detail/generators.hpp"

namespace sluice::testing::detail {

/// One key of a history: its configuration, and the state that the kernel would have left.
struct Subject {
  Subject(std::string key_tag, std::string key_name, const Generator& how, const Arguments& what)
      : tag(std::move(key_tag)), name(std::move(key_name)), generator(&how), config(what) {}

  /// This row, asking for `units`.
  [[nodiscard]] Step step(const Operation& row, Word units) {
    Step result{&row, Key{tag, name}, config, bound ? &binding : nullptr};
    generator->ask(result.args, units);
    return result;
  }
  /// A random row of the subject's kind with random arguments.
  [[nodiscard]] Step draw(Rng& rng);

  std::string tag;
  std::string name;
  const Generator* generator;
  Arguments config;
  StateWords state{};
  Binding binding{};
  bool bound = false;
  bool asked_plainly = false;
};

/// The rows of one kind.
inline std::vector<const Operation*> rows_of(StateKind kind) {
  std::vector<const Operation*> rows;
  for (const Operation* row : operations()) {
    if (row->kind == kind) rows.push_back(row);
  }
  return rows;
}

inline Step Subject::draw(Rng& rng) {
  const auto rows = rows_of(generator->kind);
  // Rows that write make a history; one call in four only asks.
  const Operation* row = rows[rng.below(rows.size())];
  if (!row->writes && rng.below(2) == 0) row = rows[rng.below(rows.size())];
  Step result = step(*row, 1);
  generator->draw(rng, result.args);
  return result;
}

inline std::string describe(const Step& step) {
  std::string out(step.operation->name);
  out += '(';
  for (std::size_t i = 0; i < step.operation->argument_count; ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(step.args[i]);
  }
  return out + ") on " + render(step.key);
}

inline std::string describe(const Decision& d) {
  return std::string(d.allowed ? "allowed" : "refused") + "{step " + std::to_string(d.step) +
         ", limit " + std::to_string(d.limit) + ", remaining " + std::to_string(d.remaining) +
         ", retry_after " + std::to_string(d.retry_after.count()) + " us, reset_after " +
         std::to_string(d.reset_after.count()) + " us, at " + std::to_string(to_word(d.at)) + "}";
}

inline bool same(const Decision& a, const Decision& b) {
  return a.allowed == b.allowed && a.step == b.step && a.limit == b.limit &&
         a.remaining == b.remaining && a.retry_after == b.retry_after &&
         a.reset_after == b.reset_after && a.at == b.at;
}

/// What a store answered to one plan.
struct Answered {
  std::error_code error;
  Decision decision;
  std::array<Decision, Plan::max_steps> each{};
  bool has_each = false;
};

/// Asks by the blocking form. With the answer of each step or without: a store may take another
/// way for the plain question.
inline Answered ask(Store& store, std::span<const Step> steps, bool with_each = true) {
  Answered answered;
  const bool fits = with_each && steps.size() <= answered.each.size();
  answered.decision = decide(store, Plan(steps), answered.error,
                             fits ? std::span(answered.each) : std::span<Decision>());
  answered.has_each = fits;
  return answered;
}

/// What the kernels answer to the plan at `at`, and the states that they leave.
class Expected {
 public:
  Expected(std::span<const Step> steps, std::span<Subject* const> subjects, Time at) {
    bool all = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      states_[i] = subjects[i]->state;
      const Verdict v = steps[i].operation->apply(states_[i], steps[i].args, to_word(at));
      const bool admits = v.status == Verdict::allowed;
      each_[i] = {admits,      Source::other,       static_cast<std::uint16_t>(i), steps[i].args[0],
                  v.remaining, Span{v.retry_after}, Span{v.reset_after},           at};
      all = all && admits;
      if (i > 0 && outranks(each_[i], each_[decisive_])) decisive_ = i;
    }
    if (!all) {
      for (std::size_t i = 0; i < steps.size(); ++i) states_[i] = subjects[i]->state;
    }
  }

  [[nodiscard]] const Decision& decision() const { return each_[decisive_]; }
  [[nodiscard]] const Decision& of(std::size_t step) const { return each_[step]; }
  [[nodiscard]] const StateWords& state(std::size_t step) const { return states_[step]; }

 private:
  /// A refusal outranks an admission, the longer wait the shorter, the scarcer the more plentiful.
  static bool outranks(const Decision& a, const Decision& b) {
    if (a.allowed != b.allowed) return b.allowed;
    return a.allowed ? a.remaining < b.remaining : a.retry_after > b.retry_after;
  }

  std::array<Decision, Plan::max_steps> each_{};
  std::array<StateWords, Plan::max_steps> states_{};
  std::size_t decisive_ = 0;
};

/// Requires that `answered` is what the kernels say, and moves the subjects on.
inline void verify(std::span<const Step> steps, std::span<Subject* const> subjects,
                   const Answered& answered) {
  const auto plan = [&] {
    std::string out;
    for (const Step& step : steps) out += (out.empty() ? "" : "; ") + describe(step);
    return out;
  };
  require(!answered.error, plan() + ": error \"" + answered.error.message() + "\"");
  const Expected expected(steps, subjects, answered.decision.at);
  require(same(answered.decision, expected.decision()), plan() + ": expected " +
                                                            describe(expected.decision()) +
                                                            ", got " + describe(answered.decision));
  for (std::size_t i = 0; i < steps.size() && answered.has_each; ++i) {
    require(same(answered.each[i], expected.of(i)), plan() + ": of step " + std::to_string(i) +
                                                        " expected " + describe(expected.of(i)) +
                                                        ", got " + describe(answered.each[i]));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) subjects[i]->state = expected.state(i);
}

/// Asks the store for one step and verifies the answer.
inline Decision step_once(Store& store, Subject& subject, const Step& step) {
  subject.asked_plainly = !subject.asked_plainly;
  const Answered answered = ask(store, {&step, 1}, !subject.asked_plainly);
  Subject* const subjects[] = {&subject};
  verify({&step, 1}, subjects, answered);
  return answered.decision;
}

/// The store's answer to one step, which must not be an error.
inline Decision ask_one(Store& store, const Step& step) {
  std::error_code error;
  const Decision decision = decide(store, step, error);
  require(!error, describe(step) + ": error \"" + error.message() + "\"");
  return decision;
}

/// Requires that the store answers `steps` with this error, about this step.
inline void require_error(Store& store, std::span<const Step> steps, Errc code, std::size_t step) {
  for (const bool with_each : {true, false}) {
    const Answered answered = ask(store, steps, with_each);
    require(answered.error == make_error_code(code),
            "expected the error \"" + make_error_code(code).message() + "\", got " +
                (answered.error ? "\"" + answered.error.message() + "\""
                                : describe(answered.decision)));
    require(answered.decision.step == step, "expected the error to name step " +
                                                std::to_string(step) + ", it names " +
                                                std::to_string(answered.decision.step));
    require(!answered.decision.allowed, "an error with a decision that is allowed");
  }
}

}  // namespace sluice::testing::detail
