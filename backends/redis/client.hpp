// Client: the I/O of the Redis store: its thread, the way of calls to the links of the servers, and
// what is common to all of them.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/redis/connection/inbox.hpp"
#include "backends/redis/connection/journal.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/topology/topology.hpp"
#include "backends/redis/wake_memory.hpp"
#include "sluice/detail/fork_count.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// Lives as long as its thread, which may be slightly longer than the store. Public members are
/// thread-safe; all others belong to the I/O thread, except that a caller may write to an idle
/// connection itself.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// `resolve`: replaces the system's look-up of names.
  Client(RedisOptions options, std::uint64_t seed, const Resolve& resolve = {});
  ~Client();

  void start();
  /// Ends every call and the thread. Later calls fail with Errc::shut_down. Needs no memory.
  void stop() noexcept;
  /// A call to submit, or null if max_in_flight calls are pending. If there is no spare one, moves
  /// up to `wanted` ended calls to `spare` under one lock. May throw std::bad_alloc.
  [[nodiscard]] CallPtr new_call(CallList& spare, std::size_t wanted);
  /// Ends the call on a stop request. It came from new_call() and is not submitted yet.
  void watch(Call& call, const StopToken& stop);
  /// Sends the calls, and moves from them. Needs no memory. REQUIRES: the caller keeps the client
  /// alive.
  void submit(std::span<CallPtr> calls) noexcept;
  /// Notifies the channel's subscribers, if there is a connection. Best effort. The channel is the
  /// name of a key.
  void notify(std::string channel);
  /// May throw std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Subscription> watch_channel(std::string channel,
                                                            std::function<void()> seen);
  [[nodiscard]] bool on_io_thread() const noexcept;
  [[nodiscard]] RedisStats stats() const noexcept;
  /// May throw std::bad_alloc.
  [[nodiscard]] RedisHealth health();
  /// A call that was counted by new_call() ends without having been submitted.
  void count_refusal() noexcept { refusals_.fetch_add(1); }
  /// Details of why a call failed with `error`; null if there are none.
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept;
  [[nodiscard]] std::uint64_t next_nonce() noexcept;
  [[nodiscard]] SystemClock& clock() noexcept { return clock_; }
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] const KeyStyle& key_style() const noexcept { return key_style_; }
  /// The server of a slot.
  [[nodiscard]] StorePart part_of(std::uint16_t slot) const noexcept {
    const Link& link = topology_->link_of(slot);
    return {link.index(), link.connections()};
  }
  [[nodiscard]] bool is_in_cluster() const noexcept { return !options_.cluster.empty(); }
  /// True in a forked child of the process that made the client.
  [[nodiscard]] bool is_forked() const noexcept { return detail::fork_count() != forks_; }

 private:
  class ChannelWatch;
  struct Notice {
    std::uint16_t slot;
    std::string channel;
  };

  [[nodiscard]] bool write_if_idle(std::span<CallPtr> calls) noexcept;
  void add_details(RedisStats& stats) const noexcept;
  void run();
  void wake_up() noexcept;
  void wake();
  void drain_inbox() noexcept;
  void drain_notices() noexcept;
  void cancel_marked() noexcept;
  void close() noexcept;

  const RedisOptions options_;
  const KeyStyle key_style_;
  const unsigned forks_ = detail::fork_count();
  SystemClock clock_;

  std::atomic<std::size_t> in_flight_{0};

  Inbox inbox_;
  std::mutex mutex_;  // guards what follows
  std::vector<Notice> notices_;

  std::atomic<bool> woken_{false};          // wake() is posted
  std::atomic<bool> stopping_{false};       // wake() must close
  std::atomic<bool> any_cancelled_{false};  // a call in the pipeline may be marked
  std::atomic<bool> any_notice_{false};     // notices_ is not empty
  std::atomic<bool> health_wanted_{false};  // the servers may be asked for INFO
  std::atomic<bool> watched_anew_{false};   // the subscriber must update its subscriptions
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> refusals_{0};  // calls that ended without a link
  std::atomic<std::uint64_t> nonce_{0};

  WakeMemory wake_memory_;  // outlives io_, which may hold a wake at its end
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Journal journal_{options_};
  Names names_;
  const std::unique_ptr<Topology> topology_;
  Subscriber subscriber_;
  bool closed_ = false;  // the I/O thread's
  std::thread thread_;
};

}  // namespace sluice::redis_detail
