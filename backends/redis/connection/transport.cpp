#include "backends/redis/connection/transport.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <new>

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Of one read.
constexpr std::size_t read_bytes = 65'536;

/// An idle connection that is half open is found out by probes, in seconds.
constexpr int probe_after = 10;
constexpr int probe_again_after = 5;

using ProbeAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
using ProbeAgainAfter = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

template <class Socket>
void set_tcp_options(Socket& socket, Span stall) {
  boost::system::error_code ignored;
  const auto stall_ms = std::chrono::ceil<std::chrono::milliseconds>(stall).count();
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(ProbeAfter(probe_after), ignored);
  socket.set_option(ProbeAgainAfter(probe_again_after), ignored);
  socket.set_option(UserTimeout(static_cast<int>(std::min<long>(stall_ms, 1'000'000))), ignored);
}

boost::system::error_code last_system_error() noexcept {
  return {errno, boost::system::system_category()};
}

}  // namespace

Transport::Transport(asio::io_context& io) : socket_(io), in_(read_bytes) {}

asio::awaitable<Transport::Error> Transport::connect(const Endpoint& endpoint, Span stall) {
  abort();
  // By hand, because a program may fork and exec at any time: the flag must be there from birth.
  const int family = endpoint.protocol().family();
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) co_return last_system_error();
  Error error;
  if (socket_.assign(endpoint.protocol(), fd, error)) {
    ::close(fd);
    co_return error;
  }
  if (socket_.non_blocking(true, error)) co_return error;
  if (family != AF_UNIX) set_tcp_options(socket_, stall);
  co_await socket_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

asio::awaitable<std::string> Transport::secure(const RedisTls& tls, const std::string& host) {
  tls_.emplace(tls, host);
  for (;;) {
    const TlsSession::State state = tls_->shake_hands();
    Error error;
    co_await write_all({}, error);  // also the alert that tells the server why not
    if (!tls_) co_return "the attempt was given up";
    if (state != TlsSession::State::ok) co_return why();
    if (tls_->is_ready()) co_return std::string();
    error = co_await arrive();
    if (error == asio::error::eof) co_return "the server closed the connection in the handshake";
    if (error) co_return error.message();
    tls_->arrive({in_.data(), arrived_});
  }
}

void Transport::close() noexcept {
  Error ignored;
  if (tls_ && socket_.is_open()) {
    tls_->end();
    write({}, ignored);
  }
  // A forked child may hold the socket as well: closing it here would not end the connection.
  socket_.shutdown(Socket::shutdown_both, ignored);
  abort();
}

void Transport::abort() noexcept {
  Error ignored;
  socket_.close(ignored);
  tls_.reset();
  sealed_.clear();
  sent_ = 0;
}

asio::awaitable<Transport::Error> Transport::arrive() {
  Error error;
  arrived_ = co_await socket_.async_read_some(asio::buffer(in_),
                                              asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

std::string_view Transport::take(Error& error) {
  error.clear();
  const std::string_view arrived(in_.data(), arrived_);
  if (!tls_) return arrived;
  plain_.clear();
  tls_->arrive(arrived);
  const TlsSession::State state = tls_->open(plain_);
  if (state != TlsSession::State::ok && plain_.empty()) error = asio::error::eof;
  return plain_;
}

std::size_t Transport::send(std::string_view bytes, Error& error) noexcept {
  error.clear();
  if (bytes.empty()) return 0;
  const auto sent =
      ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) {
    if (static_cast<std::size_t>(sent) < bytes.size()) error = asio::error::would_block;
    return static_cast<std::size_t>(sent);
  }
  error = last_system_error();
  if (error == asio::error::try_again || error == asio::error::interrupted) {
    error = asio::error::would_block;
  }
  return 0;
}

void Transport::note_sent(std::size_t bytes) noexcept {
  sent_ += bytes;
  if (has_unsent()) return;
  sealed_.clear();
  sent_ = 0;
}

/// True once nothing sealed is left.
bool Transport::send_sealed(Error& error) noexcept {
  error.clear();
  if (has_unsent()) note_sent(send(unsent(), error));
  return !has_unsent();
}

std::string_view Transport::seal(std::string_view bytes, Error& error) {
  if (tls_->seal(bytes) != TlsSession::State::ok) error = asio::error::broken_pipe;
  tls_->sealed(sealed_);
  return unsent();
}

std::size_t Transport::write(std::string_view bytes, Error& error) noexcept {
  if (!tls_) return send(bytes, error);
  try {
    tls_->sealed(sealed_);
    if (!send_sealed(error)) return 0;
    seal(bytes, error);
  } catch (const std::bad_alloc&) {
    error = asio::error::no_memory;
  }
  if (error) return 0;
  // From here on the bytes may reach the server: an error of the socket is that of the next call.
  static_cast<void>(send_sealed(error));
  if (error != asio::error::would_block) error.clear();
  return bytes.size();
}

void Transport::wait_writable(std::function<void(Error)> done) {
  socket_.async_wait(asio::socket_base::wait_write, std::move(done));
}

asio::awaitable<void> Transport::write_all(std::string_view bytes, Error& error) {
  if (tls_) bytes = seal(bytes, error);
  co_await asio::async_write(socket_, asio::buffer(bytes),
                             asio::redirect_error(asio::use_awaitable, error));
  if (tls_) note_sent(bytes.size());
}

void Transport::async_write_all(std::string_view bytes, std::function<void(Error)> done) {
  Error error;
  if (tls_) bytes = seal(bytes, error);
  asio::async_write(socket_, asio::buffer(bytes),
                    [this, size = bytes.size(), done = std::move(done)](Error failed, std::size_t) {
                      if (tls_) note_sent(size);
                      done(failed);
                    });
}

}  // namespace sluice::redis_detail
