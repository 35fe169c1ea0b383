// Client: the I/O of the Redis store, with one thread, one connection, and reconnecting. The
// Pipeline interprets the bytes.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "connection.hpp"
#include "journal.hpp"
#include "pipeline.hpp"
#include "reconnect_pace.hpp"
#include "sluice/redis/redis_store.hpp"
#include "src/core/fork_count.hpp"
#include "subscriber.hpp"
#include "wake_memory.hpp"

namespace sluice::redis_detail {

/// Lives as long as its thread, which may be slightly longer than the store. Members under "any
/// thread" are thread-safe; all others belong to the I/O thread, except that a caller may write to
/// an idle connection itself.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// `resolve`: replaces the system's look-up of names.
  Client(RedisOptions options, std::uint64_t seed, const Resolve& resolve = {});
  ~Client();

  // Any thread.

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
  /// Notifies the channel's subscribers, if there is a connection. Best effort.
  void notify(std::string channel);
  /// May throw std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Subscription> watch_channel(std::string channel,
                                                            std::function<void()> seen);
  [[nodiscard]] bool on_io_thread() const noexcept;
  [[nodiscard]] RedisStats stats() const noexcept;
  /// Details of why a call failed with `error`; null if there are none.
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept;
  [[nodiscard]] std::uint64_t next_nonce() noexcept;
  [[nodiscard]] SystemClock& clock() noexcept { return clock_; }
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] const KeyStyle& key_style() const noexcept { return key_style_; }
  /// True in a forked child of the process that made the client.
  [[nodiscard]] bool is_forked() const noexcept { return detail::fork_count() != forks_; }

 private:
  class ChannelWatch;

  // Connecting.
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> serve_once();
  boost::asio::awaitable<void> pause();

  // Traffic.
  struct Serving;
  void run();
  void resume();
  boost::asio::awaitable<void> read_replies();
  [[nodiscard]] bool hear_all();
  [[nodiscard]] bool write_if_idle(std::span<CallPtr> calls) noexcept;
  [[nodiscard]] bool is_idle() noexcept;
  void take_spare(CallList& spare, std::size_t count) noexcept;
  void wake_up() noexcept;
  void wake();
  [[nodiscard]] Time take_inbox() noexcept;
  void drain_inbox();
  void drain_notices() noexcept;
  void cancel_marked() noexcept;
  void flush();
  void note_taken(std::size_t bytes) noexcept;
  void wait_to_write();
  void drop(Errc oldest = Errc::unknown) noexcept;
  void note_loss(std::string_view cause, Errc word = Errc::not_connected) noexcept;
  void note_loss(const boost::system::error_code& error) noexcept;
  void leave_if_unfit(std::string_view words);
  void arm(Time at);
  void arm_expiry(Span least);
  void expire();
  void close() noexcept;
  void recycle() noexcept;

  const RedisOptions options_;
  const KeyStyle key_style_;
  const unsigned forks_ = detail::fork_count();
  SystemClock clock_;

  std::atomic<std::size_t> in_flight_{0};

  std::mutex mutex_;  // guards what follows
  CallList inbox_;
  CallList pool_;
  bool closed_inbox_ = false;
  std::vector<std::string> notices_;  // channels

  std::atomic<bool> woken_{false};          // wake() is posted
  std::atomic<bool> stopping_{false};       // wake() must close
  std::atomic<bool> any_cancelled_{false};  // a call in the pipeline may be marked
  std::atomic<bool> any_notice_{false};     // notices_ is not empty
  std::atomic<bool> watched_anew_{false};   // the subscriber must update its subscriptions
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> protocol_errors_{0};
  std::atomic<std::uint64_t> nonce_{0};

  bool serving_ = false;    // serve() is running; io_ may hold it to the end
  WakeMemory wake_memory_;  // outlives io_, which may hold a wake at its end
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Journal journal_{options_};
  Connection link_;
  Subscriber subscriber_;
  boost::asio::steady_timer pause_{io_};   // between attempts
  boost::asio::steady_timer expiry_{io_};  // for the calls' deadlines

  /// Guards what follows, down to armed_until_. The I/O thread holds it while it works on the
  /// connection; callers only try to lock it, and then do not block. Completions run under it and
  /// may close the client: hence recursive.
  std::recursive_mutex wire_;
  Pipeline pipeline_;
  std::string out_;
  std::size_t written_ = 0;  // bytes of out_ that are sent; the rest is sent first
  bool connected_ = false;
  bool writing_ = false;    // the socket is full: Asio waits for it
  bool draining_ = false;   // wrong server: nothing more is sent on this connection
  Time due_ = Time::max();  // the deadline of a caller's call: wake() arms it
  Time armed_until_ = Time::max();

  ReconnectPace pace_;
  Errc last_failure_ = Errc::not_connected;  // why there is no connection
  std::optional<Errc> loss_;                 // why the connection is closed, once known
  std::uint64_t epoch_ = 0;                  // of the connection: identifies late write completions
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace sluice::redis_detail
