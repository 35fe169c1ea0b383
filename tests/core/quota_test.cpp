// Quotas: exact fractions, and messages that say what is allowed. Threading: single-threaded.
#include "sluice/quota.hpp"

#include <array>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sluice/rules/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

__extension__ typedef __int128 Wide;

template <class T>
concept CountsPerSecond = requires(T value) {
  Quota::per_second(value);
};
template <class T>
concept CountsPer = requires(T value) {
  Quota::per(value, Span{1});
};
template <class T>
concept Bursts = requires(Quota quota, T value) {
  quota.burst(value);
};
template <class T>
concept Costs = std::constructible_from<Cost, T>;

static_assert(CountsPerSecond<int> && CountsPer<unsigned long> && Bursts<short> && Costs<Word>);
static_assert(!CountsPerSecond<double> && !CountsPer<float> && !Bursts<long double> &&
              !Costs<double> && !CountsPerSecond<std::string>);

/// Every place that takes a count takes T.
template <class T>
constexpr bool counts = CountsPerSecond<T>&& CountsPer<T>&& Bursts<T>&& Costs<T>;
/// None does.
template <class T>
constexpr bool means_no_count =
    !CountsPerSecond<T> && !CountsPer<T> && !Bursts<T> && !Costs<T> && !CountType<T>;
static_assert(counts<std::int8_t> && counts<std::uint8_t> && counts<std::uint64_t> &&
              counts<long long>);
static_assert(means_no_count<bool> && means_no_count<char> && means_no_count<wchar_t> &&
              means_no_count<char8_t> && means_no_count<char16_t> && means_no_count<char32_t> &&
              means_no_count<float>);

struct Parsed {
  const char* text;
  Word count;
  Span period;
};

/// The message of what `make` throws.
template <class Make>
std::string message_of(Make make) {
  try {
    make();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// What of `parts` does not stand in `text`, with the text.
std::string lacks(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) return '"' + part + "\" does not stand in " + text;
  }
  return {};
}

}  // namespace

