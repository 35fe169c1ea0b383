// The headers that a server sends, and what a client reads in them.
#include "sluice/http/emit.hpp"

#include <sluice/sluice.hpp>

#include <algorithm>
#include <array>
#include <string>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::http;
using namespace std::chrono_literals;

namespace {

std::string lines(const LimitHeaders& headers) {
  std::string all;
  headers.for_each([&](std::string_view name, std::string_view value) {
    all.append(name).append(": ").append(value).append("\n");
  });
  return all;
}

Decision refused(Span retry_after) {
  return {.limit = 5, .retry_after = retry_after, .reset_after = retry_after, .at = test_now};
}

}  // namespace

TEST_CASE("a refusal tells when to come back, in every form") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const Quota quota = Quota::per_second(10).burst(5);
  const TokenBucket bucket{*store, "api", quota};
  const Policy policy("burst", quota);
  for (int i = 0; i < 4; ++i) (void)bucket.try_acquire("alice");
  CHECK(lines(limit_headers(policy, bucket.try_acquire("alice"))) ==
        "RateLimit-Policy: \"burst\";q=5;w=1\n"
        "RateLimit: \"burst\";r=0;t=1\n"
        "X-RateLimit-Limit: 5\n"
        "X-RateLimit-Remaining: 0\n"
        "X-RateLimit-Reset: 1\n");
  CHECK(lines(limit_headers(policy, bucket.try_acquire("alice"))) ==
        "Retry-After: 1\n"
        "RateLimit-Policy: \"burst\";q=5;w=1\n"
        "RateLimit: \"burst\";r=0;t=1\n"
        "X-RateLimit-Limit: 5\n"
        "X-RateLimit-Remaining: 0\n"
        "X-RateLimit-Reset: 1\n");
}

TEST_CASE("waits are rounded up to whole seconds") {
  const Policy policy("p", WindowLimit{5, 1500ms});
  const auto retry_after = [&](Span span) {
    return std::string(limit_headers(policy, refused(span))["Retry-After"]);
  };
  CHECK(retry_after(1us) == "1");
  CHECK(retry_after(1s) == "1");
  CHECK(retry_after(1s + 1us) == "2");
  CHECK(retry_after(24h) == "86400");
  CHECK(retry_after(0us) == "1");  // a refusal is never asked again at once
  CHECK(retry_after(Span::max()) == "99999999");
  CHECK(limit_headers(policy, refused(1s))["RateLimit-Policy"] == "\"p\";q=5;w=2");
}

TEST_CASE("the reset is a length of time, or seconds of the epoch, rounded up") {
  const Policy policy("p", WindowLimit{5, 1s});
  Decision decision = refused(250ms);
  decision.at += 900ms;
  const auto reset = [&](ResetForm form) {
    return std::string(limit_headers(policy, decision, {.reset = form})["X-RateLimit-Reset"]);
  };
  CHECK(reset(ResetForm::seconds) == "1");
  CHECK(reset(ResetForm::epoch) == "1709210098");
  decision.retry_after = 100ms;
  CHECK(reset(ResetForm::epoch) == "1709210097");
}

TEST_CASE("several limits stand in one list, and the tightest of the first unit in the rest") {
  const Policy user("user", WindowLimit{10, 1min}, {.partition = "alice"});
  const Policy all("all", WindowLimit{1000, 1min}, {.unit = "content-bytes"});
  const Decision few{.allowed = true, .limit = 10, .remaining = 2, .reset_after = 40s};
  const Decision no = refused(7s);
  const std::array limits{Limited{user, few}, Limited{all, no}};
  const LimitHeaders headers = limit_headers(limits);
  CHECK(headers["Retry-After"] == "7");
  CHECK(headers["RateLimit-Policy"] ==
        R"("user";q=10;w=60;pk=:YWxpY2U=:, "all";q=1000;w=60;qu="content-bytes")");
  CHECK(headers["RateLimit"] == R"("user";r=2;t=40;pk=:YWxpY2U=:, "all";r=0;t=7)");
  CHECK(headers["X-RateLimit-Limit"] == "10");  // requests are not compared with bytes
  CHECK(limit_headers(std::span<const Limited>{}).size() == 0);
}

