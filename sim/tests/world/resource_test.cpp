// Who gets a server of a Resource, when, and who does not. Threading: single-threaded.
#include "sluice/sim/resource.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "sim/tests/world/fixture.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

/// What a caller saw: its name, when it was answered, and whether it got a server.
struct Seen {
  int name;
  Span at;
  bool served;
  friend bool operator==(const Seen&, const Seen&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
    return out << seen.name << (seen.served ? " served" : " not served") << " at "
               << seen.at.count();
  }
};

struct Desk {
  explicit Desk(std::size_t servers, Discipline discipline = Discipline::fifo,
                const WorldOptions& options = {})
      : world(options), start(world.now()), resource(world, servers, discipline) {}

  /// Comes after `arrival`, holds a server for `service`.
  void caller(int name, Span arrival, Span service, AcquireOptions options = {}) {
    world.spawn([=, this]() -> net::awaitable<void> {
      co_await sluice::asio::sleep_for(world.clock(), arrival);
      const Resource::Server server = co_await resource.acquire(options);
      note(name, static_cast<bool>(server));
      if (server) co_await sluice::asio::sleep_for(world.clock(), service);
    });
  }
  void note(int name, bool served) { seen.push_back({name, world.now() - start, served}); }
  void at(Span time, std::function<void()> action) {
    sluice::asio::sleep_for(world.clock(), time, [action = std::move(action)](Error) { action(); });
  }
  [[nodiscard]] AcquireOptions until(Span span, int priority = 0) const {
    return {priority, start + span};
  }

  World world;
  Time start;
  std::vector<Seen> seen;
  Resource resource;
};

}  // namespace

TEST_CASE("servers go to the callers in the order of their coming, at the instant of a release") {
  Desk desk(2);
  desk.caller(1, 0us, 10us);
  desk.caller(2, 1us, 3us);
  desk.caller(3, 2us, 5us);
  desk.caller(4, 2us, 1us, {.priority = 9});  // does not count in a line
  desk.caller(5, 9us, 1us);
  desk.caller(6, 20us, 1us);
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{1, 0us, true},
                                       {2, 1us, true},
                                       {3, 4us, true},
                                       {4, 9us, true},
                                       {5, 10us, true},
                                       {6, 20us, true}});
  const ResourceStats stats = desk.resource.stats();
  CHECK(stats.served == 6);
  CHECK(stats.abandoned == 0);
  CHECK(stats.busy == 0);
  CHECK(stats.waiting == 0);
  CHECK(stats.elapsed == 21us);
  CHECK(stats.busy_time == 10 + 3 + 5 + 1 + 1 + 1);
  CHECK(stats.waiting_time == 2 + 7 + 1);
  CHECK(stats.server_time == 2 * 21);
  CHECK(stats.mean_busy() == Approx(21.0 / 21));
  CHECK(stats.mean_waiting() == Approx(10.0 / 21));
  CHECK(stats.utilization() == Approx(0.5));
}

TEST_CASE("a higher priority goes first, and the order of coming counts within one") {
  Desk desk(1, Discipline::priority);
  desk.caller(0, 0us, 10us);
  desk.caller(1, 1us, 1us, {.priority = 1});
  desk.caller(2, 2us, 1us, {.priority = -5});
  desk.caller(3, 3us, 1us, {.priority = 7});
  desk.caller(4, 4us, 1us, {.priority = 1});
  desk.caller(5, 5us, 1us, {.priority = 7});
  desk.caller(6, 6us, 1us);
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{0, 0us, true},
                                       {3, 10us, true},
                                       {5, 11us, true},
                                       {1, 12us, true},
                                       {4, 13us, true},
                                       {6, 14us, true},
                                       {2, 15us, true}});
}

TEST_CASE("a deadline ends a wait at its microsecond") {
  Desk desk(1);
  desk.caller(0, 0us, 10us);
  desk.caller(1, 1us, 1us, desk.until(9us));
  desk.caller(2, 2us, 5us, desk.until(11us));
  desk.caller(3, 3us, 1us, desk.until(15us - 1us));
  desk.caller(4, 3us, 1us, desk.until(15us + 1us));
  desk.caller(5, 4us, 1us, {.deadline = to_time(word_limit) + 1s});  // never
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{0, 0us, true},
                                       {1, 9us, false},
                                       {2, 10us, true},
                                       {3, 14us, false},
                                       {4, 15us, true},
                                       {5, 16us, true}});
  CHECK(desk.world.now() == desk.start + 17us);  // the deadlines of the served are gone
  CHECK(desk.resource.stats().abandoned == 2);
  CHECK(desk.resource.stats().waiting_time == 8 + 8 + 11 + 12 + 12);
}

