// The judge against a count by brute force, and the ideal against the judge.
// Threading: single-threaded.
#include "sluice/sim/upstream.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

/// How many of the stamps lie in (now - window, now].
std::size_t count_in_window(const std::vector<Word>& stamps, Word now, Word window) {
  return static_cast<std::size_t>(std::count_if(
      stamps.begin(), stamps.end(), [=](Word s) { return s > now - window && s <= now; }));
}

}  // namespace

TEST_CASE("a call is answered 429 until the oldest leaves the window, to the microsecond") {
  Upstream api(2, 100us);
  CHECK(api.call(to_time(0)));
  CHECK(api.call(to_time(50)));
  CHECK_FALSE(api.call(to_time(99)));
  CHECK(api.call(to_time(100)));
  CHECK_FALSE(api.call(to_time(149)));
  CHECK(api.call(to_time(150)));
  CHECK(api.calls() == 6);
  CHECK(api.admitted() == 4);
  CHECK(api.rejected() == 2);
  CHECK(api.busiest_admitted() == 2);
  CHECK(api.busiest() == 4);  // 50, 99, 100, 149
}

TEST_CASE("the judge agrees with a count of all stamps") {
  test::Random random("the judge agrees with a count of all stamps");
  CAPTURE(random.repeat());
  const Word limit = random.between(1, 50);
  const Word window = random.between(1, 2'000);
  Upstream api(limit, Span{window});
  std::vector<Word> admitted;
  std::vector<Word> arrived;
  std::size_t busiest = 0;
  Word now = 0;
  for (std::size_t i = 0; i < test::scaled(3'000, 300); ++i) {
    now += random.between(0, 40);
    const bool expected = count_in_window(admitted, now, window) < static_cast<std::size_t>(limit);
    arrived.push_back(now);
    busiest = std::max(busiest, count_in_window(arrived, now, window));
    REQUIRE(api.call(to_time(now)) == expected);
    if (expected) admitted.push_back(now);
  }
  REQUIRE(api.admitted() == admitted.size());
  REQUIRE(api.busiest() == busiest);
}

TEST_CASE("the judge remembers more stamps than its first ring holds") {
  Upstream api(3'000, 1s);
  for (int i = 0; i < 4'000; ++i) CHECK(api.call(to_time(i)) == (i < 3'000));
  CHECK(api.busiest() == 4'000);
  CHECK(api.call(to_time(1'000'000)));
  CHECK_FALSE(api.call(to_time(1'000'000)));
}

TEST_CASE("the ideal is never refused, never early and never idle while a job could be sent") {
  test::Random random(
      "the ideal is never refused, never early and never idle while a job could be sent");
  CAPTURE(random.repeat());
  const Word limit = random.between(1, 20);
  const Word window = random.between(1, 1'000);
  Ideal ideal(limit, Span{window});
  Upstream api(limit, Span{window});
  std::vector<Word> sent;
  Word now = 0;
  for (std::size_t i = 0; i < test::scaled(3'000, 300); ++i) {
    now += random.between(0, 60);
    const Word at = to_word(ideal.send(to_time(now)));
    REQUIRE(at >= now);
    REQUIRE(api.call(to_time(at)));
    if (at > now) {
      // One microsecond earlier the window was full.
      REQUIRE(count_in_window(sent, at - 1, window) == static_cast<std::size_t>(limit));
    }
    sent.push_back(at);
  }
}

TEST_CASE("an API without a limit or a window is refused") {
  CHECK_THROWS_AS(Upstream(0, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream(-1, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream(1, 0s), std::invalid_argument);
  CHECK_THROWS_AS(Ideal(0, 1s), std::invalid_argument);
}
