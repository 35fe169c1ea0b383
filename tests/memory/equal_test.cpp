// Batches, and clocks that lag: the same answers as of single calls and of the virtual store.
#include <vector>

#include "tests/memory/fixture.hpp"

namespace sluice::test {
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
