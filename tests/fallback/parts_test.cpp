// A FallbackStore before a store of several nodes: those that answer decide, whatever the others
// do. In virtual time.
// Threading: the test's thread.
#include "sluice/memory_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "tests/fallback/nodes.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr BreakerOptions for_long{.failures = 3, .first_pause = 1h, .longest_pause = 24h};

/// Every answer of a node comes so late that the test sees it pending.
const Fault late = Fault::none().late(10ms);

}  // namespace

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

TEST_CASE("two nodes that are down at different times open and close apart", "[fallback][parts]") {
  NodesRig rig(3);
  rig.trip(0);
  CHECK(rig.breaker.state(1) == State::closed);
  rig.trip(1);
  rig.nodes.at(0).heal();
  rig.clock.advance(1s);
  CHECK(rig.ask(0));
  CHECK(rig.breaker.state(0) == State::closed);
  CHECK_FALSE(rig.ask(1));
  CHECK(rig.breaker.state(1) == State::open);
  CHECK(rig.ask(2));
  rig.nodes.at(1).heal();
  rig.clock.advance(1s);
  CHECK(rig.ask(1));
  CHECK(rig.breaker.state(1) == State::closed);
  CHECK(rig.breaker.stats().trips == 2);
}

TEST_CASE("a node that is reachable again gets exactly one call at once, then all or none",
          "[fallback][parts][C-036]") {
  const bool answers = GENERATE(true, false);
  CAPTURE(answers);
  NodesRig rig(2, for_long);
  rig.trip(1);
  const auto calls = [&] { return rig.nodes.at(1).counts().calls; };
  const auto before = calls();
  rig.nodes.at(1).fail_all(answers ? late : dead.late(10ms));
  rig.clock.advance(1min);  // of an hour or so
  CHECK_FALSE(rig.ask("1.alice"));
  rig.nodes.reach(0);
  CHECK_FALSE(rig.ask("1.alice"));
  CHECK(calls() == before);

  rig.nodes.reach(1);
  Source first{};
  decide_then(rig.store, rig.bucket.acquire_step("1.alice"),
              [&](const std::error_code&, const Decision& answer) { first = answer.source; });
  CHECK(rig.breaker.state(1) == State::half_open);
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(rig.ask("1.bob"));
    CHECK(rig.ask("0.bob"));
  }
  CHECK(calls() == before + 1);
  rig.clock.advance(10ms);
  CHECK(first == (answers ? Source::virtual_store : Source::policy));

  rig.nodes.at(1).heal();
  for (int i = 0; i < 20; ++i) CHECK(rig.ask("1.bob") == answers);
  CHECK(rig.breaker.stats().probes == 1);
  if (answers) return;
  rig.clock.advance(pause_of(for_long, 1) -
                    1us);  // the second pause, after which the node is asked again
  CHECK_FALSE(rig.ask("1.bob"));
  rig.clock.advance(1us);
  CHECK(rig.ask("1.bob"));
}

TEST_CASE("a node that is reachable again before its breaker opens is asked again at once",
          "[fallback][parts]") {
  NodesRig rig(2, for_long);
  rig.nodes.at(1).fail_all(Fault::answer_lost().late(10ms));  // the connection was lost
  for (int i = 0; i < 3; ++i) {
    decide_then(rig.store, rig.bucket.acquire_step("1"),
                [](const std::error_code&, const Decision&) {});
  }
  rig.nodes.reach(1);
  rig.nodes.at(1).heal();
  rig.clock.advance(10ms);
  CHECK(rig.breaker.state(1) == State::open);
  CHECK(rig.ask(1));
  CHECK(rig.breaker.state(1) == State::closed);
}

TEST_CASE("under closed, a refusal of one node's key tells that node's pause",
          "[fallback][parts]") {
  NodesRig rig(2, for_long, FailurePolicy::closed());
  rig.trip(0);
  rig.clock.advance(10min);
  rig.trip(1);
  CHECK(rig.bucket.try_acquire(0).retry_after == pause_of(for_long, 0) - 10min);
  CHECK(rig.bucket.try_acquire(1).retry_after == pause_of(for_long, 0));
}

