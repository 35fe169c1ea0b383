// Claims about what a plan, a question and a refusal may change, stated by small examples so that
// a failure says which promise broke. Threading: one thread.
#pragma once

#include <functional>

#include "sluice/testing/detail/claims_history.hpp"
#include "sluice/testing/detail/forms.hpp"

namespace sluice::testing::detail {

/// Runs `claim` for every row that writes, with its generator.
inline void for_each_writer(const std::function<void(const Operation&, const Generator&)>& claim) {
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (row->writes && generator != nullptr) claim(*row, *generator);
  }
}

/// Spends the subject's last unit by requests for one at a time, of which `limit` must be admitted.
inline void exhaust(Context& context, Subject& subject, const Operation& row, Word limit) {
  for (Word left = limit; left-- > 0;) {
    const Decision d = step_once(context.store(), subject, subject.step(row, 1));
    require(d.allowed && d.remaining == left, "request " + std::to_string(limit - left) + " of " +
                                                  std::to_string(limit) + ": " + describe(d));
  }
  const Decision d = step_once(context.store(), subject, subject.step(row, 1));
  require(!d.allowed && d.retry_after > Span{0}, "beyond the limit: " + describe(d));
}

/// Pairs of parts under the tag `t` that a careless joining, escaping or cutting makes equal.
inline std::vector<std::pair<std::string, std::string>> similar_keys(const std::string& t) {
  const std::string large(Key::max_part_bytes - t.size() - 2, 'x');
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
          {t + hashed + "z", "b"}, {t + "a", hashed + "y"}, {t + "a", hashed + "z"}};
}

inline void similar_keys_are_apart(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    Subjects subjects;
    for (const auto& [tag, name] : similar_keys(context.fresh_tag())) {
      Subject& subject = subjects.emplace_back(tag, name, generator, generator.frozen(1));
      const Decision d = ask_one(context.store(), subject.step(row, 1));
      require(d.allowed && d.remaining == 0, render(Key{tag, name}) + " was used before");
    }
    for (Subject& subject : subjects) {
      const Decision d = ask_one(context.store(), subject.step(row, 1));
      require(!d.allowed, render(Key{subject.tag, subject.name}) + " forgot what was spent");
    }
  });
}

inline void questions_change_nothing(Context& context) {
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (row->writes || generator == nullptr) continue;
    for_each_writer([&](const Operation& writer, const Generator& of_writer) {
      if (of_writer.kind != generator->kind) return;
      Subject subject(context.fresh_tag(), "k", *generator, generator->frozen(5));
      for (Word left = 5; left > 0; --left) {
        for (int i = 0; i < 5; ++i) {
          const auto d = step_once(context.store(), subject, subject.step(*row, i));
          require(d.allowed == (i <= left) && d.remaining == left, "asked: " + describe(d));
        }
        step_once(context.store(), subject, subject.step(writer, 1));
      }
    });
  }
}

inline void refusals_change_nothing(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    Subject subject(context.fresh_tag(), "k", generator, generator.frozen(4));
    step_once(context.store(), subject, subject.step(row, 3));
    for (int i = 0; i < 20; ++i) {
      const Decision d = step_once(context.store(), subject, subject.step(row, 2 + i % 3));
      require(!d.allowed && d.remaining == 1, "refused: " + describe(d));
    }
    const Decision d = step_once(context.store(), subject, subject.step(row, 1));
    require(d.allowed && d.remaining == 0, "what was left before the refusals is gone");
  });
}

inline void refused_plans_write_nothing(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    Subjects subjects;
    for (std::size_t i = 0; i < Plan::max_steps; ++i) {
      subjects.emplace_back(tag, std::to_string(i), generator, generator.frozen(3));
    }
    for (std::size_t refuser = 0; refuser < subjects.size(); ++refuser) {
      // One key has nothing left, the others have all they had.
      Subject spent(tag, "spent" + std::to_string(refuser), generator, generator.frozen(1));
      exhaust(context, spent, row, 1);
      std::vector<Step> steps;
      std::vector<Subject*> chosen;
      for (std::size_t i = 0; i < subjects.size(); ++i) {
        chosen.push_back(i == refuser ? &spent : &subjects[i]);
        steps.push_back(chosen.back()->step(row, 1));
      }
      const Answered answered = ask(context.store(), steps);
      verify(steps, chosen, answered);
      require(!answered.decision.allowed && answered.decision.step == refuser,
              "step " + std::to_string(refuser) + " is spent: " + describe(answered.decision));
    }
    for (Subject& subject : subjects) exhaust(context, subject, row, 3);
  });
}

inline void plans_name_their_step(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    Subject plenty(tag, "plenty", generator, generator.frozen(100));
    Subject scarce(tag, "scarce", generator, generator.frozen(2));
    Subject* const chosen[] = {&plenty, &scarce};
    const auto run = [&](Word of_plenty, Word of_scarce) {
      const std::array<Step, 2> steps{plenty.step(row, of_plenty), scarce.step(row, of_scarce)};
      const Answered answered = ask(context.store(), steps);
      verify(steps, chosen, answered);
      return answered.decision;
    };
    require(run(1, 1).step == 1, "admitted: the step with the least left is to be named");
    require(run(98, 1).step == 1, "admitted: the step with the least left is to be named");
    require(run(2, 1).step == 0,
            "refused: of steps that wait equally long the first is to be named");
    require(run(1, 1).step == 1, "refused: the step that refuses is to be named");
    require(run(2, 2).step == 1,
            "refused: the step that must be waited for longest is to be named");
    require(run(4, 1).step == 0,
            "refused: the step that must be waited for longest is to be named");
  });
}

inline void every_form_answers_once(Context& context) {
  const std::size_t rounds = context.scaled(200);
  Subjects subjects = make_subjects(context, 4);
  for (std::size_t i = 0; i < rounds; ++i) {
    const CallForm& form = call_forms[i % call_forms.size()];
    Subject& subject = subjects[context.rng().below(subjects.size())];
    Step step = subject.draw(context.rng());
    const bool impossible = context.one_in(8);
    if (impossible) subject.generator->impossible(step.args, 0);
    const Answer answer = form.call(context.store(), Plan(step));
    const std::string what = std::string(form.name) + ": ";
    if (impossible) {
      require(static_cast<bool>(answer.error), what + "no error for what can never be admitted");
      continue;
    }
    Answered answered;
    answered.error = answer.error;
    answered.decision = answer.decision;
    Subject* const chosen[] = {&subject};
    verify({&step, 1}, chosen, answered);
  }
}

inline void batches_answer_in_place(Context& context) {
  const std::size_t rounds = context.scaled(20);
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 1 + context.rng().below(100));
    std::vector<Step> steps;
    std::vector<bool> impossible;
    for (Subject& subject : subjects) {
      steps.push_back(subject.draw(context.rng()));
      impossible.push_back(context.one_in(10));
      if (impossible.back()) subject.generator->impossible(steps.back().args, 0);
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
      Answered answered;
      answered.error = errors[i];
      answered.decision = results[i];
      Subject* const chosen[] = {&subjects[i]};
      verify({&steps[i], 1}, chosen, answered);
    }
  }
}

}  // namespace sluice::testing::detail
