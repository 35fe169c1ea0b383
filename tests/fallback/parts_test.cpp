// A FallbackStore before a store of several nodes: those that answer decide, whatever the others
// do. In virtual time. The model has its breaker (model_test.cpp). Threading: the test's thread.
#include "sluice/memory_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "tests/fallback/nodes.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
TEST_CASE("while one node is down, no call to the others is degraded", "[fallback][parts][C-036]") {
  Random random("while one node is down, no call to the others is degraded");
  CAPTURE(random.repeat());
  NodesRig rig(6);
  rig.nodes.at(2).fail_all(dead);
  std::array<int, 6> decided{};
  std::array<int, 6> asked{};
  for (std::size_t i = 0; i < scaled(3'000, 300); ++i) {
    rig.clock.advance(Span{random.between(0, 2'000)});
    const auto node = static_cast<unsigned>(random.between(0, 5));
    ++asked[node];
    if (rig.ask(node)) ++decided[node];
  }
  for (const unsigned node : {0U, 1U, 3U, 4U, 5U}) CHECK(decided[node] == asked[node]);
  CHECK(decided[2] == 0);
  CHECK(rig.store.stats().degraded_grants == static_cast<std::uint64_t>(asked[2]));
  CHECK(rig.breaker.stats().trips == 1);
  CHECK(rig.breaker.state() == State::closed);
}

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

}  // namespace sluice::test