TEST_CASE("a failed call is told the pause of its own node", "[fallback][parts]") {
  NodesRig rig(2, for_long, FailurePolicy::closed());
  rig.nodes.at(0).fail_all(dead);
  rig.nodes.at(1).fail_all(dead);
  for (int i = 0; i < 2; ++i) CHECK(rig.bucket.try_acquire(1).retry_after == 1h);
  CHECK(rig.bucket.try_acquire(1).retry_after == pause_of(for_long, 0));  // it opens the part
  CHECK(rig.bucket.try_acquire(0).retry_after == 1h);  // the part is still closed
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

TEST_CASE("several fallback stores learn of a node through one breaker", "[fallback][parts]") {
  NodesRig rig(3, for_long);
  FallbackStore other(rig.nodes, rig.breaker, FailurePolicy::closed());
  const TokenBucket bucket(other, "c", Quota::per_second(1'000));
  rig.trip(1);
  const auto calls = rig.nodes.at(1).counts().calls;
  CHECK(bucket.try_acquire("1").source == Source::policy);
  CHECK(bucket.try_acquire("2").source == Source::virtual_store);
  CHECK(rig.nodes.at(1).counts().calls == calls);
  rig.nodes.at(1).heal();
  rig.nodes.reach(1);
  CHECK(bucket.try_acquire("1").source == Source::virtual_store);
  CHECK(rig.breaker.state(1) == State::closed);
  CHECK(rig.ask(1));
}

TEST_CASE("a fallback store that ends leaves its pending probes, of all parts, to others",
          "[fallback][parts]") {
  NodesRig rig(4, for_long);
  for (unsigned node = 0; node < 4; ++node) {
    rig.trip(node);
    rig.nodes.reach(node);
    rig.nodes.at(node).fail_all(node == 2 ? Fault::none().late(5ms) : late);
  }
  std::vector<std::error_code> errors;
  {
    FallbackStore other(rig.nodes, rig.breaker, FailurePolicy::open());
    const TokenBucket bucket(other, "c", Quota::per_second(1'000));
    for (unsigned node = 0; node < 4; ++node) {
      decide_then(other, bucket.acquire_step(node),
                  [&](const std::error_code& error, const Decision&) { errors.push_back(error); });
      CHECK(rig.breaker.state(node) == State::half_open);
    }
    CHECK(errors.empty());
    rig.clock.advance(5ms);
    CHECK(rig.breaker.state(2) == State::closed);
    CHECK(errors == std::vector<std::error_code>(1));
    errors.clear();
  }
  CHECK(errors == std::vector<std::error_code>(3, Errc::unknown));
  for (const unsigned node : {0U, 1U, 3U}) {
    rig.nodes.at(node).heal();
    CHECK(rig.breaker.state(node) == State::open);
    CHECK(rig.ask(node));
    CHECK(rig.breaker.state(node) == State::closed);
  }
  CHECK(rig.breaker.stats().probes == 7);
}

TEST_CASE("a probe that was answered is not taken back when its store ends", "[fallback][parts]") {
  NodesRig rig(2, for_long);
  rig.trip(1);
  {
    FallbackStore other(rig.nodes, rig.breaker, FailurePolicy::open());
    const TokenBucket bucket(other, "c", Quota::per_second(1'000));
    rig.nodes.reach(1);
    CHECK(bucket.try_acquire(1).source == Source::policy);
    CHECK(rig.breaker.ask(1, 1).wait == pause_of(for_long, 1));
    rig.nodes.reach(1);
    const auto probe = rig.breaker.ask(1, 2);  // of another user
    CHECK(probe.is_probe);
  }
  CHECK(rig.breaker.state(1) == State::half_open);
}

TEST_CASE("a batch goes together for the nodes that answer, and one by one for the others",
          "[fallback][parts]") {
  NodesRig rig(4, for_long);
  rig.trip(1);
  rig.trip(3);
  const std::vector<std::string> tags{"0", "1.a", "2", "1.b", "3", "0.x", "0.y", "1.c"};
  std::vector<Step> steps;
  for (const std::string& tag : tags) steps.push_back(rig.bucket.acquire_step(tag));
  const std::vector<Plan> plans(steps.begin(), steps.end());
  const auto ask = [&] {
    std::vector<Decision> results(plans.size());
    std::vector<std::error_code> errors(plans.size());
    decide_batch(rig.store, plans, results, errors);
    std::string sources;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      CHECK_FALSE(errors[i]);
      sources += is_degraded(results[i].source) ? 'p' : 's';
    }
    return sources;
  };
  rig.nodes.singles = 0;
  CHECK(ask() == "spsppssp");
  CHECK(rig.nodes.batches == std::vector<std::size_t>{4});
  CHECK(rig.nodes.singles == 0);

  rig.nodes.reach(1);
  rig.nodes.at(1).heal();
  CHECK(ask() == "sssspsss");  // the probe goes alone, and closes the part for those behind it
  CHECK(rig.nodes.batches == std::vector<std::size_t>{4, 4});
  CHECK(rig.nodes.singles == 3);
  CHECK(rig.breaker.stats().probes == 1);

  rig.nodes.reach(3);
  CHECK(ask() == "sssspsss");  // the probe fails
  CHECK(rig.nodes.batches == std::vector<std::size_t>{4, 4, 7});
  CHECK(rig.nodes.singles == 4);
  CHECK(ask() == "sssspsss");
  CHECK(rig.nodes.singles == 4);
  CHECK(rig.breaker.stats().probes == 2);
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
