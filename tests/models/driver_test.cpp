// The driver itself: a model that is right passes, and what must fail does. Threading:
// single-threaded.
#include "tests/models/driver.hpp"
#include "sluice/limiters/sliding_window.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

/// One unit in any 10 us, predicted `off` microseconds late, and judged by `limit`.
class ToyModel final : public Model {
 public:
  ToyModel(Life& life, Word off, Word limit)
      : life_(life), one_(life.store, life.name, {{1, span}}), off_(off), limit_(limit) {}

  std::vector<Verb> verbs() override {
    return {{"acquire", 1, [this] { ask(1); }}};
  }
  Moves moves() const override { return {span, 3 * span, span}; }
  Callers callers() const override { return {1, 2 * span}; }
  Decision ask(Word cost) override {
    const Time now = std::max(life_.now(), last_);
    const Decision d = one_.try_acquire("k", cost);
    life_.note(d, cost);
    const bool fits = now >= last_ + span;
    if (!fits) life_.require(d, {false, 0, (last_ + span - life_.now()).count() + off_});
    if (fits) life_.require(d, {true, 0, 0});
    if (fits) last_ = now;
    return d;
  }
  void judge(const History& history) override {
    life_.keep(check_window(history, span, limit_));
    if (life_.patient) life_.keep(check_work_conserving(history, {1, 1, span}));
  }

 private:
  static constexpr Span span{10};
  Life& life_;
  SlidingWindow one_;
  Word off_;
  Word limit_;
  Time last_{};
};

void live_toy(Word off, Word limit, const char* outcome) {
  live({.outcomes = {"admitted", "refused", "set back", outcome},
        .lives = 4,
        .redis_lives = 4,
        .steps = 100},
       [&](Life& life) { return std::make_unique<ToyModel>(life, off, limit); });
}

}  // namespace

TEST_CASE("a model that is right lives, and its hints are proven", "[model][driver]") {
  live_toy(0, 1, "hint proven");
}

TEST_CASE("a prediction that is a microsecond off fails", "[model][driver][!shouldfail]") {
  live_toy(1, 1, "refused");
}

TEST_CASE("a history that breaks an invariant fails", "[model][driver][!shouldfail]") {
  live_toy(0, 0, "refused");
}

TEST_CASE("an outcome that never occurs fails", "[model][driver][!shouldfail]") {
  live_toy(0, 1, "reserved");
}
