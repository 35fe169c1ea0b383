// Claims about request ids: a charge under an id is answered again, not charged again.
#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// Requires that `again` equals the earlier answer.
void require_same_answer(std::span<const Step> steps, const Answered& before,
                         const Answered& again) {
  const auto about = [&](const std::string& what) {
    return describe(steps) + ", asked again under its id: " + what;
  };
  require(!again.error, about(describe(again.error)));
  require(same(before.decision, again.decision),
          about("expected " + describe(before.decision) + ", got " + describe(again.decision)));
  if (!again.has_each || !before.has_each) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    require(same(before.each[i], again.each[i]),
            about("of step " + std::to_string(i) + " expected " + describe(before.each[i]) +
                  ", got " + describe(again.each[i])));
  }
  const std::size_t told = output_count(steps);
  require(
      std::ranges::equal(std::span(before.output).first(told), std::span(again.output).first(told)),
      about("other output than before"));
}

/// An admitted plan is answered three times alike, a refused one is decided anew each time; the
/// states change once.
void ask_repeatedly(Context& context, Subjects& subjects, const RequestId& id) {
  std::vector<Step> steps;
  std::vector<Subject*> chosen;
  for (Subject& subject : subjects) {
    if (!chosen.empty() && context.one_in(2)) continue;
    steps.push_back(subject.draw(context.rng()));
    chosen.push_back(&subject);
  }
  const Plan plan = Plan(steps).idempotent(id);
  const Answered first = ask(context.store(), plan);
  verify(steps, chosen, first);
  for (int i = 0; i < 3; ++i) {
    const Answered again = ask(context.store(), plan, i != 1);
    if (first.decision.allowed) {
      require_same_answer(steps, first, again);
    } else {
      verify(steps, chosen, again);
      if (again.decision.allowed) break;  // time has passed
    }
  }
}

/// A refusal under an id is decided again at its hint.
void refusals_are_forgotten(Context& context, const Generator& generator) {
  const Time start = context.clock().now();
  for (int i = 0; i < 50; ++i) {
    context.clock().set(start);
    Subject subject(context.fresh_tag(), "k", generator, generator.any(context.rng()));
    Subject* const chosen[] = {&subject};
    Step step = subject.draw(context.rng());
    const Decision last = draw_refusal(context, subject, step);
    if (last.allowed || last.retry_after >= id_kept_for) continue;
    const Plan plan = Plan(step).idempotent(RequestId::draw(context.rng()));
    verify({&step, 1}, chosen, ask(context.store(), plan));
    context.clock().advance(last.retry_after);
    const Answered retried = ask(context.store(), plan);
    verify({&step, 1}, chosen, retried);
    require(retried.decision.allowed, "a refusal is remembered under its id");
  }
  context.clock().set(start);
}

/// Until id_kept_for has passed, and not longer.
void charges_are_forgotten(Context& context, const Generator& generator) {
  const Time start = context.clock().now();
  Subject subject(context.fresh_tag(), "k", generator, generator.spender->frozen(3));
  Subject* const chosen[] = {&subject};
  const RequestId id = RequestId::draw(context.rng());
  const Step step = subject.acquire(1);
  const Answered first = ask(context.store(), Plan(step).idempotent(id));
  verify({&step, 1}, chosen, first);
  context.clock().set(start + id_kept_for - Span{1});
  require_same_answer({&step, 1}, first, ask(context.store(), Plan(step).idempotent(id)));
  context.clock().set(start + id_kept_for + std::chrono::seconds{2});
  const Answered anew = ask(context.store(), Plan(step).idempotent(id));
  verify({&step, 1}, chosen, anew);
  require(anew.decision.remaining == 1, "an id is remembered beyond its time");
  context.clock().set(start);
}

}  // namespace

void ids_charge_once(Context& context) {
  const std::size_t rounds = context.scaled(20);
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 3, context.fresh_tag());
    for (int i = 0; i < 10; ++i) {
      ask_repeatedly(context, subjects, RequestId::draw(context.rng()));
      Subject& subject = subjects[context.rng().below(subjects.size())];
      step_once(context.store(), subject, subject.draw(context.rng()));
    }
  }
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    const std::string tag = context.fresh_tag();
    Subject subject(tag, "k", generator, spender.frozen(3));
    Subject other(tag, "other", generator, spender.frozen(3));
    const RequestId id = RequestId::draw(context.rng());
    const Step one = subject.acquire(1);
    const Answered first = ask(context.store(), Plan(one).idempotent(id));
    Subject* const chosen[] = {&subject};
    verify({&one, 1}, chosen, first);
    const Step more = subject.acquire(2);  // with any arguments
    require_same_answer({&one, 1}, first, ask(context.store(), Plan(more).idempotent(id)));
    const Step another = other.acquire(1);
    const Step plans[][2] = {{another, one}, {one, another}};
    for (const auto& plan : plans) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{2}}) {
        const std::span<const Step> steps(plan, size);
        if (size == 1 && steps[0].key == one.key) continue;
        require(ask(context.store(), Plan(steps).idempotent(id)).error == Errc::id_reused,
                "an id that was used for another plan is not Errc::id_reused");
      }
    }
    // Similar ids, and the same id under another tag, are other ids.
    const Step two = subject.acquire(1);
    const Answered second = ask(context.store(), Plan(two).idempotent({id.high, id.low ^ 1}));
    verify({&two, 1}, chosen, second);
    require(second.decision.remaining == 1, "an id that is not the same was taken for it");
    require_untouched(context, other, 3);
    // Every step of a plan is charged once.
    Subject left(tag, "left", generator, spender.frozen(2));
    Subject right(tag, "right", generator, spender.frozen(2));
    Subject* const both[] = {&left, &right};
    const std::array<Step, 2> pair{left.acquire(1), right.acquire(1)};
    const Plan plan = Plan(pair).idempotent(RequestId::draw(context.rng()));
    const Answered charged = ask(context.store(), plan);
    verify(pair, both, charged);
    for (int i = 0; i < 3; ++i) require_same_answer(pair, charged, ask(context.store(), plan));
    exhaust(context, left, 1);
    exhaust(context, right, 1);
    Subject elsewhere(tag + "+", "k", generator, spender.frozen(3));
    const Step three = elsewhere.acquire(3);
    Subject* const there[] = {&elsewhere};
    verify({&three, 1}, there, ask(context.store(), Plan(three).idempotent(id)));
  });
}

/// Refusals are not recorded.
void ids_are_forgotten(Context& context) {
  for_each_kind([&](const Generator& generator) { refusals_are_forgotten(context, generator); });
  for_each_spender([&](const Generator& generator, const Spender& /*spender*/) {
    for (int i = 0; i < 8; ++i) charges_are_forgotten(context, generator);
  });
}

}  // namespace sluice::testing::detail
