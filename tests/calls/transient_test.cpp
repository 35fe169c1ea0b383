// Transient: calls that fail and may succeed later, beside those that the API refuses.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// Of the user's HTTP library.
struct Timeout : std::runtime_error {
  Timeout() : std::runtime_error("timed out") {}
};

struct World {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  FixedWindow requests{*store, "requests", 10, Calendar::every(24h)};
  FixedWindow tokens{*store, "tokens", 1000, Calendar::every(24h)};
  ConcurrencyLimiter places{*store, "places", 1, {.ttl = 1h}};
  Gates gates{*store, "api", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope account = gates.scope("account", 7);
  std::vector<Claim> claims{
      {requests, "a"}, {tokens, "a", Estimate{300}}, {places, "a"}, {gates, account}};
  Time start = clock.now();

  [[nodiscard]] Span passed() const { return clock.now() - start; }
  [[nodiscard]] Word requests_left() const { return requests.peek("a").remaining; }
};

}  // namespace

TEST_CASE("tries that may have been served keep their charge, and only the last is settled",
          "[calls][transient]") {
  World world;
  int calls = 0;
  const int result = Call(world.claims)([&](Grants& granted) {
    CHECK(world.gates.peek(world.account).allowed);
    if (++calls == 2) granted.settle(1, 50);  // the function knows better
    if (calls < 3) throw Transient();
    return Costed<int>{7, 100};
  });
  CHECK(result == 7);
  CHECK(world.requests_left() == 7);
  CHECK(world.tokens.peek("a").remaining == 1000 - 300 - 50 - 100);
}

TEST_CASE("a place is free while its call pauses", "[calls][transient]") {
  for (const Served served : {Served::perhaps, Served::no}) {
    World world;
    int calls = 0;
    bool was_free = false;
    // A timer during the pause looks at the place.
    struct Look {
      World& world;
      bool& was_free;
      static void ring(void* self) noexcept {
        auto& look = *static_cast<Look*>(self);
        look.was_free = look.world.places.peek("a").remaining == 1;
      }
    } look{world, was_free};
    TimerCallback timer(&Look::ring, &look);
    Call({{world.places, "a"}})([&] {
      if (++calls > 1) return;
      world.clock.set_timer(timer, world.clock.now() + 5s);
      throw Transient(served, 10s);
    });
    CHECK(was_free);
    CHECK(world.passed() == 10s);
    world.clock.cancel_timer(timer);
  }
}

TEST_CASE("the API's own wait is kept to the microsecond, and a wait of zero is none",
          "[calls][transient]") {
  World world;
  std::vector<Span> calls;
  const Call call({{world.requests, "a"}}, {.base = 1s, .jitter = Jitter::equal});
  call([&] {
    calls.push_back(world.passed());
    if (calls.size() == 1) throw Transient(Served::no, 4s);
    if (calls.size() == 2) throw Transient(Served::no, 0s);
  });
  CHECK(calls[1] == 4s);
  CHECK((calls[2] - calls[1] >= 1s && calls[2] - calls[1] <= 2s));  // the second pause
}

TEST_CASE("refusals and failures share one count of tries, one budget and one row of pauses",
          "[calls][transient]") {
  World world;
  int calls = 0;
  const auto fails = [&] {
    if (++calls % 2 == 1) throw Transient(Served::no);
    throw RateLimited();
  };
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.attempts = 5})(fails), Transient);
  CHECK(calls == 5);
  calls = 0;
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.attempts = 4})(fails), RateLimited);
  CHECK(calls == 4);
  RetryBudget budget(0, 2);
  calls = 0;
  const Call poor({{world.requests, "a"}}, {.attempts = 100, .budget = &budget});
  CHECK_THROWS_AS(poor(fails), Transient);
  CHECK(calls == 3);
  CHECK_THROWS_AS(poor(fails), RateLimited);
  CHECK(calls == 4);
  RetryBudget earned(100, 0);  // each call earns a retry
  calls = 0;
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.budget = &earned})(fails), RateLimited);
  CHECK(calls == 2);
  SeededRng rng{1};
  std::vector<Span> at;
  const Call grows({{world.requests, "a"}},
                   {.attempts = 6, .base = 1s, .cap = 5s, .jitter = Jitter::equal, .rng = &rng});
  calls = 0;
  CHECK_THROWS(grows([&] {
    at.push_back(world.passed());
    fails();
  }));
  REQUIRE(at.size() == 6);
  Span most = 1s;
  for (std::size_t i = 1; i < at.size(); ++i) {
    CHECK((at[i] - at[i - 1] >= most / 2 && at[i] - at[i - 1] <= most));
    most = std::min<Span>(5s, 2 * most);
  }
  const Time begin = world.clock.now();
  const Call soon({{world.tokens, "a"}}, {.attempts = 50, .base = 1us, .cap = 1us});
  CHECK_THROWS_AS(soon([] { throw Transient(Served::no); }), Transient);
  CHECK(world.clock.now() == begin + 49us);  // no pause is empty
}

