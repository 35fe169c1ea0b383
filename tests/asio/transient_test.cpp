// Transient in coroutines: failed calls that are tried again. Threading: everything on the test's
// thread.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>
#include <vector>

#include "sluice/asio/calls.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using sluice::asio::async_call;

namespace {

struct Timeout : std::runtime_error {
  Timeout() : std::runtime_error("timed out") {}
};

struct World {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  FixedWindow requests{*store, "requests", 10, Calendar::every(24h)};
  FixedWindow tokens{*store, "tokens", 1000, Calendar::every(24h)};
  ConcurrencyLimiter places{*store, "places", 1, {.ttl = 1h}};
  Gates gates{*store, "g", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope account = gates.scope("account", 1);
  std::vector<Claim> claims{
      {requests, "a"}, {tokens, "a", Estimate{300}}, {places, "a"}, {gates, account}};
  boost::asio::io_context context;
  boost::asio::cancellation_signal signal;
  std::exception_ptr thrown;
  bool over = false;
  Time start = clock.now();

  [[nodiscard]] Word requests_left() const { return requests.peek("a").remaining; }
  /// Starts a call without a result.
  template <class Awaitable>
  void spawn(Awaitable call) {
    boost::asio::co_spawn(
        context,
        [](Awaitable inner) -> awaitable<void> {
          (void)co_await std::move(inner);
        }(std::move(call)),
        boost::asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr failed) {
          thrown = std::move(failed);
          over = true;
        }));
    poll();
  }
  void poll() {
    context.restart();
    context.poll();
  }
  void advance(Span span) {
    clock.advance(span);
    poll();
  }
};

}  // namespace

TEST_CASE("what was not served is refunded, a place is free in the pause, and the cost is settled",
          "[asio][transient]") {
  for (const Served served : {Served::no, Served::perhaps}) {
    World world;
    int tries = 0;
    world.spawn(async_call(Call(world.claims), [&]() -> awaitable<Costed<int>> {
      CHECK(world.places.peek("a").remaining == 0);
      if (++tries == 1) throw Transient(served, 10s);
      co_return Costed<int>{7, 100};
    }));
    CHECK(tries == 1);
    CHECK(world.places.peek("a").remaining == 1);
    CHECK(world.requests_left() == (served == Served::no ? 10 : 9));
    world.advance(10s - 1us);
    CHECK(tries == 1);
    world.advance(1us);
    CHECK(tries == 2);
    CHECK(world.over);
    CHECK_FALSE(world.thrown);
    CHECK(world.requests_left() == (served == Served::no ? 9 : 8));
    CHECK(world.tokens.peek("a").remaining == (served == Served::no ? 900 : 600));
  }
}

TEST_CASE("a coroutine's pause ends at its deadline, and by a cancellation", "[asio][transient]") {
  const auto fails = []() -> awaitable<void> {
    throw Transient(Served::no, 10s);
    co_return;
  };
  World world;
  world.spawn(async_call(Call({{world.requests, "a"}}, {.deadline = 10s - 1us}), fails));
  REQUIRE(world.over);
  CHECK_THROWS_AS(std::rethrow_exception(world.thrown), Transient);

  World other;
  other.spawn(async_call(Call({{other.requests, "a"}}), fails));
  CHECK_FALSE(other.over);
  other.signal.emit(boost::asio::cancellation_type::terminal);
  other.poll();
  REQUIRE(other.over);
  CHECK_THROWS_AS(std::rethrow_exception(other.thrown), boost::system::system_error);
  CHECK(other.requests_left() == 10);
  CHECK(other.clock.timers() == 0);
}

TEST_CASE("the last failure of a coroutine comes back as it was thrown", "[asio][transient]") {
  struct Mine : Transient {
    Mine() : Transient(Served::no) {}
  };
  struct Ours : RateLimited {};
  World world;
  const auto run = [&](auto fails) {
    const auto function = [fails]() -> awaitable<void> {
      fails();
      co_return;
    };
    world.spawn(async_call(Call({{world.requests, "a"}}, {.attempts = 1}), function));
    std::rethrow_exception(world.thrown);
  };
  CHECK_THROWS_AS(run([] { throw Mine(); }), Mine);
  CHECK_THROWS_AS(run([] { throw Ours(); }), Ours);
  try {
    run([] {
      try {
        throw Timeout();
      } catch (const Timeout&) {
        std::throw_with_nested(Transient());
      }
    });
  } catch (const Retriable& last) {
    CHECK_THROWS_AS(std::rethrow_if_nested(last), Timeout);
  }
  CHECK(world.requests_left() == 9);
}

TEST_CASE("a coroutine that is cancelled at its end is not tried again", "[asio][transient]") {
  World world;
  int tries = 0;
  world.spawn(async_call(Call({{world.requests, "a"}}, {.end_by = 5s}), [&]() -> awaitable<void> {
    ++tries;
    bool timed_out = false;
    try {
      co_await sluice::asio::sleep_for(world.clock, 1h, boost::asio::use_awaitable);
    } catch (const boost::system::system_error&) {
      timed_out = true;
    }
    if (timed_out) throw Transient(Served::perhaps);
  }));
  world.advance(5s);
  REQUIRE(world.over);
  CHECK_THROWS_AS(std::rethrow_exception(world.thrown), Transient);
  CHECK(tries == 1);
  CHECK(world.requests_left() == 9);
}

TEST_CASE("with_backoff() and guarded() of coroutines know failures that may pass",
          "[asio][transient]") {
  World world;
  int tries = 0;
  const auto once_more = [&]() -> awaitable<int> {
    if (++tries == 1) throw Transient(Served::perhaps, 5s);
    co_return 3;
  };
  world.spawn(sluice::asio::with_backoff(world.gates, {&world.account, 1}, once_more));
  CHECK(world.gates.peek(world.account).allowed);
  world.advance(5s);
  CHECK(tries == 2);
  CHECK(world.over);
  CHECK_FALSE(world.thrown);
  tries = 0;
  world.over = false;
  world.spawn(sluice::asio::guarded(world.requests, "a", 1, 0s, once_more));
  CHECK(world.over);
  CHECK_THROWS_AS(std::rethrow_exception(world.thrown), Transient);
  CHECK(world.requests_left() == 9);
}

}  // namespace sluice::test
