// A small blocking Redis client for tests: binary-safe, pipelined by hand. It exists so that tests
// look at a server by another way than the code under test.
// Threading: one client belongs to one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

namespace sluice::test {

struct RedisReply {
  enum class Type { nil, status, error, integer, string, array };
  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text;  // of a status, an error or a string
  std::vector<RedisReply> elements;

  [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
  [[nodiscard]] bool is_nil() const noexcept { return type == Type::nil; }
};

class RedisClient {
 public:
  /// Connects to a unix socket. Throws std::runtime_error, as every member does when the
  /// connection fails; an error reply is a reply.
  explicit RedisClient(const std::string& unix_socket);
  RedisClient(const std::string& host, std::uint16_t port);

  /// Sends one command and reads its reply.
  RedisReply operator()(std::initializer_list<std::string_view> arguments);
  RedisReply command(std::span<const std::string_view> arguments);

  /// Queues a command; read() then returns the replies in order.
  void append(std::span<const std::string_view> arguments);
  void append(std::initializer_list<std::string_view> arguments);
  RedisReply read();

  /// The server's TIME in microseconds.
  std::int64_t time_us();

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept;
  };
  void check() const;

  std::unique_ptr<redisContext, Close> context_;
};

}  // namespace sluice::test
