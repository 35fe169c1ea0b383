#include "backends/redis/connection/subscriber.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>

#include "backends/redis/protocol/protocol.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Connects to the server of the options.
asio::awaitable<bool> connect_as_configured(Connection& connection) { return connection.connect(); }

/// Of the user, or by a proxy that has no SUBSCRIBE: the next attempt would end in the same way.
bool is_denial(Errc code) noexcept {
  return code == Errc::no_permission || code == Errc::unknown_command;
}

}  // namespace

void WatchedChannels::add(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  const auto [place, fresh] = counts_.try_emplace(channel, 0);
  if (fresh) {
    try {
      changed_.insert(channel);
    } catch (...) {
      counts_.erase(place);
      throw;
    }
  }
  ++place->second;
}

void WatchedChannels::remove(const std::string& channel) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(channel);
  if (--found->second > 0) return;
  counts_.erase(found);
  try {
    changed_.insert(channel);
  } catch (const std::bad_alloc&) {
    return;  // the channel stays subscribed, without effect
  }
}

bool WatchedChannels::empty() const {
  const std::lock_guard lock(mutex_);
  return counts_.empty();
}

std::vector<WatchedChannels::Change> WatchedChannels::take_changes() {
  const std::lock_guard lock(mutex_);
  std::vector<Change> changes;
  changes.reserve(changed_.size());
  for (const std::string& channel : changed_) {
    changes.push_back({channel, counts_.contains(channel)});
  }
  changed_.clear();
  return changes;
}

bool WatchedChannels::contains(std::string_view channel) const {
  const std::lock_guard lock(mutex_);
  return counts_.find(channel) != counts_.end();
}

void WatchedChannels::forget_changes() noexcept {
  const std::lock_guard lock(mutex_);
  changed_.clear();
}

std::vector<WatchedChannels::Change> WatchedChannels::take_all() {
  const std::lock_guard lock(mutex_);
  std::vector<Change> all;
  all.reserve(counts_.size());
  for (const auto& [channel, count] : counts_) all.push_back({channel, true});
  changed_.clear();
  return all;
}

Subscriber::Subscriber(asio::io_context& io, const RedisOptions& options, Names& names,
                       std::uint64_t seed, Connect connect)
    : io_(io),
      options_(options),
      connect_(connect ? std::move(connect) : connect_as_configured),
      link_(io, options, names, nullptr),
      pause_(io),
      idle_(io),
      mute_(io),
      probe_(io),
      jitter_(seed),
      fresh_(options.reconnect_min, options.reconnect_max, Jitter::full),
      backoff_(fresh_) {}

void Subscriber::update() noexcept try {
  if (stopped_) return;
  if (connected_) {
    send(channels_.take_changes());
    if (channels_.empty()) leave_when_idle();
    return;
  }
  channels_.forget_changes();  // a new connection subscribes to all channels
  if (listening_ || channels_.empty()) return;
  asio::co_spawn(io_, listen(), asio::detached);
  listening_ = true;
} catch (const std::exception&) {
  link_.close();  // out of step: listen() restarts
}

void Subscriber::stop() noexcept {
  stopped_ = true;
  connected_ = false;
  link_.stop();
}

/// After std::bad_alloc it retries, as without a server. If there is no memory even for a pause,
/// the next update() restarts it.
asio::awaitable<void> Subscriber::listen() {
  try {
    has_missed_ = false;
    while (!stopped_ && !channels_.empty()) {
      try {
        co_await listen_once();
      } catch (const std::exception&) {
        link_.close();
      }
      disconnect();
      if (!stopped_ && !channels_.empty()) co_await pause();
    }
  } catch (const std::exception&) {
    disconnect();
  }
  listening_ = false;
}

void Subscriber::disconnect() noexcept {
  link_.close();
  has_missed_ = has_missed_ || answered_ > 0;
  connected_ = false;
  writing_ = false;
  ++epoch_;
  probe_.cancel();
}

