// Claims about what plans, peeks and refusals may change, as small examples, so that a failure
// names the violated rule.
#include <algorithm>
#include <array>
#include <utility>

#include "src/testing/claims.hpp"
#include "src/testing/forms.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// A key's parts, perhaps without a unit.
using KeyParts = std::array<std::string, 3>;

/// Parts under the tag `t` that incorrect joining, escaping or truncation makes equal. The long
/// ones have `bytes` bytes.
std::vector<KeyParts> similar_keys(const std::string& t, std::size_t bytes) {
  const std::string large(bytes, 'x');
  const std::string hashed(400, 'h');
  const std::string zero(1, '\0');
  return {{t + "a", "b:c"},        {t + "a:b", "c"},        {t + "a", "b"},
          {t + "ab", "c"},         {t + "a", "bc"},         {t + "{a", "b"},
          {t + "{a}", "b"},        {t + "a}", "b"},         {t + "a}:b", "c"},
          {t + "a", "b}"},         {t + "a", "b\r\n"},      {t + "a", "b\r"},
          {t + "a", "b" + zero},   {t + "a", "b%00"},       {t + zero, "b"},
          {t + "%00", "b"},        {t + "A", "b"},          {t + "a", "B"},
          {t + "a ", "b"},         {t + "a", " b"},         {t + "\xc3\xa4", "b"},
          {t + "a\xcc\x88", "b"},  {t + large + "y", "b"},  {t + large + "z", "b"},
          {t + "a", large + "y"},  {t + "a", large + "z"},  {t + hashed + "y", "b"},
          {t + hashed + "z", "b"}, {t + "a", hashed + "y"}, {t + "a", hashed + "z"},
          {t + "a", "b", "c"},     {t + "a", "b", "1/s"},   {t + "a", "b:1/s"},
          {t + "a", "b", "1/min"}, {t + "a", "b1", "/s"},   {t + "a", "b1/s"}};
}

/// Replaces one request in `n` by one that can never be admitted; true if it did.
bool spoil_one_in(Context& context, const Subject& subject, Step& step, std::uint64_t n) {
  return context.one_in(n) && spoil(context.rng(), *subject.generator, *step.operation, step.args);
}

}  // namespace

void similar_keys_are_apart(Context& context) {
  const auto compare = [&](const Generator& generator, const Spender& spender, std::size_t bytes) {
    Subjects subjects;
    const std::string t = context.fresh_tag();
    for (const auto& [tag, name, unit] :
         similar_keys(t, std::min(bytes, Key::max_part_bytes - t.size() - 2))) {
      Subject& subject = subjects.emplace_back(tag, name, generator, spender.frozen(1));
      subject.unit = unit;
      const Decision d = ask_one(context.store(), subject.acquire(1));
      require(d.allowed && d.remaining == 0, render(subject.key()) + " was used before");
    }
    for (Subject& subject : subjects) {
      const Decision d = ask_one(context.store(), subject.acquire(1));
      require(!d.allowed, render(subject.key()) + " forgot what was spent");
    }
  };
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    compare(generator, spender, Key::max_part_bytes);
    for (int i = 0; i < 5; ++i) compare(generator, spender, 1000);
  });
}

void peeks_change_nothing(Context& context) {
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    Subject subject(context.fresh_tag(), "k", generator, spender.frozen(5));
    for (Word left = 5; left > 0; --left) {
      for (int i = 0; i < 5; ++i) {
        const Decision d = step_once(context.store(), subject, subject.peek(i));
        require(d.allowed == (i <= left) && d.remaining == left, "asked: " + describe(d));
      }
      step_once(context.store(), subject, subject.acquire(1));
    }
  });
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (row->writes || generator == nullptr) continue;
    Subject subject(context.fresh_tag(), "k", *generator, generator->any(context.rng()));
    for (int i = 0; i < 20; ++i) {
      step_once(context.store(), subject, plain_step(context, subject));
      for (int j = 0; j < 3; ++j) {
        step_once(context.store(), subject, subject.draw(context.rng(), *row));
      }
    }
  }
}

void refusals_change_nothing(Context& context) {
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    Subject subject(context.fresh_tag(), "k", generator, spender.frozen(4));
    step_once(context.store(), subject, subject.acquire(3));
    for (int i = 0; i < 20; ++i) {
      const Decision d = step_once(context.store(), subject, subject.acquire(2 + i % 3));
      require(!d.allowed && d.remaining == 1, "refused: " + describe(d));
    }
    const Decision d = step_once(context.store(), subject, subject.acquire(1));
    require(d.allowed && d.remaining == 0, "what was left before the refusals is gone");
  });
}