TEST_CASE("a quota is a reduced fraction of units per microsecond", "[core][quota][C-021]") {
  const Quota quota = Quota::per_second(100).burst(500);
  CHECK(quota.capacity() == 500);
  CHECK(quota.refill() == 1);
  CHECK(quota.period() == 10'000);
  CHECK(quota.full_after() == 5s);
  const Quota thirds = Quota::per(3, 7us);
  CHECK(thirds.refill() == 3);
  CHECK(thirds.period() == 7);
  CHECK(thirds.capacity() == 3);
  CHECK(thirds.full_after() == 7us);
  CHECK(thirds.burst(4).full_after() == 10us);  // 28/3 rounded up
  CHECK(Quota::per_minute(60) == Quota::per_second(1).burst(60));
  CHECK(Quota::per_hour(3'600) == Quota::per_second(1).burst(3'600));
  CHECK(Quota::per_day(86'400) == Quota::per_second(1).burst(86'400));
  CHECK(Quota::per(25, 5s).capacity() == 25);
}

TEST_CASE("a rate that a whole number of microseconds cannot express stays exact",
          "[core][quota]") {
  const Quota quota = Quota::per_second(300'000);
  CHECK(quota.refill() == 3);
  CHECK(quota.period() == 10);
  const Quota odd = Quota::per_second(999'983);
  CHECK(odd.refill() == 999'983);
  CHECK(odd.period() == 1'000'000);
}

TEST_CASE("what cannot be a quota is refused with the value and the allowed range",
          "[core][quota][C-007][C-026][C-078]") {
  constexpr auto beyond = std::numeric_limits<std::uint64_t>::max();
  CHECK(message_of([] { (void)Quota::per_minute(-7); }) ==
        "per_minute must be 0 or more, got -7 (at most 4503599627370496)");
  CHECK(message_of([] { (void)Quota::per_hour(-1); }) ==
        "per_hour must be 0 or more, got -1 (at most 4503599627370496)");
  CHECK(message_of([] { (void)Quota::per_second(std::numeric_limits<Word>::min()); }) ==
        "per_second must be 0 or more, got -9223372036854775808 (at most 4503599627370496)");
  CHECK(message_of([] { (void)Quota::per_day(beyond); }) ==
        "per_day must be 0 to 4503599627370496 (2^52), got 18446744073709551615");
  CHECK(message_of([] { (void)Quota::per_second(word_limit + 1); }) ==
        "per_second must be 0 to 4503599627370496 (2^52), got 4503599627370497");
  CHECK(lacks(message_of([] { (void)Quota::per(1, 0us); }),
              {"the period must be 1 us to 2^52 us", "got 0 us"}) == "");
  CHECK(lacks(message_of([] { (void)Quota::per(1, -5s); }), {"got -5000000 us"}) == "");
  CHECK(lacks(message_of([] { (void)Quota::per(1, Span::max()); }), {"the period must be"}) == "");
  CHECK(lacks(message_of([] { (void)Quota::per(word_limit, Span{1}); }),
              {"not exact within 2^51", "no room for a burst of 1"}) == "");
  CHECK(lacks(message_of([] { (void)Quota::per(1, Span{word_limit}); }), {"not exact"}) == "");
  CHECK(lacks(message_of([] { (void)Quota::per(word_limit - 2, Span{3}); }), {"not exact"}) == "");
}

TEST_CASE("a burst beyond what stays exact is refused, and the largest one is named",
          "[core][quota]") {
  const Quota quota = Quota::per_second(10);
  CHECK(lacks(message_of([&] { (void)quota.burst(0); }), {"burst must be 1 to ", "got 0"}) == "");
  CHECK(message_of([&] { (void)quota.burst(-1); }) ==
        "burst must be 1 to 22517998136 at 1 per 100000 us, got -1");
  CHECK(message_of([&] { (void)quota.burst(std::numeric_limits<std::uint64_t>::max()); }) ==
        "burst must be 1 to 22517998136 at 1 per 100000 us, got 18446744073709551615");
  const Word largest = (Quota::bound - quota.refill()) / quota.period();
  CHECK(quota.burst(largest).capacity() == largest);
  CHECK(lacks(message_of([&] { (void)quota.burst(largest + 1); }),
              {"burst must be 1 to " + std::to_string(largest)}) == "");
  CHECK_THROWS_AS(quota.burst(word_limit), std::invalid_argument);
}

TEST_CASE("a quota reads as people write it", "[core][quota]") {
  const Parsed table[] = {
      {"30/min", 30, 60s},
      {"25/5s", 25, 5s},
      {"10000/h", 10'000, 3'600s},
      {"1/us", 1, 1us},
      {"5/ms", 5, 1ms},
      {"7/s", 7, 1s},
      {"7/sec", 7, 1s},
      {"7/second", 7, 1s},
      {"7/minute", 7, 60s},
      {"7/hour", 7, 3'600s},
      {"7/d", 7, 86'400s},
      {"7/day", 7, 86'400s},
      {"7/m", 7, 60s},
      {"7/hr", 7, 3'600s},
      {"7/week", 7, 604'800s},
      {"1000/10min", 1'000, 600s},
      {"90/2seconds", 90, 2s},
      {"90/2minutes", 90, 120s},
      {"90/2hours", 90, 7'200s},
      {"90/2days", 90, 172'800s},
      {"90/2weeks", 90, 1'209'600s},
      {"0030/min", 30, 60s},
  };
  for (const Parsed& row : table) {
    INFO(row.text);
    CHECK(Quota::parse(row.text) == Quota::per(row.count, row.period));
  }
}

TEST_CASE("a burst stands behind a colon", "[core][quota]") {
  CHECK(Quota::parse("10/s:3") == Quota::per_second(10).burst(3));
  CHECK(Quota::parse("100/5min:1") == Quota::per(100, 300s).burst(1));
  CHECK(Quota::parse("10/s:10") == Quota::per_second(10));
}

TEST_CASE("a quota is written as people write it", "[core][quota]") {
  CHECK(to_string(Quota::per_second(10)) == "10/s");
  CHECK(to_string(Quota::per_minute(60)) == "60/min");
  CHECK(to_string(Quota::per_hour(10'000)) == "10000/h");
  CHECK(to_string(Quota::per_day(2)) == "2/day");
  CHECK(to_string(Quota::per(70, 168h)) == "70/week");
  CHECK(to_string(Quota::per_second(10).burst(3)) == "10/s:3");
  CHECK(to_string(Quota::per_second(100).burst(500)) == "100/s:500");
  CHECK(to_string(Quota::per(25, 5s)) == "5/s:25");
  CHECK(to_string(Quota::per_minute(7).burst(3)) == "7/min:3");
  CHECK(to_string(Quota::per(3, 7us).burst(5)) == "3/7us:5");
  CHECK(to_string(Quota::per(1, 7s)) == "1/7s:1");
  CHECK((std::ostringstream() << Quota::per_second(10).burst(3)).str() == "10/s:3");
}

TEST_CASE("every quota is read back from its text", "[core][quota]") {
  test::Random random("every quota is read back from its text");
  CAPTURE(random.repeat());
  constexpr std::array<Word, 6> units{1,          1'000,         1'000'000,
                                      60'000'000, 3'600'000'000, 86'400'000'000};
  std::size_t accepted = 0;
  const auto same = [&](const Quota& quota) {
    ++accepted;
    const std::string text = to_string(quota);
    if (Quota::parse(text) != quota) FAIL(text);
  };
  for (std::size_t i = 0; i < test::scaled(100'000); ++i) {
    const auto draw = [&] { return static_cast<Word>(random.next() >> (11 + random.below(53))); };
    const Word count = draw();
    const Word odd = draw();
    const Word even = units[random.below(units.size())] * Word(1 + random.below(60));
    try {
      const Quota quota = Quota::per(count, Span{random.one_in(2) ? odd : even});
      same(quota);
      same(quota.burst(draw()));
    } catch (const std::invalid_argument&) {  // counted by what is accepted
    }
  }
  CHECK(accepted > test::scaled(100'000) / 20);
  same(Quota::per(Quota::bound - 1, Span{1}));
  same(Quota::per(1, Span{Quota::bound - 1}));
}

TEST_CASE("what does not read as a quota is refused, and shown", "[core][quota]") {
  for (const char* text : {"",
                           "/",
                           "30",
                           "30/",
                           "/min",
                           "30/fortnight",
                           "30 /min",
                           "30/ min",
                           " 30/min",
                           "30/min ",
                           "30/0s",
                           "30/-5s",
                           "1.5/s",
                           "1e3/s",
                           "+5/s",
                           "nan/s",
                           "inf/s",
                           "0x10/s",
                           "30/min/min",
                           "30/5",
                           "99999999999999999999/s",
                           "1/99999999999999999999s",
                           "1/9223372036854775807d",
                           "30/MIN",
                           "30min",
                           "30//min",
                           "30/5 s",
                           "30/5secs",
                           "30/month"}) {
    INFO('"' << text << '"');
    CHECK(lacks(message_of([&] { (void)Quota::parse(text); }),
                {"got \"" + std::string(text) + "\""}) == "");
  }
  CHECK(lacks(message_of([] { (void)Quota::parse("10/s:0"); }), {"burst must be 1 to", "got 0"}) ==
        "");
}

TEST_CASE("what is wrong in a quota is told with its place, and what is allowed there",
          "[core][quota]") {
  const auto message = [](std::string_view text) {
    return message_of([&] { (void)Quota::parse(text); });
  };
  const auto expected = [](const char* what, const char* at, const char* text) {
    return std::string(
               "a quota is COUNT/PERIOD or COUNT/PERIOD:BURST, such as 30/min, 25/5s or "
               "10/s:3, or never or unlimited: expected ") +
           what + " at byte " + at + ", got \"" + text + '"';
  };
  const char* const unit = "a unit (us, ms, s, min, h, day or week)";
  CHECK(message("") == expected("a whole number", "1", ""));
  CHECK(message("x/s") == expected("a whole number", "1", "x/s"));
  CHECK(message("30") == expected("a slash", "3", "30"));
  CHECK(message("1.5/s") == expected("a slash", "2", "1.5/s"));
  CHECK(message("30/") == expected(unit, "4", "30/"));
  CHECK(message("30/MIN") == expected(unit, "4", "30/MIN"));
  CHECK(message("30/5secs") == expected(unit, "5", "30/5secs"));
  CHECK(message("30/5:9") == expected(unit, "5", "30/5:9"));
  CHECK(message("30/5s:") == expected("a burst, which is a whole number,", "7", "30/5s:"));
  CHECK(message("30/5s:x") == expected("a burst, which is a whole number,", "7", "30/5s:x"));
  CHECK(message("30/5s:9x") == expected("the end", "8", "30/5s:9x"));
  CHECK(message("30/5s:9:9") == expected("the end", "8", "30/5s:9:9"));
  CHECK(message("1/s:99999999999999999999") ==
        "the burst of a quota must be 1 to 2251799813685248 (2^51), got "
        "\"1/s:99999999999999999999\"");
  for (const char* text : {"-5/s", "-99999999999999999999/s", "9223372036854775807/2h"}) {
    CHECK(message(text) == "the count of a quota must be 0 to 4503599627370496 (2^52), got \"" +
                               std::string(text) + '"');
  }
}

TEST_CASE("never and unlimited are quotas, without a period and a burst", "[core][quota]") {
  for (const Quota& never : {Quota::never(), Quota::per_second(0), Quota::per(0, 7us),
                             Quota::parse("0/s"), Quota::parse("0/7min"), Quota::parse("never")}) {
    CHECK(never == Quota::never());
    CHECK(never.is_never());
    CHECK_FALSE(never.is_unlimited());
    CHECK(never.capacity() == 0);
    CHECK(to_string(never) == "never");
  }
  const Quota all = Quota::parse("unlimited");
  CHECK(all == Quota::unlimited());
  CHECK(all.is_unlimited());
  CHECK_FALSE(all.is_never());
  CHECK(all.capacity() == unlimited);
  CHECK(to_string(all) == "unlimited");
  CHECK_FALSE(Quota::per_second(1).is_never());
  CHECK_FALSE(Quota::per_second(1).is_unlimited());
  CHECK(message_of([] { (void)Quota::never().burst(5); }) ==
        "a quota of never has no burst, got 5");
  CHECK(message_of([] { (void)Quota::unlimited().burst(0); }) ==
        "a quota of unlimited has no burst, got 0");
  CHECK(message_of([] { (void)Quota::parse("0/s:5"); }) ==
        "a quota of never has no burst, got \"0/s:5\"");
  for (const char* text : {"unlimited:5", "never/s", "Never", "unlimited ", "0"}) {
    CHECK_THROWS_AS(Quota::parse(text), std::invalid_argument);
  }
}

TEST_CASE("a number in a quota that is too large is told from one that does not read",
          "[core][quota]") {
  const auto message = [](const char* text) {
    return message_of([&] { (void)Quota::parse(text); });
  };
  CHECK(message("99999999999999999999/s") ==
        "the count of a quota must be 0 to 4503599627370496 (2^52), got "
        "\"99999999999999999999/s\"");
  CHECK(message("9223372036854775808/2h") ==
        "the count of a quota must be 0 to 4503599627370496 (2^52), got "
        "\"9223372036854775808/2h\"");
  for (const char* text :
       {"1/99999999999999999999s", "1/9223372036854775807d", "1/7500weeks", "1/0s"}) {
    CHECK(message(text) == "the period of a quota must be 1 us to 2^52 us (142 years), got \"" +
                               std::string(text) + "\"");
  }
  CHECK(lacks(message("99999999999999999999/fortnight"), {"a quota is COUNT/PERIOD"}) == "");
}

TEST_CASE("a bad quota is shown on one line, of which no terminal takes orders", "[core][quota]") {
  const auto shown = [](std::string_view text) {
    const std::string message = message_of([&] { (void)Quota::parse(text); });
    return message.substr(message.find(", got ") + 6);
  };
  CHECK(shown(std::string_view("30/min\0", 7)) == R"("30/min\x00")");
  CHECK(shown("\x1b[31m\n\x7f\xc3\xa9~ ") == R"("\x1b[31m\x0a\x7f\xc3\xa9~ ")");
  CHECK(shown(std::string(64, 'x')) == '"' + std::string(64, 'x') + '"');
  CHECK(shown(std::string(65, 'x')) == '"' + std::string(64, 'x') + "...\"");
  CHECK(shown(std::string(1'000'000, 'x')).size() == 69);
}

TEST_CASE("any quota that is accepted keeps every product of its rule within 2^51",
          "[core][quota]") {
  test::Random random("any quota that is accepted keeps every product of its rule within 2^51");
  CAPTURE(random.repeat());
  std::size_t accepted = 0;
  const std::size_t trials = test::scaled(100'000);
  for (std::size_t i = 0; i < trials; ++i) {
    const auto draw = [&] { return static_cast<Word>(random.next() >> (11 + random.below(53))); };
    const Word count = draw();
    const Word period = draw();
    const Word burst = draw();
    try {
      const Quota quota = Quota::per(count, Span{period}).burst(burst);
      ++accepted;
      const auto wide = static_cast<Wide>(quota.capacity()) * quota.period();
      if (wide + quota.refill() > Quota::bound) FAIL(count << "/" << period << " burst " << burst);
      if (quota.capacity() != burst) FAIL("another burst than asked for");
      if (static_cast<Wide>(count) * quota.period() != static_cast<Wide>(period) * quota.refill()) {
        FAIL("another rate than asked for: " << count << "/" << period);
      }
      if (std::gcd(quota.refill(), quota.period()) != 1) FAIL("not reduced");
    } catch (const std::invalid_argument&) {  // counted by what is accepted
    }
  }
  CHECK(accepted > trials / 20);
  CHECK(accepted < trials);
}

TEST_CASE("a cost beyond the integers of a rule is not a cost", "[core][quota][C-024]") {
  CHECK(Cost(5).value() == 5);
  constexpr Word most = std::numeric_limits<Word>::max();
  CHECK(Cost(std::numeric_limits<std::uint64_t>::max()).value() == most);
  CHECK(Cost(std::uint64_t{1} << 63).value() == most);
  CHECK(Cost(most).value() == most);
  CHECK(Cost(-1).value() == -1);
  CHECK(Cost(std::int8_t{-1}).value() == -1);
}
