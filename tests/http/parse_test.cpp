// What is made of a response as a whole.
#include "sluice/http/parse.hpp"

#include <array>
#include <list>
#include <string>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

namespace {

/// As the fields of Boost.Beast.
struct LibraryField {
  [[nodiscard]] std::string_view name_string() const { return "retry-after"; }
  [[nodiscard]] std::string_view value() const { return "30"; }
};

}  // namespace

TEST_CASE("headers are taken as any HTTP library gives them") {
  const std::array<Header, 2> structs{{{"Content-Length", "0"}, {"Retry-After", "30"}}};
  CHECK(parse_feedback(structs, test_now).retry_after == 30s);
  const std::list<std::pair<std::string_view, std::string>> pairs{{"Retry-After", "30"}};
  CHECK(parse_feedback(pairs, test_now).retry_after == 30s);
  CHECK(parse_feedback(std::array<LibraryField, 1>{}, test_now).retry_after == 30s);
}

TEST_CASE("a response that says nothing asks for nothing") {
  const Feedback feedback = parse_lines({{"Content-Type", "text/plain"}, {"Date", "today"}});
  CHECK(feedback.at == test_now);
  CHECK_FALSE(feedback.retry_after);
  CHECK(feedback.windows().empty());
  CHECK(feedback.notes().empty());
  CHECK_FALSE(feedback.wait());
  CHECK_FALSE(feedback.retry_at());
  CHECK(feedback.made == test_now);
  CHECK(feedback.find("") == nullptr);
}

TEST_CASE("Retry-After goes before the resets, and only exhausted windows ask for a wait") {
  const HeaderLines windows{{"RateLimit", R"("a";r=0;t=9, "b";r=0;t=7, "c";r=1;t=50)"}};
  CHECK(parse_lines(windows).wait() == 9s);
  CHECK(parse_lines(windows).retry_at() == test_now + 9s);
  HeaderLines both = windows;
  both.emplace_back("Retry-After", "2");
  CHECK(parse_lines(both).wait() == 2s);
}

TEST_CASE("each header about a limit is noted by its place, with what was done with it") {
  const Feedback feedback = parse_lines({{"Content-Type", "x"},
                                         {"Retry-After", "soon"},
                                         {"X-RateLimit-Remaining", "-1"},
                                         {"X-RateLimit-Limit", ""},
                                         {"X-RateLimit-Weather", "fine"},
                                         {"X-RateLimit-Reset", "1"},
                                         {"X-RateLimit-Reset", "3"},
                                         {"X-RateLimit-Reset", "2"},
                                         {"RateLimit", R"("a";r=1, "b", "c";r=2)"}});
  const std::vector<Note> expected{{1, Fate::malformed},  {2, Fate::negative}, {3, Fate::empty},
                                   {4, Fate::unknown},    {5, Fate::used},     {6, Fate::used},
                                   {7, Fate::superseded}, {8, Fate::partly}};
  CHECK(std::vector<Note>(feedback.notes().begin(), feedback.notes().end()) == expected);
  REQUIRE(feedback.find("") != nullptr);
  CHECK(feedback.find("")->reset == 3s);
}

TEST_CASE("instants are measured from the server's Date, lengths of time are not") {
  const std::string ten_behind = "Thu, 29 Feb 2024 12:34:46 GMT";
  const HeaderLines instant{{"Retry-After", "Thu, 29 Feb 2024 12:35:46 GMT"}, {"Date", ten_behind}};
  CHECK(parse_lines(instant).retry_after == 60s);
  CHECK(parse_lines(instant, {.correct_by_date = false}).retry_after == 50s);
  CHECK(parse_lines({{"Date", ten_behind}, {"Retry-After", "30"}}).retry_after == 30s);
  CHECK(
      parse_lines({{"Date", ten_behind}, {"X-RateLimit-Reset", "1709210146"}}).windows()[0].reset ==
      60s);
  CHECK(
      parse_lines({{"Date", "nonsense"}, {"X-RateLimit-Reset", "1709210146"}}).windows()[0].reset ==
      50s);
}

TEST_CASE("counts of a response from a cache are old, and not taken; its Retry-After is") {
  const Feedback feedback = parse_lines({{"Age", "5"},
                                         {"RateLimit", R"("a";r=0;t=7)"},
                                         {"X-RateLimit-Remaining", "0"},
                                         {"Retry-After", "3"}});
  CHECK(feedback.windows().empty());
  CHECK(feedback.notes()[1].fate == Fate::cached);
  CHECK(feedback.retry_after == 3s);
  // Its Date is old as well, and says nothing about the server's clock.
  CHECK(parse_lines({{"Age", "10"},
                     {"Date", "Thu, 29 Feb 2024 12:34:46 GMT"},
                     {"Retry-After", "Thu, 29 Feb 2024 12:35:46 GMT"}})
            .retry_after == 50s);
  CHECK(parse_lines({{"Age", "0"}, {"RateLimit", R"("a";r=0;t=7)"}}).windows().size() == 1);
}

TEST_CASE("no wait and no reset is longer than the options allow") {
  const HeaderLines lines{{"Retry-After", "100"}, {"RateLimit", R"("a";r=0;t=999999999999999)"}};
  const Feedback feedback = parse_lines(lines, {.longest = 10s});
  CHECK(feedback.retry_after == 10s);
  CHECK(feedback.windows()[0].reset == 10s);
  CHECK(feedback.notes()[0].fate == Fate::clamped);
  CHECK(feedback.notes()[1].fate == Fate::clamped);
  CHECK(parse_lines(lines, {.longest = -1s}).retry_after == 0s);
  CHECK(parse_lines(lines, {.longest = Span::max()}).retry_after == 100s);
}

TEST_CASE("of counts that are told twice the smaller one counts") {
  const Feedback feedback = parse_lines({{"X-RateLimit-Remaining", "5"},
                                         {"X-RateLimit-Remaining", "3"},
                                         {"X-RateLimit-Remaining", "4"},
                                         {"X-RateLimit-Limit", "9, 7"}});
  REQUIRE(feedback.windows().size() == 1);
  CHECK(feedback.windows()[0].remaining == 3);
  CHECK(feedback.windows()[0].limit == 7);
  CHECK(feedback.notes()[2].fate == Fate::superseded);
}
