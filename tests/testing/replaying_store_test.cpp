// The replaying store. Threading: as the test cases say.
#include "sluice/testing/replaying_store.hpp"

#include <thread>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

/// Some code that uses a store, and what became of it.
std::vector<std::string> run_code(Store& store, VirtualClock& clock, Word last_cost = 1) {
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  const SlidingWindow windows(store, "windows", {{2, 1s}});
  std::vector<std::string> answers;
  const auto note_answer = [&](const auto& ask) {
    std::error_code error;
    const Decision decision = ask(error);
    answers.push_back(error ? to_text(error) : to_string(decision));
  };
  note_answer([&](auto& error) { return bucket.try_acquire("alice", 2, error); });
  note_answer([&](auto& error) { return bucket.try_acquire("alice", 1, error); });
  note_answer([&](auto& error) { return windows.try_acquire("alice", 1, error); });
  clock.advance(50ms);
  note_answer([&](auto& error) { return bucket.try_acquire("alice", last_cost, error); });
  std::error_code error;
  const Reservation r = bucket.reserve("bob", 2, 1s, error);
  answers.push_back(std::to_string(r.granted));
  return answers;
}

struct Recorded {
  Trace trace;
  std::vector<std::string> answers;
};
Recorded record() {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  FaultyStore faulty(*inner);
  faulty.play(FaultScript("ok unknown"));
  RecordingStore store(faulty);
  auto answers = run_code(store, clock);
  return {store.trace(), std::move(answers)};
}

}  // namespace

TEST_CASE("code that asks what was recorded gets what was answered, errors and output included",
          "[testing]") {
  const Recorded recorded = record();
  CHECK(recorded.answers[1] == "unknown");
  CHECK(recorded.answers[4] == "2");
  for (const auto times : {ReplayOptions::Times::any, ReplayOptions::Times::same}) {
    VirtualClock clock;
    // Through its text, as a file would be.
    ReplayingStore store(parse_trace(to_text(recorded.trace)), clock, {.times = times});
    CHECK(run_code(store, clock) == recorded.answers);
    CHECK(store.report() == "");
    CHECK(store.unasked() == 0);
  }
}

TEST_CASE("what is asked differently is said: which call, what was expected, what came",
          "[testing]") {
  VirtualClock clock;
  ReplayingStore store(record().trace, clock);
  CHECK(store.unasked() == 5);
  CHECK(store.report() ==
        "5 recorded calls were not asked, the first is token_bucket.acquire {alice}:api:10/s "
        "2,1,100000,200000,2 at +0 s\n");
  const auto answers = run_code(store, clock, 2);
  CHECK(answers[3] == "sluice.replay:1");
  CHECK(answers[4] == "2");  // it goes on behind the difference
  REQUIRE(store.differences().size() == 1);
  CHECK(store.differences()[0] ==
        "call 4: expected token_bucket.acquire {alice}:api:10/s 2,1,100000,200000,1 at +50 ms, got "
        "token_bucket.acquire {alice}:api:10/s 2,1,100000,200000,2 at +50 ms");
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  std::error_code error;
  (void)bucket.try_acquire("alice", error);
  CHECK(error == ReplayErrc::over);
  CHECK(error == Failure::not_executed);
  CHECK(error.message() == "the recording has no more calls");
  CHECK(store.differences()[1].find("call 6: expected no more calls, got token_bucket.acquire") ==
        0);
}

TEST_CASE("times are left alone, followed or compared", "[testing]") {
  const Trace trace = record().trace;
  using Times = ReplayOptions::Times;
  const auto ask_late = [&](Times times) {
    VirtualClock clock(VirtualClock::default_start + 1h);
    ReplayingStore store(trace, clock, {.times = times});
    const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
    std::error_code error;
    (void)bucket.try_acquire("alice", 2, error);
    CHECK(store.differences().size() == (times == Times::same ? 1 : 0));
    return clock.now() - VirtualClock::default_start;
  };
  CHECK(ask_late(Times::any) == 1h);
  CHECK(ask_late(Times::follow) == 0h);
  CHECK(ask_late(Times::same) == 1h);
}

