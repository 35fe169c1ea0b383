// Connection: connects and logs in.
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>

#include "connection.hpp"
#include "protocol.hpp"
#include "server_version.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// The bytes of one read.
constexpr std::size_t read_bytes = 65'536;

/// Keepalive probes, in seconds, which detect half-open idle connections.
constexpr int probe_after = 10;
constexpr int probe_again_after = 5;

using ProbeAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
using ProbeAgainAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

Errc refusal_of(const ServerReply& reply) noexcept {
  return reply.kind == ServerReply::Kind::error ? error_of(reply.text) : Errc{};
}

/// The text of an invalid reply.
std::string nonsense(std::string_view bytes) {
  if (bytes.starts_with("\x15\x03")) return "the server speaks TLS, which is not supported";
  return "no reply of a Redis server: " + std::string(bytes.substr(0, bytes.find_first_of("\r\n")));
}

}  // namespace

Connection::Connection(asio::io_context& io, const RedisOptions& options, Resolve resolve,
                       Journal* journal)
    : options_(options),
      journal_(journal),
      endpoints_(io, options, std::move(resolve)),
      socket_(io),
      watchdog_(io),
      in_(read_bytes) {}

void Connection::close() noexcept {
  error_code ignored;
  // A forked child may have the socket as well: closing it here would not end the connection.
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
  endpoints_.stop();
}

void Connection::step(RedisStep step) {
  step_ = step;
  if (journal_ != nullptr) journal_->note_attempt(step, address_);
}

/// Records why the current step has failed. Returns false.
bool Connection::fail(std::string_view cause, Errc code) {
  if (journal_ != nullptr && !stopped_) journal_->note_failure(step_, address_, cause, code);
  return false;
}

bool Connection::fail(const error_code& error) {
  if (is_late_) return fail(no_answer_within(options_.connect_timeout));
  if (error == asio::error::eof) return fail("the server closed the connection");
  return fail(error.message());
}

bool Connection::refuse(std::string_view words, Errc code) {
  // No call was sent: none may fail with an error of Failure::unknown.
  const bool is_certain = make_error_code(code) == Failure::not_executed;
  if (is_certain) refusal_ = code;
  return fail(words, is_certain ? code : Errc::not_connected);
}

/// Starts a timeout of connect_timeout for the following steps. A watchdog that fires later, for an
/// older attempt, sees another number and does nothing.
void Connection::watch_attempt() {
  is_late_ = false;
  watchdog_.expires_after(options_.connect_timeout);
  watchdog_.async_wait([this, attempt = ++attempt_](error_code error) {
    if (error || attempt != attempt_) return;
    is_late_ = true;
    error_code ignored;
    socket_.close(ignored);
  });
}

asio::awaitable<bool> Connection::connect() {
  refusal_ = Errc::not_connected;
  bool ready = false;
  if (endpoints_.is_name()) {
    address_ = endpoints_.name();
    step(RedisStep::look_up);
  }
  const std::vector<Endpoint> endpoints = co_await endpoints_.list();
  if (!endpoints_.error().empty()) fail(endpoints_.error());
  for (const Endpoint& endpoint : endpoints) {
    if (journal_ != nullptr) journal_->tell();
    if (ready || stopped_) break;
    endpoint_ = endpoint;
    address_ = text_of(endpoint);
    watch_attempt();
    ready = co_await try_address();
    if (!ready) put_last();
  }
  ++attempt_;
  watchdog_.cancel();
  if (journal_ != nullptr) journal_->tell();
  co_return ready && !stopped_;
}

asio::awaitable<bool> Connection::try_address() {
  step(RedisStep::connect);
  bool ready = co_await open();
  if (ready) {
    step(RedisStep::login);
    reader_.reset();
    ready = co_await shake_hands();
  }
  if (ready && !socket_.is_open()) ready = fail(error_code());
  error_code ignored;
  if (!ready) socket_.close(ignored);
  co_return ready;
}

