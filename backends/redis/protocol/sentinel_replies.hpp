// Replies of Sentinels, and of servers that are asked for their role. Pure functions.
#pragma once

#include <cstdint>
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
  /// Of the configuration that names it: each failover counts it up. 0 if the Sentinel did not say.
  std::uint64_t epoch = 0;
};

/// Parses the reply to SENTINEL GET-MASTER-ADDR-BY-NAME.
[[nodiscard]] NamedMaster read_master(const ReplyValue& reply);

/// Parses the reply to SENTINEL MASTER: its `config-epoch`, 0 if it has none.
[[nodiscard]] std::uint64_t read_epoch(const ReplyValue& reply) noexcept;

/// A Sentinel, and the master that it names.
struct Vote {
  RedisAddress sentinel;
  RedisAddress master;
  std::uint64_t epoch = 0;
};

/// A vote of the newest epoch; of these, for the master that most name; of as many, not for the one
/// in use. Null without votes.
[[nodiscard]] const Vote* newest(const std::vector<Vote>& votes, const RedisAddress& in_use);

/// The most Sentinels that read_sentinels() returns.
constexpr std::size_t max_sentinels = 64;

/// Parses the reply to SENTINEL SENTINELS: the other Sentinels, those that are known to be down
/// last. Rows without a valid address are skipped.
[[nodiscard]] std::vector<RedisAddress> read_sentinels(const ReplyValue& reply);

/// Parses the reply to ROLE: "master", "slave" or "sentinel". Empty if it is something else.
[[nodiscard]] std::string_view read_role(const ReplyValue& reply) noexcept;

}  // namespace sluice::redis_detail
