// A refusal that does not say how long is unknown, not now: what Feedback makes of it, and how
// often a documented client then calls.
#include <sluice/http.hpp>
#include <sluice/sluice.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using http::HeaderLines;
using http::parse_lines;

namespace {

const std::vector<HeaderLines> unsaid{
    {},
    {{"Retry-After", ""}},
    {{"Retry-After", "0"}},
    {{"Retry-After", "0.0"}},
    {{"Retry-After", "-0"}},
    {{"retry-after-ms", "0"}},
    {{"Retry-After", "0"}, {"retry-after-ms", "0"}},
    {{"Retry-After", "Thu, 29 Feb 2024 12:34:56 GMT"}},  // now
    {{"Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"}},
    {{"Retry-After", "soon"}},
    {{"Retry-After", "5, 5"}},
    {{"Retry-After", "-5"}},
    {{"Retry-After", "5 5"}},
    {{"Retry-After", std::string("5\0", 2)}},
    {{"Retry-After", "5\n"}},
    {{"X-RateLimit-Remaining", "0"}},
    {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "0"}},
    {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "1500000000"}},
    {{"X-RateLimit-Remaining", "3"}, {"X-RateLimit-Reset", "60"}},
    {{"RateLimit", R"("a";r=0)"}},
    {{"RateLimit", R"("a";r=0;t=0)"}},
    {{"RateLimit-Limit", "100"}, {"RateLimit-Remaining", "0"}},
    {{"X-MBX-ORDER-COUNT-10S", "100"}},
    {{"acme-ratelimit-remaining", "0"}, {"acme-ratelimit-reset", "29875"}},
};

/// The instants of the calls to an API that refuses always with these headers, as a client makes
/// them that is written as docs/calls.md shows.
std::vector<Span> calls_of(const HeaderLines& lines, bool has_gate) {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "b", Quota::per_second(1000));
  const Gates gates(*store, "api", {"account"}, {.ramp = 0s, .spacing = 0s});
  std::vector<Claim> claims{{bucket, "a"}};
  if (has_gate) claims.emplace_back(gates, gates.scope("account", 1));
  std::vector<Span> calls;
  const Time start = clock.now();
  const auto send = [&] {
    calls.push_back(clock.now() - start);
    http::require_served(429, parse_lines(lines));
  };
  CHECK_THROWS_AS(Call(claims, {.jitter = Jitter::equal})(send), RateLimited);
  return calls;
}

}  // namespace

TEST_CASE("a wait that is not told is unknown, and cannot be taken for a time") {
  static_assert(!std::is_convertible_v<std::optional<Span>, SpanArg>);
  for (const HeaderLines& lines : unsaid) {
    CAPTURE(lines.empty() ? "" : lines.back().first + ": " + lines.back().second);
    const http::Feedback feedback = parse_lines(lines);
    CHECK_FALSE(feedback.wait());
    CHECK_FALSE(feedback.retry_at());
  }
}

TEST_CASE("Retry-After of zero leaves the word to the windows") {
  const http::Feedback feedback =
      parse_lines({{"Retry-After", "0"}, {"RateLimit", R"("a";r=0;t=7)"}});
  CHECK(feedback.retry_after == 0s);
  CHECK(feedback.wait() == 7s);
  CHECK(parse_lines({{"Retry-After", "0.0000001"}}).wait() == 1us);
}

TEST_CASE("a client that is refused without a time makes growing pauses, with a gate or without") {
  for (const bool has_gate : {false, true}) {
    for (const HeaderLines& lines : unsaid) {
      CAPTURE(has_gate, lines.empty() ? "" : lines.back().first + ": " + lines.back().second);
      const std::vector<Span> calls = calls_of(lines, has_gate);
      REQUIRE(calls.size() == 8);
      Span most = 1s;
      for (std::size_t i = 1; i < calls.size(); ++i) {
        const Span pause = calls[i] - calls[i - 1];
        CHECK((pause >= most / 2 && pause <= most));
        most = std::min<Span>(60s, 2 * most);
      }
    }
    CHECK(calls_of({{"Retry-After", "5"}}, has_gate).at(7) == 35s);
  }
}

TEST_CASE("the pauses of two clients that are refused alike differ") {
  CHECK(calls_of(unsaid[0], false) != calls_of(unsaid[0], false));
}

TEST_CASE("a refusal without a positive time has none") {
  for (const Span span : {Span{0}, Span{-1}, Span::min()}) {
    CHECK_FALSE(RateLimited(span).retry_after());
    CHECK_FALSE(Transient(Served::no, span).retry_after());
  }
  CHECK_FALSE(RateLimited().retry_after());
  CHECK(RateLimited(1us).retry_after() == 1us);
  CHECK(Transient(Served::no, 1us).retry_after() == 1us);
}