TEST_CASE("X-RateLimit tells the tightest limit of the first unit, or the primary policy") {
  const Policy user("user", WindowLimit{10, 1min});
  const Policy all("all", WindowLimit{1000, 1min});
  const Policy burst("burst", WindowLimit{5, 1s}, {.unit = "requests"});
  const Policy tokens("tokens", WindowLimit{90'000, 1min}, {.unit = "tokens"});
  const auto left = [](Word remaining) {
    return Decision{.allowed = true, .limit = 10, .remaining = remaining, .reset_after = 6s};
  };
  const auto told = [](std::vector<Limited> limits, std::string_view primary = {}) {
    return std::string(limit_headers(limits, {.primary = primary})["X-RateLimit-Limit"]);
  };
  // Of refusals that end together the first; these round to 7 s, but one ends later.
  CHECK(told({{user, refused(7s)}, {all, refused(7s)}}) == "10");
  CHECK(told({{all, refused(7s)}, {user, refused(7s)}}) == "1000");
  CHECK(told({{user, refused(7s - 1us)}, {all, refused(7s)}}) == "1000");
  CHECK(told({{all, refused(7s)}, {user, refused(7s - 1us)}}) == "1000");
  // Of grants the first of those with the least left; a refusal goes before.
  CHECK(told({{user, left(2)}, {all, left(2)}}) == "10");
  CHECK(told({{all, left(2)}, {user, left(2)}}) == "1000");
  CHECK(told({{all, left(3)}, {user, left(2)}}) == "10");
  CHECK(told({{user, refused(0us)}, {all, left(2)}}) == "10");
  CHECK(told({{all, left(2)}, {user, refused(0us)}}) == "10");
  // In one unit, whoever refuses. Without one, requests are meant.
  CHECK(told({{user, left(9)}, {tokens, refused(7s)}}) == "10");
  CHECK(told({{user, refused(1s)}, {tokens, refused(7s)}}) == "10");
  CHECK(told({{tokens, left(1)}, {user, refused(7s)}}) == "90000");
  CHECK(told({{user, left(9)}, {tokens, left(1)}, {burst, left(1)}}) == "5");

  const std::array limits{Limited{tokens, refused(7s)}, Limited{user, left(9)}};
  const LimitHeaders headers = limit_headers(limits, {.rate_limit = false, .primary = "user"});
  CHECK(lines(headers) ==
        "Retry-After: 7\n"
        "X-RateLimit-Limit: 10\n"
        "X-RateLimit-Remaining: 9\n"
        "X-RateLimit-Reset: 6\n");
  CHECK(told({limits.begin(), limits.end()}, "tokens") == "90000");
  CHECK(told({limits.begin(), limits.end()}, "unknown").empty());
}

TEST_CASE("headers may be left out, and are copied whole") {
  const Policy policy("p", WindowLimit{5, 1s});
  LimitHeaders copy;
  copy = limit_headers(policy, refused(1s), {.rate_limit = false});
  CHECK(lines(copy) ==
        "Retry-After: 1\nX-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n");
  CHECK(limit_headers(policy, refused(1s), {.rate_limit = false, .x_rate_limit = false}).size() ==
        1);
}

TEST_CASE("the longest policies fit") {
  const std::string name(Text::capacity, '"');
  const std::string partition(Text::capacity, '\xff');
  const Policy policy(name, WindowLimit{word_limit - 1, Span{word_limit}},
                      {.partition = partition, .unit = name});
  Decision decision = refused(Span::max());
  decision.remaining = word_limit;
  const std::vector<Limited> limits(10, Limited{policy, decision});
  const LimitHeaders headers = limit_headers(limits);
  CHECK(headers.size() == LimitHeaders::max_headers);
  const Feedback feedback = parse_lines(headers.strings());
  REQUIRE(feedback.find(name) != nullptr);
  CHECK(feedback.find(name)->partition.view() == partition);
  CHECK(feedback.find(name)->unit.view() == name);
}

TEST_CASE("a policy that cannot be written is refused with what is allowed") {
  const WindowLimit fine{5, 1s};
  const std::string longer(Text::capacity + 1, 'x');
  CHECK_THROWS_WITH(Policy("", fine), "a policy needs a name");
  CHECK_THROWS_WITH(Policy(longer, fine),
                    "the name of a policy must have at most 64 bytes of printable ASCII, got 65 "
                    "bytes");
  CHECK_THROWS_AS(Policy("na\nme", fine), std::invalid_argument);
  CHECK_THROWS_AS(Policy("n\xc3\xa9", fine), std::invalid_argument);
  CHECK_THROWS_AS(Policy("n", fine, {.partition = longer}), std::invalid_argument);
  CHECK_THROWS_AS(Policy("n", fine, {.unit = "\x7f"}), std::invalid_argument);
  CHECK_THROWS_AS(Policy("n", WindowLimit{-1, 1s}), std::invalid_argument);
  CHECK_THROWS_AS(Policy("n", WindowLimit{1, 0s}), std::invalid_argument);
  CHECK_NOTHROW(Policy("n", fine, {.partition = "\xff\n"}));
}

TEST_CASE("what is emitted is read again as what a client needs, and never too early") {
  test::Random random("what is emitted is read again as what a client needs, and never too early");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < test::scaled(20'000); ++round) {
    const auto draw = [&](std::int64_t least, int first, int last) {
      std::string text;
      for (std::int64_t i = random.between(least, 64); i > 0; --i) {
        text += static_cast<char>(random.between(first, last));
      }
      return text;
    };
    const std::string name = draw(1, ' ', '~');
    const std::string partition = draw(0, 0, 255);
    const Word largest = Word{1} << random.between(1, 46);
    const Policy policy(name,
                        WindowLimit{random.between(0, largest), Span{random.between(1, largest)}},
                        {.partition = partition});
    Decision decision{.allowed = random.one_in(2), .limit = policy.limit()};
    decision.remaining = random.between(0, decision.limit);
    decision.retry_after = Span{decision.allowed ? 0 : random.between(1, largest)};
    decision.reset_after = Span{random.between(decision.retry_after.count(), largest)};
    decision.at = to_time(random.between(1'500'000'000'000'000, 1'900'000'000'000'000));
    const bool epoch = random.one_in(2);
    const LimitHeaders headers =
        limit_headers(policy, decision, {.reset = epoch ? ResetForm::epoch : ResetForm::seconds});

    // The answer is read a while after the decision; the two clocks agree.
    const Span under_way{random.between(0, 5'000'000)};
    const Feedback feedback =
        parse_feedback(headers.strings(), decision.at + under_way, {.longest = Span{word_limit}});
    CHECK_FALSE(feedback.truncated);
    for (const Note& note : feedback.notes()) {
      CHECK((note.fate == Fate::used || (epoch && note.fate == Fate::past)));
    }
    CHECK(feedback.retry_after.has_value() == !decision.allowed);
    if (!decision.allowed) {
      CHECK(*feedback.retry_after >= decision.retry_after);
      CHECK(*feedback.retry_after < decision.retry_after + 1s);
    }
    REQUIRE(feedback.windows().size() == 2);
    for (const Window& window : feedback.windows()) {
      CHECK(window.limit == policy.limit());
      CHECK(window.remaining == decision.remaining);
      REQUIRE(window.reset);
      const Time again = feedback.at + *window.reset;
      const Span wait = decision.allowed ? decision.reset_after : decision.retry_after;
      CHECK(again >= decision.at + wait);
      CHECK(again < decision.at + wait + 1s + std::max(under_way, Span{1}));
    }
    CHECK(feedback.windows()[0].name.view() == name);
    CHECK(feedback.windows()[0].partition.view() == partition);
    CHECK(*feedback.windows()[0].length >= policy.length());
  }
}

TEST_CASE("of a limit of 0 no time is told, and of an unlimited one nothing") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const Policy none("none", Quota::never());
  const Policy all("all", Quota::unlimited());
  const Policy some("some", Quota::per_minute(60).burst(10));
  const Decision never = TokenBucket(*store, "n", Quota::never()).try_acquire("k");
  const Decision always = TokenBucket(*store, "a", Quota::unlimited()).try_acquire("k");
  CHECK(lines(limit_headers(none, never)) ==
        "RateLimit-Policy: \"none\";q=0;w=1\n"
        "RateLimit: \"none\";r=0\n"
        "X-RateLimit-Limit: 0\n"
        "X-RateLimit-Remaining: 0\n");
  CHECK(lines(limit_headers(all, always)).empty());
  const Decision usual = TokenBucket(*store, "s", Quota::per_minute(60).burst(10)).try_acquire("k");
  const std::array both{Limited{all, always}, Limited{some, usual}};
  CHECK(lines(limit_headers(both)) ==
        "RateLimit-Policy: \"some\";q=10;w=10\n"
        "RateLimit: \"some\";r=9;t=1\n"
        "X-RateLimit-Limit: 10\n"
        "X-RateLimit-Remaining: 9\n"
        "X-RateLimit-Reset: 1\n");
  const std::array many{Limited{all, always}, Limited{some, usual}, Limited{some, usual},
                        Limited{some, usual}, Limited{some, usual}, Limited{some, usual}};
  const LimitHeaders headers = limit_headers(many);
  const std::string_view told = headers["RateLimit"];
  CHECK(std::count(told.begin(), told.end(), ',') == LimitHeaders::max_policies - 1);
}