/// One step of the plan is refused, each in turn; the others are of every kind.
void refused_plans_write_nothing(Context& context) {
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    const std::string tag = context.fresh_tag();
    Subjects subjects;
    for (std::size_t i = 0; i < Plan::max_steps; ++i) {
      const Generator& other = i % 2 == 0 ? generator : generators()[i / 2 % generators().size()];
      subjects.emplace_back(tag, std::to_string(i), other, plain_configuration(context, other, 3));
    }
    for (std::size_t refuser = 0; refuser < subjects.size(); ++refuser) {
      // One key has nothing left, the others are unchanged.
      Subject spent(tag, "spent" + std::to_string(refuser), generator, spender.frozen(1));
      exhaust(context, spent, 1);
      std::vector<Step> steps;
      std::vector<Subject*> chosen;
      for (std::size_t i = 0; i < subjects.size(); ++i) {
        chosen.push_back(i == refuser ? &spent : &subjects[i]);
        steps.push_back(plain_step(context, *chosen.back()));
      }
      const Answered answered = ask(context.store(), steps);
      verify(steps, chosen, answered);
      require(!answered.decision.allowed,
              "step " + std::to_string(refuser) + " is spent: " + describe(answered.decision));
    }
    for (Subject& subject : subjects) require_untouched(context, subject, 3);
  });
}

void plans_name_their_step(Context& context) {
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    const std::string tag = context.fresh_tag();
    Subject plenty(tag, "plenty", generator, spender.frozen(100));
    Subject scarce(tag, "scarce", generator, spender.frozen(2));
    Subject* const chosen[] = {&plenty, &scarce};
    const auto run = [&](Word of_plenty, Word of_scarce) {
      const std::array<Step, 2> steps{plenty.acquire(of_plenty), scarce.acquire(of_scarce)};
      const Answered answered = ask(context.store(), steps);
      verify(steps, chosen, answered);
      return answered.decision;
    };
    require(run(1, 1).step == 1, "admitted: the step with the least left is to be named");
    require(run(98, 1).step == 1, "admitted: the step with the least left is to be named");
    require(run(0, 1).step == 1, "refused: the step that refuses is to be named");
    require(run(2, 0).step == 0, "refused: the step that refuses is to be named");
    // Which wait is longer depends on the rule, and is verified above.
    for (const auto& [a, b] : {std::pair<Word, Word>{2, 1}, {2, 2}, {4, 1}}) run(a, b);
  });
}

void every_form_answers_once(Context& context) {
  const std::size_t rounds = context.scaled(200);
  Subjects subjects = make_subjects(context, 8);
  for (std::size_t i = 0; i < rounds; ++i) {
    const CallForm& form = call_forms()[i % call_forms().size()];
    Subject& subject = subjects[context.rng().below(subjects.size())];
    Step step = subject.draw(context.rng());
    const bool impossible = spoil_one_in(context, subject, step, 8);
    const Answer answer = form.call(context.store(), Plan(step));
    const std::string what = std::string(form.name) + ": ";
    if (impossible) {
      require(static_cast<bool>(answer.error), what + "no error for what can never be admitted");
      continue;
    }
    Subject* const chosen[] = {&subject};
    verify({&step, 1}, chosen, answered_plainly(context.store(), answer.error, answer.decision));
  }
}

void batches_answer_in_place(Context& context) {
  const std::size_t rounds = std::max<std::size_t>(30, context.scaled(30));
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 1 + context.rng().below(100));
    std::vector<Step> steps;
    std::vector<bool> impossible;
    for (Subject& subject : subjects) {
      steps.push_back(subject.draw(context.rng()));
      impossible.push_back(spoil_one_in(context, subject, steps.back(), 10));
    }
    std::vector<Plan> plans;
    for (const Step& step : steps) plans.emplace_back(step);
    std::vector<Decision> results(plans.size());
    std::vector<std::error_code> errors(plans.size());
    decide_batch(context.store(), plans, results, errors);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (impossible[i]) {
        require(errors[i] && !results[i].allowed, "plan " + std::to_string(i) + ": no error");
        continue;
      }
      Subject* const chosen[] = {&subjects[i]};
      verify({&steps[i], 1}, chosen, answered_plainly(context.store(), errors[i], results[i]));
    }
  }
}

}  // namespace sluice::testing::detail
