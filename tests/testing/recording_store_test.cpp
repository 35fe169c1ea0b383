// The recording store. Threading: as the test cases say.
#include "sluice/testing/recording_store.hpp"

#include <optional>
#include <thread>
#include <vector>

#include "sluice/memory_store.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/conformance.hpp"
#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/testing/slow_store.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE("a recorded call has what was asked, what was answered, and when", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  const Time start = clock.now();
  clock.advance(3s);
  const Decision decision = bucket.try_acquire("alice");
  const Trace trace = store.trace();
  REQUIRE(trace.calls.size() == 1);
  const TracedCall& call = trace.calls[0];
  CHECK(call.asked == start + 3s);
  CHECK(call.answered == start + 3s);
  CHECK(call.steps == std::vector{TracedStep(bucket.acquire_step("alice"))});
  CHECK(call.decision == decision);
  CHECK(call.each == std::vector{decision});
  CHECK_FALSE(call.error);
  CHECK_FALSE(call.id);
}

TEST_CASE("a recording store keeps every promise of the store behind it", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  ConformanceOptions options;
  options.seed = test::seed();
  options.scale = static_cast<double>(test::scaled(300)) / 1000;
  options.clock = &clock;
  const Report report = check_conformance(store, options);
  INFO(report.text());
  CHECK(report);
  CHECK(store.trace().calls.size() > 1000);
}

TEST_CASE("a call is recorded where it was asked, with the time that it took", "[testing]") {
  VirtualClock clock;
  test::SlowStore inner(clock);
  RecordingStore store(inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  int answers = 0;
  const auto count = [&](std::error_code, Decision) { ++answers; };
  bucket.try_acquire_then("alice", 1, count);
  store.mark("between");
  clock.advance(1s);
  bucket.try_acquire_then("bob", 1, count);
  CHECK(store.trace().calls.empty());
  inner.answer(1);  // the second first
  REQUIRE(store.trace().calls.size() == 1);
  CHECK(store.trace().marks[0].before == 0);
  clock.advance(1s);
  inner.answer(0);
  const Trace trace = store.trace();
  REQUIRE(trace.calls.size() == 2);
  CHECK(trace.calls[0].steps[0].tag == "alice");
  CHECK(trace.calls[0].answered - trace.calls[0].asked == 2s);
  CHECK(trace.calls[1].answered == trace.calls[1].asked);
  CHECK(trace.marks[0].before == 1);
  CHECK(answers == 2);
}

TEST_CASE("who goes first, the recording store or the one behind: each call ends once",
          "[testing]") {
  VirtualClock clock;
  int answers = 0;
  std::error_code last;
  const auto count = [&](std::error_code error, Decision) {
    ++answers;
    last = error;
  };
  std::optional<test::SlowStore> inner(std::in_place, clock);
  {
    RecordingStore store(*inner);
    const TokenBucket bucket(store, "api", Quota::per_second(10));
    bucket.try_acquire_then("alice", 1, count);
    bucket.try_acquire_then("bob", 1, count);
    CHECK(answers == 0);
  }
  CHECK(answers == 2);
  CHECK(last == Errc::unknown);
  inner->answer(0);
  inner.reset();
  CHECK(answers == 2);

  inner.emplace(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  bucket.try_acquire_then("alice", 1, count);
  inner.reset();
  CHECK(answers == 3);
  CHECK(last == Errc::shut_down);
  CHECK(store.trace().calls[0].error == Errc::shut_down);
}

TEST_CASE("a full recording passes calls on and counts them; a cleared one begins anew",
          "[testing]") {
  VirtualClock clock;
  test::SlowStore inner(clock);
  Recording recording(2);
  RecordingStore store(inner, recording, "worker");
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    bucket.try_acquire_then("alice", 1, [&](std::error_code, Decision) { ++answers; });
  }
  inner.answer(0);
  CHECK(recording.left_out() == 1);
  recording.clear();
  CHECK(recording.left_out() == 0);
  inner.answer(1);  // asked before, so it belongs nowhere
  inner.answer(2);
  CHECK(answers == 3);
  CHECK(recording.trace().calls.empty());
  bucket.try_acquire_then("bob", 1, [&](std::error_code, Decision) { ++answers; });
  inner.answer(3);
  REQUIRE(recording.trace().calls.size() == 1);
  CHECK(recording.trace().calls[0].caller == "worker");
}

TEST_CASE("threads share a recording, each under its name", "[testing]") {
  const auto inner = make_memory_store();
  Recording recording;
  constexpr int each = 500;
  {
    std::vector<std::jthread> threads;
    for (const char* name : {"one", "two", "three"}) {
      threads.emplace_back([&, name] {
        RecordingStore store(*inner, recording, name);
        const TokenBucket bucket(store, "api", Quota::per_second(10));
        for (int i = 0; i < each; ++i) (void)bucket.try_acquire(name);
      });
    }
  }
  const Trace trace = recording.trace();
  REQUIRE(trace.calls.size() == 3 * each);
  for (const TracedCall& call : trace.calls) REQUIRE(call.caller == call.steps[0].tag);
}

TEST_CASE("the calls on one key keep their marks, steps and output", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(4));
  const TokenBucket whole(store, "whole", Quota::per_second(10).burst(4));
  (void)bucket.try_acquire("bob");
  (void)decide(store, {whole.reserve_step("all", 1, 0s), bucket.reserve_step("alice", 2, 0s)});
  store.mark("half");
  (void)bucket.try_acquire("alice");
  const Trace trace = store.trace();
  const Trace part = calls_on(trace, {"alice", "api"});
  REQUIRE(part.calls.size() == 2);
  CHECK(part.start() == trace.start());
  CHECK(part.marks.at(0).before == 1);
  CHECK_FALSE(part.calls[0].whole);
  CHECK(part.calls[1].whole);
  CHECK(part.calls[0].steps == std::vector{trace.calls[1].steps[1]});
  CHECK(part.calls[0].each == std::vector{trace.calls[1].each[1]});
  REQUIRE(part.calls[0].output.size() == 3);
  CHECK(part.calls[0].output[0] == 2);  // units of the second step
  CHECK(calls_on(trace, "alice").calls == part.calls);
  CHECK(calls_on(trace, {"alice", "whole"}).calls.empty());
  CHECK(to_text(part).find("+0.000000 part-of token_bucket.reserve {alice}:api:10/s") !=
        std::string::npos);
}