TEST_CASE("a deadline wins over a server that is released at the same instant, in any order") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    const auto discipline = seed % 2 == 0 ? Discipline::fifo : Discipline::priority;
    Desk desk(1, discipline, {.seed = seed, .shuffle_ties = true});
    desk.caller(0, 0us, 10us);
    desk.caller(1, 1us, 1us, desk.until(10us, 1));
    desk.caller(2, 2us, 1us);
    desk.world.run();
    std::sort(desk.seen.begin(), desk.seen.end(),
              [](const Seen& a, const Seen& b) { return a.name < b.name; });
    CHECK(desk.seen == std::vector<Seen>{{0, 0us, true}, {1, 10us, false}, {2, 10us, true}});
    CHECK(desk.resource.stats().abandoned == 1);
    CHECK(desk.resource.stats().served == 2);
  }
}

TEST_CASE("a deadline that has come takes a free server or none") {
  Desk desk(1);
  desk.caller(1, 5us, 10us, desk.until(5us));
  desk.caller(2, 6us, 10us, desk.until(6us));
  desk.caller(3, 7us, 10us, desk.until(0us));
  desk.at(8us, [&] { CHECK_FALSE(desk.resource.try_acquire()); });
  desk.at(16us, [&] { CHECK(desk.resource.try_acquire()); });
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{1, 5us, true}, {2, 6us, false}, {3, 7us, false}});
  CHECK(desk.resource.stats().served == 2);
  CHECK(desk.resource.stats().abandoned == 3);
  CHECK(desk.resource.stats().busy == 0);
}

TEST_CASE("a cancelled wait ends without a server, at once and once") {
  Desk desk(1);
  Resource::Server held = desk.resource.try_acquire();
  net::cancellation_signal signal;
  const auto wait = [&](int name, AcquireOptions options) {
    desk.resource.acquire(
        options, net::bind_cancellation_slot(signal.slot(), [&desk, name](Resource::Server server) {
          desk.note(name, static_cast<bool>(server));
        }));
  };
  wait(1, {});
  desk.at(3us, [&] {
    signal.emit(net::cancellation_type::none);
    CHECK(desk.resource.stats().waiting == 1);
    signal.emit(net::cancellation_type::total);
    signal.emit(net::cancellation_type::total);
    CHECK(desk.seen.empty());
  });
  desk.world.run();
  signal.emit(net::cancellation_type::total);  // the slot is empty again
  wait(2, desk.until(1s));
  desk.at(4us, [&] { signal.emit(net::cancellation_type::terminal); });
  desk.world.run();
  CHECK(desk.world.now() == desk.start + 7us);
  wait(3, desk.until(1s));
  desk.at(1us, [&] {
    held.release();
    signal.emit(net::cancellation_type::terminal);  // too late
  });
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{1, 3us, false}, {2, 7us, false}, {3, 8us, true}});
  CHECK(desk.resource.stats().busy == 0);
  CHECK(desk.resource.stats().abandoned == 2);
}

TEST_CASE("a time-out by operators leaves the queue") {
  Desk desk(1);
  const Resource::Server held = desk.resource.try_acquire();
  std::size_t winner = 0;
  desk.world.spawn([&]() -> net::awaitable<void> {
    const auto first =
        co_await (desk.resource.acquire({}, net::use_awaitable) ||
                  sluice::asio::sleep_for(desk.world.clock(), 5us, net::use_awaitable));
    winner = first.index();
    CHECK(desk.resource.stats().waiting == 0);
  });
  desk.world.run();
  CHECK(winner == 1);
  CHECK(desk.world.now() == desk.start + 5us);
  CHECK(desk.world.outstanding_work() == 0);
}

TEST_CASE("more servers serve the queue at once, fewer let the held ones finish") {
  Desk desk(1);
  for (int i = 0; i < 8; ++i) desk.caller(i, 0us, 10us);
  desk.at(3us, [&] { desk.resource.set_servers(3); });
  desk.at(4us, [&] {
    desk.resource.set_servers(1);
    CHECK(desk.resource.stats().busy == 3);
  });
  desk.at(30us, [&] { desk.resource.set_servers(0); });
  desk.at(50us, [&] { desk.resource.set_servers(2); });
  desk.world.run();
  CHECK(desk.seen == std::vector<Seen>{{0, 0us, true},
                                       {1, 3us, true},
                                       {2, 3us, true},
                                       {3, 13us, true},
                                       {4, 23us, true},
                                       {5, 50us, true},
                                       {6, 50us, true},
                                       {7, 60us, true}});
  const ResourceStats stats = desk.resource.stats();
  CHECK(stats.busy_time == 80);
  CHECK(stats.server_time == 3 + 3 + 26 + 0 + 2 * 20);
}

TEST_CASE("statistics begin anew, and the state stays") {
  Desk desk(1);
  for (int i = 0; i < 3; ++i) desk.caller(i, 0us, 10us);
  desk.at(5us, [&] { desk.resource.reset_stats(); });
  desk.world.run_for(15us);
  const ResourceStats stats = desk.resource.stats();
  CHECK(stats.elapsed == 10us);
  CHECK(stats.served == 1);
  CHECK(stats.busy == 1);
  CHECK(stats.waiting == 1);
  CHECK(stats.busy_time == 10);
  CHECK(stats.waiting_time == 5 * 2 + 5 * 1);
}

