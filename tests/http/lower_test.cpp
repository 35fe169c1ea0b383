// http::lower(): which count of a server a limiter takes on, by the response's own time.
#include <sluice/http.hpp>
#include <sluice/sluice.hpp>

#include <string>

#include "sluice/extend/store_wrapper.hpp"
#include "tests/catch.hpp"
#include "tests/http/parse.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using http::Feedback;
using http::HeaderLines;
using http::ParseOptions;
using http::Window;

namespace {

/// A limit of 6,000 a minute, in a minute that begins at `start`, 2024-02-29 12:34:00.
struct Minute {
  VirtualClock clock{http::test_now - 56s};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  Time start = clock.now();
  FixedWindow window{*store, "fixed", 6000, Calendar::every(1min)};
  SlidingWindow sliding{*store, "sliding", {{6000, 1min}, {600, 1s}}};
  SlidingWindowCounter counter{*store, "counter", {6000, 1min}};
  TokenBucket bucket{*store, "bucket", Quota::per_minute(6000)};

  void move_to(Span time) { clock.set(start + time); }
  [[nodiscard]] Feedback hear(const HeaderLines& lines, const ParseOptions& options = {}) const {
    return http::parse_feedback(lines, clock.now(), options);
  }
  template <class Limiter>
  Word left_after(const Limiter& limiter, const Feedback& feedback) {
    return http::lower(limiter, "a", feedback, feedback.find("")).remaining;
  }
};

const std::pair<std::string, std::string> hundred_left{"X-RateLimit-Remaining", "100"};
const std::pair<std::string, std::string> at_59{"Date", "Thu, 29 Feb 2024 12:34:59 GMT"};
const std::pair<std::string, std::string> at_60{"Date", "Thu, 29 Feb 2024 12:35:00 GMT"};

}  // namespace

