// A Resource against a model that is too simple to be wrong, under random callers, releases,
// deadlines, cancellations and numbers of servers; then its cancellation, moves and end. Threading:
// single-threaded.
#include "sluice/sim/resource.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <map>
#include <optional>

#include "sim/tests/world/fixture.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Action {
  enum class Kind { acquire, release, cancel, set_servers };
  Time at;
  Kind kind;
  std::uint64_t draw;  // which one is released or cancelled, how many servers
  AcquireOptions options;
};

struct Answer {
  bool served;
  Time at;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// The answers by caller, and the sums of the statistics.
struct Result {
  std::map<std::size_t, Answer> answers;
  std::uint64_t busy_time = 0;
  std::uint64_t waiting_time = 0;
  std::uint64_t server_time = 0;
  std::uint64_t served = 0;
  std::uint64_t abandoned = 0;
  friend bool operator==(const Result&, const Result&) = default;
};

/// One action at an instant; deadlines prefer the instants of later actions.
std::vector<Action> draw_actions(test::Random& random, Time start) {
  std::vector<Action> actions(400);
  Time at = start;
  for (Action& action : actions) {
    at += Span{random.between(1, 4)};
    action.at = at;
    action.draw = random.next();
    const std::int64_t kind = random.between(0, 9);
    action.kind = kind < 5    ? Action::Kind::acquire
                  : kind < 8  ? Action::Kind::release
                  : kind == 8 ? Action::Kind::cancel
                              : Action::Kind::set_servers;
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    AcquireOptions& options = actions[i].options;
    options.priority = static_cast<int>(random.between(-2, 2));
    const auto later = static_cast<std::size_t>(random.between(0, 30));
    if (random.one_in(2)) options.deadline = actions[std::min(i + later, actions.size() - 1)].at;
  }
  return actions;
}

class Model {
 public:
  Model(std::size_t servers, Discipline discipline) : servers_(servers), discipline_(discipline) {}

  Result run(Time start, const std::vector<Action>& actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Time before = i == 0 ? start : actions[i - 1].at;
      result_.server_time +=
          servers_ * static_cast<std::uint64_t>((actions[i].at - before).count());
      expire(actions[i].at);
      act(i, actions[i]);
      serve(actions[i].at);
    }
    const Time end = actions.back().at;
    for (const Waiter& waiter : waiters_) add(result_.waiting_time, waiter.since, end);
    for (const auto& [name, since] : held_) add(result_.busy_time, since, end);
    return result_;
  }

 private:
  struct Waiter {
    std::size_t name;
    Time since;
    AcquireOptions options;
  };
  using Place = std::vector<Waiter>::iterator;

  static void add(std::uint64_t& sum, Time from, Time to) {
    sum += static_cast<std::uint64_t>((to - from).count());
  }
  void leave(Place waiter, Time now, bool served) {
    add(result_.waiting_time, waiter->since, now);
    result_.answers[waiter->name] = {served, now};
    ++(served ? result_.served : result_.abandoned);
    if (served) held_[waiter->name] = now;
    waiters_.erase(waiter);
  }
  void expire(Time now) {
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      if (waiter->options.deadline > now) {
        ++waiter;
      } else {
        leave(waiter, waiter->options.deadline, false);
        waiter = waiters_.begin();
      }
    }
  }
  void act(std::size_t name, const Action& action) {
    const auto pick = [&](std::size_t size) {
      return static_cast<std::ptrdiff_t>(action.draw % size);
    };
    switch (action.kind) {
      case Action::Kind::acquire:
        waiters_.push_back({name, action.at, action.options});
        if (action.options.deadline <= action.at && held_.size() >= servers_) {
          leave(waiters_.end() - 1, action.at, false);
        }
        break;
      case Action::Kind::release:
        if (held_.empty()) break;
        {
          const auto held = std::next(held_.begin(), pick(held_.size()));
          add(result_.busy_time, held->second, action.at);
          held_.erase(held);
        }
        break;
      case Action::Kind::cancel:
        if (!waiters_.empty()) {
          leave(waiters_.begin() + pick(waiters_.size()), action.at, false);
        }
        break;
      case Action::Kind::set_servers:
        servers_ = action.draw % 5;
        break;
    }
  }
  void serve(Time now) {
    while (held_.size() < servers_ && !waiters_.empty()) {
      auto next = waiters_.begin();
      for (auto waiter = next; waiter != waiters_.end(); ++waiter) {
        if (discipline_ == Discipline::priority &&
            waiter->options.priority > next->options.priority) {
          next = waiter;
        }
      }
      leave(next, now, true);
    }
  }

  std::size_t servers_;
  Discipline discipline_;
  std::vector<Waiter> waiters_;       // in the order of coming
  std::map<std::size_t, Time> held_;  // by name
  Result result_;
};

class Real {
 public:
  Real(std::size_t servers, Discipline discipline, std::uint64_t seed)
      : world_({.seed = seed, .shuffle_ties = true}), resource_(world_, servers, discipline) {}

