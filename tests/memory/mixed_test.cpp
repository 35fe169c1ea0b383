// States in cells, states in blocks and request ids: the same answers as the virtual store gives on
// the same clock, output words included.
#include <vector>

#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace sluice::test {
namespace {

struct Result {
  std::error_code error;
  Decision decision;
  std::array<Decision, 4> each;
  std::array<Word, 4 * max_output> output{};
  friend bool operator==(const Result&, const Result&) = default;
};

Result ask(Store& store, const Plan& plan) {
  Result result;
  result.decision = decide(store, plan, result.error,
                           std::span(result.each).first(plan.steps().size()), result.output);
  result.decision.source = Source::other;
  for (Decision& decision : result.each) decision.source = Source::other;
  return result;
}

/// A rule for another kind of state than the key has.
const Step wrong = asks(log_push, {"always", "counter"});

/// The step for any store.
Step anywhere(Step step) {
  step.store = nullptr;
  return step;
}

Step any_step(Random& random, const TokenBucket& bucket, const std::string& key) {
  const Word units = random.one_in(9) ? 0 : static_cast<Word>(1 + random.below(3));
  switch (random.below(6)) {
    case 0:
      return anywhere(bucket.acquire_step(Key(key, "bucket"), units));
    case 1:
      return asks(counter_add, {key, "counter"}, units);
    case 2:
      return asks(log_pop, {key, "log"}, units, 300);
    case 3:
      return asks(log_push, {key, "log"}, units * 40, 300);
    case 4:
      return random.one_in(9) ? wrong : anywhere(bucket.peek_step(Key(key, "bucket")));
    default:
      return asks(log_push, {key, "log"}, units, 300);
  }
}

Span pause(Random& random) {
  if (random.one_in(40)) return Span{random.between(0, 900'000'000)};
  if (random.one_in(10)) return Span{random.between(-2'000'000, 1'000'000)};
  return Span{random.between(0, 50'000)};
}

}  // namespace

TEST_CASE("rules with effects decide as on the virtual store, in plans and under ids, too",
          "[memory][C-001]") {
  Random random("rules with effects decide as on the virtual store, in plans and under ids, too");
  CAPTURE(random.repeat());
  Memory memory(4096);
  const auto twin = make_virtual_store(memory.clock);
  const Quota quota = Quota::per_second(3).burst(9);
  const TokenBucket bucket(*memory.store, "bucket", quota);
  const Step first = asks(counter_add, wrong.key, 1, 1, word_limit / 2);
  REQUIRE(ask(*memory.store, first) == ask(*twin, first));
  std::array<std::uint64_t, 3> ends{};
  std::uint64_t replays = 0;
  std::uint64_t reused = 0;
  const std::size_t runs = scaled(60'000, 6'000);
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < 4; ++i) keys.push_back(name("k", random.below(12)));
    std::vector<Step> steps;
    const std::size_t count = random.one_in(3) ? 2 + random.below(3) : 1;
    for (std::size_t i = 0; i < count; ++i) steps.push_back(any_step(random, bucket, keys[i]));
    Plan plan(steps);
    const bool once = random.one_in(4);
    if (once) plan = plan.idempotent({random.below(15), count});
    for (std::size_t again = once ? random.below(3) : 0;; --again) {
      const Result mine = ask(*memory.store, plan);
      REQUIRE(mine == ask(*twin, plan));
      ++ends[mine.error ? 0 : mine.decision.allowed ? 1 : 2];
      if (!mine.error && mine.decision.at != memory.clock.now()) ++replays;
      if (mine.error == Errc::id_reused) ++reused;
      memory.clock.advance(pause(random));
      if (again == 0) break;
    }
  }
  for (const std::uint64_t end : ends) CHECK(end > 100);
  CHECK(replays > 10);
  CHECK(reused > 5);
  CHECK(memory.stats().overflowed == 0);
  CHECK(memory.stats().rejected == 0);
  CHECK(memory.stats().block_bytes > 0);
}

TEST_CASE("a refusal after a record's time leaves the record, for a clock that is set back",
          "[memory][C-001]") {
  Memory memory(64);
  const auto twin = make_virtual_store(memory.clock);
  const auto both = [&](const Plan& plan) {
    const Result mine = ask(*memory.store, plan);
    CHECK(mine == ask(*twin, plan));
    return mine;
  };
  const RequestId id{1, 2};
  const Step add = asks(counter_add, {"k", "counter"}, 1);
  const Step pop = asks(log_pop, {"k", "log"}, 1, 300);
  const Result first = both(Plan(std::span(&add, 1)).idempotent(id));
  REQUIRE(first.decision.allowed);
  memory.clock.advance(id_kept_for);
  CHECK_FALSE(both(Plan(std::span(&pop, 1)).idempotent(id)).decision.allowed);
  memory.clock.advance(-1us);
  CHECK(both(Plan(std::span(&add, 1)).idempotent(id)) == first);
  CHECK(both(Plan(std::span(&pop, 1)).idempotent(id)).error == Errc::id_reused);
}

}  // namespace sluice::test
