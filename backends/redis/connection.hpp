// One connection to the server: the way to it, the login, and the bytes that arrive. What they mean
// is for those who use it. Threading: everything on the I/O thread, but for send().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "endpoints.hpp"
#include "journal.hpp"
#include "login.hpp"
#include "reply_reader.hpp"
#include "server_version.hpp"
#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

class Connection {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  /// `resolve`: looks names up in the place of the system. `journal`: may be null.
  /// REQUIRES: the context, the options and the journal outlive it.
  Connection(boost::asio::io_context& io, const RedisOptions& options, Resolve resolve,
             Journal* journal);

  /// Tries one address after the other, each with a time of its own, and logs in.
  boost::asio::awaitable<bool> connect();
  /// Why the last attempt failed.
  [[nodiscard]] Errc refusal() const noexcept { return refusal_; }
  /// The address in use, or the last one that was.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// The address in use does not serve: it is the last one that is tried.
  void put_last() { endpoints_.put_last(endpoint_); }
  /// True if there are addresses beside the one in use.
  [[nodiscard]] bool has_others() const noexcept { return endpoints_.count() > 1; }

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
  boost::asio::awaitable<bool> try_address();
  boost::asio::awaitable<bool> open();
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<bool> check_version();
  bool accept_version(std::string_view server, std::string_view version);
  boost::asio::awaitable<bool> say(Greeting greeting);
  boost::asio::awaitable<Hello> say_hello();
  boost::asio::awaitable<ServerReply> ask(std::string command);
  boost::asio::awaitable<void> write(std::string command);
  boost::asio::awaitable<std::string_view> read();
  void set_socket_options(bool tcp);
  void step(RedisStep step);
  bool fail(std::string_view cause, Errc code = Errc::not_connected);
  bool fail(const boost::system::error_code& error);
  bool refuse(std::string_view words, Errc code);

  const RedisOptions& options_;
  Journal* const journal_;
  Endpoints endpoints_;
  Endpoint endpoint_;
  std::string address_;
  Socket socket_;
  boost::asio::steady_timer watchdog_;  // of one attempt to connect
  ReplyReader reader_;
  std::vector<char> in_;
  std::string hello_;
  RedisStep step_ = RedisStep::connect;
  Errc refusal_ = Errc::not_connected;  // of the present attempt to connect
  unsigned attempt_ = 0;                // to reach one address: tells late watchdogs apart
  bool is_late_ = false;                // the watchdog has ended the attempt
  bool stopped_ = false;
};

}  // namespace sluice::redis_detail