TEST_CASE("a count of the last window does not empty this one", "[lower]") {
  // 5,900 were used at 59.9 s, and the answer is heard at 60.1 s.
  const std::string end = std::to_string(1'709'210'100);
  const auto left = [](const HeaderLines& lines, std::optional<Span> sent = {}) {
    Minute it;
    it.move_to(60'100ms);
    ParseOptions options;
    if (sent) options.sent = it.start + *sent;
    return it.left_after(it.window, it.hear(lines, options));
  };
  CHECK(left({hundred_left, at_59}) == 6000);
  CHECK(left({hundred_left}, 59'900ms) == 6000);
  CHECK(left({hundred_left, {"X-RateLimit-Reset", "0"}}) == 6000);
  CHECK(left({hundred_left, {"X-RateLimit-Reset", "1"}}) == 6000);
  CHECK(left({hundred_left, {"X-RateLimit-Reset", end}}) == 6000);
  CHECK(left({hundred_left, {"X-RateLimit-Reset", end}, at_59}) == 6000);
  CHECK(left({{"X-RateLimit-Limit", "6000"}, {"X-RateLimit-Used", "5900"}, at_59}) == 6000);
  CHECK(left({{"X-MBX-USED-WEIGHT", "5900"}, at_59}) == 6000);
  // The same counts of this window are taken.
  CHECK(left({hundred_left}) == 100);
  CHECK(left({hundred_left, at_60}) == 100);
  CHECK(left({hundred_left}, 60s) == 100);
  CHECK(left({hundred_left}, 60s - 1us) == 6000);
  CHECK(left({hundred_left, at_59}, 60'050ms) == 100);  // clocks differ
  CHECK(left({hundred_left, {"X-RateLimit-Reset", "60"}}) == 100);
  CHECK(left({hundred_left, {"X-RateLimit-Reset", std::to_string(1'709'210'160)}}) == 100);
  CHECK(left({{"X-MBX-USED-WEIGHT", "5900"}, at_60}) == 100);
}

TEST_CASE("a server whose windows end elsewhere is believed for half a window", "[lower]") {
  const auto left = [](const char* reset) {
    Minute it;
    it.move_to(10s);
    return it.left_after(it.window, it.hear({hundred_left, {"X-RateLimit-Reset", reset}}));
  };
  CHECK(left("20") == 6000);
  CHECK(left("20.000001") == 100);
  CHECK(left("600") == 100);
}

TEST_CASE("other limiters take a count until its reset, or for as long as they remember",
          "[lower]") {
  const auto left = [](auto limiter, const HeaderLines& lines, Span passed) {
    Minute it;
    it.move_to(30s);
    const Feedback feedback = it.hear(lines);
    it.clock.advance(passed);
    return it.left_after(it.*limiter, feedback);
  };
  CHECK(left(&Minute::sliding, {hundred_left}, 1min - 1us) == 100);
  CHECK(left(&Minute::sliding, {hundred_left}, 1min) == 600);
  CHECK(left(&Minute::counter, {hundred_left}, 1min - 1us) == 100);
  CHECK(left(&Minute::counter, {hundred_left}, 1min) == 6000);
  CHECK(left(&Minute::bucket, {hundred_left}, 1min - 1us) == 100);
  CHECK(left(&Minute::bucket, {hundred_left}, 1min) == 6000);
  const HeaderLines resets{hundred_left, {"X-RateLimit-Reset", "7"}};
  CHECK(left(&Minute::bucket, resets, 7s - 1us) == 100);
  CHECK(left(&Minute::bucket, resets, 7s) == 6000);
  CHECK(left(&Minute::sliding, resets, 7s - 1us) == 100);
  CHECK(left(&Minute::sliding, resets, 7s) == 600);
}

TEST_CASE("a limiter is lowered to what the server says is left, and never raised", "[lower]") {
  Minute it;
  const auto check = [&](const auto& limiter, Word most) {
    const auto left = [&](Word remaining) {
      Feedback feedback = it.hear({});
      const Window window{.remaining = remaining};
      return http::lower(limiter, "a", feedback, &window).remaining;
    };
    CHECK(left(most + 1) == most);
    CHECK(left(3) == 3);
    CHECK(left(8) == 3);
    CHECK(left(-1) == 0);
    CHECK(limiter.peek("a").remaining == 0);
  };
  check(it.window, 6000);
  check(it.sliding, 600);
  check(it.counter, 6000);
  check(it.bucket, 6000);
  it.clock.advance(10ms);
  CHECK(it.bucket.peek("a").remaining == 1);  // it made no debt
}

TEST_CASE("of used units the limiter's own limit tells what is left", "[lower]") {
  Minute it;
  const auto left = [&](Word used) {
    const Window window{.used = used};
    return http::lower(it.window, "a", it.hear({}), &window).remaining;
  };
  CHECK(left(-5) == 6000);
  CHECK(left(5) == 5995);
  CHECK(left(7000) == 0);
}

TEST_CASE("without a count nobody is asked", "[lower]") {
  Minute it;
  const Feedback feedback = it.hear({{"X-RateLimit-Limit", "10"}, {"X-RateLimit-Reset", "1"}});
  CHECK(http::lower(it.window, "a", feedback, feedback.find("")) == Decision{.allowed = true});
  CHECK(http::lower(it.window, "a", feedback, feedback.find("none")) == Decision{.allowed = true});
}

TEST_CASE("what is spent in a window that begins meanwhile goes back", "[lower]") {
  // Between the question and the spending the window ends.
  class Late final : public StoreWrapper {
   public:
    Late(Store& behind, VirtualClock& time) : StoreWrapper(behind), time_(time) {}
    void execute(const Plan& plan, Completion done) noexcept override {
      if (++calls == 2) time_.advance(1s);
      StoreWrapper::execute(plan, std::move(done));
    }
    int calls = 0;

   private:
    VirtualClock& time_;
  };
  Minute it;
  it.move_to(59'500ms);
  Late late(*it.store, it.clock);
  const FixedWindow window(late, "fixed", 6000, Calendar::every(1min));
  const Feedback feedback = it.hear({hundred_left});
  CHECK(http::lower(window, "a", feedback, feedback.find("")).remaining == 6000);
  CHECK(late.calls == 4);
  CHECK(window.peek("a").remaining == 6000);
}

TEST_CASE("the time of a response is its Date, within sending and hearing", "[lower]") {
  Minute it;
  it.move_to(60'100ms);
  const auto made = [&](const HeaderLines& lines, std::optional<Span> sent = {}) {
    ParseOptions options;
    if (sent) options.sent = it.start + *sent;
    return it.hear(lines, options).made - it.start;
  };
  CHECK(made({}) == 60'100ms);
  CHECK(made({at_59}) == 59s);
  CHECK(made({at_60}) == 60s);
  CHECK(made({{"Date", "Thu, 29 Feb 2024 13:35:00 GMT"}}) == 60'100ms);  // ahead of our clock
  CHECK(made({{"Date", "Thu, 29 Feb 2024 11:35:00 GMT"}}, 60s) == 60s);  // behind it
  CHECK(made({{"Date", "soon"}}, 59s) == 59s);
  CHECK(made({at_59, {"Age", "5"}}) == 60'100ms);
  CHECK(made({at_60}, 70s) == 60'100ms);
  ParseOptions without{.correct_by_date = false};
  CHECK(it.hear({at_59}, without).made - it.start == 60'100ms);
  for (const Time sent : {Time::min(), Time::max()}) {
    const Feedback feedback = it.hear({}, {.sent = sent});
    CHECK(feedback.made >= Time{});
    CHECK(feedback.made <= feedback.at);
  }
}

TEST_CASE("a window is never lowered by a count of another one", "[lower]") {
  test::Random random("a window is never lowered by a count of another one");
  CAPTURE(random.repeat());
  std::size_t taken = 0;
  std::size_t late = 0;
  for (std::size_t round = 0; round < test::scaled(5'000); ++round) {
    Minute it;
    // An aligned server answers between the request and its hearing, with a Date or without, and
    // rounds its reset up or down.
    const Span sent{random.between(0, 120'000'000)};
    const Span made = sent + Span{random.between(0, 2'000'000)};
    const Span heard = made + Span{random.between(0, 2'000'000)};
    const Span left = 1min - made % 1min;
    HeaderLines lines{hundred_left};
    const bool dated = random.one_in(2);
    const Word seconds = left / 1s + (random.one_in(2) && left % 1s != 0s ? 1 : 0);
    if (dated) {
      const Word second = (made / 1s) % 60;
      const std::string minute = std::to_string(34 + made / 1min);
      lines.emplace_back("Date", "Thu, 29 Feb 2024 12:" + minute + ":" + (second < 10 ? "0" : "") +
                                     std::to_string(second) + " GMT");
    }
    const bool resets = !dated || random.one_in(2);
    if (resets) lines.emplace_back("X-RateLimit-Reset", std::to_string(seconds));
    it.move_to(heard);
    ParseOptions options;
    if (random.one_in(2)) options.sent = it.start + sent;
    CAPTURE(sent.count(), made.count(), heard.count(), dated, resets);
    const Word remaining = it.left_after(it.window, it.hear(lines, options));
    if (made / 1min != heard / 1min) {
      ++late;
      CHECK(remaining == 6000);
    } else if (sent / 1min == heard / 1min) {
      ++taken;
      CHECK(remaining == 100);
    }
  }
  CHECK(late > 0);
  CHECK(taken > 0);
}

TEST_CASE("a learned rate takes what headers say, unless they contradict themselves", "[lower]") {
  Minute it;
  it.move_to(10s);
  const LearnedRate rate(*it.store, "learned", {.initial = Quota::per_second(50)});
  const auto hear = [&](const HeaderLines& lines) {
    const Feedback feedback = it.hear(lines);
    const auto windows = feedback.windows();
    return http::lower(rate, "a", feedback, windows.empty() ? nullptr : &windows.front());
  };
  CHECK(hear({}).allowed);
  CHECK(rate.learned("a").rate == 50'000'000);
  CHECK(hear(
      {{"X-RateLimit-Limit", "10"}, {"X-RateLimit-Remaining", "11"}, {"X-RateLimit-Reset", "30"}}));
  CHECK(hear({{"RateLimit-Policy", "\"default\";q=600;w=0"}}));
  CHECK(rate.peek("a").remaining == 5);  // nothing was told
  it.move_to(12s);
  CHECK(hear({{"RateLimit-Policy", "\"default\";q=600;w=60"},
              {"RateLimit", "\"default\";r=3;t=30"},
              {"Date", "Thu, 29 Feb 2024 12:34:10 GMT"}}));
  CHECK(rate.learned("a").rate == 10'000'000);
  CHECK(rate.learned("a").peak == 10'000'000);
  CHECK(rate.try_acquire("a", 2));
  CHECK(rate.try_acquire("a", 2).retry_after == 28s);
  it.move_to(40s - 1us);
  CHECK(rate.try_acquire("a", 2).retry_after == 1us);
  it.move_to(40s);
  CHECK(rate.try_acquire("a", 2));
}
