// Leases that end on an event loop while the server hangs. Threading: the test's thread runs the
// loop.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

namespace sluice::test {
namespace {

namespace net = boost::asio;

TEST_CASE("leases end on an event loop while the server hangs, and their releases arrive",
          "[redis][leases][ends]") {
  if (redis_left_out()) return;
  RedisServer server;
  const auto store = connect_socket(server);
  // A destructor that waited would take these hours, or be ended by the call's own 20 s.
  const ConcurrencyLimiter jobs(*store, "jobs", 4, {.ttl = 10h, .release_within = 1h});
  const SystemClock clock;
  Span taken = Span::max();
  const auto work = [&]() -> net::awaitable<void> {
    Time stopped{};
    {
      const Lease one = co_await asio::async_try_acquire(jobs, "a", 1, net::use_awaitable);
      const Lease two = co_await asio::async_acquire(jobs, "a", 1, 10s, net::use_awaitable);
      const std::array claims{Claim(jobs, "a")};
      const Grants three = co_await asio::async_acquire(claims, 10s, net::use_awaitable);
      const auto suspend = [&]() -> net::awaitable<void> {
        server.suspend();
        stopped = clock.now();
        co_return;
      };
      co_await asio::guarded(jobs, "a", 1, 10s, suspend);
    }
    taken = clock.now() - stopped;
  };
  net::io_context io;
  net::co_spawn(io, work(), net::detached);
  io.run();  // all four have ended while the server stands still
  server.resume();
  CHECK(taken < 10s);
  CHECK(eventually([&] { return jobs.peek("a").remaining == 4; }));
}

}  // namespace
}  // namespace sluice::test
