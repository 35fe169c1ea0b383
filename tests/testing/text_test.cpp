// How values are written. Threading: single-threaded.
#include "sluice/testing/text.hpp"

#include <set>

#include "sluice/clock.hpp"
#include "sluice/virtual_store.hpp"
#include "src/core/error_names.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE("a length of time is written exactly, in the largest fitting unit", "[testing]") {
  CHECK(to_text(Span{0}) == "0 s");
  CHECK(to_text(Span{1us}) == "1 us");
  CHECK(to_text(Span{99'999us}) == "99.999 ms");
  CHECK(to_text(Span{100ms}) == "100 ms");
  CHECK(to_text(Span{1'500ms}) == "1.5 s");
  CHECK(to_text(Span{90s}) == "90 s");
  CHECK(to_text(Span{120s}) == "2 min");
  CHECK(to_text(Span{24h}) == "24 h");
  CHECK(to_text(Span{24h + 1us}) == "86400.000001 s");
  CHECK(to_text(Span{-3s}) == "-3 s");
  CHECK(to_text(Span{INT64_MAX}) == "for ever");
  CHECK(to_text(Span{INT64_MIN}) == "-for ever");
}

TEST_CASE("an instant is a date, or the time since a test began", "[testing]") {
  CHECK(to_text(VirtualClock::default_start + Span{2'500ms}) == "2000-01-01 00:00:02.5 UTC");
  CHECK(to_text(to_time(1'709'251'199'000'001)) == "2024-02-29 23:59:59.000001 UTC");
  CHECK(to_text(Time{2'500ms}) == "+2.5 s");
  CHECK(to_text(Time{-1ms}) == "-1 ms");
}

TEST_CASE("outcomes say all that counts", "[testing]") {
  Outcome outcome;
  outcome.decision = {.allowed = true, .step = 1, .limit = 5, .remaining = 4};
  CHECK(to_text(outcome) == to_string(outcome.decision));
  outcome.error = Errc::unknown;
  CHECK(to_text(outcome) == "the error unknown of step 1");
  CHECK(to_text(std::make_error_code(std::errc::timed_out)) ==
        "generic:" + std::to_string(ETIMEDOUT));
}

TEST_CASE("every error code has a name of its own", "[testing]") {
  std::set<std::string> names;
  std::size_t codes = 0;
  for (int value = 1; value < 200; ++value) {
    const std::error_code error(value, error_category());
    if (error.message() == "unknown error code") continue;
    ++codes;
    const std::string name = to_text(error);
    CAPTURE(name);
    CHECK(name.find(':') == std::string::npos);
    CHECK(sluice::detail::find_errc(name) == static_cast<Errc>(value));
    names.insert(name);
  }
  CHECK(names.size() == codes);
  CHECK(codes >= 41);
}
