// Stores on a real cluster. Threading: the fixture's.
#pragma once

#include "tests/redis/asking.hpp"
#include "tests/support/redis_cluster.hpp"

namespace sluice::test {

/// `patience`: of an attempt to connect, and with a server that does not answer.
inline RedisOptions cluster_options(const RedisCluster& cluster, Span patience = 20s) {
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = patience;
  options.stall_timeout = patience;
  for (const std::uint16_t port : cluster.ports()) options.cluster.push_back({"127.0.0.1", port});
  return options;
}

}  // namespace sluice::test
