// Claims about alternatives: the plans of Store::execute_first().
#include <mutex>
#include <string>
#include <vector>

#include "sluice/extend/manual_reset_event.hpp"
#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// A plan over a few of the subjects, perhaps of those that another alternative has as well.
struct Drawn {
  std::vector<Step> steps{};
  std::vector<Subject*> subjects{};
  bool is_impossible = false;
};

Drawn draw_plan(Context& context, Subjects& subjects) {
  Drawn drawn;
  for (Subject& subject : subjects) {
    if (!drawn.steps.empty() && !context.one_in(3)) continue;
    drawn.subjects.push_back(&subject);
    drawn.steps.push_back(subject.draw(context.rng()));
  }
  Step& first = drawn.steps.front();
  const Generator& generator = *drawn.subjects.front()->generator;
  const bool is_alone = drawn.steps.size() == 1 && context.one_in(6);
  drawn.is_impossible = is_alone && spoil(context.rng(), generator, *first.operation, first.args);
  return drawn;
}

/// The answers to alternatives, which may come on several threads.
class Answers {
 public:
  explicit Answers(Store& store, std::size_t count) : store_(store), left_(count) {
    for (std::size_t i = 0; i < count; ++i) places_.push_back({this, {}, 0});
  }

  [[nodiscard]] std::vector<Completion> completions() {
    std::vector<Completion> done;
    for (Place& place : places_) done.emplace_back(&Answers::hear, &place);
    return done;
  }
  void wait() {
    all_.wait();
    const std::lock_guard lock(mutex_);  // the last answer has left it: what holds it may end
    for (const Place& place : places_) {
      require(place.times == 1,
              "an alternative was answered " + std::to_string(place.times) + " times");
    }
  }
  [[nodiscard]] const Answered& operator[](std::size_t i) const { return places_[i].answer; }

 private:
  struct Place {
    Answers* all;
    Answered answer;
    int times;
  };

  static void hear(void* context, const Outcome& outcome) noexcept {
    Place& place = *static_cast<Place*>(context);
    Answers& all = *place.all;
    const std::lock_guard lock(all.mutex_);
    place.answer = answered_plainly(all.store_, outcome.error, outcome.decision);
    ++place.times;
    if (--all.left_ == 0) all.all_.wake();
  }

  Store& store_;
  std::mutex mutex_;
  std::size_t left_;
  std::vector<Place> places_;
  ManualResetEvent all_;
};

void ask_alternatives(Context& context, Subjects& subjects) {
  std::vector<Drawn> drawn;
  for (std::uint64_t i = 1 + context.rng().below(5); i > 0; --i) {
    drawn.push_back(draw_plan(context, subjects));
  }
  std::vector<Plan> plans;
  for (const Drawn& each : drawn) plans.emplace_back(each.steps);
  Answers answers(context.store(), plans.size());
  auto done = answers.completions();
  context.store().execute_first(plans, done);
  answers.wait();
  bool is_admitted = false;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (is_admitted) {
      require(answers[i].error == make_error_code(Errc::cancelled) ||
                  (drawn[i].is_impossible && answers[i].error),
              describe(drawn[i].steps) +
                  " behind one that was admitted: " + describe(answers[i].error));
      continue;
    }
    verify(drawn[i].steps, drawn[i].subjects, answers[i]);
    is_admitted = !answers[i].error && answers[i].decision.allowed;
  }
}

}  // namespace

void one_alternative_is_admitted(Context& context) {
  const std::size_t rounds = std::max<std::size_t>(20, context.scaled(40));
  for (std::size_t round = 0; round < rounds; ++round) {
    Subjects subjects = make_subjects(context, 1 + context.rng().below(5), context.fresh_tag());
    for (int i = 0; i < 20; ++i) ask_alternatives(context, subjects);
  }
}

}  // namespace sluice::testing::detail
