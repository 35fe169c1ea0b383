#include "backends/redis/topology/sentinel_topology.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
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
      watch_(context.io, login_, context.names, ~seed,
             [this](Connection& connection) { return connect_watch(connection); }),
      again_(context.io) {}

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
  again_.cancel();
}

/// Ends early if another master is named meanwhile: the next attempt follows at once, and begins
/// with the Sentinel that named it.
asio::awaitable<Errc> SentinelTopology::connect(Link& link) {
  Errc failure = Errc::not_connected;
  bool is_any_reached = false;
  const auto is_void = [&] { return is_stopped() || link.is_to_connect_anew(); };
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    const NamedMaster named = co_await ask(sentinel);
    if (is_void()) co_return failure;
    is_any_reached = is_any_reached || named.address || !named.error.empty();
    if (!is_current(named)) continue;
    note_master(named);
    link.connection().set_target(*named.address);
    if (co_await link.connection().connect()) co_return Errc{};
    failure = link.connection().refusal();
    if (is_void()) co_return failure;
  }
  if (is_any_reached || !master_) co_return failure;
  link.connection().set_target(*master_);
  const bool ready = co_await link.connection().connect();
  co_return ready ? Errc{} : link.connection().refusal();
}

/// Neither an address nor an error: the Sentinel cannot be reached.
asio::awaitable<NamedMaster> SentinelTopology::ask(RedisAddress sentinel) {
  Connection connection(context().io, login_, context().names, &context().journal);
  connection.set_target(sentinel);
  if (!co_await connection.connect()) co_return NamedMaster{};
  NamedMaster named = co_await ask_master(connection, group_);
  if (named.address) {
    learn(co_await ask_sentinels(connection, group_));
    if (is_current(named)) put_first(sentinel);
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

bool SentinelTopology::is_current(const NamedMaster& named) const noexcept {
  return named.address && named.epoch >= epoch_;
}

/// The old master may go on for seconds, but nobody publishes there any more: its subscriber
/// leaves, and connects to the new one.
void SentinelTopology::note_master(const NamedMaster& named) {
  if (master_ && *master_ != *named.address) {
    context().journal.note_change(RedisEvent::Kind::switched, text_of(*named.address));
    if (subscriber_ != nullptr) subscriber_->close();
  }
  master_ = named.address;
  epoch_ = named.epoch;
}

asio::awaitable<bool> SentinelTopology::connect_subscriber(Connection& connection) {
  if (!master_) co_return false;
  subscriber_ = &connection;
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
  if (named.address) doubt();  // a switch may have been missed meanwhile
  co_return named.address.has_value();
}

void SentinelTopology::note_switch() {
  is_announced_ = true;
  ask_again();
}

void SentinelTopology::doubt() {
  doubted_ = context().clock.now();
  is_doubted_ = true;
  ask_again();
}

void SentinelTopology::ask_again() {
  again_.cancel();
  if (is_asking_ || is_stopped()) return;
  asio::co_spawn(context().io, follow_master(), asio::detached);
  is_asking_ = true;
}

void SentinelTopology::note_failing(Link&) {
  if (context().clock.now() >= doubted_ + least_between_questions) doubt();
}

asio::awaitable<void> SentinelTopology::follow_master() try {
  while (is_announced_ || is_doubted_) {
    NamedMaster named;
    if (std::exchange(is_announced_, false)) {
      put_first(watched_);  // others may not have heard of it yet
      named = co_await ask_first();
    } else {
      is_doubted_ = false;
      named = co_await ask_all();
    }
    if (is_stopped()) co_return;
    if (named.address) {
      note_master(named);
      if (*named.address != link_.target()) {
        link_.leave("the Sentinels name another master: " + text_of(*named.address));
        link_.connect_anew();
      }
    }
    context().journal.tell();
    if (named.address || is_announced_) continue;
    // All were too slow to answer, or away: the switch would be missed.
    again_.expires_after(least_between_questions);
    boost::system::error_code ignored;
    co_await again_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (is_stopped()) co_return;
    is_doubted_ = true;
  }
  is_asking_ = false;
} catch (const std::exception&) {
  is_asking_ = false;  // a switch that is missed is found by the end of the connection
}

asio::awaitable<NamedMaster> SentinelTopology::ask_first() {
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    const NamedMaster named = co_await ask(sentinel);
    if (is_current(named) || is_stopped()) co_return named;
  }
  co_return NamedMaster{};
}

/// A switch that is announced meanwhile ends the questions, because the rest may take their time to
/// answer. An older answer than what is known is used only if nothing has become known meanwhile.
asio::awaitable<NamedMaster> SentinelTopology::ask_all() {
  const std::uint64_t known = epoch_;
  std::vector<Vote> votes;
  for (const RedisAddress& sentinel : std::vector(sentinels_)) {
    const NamedMaster named = co_await ask(sentinel);
    if (is_stopped()) co_return NamedMaster{};
    if (named.address) votes.push_back({sentinel, *named.address, named.epoch});
    if (is_announced_) break;
  }
  const Vote* const vote = newest(votes, link_.target());
  if (vote == nullptr) co_return NamedMaster{};
  const bool is_overtaken = epoch_ != known || is_announced_;
  if (is_overtaken && vote->epoch < epoch_) co_return NamedMaster{};
  put_first(vote->sentinel);
  co_return NamedMaster{.address = vote->master, .epoch = vote->epoch};
}

}  // namespace sluice::redis_detail
