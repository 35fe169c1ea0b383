// The bytes of one connection: a socket, plain or with TLS over it.
// Threading: connect(), secure(), arrive() and the asynchronous writes belong to the I/O thread.
// take() and write() belong to whoever holds the lock of the connection, since both use the TLS
// session; close() holds it too, or comes while nobody writes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/connection/look_up.hpp"
#include "backends/redis/connection/tls_session.hpp"
#include "sluice/time.hpp"

namespace sluice::redis_detail {

class Transport {
 public:
  using Error = boost::system::error_code;

  explicit Transport(boost::asio::io_context& io);

  /// Connects the socket. `stall`: how long TCP tries to deliver before it gives a connection up.
  boost::asio::awaitable<Error> connect(const Endpoint& endpoint, Span stall);
  /// Makes it a TLS connection to `host`. Returns why not, or nothing. Throws what TlsSession does.
  boost::asio::awaitable<std::string> secure(const RedisTls& tls, const std::string& host);
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// Ends the connection, also where a forked child holds the socket as well.
  void close() noexcept;
  /// Gives the socket up in the middle of an attempt.
  void abort() noexcept;

  /// Waits for bytes from the network.
  boost::asio::awaitable<Error> arrive();
  /// What has arrived; empty if that was a part of a TLS record. Holds until the next arrive().
  /// `error`: eof if the server has ended the TLS session; why() says more. May throw
  /// std::bad_alloc.
  [[nodiscard]] std::string_view take(Error& error);

  /// Sends what the socket takes at once, and returns how much; would_block if that was less. With
  /// TLS, bytes count as taken once they are sealed, and no more are taken while has_unsent().
  std::size_t write(std::string_view bytes, Error& error) noexcept;
  /// Sealed bytes wait for the socket: write() sends them, also without any bytes of its own.
  [[nodiscard]] bool has_unsent() const noexcept { return sent_ < sealed_.size(); }
  /// Calls `done` when the socket takes bytes again.
  void wait_writable(std::function<void(Error)> done);
  /// Sends all of it. REQUIRES: `bytes` live until then, and nothing else is written meanwhile.
  boost::asio::awaitable<void> write_all(std::string_view bytes, Error& error);
  void async_write_all(std::string_view bytes, std::function<void(Error)> done);

  /// What a failed TLS session said last; empty for a plain connection.
  [[nodiscard]] std::string why() const { return tls_ ? tls_->error() : std::string(); }

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;

  [[nodiscard]] std::string_view unsent() const noexcept {
    return std::string_view(sealed_).substr(sent_);
  }
  void note_sent(std::size_t bytes) noexcept;
  std::size_t send(std::string_view bytes, Error& error) noexcept;
  [[nodiscard]] bool send_sealed(Error& error) noexcept;
  /// What goes over the wire for `bytes`.
  std::string_view seal(std::string_view bytes, Error& error);

  Socket socket_;
  std::vector<char> in_;
  std::size_t arrived_ = 0;  // of in_
  std::optional<TlsSession> tls_;
  std::string plain_;     // what take() returned last
  std::string sealed_;    // for the network
  std::size_t sent_ = 0;  // of sealed_
};

}  // namespace sluice::redis_detail
