// What Catch2 prints of the values of this library, and of a claim that does not hold.
// Threading: single-threaded.
#include "sluice/testing/catch2.hpp"

#include "sluice/sluice.hpp"
#include "sluice/testing/recording_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

using Catch::Detail::stringify;

TEST_CASE("Catch2 prints decisions, outcomes and times in words", "[testing]") {
  Outcome outcome;
  outcome.decision = {.limit = 5, .retry_after = 100ms};
  CHECK(stringify(outcome.decision) == "refused, 0 of 5 left, retry after 100 ms, from other");
  CHECK(stringify(outcome) == "{refused, 0 of 5 left, retry after 100 ms, from other}");
  outcome.error = Errc::unknown;
  CHECK(stringify(outcome) == "{the error unknown}");
  CHECK(stringify(Span{1500ms}) == "1.5 s");
  CHECK(stringify(VirtualClock::default_start) == "2000-01-01 00:00:00 UTC");
  CHECK(stringify(Played{"row 1"}) == "\nrow 1");
  CHECK(stringify(Checked{Breach{"too much", 1}}) == "too much");
}

TEST_CASE("Catch2 prints the first lines of a long trace", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  for (int i = 0; i < 100; ++i) (void)bucket.try_acquire("alice");
  const std::string text = stringify(store.trace());
  CHECK(text.find("sluice-trace 1 from 946684800000000\n+0.000000 token_bucket.acquire") == 0);
  CHECK(text.find("\n... and 81 lines more\n") != std::string::npos);
  CHECK(stringify(Trace{}) == "sluice-trace 1 from 0\n");
}

TEST_CASE("what Catch2 says of a matcher ends with the reason", "[testing]") {
  const DecisionMatcher matcher = refused(1ms);
  const Decision decision{.limit = 5, .retry_after = 2ms};
  CHECK_FALSE(matcher.match(decision));
  CHECK(matcher.toString() ==
        "is refused, retry after 1 ms\nbut it was refused, 0 of 5 left, retry after 2 ms, from "
        "other");
  CHECK(matcher.match({.retry_after = 1ms}));
  CHECK(matcher.toString() == "is refused, retry after 1 ms");
}
