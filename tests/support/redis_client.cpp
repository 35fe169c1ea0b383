// RedisClient over hiredis' blocking context.
#include "tests/support/redis_client.hpp"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <csignal>
#include <stdexcept>

namespace sluice::test {
namespace {

constexpr timeval timeout{30, 0};  // a server of a test answers within this, also under a sanitizer

RedisReply convert(const redisReply& reply) {
  using Type = RedisReply::Type;
  RedisReply result;
  result.integer = reply.integer;
  if (reply.str != nullptr) result.text.assign(reply.str, reply.len);
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      result.type = Type::nil;
      break;
    case REDIS_REPLY_STATUS:
      result.type = Type::status;
      break;
    case REDIS_REPLY_ERROR:
      result.type = Type::error;
      break;
    case REDIS_REPLY_INTEGER:
      result.type = Type::integer;
      break;
    case REDIS_REPLY_STRING:
      result.type = Type::string;
      break;
    default:
      result.type = Type::array;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        result.elements.push_back(convert(*reply.element[i]));
      }
  }
  return result;
}

/// hiredis writes without MSG_NOSIGNAL, and tests kill the servers to which it writes. Only this
/// thread's signal is held back, and taken: the code under test must raise none.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    const timespec at_once{};
    ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

void RedisClient::Close::operator()(redisContext* context) const noexcept { redisFree(context); }

void RedisClient::check() const {
  if (context_ == nullptr) throw std::runtime_error("RedisClient: out of memory");
  if (context_->err != 0) throw std::runtime_error("RedisClient: " + std::string(context_->errstr));
}

RedisClient::RedisClient(const std::string& unix_socket)
    : context_(redisConnectUnixWithTimeout(unix_socket.c_str(), timeout)) {
  check();
  redisSetTimeout(context_.get(), timeout);
}

RedisClient::RedisClient(const std::string& host, std::uint16_t port)
    : context_(redisConnectWithTimeout(host.c_str(), port, timeout)) {
  check();
  redisSetTimeout(context_.get(), timeout);
}

RedisReply RedisClient::operator()(std::initializer_list<std::string_view> arguments) {
  return command({arguments.begin(), arguments.size()});
}

RedisReply RedisClient::command(std::span<const std::string_view> arguments) {
  append(arguments);
  return read();
}

void RedisClient::append(std::initializer_list<std::string_view> arguments) {
  append({arguments.begin(), arguments.size()});
}

void RedisClient::append(std::span<const std::string_view> arguments) {
  std::vector<const char*> data;
  std::vector<std::size_t> sizes;
  for (const std::string_view argument : arguments) {
    data.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(data.size()), data.data(), sizes.data());
  check();
}

RedisReply RedisClient::read() {
  const NoSigpipe guard;
  void* raw = nullptr;
  const int status = redisGetReply(context_.get(), &raw);
  const auto release = [](redisReply* reply) { freeReplyObject(reply); };
  const std::unique_ptr<redisReply, decltype(release)> reply(static_cast<redisReply*>(raw),
                                                             release);
  check();
  if (status != REDIS_OK || !reply) throw std::runtime_error("RedisClient: no reply");
  return convert(*reply);
}

std::int64_t RedisClient::time_us() {
  const RedisReply reply = (*this)({"TIME"});
  return std::stoll(reply.elements.at(0).text) * 1'000'000 + std::stoll(reply.elements.at(1).text);
}

}  // namespace sluice::test
