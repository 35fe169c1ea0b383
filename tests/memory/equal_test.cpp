// The memory store against the virtual store, on one clock: the same answers, integer for integer.
#include <vector>

#include "tests/memory/fixture.hpp"

namespace sluice::test {
namespace {

struct Choice {
  std::vector<TokenBucket> buckets;
  std::vector<std::string> keys;
};

/// Quotas whose fractions reduce and do not, fast and slow, and keys for them.
Choice choices(Store& store, std::size_t keys) {
  Choice result;
  result.buckets = {{store, "a", Quota::per_second(10).burst(5)},
                    {store, "b", Quota::per(7, 3s).burst(11)},
                    {store, "c", Quota::per_minute(100)},
                    {store, "d", Quota::per_hour(3)},
                    {store, "e", Quota::per_second(1'000'000).burst(3)}};
  for (std::size_t i = 0; i < keys; ++i) result.keys.push_back(name("key", i));
  return result;
}

struct Result {
  std::error_code error;
  Decision decision;
  std::array<Decision, 4> each;
  friend bool operator==(const Result&, const Result&) = default;
};

Result ask(Store& store, std::span<const Step> steps) {
  Result result;
  result.decision = decide(store, Plan(steps), result.error,
                           std::span<Decision>(result.each).first(steps.size()));
  result.decision.source = Source::other;
  for (Decision& decision : result.each) decision.source = Source::other;
  return result;
}

/// One random step: mostly small costs, some that are too large, some peeks.
Step step_of(const TokenBucket& bucket, std::string_view key, std::uint64_t draw) {
  const auto cost = static_cast<Word>(draw % 16 == 0 ? 12 : draw % 16 == 1 ? 0 : 1 + draw % 3);
  return draw / 16 % 8 == 0 ? bucket.peek_step(Key(key), cost)
                            : bucket.acquire_step(Key(key), cost);
}

Span step_of_time(Random& random) {
  switch (random.below(8)) {
    case 0:
      return Span{random.between(0, 30'000'000)};
    case 1:
      return Span{-random.between(0, 2'000'000)};
    case 2:
    case 3:
      return Span{random.between(0, 200'000)};
    default:
      return Span{random.between(0, 3)};
  }
}

}  // namespace

TEST_CASE("the memory store decides as the virtual store does, plans included", "[memory][C-001]") {
  Random random("the memory store decides as the virtual store does, plans included");
  CAPTURE(random.repeat());
  Memory memory(4096);
  const auto twin = make_virtual_store(memory.clock);
  const Choice ours = choices(*memory.store, 60);
  const Choice theirs = choices(*twin, 60);
  const std::size_t runs = scaled(60'000, 2'000);
  std::size_t plans_allowed = 0;
  std::size_t plans_refused = 0;
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<Step> left;
    std::vector<Step> right;
    const std::size_t count = random.one_in(3) ? 2 + random.below(3) : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bucket = random.below(ours.buckets.size());
      const std::size_t key = random.below(ours.keys.size());
      const std::uint64_t draw = random.next();
      left.push_back(step_of(ours.buckets[bucket], ours.keys[key], draw));
      right.push_back(step_of(theirs.buckets[bucket], theirs.keys[key], draw));
    }
    const Result mine = ask(*memory.store, left);
    REQUIRE(mine == ask(*twin, right));
    if (count > 1 && !mine.error) ++(mine.decision.allowed ? plans_allowed : plans_refused);
    memory.clock.advance(step_of_time(random));
  }
  CHECK(plans_allowed > 0);
  CHECK(plans_refused > 0);
  CHECK(memory.stats().overflowed == 0);
}

TEST_CASE("a refused plan leaves every key as it was", "[memory]") {
  Memory memory(64);
  const TokenBucket wide(*memory.store, "wide", Quota::per_second(1).burst(10));
  const TokenBucket tight(*memory.store, "tight", Quota::per_second(1).burst(2));
  REQUIRE(wide.try_acquire("k", 3));
  REQUIRE(tight.try_acquire("k", 2));
  const Decision before = wide.peek("k");
  const Decision refused =
      decide(*memory.store, {wide.acquire_step("k", 4), tight.acquire_step("k")});
  CHECK_FALSE(refused.allowed);
  CHECK(refused.step == 1);
  CHECK(refused.retry_after == 1s);
  CHECK(wide.peek("k") == before);
  CHECK(tight.peek("k").remaining == 0);
}

TEST_CASE("a batch decides as one call after the other does", "[memory]") {
  Memory memory(64);
  Memory single(64);
  const TokenBucket batched(*memory.store, "b", Quota::per_second(2).burst(3));
  const TokenBucket alone(*single.store, "b", Quota::per_second(2).burst(3));
  const std::vector<std::string> keys{"x", "y", "x", "x", "z", "x", "y"};
  std::vector<Step> steps;
  for (std::size_t i = 0; i < 70; ++i)
    steps.push_back(batched.acquire_step(Key(keys[i % keys.size()])));
  const std::vector<Step> pair{batched.acquire_step("p"), batched.acquire_step("q")};
  std::vector<Plan> plans(steps.begin(), steps.end());
  plans.emplace_back(pair);
  const Step nameless = batched.acquire_step("");
  plans.emplace_back(nameless);
  std::vector<Decision> results(plans.size());
  std::vector<std::error_code> errors(plans.size());
  decide_batch(*memory.store, plans, results, errors);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK_FALSE(errors[i]);
    CHECK(results[i] == alone.try_acquire(Key(keys[i % keys.size()])));
  }
  CHECK(results[70].allowed);
  CHECK(errors[71] == Errc::invalid_key);
}

TEST_CASE("the coarse clock decides nothing that the fine clock would not", "[memory]") {
  // A clock whose cheap reading lags by as much as it may: the store must answer for either as the
  // rule does at the fine instant.
  struct Lagging final : Clock {
    [[nodiscard]] Time now() const noexcept override { return fine; }
    [[nodiscard]] Time coarse_now() const noexcept override { return fine - lag; }
    Time fine = VirtualClock::default_start;
    Span lag{0};
  } lagging;
  Random random("the coarse clock decides nothing that the fine clock would not");
  CAPTURE(random.repeat());
  VirtualClock exact;
  SeededRng rng(1);
  const auto store = make_memory_store({.max_keys = 64, .clock = &lagging, .rng = &rng});
  const auto model = make_virtual_store(exact);
  const Quota quota = Quota::per_second(40).burst(12);
  const BoundTokenBucket coarse = TokenBucket(*store, "q", quota).at("k");
  const TokenBucket fine(*model, "q", quota);
  std::size_t at_coarse = 0;
  for (std::size_t run = 0; run < scaled(40'000, 4'000); ++run) {
    lagging.lag = Span{random.between(0, Clock::coarse_lag.count() - 1)};
    const auto cost = static_cast<Word>(random.below(7));
    const Decision ours = coarse.try_acquire(cost);
    const Decision theirs = fine.try_acquire("k", cost);
    REQUIRE(ours.allowed == theirs.allowed);
    REQUIRE(ours.remaining <= theirs.remaining);
    // The instants that the hints name are the same.
    REQUIRE(ours.at + ours.retry_after ==
            theirs.at + (theirs.allowed ? ours.at - theirs.at : theirs.retry_after));
    REQUIRE(ours.at + ours.reset_after == theirs.at + theirs.reset_after);
    if (ours.at != theirs.at) ++at_coarse;
    const Span step{random.between(0, 40'000)};
    lagging.fine += step;
    exact.advance(step);
  }
  CHECK(at_coarse > 0);
}

}  // namespace sluice::test
