// Claims about long random histories: every decision must equal the kernel's.
#include <algorithm>
#include <chrono>
#include <utility>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// Executes a random plan over different subjects and verifies the answer.
void plan_once(Context& context, Subjects& subjects, std::size_t most_steps) {
  std::vector<Subject*> chosen;
  for (Subject& subject : subjects) chosen.push_back(&subject);
  for (std::size_t i = chosen.size(); i > 1; --i) {
    std::swap(chosen[i - 1], chosen[context.rng().below(i)]);
  }
  chosen.resize(1 + context.rng().below(std::min(most_steps, chosen.size())));
  std::vector<Step> steps;
  for (Subject* subject : chosen) steps.push_back(subject->draw(context.rng()));
  verify(steps, chosen, ask(context.store(), steps, !context.one_in(4)));
}

/// A random move of the clock, often to an edge of the rules.
Span draw_move(Context& context, const Decision& last, const Operation& row,
               const Arguments& args) {
  const Span tick{1};
  switch (context.rng().below(7)) {
    case 0:
      return Span{0};
    case 1:
      return tick;
    case 2:
      return last.retry_after - tick * context.between(0, 2);
    case 3:
      return last.reset_after + tick * context.between(-1, 1);
    case 4:
      return Span{row.ttl(args)} + tick * context.between(-1, 1);
    default:
      return Span{log_uniform(context.rng(), 40)};
  }
}

}  // namespace

/// Finds rows that no claim covers, and generators that make no valid calls.
void every_row_has_a_generator(Context& context) {
  std::string missing;
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (generator == nullptr) {
      missing += (missing.empty() ? "" : ", ") + std::string(row->name);
      continue;
    }
    for (int i = 0; i < 100; ++i) {
      Subject subject("tag", "name", *generator, generator->any(context.rng()));
      const Step step = subject.draw(context.rng(), *row);
      require(row->check(step.args) == Verdict::allowed,
              describe(step) + " was drawn, and is " + "refused by its own check");
      for (const Flaw& flaw : flaws(*generator, *row, step.args)) {
        Step wrong = step;
        wrong.args[flaw.index] = flaw.value;
        require(row->check(wrong.args) < 0,
                describe(wrong) + " is meant to be impossible, and is not");
      }
    }
  }
  require(missing.empty(), "no generator of requests for " + missing);
}

void history_of_single_steps(Context& context) {
  const std::size_t rounds = context.scaled(100);
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 8);
    for (int i = 0; i < 100; ++i) {
      Subject& subject = subjects[context.rng().below(subjects.size())];
      step_once(context.store(), subject, subject.draw(context.rng()));
    }
  }
}

void history_of_plans(Context& context) {
  const std::size_t rounds = context.scaled(40);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t keys = round % 4 == 0 ? Plan::max_steps : 4;
    Subjects subjects = make_subjects(context, keys, context.fresh_tag());
    for (int i = 0; i < 40; ++i) plan_once(context, subjects, round % 8 == 0 ? keys : 3);
  }
}

/// Mixes bindings, plain keys and plans of both for one key.
void history_of_bound_keys(Context& context) {
  const std::size_t rounds = context.scaled(10);
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 4, context.fresh_tag());
    for (Subject& subject : subjects) bind(context.store(), subject);
    for (int i = 0; i < 100; ++i) {
      for (Subject& subject : subjects) subject.bound = context.one_in(2);
      if (context.one_in(3)) {
        plan_once(context, subjects, 3);
      } else {
        Subject& subject = subjects[context.rng().below(subjects.size())];
        step_once(context.store(), subject, subject.draw(context.rng()));
      }
    }
  }
}

/// The times of decisions must advance with the store's clock, or stand still with a virtual one.
void instants_are_the_clocks(Context& context) {
  const Generator& generator = *find_generator(StateKind::token_bucket);
  Subject subject(context.fresh_tag(), "k", generator, generator.spender->frozen(1));
  const Time first = step_once(context.store(), subject, subject.acquire(1)).at;
  if (context.has_clock()) {
    require(first == context.clock().now(), "decided at another time than the clock shows");
    for (int i = 0; i < 32; ++i) {  // often, because a store may be wrong only sometimes
      context.clock().advance(std::chrono::seconds{1});
      const Time next = step_once(context.store(), subject, subject.acquire(1)).at;
      require(next == first + std::chrono::seconds{i + 1},
              "the clock moved, the decisions did not");
    }
    return;
  }
  constexpr int patience = 3'000'000;  // more than enough calls for a tick of any clock
  for (int i = 0; i < patience; ++i) {
    if (step_once(context.store(), subject, subject.acquire(1)).at != first) return;
  }
  throw Mismatch{"the instants of decisions never move on"};
}

void history_of_moves(Context& context) {
  const std::size_t rounds = context.scaled(100);
  const Time start = context.clock().now();
  // A fencing token is at least the time, so that grants in the last instants of time have none.
  const Time end = to_time(word_limit - 1'000);
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool is_late = context.one_in(4);
    context.clock().set(is_late ? end - Span{log_uniform(context.rng(), 40)} : start);
    Subjects subjects = make_subjects(context, 2, context.fresh_tag());
    for (int i = 0; i < 50; ++i) {
      Subject& subject = subjects[context.rng().below(subjects.size())];
      const Step step = subject.draw(context.rng());
      const Decision last = step_once(context.store(), subject, step);
      const Span move = draw_move(context, last, *step.operation, step.args);
      if (move > Span{0} && move < end - context.clock().now()) context.clock().advance(move);
      if (i % 10 == 0) plan_once(context, subjects, 2);
    }
  }
  context.clock().set(start);
}

}  // namespace sluice::testing::detail
