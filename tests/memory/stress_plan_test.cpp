// Threads with plans of several steps: all or nothing, whoever else writes the same keys.
#include "tests/memory/fixture.hpp"
#include "tests/memory/threads.hpp"

namespace sluice::test {

TEST_CASE("keys that are always charged together stay equal", "[memory][stress]") {
  const Word capacity = static_cast<Word>(scaled(20'000, 2'000));
  const std::string key = "k";
  std::uint64_t conflicts = 0;
  for (int round = 0; round < 5'000 && (round < 3 || !enough(conflicts, 20)); ++round) {
    Memory memory(64);
    const TokenBucket wide(*memory.store, "wide", Quota::per_hour(3 * capacity));
    const TokenBucket tight(*memory.store, "tight", Quota::per_hour(capacity));
    std::atomic<Word> plans{0};
    std::atomic<Word> singles{0};
    together(4, [&](std::size_t index) {
      for (int refusals = 0; refusals < 5;) {
        if (index == 3) {  // alone on one of the keys, in between
          if (singles < capacity && wide.try_acquire(key)) {
            ++singles;
          } else {
            ++refusals;
          }
          continue;
        }
        const Decision decision =
            index == 0 ? decide(*memory.store, {wide.acquire_step(key), tight.acquire_step(key)})
                       : decide(*memory.store, {tight.acquire_step(key), wide.acquire_step(key)});
        if (decision.allowed) {
          ++plans;
        } else {
          ++refusals;
        }
      }
    });
    REQUIRE(plans == capacity);
    REQUIRE(tight.peek(key).remaining == 0);
    REQUIRE(wide.peek(key).remaining == 3 * capacity - plans - singles);
    conflicts += memory.stats().conflicts;
  }
  INFO("conflicts: " << conflicts);
  CHECK(met_enough(conflicts, 20));
}

TEST_CASE("plans over more keys than there are slots neither hang nor admit too much",
          "[memory][stress]") {
  Memory memory(1);
  const Word capacity = 4;
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(20).burst(capacity));
  constexpr std::size_t keys = 14;
  std::array<std::string, keys> names;
  for (std::size_t i = 0; i < keys; ++i) names[i] = name("k", i);
  std::array<std::atomic<Word>, keys> admitted{};
  const Time start = memory.clock.now();
  const std::size_t turns = scaled(60'000, 6'000);
  together(3, [&](std::size_t index) {
    SeededRng rng(index + 1);
    for (std::size_t i = 0; i < turns; ++i) {
      if (index == 0) {  // a pause lets all keys become idle, however busy the others are
        memory.clock.advance(rng.below(100) == 0 ? Span(600ms)
                                                 : Span{static_cast<Word>(rng.below(20'000))});
      }
      const std::size_t first = rng.below(keys);
      const std::size_t second = (first + 1 + rng.below(keys - 1)) % keys;
      if (decide(*memory.store,
                 {bucket.acquire_step(names[first]), bucket.acquire_step(names[second])})) {
        ++admitted[first];
        ++admitted[second];
      }
    }
  });
  const Word drained = (memory.clock.now() - start).count() / 50'000;
  for (const auto& count : admitted) {
    CHECK(count > 0);
    CHECK(count <= capacity + drained);
  }
  CHECK(memory.stats().overflowed > 0);
  CHECK(memory.stats().evicted_idle > 0);
}

}  // namespace sluice::test
