#include "backends/redis/topology/cluster_topology.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "backends/redis/protocol/protocol.hpp"
#include "backends/redis/protocol/redirection.hpp"
#include "backends/redis/topology/control.hpp"

namespace sluice::redis_detail {
namespace asio = boost::asio;

ClusterTopology::ClusterTopology(const LinkContext& context, std::uint64_t seed)
    : Topology(context, seed, max_masters), owned_(max_masters), pause_(context.io) {
  Link& first = add_link();
  first.connection().set_target(context.options.cluster.front());
  owned_[first.index()] = hash_slots;
  for (auto& owner : owners_) owner.store(&first, std::memory_order_relaxed);
}

void ClusterTopology::start() {
  is_following_ = false;  // an exception may have ended it
  want_map(Span{0});
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_needed(link(i))) link(i).open();
  }
}

asio::awaitable<Errc> ClusterTopology::connect(Link& link) {
  const bool ready = co_await link.connection().connect();
  co_return ready ? Errc{} : link.connection().refusal();
}

void ClusterTopology::note_ended(Link& link) {
  lost_ = link.target();
  want_map(least_after_loss);
}

/// A node that has lost the others answers CLUSTERDOWN, and keeps its connections.
void ClusterTopology::note_failing(Link& link) {
  lost_ = link.target();
  want_map(least_after_moved);
  move_waiting_calls(link);
}

/// A node is connected to for its first call, and for as long as it has slots.
bool ClusterTopology::is_needed(const Link& link) const noexcept {
  return link.has_calls() || (owned_[link.index()] > 0 && link.connections() > 0);
}

void ClusterTopology::want_map(Span least) {
  if (is_stopped()) return;
  const Time at = std::max(context().clock.now(), fetched_ + least);
  if (at < wanted_at_) {
    wanted_at_ = at;
    pause_.cancel();  // if follow_map() sleeps for longer
  }
  if (is_following_) return;
  asio::co_spawn(context().io, follow_map(), asio::detached);
  is_following_ = true;
}

asio::awaitable<void> ClusterTopology::follow_map() try {
  while (wanted_at_ != Time::max() && !is_stopped()) {
    co_await pause_before_fetch();
    fetched_ = context().clock.now();
    wanted_at_ = Time::max();
    co_await fetch_map();
    if (!is_stopped()) context().journal.tell();
  }
  is_following_ = false;
} catch (const std::exception&) {
  is_following_ = false;  // the next loss or redirection begins again
}

