// An HTTP server that limits each API key, and answers 429 with headers that say when to come back.
// Prometheus finds its metrics under /metrics.
//
//     http_server [PORT [RATE [BURST]]]      on 127.0.0.1; port 0 takes a free one; Ctrl-C ends it
#include <sluice/sluice.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <string>

namespace net = boost::asio;
namespace beast = boost::beast;
using net::ip::tcp;
using Request = beast::http::request<beast::http::string_body>;
using Response = beast::http::response<beast::http::string_body>;

/// What is limited, and how it is described to clients.
struct Api {
  const sluice::TokenBucket& limiter;
  const sluice::Metrics& metrics;
  sluice::http::Policy policy{"api", limiter.quota()};

  Response answer(const Request& request) const {
    if (request.target() != "/metrics") return limited(request);
    using Format = sluice::Metrics::Format;
    const auto accepted = request[beast::http::field::accept];
    const bool is_open = accepted.find("application/openmetrics-text") != accepted.npos;
    const Format format = is_open ? Format::openmetrics : Format::prometheus;
    Response response(beast::http::status::ok, request.version());
    response.set(beast::http::field::content_type, sluice::Metrics::content_type(format));
    response.keep_alive(request.keep_alive());
    response.body() = metrics.text(format);
    response.prepare_payload();
    return response;
  }

  Response limited(const Request& request) const {
    const auto key = request["X-Api-Key"];
    std::error_code error;
    const sluice::Decision decision =
        limiter.try_acquire(key.empty() ? "anonymous" : std::string_view(key), error);
    const auto status = error      ? beast::http::status::service_unavailable
                        : decision ? beast::http::status::ok
                                   : beast::http::status::too_many_requests;
    Response response(status, request.version());
    if (!error) {
      sluice::http::limit_headers(policy, decision, {.primary = policy.name()})
          .for_each(
              [&](std::string_view name, std::string_view value) { response.set(name, value); });
    }
    response.keep_alive(request.keep_alive());
    response.body() = decision ? "hello\n" : "not now\n";
    response.prepare_payload();
    return response;
  }
};

/// One connection; ends with an exception when the client disconnects.
net::awaitable<void> serve(tcp::socket socket, const Api& api) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  for (bool again = true; again;) {
    stream.expires_after(std::chrono::seconds{30});
    Request request;
    co_await beast::http::async_read(stream, buffer, request, net::use_awaitable);
    const Response response = api.answer(request);
    co_await beast::http::async_write(stream, response, net::use_awaitable);
    again = response.keep_alive();
  }
}

net::awaitable<void> listen(tcp::acceptor& acceptor, const Api& api) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(net::use_awaitable);
    net::co_spawn(acceptor.get_executor(), serve(std::move(socket), api), net::detached);
  }
}

int main(int argc, char** argv) try {
  const auto argument = [&](int i, auto value) {
    const std::string text = i < argc ? argv[i] : std::to_string(value);
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || read != end)
      throw std::invalid_argument(text + " is no such number");
    return value;
  };
  const auto port = argument(1, std::uint16_t{8080});
  const auto quota = sluice::Quota::per_second(argument(2, 100)).burst(argument(3, 50));

  sluice::Metrics metrics;
  sluice::ObservedStore store(sluice::make_memory_store(), metrics);
  const sluice::TokenBucket limiter{store, "api", quota};
  const Api api{limiter, metrics};

  net::io_context io;
  net::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](auto, int) { io.stop(); });
  tcp::acceptor acceptor(io, {net::ip::address_v4::loopback(), port});
  std::cout << "listening on " << acceptor.local_endpoint() << std::endl;
  net::co_spawn(io, listen(acceptor, api), net::detached);
  io.run();
} catch (const std::exception& error) {
  std::cerr << "http_server: " << error.what() << "\nusage: http_server [PORT [RATE [BURST]]]\n";
  return 1;
}
