// What each operation answers without the store that has its state: every row of the table, under
// every policy.
#include <map>
#include <string_view>

#include "sluice/rules/fixed_window.hpp"
#include "src/testing/generators.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

/// What a row says of the policies open and closed (not `local`) and local.
bool is_answered(const Operation& row, bool local) {
  switch (row.without_store) {
    case Operation::WithoutStore::fresh_state:
      return true;
    case Operation::WithoutStore::no_state:
    case Operation::WithoutStore::skipped:  // alone: nothing is left of a plan
      return !local;
    case Operation::WithoutStore::local_only:
      return local;
    case Operation::WithoutStore::local_lease:  // no lease was granted
    case Operation::WithoutStore::error:
      return false;
  }
  return false;
}

struct Told {
  std::error_code error;
  Decision decision;
  std::size_t steps = 0;
  std::size_t output = 0;
};

Told ask(Store& store, const Step& step) {
  Told told;
  decide_then(store, step, [&](const Outcome& outcome) {
    told = {outcome.error, outcome.decision, outcome.steps.size(), outcome.output.size()};
  });
  return told;
}

}  // namespace

TEST_CASE("every operation has an honest answer without its store, or an error",
          "[fallback][C-036]") {
  Random random("every operation has an honest answer without its store, or an error");
  CAPTURE(random.repeat());
  for (const PolicyKind kind : every_policy) {
    Rig rig(kind, 1);
    rig.trip();
    const auto asked = rig.primary.counts().calls;
    for (const Operation* const row : operations()) {
      CAPTURE(static_cast<int>(kind), row->name);
      const bool expected = is_answered(*row, kind == PolicyKind::local);
      const auto* const generator = testing::detail::find_generator(row->kind);
      REQUIRE(generator != nullptr);
      for (int i = 0; i < 50; ++i) {
        const auto configuration = generator->any(random);
        Step step{row, {"tag", row->name}, configuration.args, nullptr, configuration.table};
        generator->draw(random, *row, step.args);
        const std::string name = std::string(row->name) + std::to_string(i);
        step.key = Key{"tag", name};
        const Told told = ask(rig.store, step);
        if (!expected) {
          CHECK(told.error == Errc::circuit_open);
          continue;
        }
        if (told.error == Errc::outside_calendar) continue;  // whatever the store
        REQUIRE_FALSE(told.error);
        CHECK(told.steps == 1);
        CHECK(told.output == output_count(*row, step.table.size()));
        if (row->kind == StateKind::constant) {
          CHECK(told.decision.source == Source::other);
          continue;
        }
        CHECK(told.decision.source ==
              (kind == PolicyKind::local ? Source::fallback : Source::policy));
        if (kind != PolicyKind::local) CHECK(told.decision.allowed == (kind == PolicyKind::open));
        if (kind == PolicyKind::open) CHECK(told.decision.retry_after == Span{0});
        if (kind == PolicyKind::closed) CHECK(told.decision.retry_after > Span{0});
      }
    }
    CHECK(rig.primary.counts().calls == asked);
  }
}

TEST_CASE("nothing is granted ahead without its store, whatever the operation",
          "[fallback][bound][C-036]") {
  Random random("nothing is granted ahead without its store, whatever the operation");
  CAPTURE(random.repeat());
  std::map<std::string_view, int> ahead;  // in a store that is there
  Rig rig(1);
  rig.trip();
  for (const Operation* const row : operations()) {
    if (row->without_store == Operation::WithoutStore::error) continue;
    const auto* const generator = testing::detail::find_generator(row->kind);
    for (int i = 0; i < 100; ++i) {
      CAPTURE(row->name);
      const auto configuration = generator->any(random);
      const std::string name = std::string(row->name) + std::to_string(i);
      Step step{row, {"ahead", name}, configuration.args, nullptr, configuration.table};
      generator->draw(random, *row, step.args);
      for (int k = 0; k < 10; ++k) {
        const Told there = ask(*rig.whole, step);
        if (!there.error && there.decision.allowed && there.decision.retry_after > 0us) {
          ++ahead[row->name];
        }
        const Told alone = ask(rig.store, step);
        if (!alone.error && alone.decision.allowed) CHECK(alone.decision.retry_after == 0us);
      }
    }
  }
  for (const auto* const name :
       {"token_bucket.reserve", "sliding_window.acquire", "slot_lock.acquire"}) {
    CAPTURE(name);
    CHECK(ahead[name] > 0);
  }
}

TEST_CASE("a plan is decided as a whole by every policy", "[fallback]") {
  for (const PolicyKind kind : every_policy) {
    Rig rig(kind, 2);
    rig.trip();
    const Step first{&token_bucket_acquire, {"t", "a"}, {50, 1, 1, 50, 1}};
    const Step second{&fixed_window_acquire, {"t", "b"}, {4, 3'600'000'000, 0, 0, 0, 0, 0, 1}};
    const std::array steps{first, second};
    std::array<Decision, 2> each;
    std::error_code error;
    for (int i = 0; i < 2; ++i) {
      const Decision decision = decide(rig.store, steps, error, each);
      REQUIRE_FALSE(error);
      CHECK(decision.allowed == (kind != PolicyKind::closed));
      CHECK(each[1].step == 1);
    }
    const Decision third = decide(rig.store, steps, error, each);
    CHECK(third.allowed == (kind == PolicyKind::open));
    if (kind == PolicyKind::local) CHECK(third.step == 1);
  }
}

}  // namespace sluice::test
