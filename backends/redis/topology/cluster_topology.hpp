// ClusterTopology: the nodes of a Redis Cluster, and which of them has which slots.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <vector>

#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/topology/cluster_map.hpp"
#include "backends/redis/topology/topology.hpp"

namespace sluice::redis_detail {

/// The table of slots begins with the first of the configured nodes for every slot, whose answers
/// correct it, and follows the map of the cluster (CLUSTER SLOTS), which is fetched
/// - at the start, and after each lost connection and failed attempt, from another node;
/// - after MOVED, and while a node cannot decide its calls, once a second at most.
/// A call goes to the node of its slot. MOVED sends it on, and its slot with it; ASK sends only the
/// call on, to a node that stays connected until the map changes. A slot without an owner in a new
/// map keeps its last one. Calls that wait for a node that has lost their slots move to the new
/// owner.
class ClusterTopology final : public Topology {
 public:
  ClusterTopology(const LinkContext& context, std::uint64_t seed);

  [[nodiscard]] Link& link_of(std::uint16_t slot) noexcept override {
    return *owners_[slot].load(std::memory_order_acquire);  // what set_owner() has released
  }
  [[nodiscard]] bool is_serving(const Link& link) const noexcept override {
    return owned_[link.index()].load() > 0;
  }
  void start() override;
  boost::asio::awaitable<Errc> connect(Link& link) override;
  void note_ended(Link& link) override;
  void note_failing(Link& link) override;
  [[nodiscard]] bool is_needed(const Link& link) const noexcept override;
  void redirect(Link& from, CallList& calls) override;
  boost::asio::awaitable<bool> connect_subscriber(Connection& connection) override;

  /// Between two fetches of the map, after a lost connection and after MOVED.
  static constexpr Span least_after_loss = std::chrono::milliseconds{50};
  static constexpr Span least_after_moved = std::chrono::seconds{1};

 private:
  void want_map(Span least);
  boost::asio::awaitable<void> follow_map();
  boost::asio::awaitable<void> pause_before_fetch();
  boost::asio::awaitable<void> fetch_map();
  boost::asio::awaitable<bool> fetch_map_from(RedisAddress node);
  [[nodiscard]] std::vector<RedisAddress> nodes() const;
  void apply(const ClusterMap& map, const RedisAddress& source);
  void set_owner(std::size_t slot, Link& link) noexcept;
  void move_waiting_calls(Link& from);
  void leave_former_nodes();
  Link* link_to(const RedisAddress& node);
  void send_on(Link& from, CallPtr call);

  std::array<std::atomic<Link*>, hash_slots> owners_;
  std::vector<std::atomic<std::size_t>> owned_;  // the number of slots of each link
  RedisAddress lost_{};                          // the node of the last loss: it is asked last
  boost::asio::steady_timer pause_;
  Time fetched_{};                // when the last fetch began
  Time wanted_at_ = Time::max();  // when the next one begins
  std::size_t next_node_ = 0;     // to ask, and to subscribe at
  bool is_following_ = false;     // follow_map() is running
  bool is_changed_ = false;       // slots have moved since the last map
};

}  // namespace sluice::redis_detail