asio::awaitable<bool> Connection::open() {
  error_code error;
  socket_.close(error);
  // Not through Asio, because a program may fork and exec at any time: the flag must be set
  // atomically.
  const int fd = ::socket(endpoint_.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) co_return fail(error_code(errno, boost::system::system_category()));
  if (socket_.assign(endpoint_.protocol(), fd, error)) {
    ::close(fd);
    co_return fail(error);
  }
  if (socket_.non_blocking(true, error)) co_return fail(error);
  set_socket_options(endpoint_.protocol().family() != AF_UNIX);
  co_await socket_.async_connect(endpoint_, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(error);
  co_return true;
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

asio::awaitable<void> Connection::write(std::string command) {
  // The error is that of the next read: a server that rejects a client sends a reason, and closes.
  error_code ignored;
  co_await asio::async_write(socket_, asio::buffer(command),
                             asio::redirect_error(asio::use_awaitable, ignored));
  std::ranges::fill(command, '\0');  // it may hold a password
}

/// The received bytes; empty if the connection has failed.
asio::awaitable<std::string_view> Connection::read() {
  error_code error;
  const std::size_t bytes = co_await socket_.async_read_some(
      asio::buffer(in_), asio::redirect_error(asio::use_awaitable, error));
  if (error) fail(error);
  co_return std::string_view(in_.data(), error ? 0 : bytes);
}

/// Sends one command and returns its reply; `broken` if the attempt has failed.
asio::awaitable<ServerReply> Connection::ask(std::string command) {
  co_await write(std::move(command));
  for (;;) {
    const std::string_view bytes = co_await read();
    if (bytes.empty()) break;
    const bool sound = reader_.feed(bytes);
    const ServerReply reply = reader_.next();
    using Kind = ServerReply::Kind;
    const bool is_ours = reply.kind == Kind::error || (sound && reply.kind != Kind::integer);
    if (!is_ours) {
      fail(nonsense(bytes));
      break;
    }
    if (reply.kind != Kind::none) co_return reply;
  }
  co_return ServerReply{ServerReply::Kind::broken};
}

/// Logs in, one command at a time, so that a refused login cannot shift the replies to calls.
asio::awaitable<bool> Connection::shake_hands() {
  for (Greeting& greeting : make_authentication(options_)) {
    if (!co_await say(std::move(greeting))) co_return false;
  }
  if (!co_await check_version()) co_return false;
  for (Greeting& greeting : make_greetings(options_)) {
    if (!co_await say(std::move(greeting))) co_return false;
  }
  if (reader_.next().kind != ServerReply::Kind::none) co_return fail("a reply to nothing");
  co_return true;
}

asio::awaitable<bool> Connection::say(Greeting greeting) {
  if (step_ != greeting.step) step(greeting.step);
  const ServerReply reply = co_await ask(std::move(greeting.command));
  if (reply.kind == ServerReply::Kind::broken) co_return false;
  const Errc refusal = refusal_of(reply);
  if (greeting.fails_on(refusal, has_others())) co_return refuse(reply.text, refusal);
  co_return true;
}

/// Rejects a server whose version is too old for the scripts.
asio::awaitable<bool> Connection::check_version() {
  const Hello hello = co_await say_hello();
  if (hello.kind == Hello::Kind::nonsense) co_return false;
  if (hello.kind == Hello::Kind::map) co_return accept_version(hello.server, hello.version);
  if (hello.kind == Hello::Kind::other) co_return true;
  const Errc refusal = error_of(hello.error);
  if (refusal == Errc::too_many_clients) co_return refuse(hello.error, refusal);
  std::string info;  // a proxy, or older than 6.0, or HELLO is not permitted
  append_command(info, {"INFO", "server"});
  const ServerReply reply = co_await ask(std::move(info));
  if (reply.kind == ServerReply::Kind::broken) co_return false;
  if (reply.kind != ServerReply::Kind::string) co_return true;
  co_return accept_version("", version_in_info(reply.text));
}

/// `nonsense` if the attempt has failed. Views of hello_.
asio::awaitable<Hello> Connection::say_hello() {
  std::string command;
  append_command(command, {"HELLO", "2"});
  co_await write(std::move(command));
  hello_.clear();
  for (;;) {
    const std::string_view bytes = co_await read();
    if (bytes.empty()) co_return Hello{Hello::Kind::nonsense};
    hello_ += bytes;
    const Hello hello = read_hello(hello_);
    if (hello.kind == Hello::Kind::nonsense) fail(nonsense(hello_));
    if (hello.kind != Hello::Kind::incomplete) co_return hello;
  }
}

bool Connection::accept_version(std::string_view server, std::string_view version) {
  if (!is_too_old(version)) return true;
  return fail("the server is " + std::string(server.empty() ? "redis" : server) + " " +
              std::string(version) + ", which is older than 7.0");
}

}  // namespace sluice::redis_detail
