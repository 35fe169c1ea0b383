// SentinelTopology: the master of a group, as Sentinels name it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control.hpp"
#include "subscriber.hpp"
#include "topology.hpp"

namespace sluice::redis_detail {

/// Before each attempt to connect, the Sentinels are asked, since a restarted old master takes
/// itself for the master for several seconds. The server must take itself for the master as well;
/// if not, the next Sentinel is asked. If none can be reached, the last known master is tried: no
/// failover happens without them. When a Sentinel announces a switch, they are asked again, and a
/// connection to another server is left.
class SentinelTopology final : public Topology {
 public:
  SentinelTopology(const LinkContext& context, std::uint64_t seed);

  [[nodiscard]] Link& link_of(std::uint16_t) noexcept override { return link_; }
  void start() override;
  boost::asio::awaitable<Errc> connect(Link& link) override;
  boost::asio::awaitable<bool> connect_subscriber(Connection& connection) override;
  void stop() noexcept override;

 private:
  boost::asio::awaitable<bool> connect_watch(Connection& connection);
  boost::asio::awaitable<NamedMaster> ask(RedisAddress sentinel);
  boost::asio::awaitable<void> leave_old_master();
  void note_switch();
  void put_first(const RedisAddress& sentinel);
  void learn(const std::vector<RedisAddress>& others);
  void note_master(const RedisAddress& master);

  const std::string group_;
  const RedisOptions login_;             // of Sentinels
  std::vector<RedisAddress> sentinels_;  // the last good one first
  std::optional<RedisAddress> master_;   // the last one that was named
  Link& link_;
  Subscriber watch_;  // for +switch-master
  std::unique_ptr<Subscription> watching_;
  std::size_t next_watched_ = 0;
  bool is_asking_ = false;  // leave_old_master() is running
  bool is_told_ = false;    // a switch was announced since it began
};

}  // namespace sluice::redis_detail