TEST_CASE("a server moves, and is released once") {
  Desk desk(2);
  Resource::Server a = desk.resource.try_acquire();
  Resource::Server b = desk.resource.try_acquire();
  CHECK(desk.resource.stats().busy == 2);
  a = std::move(b);
  CHECK(desk.resource.stats().busy == 1);
  CHECK(a);
  CHECK_FALSE(b);  // NOLINT(bugprone-use-after-move)
  Resource::Server& same = a;
  a = std::move(same);
  CHECK(desk.resource.stats().busy == 1);
  const Resource::Server c(std::move(a));
  CHECK(desk.resource.stats().busy == 1);
  b.release();
  CHECK(desk.resource.stats().busy == 1);
}

TEST_CASE("handlers run on their executors, never inside the call") {
  Desk desk(1);
  World other;
  net::io_context context;
  bool inside = true;
  int called = 0;
  const auto note = [&](Resource::Server server) {
    CHECK_FALSE(inside);
    CHECK(server);
    ++called;
  };
  desk.resource.acquire({}, note);
  desk.resource.acquire({}, net::bind_executor(other, note));
  desk.resource.acquire({}, net::bind_executor(context, note));
  inside = false;
  desk.world.run();
  CHECK(called == 1);
  other.run();
  CHECK(called == 2);
  desk.world.run();
  context.run();
  CHECK(called == 3);
  CHECK(desk.resource.stats().busy == 0);
}

TEST_CASE("a Resource that is destroyed ends its waits without a server") {
  World world;
  std::vector<bool> served;
  auto resource = std::make_optional<Resource>(world, 1);
  Resource::Server held = resource->try_acquire();
  for (int i = 0; i < 3; ++i) {
    resource->acquire({.deadline = world.now() + 1s},
                      [&](Resource::Server server) { served.push_back(!!server); });
  }
  resource->acquire({}, [&](Resource::Server server) { served.push_back(!!server); });
  resource.reset();
  CHECK(served.empty());
  CHECK(world.run() == 4);
  CHECK(served == std::vector<bool>(4, false));
  CHECK(held);
  held.release();
  CHECK_FALSE(held);
}

TEST_CASE("a World ends with waiters and servers in any order, and calls nobody") {
  const auto discipline = GENERATE(Discipline::fifo, Discipline::priority);
  const bool world_first = GENERATE(true, false);
  int alive = 0;
  int served = 0;
  Resource::Server outlives_both;
  Resource::Server outlives_world;
  {
    auto world = std::make_optional<World>();
    auto resource = std::make_optional<Resource>(*world, 4, discipline);
    outlives_both = resource->try_acquire();
    outlives_world = resource->try_acquire();
    for (int i = 0; i < 10; ++i) {
      const Time deadline = i % 3 == 0 ? Time::max() : world->now() + 1h;
      world->spawn([&, deadline, i, counted = Counted(alive)]() -> net::awaitable<void> {
        const Resource own(*world, 1);  // ends with the coroutine
        const Resource::Server server =
            co_await resource->acquire({.priority = i % 2, .deadline = deadline});
        ++served;
        co_await sluice::asio::sleep_for(world->clock(), 2h);
        ++served;
      });
    }
    world->run_for(1s);
    CHECK(served == 2);
    CHECK(alive == 10);
    outlives_both.release();  // granted, but the next coroutine has not gone on
    outlives_both = std::move(outlives_world);
    if (world_first) {
      world.reset();
      CHECK(alive == 0);
      CHECK_THROWS_AS(resource->try_acquire(), std::logic_error);
      CHECK_THROWS_AS(resource->set_servers(7), std::logic_error);
      CHECK_THROWS_AS(resource->acquire({}, [](Resource::Server) {}), std::logic_error);
      CHECK(resource->stats().waiting == 0);
      CHECK(resource->stats().busy == 1);
      resource.reset();
    } else {
      resource.reset();
      world.reset();
    }
  }
  CHECK(served == 2);
  CHECK(alive == 0);
  CHECK(outlives_both);
  outlives_both.release();
}

TEST_CASE("a Resource says how many servers it may have") {
  World world;
  CHECK_THROWS_WITH(Resource(world, Resource::max_servers + 1),
                    contains_text("has 0 to 2^31 servers, got 2147483649"));
  Resource resource(world, 0);
  CHECK_THROWS_AS(resource.set_servers(~std::size_t{0}), std::invalid_argument);
  CHECK(resource.stats().servers == 0);
  CHECK_FALSE(resource.try_acquire());
  resource.set_servers(Resource::max_servers);
  CHECK(resource.try_acquire());
}
