// SentinelTopology: the master of a group, as Sentinels name it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
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
/// The newest configuration counts: what a Sentinel says of an older epoch than the known one is
/// void, since it has not heard of a switch.
///
/// The store listens to one Sentinel, which must know a master, and is probed. When it announces a
/// switch, it is asked, and a connection or an attempt at another server is left. All are asked
/// when the store begins to listen to one, since a switch may have been missed, and while calls
/// fail, or none has answered, once a second at most: one may hang, have forgotten the group, or be
/// cut off from the others together with an old master. The newest answer is used, also if it is
/// older than what was known, since a group can be configured anew.
class SentinelTopology final : public Topology {
 public:
  SentinelTopology(const LinkContext& context, std::uint64_t seed);

  [[nodiscard]] Link& link_of(std::uint16_t) noexcept override { return link_; }
  void start() override;
  boost::asio::awaitable<Errc> connect(Link& link) override;
  boost::asio::awaitable<bool> connect_subscriber(Connection& connection) override;
  void note_failing(Link& link) override;
  void stop() noexcept override;

  /// Between two questions to all Sentinels while calls fail, or none answers.
  static constexpr Span least_between_questions = std::chrono::seconds{1};

 private:
  boost::asio::awaitable<bool> connect_watch(Connection& connection);
  boost::asio::awaitable<NamedMaster> ask(RedisAddress sentinel);
  boost::asio::awaitable<NamedMaster> ask_first();
  boost::asio::awaitable<NamedMaster> ask_all();
  boost::asio::awaitable<void> follow_master();
  void doubt();
  void ask_again();
  void note_switch();
  void put_first(const RedisAddress& sentinel);
  void learn(const std::vector<RedisAddress>& others);
  [[nodiscard]] bool is_current(const NamedMaster& named) const noexcept;
  void note_master(const NamedMaster& named);

  const std::string group_;
  const RedisOptions login_;             // of Sentinels
  std::vector<RedisAddress> sentinels_;  // the last good one first
  std::optional<RedisAddress> master_;   // the last one that was named
  std::uint64_t epoch_ = 0;              // of the configuration that names it
  Link& link_;
  Connection* subscriber_ = nullptr;  // of the channels of keys, once it has been connected
  Subscriber watch_;                  // for +switch-master
  std::unique_ptr<Subscription> watching_;
  boost::asio::steady_timer again_;
  RedisAddress watched_{};  // the Sentinel that is listened to
  std::size_t next_watched_ = 0;
  Time doubted_{};             // when all were to be asked last
  bool is_asking_ = false;     // follow_master() is running
  bool is_announced_ = false;  // a switch was announced since it asked last
  bool is_doubted_ = false;    // all are to be asked
};

}  // namespace sluice::redis_detail
