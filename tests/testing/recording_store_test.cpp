// The recording store. Threading: as the test cases say.
#include "sluice/testing/recording_store.hpp"

#include <optional>
#include <thread>
#include <vector>

#include "sluice/memory_store.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/check.hpp"
#include "tests/support/wire_store.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE("a recording store keeps every promise of the store behind it", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  test::check_store(store, &clock, 0.3);
  CHECK(store.trace().calls.size() > 1000);
}

TEST_CASE("a call is recorded where it was asked, with the time that it took", "[testing]") {
  VirtualClock clock;
  const auto far = make_virtual_store(clock);
  test::WireStore inner(*far);
  RecordingStore store(inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  int answers = 0;
  const auto count = [&](std::error_code, Decision) { ++answers; };
  bucket.try_acquire_then("alice", 1, count);
  store.mark("be\r\ntween");
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
  CHECK(trace.marks[0].text == "be  tween");  // on one line
  CHECK(answers == 2);
}

TEST_CASE("who goes first, the recording store or the one behind: each call ends once",
          "[testing]") {
  VirtualClock clock;
  const auto far = make_virtual_store(clock);
  std::optional<test::WireStore> inner(std::in_place, *far);
  std::vector<std::error_code> ends;
  const auto note = [&](std::error_code error, Decision) { ends.push_back(error); };
  std::optional<RecordingStore> store(std::in_place, *inner);
  const auto ask = [&] {
    TokenBucket(*store, "api", Quota::per_second(10)).try_acquire_then("alice", 1, note);
  };
  ask();
  ask();
  CHECK(ends.empty());
  store.reset();
  CHECK(ends == std::vector<std::error_code>(2, Errc::unknown));
  inner->answer(0);
  inner.reset();
  CHECK(ends.size() == 2);

  inner.emplace(*far);
  store.emplace(*inner);
  ask();
  inner->fail(0, Errc::shut_down);
  CHECK(ends.back() == Errc::shut_down);
  CHECK(store->trace().calls[0].error == Errc::shut_down);
}

TEST_CASE("a full recording passes calls on and counts them; a cleared one begins anew",
          "[testing]") {
  VirtualClock clock;
  const auto far = make_virtual_store(clock);
  test::WireStore inner(*far);
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
  inner.deliver_all();  // asked before, so they belong nowhere
  CHECK(answers == 3);
  CHECK(recording.trace().calls.empty());
  bucket.try_acquire_then("bob", 1, [&](std::error_code, Decision) { ++answers; });
  inner.answer(0);
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
