// A FallbackStore before a store of several nodes, in virtual time. The model has its breaker
// (model_test.cpp). Threading: as each test says.
#include <atomic>
#include <thread>

#include "sluice/memory_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "tests/fallback/nodes.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
TEST_CASE("a plan of several steps belongs to the part of its first", "[fallback][parts]") {
  NodesRig rig(2);
  rig.trip(1);
  const std::array of_first{rig.bucket.acquire_step("0"), rig.bucket.acquire_step("1")};
  const std::array of_second{of_first[1], of_first[0]};
  CHECK(decide(rig.store, Plan(of_first)).source == Source::virtual_store);
  CHECK(decide(rig.store, Plan(of_second)).source == Source::policy);
}

TEST_CASE("invalid plans have their error, whatever part they would have", "[fallback][parts]") {
  NodesRig rig(2);
  rig.trip(0);
  std::error_code error;
  (void)decide(rig.store, Plan(std::span<const Step>()), error);
  CHECK(error == Errc::invalid_plan);
  (void)decide(rig.store, rig.bucket.acquire_step(""), error);
  CHECK(error == Errc::invalid_key);
  const Step empty = rig.bucket.acquire_step("");
  const std::array plans{Plan(empty), Plan(std::span<const Step>())};
  std::array<Decision, 2> results;
  std::array<std::error_code, 2> errors;
  decide_batch(rig.store, plans, results, errors);
  CHECK(errors[0] == Errc::invalid_key);
  CHECK(errors[1] == Errc::invalid_plan);
}

TEST_CASE("stores in front of another tell its parts, and others have one", "[fallback][parts]") {
  NodesRig rig(4);
  rig.nodes.reach(3);
  rig.nodes.reach(3);
  const auto is_third = [](const Store& store) {
    const StorePart part = store.part_of("3.alice");
    return part.index == 3 && part.comebacks == 2;
  };
  FaultyStore faulty(rig.nodes);
  testing::RecordingStore recording(faulty);
  CHECK(is_third(rig.nodes));
  CHECK(is_third(faulty));
  CHECK(is_third(recording));
  CHECK(is_third(rig.store));
  const auto memory = make_memory_store();
  for (const Store* store : {rig.states.get(), static_cast<Store*>(memory.get())}) {
    CHECK(store->part_of("3.alice").index == 0);
    CHECK(store->part_of("3.alice").comebacks == 0);
  }
}

TEST_CASE("many threads ask nodes that come and go", "[fallback][parts]") {
  constexpr unsigned count = 3;
  constexpr unsigned callers = 4;
  const auto server = make_memory_store();
  const auto local = make_memory_store();
  VirtualClock time;
  NodesStore nodes(*server, count);
  std::array<std::atomic<int>, count> opened{};
  CircuitBreaker breaker(time, {.failures = 3, .first_pause = 1ms, .longest_pause = 1ms},
                         [&](unsigned part, State, State to) {
                           if (to == State::open) ++opened[part];
                         });
  const FailurePolicy policy = FailurePolicy::local(*local, 2);
  FallbackStore first(nodes, breaker, policy);
  FallbackStore second(nodes, breaker, policy);

  const std::size_t each = scaled(15'000, 500);
  std::atomic<std::size_t> answered{0}, errors{0};
  std::atomic<unsigned> over{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      const TokenBucket bucket(i == 0 ? second : first, "b", Quota::per_second(1'000).burst(100));
      for (std::size_t call = 0; call < each; ++call) {
        decide_then(bucket.store(), bucket.acquire_step((call + i) % count),
                    [&](const std::error_code& error, const Decision&) {
                      ++answered;
                      if (error) ++errors;
                    });
      }
      ++over;
    });
  }
  const TokenBucket bucket(first, "b", Quota::per_second(1'000).burst(100));
  std::uint64_t outages = 0;
  for (; over < callers || outages < 2; ++outages) {
    for (unsigned node = 0; node < count; ++node) {
      nodes.at(node).fail_all(dead);
      for (int i = 0; i < 20; ++i) (void)bucket.try_acquire(node);
    }
    for (unsigned node = 0; node < count; ++node) nodes.at(node).heal();
    for (unsigned node = 0; node < count; ++node) {
      while (breaker.state(node) != State::closed) {
        // Without a comeback no pause would end: the time stands still.
        for (unsigned other = 0; other < count; ++other) nodes.reach(other);
        (void)bucket.try_acquire(node);
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answered == callers * each);
  CHECK(errors == 0);
  std::uint64_t calls = 0;
  for (unsigned node = 0; node < count; ++node) {
    CHECK(opened[node] >= 2);
    CHECK(breaker.state(node) == State::closed);
    calls += nodes.at(node).counts().calls;
  }
  CHECK(first.stats().primary + second.stats().primary == calls);
  CHECK(breaker.stats().trips >= count * outages);
}

}  // namespace sluice::test