TEST_CASE("a pause that would end behind the deadline or the end is not begun",
          "[calls][transient]") {
  for (const bool ends : {false, true}) {
    for (const Span limit : {Span{10s}, Span{10s - 1us}}) {
      World world;
      int calls = 0;
      const BackoffOptions options =
          ends ? BackoffOptions{.end_by = limit + 1us} : BackoffOptions{.deadline = limit};
      const auto fails = [&] {
        if (++calls == 1) throw Transient(Served::no, 10s);
      };
      const Call call({{world.requests, "a"}}, options);
      if (limit == 10s) {
        call(fails);
        CHECK(calls == 2);
      } else if (!ends) {
        CHECK_THROWS_AS(call(fails), Transient);
        CHECK(calls == 1);
        CHECK(world.passed() == 0s);
      } else {
        CHECK_THROWS_AS(call(fails), NotGranted);  // it would begin at its end
        CHECK(calls == 1);
      }
      CHECK(world.requests_left() == (calls == 2 ? 9 : 10));
    }
  }
  World world;
  const auto late = [&] {
    world.clock.advance(20s);
    throw Transient(Served::no);
  };
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.deadline = 10s})(late), Transient);
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.end_by = 10s})(late), Transient);
  CHECK(world.passed() == 40s);
}

TEST_CASE("a stop request ends the pause of a call", "[calls][transient]") {
  World world;
  StopSource stop;
  int calls = 0;
  const auto stops = [&] {
    ++calls;
    stop.request_stop();
    throw Transient(Served::no, 4s);
  };
  try {
    Call({{world.requests, "a"}})(stops, stop.get_token());
    FAIL("not stopped");
  } catch (const std::system_error& error) {
    CHECK(error.code() == Errc::cancelled);
  }
  CHECK(calls == 1);
  CHECK(world.requests_left() == 10);
}

TEST_CASE("the last failure comes back as it was thrown, with the library's exception in it",
          "[calls][transient]") {
  World world;
  struct Mine : Transient {
    Mine() : Transient(Served::no, 1s, "mine") {}
  };
  CHECK_THROWS_AS(Call({{world.requests, "a"}}, {.attempts = 2})([] { throw Mine(); }), Mine);
  const auto fetch = [] {
    try {
      throw Timeout();
    } catch (const Timeout&) {
      std::throw_with_nested(Transient());
    }
  };
  try {
    Call({{world.requests, "a"}}, {.attempts = 2})(fetch);
    FAIL("not thrown");
  } catch (const Retriable& last) {
    CHECK_THROWS_AS(std::rethrow_if_nested(last), Timeout);
  }
  CHECK(world.requests_left() == 8);
}

TEST_CASE("guarded() makes one try, and gives back what was not served", "[calls][transient]") {
  World world;
  int calls = 0;
  const auto fails = [&](Served served) {
    return [&calls, served] {
      ++calls;
      throw Transient(served);
    };
  };
  CHECK_THROWS_AS(guarded(world.requests, "a", 3, 0s, fails(Served::perhaps)), Transient);
  CHECK(world.requests_left() == 7);
  CHECK_THROWS_AS(guarded(world.requests, "a", 3, 0s, fails(Served::no)), Transient);
  CHECK(world.requests_left() == 7);
  CHECK(calls == 2);
  CHECK(world.passed() == 0s);
}

TEST_CASE("with_backoff() tries a failed call again, and leaves its scopes open",
          "[calls][transient]") {
  World world;
  std::vector<Span> calls;
  CHECK(with_backoff(world.gates, {&world.account, 1}, [&] {
          calls.push_back(world.passed());
          CHECK(world.gates.peek(world.account).allowed);
          if (calls.size() < 3) throw Transient(Served::perhaps, 5s);
          return 3;
        }) == 3);
  CHECK(calls == std::vector<Span>{0s, 5s, 10s});
}

TEST_CASE("whatever a call meets, it is charged for what may have been served",
          "[calls][transient]") {
  Random random("whatever a call meets, it is charged for what may have been served");
  CAPTURE(random.repeat());
  std::size_t retried = 0;
  for (std::size_t round = 0; round < scaled(1'000); ++round) {
    World world;
    const FixedWindow many(*world.store, "many", 1000, Calendar::every(24h));
    const int attempts = static_cast<int>(random.between(1, 6));
    RetryBudget budget(0, static_cast<int>(random.between(0, 6)));
    const Call call({{many, "a"}, {world.places, "a"}, {world.gates, world.account}},
                    {.deadline = 1h, .attempts = attempts, .budget = &budget});
    Word charged = 0;
    int calls = 0;
    bool ended = false;
    Time free_from = world.clock.now();
    const auto meets = [&] {
      ++calls;
      CHECK(world.clock.now() >= free_from);
      CHECK(many.peek("a").remaining == 1000 - charged - 1);
      const Word what = random.between(0, 4);
      const std::optional<Span> wait =
          random.one_in(2) ? std::optional(Span{random.between(-1'000'000, 60'000'000)})
                           : std::nullopt;
      if (wait && (what == 1 || what == 2 || what == 3)) {
        free_from = world.clock.now() + std::max(*wait, Span{0});
      }
      if (what == 1) throw RateLimited(wait);
      if (what == 2) throw Transient(Served::no, wait);
      ++charged;
      if (what == 3) throw Transient(Served::perhaps, wait);
      ended = true;
      if (what == 4) throw Timeout();
    };
    try {
      call(meets);
      CHECK(ended);
    } catch (const Timeout&) {
      CHECK(ended);
    } catch (const Retriable&) {
      CHECK_FALSE(ended);
    }
    CHECK(calls <= attempts);
    CHECK(many.peek("a").remaining == 1000 - charged);
    CHECK(world.places.peek("a").remaining == 1);
    retried += calls > 1 ? 1U : 0U;
  }
  CHECK(retried > 0);
}

}  // namespace sluice::test
