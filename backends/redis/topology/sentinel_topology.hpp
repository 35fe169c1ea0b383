// SentinelTopology: the master of a group, as Sentinels name it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/topology/control.hpp"
#include "backends/redis/topology/topology.hpp"

namespace sluice::redis_detail {

/// Before each attempt to connect, the Sentinels are asked, since a restarted old master takes
/// itself for the master for several seconds. The server must take itself for the master as well;
/// if not, the next Sentinel is asked. If none can be reached, the last known master is tried: no
/// failover happens without them.
///
/// The store listens to one Sentinel, which must know a master, and is probed. When it announces a
/// switch, it is asked, and if it is left for another, which may know of a switch that was missed,
/// the first one that answers; a connection or an attempt at another server is left. What a
/// Sentinel was asked before the announcement is void, since it may not have heard of the switch.
/// While calls fail, all are asked, once a second at most: one may hang, have forgotten the group,
/// or be cut off from the others together with an old master. The master that most of them name is
/// used.
class SentinelTopology final : public Topology {
 public:
  SentinelTopology(const LinkContext& context, std::uint64_t seed);

  [[nodiscard]] Link& link_of(std::uint16_t) noexcept override { return link_; }
  void start() override;
  boost::asio::awaitable<Errc> connect(Link& link) override;
  boost::asio::awaitable<bool> connect_subscriber(Connection& connection) override;
  void note_failing(Link& link) override;
  void stop() noexcept override;

  /// Between two questions to all Sentinels while calls fail.
  static constexpr Span least_between_questions = std::chrono::seconds{1};

 private:
  boost::asio::awaitable<bool> connect_watch(Connection& connection);
  boost::asio::awaitable<NamedMaster> ask(RedisAddress sentinel);
  boost::asio::awaitable<std::optional<RedisAddress>> ask_first();
  boost::asio::awaitable<std::optional<RedisAddress>> ask_all();
  boost::asio::awaitable<void> follow_master();
  void ask_again();
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
  RedisAddress watched_{};  // the Sentinel that is listened to
  std::size_t next_watched_ = 0;
  std::size_t announced_ = 0;  // switches
  Time doubted_{};             // when all were asked last
  bool is_asking_ = false;     // follow_master() is running
  bool is_told_ = false;       // a switch was announced, or may have been missed, since it began
  bool is_announced_ = false;  // a switch was announced since it asked last
  bool is_failing_ = false;    // calls have failed since then
};

}  // namespace sluice::redis_detail
