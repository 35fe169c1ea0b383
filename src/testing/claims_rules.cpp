// Claims about rules with output words, and with states of more than two words.
#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// Executes a plan with the callback that receives the whole outcome.
Answered ask_by_outcome(Store& store, const Plan& plan) {
  std::promise<Answered> promise;
  const Time asked_at = store.clock().now();
  decide_then(store, plan, [&promise, asked_at](const Outcome& outcome) {
    Answered answered;
    answered.error = outcome.error;
    answered.decision = outcome.decision;
    answered.asked_at = asked_at;
    answered.has_each = !outcome.error;
    answered.output.fill(Answered::untold);
    const auto fits = [](std::size_t size, const auto& places) {
      return std::min(size, places.size());
    };
    std::copy_n(outcome.steps.begin(), fits(outcome.steps.size(), answered.each),
                answered.each.begin());
    std::copy_n(outcome.output.begin(), fits(outcome.output.size(), answered.output),
                answered.output.begin());
    promise.set_value(answered);
  });
  return promise.get_future().get();
}

}  // namespace

/// Also for refusals, by both forms that return output words, alone and in plans, for each row that
/// has any.
void output_words_are_the_kernels(Context& context) {
  const std::size_t rounds = context.scaled(10);
  const auto tell = [&](const Generator& generator, const Operation& row) {
    const std::string tag = context.fresh_tag();
    Subject subject(tag, "k", generator, generator.any(context.rng()));
    Subjects others = make_subjects(context, 2, tag);
    for (int i = 0; i < 10; ++i) {
      std::vector<Subject*> chosen{&subject};
      for (Subject& other : others) {
        if (context.one_in(2)) chosen.push_back(&other);
      }
      std::swap(chosen.front(), chosen[context.rng().below(chosen.size())]);
      std::vector<Step> steps;
      for (Subject* one : chosen) {
        const bool drawn = one != &subject || context.one_in(3);
        steps.push_back(drawn ? one->draw(context.rng()) : one->draw(context.rng(), row));
      }
      verify(steps, chosen,
             i % 2 == 0 ? ask(context.store(), steps) : ask_by_outcome(context.store(), steps));
    }
  };
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (row->output == 0 || generator == nullptr) continue;
    for (std::size_t round = 0; round < rounds; ++round) tell(*generator, *row);
  }
}

/// Rules with a word or more for each admitted request, and many requests.
void states_grow(Context& context) {
  const std::size_t calls = context.scaled(1500);
  for (const Generator& generator : generators()) {
    if (is_cell(generator.kind)) continue;
    Subject subject(context.fresh_tag(), "k", generator,
                    plain_configuration(context, generator, 2000));
    const Time start = context.has_clock() ? context.clock().now() : Time{};
    for (std::size_t i = 0; i < calls; ++i) {
      step_once(context.store(), subject, plain_step(context, subject));
      if (context.has_clock()) context.clock().advance(Span{1});
    }
    // While all of it counts, and when most of it has expired: few requests read old words.
    for (int i = 0; i < 120; ++i) {
      if (i == 60 && context.has_clock()) context.clock().set(start + std::chrono::seconds{1});
      step_once(context.store(), subject, subject.draw(context.rng()));
    }
    if (context.has_clock()) context.clock().set(start);
  }
}

}  // namespace sluice::testing::detail
