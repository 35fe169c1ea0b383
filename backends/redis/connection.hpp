// One connection to the server: the way to it, the login, and the bytes that arrive. What they mean
// is for those who use it. Threading: everything on the I/O thread, but for send().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <span>
#include <string>
#include <vector>

#include "reply_reader.hpp"
#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

class Connection {
 public:
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  using Socket = boost::asio::generic::stream_protocol::socket;

  /// `endpoints`: the addresses to try; none: those that the options name.
  /// REQUIRES: the context and the options outlive it.
  Connection(boost::asio::io_context& io, const RedisOptions& options,
             std::vector<Endpoint> endpoints);

  /// Tries one address after the other, each with a time of its own, and logs in.
  boost::asio::awaitable<bool> connect();
  /// Why the last attempt failed.
  [[nodiscard]] Errc refusal() const noexcept { return refusal_; }

  /// Ends the connection, also where a forked child holds it as well.
  void close() noexcept;
  /// close(), and no attempt succeeds any more.
  void stop() noexcept;

  /// Sends what the socket takes at once, and returns how much; 0 also if it fails.
  /// Any thread. REQUIRES: there is a connection, and nobody else sends or closes it meanwhile.
  [[nodiscard]] std::size_t send(std::string_view bytes) noexcept;

  [[nodiscard]] Socket& socket() noexcept { return socket_; }
  [[nodiscard]] ReplyReader& reader() noexcept { return reader_; }
  /// Where bytes that arrive are put before anybody reads them.
  [[nodiscard]] std::span<char> room() noexcept { return in_; }

 private:
  void watch_attempt();
  boost::asio::awaitable<bool> try_address(Endpoint endpoint);
  boost::asio::awaitable<std::vector<Endpoint>> find_endpoints();
  boost::asio::awaitable<bool> open(Endpoint endpoint);
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<ServerReply> ask(std::string command);
  void set_socket_options(bool tcp);

  const RedisOptions& options_;
  const std::vector<Endpoint> endpoints_;  // empty: the name is looked up each time
  Socket socket_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer watchdog_;  // of one attempt to connect
  ReplyReader reader_;
  std::vector<char> in_;
  Errc refusal_ = Errc::not_connected;  // of the present attempt to connect
  unsigned attempt_ = 0;                // to reach one address: tells late watchdogs apart
  bool stopped_ = false;
};

}  // namespace sluice::redis_detail
