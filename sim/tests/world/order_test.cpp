// When things happen in a World, and in which order. Threading: single-threaded.
#include <boost/asio/defer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/strand.hpp>
#include <set>

#include "sim/tests/world/fixture.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

net::awaitable<void> note_after(Clock& clock, Span span, int name, std::vector<int>& seen) {
  co_await sluice::asio::sleep_for(clock, span);
  seen.push_back(name);
}

std::vector<int> order_of(const WorldOptions& options) {
  World world(options);
  std::vector<int> seen;
  for (int i = 0; i < 20; ++i) {
    net::co_spawn(world, note_after(world.clock(), 5ms, i, seen), net::detached);
    net::post(world, [&seen, i] { seen.push_back(100 + i); });
  }
  world.run();
  CHECK(seen.size() == 40);
  return seen;
}

}  // namespace

TEST_CASE("coroutines go on in the order of their times, equal times in the order of waiting") {
  World world;
  const Time start = world.now();
  std::vector<int> seen;
  const std::vector<Span> spans{30ms, 10ms, 30ms, 0ms, -5ms, 20ms};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    net::co_spawn(world, note_after(world.clock(), spans[i], static_cast<int>(i), seen),
                  net::detached);
  }
  CHECK(seen.empty());
  world.run();
  CHECK(seen == std::vector<int>{3, 4, 1, 5, 0, 2});
  CHECK(world.now() == start + 30ms);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("what is posted runs at its instant, behind what is due then already") {
  World world;
  std::vector<std::string> seen;
  const Time start = world.now();
  const auto sleep = [&](Span span, auto then) {
    sluice::asio::sleep_for(world.clock(), span,
                            net::bind_executor(world, [then](Error) { then(); }));
  };
  sleep(1ms, [&] {
    seen.emplace_back("first");
    net::post(world, [&] {
      CHECK(world.now() == start + 1ms);
      seen.emplace_back("posted by first");
      net::post(world, [&] { seen.emplace_back("posted by posted"); });
      sleep(0ms, [&] { seen.emplace_back("slept zero"); });
    });
    net::dispatch(world, [&] { seen.emplace_back("dispatched by first"); });
    net::defer(world, [&] { seen.emplace_back("deferred by first"); });
  });
  sleep(1ms, [&] { seen.emplace_back("second"); });
  sleep(2ms, [&] { seen.emplace_back("later"); });
  world.run();
  CHECK(seen == std::vector<std::string>{"first", "dispatched by first", "second",
                                         "posted by first", "deferred by first", "posted by posted",
                                         "slept zero", "later"});
}

TEST_CASE("a seed repeats its order of ties, others give other orders") {
  const auto fifo = order_of({});
  CHECK(fifo == order_of({.seed = 99}));
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const WorldOptions options{.seed = seed, .shuffle_ties = true};
    const auto order = order_of(options);
    CHECK(order == order_of(options));
    orders.insert(order);
  }
  CHECK(orders.size() == 20);
  CHECK(orders.count(fifo) == 0);
}

TEST_CASE("a strand keeps its order and its exclusion, also when ties are shuffled") {
  World world({.seed = 3, .shuffle_ties = true});
  auto strand = net::make_strand(world);
  std::vector<int> seen;
  for (int i = 0; i < 50; ++i) {
    net::post(strand, [&, i] {
      CHECK(strand.running_in_this_thread());
      net::dispatch(strand, [&, i] { seen.push_back(i); });
    });
  }
  int inside = 0;
  for (int i = 0; i < 5; ++i) {
    net::co_spawn(
        strand,
        [&]() -> net::awaitable<void> {
          for (int round = 0; round < 10; ++round) {
            CHECK(++inside == 1);
            --inside;
            co_await sluice::asio::sleep_for(world.clock(), 1ms);
            CHECK(strand.running_in_this_thread());
          }
        },
        Rethrow{});
  }
  world.run();
  for (int i = 0; i < 50; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("2,000 workers live an hour, each wake-up at its time") {
  World world;
  const Time start = world.now();
  std::uint64_t wakes = 0;
  for (int i = 0; i < 2'000; ++i) {
    net::co_spawn(
        world,
        [&, i]() -> net::awaitable<void> {
          const Span period = Span{3'000'000 + i * 1'009};
          for (Time due = start + period;; due += period) {
            co_await sluice::asio::sleep_until(world.clock(), due);
            REQUIRE(world.clock().now() == due);
            ++wakes;
          }
        },
        Rethrow{});
  }
  world.run_for(1h);
  std::uint64_t expected = 0;
  for (int i = 0; i < 2'000; ++i) {
    expected += static_cast<std::uint64_t>(Span{1h}.count() / (3'000'000 + i * 1'009));
  }
  CHECK(wakes == expected);
  CHECK(world.now() == start + 1h);
}
