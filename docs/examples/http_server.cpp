// An HTTP server that limits each API key by its tier, and answers 429 with headers that say when
// to come back. A client that sends "Prefer: wait=5" waits up to 5 s for its turn instead.
// Prometheus finds the metrics under /metrics, and people who waits under /waiting.
//
//     http_server [PORT [RATE [BURST]]]      on 127.0.0.1; port 0 takes a free one; Ctrl-C ends it
#include <sluice/adapters/beast.hpp>
#include <sluice/asio/acquire.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <variant>

namespace net = boost::asio;
namespace beast = boost::beast;
using net::ip::tcp;
using Request = beast::http::request<beast::http::string_body>;
using Response = beast::http::response<beast::http::string_body>;

Response page(const Request& request, std::string_view type, std::string body) {
  Response response(beast::http::status::ok, request.version());
  response.set(beast::http::field::content_type, type);
  response.keep_alive(request.keep_alive());
  response.body() = std::move(body);
  response.prepare_payload();
  if (request.method() == beast::http::verb::head) response.body().clear();  // the length stays
  return response;
}

/// What is limited.
struct Api {
  const sluice::http::RequestLimit<sluice::TokenBucket>& limit;
  const sluice::Metrics& metrics;

  net::awaitable<Response> answer(const Request& request) const {
    if (request.target() == "/metrics") co_return metrics_page(request);
    if (request.target() == "/waiting") co_return waiting_page(request);
    const std::string key = request["X-Api-Key"].empty() ? "anonymous" : request["X-Api-Key"];
    const auto admission = co_await admit(key, request["Prefer"]);
    if (!admission) co_return sluice::http::refusal(request, admission);
    Response response = page(request, "text/plain", "hello\n");
    sluice::http::set_headers(response, admission);
    co_return response;
  }

  net::awaitable<sluice::http::Admission> admit(const std::string& key,
                                                std::string_view prefer) const {
    constexpr std::string_view wait = "wait=";  // RFC 7240
    int seconds = 0;
    if (prefer.starts_with(wait)) {
      std::from_chars(prefer.data() + wait.size(), prefer.data() + prefer.size(), seconds);
    }
    if (seconds <= 0) co_return co_await sluice::http::async_admit(limit, key);
    const auto [error, grant] = co_await sluice::asio::async_acquire(
        limit.limiter(), key, 1, std::chrono::seconds{std::min(seconds, 60)},
        net::as_tuple(net::use_awaitable));
    co_return limit.answer(key, grant, error);
  }

  Response metrics_page(const Request& request) const {
    using Format = sluice::Metrics::Format;
    const auto accepted = request[beast::http::field::accept];
    const bool is_open = accepted.find("application/openmetrics-text") != accepted.npos;
    const Format format = is_open ? Format::openmetrics : Format::prometheus;
    return page(request, sluice::Metrics::content_type(format), metrics.text(format));
  }

  Response waiting_page(const Request& request) const {
    std::ostringstream lines;
    for (const auto& call : sluice::diagnose(limit.limiter())) lines << call << '\n';
    return page(request, "text/plain", lines.str());
  }
};

/// Ends when the client closes the connection. One that sends its next request is not watched.
net::awaitable<void> disconnected(tcp::socket& socket) {
  co_await socket.async_wait(tcp::socket::wait_read, net::use_awaitable);
  char next = 0;
  boost::system::error_code error;
  socket.receive(net::buffer(&next, 1), tcp::socket::message_peek, error);
  if (error) co_return;
  net::steady_timer never(socket.get_executor(), net::steady_timer::time_point::max());
  co_await never.async_wait(net::use_awaitable);
}

/// One connection. A client that disconnects leaves the queue in which it waits.
net::awaitable<void> serve(tcp::socket socket, const Api& api) {
  using namespace net::experimental::awaitable_operators;
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  for (bool again = true; again;) {
    stream.expires_after(std::chrono::seconds{30});
    Request request;
    co_await beast::http::async_read(stream, buffer, request, net::use_awaitable);
    const auto answer = co_await (api.answer(request) || disconnected(stream.socket()));
    if (answer.index() != 0) co_return;
    const Response& response = std::get<Response>(answer);
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
  const int rate = argument(2, 100);
  const int burst = argument(3, 50);
  const auto quota = sluice::Quota::per_second(rate).burst(burst);

  sluice::Metrics metrics;
  sluice::ObservedStore store(sluice::make_memory_store(), metrics);
  sluice::LimitList list(quota);
  list.tier("gold", sluice::Quota::per_second(10 * rate).burst(10 * burst)).assign("alice", "gold");
  const auto table = std::make_shared<sluice::QuotaTable>(list);
  const sluice::http::RequestLimit limit(sluice::TokenBucket(store, "api", table));
  const Api api{limit, metrics};

  net::io_context io;  // made last: calls that wait in it leave the queues of the limit at its end
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
