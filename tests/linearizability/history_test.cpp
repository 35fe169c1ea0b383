// Histories of threads on the memory store have an order that the kernels explain; histories that
// have none are told apart.
#include "tests/linearizability/history.hpp"

#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"
#include "tests/memory/threads.hpp"

namespace sluice::test {
namespace {

struct World {
  Memory memory{256};
  TokenBucket bucket{*memory.store, "b", Quota::per_second(50).burst(4)};
  std::atomic<std::uint64_t> instant{0};

  [[nodiscard]] auto tick() {
    return [this] { return instant.fetch_add(1); };
  }

  /// A call on the keys of one window: few, so that threads meet.
  AskedPlan any_call(SeededRng& draw, const std::string& key) {
    const std::array<Step, 5> choices{
        bucket.acquire_step(Key(key, "b"), static_cast<Word>(draw.below(3))),
        asks(log_push, {key, "l"}, static_cast<Word>(draw.below(4)), 14),
        asks(counter_add, {key, "c"}, static_cast<Word>(draw.below(3)), 9),
        asks(log_pop, {key, "l"}, 1, 14), bucket.peek_step(Key(key, "b"))};
    AskedPlan call;
    call.steps.push_back(choices[draw.below(5)]);
    if (draw.below(3) == 0) {
      const Step& more = choices[draw.below(5)];
      if (!(more.key == call.steps[0].key)) call.steps.push_back(more);
    }
    if (draw.below(4) == 0) {
      // One of few ids, each always with the same steps.
      call.id = RequestId{std::hash<std::string>()(key), draw.below(3)};
      call.steps = {call.id->low == 0 ? asks(log_push, {key, "l"}, 2, 14) : choices[0]};
      if (call.id->low != 0) call.steps = {bucket.acquire_step(Key(key, "b"), 1)};
      if (call.id->low == 2) call.steps.push_back(asks(counter_add, {key, "c"}, 1, 9));
    }
    return call;
  }
};

/// A call on one key of the counter as a thread would have heard it: `count` after it.
AskedPlan counted(std::uint64_t begin, std::uint64_t end, Word units, Word count,
                  const char* key = "k") {
  AskedPlan call;
  call.steps.push_back(asks(counter_add, {key, "c"}, units));
  call.begin = begin;
  call.end = end;
  call.at = VirtualClock::default_start;
  call.each[0].allowed = true;
  call.each[0].remaining = 5 - count;
  call.each[0].reset_after = 1s;
  call.output = {count, to_word(call.at)};
  return call;
}

AskedPlan refused(std::uint64_t begin, std::uint64_t end, Word units, Word count) {
  AskedPlan call = counted(begin, end, units, count);
  call.each[0].allowed = false;
  call.each[0].retry_after = 1s;
  return call;
}

}  // namespace

TEST_CASE("a history with an order is accepted, whatever overlaps", "[linearizability]") {
  CHECK(linearizes({}));
  CHECK(linearizes({counted(0, 1, 1, 1), counted(2, 3, 1, 2)}));
  CHECK(linearizes({counted(0, 3, 1, 2), counted(1, 2, 1, 1)}));
  CHECK(linearizes({counted(0, 9, 2, 5), counted(1, 5, 1, 1), counted(4, 8, 2, 3)}));
  CHECK(linearizes({counted(0, 9, 5, 5), refused(1, 2, 1, 5), counted(3, 4, 0, 5)}));
  CHECK(linearizes({counted(0, 9, 5, 5), counted(3, 4, 0, 0)}));
}

TEST_CASE("a history without an order is rejected", "[linearizability]") {
  // A lost update: both saw the same state.
  CHECK_FALSE(linearizes({counted(0, 3, 1, 1), counted(1, 2, 1, 1)}));
  // The last one given twice.
  CHECK_FALSE(linearizes({counted(0, 1, 4, 4), counted(2, 5, 1, 5), counted(3, 4, 1, 5)}));
  // A look into the past: what it does not see had ended before it began.
  CHECK_FALSE(linearizes({counted(0, 1, 1, 1), counted(2, 3, 0, 0)}));
  // Refused while there was enough all the time.
  CHECK_FALSE(linearizes({counted(0, 1, 2, 2), refused(0, 3, 1, 5)}));
  // Seen by one and, later, not by another.
  CHECK_FALSE(linearizes({counted(0, 9, 2, 2), counted(1, 2, 0, 2), counted(3, 4, 0, 0)}));
  // A plan of which half is seen.
  AskedPlan both = counted(0, 9, 1, 1, "a");
  const AskedPlan other = counted(0, 9, 1, 1, "b");
  both.steps.push_back(other.steps[0]);
  both.each[1] = other.each[0];
  std::copy_n(other.output.begin(), 2, both.output.begin() + 2);
  CHECK(linearizes({both, counted(1, 2, 0, 1, "a"), counted(3, 4, 0, 1, "b")}));
  CHECK_FALSE(linearizes({both, counted(1, 2, 0, 1, "a"), counted(3, 4, 0, 0, "b")}));
  // One id charged twice.
  AskedPlan once = counted(0, 1, 1, 1);
  AskedPlan again = counted(2, 3, 1, 1);
  once.id = again.id = RequestId{1, 1};
  CHECK(linearizes({once, again, counted(4, 5, 0, 1)}));
  CHECK_FALSE(linearizes({once, again, counted(4, 5, 0, 2)}));
  again = counted(2, 3, 1, 2);
  again.id = once.id;
  CHECK_FALSE(linearizes({once, again}));
}

TEST_CASE("what threads hear from the memory store has an order", "[linearizability][stress]") {
  Random random("what threads hear from the memory store has an order");
  CAPTURE(random.repeat());
  World world;
  const std::size_t least = scaled(400, 60);
  std::size_t window = 0;
  const auto met = [&] {
    const MemoryStats stats = world.memory.stats();
    return enough(stats.waits, 3) && enough(stats.conflicts, 3);
  };
  for (; window < 5'000 * least && (window < least || !met()); ++window) {
    const std::size_t threads = 2 + random.below(3);
    const std::string key = name("k", window);
    std::vector<std::vector<AskedPlan>> lanes(threads);
    for (auto& lane : lanes) {
      SeededRng draw(random.next());
      for (int i = 0; i < 12; ++i) lane.push_back(world.any_call(draw, key));
    }
    together(threads, [&](std::size_t index) {
      for (AskedPlan& call : lanes[index]) {
        if (index == 0) world.memory.clock.advance(5ms);
        call.ask(*world.memory.store, world.tick());
      }
    });
    std::vector<AskedPlan> calls;
    for (const auto& lane : lanes) calls.insert(calls.end(), lane.begin(), lane.end());
    INFO(text(calls));
    REQUIRE(linearizes(calls));
    world.memory.clock.advance(2min);
  }
  INFO("windows: " << window);
  CHECK(met());
  CHECK(world.memory.stats().overflowed == 0);
  CHECK(world.memory.stats().rejected == 0);
}

}  // namespace sluice::test
