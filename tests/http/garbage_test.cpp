// Random headers, from noise to what is almost sound: nothing throws, all bounds hold, and a header
// more of nonsense never shortens a wait.
#include <string>

#include "tests/catch.hpp"
#include "tests/http/feedback_checks.hpp"
#include "tests/http/parse.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::http;
using test::Random;

namespace {

const std::vector<std::string_view> pieces = parts_of(
    "0|1|-1|30|1709210156|99999999999999999999|.5|e9|NaN|;|,|=|\"|\"default\"|;r=|;t=|;q=|;w=|"
    ";pk=:YQ==:|:|?1|@|%\"|\\| |\t|Thu, 29 Feb 2024 12:35:56 GMT|Thursday, 29-Feb-24 12:35:56 GMT|"
    "2024-02-29T12:34:57Z|6m0s|limit=|/|200,2000|0.0055|45:60:120|60:default;error:key|Account,Ip|"
    "\xff|true",
    '|');

std::string_view pick(Random& random, std::span<const std::string_view> from) {
  return from[static_cast<std::size_t>(
      random.between(0, static_cast<std::int64_t>(from.size()) - 1))];
}

std::string noise(Random& random, std::int64_t most) {
  std::string bytes;
  for (std::int64_t i = random.between(0, most); i > 0; --i) {
    bytes += static_cast<char>(random.between(0, 255));
  }
  return bytes;
}

std::string value(Random& random) {
  if (random.one_in(8)) return noise(random, random.one_in(50) ? 6000 : 40);
  std::string made;
  for (std::int64_t i = random.between(0, 8); i > 0; --i) made += pick(random, pieces);
  return made;
}

HeaderLines response(Random& random) {
  HeaderLines lines;
  for (std::int64_t i = random.between(0, random.one_in(100) ? 90 : 8); i > 0; --i) {
    const bool known = !random.one_in(10);
    lines.emplace_back(known ? std::string(pick(random, known_names)) : noise(random, 80),
                       value(random));
  }
  return lines;
}

}  // namespace

TEST_CASE("whatever a server sends, what is made of it is within its bounds") {
  Random random("whatever a server sends, what is made of it is within its bounds");
  CAPTURE(random.repeat());
  std::size_t useful = 0;
  const std::size_t rounds = test::scaled(60'000);
  for (std::size_t round = 0; round < rounds; ++round) {
    const HeaderLines lines = response(random);
    const Span longest{random.between(0, 1'000'000'000'000)};
    const Feedback feedback = parse_lines(lines, {.longest = longest});
    if (!is_sound(feedback, lines.size(), longest)) FAIL("unsound feedback");
    useful += feedback.wait() || !feedback.windows().empty() ? 1U : 0U;
  }
  CHECK(useful > rounds / 40);  // else it was only noise, and tested nothing
}

TEST_CASE("a header that is ignored changes nothing") {
  Random random("a header that is ignored changes nothing");
  CAPTURE(random.repeat());
  std::size_t ignored = 0;
  for (std::size_t round = 0; round < test::scaled(20'000); ++round) {
    HeaderLines lines = response(random);
    if (lines.size() > 8) continue;
    const Feedback before = parse_lines(lines);
    lines.emplace_back(pick(random, known_names), value(random));
    const Feedback after = parse_lines(lines);
    if (after.notes().size() == before.notes().size() || after.notes().back().fate < Fate::empty) {
      continue;
    }
    ++ignored;
    CHECK(after.wait() == before.wait());
    CHECK(after.windows().size() == before.windows().size());
  }
  CHECK(ignored > 0);
}
