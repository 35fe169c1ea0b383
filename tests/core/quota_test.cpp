// Quotas: exact fractions, and messages that say what is allowed. Threading: single-threaded.
#include "sluice/quota.hpp"

#include <concepts>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::refusal;

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

/// How many limiters take it as their limit.
template <class T>
constexpr int limits =
    std::constructible_from<ConcurrencyLimiter, Store&, const char*, T> +
    std::constructible_from<FixedWindow, Store&, const char*, T, Calendar> +
    std::constructible_from<FleetShedder, Store&, const char*, T, std::vector<Tier>>;

/// Every place that takes a count takes T.
template <class T>
constexpr bool counts = CountsPerSecond<T>&& CountsPer<T>&& Bursts<T>&& Costs<T>&& limits<T> == 3;
/// None does.
template <class T>
constexpr bool means_no_count = !CountsPerSecond<T> && !CountsPer<T> && !Bursts<T> && !Costs<T> &&
                                !CountType<T> && limits<T> == 0;
static_assert(counts<std::int8_t> && counts<std::uint8_t> && counts<short> && counts<int> &&
              counts<Word> && counts<std::uint64_t> && counts<long long>);
static_assert(means_no_count<bool> && means_no_count<char> && means_no_count<wchar_t> &&
              means_no_count<char8_t> && means_no_count<char16_t> && means_no_count<char32_t> &&
              means_no_count<float> && means_no_count<double> && means_no_count<long double> &&
              means_no_count<std::string>);

constexpr auto beyond = std::numeric_limits<std::uint64_t>::max();

std::string fault_of(std::string_view text) {
  return refusal([&] { (void)Quota::parse(text); });
}

struct Fraction {
  Quota quota;
  Word refill;
  Word period;
  Word capacity;
  Span full_after;
};

}  // namespace

