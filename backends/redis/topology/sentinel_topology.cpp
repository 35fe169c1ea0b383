#include "backends/redis/topology/sentinel_topology.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;

constexpr const char* switch_channel = "+switch-master";

/// Switches that one attempt to connect follows.
constexpr std::size_t most_switches = 3;

}  // namespace

SentinelTopology::SentinelTopology(const LinkContext& context, std::uint64_t seed)
    : Topology(context, seed, 1),
      group_(context.options.sentinel->master),
      login_(sentinel_login(context.options)),
      sentinels_(context.options.sentinel->sentinels),
      link_(add_link()),
      watch_(context.io, login_, context.names, ~seed,
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
  std::size_t switches = 0;
  std::vector<RedisAddress> asked = sentinels_;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (is_stopped()) co_return failure;
    const std::size_t announced = announced_;
    const NamedMaster named = co_await ask(asked[i]);
    is_any_reached = is_any_reached || named.address || !named.error.empty();
    if (named.address) {
      note_master(*named.address);
      link.connection().set_target(*named.address);
      const bool is_ready = co_await link.connection().connect();
      if (is_ready && *master_ == *named.address && announced == announced_) co_return Errc{};
      failure = link.connection().refusal();
      if (is_ready) link.connection().close();
    }
    // Meanwhile another one may have been named or announced, by the Sentinel that is first now.
    const bool is_switched = named.address && *master_ != *named.address;
    if (!is_switched && announced == announced_) continue;
    if (++switches > most_switches) continue;
    asked = sentinels_;
    i = ~std::size_t{0};
  }
  if (is_any_reached || !master_) co_return failure;
  link.connection().set_target(*master_);
  const bool ready = co_await link.connection().connect();
  co_return ready ? Errc{} : link.connection().refusal();
}

/// Neither an address nor an error: the Sentinel cannot be reached, or it may not have heard of a
/// switch that was announced meanwhile.
asio::awaitable<NamedMaster> SentinelTopology::ask(RedisAddress sentinel) {
  const std::size_t announced = announced_;
  Connection connection(context().io, login_, context().names, &context().journal);
  connection.set_target(sentinel);
  if (!co_await connection.connect()) co_return NamedMaster{};
  NamedMaster named = co_await ask_master(connection, group_);
  if (named.address) {
    learn(co_await ask_sentinels(connection, group_));
    if (announced != announced_) co_return NamedMaster{};
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

/// Another Sentinel each time, so that one that is down or knows nothing costs one attempt. One
/// that has come back without its configuration would announce nothing.
asio::awaitable<bool> SentinelTopology::connect_watch(Connection& connection) {
  watched_ = sentinels_[next_watched_++ % sentinels_.size()];
  connection.set_target(watched_);
  if (!co_await connection.connect()) co_return false;
  const NamedMaster named = co_await ask_master(connection, group_);
  if (named.address) ask_again();  // a switch may have been missed meanwhile
  co_return named.address.has_value();
}

void SentinelTopology::note_switch() {
  is_announced_ = true;
  ++announced_;
  put_first(watched_);  // others may not have heard of it yet
  ask_again();
}

void SentinelTopology::ask_again() {
  is_told_ = true;
  if (is_asking_ || is_stopped()) return;
  asio::co_spawn(context().io, follow_master(), asio::detached);
  is_asking_ = true;
}

void SentinelTopology::note_failing(Link&) {
  const Time now = context().clock.now();
  if (now < doubted_ + least_between_questions) return;
  doubted_ = now;
  is_failing_ = true;
  ask_again();
}

asio::awaitable<void> SentinelTopology::follow_master() try {
  while (std::exchange(is_told_, false)) {
    std::optional<RedisAddress> named;
    const bool is_failing = std::exchange(is_failing_, false);
    const bool is_announced = std::exchange(is_announced_, false);
    if (is_failing && !is_announced) {
      named = co_await ask_all();
    } else {
      named = co_await ask_first();
    }
    if (is_stopped()) co_return;
    if (named) {
      // Calls that the old master has refused are no reason to doubt: most may not know yet.
      if (is_announced) {
        is_failing_ = false;
        doubted_ = context().clock.now();
      }
      note_master(*named);
      if (*named != link_.target()) {
        link_.leave("the Sentinels name another master: " + text_of(*named));
        link_.connect_anew();
      }
    }
    context().journal.tell();
  }
  is_asking_ = false;
} catch (const std::exception&) {
  is_asking_ = false;  // a switch that is missed is found by the end of the connection
}

asio::awaitable<std::optional<RedisAddress>> SentinelTopology::ask_first() {
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    const NamedMaster named = co_await ask(sentinel);
    if (named.address || is_stopped()) co_return named.address;
  }
  co_return std::nullopt;
}

/// A switch that is announced meanwhile is followed first, because the rest may take their time to
/// answer.
asio::awaitable<std::optional<RedisAddress>> SentinelTopology::ask_all() {
  std::vector<Vote> votes;
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    const NamedMaster named = co_await ask(sentinel);
    if (is_stopped() || is_announced_) co_return std::nullopt;
    if (named.address) votes.push_back({sentinel, *named.address});
  }
  const Vote* const most = most_named(votes, link_.target());
  if (most == nullptr) co_return std::nullopt;
  put_first(most->sentinel);
  co_return most->master;
}

}  // namespace sluice::redis_detail
