// Replies of Sentinels, and of servers that are asked for their role. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/protocol/array_reply.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// An address, or why there is none.
struct NamedMaster {
  std::optional<RedisAddress> address{};
  std::string error{};
};

/// Parses the reply to SENTINEL GET-MASTER-ADDR-BY-NAME.
[[nodiscard]] NamedMaster read_master(const ReplyValue& reply);

/// A Sentinel, and the master that it names.
struct Vote {
  RedisAddress sentinel;
  RedisAddress master;
};

/// The vote for the master that most Sentinels name; of as many, not for the one in use. Null
/// without votes.
[[nodiscard]] const Vote* most_named(const std::vector<Vote>& votes, const RedisAddress& in_use);

/// The most Sentinels that read_sentinels() returns.
constexpr std::size_t max_sentinels = 64;

/// Parses the reply to SENTINEL SENTINELS: the other Sentinels, those that are known to be down
/// last. Rows without a valid address are skipped.
[[nodiscard]] std::vector<RedisAddress> read_sentinels(const ReplyValue& reply);

/// Parses the reply to ROLE: "master", "slave" or "sentinel". Empty if it is something else.
[[nodiscard]] std::string_view read_role(const ReplyValue& reply) noexcept;

}  // namespace sluice::redis_detail
