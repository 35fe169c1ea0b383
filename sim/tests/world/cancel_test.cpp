// Cancelling waits, one by one, by operators and in crowds. Threading: single-threaded.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <deque>

#include "sim/tests/world/fixture.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

net::awaitable<int> answer_after(Clock& clock, Span span, int answer) {
  co_await sluice::asio::sleep_for(clock, span, net::use_awaitable);
  co_return answer;
}

}  // namespace

TEST_CASE("a cancelled sleep completes at the instant of the cancelling, not inside it") {
  World world;
  const Time start = world.now();
  net::cancellation_signal signal;
  std::optional<Error> result;
  sluice::asio::sleep_for(
      world.clock(), 1h,
      net::bind_cancellation_slot(signal.slot(), net::bind_executor(world, [&](Error error) {
                                    result = error;
                                    CHECK(world.now() == start + 1s);
                                  })));
  sluice::asio::sleep_for(world.clock(), 1s, [&](Error) {
    signal.emit(net::cancellation_type::none);
    signal.emit(net::cancellation_type::total);
    signal.emit(net::cancellation_type::total);
    CHECK_FALSE(result);
  });
  world.run();
  REQUIRE(result);
  CHECK(*result == net::error::operation_aborted);
  CHECK(world.now() == start + 1s);
  signal.emit(net::cancellation_type::total);  // the slot is empty again
}

TEST_CASE("a wait that is due when it is cancelled keeps its success") {
  World world;
  net::cancellation_signal signal;
  std::optional<Error> result;
  sluice::asio::sleep_for(world.clock(), 1s, [&](Error) {
    net::post(world, [&] { signal.emit(net::cancellation_type::total); });
  });
  sluice::asio::sleep_for(world.clock(), 1s,
                          net::bind_cancellation_slot(signal.slot(), [&](Error e) { result = e; }));
  world.run();
  REQUIRE(result);
  CHECK_FALSE(*result);
}

TEST_CASE("the first of two waits wins and the other is cancelled; both are waited for by &&") {
  World world;
  const Time start = world.now();
  std::vector<Time> when;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        Clock& clock = world.clock();
        const auto first = co_await (answer_after(clock, 3s, 3) || answer_after(clock, 2s, 2));
        CHECK(std::get<1>(first) == 2);
        when.push_back(clock.now());
        const auto [a, b] = co_await (answer_after(clock, 3s, 3) && answer_after(clock, 2s, 2));
        CHECK(a + b == 5);
        when.push_back(clock.now());
      },
      Rethrow{});
  world.run();
  CHECK(when == std::vector<Time>{start + 2s, start + 5s});
  CHECK(world.now() == start + 5s);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("cancelling a coroutine ends its sleep and the coroutine") {
  World world;
  net::cancellation_signal signal;
  std::exception_ptr thrown;
  bool went_on = false;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> {
        co_await answer_after(world.clock(), 1h, 1);
        went_on = true;
      },
      net::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { thrown = e; }));
  world.run_for(1s);
  signal.emit(net::cancellation_type::all);
  world.run();
  CHECK(thrown != nullptr);
  CHECK_FALSE(went_on);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("10,000 waits started and cancelled at random complete once each, at the right time") {
  test::Random random(
      "10,000 waits started and cancelled at random complete once each, at the right time");
  CAPTURE(random.repeat());
  World world({.seed = random.next(), .shuffle_ties = true});
  struct One {
    net::cancellation_signal signal;
    int completions = 0;
    Error error;
  };
  const std::size_t count = test::scaled(10'000, 1'000);
  std::deque<One> waits(count);
  std::size_t cancelled = 0;
  for (One& one : waits) {
    const Span span{random.between(0, 100'000)};
    const Time due = world.now() + span;
    const bool to_cancel = random.one_in(2);
    const Time cancel = world.now() + Span{random.between(0, 100'000)};
    sluice::asio::sleep_until(
        world.clock(), due,
        net::bind_cancellation_slot(one.signal.slot(), [&, due, cancel](Error error) {
          ++one.completions;
          one.error = error;
          REQUIRE(world.now() == (error ? cancel : due));
        }));
    if (!to_cancel) continue;
    sluice::asio::sleep_until(world.clock(), cancel,
                              [&](Error) { one.signal.emit(net::cancellation_type::terminal); });
    if (random.one_in(3)) world.run_for(Span{random.between(0, 100)});
  }
  world.run();
  for (const One& one : waits) {
    REQUIRE(one.completions == 1);
    if (one.error) ++cancelled;
  }
  CHECK(cancelled > count / 8);
  CHECK(cancelled < count / 2);
}
