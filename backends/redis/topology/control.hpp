// Control: the questions about the servers themselves, each on a connection that asks nothing else.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "backends/redis/connection/connection.hpp"
#include "backends/redis/protocol/sentinel_replies.hpp"
#include "backends/redis/topology/cluster_map.hpp"

namespace sluice::redis_detail {

// REQUIRES: the connection is made. A failed one gives an error.

/// Asks a Sentinel for the master of a group.
boost::asio::awaitable<NamedMaster> ask_master(Connection& sentinel, const std::string& group);
/// Asks a Sentinel for the other Sentinels of a group; none if it does not tell.
boost::asio::awaitable<std::vector<RedisAddress>> ask_sentinels(Connection& sentinel,
                                                                const std::string& group);
/// Asks a node of a cluster which nodes have which slots.
boost::asio::awaitable<ClusterMap> ask_cluster_map(Connection& node);

/// The options of a connection to a Sentinel: its own login, and little patience.
[[nodiscard]] RedisOptions sentinel_login(const RedisOptions& options);

}  // namespace sluice::redis_detail
