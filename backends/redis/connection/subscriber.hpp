// Subscriber: wake-ups from other processes, on a second connection, which exists only while there
// are subscriptions. Failures here only lose wake-ups.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/redis/connection/connection.hpp"
#include "backends/redis/protocol/push_reader.hpp"
#include "sluice/calls/backoff.hpp"
#include "sluice/extend/subscription.hpp"

namespace sluice::redis_detail {

/// The subscribed channels. Thread-safe.
class WatchedChannels {
 public:
  /// Adds a subscription to the channel. May throw std::bad_alloc.
  void add(const std::string& channel);
  void remove(const std::string& channel) noexcept;

  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool contains(std::string_view channel) const;
  /// The changes since the last time, or all subscribed channels.
  struct Change {
    std::string channel;
    bool watched;
  };
  [[nodiscard]] std::vector<Change> take_changes();
  [[nodiscard]] std::vector<Change> take_all();
  void forget_changes() noexcept;

  Subscriptions& watchers() noexcept { return watchers_; }

 private:
  mutable std::mutex mutex_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> counts_;
  std::unordered_set<std::string> changed_;
  Subscriptions watchers_;
};

/// Keeps the subscriptions of one connection. Belongs to the I/O thread.
class Subscriber {
 public:
  /// Connects the connection to a server that has the channels.
  using Connect = std::function<boost::asio::awaitable<bool>(Connection&)>;

  /// `connect`: without one, the server of the options. REQUIRES: all of these outlive it.
  Subscriber(boost::asio::io_context& io, const RedisOptions& options, Names& names,
             std::uint64_t seed, Connect connect = {});

  /// Applies the current subscriptions: connects, subscribes, unsubscribes, closes.
  void update() noexcept;
  /// Stops it. A wake-up that is being delivered is the last one.
  void stop() noexcept;

  [[nodiscard]] WatchedChannels& channels() noexcept { return channels_; }
  /// Confirmed subscriptions, in total. Any thread.
  [[nodiscard]] std::uint64_t confirmed() const noexcept { return confirmed_.load(); }

  /// How long the connection stays open without subscriptions, because new ones may come.
  static constexpr Span linger = std::chrono::seconds{1};
  /// The interval of retries without permission to subscribe: permissions may be granted later.
  static constexpr Span denied_pause = std::chrono::seconds{30};
  /// A connection that lasted this long was good: the next attempt need not be slow.
  static constexpr Span healthy_after = std::chrono::milliseconds{100};
  /// The interval of the questions whether the server is still there.
  static constexpr Span probe_after = std::chrono::seconds{1};
  /// The most bytes of commands that wait because the server does not read.
  static constexpr std::size_t most_waiting = 1 << 20;

 private:
  boost::asio::awaitable<void> listen();
  boost::asio::awaitable<void> listen_once();
  boost::asio::awaitable<void> pause();
  [[nodiscard]] bool hear_all();
  void confirm(std::string_view channel);
  void send(const std::vector<WatchedChannels::Change>& changes);
  void flush();
  void disconnect() noexcept;
  void leave_when_idle();
  void leave_when_mute();
  void probe_later();
  void probe() noexcept;
  void expect(std::size_t replies);

  boost::asio::io_context& io_;
  const RedisOptions& options_;
  SystemClock clock_;
  WatchedChannels channels_;
  const Connect connect_;
  Connection link_;
  PushReader pushes_;
  boost::asio::steady_timer pause_;
  boost::asio::steady_timer idle_;
  boost::asio::steady_timer mute_;
  boost::asio::steady_timer probe_;
  SeededRng jitter_;
  Backoff fresh_;
  Backoff backoff_;
  std::string waiting_;  // commands to be sent
  std::string out_;      // commands that are being sent
  std::atomic<std::uint64_t> confirmed_{0};
  std::uint64_t epoch_ = 0;  // of the connection: identifies late write completions
  std::size_t asked_ = 0;    // commands on this connection
  std::size_t answered_ = 0;
  std::size_t probed_ = 0;   // the number of the last command that was a probe
  std::size_t resumed_ = 0;  // the first commands, which subscribe again what was subscribed before
  bool listening_ = false;   // listen() is running
  bool has_missed_ = false;  // since listen() began, a connection that heard was lost
  bool connected_ = false;
  bool writing_ = false;
  bool denied_ = false;
  bool stopped_ = false;
};

}  // namespace sluice::redis_detail
