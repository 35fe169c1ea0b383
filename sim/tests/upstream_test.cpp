// The API against a count of all calls, and the ideal against the API.
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

namespace {

/// An API by brute force: it keeps every call.
struct Model {
  struct Limit {
    ApiLimit limit;
    std::size_t since;
    std::uint64_t refusals = 0;
  };
  struct Call {
    Word at;
    bool admitted;
  };
  std::vector<Limit> limits;
  bool refusals_count = false;
  Word penalty = 0;
  bool renews = false;
  std::vector<Call> calls;
  Word closed_until = 0;

  [[nodiscard]] static bool is_in_window(Word stamp, Word now, const ApiLimit& limit) {
    const Word window = limit.window.count();
    return limit.aligned ? stamp / window == now / window : stamp > now - window;
  }
  [[nodiscard]] bool is_full(const Limit& l, Word now) const {
    Word in_window = 0;
    for (std::size_t i = l.since; i < calls.size(); ++i) {
      if ((calls[i].admitted || refusals_count) && is_in_window(calls[i].at, now, l.limit)) {
        ++in_window;
      }
    }
    return in_window >= l.limit.limit;
  }
  [[nodiscard]] bool admits(Word now) const {
    return now >= closed_until &&
           std::ranges::none_of(limits, [&](const Limit& l) { return is_full(l, now); });
  }
  bool call(Word now) {
    const bool admitted = admits(now);
    for (Limit& l : limits) l.refusals += is_full(l, now) ? 1U : 0U;
    if (!admitted && (renews || now >= closed_until)) closed_until = now + penalty;
    calls.push_back({now, admitted});
    return admitted;
  }
  [[nodiscard]] std::uint64_t busiest(const Limit& l, bool admitted_only) const {
    std::uint64_t most = 0;
    for (std::size_t end = l.since; end < calls.size(); ++end) {
      std::uint64_t in_window = 0;
      for (std::size_t i = l.since; i <= end; ++i) {
        if ((calls[i].admitted || !admitted_only) &&
            is_in_window(calls[i].at, calls[end].at, l.limit)) {
          ++in_window;
        }
      }
      if (calls[end].admitted || !admitted_only) most = std::max(most, in_window);
    }
    return most;
  }
};

}  // namespace

TEST_CASE("several limits, changes, penalties and exact waits agree with a count of all calls") {
  test::Random random("several limits, changes, penalties and exact waits agree with a count");
  CAPTURE(random.repeat());
  for (std::size_t run = 0; run < test::scaled(20, 5); ++run) {
    UpstreamOptions options;
    Model model;
    const auto draw_limit = [&] {
      return ApiLimit{random.between(1, 12), Span{random.between(1, 400)}, random.one_in(2)};
    };
    for (std::size_t n = random.below(4); n > 0; --n) {
      options.limits.push_back(draw_limit());
      model.limits.push_back({options.limits.back(), 0});
    }
    options.refusals_count = model.refusals_count = random.one_in(3);
    options.penalty = Span{model.penalty = random.one_in(2) ? random.between(0, 200) : 0};
    options.penalty_renews = model.renews = random.one_in(2);
    Upstream api(options);
    Word now = random.between(0, 1'000);
    for (std::size_t i = 0; i < 300; ++i) {
      now += random.between(0, 30);
      if (random.one_in(100)) {
        const ApiLimit limit = draw_limit();
        CHECK(api.add_limit(limit) == model.limits.size());
        model.limits.push_back({limit, model.calls.size()});
      }
      if (!model.limits.empty() && random.one_in(50)) {
        const std::size_t index = random.below(model.limits.size());
        const Word limit = random.between(1, 12);
        api.set_limit(index, limit);
        model.limits[index].limit.limit = limit;
        CHECK(api.limit(index).limit == limit);
      }
      const Word wait = api.retry_after(to_time(now)).count();
      REQUIRE(model.admits(now + wait));
      if (wait > 0) REQUIRE_FALSE(model.admits(now + wait - 1));
      REQUIRE(api.call(to_time(now)) == model.call(now));
      REQUIRE((wait == 0) == model.calls.back().admitted);
    }
    REQUIRE(api.calls() == model.calls.size());
    const auto admitted = std::ranges::count(model.calls, true, &Model::Call::admitted);
    REQUIRE(api.admitted() == static_cast<std::uint64_t>(admitted));
    REQUIRE(api.rejected() == api.calls() - api.admitted());
    REQUIRE(api.limits() == model.limits.size());
    for (std::size_t i = 0; i < model.limits.size(); ++i) {
      REQUIRE(api.refused_by(i) == model.limits[i].refusals);
      REQUIRE(api.busiest(i) == model.busiest(model.limits[i], false));
      REQUIRE(api.busiest_admitted(i) == model.busiest(model.limits[i], true));
    }
  }
}

TEST_CASE("an API without limits admits everything and remembers nothing") {
  Upstream api(UpstreamOptions{});
  for (int i = 0; i < 5'000; ++i) CHECK(api.call(to_time(i)));
  CHECK(api.admitted() == 5'000);
  CHECK(api.retry_after(to_time(5'000)) == 0us);
  CHECK_THROWS_AS(api.busiest(), std::out_of_range);
}

TEST_CASE("what an API says about the wait follows from the exact one") {
  CHECK(RetryAfter::exact().tell(1'500'001us) == 1'500'001us);
  CHECK(RetryAfter::exact().tell(0us) == 0us);
  CHECK(RetryAfter::exact().tell(-1us) == 0us);
  CHECK(RetryAfter::exact().in_seconds().tell(1'000'000us) == 1s);
  CHECK(RetryAfter::exact().in_seconds().tell(1'000'001us) == 2s);
  CHECK_FALSE(RetryAfter::missing().tell(1s));
  CHECK_FALSE(RetryAfter::missing().in_seconds().tell(1s));
  CHECK(RetryAfter::too_short(0.25).tell(1s) == 250ms);
  CHECK(RetryAfter::too_short(0).tell(1s) == 0s);
  CHECK(RetryAfter::too_short(0.25).in_seconds().tell(10s) == 3s);
  CHECK(RetryAfter::too_long(10).tell(1s) == 10s);
  CHECK(RetryAfter::too_long(1e6).tell(Span{word_limit}) == Span{word_limit});
  CHECK(RetryAfter::fixed(60s).tell(1us) == 60s);
  CHECK_THROWS_AS(RetryAfter::too_short(1.01), std::invalid_argument);
  CHECK_THROWS_AS(RetryAfter::too_short(-0.1), std::invalid_argument);
  CHECK_THROWS_AS(RetryAfter::too_long(0.99), std::invalid_argument);
  CHECK_THROWS_AS(RetryAfter::too_long(1e7), std::invalid_argument);
  CHECK_THROWS_AS(RetryAfter::fixed(-1us), std::invalid_argument);
}

TEST_CASE("an API without a limit or a window is refused") {
  CHECK_THROWS_AS(Upstream(0, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream(-1, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream(1, 0s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream(100'000'001, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Ideal(0, 1s), std::invalid_argument);
  CHECK_THROWS_AS(Upstream({.limits = {}, .penalty = -1us}), std::invalid_argument);
  CHECK_THROWS_AS(Upstream({.limits = std::vector<ApiLimit>(17)}), std::invalid_argument);
  Upstream api({.limits = std::vector<ApiLimit>(16)});
  CHECK_THROWS_AS(api.add_limit({}), std::invalid_argument);
  CHECK_THROWS_AS(api.set_limit(0, 0), std::invalid_argument);
  CHECK_THROWS_AS(api.set_limit(16, 1), std::out_of_range);
}
