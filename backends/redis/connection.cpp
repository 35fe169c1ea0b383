// From no connection to one that is logged in and answers.
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "connection.hpp"
#include "protocol.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Of one read.
constexpr std::size_t read_bytes = 65'536;

/// An idle connection that is half open is found out by probes, in seconds.
constexpr int probe_after = 10;
constexpr int probe_again_after = 5;

using ProbeAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
using ProbeAgainAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

/// One command of the login, and which refusals end the attempt.
struct Greeting {
  std::string command;
  enum class Needed { fully, if_permitted, to_be_served } needed;

  [[nodiscard]] bool fails_on(Errc refusal) const noexcept {
    if (refusal == Errc{}) return false;
    if (refusal == Errc::too_many_clients) return true;  // whatever was asked
    switch (needed) {
      case Needed::fully:
        return true;
      case Needed::if_permitted:
        return false;
      // A server that is up but not ready (LOADING, MASTERDOWN) answers each call for itself.
      case Needed::to_be_served:
        return refusal == Errc::no_auth;
    }
    return true;
  }
};

Greeting greet(std::initializer_list<std::string_view> words, Greeting::Needed needed) {
  Greeting greeting{{}, needed};
  append_command(greeting.command, words);
  return greeting;
}

std::vector<Greeting> make_greetings(const RedisOptions& options) {
  using enum Greeting::Needed;
  std::vector<Greeting> greetings;
  const std::string_view password = options.password.reveal();
  if (!options.username.empty()) {
    greetings.push_back(greet({"AUTH", options.username, password}, fully));
  } else if (!password.empty()) {
    greetings.push_back(greet({"AUTH", password}, fully));
  }
  if (options.database != 0) {
    greetings.push_back(greet({"SELECT", std::to_string(options.database)}, fully));
  }
  if (!options.client_name.empty()) {
    greetings.push_back(greet({"CLIENT", "SETNAME", options.client_name}, if_permitted));
  }
  greetings.push_back(greet({"PING"}, to_be_served));
  return greetings;
}

Errc refusal_of(const ServerReply& reply) noexcept {
  return reply.kind == ServerReply::Kind::error ? error_of(reply.text) : Errc{};
}

/// The addresses that need no look-up.
std::vector<Connection::Endpoint> known_endpoints(const RedisOptions& options) {
  if (!options.unix_socket.empty()) {
    return {asio::local::stream_protocol::endpoint(options.unix_socket)};
  }
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error) return {};
  return {tcp::endpoint(address, options.port)};
}

}  // namespace

Connection::Connection(asio::io_context& io, const RedisOptions& options,
                       std::vector<Endpoint> endpoints)
    : options_(options),
      endpoints_(endpoints.empty() ? known_endpoints(options) : std::move(endpoints)),
      socket_(io),
      resolver_(io),
      watchdog_(io),
      in_(read_bytes) {}

void Connection::close() noexcept {
  error_code ignored;
  // A forked child may hold the socket as well: closing it here would not end the connection.
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

std::size_t Connection::send(std::string_view bytes) noexcept {
  const auto sent =
      ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

void Connection::stop() noexcept {
  stopped_ = true;
  close();
}

/// Gives what follows connect_timeout from now. A watchdog that comes when the next one is set, or
/// when there is nothing to watch any more, finds another number and does nothing.
void Connection::watch_attempt() {
  watchdog_.expires_after(options_.connect_timeout);
  watchdog_.async_wait([this, attempt = ++attempt_](error_code error) {
    if (error || attempt != attempt_) return;
    error_code ignored;
    socket_.close(ignored);
    resolver_.cancel();  // last: it may throw
  });
}

/// Tries one address after the other, each with a time of its own.
asio::awaitable<bool> Connection::connect() {
  refusal_ = Errc::not_connected;
  bool ready = false;
  watch_attempt();
  const std::vector<Endpoint> endpoints = co_await find_endpoints();
  for (const Endpoint& endpoint : endpoints) {
    if (ready || stopped_) break;
    watch_attempt();
    ready = co_await try_address(endpoint);
  }
  ++attempt_;
  watchdog_.cancel();
  co_return ready;
}

asio::awaitable<bool> Connection::try_address(Endpoint endpoint) {
  bool ready = co_await open(endpoint);
  if (ready) {
    reader_.reset();
    ready = co_await shake_hands();
  }
  ready = ready && !stopped_ && socket_.is_open();
  error_code ignored;
  if (!ready) socket_.close(ignored);
  co_return ready;
}

asio::awaitable<std::vector<Connection::Endpoint>> Connection::find_endpoints() {
  if (!endpoints_.empty()) co_return endpoints_;
  error_code error;
  const auto found =
      co_await resolver_.async_resolve(options_.host, std::to_string(options_.port),
                                       asio::redirect_error(asio::use_awaitable, error));
  std::vector<Endpoint> endpoints;
  if (!error) {
    for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
  }
  co_return endpoints;
}

asio::awaitable<bool> Connection::open(Endpoint endpoint) {
  error_code error;
  socket_.close(error);
  // By hand, because a program may fork and exec at any time: the flag must be there from birth.
  const int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) co_return false;
  if (socket_.assign(endpoint.protocol(), fd, error)) {
    ::close(fd);
    co_return false;
  }
  if (socket_.non_blocking(true, error)) co_return false;
  set_socket_options(endpoint.protocol().family() != AF_UNIX);
  co_await socket_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

void Connection::set_socket_options(bool is_tcp) {
  if (!is_tcp) return;
  error_code ignored;
  const auto stall_ms =
      std::chrono::ceil<std::chrono::milliseconds>(options_.stall_timeout).count();
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.set_option(ProbeAfter(probe_after), ignored);
  socket_.set_option(ProbeAgainAfter(probe_again_after), ignored);
  socket_.set_option(UserTimeout(static_cast<int>(std::min<long>(stall_ms, 1'000'000))), ignored);
}

/// Sends one command and waits for its reply; `broken` if the connection failed or made no sense.
asio::awaitable<ServerReply> Connection::ask(std::string command) {
  error_code error;
  co_await asio::async_write(socket_, asio::buffer(command),
                             asio::redirect_error(asio::use_awaitable, error));
  std::ranges::fill(command, '\0');  // it may hold a password
  // Also after a failed write: a server that turns a client away says why, and closes.
  bool sound = true;
  for (;;) {
    const ServerReply reply = reader_.next();
    if (reply.kind != ServerReply::Kind::none) co_return reply;
    if (!sound) break;
    const std::size_t bytes = co_await socket_.async_read_some(
        asio::buffer(in_), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    sound = reader_.feed({in_.data(), bytes});
  }
  co_return ServerReply{ServerReply::Kind::broken};
}

/// Logs in, one command at a time, so that a refused login cannot shift the replies to calls.
asio::awaitable<bool> Connection::shake_hands() {
  std::vector<Greeting> greetings = make_greetings(options_);
  for (Greeting& greeting : greetings) {
    const ServerReply reply = co_await ask(std::move(greeting.command));
    using Kind = ServerReply::Kind;
    if (reply.kind == Kind::broken || reply.kind == Kind::integer) co_return false;
    if (const Errc refusal = refusal_of(reply); greeting.fails_on(refusal)) {
      // No call was sent: none may end in an error that leaves open whether it was.
      const bool is_certain = make_error_code(refusal) == Failure::not_executed;
      if (is_certain) refusal_ = refusal;
      co_return false;
    }
  }
  co_return reader_.next().kind == ServerReply::Kind::none;
}

}  // namespace sluice::redis_detail
