// The kernels' answers, and what a store's answer must have in common with them.
#include "src/testing/model.hpp"

#include <algorithm>

namespace sluice::testing::detail {
namespace {

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
      for (const Effects::Fill& fill : effects_[i].fills()) {
        require(fill.value >= 0 && fill.value <= word_limit,
                "a kernel wrote " + std::to_string(fill.value) + " as word " +
                    std::to_string(fill.index) + " of " + describe(state));
      }
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
void compare(std::span<const Step> steps, const Expected& expected, const Answered& answered) {
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

}  // namespace

std::vector<const Operation*> rows_of(StateKind kind) {
  std::vector<const Operation*> rows;
  for (const Operation* row : operations()) {
    if (row->kind == kind) rows.push_back(row);
  }
  return rows;
}

std::string describe(const Step& step) {
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

std::string describe(std::span<const Step> steps) {
  std::string out;
  for (const Step& step : steps) out += (out.empty() ? "" : "; ") + describe(step);
  return out;
}

std::string describe(const Decision& d) {
  return std::string(d.allowed ? "allowed" : "refused") + "{step " + std::to_string(d.step) +
         ", part " + std::to_string(d.part) + ", limit " + std::to_string(d.limit) +
         ", remaining " + std::to_string(d.remaining) + ", retry_after " +
         std::to_string(d.retry_after.count()) + " us, reset_after " +
         std::to_string(d.reset_after.count()) + " us, at " + std::to_string(to_word(d.at)) + "}";
}

std::string describe(std::error_code error) {
  return error ? "the error \"" + error.message() + '"' : "no error";
}

std::string describe(std::span<const Word> words) {
  std::string out;
  for (const Word word : words) out += (out.empty() ? "" : ", ") + std::to_string(word);
  return '[' + out + ']';
}

bool same(const Decision& a, const Decision& b) {
  return a.allowed == b.allowed && a.step == b.step && a.part == b.part && a.limit == b.limit &&
         a.remaining == b.remaining && a.retry_after == b.retry_after &&
         a.reset_after == b.reset_after && a.at == b.at;
}

Answered answered_plainly(Store& store, const std::error_code& error, const Decision& decision) {
  Answered answered;
  answered.error = error;
  answered.decision = decision;
  answered.asked_at = store.clock().now();
  return answered;
}

Answered ask(Store& store, const Plan& plan, bool with_each) {
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

void verify(std::span<const Step> steps, std::span<Subject* const> subjects,
            const Answered& answered) {
  const Time at = answered.error ? answered.asked_at : answered.decision.at;
  const Expected expected(steps, subjects, at);
  compare(steps, expected, answered);
  expected.make(subjects);
}

Answered answer_once(Store& store, Subject& subject, const Step& step) {
  subject.asked_plainly = !subject.asked_plainly;
  const Answered answered = ask(store, step, !subject.asked_plainly);
  Subject* const subjects[] = {&subject};
  verify({&step, 1}, subjects, answered);
  return answered;
}

Decision step_once(Store& store, Subject& subject, const Step& step) {
  return answer_once(store, subject, step).decision;
}

Decision ask_one(Store& store, const Step& step) {
  std::error_code error;
  const Decision decision = decide(store, step, error);
  require(!error, describe(step) + ": " + describe(error));
  return decision;
}

void require_error(Store& store, std::span<const Step> steps, Errc code, std::size_t step) {
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
