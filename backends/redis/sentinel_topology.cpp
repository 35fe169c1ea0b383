#include "sentinel_topology.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;

constexpr const char* switch_channel = "+switch-master";

}  // namespace

SentinelTopology::SentinelTopology(const LinkContext& context, std::uint64_t seed)
    : Topology(context, seed, 1),
      group_(context.options.sentinel->master),
      login_(sentinel_login(context.options)),
      sentinels_(context.options.sentinel->sentinels),
      link_(add_link()),
      watch_(context.io, login_, context.resolve, ~seed,
             [this](Connection& connection) { return connect_watch(connection); }) {}

void SentinelTopology::start() {
  link_.open();
  if (!watching_) {
    watching_ = watch_.channels().watchers().subscribe(switch_channel, [this] { note_switch(); });
    watch_.channels().add(switch_channel);
  }
  watch_.update();
}

void SentinelTopology::stop() noexcept {
  Topology::stop();
  watch_.stop();
}

asio::awaitable<Errc> SentinelTopology::connect(Link& link) {
  Errc failure = Errc::not_connected;
  bool is_any_reached = false;
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    if (is_stopped()) co_return failure;
    const NamedMaster named = co_await ask(sentinel);
    is_any_reached = is_any_reached || named.address || !named.error.empty();
    if (!named.address) continue;
    note_master(*named.address);
    link.connection().set_target(*named.address);
    const bool is_ready = co_await link.connection().connect();
    if (is_ready && *master_ == *named.address) co_return Errc{};
    failure = link.connection().refusal();
    if (is_ready) link.connection().close();  // meanwhile another one has been named
  }
  if (is_any_reached || !master_) co_return failure;
  link.connection().set_target(*master_);
  const bool ready = co_await link.connection().connect();
  co_return ready ? Errc{} : link.connection().refusal();
}

/// Neither an address nor an error: the Sentinel cannot be reached.
asio::awaitable<NamedMaster> SentinelTopology::ask(RedisAddress sentinel) {
  Connection connection(context().io, login_, context().resolve, &context().journal);
  connection.set_target(sentinel);
  if (!co_await connection.connect()) co_return NamedMaster{};
  NamedMaster named = co_await ask_master(connection, group_);
  if (named.address) {
    learn(co_await ask_sentinels(connection, group_));
    put_first(sentinel);
  } else {
    context().journal.note_failure(RedisStep::discover, text_of(sentinel),
                                   named.error + " (" + group_ + ")", Errc::not_connected);
  }
  co_return named;
}

void SentinelTopology::put_first(const RedisAddress& sentinel) {
  const auto place = std::ranges::find(sentinels_, sentinel);
  if (place != sentinels_.end()) std::rotate(sentinels_.begin(), place, place + 1);
}

void SentinelTopology::learn(const std::vector<RedisAddress>& others) {
  for (const RedisAddress& other : others) {
    if (sentinels_.size() >= max_sentinels) return;
    if (std::ranges::find(sentinels_, other) == sentinels_.end()) sentinels_.push_back(other);
  }
}

void SentinelTopology::note_master(const RedisAddress& master) {
  if (master_ && *master_ != master) {
    context().journal.note_change(RedisEvent::Kind::switched, text_of(master));
  }
  master_ = master;
}

asio::awaitable<bool> SentinelTopology::connect_subscriber(Connection& connection) {
  if (!master_) co_return false;
  connection.set_target(*master_);
  co_return co_await connection.connect();
}

/// Another Sentinel each time, so that one that is down or knows nothing costs one attempt.
asio::awaitable<bool> SentinelTopology::connect_watch(Connection& connection) {
  connection.set_target(sentinels_[next_watched_++ % sentinels_.size()]);
  const bool is_ready = co_await connection.connect();
  if (is_ready) note_switch();  // one may have been missed meanwhile
  co_return is_ready;
}

void SentinelTopology::note_switch() {
  is_told_ = true;
  if (is_asking_ || is_stopped()) return;
  asio::co_spawn(context().io, leave_old_master(), asio::detached);
  is_asking_ = true;
}

asio::awaitable<void> SentinelTopology::leave_old_master() try {
  while (std::exchange(is_told_, false)) {
    for (const RedisAddress& sentinel : std::vector(sentinels_)) {
      const NamedMaster named = co_await ask(sentinel);
      if (is_stopped()) co_return;
      if (!named.address) continue;
      note_master(*named.address);
      if (*named.address == link_.target()) break;
      link_.leave("the Sentinels name another master: " + text_of(*named.address));
      break;
    }
    context().journal.tell();
  }
  is_asking_ = false;
} catch (const std::exception&) {
  is_asking_ = false;  // a switch that is missed is found by the end of the connection
}

}  // namespace sluice::redis_detail
