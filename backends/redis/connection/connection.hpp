// Connection: one connection to the server, its login, and the received bytes, which its users
// interpret. Threading: everything on the I/O thread, except send().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backends/redis/connection/endpoints.hpp"
#include "backends/redis/connection/journal.hpp"
#include "backends/redis/connection/login.hpp"
#include "backends/redis/connection/server_version.hpp"
#include "backends/redis/connection/transport.hpp"
#include "backends/redis/protocol/array_reply.hpp"
#include "backends/redis/protocol/reply_reader.hpp"
#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

class Connection {
 public:
  /// `options`: the address, the login and the timeouts; with `sentinel`, only a master is
  /// accepted. `journal`: may be null. REQUIRES: the context, the names and the journal outlive it.
  Connection(boost::asio::io_context& io, RedisOptions options, Names& names, Journal* journal);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Late watchdogs see the end of all attempts.
  ~Connection() { ++*attempts_; }

  /// The server of the next attempts, instead of that of the options.
  void set_target(const RedisAddress& target);
  [[nodiscard]] RedisAddress target() const { return {options_.host, options_.port}; }

  /// Tries the addresses in order, each with its own timeout, and logs in.
  boost::asio::awaitable<bool> connect();
  /// Why the last attempt failed.
  [[nodiscard]] Errc refusal() const noexcept { return refusal_; }
  /// The current address, or the last one.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// What the server said at the last login, and no more than that.
  struct Server {
    RedisRole role = RedisRole::unknown;
    std::string version{};
  };
  [[nodiscard]] const Server& server() const noexcept { return server_; }
  /// True if the server takes calls and PING, and ends the connection at other commands.
  [[nodiscard]] bool is_bare() const noexcept { return is_bare_; }
  /// The current address does not serve: it is tried last.
  void put_last() { endpoints_->put_last(endpoint_); }
  /// True if there are other addresses.
  [[nodiscard]] bool has_others() const noexcept { return endpoints_->count() > 1; }
  /// Sends one command and returns its reply, of any shape, which holds until the next one. Null if
  /// the connection has failed, or takes longer than connect_timeout. REQUIRES: connect() was
  /// successful, and nothing else is sent.
  boost::asio::awaitable<const ReplyValue*> request(std::string command);

  /// Ends the current attempt: the server is not wanted any more.
  void abandon() noexcept;
  /// Ends the connection, also if a forked child has it as well.
  void close() noexcept { transport_.close(); }
  /// close(), and fails all later attempts.
  void stop() noexcept;

  /// Sends as much as the socket takes at once, and returns its size; 0 also on failure. Any
  /// thread. REQUIRES: there is a connection, and no other thread sends on it or closes it.
  [[nodiscard]] Transport& transport() noexcept { return transport_; }
  [[nodiscard]] ReplyReader& reader() noexcept { return reader_; }

 private:
  void watch_attempt();
  boost::asio::awaitable<bool> try_address();
  boost::asio::awaitable<bool> try_once();
  boost::asio::awaitable<bool> open();
  boost::asio::awaitable<bool> secure();
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<bool> authenticate();
  boost::asio::awaitable<bool> check_server();
  boost::asio::awaitable<bool> check_version_by_info();
  bool accept_version(std::string_view server, std::string_view version);
  boost::asio::awaitable<bool> check_role(std::string role);
  boost::asio::awaitable<bool> say(Greeting greeting);
  boost::asio::awaitable<const ReplyValue*> exchange(std::string command);
  boost::asio::awaitable<ServerReply> ask(std::string command);
  boost::asio::awaitable<void> write(std::string command);
  boost::asio::awaitable<std::string_view> read();
  void step(RedisStep step);
  [[nodiscard]] std::string shown(std::string_view words) const;
  bool fail(std::string_view cause, Errc code = Errc::not_connected);
  bool fail(const boost::system::error_code& error);
  bool refuse(std::string_view words, Errc code);

  RedisOptions options_;
  Names& names_;
  Journal* const journal_;
  std::optional<Endpoints> endpoints_;
  Endpoint endpoint_;
  std::string address_;
  Server server_;
  Transport transport_;
  boost::asio::steady_timer watchdog_;  // for one attempt to connect
  ReplyReader reader_;
  ArrayReader array_;
  RedisStep step_ = RedisStep::connect;
  const RedisCredentials* login_ = nullptr;  // while the reply to it is awaited
  Errc refusal_ = Errc::not_connected;       // of the current attempt to connect
  // The number of the attempt, which late watchdogs know as another. It outlives this object, which
  // may end between the expiry of its watchdog and the handler's turn.
  const std::shared_ptr<unsigned> attempts_ = std::make_shared<unsigned>(0);
  bool is_late_ = false;         // the watchdog has ended the attempt
  bool is_abandoned_ = false;    // and so has abandon()
  bool is_bare_ = false;         // only calls and PING are sent
  bool is_at_hello_ = false;     // the next reply is that to HELLO
  bool ended_at_hello_ = false;  // the server has closed the connection instead
  bool stopped_ = false;
};

}  // namespace sluice::redis_detail