asio::awaitable<void> ClusterTopology::pause_before_fetch() {
  for (;;) {
    const Span rest = wanted_at_ - context().clock.now();
    if (rest <= Span{0} || is_stopped()) co_return;
    pause_.expires_after(std::min(rest, least_after_moved));
    boost::system::error_code ignored;
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

/// The nodes to ask, in turn; those without a connection last, and the last lost one at the end.
std::vector<RedisAddress> ClusterTopology::nodes() const {
  std::vector<RedisAddress> connected;
  std::vector<RedisAddress> others;
  const auto add = [&](const RedisAddress& node, bool is_connected) {
    const bool is_known = std::ranges::find(connected, node) != connected.end() ||
                          std::ranges::find(others, node) != others.end();
    if (!is_known && node != lost_) (is_connected ? connected : others).push_back(node);
  };
  for (std::size_t i = 0; i < size(); ++i) {
    if (owned_[i] > 0) add(link(i).target(), link(i).is_connected());
  }
  for (const RedisAddress& node : context().options.cluster) add(node, false);
  const auto turn = [this](std::vector<RedisAddress>& list) {
    if (list.empty()) return;
    const auto by = static_cast<std::ptrdiff_t>(next_node_ % list.size());
    std::rotate(list.begin(), list.begin() + by, list.end());
  };
  turn(connected);
  turn(others);
  connected.insert(connected.end(), others.begin(), others.end());
  if (!lost_.host.empty()) connected.push_back(lost_);
  return connected;
}

asio::awaitable<void> ClusterTopology::fetch_map() {
  const std::vector<RedisAddress> asked = nodes();
  ++next_node_;
  for (const RedisAddress& node : asked) {
    if (co_await fetch_map_from(node)) co_return;
    if (is_stopped()) co_return;
  }
}

asio::awaitable<bool> ClusterTopology::fetch_map_from(RedisAddress node) {
  Connection connection(context().io, context().options, context().names, &context().journal);
  connection.set_target(node);
  if (!co_await connection.connect()) co_return false;
  const ClusterMap map = co_await ask_cluster_map(connection);
  if (is_stopped()) co_return false;
  if (map.error.empty()) {
    apply(map, node);
    co_return true;
  }
  context().journal.note_failure(RedisStep::discover, text_of(node), map.error,
                                 Errc::not_connected);
  co_return false;
}

void ClusterTopology::set_owner(std::size_t slot, Link& link) noexcept {
  --owned_[owners_[slot].load()->index()];
  ++owned_[link.index()];
  owners_[slot].store(&link, std::memory_order_release);  // for link_of()
  is_changed_ = true;
}

void ClusterTopology::apply(const ClusterMap& map, const RedisAddress& source) {
  for (const SlotRange& range : map.ranges) {
    Link* const owner = link_to(range.master);
    if (owner == nullptr) continue;
    for (std::size_t slot = range.first; slot <= range.last; ++slot) {
      if (owners_[slot].load() != owner) set_owner(slot, *owner);
    }
  }
  for (std::size_t i = 0; i < size(); ++i) move_waiting_calls(link(i));
  if (!std::exchange(is_changed_, false)) return;
  context().journal.note_change(RedisEvent::Kind::map_changed, text_of(source));
  leave_former_nodes();
}

/// Moves the calls that wait for a former owner of their slots. Those behind ASK stay with a node
/// that is connected, since it has a part of their keys.
void ClusterTopology::move_waiting_calls(Link& from) {
  CallList moving;
  from.release_unsent(moving, [&](const Call& call) {
    return &link_of(call.slot) != &from && (!call.is_asking || !from.is_connected());
  });
  const bool is_any_moving = !moving.empty();
  while (!moving.empty()) {
    CallPtr call = moving.pop_front();
    link_of(call->slot).submit(std::move(call));
  }
  for (std::size_t i = 0; is_any_moving && i < size(); ++i) link(i).work();
}

void ClusterTopology::leave_former_nodes() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (owned_[i] == 0) link(i).leave("the node has no slots any more");
  }
}

/// A link whose node has left is used again. Null if there are too many nodes.
Link* ClusterTopology::link_to(const RedisAddress& node) {
  Link* idle = nullptr;
  for (std::size_t i = 0; i < size(); ++i) {
    if (link(i).target() == node) return &link(i);
    if (owned_[i] == 0 && link(i).is_idle()) idle = &link(i);
  }
  if (idle == nullptr && size() < max_masters) idle = &add_link();
  if (idle != nullptr) idle->connection().set_target(node);
  return idle;
}

void ClusterTopology::redirect(Link& from, CallList& calls) {
  while (!calls.empty()) send_on(from, calls.pop_front());
}

void ClusterTopology::send_on(Link& from, CallPtr call) {
  std::optional<Redirection> redirection = read_redirection(call->redirection);
  const Errc code = error_of(call->redirection);
  if (!redirection) return from.fail(std::move(call), code);
  from.count_redirection();
  if (redirection->node.host.empty()) redirection->node.host = from.target().host;
  Link* const target = link_to(redirection->node);
  if (target == nullptr) return from.fail(std::move(call), code);
  call->is_asking = redirection->is_ask;
  if (!redirection->is_ask) {
    if (owners_[call->slot].load() != target) set_owner(call->slot, *target);
    want_map(least_after_moved);
  }
  target->submit(std::move(call));
  if (target != &from) target->work();  // `from` writes after all that it has read
}

asio::awaitable<bool> ClusterTopology::connect_subscriber(Connection& connection) {
  const std::vector<RedisAddress> known = nodes();
  connection.set_target(known[next_node_++ % known.size()]);
  co_return co_await connection.connect();
}

}  // namespace sluice::redis_detail
