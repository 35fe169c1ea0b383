// A connection that ends while the handler of its timeout is on its way: under AddressSanitizer.
// Threading: single-threaded.
#include "backends/redis/connection/connection.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tests/catch.hpp"

using namespace std::chrono_literals;
namespace net = boost::asio;

namespace sluice::redis_detail {
namespace {

/// A port on which nobody listens.
std::uint16_t closed_port(net::io_context& io) {
  const net::ip::tcp::acceptor acceptor(io, {net::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

}  // namespace

TEST_CASE("a timeout whose connection ends at the same time touches nothing of it") {
  for (int i = 0; i < 100; ++i) {
    net::io_context io;
    RedisOptions options;
    options.port = closed_port(io);
    options.connect_timeout = 1us;
    // The refusal and the timeout are found by the same look at what has happened.
    Names names(io, look_up_on_threads({}));
    auto connection = std::make_unique<Connection>(io, options, names, nullptr);
    bool ready = true;
    const auto connect = [&]() -> net::awaitable<void> {
      ready = co_await connection->connect();
      connection.reset();
    };
    net::co_spawn(io, connect(), net::detached);
    io.run();
    CHECK_FALSE(ready);
    CHECK(connection == nullptr);
  }
}

}  // namespace sluice::redis_detail
