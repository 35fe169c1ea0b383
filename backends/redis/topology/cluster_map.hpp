// Which node of a Redis Cluster owns which slots. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/redis/protocol/array_reply.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// The slots from `first` to `last`, both included.
struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  RedisAddress master{};
};

/// In the order of the slots; slots without an owner are in no range.
struct ClusterMap {
  std::vector<SlotRange> ranges{};
  std::string error{};  // why the reply is no map; `ranges` is empty then
};

/// The most masters of a map.
constexpr std::size_t max_masters = 1024;

/// Parses the reply to CLUSTER SLOTS of the node `asked`, whose host is meant by a host that is
/// empty or null. Ranges of a node whose host is unknown ("?") are left out. A reply of which any
/// part is wrong is no map.
[[nodiscard]] ClusterMap read_cluster_map(const ReplyValue& slots, const RedisAddress& asked);

}  // namespace sluice::redis_detail
