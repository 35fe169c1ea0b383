// Server: one Redis server, asked by plain commands, one pipeline at a time. The connection, its
// login and TLS are those of the Redis store. Threading: one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/connection/connection.hpp"

namespace sluice::tool {

/// For one answer: a server that is busy is still waited for.
inline constexpr Span longest_answer = std::chrono::seconds{10};

/// A server cannot be reached, or does not answer any more. Its text holds no password.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user may not do it. Its text has the server's reason.
class NotPermitted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Reply = redis_detail::ReplyValue;
using Words = std::vector<std::string_view>;

class Server {
 public:
  /// Connects. Throws Unreachable, as every member does.
  explicit Server(RedisOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Sends the commands at once, and returns the replies; an error is a reply.
  std::vector<Reply> pipeline(std::span<const Words> commands);
  Reply operator()(std::initializer_list<std::string_view> words);

  /// "127.0.0.1:6379".
  [[nodiscard]] const std::string& address() const noexcept { return connection_.address(); }
  [[nodiscard]] const redis_detail::Connection::Server& told() const noexcept {
    return connection_.server();
  }
  /// How long the last pipeline took.
  [[nodiscard]] Span took() const noexcept { return took_; }
  /// TIME, in microseconds. Throws NotPermitted as well.
  Word now();
  /// The same of a reply to TIME.
  [[nodiscard]] Word time_of(const Reply& reply) const;
  /// Throws NotPermitted if the reply to this command says so.
  void require_permitted(std::string_view command, const Reply& reply) const;

 private:
  template <class Task>
  void run(Task task);
  boost::asio::awaitable<void> exchange(std::string commands, std::size_t count,
                                        std::vector<Reply>& replies);

  RedisOptions options_;
  boost::asio::io_context io_;
  redis_detail::Names names_;
  redis_detail::Journal journal_;
  redis_detail::Connection connection_;
  Span took_{0};
  bool is_late_ = false;  // the last pipeline
};

/// The servers that hold the keys: one, or the masters of a cluster.
class Fleet {
 public:
  explicit Fleet(const RedisOptions& options);

  [[nodiscard]] std::span<const std::unique_ptr<Server>> servers() const noexcept {
    return servers_;
  }
  [[nodiscard]] Server& of(std::string_view key) const noexcept;

 private:
  void add_master(const RedisOptions& options);
  void add_nodes(const RedisOptions& options);

  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::size_t> slots_;  // the server of each; empty without a cluster
};

/// The numbers of the reply to TIME; 0 of another reply.
[[nodiscard]] Word time_in(const Reply& reply) noexcept;

/// True of a refusal that only more rights change.
[[nodiscard]] bool is_not_permitted(const Reply& reply) noexcept;

}  // namespace sluice::tool
