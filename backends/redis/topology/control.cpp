#include "backends/redis/topology/control.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/protocol/protocol.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;

/// One that hangs must not cost the calls their deadlines: there are others.
constexpr Span longest_question = std::chrono::milliseconds{300};

/// Until one that is listened to, and answers no probe, is left for another.
constexpr Span longest_silence = std::chrono::seconds{1};

constexpr const char* no_reply = "no reply";

}  // namespace

asio::awaitable<NamedMaster> ask_master(Connection& sentinel, const std::string& group) {
  // The epoch first: a switch between the two questions makes it too low, never too high.
  std::string command;
  append_command(command, {"SENTINEL", "MASTER", group});
  const ReplyValue* reply = co_await sentinel.request(std::move(command));
  const std::uint64_t epoch = reply == nullptr ? 0 : read_epoch(*reply);
  command.clear();
  append_command(command, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", group});
  reply = co_await sentinel.request(std::move(command));
  if (reply == nullptr) co_return NamedMaster{.error = no_reply};
  NamedMaster named = read_master(*reply);
  named.epoch = epoch;
  co_return named;
}

asio::awaitable<std::vector<RedisAddress>> ask_sentinels(Connection& sentinel,
                                                         const std::string& group) {
  std::string command;
  append_command(command, {"SENTINEL", "SENTINELS", group});
  const ReplyValue* const reply = co_await sentinel.request(std::move(command));
  co_return reply == nullptr ? std::vector<RedisAddress>() : read_sentinels(*reply);
}

asio::awaitable<ClusterMap> ask_cluster_map(Connection& node) {
  std::string command;
  append_command(command, {"CLUSTER", "SLOTS"});
  const ReplyValue* const reply = co_await node.request(std::move(command));
  co_return reply == nullptr ? ClusterMap{{}, no_reply} : read_cluster_map(*reply, node.target());
}

RedisOptions sentinel_login(const RedisOptions& options) {
  RedisOptions login = options;
  login.username = options.sentinel->username;
  login.password = options.sentinel->password;
  login.credentials = options.sentinel->credentials;
  login.tls = options.sentinel->tls;
  login.stall_timeout = std::min(options.stall_timeout, longest_silence);
  login.database = 0;
  login.connect_timeout = std::min(options.connect_timeout, longest_question);
  login.sentinel.reset();
  login.unix_socket.clear();
  return login;
}

}  // namespace sluice::redis_detail