TEST_CASE("a quota is a reduced fraction of units per microsecond", "[core][quota][C-021]") {
  for (const auto& [quota, refill, period, capacity, full_after] :
       {Fraction{Quota::per_second(100).burst(500), 1, 10'000, 500, 5s},
        {Quota::per(3, 7us), 3, 7, 3, 7us},
        {Quota::per(3, 7us).burst(4), 3, 7, 4, 10us},  // 28/3 rounded up
        {Quota::per_second(300'000), 3, 10, 300'000, 1s},
        {Quota::per_second(999'983), 999'983, 1'000'000, 999'983, 1s},
        {Quota::per(25, 5s), 1, 200'000, 25, 5s}}) {
    INFO(quota);
    CHECK(quota.refill() == refill);
    CHECK(quota.period() == period);
    CHECK(quota.capacity() == capacity);
    CHECK(quota.full_after() == full_after);
  }
  CHECK(Quota::per_minute(60) == Quota::per_second(1).burst(60));
  CHECK(Quota::per_hour(3'600) == Quota::per_second(1).burst(3'600));
  CHECK(Quota::per_day(86'400) == Quota::per_second(1).burst(86'400));
}

TEST_CASE("what cannot be a quota is refused with the value and the allowed range",
          "[core][quota][C-007][C-026][C-078]") {
  CHECK(refusal([] { (void)Quota::per_minute(-7); }) ==
        "per_minute must be 0 or more, got -7 (at most 4503599627370496)");
  CHECK(refusal([] { (void)Quota::per_hour(std::numeric_limits<Word>::min()); }) ==
        "per_hour must be 0 or more, got -9223372036854775808 (at most 4503599627370496)");
  CHECK(refusal([] { (void)Quota::per_day(beyond); }) ==
        "per_day must be 0 to 4503599627370496 (2^52), got 18446744073709551615");
  CHECK(refusal([] { (void)Quota::per_second(word_limit + 1); }) ==
        "per_second must be 0 to 4503599627370496 (2^52), got 4503599627370497");
  const auto says = [](Word count, Span period, const char* part) {
    CHECK(test::names(refusal([&] { (void)Quota::per(count, period); }), part));
  };
  says(1, 0us, "the period must be 1 us to 2^52 us (142 years), got 0 us");
  says(1, -5s, "got -5000000 us");
  says(1, Span::max(), "the period must be");
  says(word_limit, 1us, "not exact within 2^51");
  says(word_limit, 1us, "no room for a burst of 1");
  says(1, Span{word_limit}, "not exact");
  says(word_limit - 2, 3us, "not exact");
}

TEST_CASE("a burst beyond what stays exact is refused, and the largest one is named",
          "[core][quota]") {
  const Quota quota = Quota::per_second(10);
  const Word largest = (Quota::bound - quota.refill()) / quota.period();
  CHECK(quota.burst(largest).capacity() == largest);
  const std::string allowed = "burst must be 1 to 22517998136 at 1 per 100000 us, got ";
  CHECK(refusal([&] { (void)quota.burst(0); }) == allowed + "0");
  CHECK(refusal([&] { (void)quota.burst(-1); }) == allowed + "-1");
  CHECK(refusal([&] { (void)quota.burst(largest + 1); }) == allowed + "22517998137");
  CHECK(refusal([&] { (void)quota.burst(beyond); }) == allowed + "18446744073709551615");
}

TEST_CASE("a quota reads as people write it", "[core][quota]") {
  const std::vector<std::pair<Span, std::vector<std::string>>> units{
      {1us, {"us"}},
      {1ms, {"ms"}},
      {1s, {"s", "sec", "second", "seconds"}},
      {1min, {"m", "min", "minute", "minutes"}},
      {1h, {"h", "hr", "hour", "hours"}},
      {24h, {"d", "day", "days"}},
      {168h, {"week", "weeks"}}};
  for (const auto& unit : units) {
    for (const std::string& name : unit.second) {
      INFO(name);
      CHECK(Quota::parse("7/" + name) == Quota::per(7, unit.first));
      CHECK(Quota::parse("0090/25" + name) == Quota::per(90, 25 * unit.first));
    }
  }
  CHECK(Quota::parse("10/s:3") == Quota::per_second(10).burst(3));
  CHECK(Quota::parse("100/5min:1") == Quota::per(100, 300s).burst(1));
  CHECK(Quota::parse("10/s:10") == Quota::per_second(10));
}

TEST_CASE("a quota is written as people write it", "[core][quota]") {
  for (const char* text : {"10/s", "60/min", "10000/h", "2/day", "70/week", "10/s:3", "100/s:500",
                           "5/s:25", "7/min:3", "3/7us:5", "1/7s:1"}) {
    CHECK(to_string(Quota::parse(text)) == text);
  }
  CHECK(to_string(Quota::per(25, 5s)) == "5/s:25");
  CHECK((std::ostringstream() << Quota::per_second(10).burst(3)).str() == "10/s:3");
}

TEST_CASE("every quota is exact within 2^51, and read back from its text", "[core][quota]") {
  test::Random random("every quota is exact within 2^51, and read back from its text");
  CAPTURE(random.repeat());
  const auto check = [](const Quota& quota) {
    if (Quota::parse(to_string(quota)) != quota) FAIL(quota);
    const auto wide = static_cast<Wide>(quota.capacity()) * quota.period();
    if (wide + quota.refill() > Quota::bound) FAIL("beyond 2^51: " << quota);
    if (std::gcd(quota.refill(), quota.period()) != 1) FAIL("not reduced: " << quota);
  };
  const auto draw = [&] { return static_cast<Word>(random.next() >> (11 + random.below(53))); };
  std::size_t accepted = 0;
  const std::size_t trials = test::scaled(100'000);
  for (std::size_t i = 0; i < trials; ++i) {
    const Word count = draw();
    const Word minutes = 60'000'000 * Word(1 + random.below(1440));
    const Word period = random.one_in(2) ? draw() : minutes;
    const Word burst = draw();
    try {
      const Quota quota = Quota::per(count, Span{period});
      check(quota);
      if (!quota.is_never() &&
          static_cast<Wide>(count) * quota.period() != static_cast<Wide>(period) * quota.refill()) {
        FAIL("another rate than asked for: " << count << "/" << period);
      }
      check(quota.burst(burst));
      if (quota.burst(burst).capacity() != burst) FAIL("another burst than asked for");
      ++accepted;
    } catch (const std::invalid_argument&) {  // counted by what is accepted
    }
  }
  CHECK(accepted > trials / 20);
  CHECK(accepted < trials);
  check(Quota::per(Quota::bound - 1, Span{1}));
  check(Quota::per(1, Span{Quota::bound - 1}));
}

TEST_CASE("what does not read as a quota is refused, and shown", "[core][quota]") {
  std::istringstream texts(
      "\n/\n30\n30/\n/min\n30/fortnight\n30 /min\n30/ min\n 30/min\n30/min \n30/0s\n30/-5s\n"
      "1.5/s\n1e3/s\n+5/s\nnan/s\ninf/s\n0x10/s\n30/min/min\n30/5\n30/MIN\n30min\n30//min\n"
      "30/5 s\n30/5secs\n30/month\nunlimited:5\nnever/s\nNever\nunlimited \n0");
  for (std::string text; std::getline(texts, text);) {
    CHECK(test::names(fault_of(text), "got \"" + text + "\""));
  }
  CHECK(
      test::names(fault_of("10/s:0"), "burst must be 1 to 22517998136 at 1 per 100000 us, got 0"));
}

TEST_CASE("what is wrong in a quota is told with its place, and what is allowed there",
          "[core][quota]") {
  const char* const unit = "a unit (us, ms, s, min, h, day or week)";
  const char* const burst = "a burst, which is a whole number,";
  for (const auto& [text, what, at] : {std::tuple{"", "a whole number", 1},
                                       {"x/s", "a whole number", 1},
                                       {"30", "a slash", 3},
                                       {"1.5/s", "a slash", 2},
                                       {"30/", unit, 4},
                                       {"30/MIN", unit, 4},
                                       {"30/5secs", unit, 5},
                                       {"30/5:9", unit, 5},
                                       {"99999999999999999999/fortnight", unit, 22},
                                       {"30/5s:", burst, 7},
                                       {"30/5s:x", burst, 7},
                                       {"30/5s:9x", "the end", 8},
                                       {"30/5s:9:9", "the end", 8}}) {
    CHECK(fault_of(text) ==
          std::string("a quota is COUNT/PERIOD or COUNT/PERIOD:BURST, such as 30/min, 25/5s or "
                      "10/s:3, or never or unlimited: expected ") +
              what + " at byte " + std::to_string(at) + ", got \"" + text + '"');
  }
}

TEST_CASE("a number in a quota that is too large is told from one that does not read",
          "[core][quota]") {
  const auto out_of_range = [](const char* what, std::initializer_list<const char*> texts) {
    for (const std::string text : texts) {
      CHECK(fault_of(text) == "the " + std::string(what) + ", got \"" + text + '"');
    }
  };
  out_of_range("count of a quota must be 0 to 4503599627370496 (2^52)",
               {"-5/s", "-99999999999999999999/s", "99999999999999999999/s",
                "9223372036854775807/2h", "9223372036854775808/2h"});
  out_of_range("period of a quota must be 1 us to 2^52 us (142 years)",
               {"1/99999999999999999999s", "1/9223372036854775807d", "1/7500weeks", "1/0s"});
  out_of_range("burst of a quota must be 1 to 2251799813685248 (2^51)",
               {"1/s:99999999999999999999"});
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
  CHECK(refusal([] { (void)Quota::never().burst(5); }) == "a quota of never has no burst, got 5");
  CHECK(refusal([] { (void)Quota::unlimited().burst(0); }) ==
        "a quota of unlimited has no burst, got 0");
  CHECK(fault_of("0/s:5") == "a quota of never has no burst, got \"0/s:5\"");
}

TEST_CASE("a bad quota is shown on one line, of which no terminal takes orders", "[core][quota]") {
  const auto shown = [](std::string_view text) {
    const std::string message = fault_of(text);
    return message.substr(message.find(", got ") + 6);
  };
  CHECK(shown(std::string_view("30/min\0", 7)) == R"("30/min\x00")");
  CHECK(shown("\x1b[31m\n\x7f\xc3\xa9~ ") == R"("\x1b[31m\x0a\x7f\xc3\xa9~ ")");
  CHECK(shown(std::string(64, 'x')) == '"' + std::string(64, 'x') + '"');
  CHECK(shown(std::string(65, 'x')) == '"' + std::string(64, 'x') + "...\"");
  CHECK(shown(std::string(1'000'000, 'x')).size() == 69);
}

TEST_CASE("a cost beyond the integers of a rule is not a cost", "[core][quota][C-024]") {
  CHECK(Cost(5).value() == 5);
  constexpr Word most = std::numeric_limits<Word>::max();
  CHECK(Cost(beyond).value() == most);
  CHECK(Cost(std::uint64_t{1} << 63).value() == most);
  CHECK(Cost(most).value() == most);
  CHECK(Cost(-1).value() == -1);
  CHECK(Cost(std::int8_t{-1}).value() == -1);
}