  Result run(const std::vector<Action>& actions) {
    signals_.resize(actions.size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      sluice::asio::sleep_until(world_.clock(), actions[i].at, [&, i](Error) {
        if (actions[i].kind == Action::Kind::cancel) settle_deadlines(actions[i].at);
        if (actions[i].draw % 7 == 0) (void)resource_.stats();  // which changes nothing
        act(i, actions[i]);
      });
    }
    world_.run_until(actions.back().at);
    const ResourceStats stats = resource_.stats();
    result_.busy_time = stats.busy_time;
    result_.waiting_time = stats.waiting_time;
    result_.server_time = stats.server_time;
    result_.served = stats.served;
    result_.abandoned = stats.abandoned;
    CHECK(stats.waiting == waiting_.size());
    CHECK(stats.busy == held_.size());
    const auto elapsed = static_cast<double>(stats.elapsed.count());
    CHECK(world_.now() - VirtualClock::default_start == stats.elapsed);
    CHECK(stats.mean_busy() == Approx(static_cast<double>(stats.busy_time) / elapsed));
    CHECK(stats.mean_waiting() == Approx(static_cast<double>(stats.waiting_time) / elapsed));
    const double busy_share = stats.mean_busy() * elapsed / static_cast<double>(stats.server_time);
    CHECK(stats.utilization() == Approx(busy_share));
    return result_;
  }

 private:
  /// A waiter whose deadline is now may be cancelled or not: its answer is the same, but the model
  /// does not choose it.
  void settle_deadlines(Time now) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      it = it->second <= now ? waiting_.erase(it) : std::next(it);
    }
  }

  void act(std::size_t name, const Action& action) {
    switch (action.kind) {
      case Action::Kind::acquire:
        if (action.options.deadline <= action.at && action.draw % 2 == 0) {
          Resource::Server server = resource_.try_acquire();
          result_.answers[name] = {!!server, world_.now()};
          if (server) held_.emplace(name, std::move(server));
          break;
        }
        waiting_[name] = action.options.deadline;
        resource_.acquire(action.options,
                          net::bind_cancellation_slot(
                              signals_[name].slot(), [this, name](Resource::Server server) {
                                waiting_.erase(name);
                                result_.answers[name] = {!!server, world_.now()};
                                if (server) held_.emplace(name, std::move(server));
                              }));
        break;
      case Action::Kind::release:
        if (held_.empty()) break;
        held_.erase(
            std::next(held_.begin(), static_cast<std::ptrdiff_t>(action.draw % held_.size())));
        break;
      case Action::Kind::cancel:
        if (waiting_.empty()) break;
        signals_[std::next(waiting_.begin(),
                           static_cast<std::ptrdiff_t>(action.draw % waiting_.size()))
                     ->first]
            .emit(net::cancellation_type::terminal);
        break;
      case Action::Kind::set_servers:
        resource_.set_servers(action.draw % 5);
        break;
    }
  }

  World world_;
  std::deque<net::cancellation_signal> signals_;
  Result result_;
  Resource resource_;
  std::map<std::size_t, Time> waiting_;  // the deadlines by name
  std::map<std::size_t, Resource::Server> held_;
};

}  // namespace

TEST_CASE("a Resource does what a simple model of it does") {
  test::Random random("a Resource does what a simple model of it does");
  CAPTURE(random.repeat());
  std::uint64_t served = 0;
  std::uint64_t abandoned = 0;
  const std::size_t rounds = test::scaled(200, 20);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto discipline = random.one_in(2) ? Discipline::fifo : Discipline::priority;
    const auto servers = static_cast<std::size_t>(random.between(0, 4));
    const Time start = VirtualClock::default_start;
    const auto actions = draw_actions(random, start);
    const Result expected = Model(servers, discipline).run(start, actions);
    const Result result = Real(servers, discipline, random.next()).run(actions);
    REQUIRE(result.answers == expected.answers);
    REQUIRE(result == expected);
    served += result.served;
    abandoned += result.abandoned;
  }
  CHECK(served > rounds * 50);
  CHECK(abandoned > rounds * 20);
}

namespace {

/// One server, and what its callers saw: their names, when they were answered, and whether they got
/// it.
struct Desk {
  World world;
  Time start = world.now();
  std::vector<std::tuple<int, Span, bool>> seen;
  Resource resource{world, 1};

  void note(int name, bool served) { seen.emplace_back(name, world.now() - start, served); }
  void at(Span time, std::function<void()> action) {
    sluice::asio::sleep_for(world.clock(), time, [action = std::move(action)](Error) { action(); });
  }
};

}  // namespace

TEST_CASE("a cancelled wait ends without a server, at once and once") {
  Desk desk;
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
  wait(2, {.deadline = desk.start + 1s});
  desk.at(4us, [&] { signal.emit(net::cancellation_type::terminal); });
  desk.world.run();
  CHECK(desk.world.now() == desk.start + 7us);
  wait(3, {.deadline = desk.start + 1s});
  desk.at(1us, [&] {
    held.release();
    signal.emit(net::cancellation_type::terminal);  // too late
  });
  desk.world.run();
  CHECK(desk.seen ==
        std::vector<std::tuple<int, Span, bool>>{{1, 3us, false}, {2, 7us, false}, {3, 8us, true}});
  CHECK(desk.resource.stats().busy == 0);
  CHECK(desk.resource.stats().abandoned == 2);
}

TEST_CASE("statistics begin anew, and the state stays") {
  Desk desk;
  for (int i = 0; i < 3; ++i) {
    desk.world.spawn([&]() -> net::awaitable<void> {
      const Resource::Server server = co_await desk.resource.acquire();
      co_await sluice::asio::sleep_for(desk.world.clock(), 10us);
    });
  }
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
  Desk desk;
  desk.resource.set_servers(2);
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
  Desk desk;
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