TEST_CASE("what rings while the clock follows a recording may ask as well", "[testing]") {
  VirtualClock clock;
  ReplayingStore store(record().trace, clock, {.times = ReplayOptions::Times::follow});
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  const SlidingWindow windows(store, "windows", {{2, 1s}});
  std::error_code error;
  (void)bucket.try_acquire("alice", 2, error);
  (void)bucket.try_acquire("alice", 1, error);
  (void)windows.try_acquire("alice", 1, error);
  std::vector<std::error_code> errors;
  const auto ask = [&] {
    std::error_code now;
    (void)bucket.try_acquire("nobody", now);
    errors.push_back(now);
  };
  TimerCallback timer(
      [](void* context) noexcept { (*static_cast<const decltype(ask)*>(context))(); },
      const_cast<void*>(static_cast<const void*>(&ask)));
  clock.set_timer(timer, clock.now() + 10ms);  // the next recorded call came after 50 ms
  (void)bucket.try_acquire("alice", 1, error);
  CHECK_FALSE(error);
  CHECK(errors == std::vector{make_error_code(ReplayErrc::asked_differently)});
}

TEST_CASE("request ids count only if they are to be the same", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore recorder(*inner);
  const auto ask = [](Store& store, std::optional<RequestId> id) {
    const TokenBucket bucket(store, "api", Quota::per_second(10));
    const Step step = bucket.acquire_step("a");
    std::error_code error;
    (void)decide(store, id ? Plan(step).idempotent(*id) : Plan(step), error);
    return error;
  };
  (void)ask(recorder, RequestId{1, 2});
  const auto replayed = [&](bool same_ids, std::optional<RequestId> id) {
    ReplayingStore store(recorder.trace(), clock, {.same_ids = same_ids});
    return ask(store, id);
  };
  CHECK_FALSE(replayed(false, RequestId{3, 4}));
  CHECK(replayed(true, RequestId{3, 4}) == ReplayErrc::asked_differently);
  CHECK(replayed(false, std::nullopt) == ReplayErrc::asked_differently);
}

TEST_CASE("in any order, threads find their own answers", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore recorder(*inner);
  const auto ask_all = [](Store& store, const char* who, bool check) {
    const TokenBucket bucket(store, "api", Quota::per_second(10).burst(100));
    bool good = true;
    for (Word left = 99; left >= 0; --left) {
      std::error_code error;
      const Decision d = bucket.try_acquire(who, error);
      good = good && !error && d.remaining == left;
    }
    return good || !check;
  };
  (void)ask_all(recorder, "one", false);
  (void)ask_all(recorder, "two", false);
  ReplayingStore store(recorder.trace(), clock, {.order = ReplayOptions::Order::any});
  bool good = false;
  std::jthread other([&] { good = ask_all(store, "two", true); });
  CHECK(ask_all(store, "one", true));
  other.join();
  CHECK(good);
  CHECK(store.report() == "");
}

TEST_CASE("a key of another kind is named by a recording as it was by the store", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  const auto told_by = [](Store& store) -> std::string {
    (void)SlidingWindowCounter(store, "rpm", {10, 60s}).try_acquire("acme");
    try {
      (void)FixedWindow(store, "rpm", 10, Calendar::every(60s)).try_acquire("acme");
    } catch (const std::system_error& error) {
      return error.what();
    }
    return "no exception";
  };
  RecordingStore store(*inner);
  const std::string told = told_by(store);
  CHECK(told.find("holds a sliding window counter and was asked as a fixed window") !=
        std::string::npos);
  ReplayingStore replaying(parse_trace(to_text(store.trace())), clock);
  CHECK(told_by(replaying) == told);
}
