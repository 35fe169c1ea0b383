// An event of a World allocates nothing in a steady state: counted by replacing malloc, since Asio
// takes its memory from aligned_alloc. Threading: single-threaded.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cerrno>
#include <cstdlib>

#include "sim/tests/world/fixture.hpp"
#include "sluice/sim/resource.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
std::size_t allocations = 0;
}

extern "C" {
void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* aligned_alloc(std::size_t align, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(align, bytes);
}
}

using namespace sluice;
using namespace sluice::test;

namespace {

template <class Executor>
net::awaitable<void, Executor> deferred(Clock& clock, Span span) {
  for (;;) co_await sluice::asio::sleep_for(clock, span);
}

net::awaitable<void> use_awaitable(Clock& clock, Span span) {
  for (;;) co_await sluice::asio::sleep_for(clock, span, net::use_awaitable);
}

net::awaitable<void> nested(Clock& clock, Span span) {
  const auto inner = [&]() -> net::awaitable<void> {
    co_await sluice::asio::sleep_for(clock, span);
  };
  for (;;) co_await inner();
}

net::awaitable<void> timer(Clock& clock, Span span) {
  sluice::asio::Timer own(co_await net::this_coro::executor, clock);
  for (;;) {
    own.expires_after(span);
    co_await own.async_wait(net::deferred);
  }
}

/// Allocations of a run of a minute, behind a minute of warming up.
template <class Worker>
std::size_t allocations_of(Worker worker) {
  World world;
  for (int i = 0; i < 500; ++i) {
    net::co_spawn(world, worker(world.clock(), Span{i % 2 == 0 ? 100'000 : 200'000}),
                  net::detached);
  }
  std::size_t before = 0;
  std::size_t after = 0;
  const auto mark = [&](Span span, std::size_t& count) {
    sluice::asio::sleep_for(world.clock(), span, [&](Error) { count = allocations; });
  };
  mark(60s, before);
  mark(120s, after);
  CHECK(world.run_for(121s) > 400'000);
  REQUIRE(before > 0);
  return after - before;
}

}  // namespace

TEST_CASE("an event allocates nothing, whatever the coroutine awaits") {
  CHECK(allocations_of(&deferred<World::Executor>) == 0);
  CHECK(allocations_of(&deferred<net::any_io_executor>) == 0);
  CHECK(allocations_of(&use_awaitable) == 0);
  CHECK(allocations_of(&nested) == 0);
  CHECK(allocations_of(&timer) == 0);
}

// A closed population: Asio keeps two frames of coroutines that have ended, so those that are made
// for one customer each come from the heap in part.
TEST_CASE("waiting for a server allocates nothing, whether it is granted or not") {
  const auto discipline = GENERATE(Discipline::fifo, Discipline::priority);
  World world;
  Resource resource(world, 5, discipline);
  for (int i = 0; i < 100; ++i) {
    const Span patience = i % 3 == 0 ? Span{1'000'000} : Span{2'000 + i * 500};
    world.spawn([&, i, patience]() -> net::awaitable<void, World::Executor> {
      for (;;) {
        const Time deadline = world.now() + patience;
        Resource::Server server =
            co_await resource.acquire({.priority = i % 5, .deadline = deadline});
        if (server) co_await sluice::asio::sleep_for(world.clock(), Span{900 + i});
        server.release();
        co_await sluice::asio::sleep_for(world.clock(), 10ms);
      }
    });
  }
  world.run_for(10s);
  resource.reset_stats();
  const std::size_t before = allocations;
  world.run_for(10s);
  const std::size_t after = allocations;
  CHECK(resource.stats().served > 20'000);
  CHECK(resource.stats().abandoned > 4'000);
  CHECK(resource.stats().mean_waiting() > 5);
  CHECK(after - before < 8);  // of the run itself
}

TEST_CASE("the count of allocations counts") {
  const std::size_t before = allocations;
  // Through pointers that the optimizer does not see through: it may leave out what is not used.
  void* (*volatile allocate)(std::size_t) = &std::malloc;
  void* (*volatile allocate_aligned)(std::size_t, std::size_t) = &std::aligned_alloc;
  std::free(allocate(1));
  std::free(allocate(100));
  std::free(allocate_aligned(64, 64));
  CHECK(allocations >= before + 3);
}
