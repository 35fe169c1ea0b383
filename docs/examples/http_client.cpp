// A client that shares its server's limit with its fleet, and therefore never receives a 429.
//
//     http_client PORT [CALLS [RATE [REDIS_SOCKET]]]      a server on 127.0.0.1; Ctrl-C ends it
//
// With the path of a Redis unix socket any number of such processes share the limit; without it,
// the workers of this one.
#include <sluice/adapters/beast.hpp>
#include <sluice/asio/calls.hpp>
#include <sluice/redis/redis_store.hpp>
#include <sluice/sluice.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace net = boost::asio;
namespace beast = boost::beast;
using net::ip::tcp;
using namespace std::chrono_literals;
using Response = beast::http::response<beast::http::string_body>;

/// Shared by the workers of this process and, through the store, by all processes.
struct Fleet {
  sluice::Store& store;
  tcp::endpoint server;
  /// The server's rate without a burst: its burst is left to calls that delays bunch up.
  sluice::TokenBucket limiter;
  /// Closed for everybody if the server refuses one of us.
  sluice::Gates gates{store, "server", {"api-key"}};
  sluice::Scope scope = gates.scope("api-key", "fleet");
  /// Under both; more than a minute of waiting calls is an error.
  sluice::Call call = sluice::Call({{limiter, "fleet"}, {gates, scope}}, {.deadline = 60s});

  int left;  ///< calls to make
  int answered = 0;
  int refused = 0;
  int waited = 0;  ///< calls that had to wait for their turn
};

net::awaitable<Response> get(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
  beast::http::request<beast::http::empty_body> request(beast::http::verb::get, "/", 11);
  request.set(beast::http::field::host, "localhost");
  request.set("X-Api-Key", "fleet");
  stream.expires_after(30s);
  co_await beast::http::async_write(stream, request, net::use_awaitable);
  Response response;
  co_await beast::http::async_read(stream, buffer, response, net::use_awaitable);
  co_return response;
}

/// One call after the other, on a connection of its own.
net::awaitable<void> work(Fleet& fleet) {
  beast::tcp_stream stream(co_await net::this_coro::executor);
  beast::flat_buffer buffer;
  co_await stream.async_connect(fleet.server, net::use_awaitable);
  const auto now = [&] { return fleet.store.clock().now(); };
  while (fleet.left-- > 0) {
    const auto came = now();
    bool is_first = true;
    const auto send = [&]() -> net::awaitable<void> {
      if (is_first && now() - came > 1ms) ++fleet.waited;  // longer than a round trip
      is_first = false;
      const Response response = co_await get(stream, buffer);
      // Not expected. If it happens, the whole fleet waits as long as the server asks.
      if (response.result() == beast::http::status::too_many_requests) ++fleet.refused;
      sluice::http::require_served(response);
      ++fleet.answered;
    };
    co_await sluice::asio::async_call(fleet.call, send);
  }
}

std::unique_ptr<sluice::Store> make_store(const char* redis_socket) {
  if (redis_socket == nullptr) return sluice::make_memory_store();
  return sluice::make_redis_store({.unix_socket = redis_socket, .call_timeout = 10s});
}

int main(int argc, char** argv) try {
  if (argc < 2) throw std::invalid_argument("PORT is missing");
  const auto argument = [&](int i, auto value) {
    const std::string text = i < argc ? argv[i] : std::to_string(value);
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || read != end)
      throw std::invalid_argument(text + " is no such number");
    return value;
  };
  const auto port = argument(1, std::uint16_t{0});
  const auto quota = sluice::Quota::per_second(argument(3, 100)).burst(1);

  net::io_context io;  // made first: calls that are under way end in it when the store is gone
  const auto store = make_store(argc > 4 ? argv[4] : nullptr);
  Fleet fleet{.store = *store,
              .server = {net::ip::address_v4::loopback(), port},
              .limiter{*store, "server", quota},
              .left = argument(2, 200)};

  net::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](auto error, int) {
    if (error) return;
    fleet.limiter.cancel_waits();  // a wait must end before its store does
    fleet.gates.cancel_waits();
    io.stop();
  });
  std::cout << "calling " << fleet.server << std::endl;
  int running = 8;
  std::exception_ptr failure;
  for (int i = running; i > 0; --i) {
    net::co_spawn(io, work(fleet), [&](std::exception_ptr ended) {
      if (ended) failure = ended;
      if (--running == 0) signals.cancel();
    });
  }
  io.run();
  std::cout << fleet.answered << " answered, " << fleet.refused << " refused, " << fleet.waited
            << " waited for their turn\n";
  if (failure) std::rethrow_exception(failure);
  return fleet.refused == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "http_client: " << error.what()
            << "\nusage: http_client PORT [CALLS [RATE [REDIS_SOCKET]]]\n";
  return 1;
}
