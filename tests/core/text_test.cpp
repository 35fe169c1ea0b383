// What values are in a log. Threading: single-threaded.
#include <sstream>

#include "sluice/decision.hpp"
#include "sluice/key.hpp"
#include "src/core/text.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

template <class T>
std::string written(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

TEST_CASE("a decision reads as a line of a log", "[core][text]") {
  Decision d{.allowed = false,
             .source = Source::redis,
             .limit = 5,
             .retry_after = 100ms,
             .reset_after = 500ms};
  CHECK(to_string(d) == "refused, 0 of 5 left, retry after 100 ms, reset after 500 ms, from redis");
  d = {.allowed = true, .source = Source::memory, .limit = 5, .remaining = 4};
  CHECK(to_string(d) == "allowed, 4 of 5 left, from memory");
  d = {.allowed = true, .step = 1, .part = 2, .limit = 5, .remaining = 4, .retry_after = 2s};
  CHECK(to_string(d) == "allowed in 2 s, 4 of 5 left, step 1, part 2, from other");
  CHECK(written(d) == to_string(d));
}

TEST_CASE("a span reads in the largest unit of which it is a whole number, from a minute on",
          "[core][text]") {
  for (const auto& [span, text] :
       std::vector<std::pair<Span, const char*>>{{0us, "0 s"},
                                                 {7us, "7 us"},
                                                 {1500us, "1.5 ms"},
                                                 {90'500ms, "90.5 s"},
                                                 {1min, "1 min"},
                                                 {90min, "90 min"},
                                                 {1h, "1 h"},
                                                 {-2s, "-2 s"},
                                                 {Span::max(), "for ever"},
                                                 {Span::min(), "-for ever"}}) {
    CHECK(detail::text_of(span) == text);
  }
}

TEST_CASE("every source has a name of its own", "[core][text]") {
  for (const auto& [source, name] : {std::pair{Source::memory, "memory"},
                                     {Source::virtual_store, "virtual"},
                                     {Source::redis, "redis"},
                                     {Source::other, "other"},
                                     {Source::fallback, "fallback"},
                                     {Source::policy, "policy"}}) {
    CHECK(to_string(source) == name);
    CHECK(written(source) == name);
  }
}

TEST_CASE("a key is written as exceptions show it, and a string beside it as it is",
          "[core][text]") {
  const Key key{"a b", "uploads"};
  CHECK(to_string(key) == "{a%20b}:uploads");
  CHECK(written(key) == render(key));
  CHECK(written(std::string("a b")) == "a b");
}
