// The errors by which a node of Redis Cluster names another node. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// "MOVED 3999 127.0.0.1:6381" or "ASK 3999 127.0.0.1:6381".
struct Redirection {
  bool is_ask = false;
  std::uint16_t slot = 0;
  RedisAddress node{};  // an empty host means the host that was asked
};

/// `error` is the line without its '-'. None if it is another error, or no redirection that can be
/// followed, such as one to an unknown node ("?"). An IPv6 address may stand in brackets.
[[nodiscard]] std::optional<Redirection> read_redirection(std::string_view error);

}  // namespace sluice::redis_detail
