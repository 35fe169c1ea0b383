// The engine's own coroutines: they end, fail and are destroyed as those of Asio do, at the same
// events. Threading: single-threaded.
#include "sim/scenario/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sluice/asio/acquire.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/sluice.hpp"
#include "tests/sim/world_fixture.hpp"

using namespace sluice;
using namespace sluice::test;
using sluice::sim::scenario::as_operation;
using sluice::sim::scenario::Task;

namespace {

template <class T = void>
using Awaitable = net::awaitable<T, World::Executor>;

void start(World& world, Task<> task) { scenario::spawn(world, std::move(task)); }
void start(World& world, Awaitable<> awaitable) { world.spawn(std::move(awaitable)); }

/// The same jobs, by coroutines of either kind.
template <template <class> class Coroutine>
class Jobs {
 public:
  Jobs() { start(world, come()); }

  World world{{.seed = 3}};
  std::vector<Span> done;
  int unanswered = 0;

 private:
  Coroutine<void> come() {
    for (int i = 0; i < 50; ++i) {
      if (i % 4 != 0) co_await asio::sleep_for(world.clock(), 3ms);
      start(world, job(i));
    }
  }
  Coroutine<void> job(int i) {
    if (i % 7 == 0) co_return;  // without a wait
    const Time came = world.now();
    const std::unique_ptr<Word> got = co_await units(i);
    if (!got) co_return;
    const Resource::Server server = co_await servers_.acquire({.priority = i % 3});
    co_await asio::sleep_for(world.clock(), *got * 1ms);
    done.push_back(world.now() - came);
  }
  Coroutine<std::unique_ptr<Word>> units(int i) {
    const auto [error, grant] = co_await asio::async_acquire(bucket_, i % 2 == 0 ? "a" : "b", 1,
                                                             200ms, net::as_tuple(net::deferred));
    if (error || !grant) {
      ++unanswered;
      co_return nullptr;
    }
    co_return std::make_unique<Word>(grant.granted + i % 5);
  }

  TokenBucket bucket_{world.store(), "api", Quota::per_second(50).burst(5)};
  Resource servers_{world, 2};
};

Task<int> seven() { co_return 7; }
Task<int> fail() {
  (void)co_await seven();
  throw std::runtime_error("the inner task");
}
Task<int> fail_later(World& world) {
  co_await asio::sleep_for(world.clock(), 1s);
  co_return co_await fail();
}

Task<> wait_for_ever(World& world, int& alive, std::shared_ptr<asio::Timer> timer) {
  const Counted here(alive);
  co_await timer->async_wait(net::deferred);
  co_await asio::sleep_for(world.clock(), 1h);
}
Task<> wait_outside(World& world, int& alive) {
  const Counted here(alive);
  // The coroutine owns the timer that it waits on.
  const auto timer = std::make_shared<asio::Timer>(world.get_executor(), world.clock());
  timer->expires_after(24h);
  co_await wait_for_ever(world, alive, timer);
}

}  // namespace

TEST_CASE("Task: its events are those of the same coroutine of Asio") {
  Jobs<Awaitable> expected;
  Jobs<Task> jobs;
  expected.world.run();
  jobs.world.run();
  CHECK(jobs.done == expected.done);
  CHECK(jobs.done.size() > 20);
  CHECK(jobs.unanswered == expected.unanswered);
  CHECK(jobs.unanswered > 0);
  CHECK(jobs.world.events() == expected.world.events());
  CHECK(jobs.world.trace() == expected.world.trace());
}

TEST_CASE("Task: an exception passes the tasks that await, and leaves the run, which goes on") {
  World world;
  int passed = 0;
  int slept = 0;
  const auto fails = [&]() -> Task<> {
    try {
      (void)co_await fail_later(world);
    } catch (...) {
      ++passed;
      throw;
    }
  };
  const auto sleeps = [&]() -> Task<> {
    co_await asio::sleep_for(world.clock(), 2s);
    ++slept;
  };
  scenario::spawn(world, fails());
  scenario::spawn(world, sleeps());
  CHECK_THROWS_WITH(world.run(), "the inner task");
  CHECK(passed == 1);
  CHECK(slept == 0);
  world.run();
  CHECK(slept == 1);
}

TEST_CASE("Task: an operation that fails throws") {
  World world;
  asio::Timer timer(world.get_executor(), world.clock());
  timer.expires_after(1h);
  Error seen;
  const auto waits = [&]() -> Task<> {
    try {
      co_await timer.async_wait(net::deferred);
    } catch (const boost::system::system_error& error) {
      seen = error.code();
    }
  };
  scenario::spawn(world, waits());
  world.run_for(1s);
  timer.cancel();
  world.run();
  CHECK(seen == net::error::operation_aborted);
}

TEST_CASE("Task: an operation that throws when it starts throws from the co_await") {
  World world;
  bool caught = false;
  const auto waits = [&]() -> Task<> {
    try {
      co_await net::async_initiate<const net::deferred_t, void(Error)>(
          [](auto handler) {
            const auto dropped = std::move(handler);
            throw std::length_error("full");
          },
          net::deferred);
    } catch (const std::length_error&) {
      caught = true;
    }
    co_await asio::sleep_for(world.clock(), 1s);
  };
  scenario::spawn(world, waits());
  world.run();
  CHECK(caught);
  CHECK(world.now() == VirtualClock::default_start + 1s);
}

TEST_CASE("Task: the end of the World destroys the tasks that wait, each object once") {
  int alive = 0;
  {
    World world;
    scenario::spawn(world, wait_outside(world, alive));
    world.run_for(1h);
    CHECK(alive == 2);
  }
  CHECK(alive == 0);
}

TEST_CASE("Task: one that never starts is destroyed with its arguments") {
  int alive = 0;
  World world;
  const auto keeps = [](Counted) -> Task<> { co_return; };
  { const Task<> task = keeps(Counted(alive)); }
  CHECK(alive == 0);
  {
    World other;
    scenario::spawn(other, keeps(Counted(alive)));
    CHECK(alive == 1);
  }
  CHECK(alive == 0);
}

TEST_CASE("Task: a coroutine of Asio awaits one as an operation") {
  const Span pause = GENERATE(0ms, 5ms);
  CAPTURE(pause);
  World world;
  std::vector<int> seen;
  const auto adds = [&](int number) -> Task<> {
    if (pause != 0ms) co_await asio::sleep_for(world.clock(), pause);
    seen.push_back(number);
    if (number == 2) throw std::runtime_error("two");
  };
  world.spawn([&]() -> Awaitable<> {
    Task<> first = adds(1);
    co_await as_operation(world, first);
    seen.push_back(10);
    Task<> second = adds(2);
    co_await as_operation(world, second);
    seen.push_back(20);
  });
  CHECK_THROWS_WITH(world.run(), "two");
  CHECK(seen == std::vector<int>{1, 10, 2});
}
