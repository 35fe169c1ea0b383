// The I/O of the Redis store: one thread, one connection, and the way back to a connection. What
// the bytes mean is the Pipeline's business.
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

/// Lives as long as its thread does, which may be a little longer than the store. Members under
/// "any thread" are thread-safe; all else belongs to the I/O thread, but that a caller writes to an
/// idle connection itself.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// `resolve`: looks names up in the place of the system.
  Client(RedisOptions options, std::uint64_t seed, const Resolve& resolve = {});
  ~Client();

  // Any thread.

  void start();
  /// Ends every call and the thread. Afterwards, calls end in Errc::shut_down. Needs no memory.
  void stop() noexcept;
  /// A call whose memory can be used, or null if max_in_flight calls are under way. Takes that of
  /// up to `wanted` calls that have ended to `spare`, under one lock, if there is none left. May
  /// throw std::bad_alloc.
  [[nodiscard]] CallPtr new_call(CallList& spare, std::size_t wanted);
  /// Ends the call when a stop is requested. It came from new_call() and is to be submitted.
  void watch(Call& call, const StopToken& stop);
  /// Sends the calls, and moves from them. Needs no memory. REQUIRES: the caller keeps the client
  /// alive.
  void submit(std::span<CallPtr> calls) noexcept;
  /// Has the channel's watchers told, if there is a connection. Best effort.
  void notify(std::string channel);
  /// May throw std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Subscription> watch_channel(std::string channel,
                                                            std::function<void()> seen);
  [[nodiscard]] bool on_io_thread() const noexcept;
  [[nodiscard]] RedisStats stats() const noexcept;
  /// More about why a call has ended with `error`; null if nothing is known.
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept;
  [[nodiscard]] std::uint64_t next_nonce() noexcept;
  [[nodiscard]] SystemClock& clock() noexcept { return clock_; }
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] const KeyStyle& key_style() const noexcept { return key_style_; }
  /// True in a child of the process that made the client.
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

  std::atomic<bool> woken_{false};          // wake() is on its way
  std::atomic<bool> stopping_{false};       // wake() is to close
  std::atomic<bool> any_cancelled_{false};  // a call in the pipeline may be marked
  std::atomic<bool> any_notice_{false};     // notices_ is not empty
  std::atomic<bool> watched_anew_{false};   // the subscriber has something to follow
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> protocol_errors_{0};
  std::atomic<std::uint64_t> nonce_{0};

  bool serving_ = false;    // serve() is under way; io_ may hold it to the end
  WakeMemory wake_memory_;  // outlives io_, which may still hold a wake at its end
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Journal journal_{options_};
  Connection link_;
  Subscriber subscriber_;
  boost::asio::steady_timer pause_{io_};   // between attempts
  boost::asio::steady_timer expiry_{io_};  // of the calls' deadlines

  /// Guards what follows, down to armed_until_. The I/O thread holds it whenever it works on the
  /// connection; callers only try to take it, and then do not wait for anything. Completions run
  /// under it and may close the client: hence recursive.
  std::recursive_mutex wire_;
  Pipeline pipeline_;
  std::string out_;
  std::size_t written_ = 0;  // of out_; the rest goes before all else
  bool connected_ = false;
  bool writing_ = false;    // the socket takes no more: Asio tells when it does
  bool draining_ = false;   // wrong server: nothing more is sent on this connection
  Time due_ = Time::max();  // a caller's call ends by then: wake() arms it
  Time armed_until_ = Time::max();

  ReconnectPace pace_;
  Errc last_failure_ = Errc::not_connected;  // why there is no connection
  std::optional<Errc> loss_;                 // why the connection is being left, once it is known
  std::uint64_t epoch_ = 0;  // of the connection: tells late write completions apart
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace sluice::redis_detail