/// One connection, from the attempt to its end.
asio::awaitable<void> Subscriber::listen_once() {
  denied_ = false;
  if (!co_await connect_(link_)) co_return;
  denied_ = link_.is_bare();
  if (denied_) co_return;
  const Time since = clock_.now();
  pushes_.reset();
  waiting_.clear();
  asked_ = answered_ = probed_ = 0;
  connected_ = true;
  const std::vector<WatchedChannels::Change> all = channels_.take_all();
  resumed_ = has_missed_ ? all.size() : 0;
  send(all);
  probe_later();
  if (channels_.empty()) leave_when_idle();
  while (connected_ && !stopped_) {
    error_code error = co_await link_.transport().arrive();
    if (error || stopped_) break;
    const std::string_view bytes = link_.transport().take(error);
    if (error) break;
    pushes_.feed(bytes);
    if (!hear_all()) break;
  }
  const bool held = clock_.now() - since >= healthy_after;
  if (held && answered_ > 0) backoff_ = fresh_;
}

/// Handles every complete push. False if the connection is unusable. A woken subscriber may destroy
/// the store.
bool Subscriber::hear_all() {
  while (!stopped_) {
    const Push push = pushes_.next();
    switch (push.kind) {
      case Push::Kind::none:
        return true;
      case Push::Kind::message:
        channels_.watchers().notify(push.channel);
        break;
      case Push::Kind::subscribed:
        confirm(push.channel);
        break;
      case Push::Kind::unsubscribed:
      case Push::Kind::pong:
        if (answered_ < asked_) ++answered_;
        break;
      case Push::Kind::error:
        if (answered_ < asked_ && answered_ + 1 == probed_) {  // PING is not permitted
          ++answered_;
          break;
        }
        denied_ = is_denial(error_of(push.channel));
        return false;
      case Push::Kind::broken:
        return false;
    }
  }
  return false;
}

/// What was published between two connections is lost: that the second one hears the channel is a
/// wake-up of its own.
void Subscriber::confirm(std::string_view channel) {
  if (channels_.contains(channel)) confirmed_.fetch_add(1);
  if (answered_ == asked_) return;  // nobody asked for it
  ++answered_;
  if (answered_ <= resumed_) channels_.watchers().notify(channel);
}

asio::awaitable<void> Subscriber::pause() {
  const bool forbidden = denied_ || link_.refusal() == Errc::no_permission;
  pause_.expires_after(forbidden ? denied_pause : backoff_.next(jitter_));
  error_code ignored;
  co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void Subscriber::send(const std::vector<WatchedChannels::Change>& changes) {
  if (changes.empty()) return;
  for (const auto& [channel, watched] : changes) {
    append_command(waiting_, {watched ? "SUBSCRIBE" : "UNSUBSCRIBE", channel});
  }
  // The server does not read: the next connection subscribes to all channels again.
  if (writing_ && waiting_.size() > most_waiting) return link_.close();
  expect(changes.size());
}

/// Sends the commands that wait, which are `replies` more.
void Subscriber::expect(std::size_t replies) {
  if (asked_ <= answered_) leave_when_mute();
  asked_ += replies;
  flush();
}

/// A server that hangs, or that is not there any more, publishes nothing: it is asked from time to
/// time, and left when it is mute.
void Subscriber::probe_later() {
  probe_.expires_after(probe_after);
  probe_.async_wait([this, epoch = epoch_](error_code error) {
    if (!error && epoch == epoch_) probe();
  });
}

void Subscriber::probe() noexcept try {
  if (asked_ <= answered_) {
    append_command(waiting_, {"PING"});
    probed_ = asked_ + 1;
    expect(1);
  }
  probe_later();
} catch (const std::exception&) {
  link_.close();  // out of step: listen() restarts
}

void Subscriber::flush() {
  if (writing_ || waiting_.empty() || !connected_) return;
  out_.swap(waiting_);
  waiting_.clear();
  link_.transport().async_write_all(out_, [this, epoch = epoch_](error_code error) {
    if (epoch != epoch_) return;
    writing_ = false;
    if (error) return link_.close();
    flush();
  });
  writing_ = true;
}

void Subscriber::leave_when_idle() {
  idle_.expires_after(linger);
  idle_.async_wait([this, epoch = epoch_](error_code error) {
    if (!error && epoch == epoch_ && channels_.empty()) link_.close();
  });
}

/// Closes a connection whose server replies to no command, because behind a proxy a connection can
/// outlive its server.
void Subscriber::leave_when_mute() {
  mute_.expires_after(options_.stall_timeout);
  mute_.async_wait([this, epoch = epoch_, before = answered_](error_code error) {
    if (error || epoch != epoch_ || asked_ <= answered_) return;
    if (answered_ == before) return link_.close();
    leave_when_mute();
  });
}

}  // namespace sluice::redis_detail
