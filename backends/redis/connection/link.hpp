// Link: the traffic with one server: its connection, its pipeline, the lock of both, and the
// deadlines of the calls that are with it.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/redis/connection/connection.hpp"
#include "backends/redis/connection/inbox.hpp"
#include "backends/redis/connection/journal.hpp"
#include "backends/redis/connection/recent_latencies.hpp"
#include "backends/redis/connection/reconnect_pace.hpp"
#include "backends/redis/protocol/pipeline.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

class Link;

/// What the links of a store share. REQUIRES: all of it outlives them.
struct LinkContext {
  boost::asio::io_context& io;
  const RedisOptions& options;
  Names& names;
  SystemClock& clock;
  Journal& journal;
  Inbox& inbox;
  std::function<void()> wake_up;  // wakes the I/O thread; any thread; does not throw
};

[[nodiscard]] RedisReplyTimes reply_times_of(const LatencyCounts& times) noexcept;

/// Decides where a link connects, and learns of its fate. On the I/O thread.
class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  /// Connects the link to its server: no error, or that of its calls until there is a connection.
  virtual boost::asio::awaitable<Errc> connect(Link& link) = 0;
  /// An attempt has failed, or the connection is lost. Under no lock.
  virtual void note_ended(Link& link) = 0;
  /// Whether the link connects again after an end. Under no lock.
  [[nodiscard]] virtual bool is_needed(const Link& link) const noexcept = 0;
  /// Calls of the link fail or begin a pause, because its server cannot decide them at the moment
  /// or does not answer. Under no lock.
  virtual void note_failing(Link& link) = 0;
  /// Takes the calls that the server has sent to another one. Under no lock.
  virtual void redirect(Link& from, CallList& calls) = 0;
};

/// Members under "any thread" are thread-safe; all others belong to the I/O thread.
class Link {
 public:
  /// REQUIRES: the owner outlives it. `index`: its number among the links of the store.
  Link(const LinkContext& context, LinkOwner& owner, std::uint64_t seed, unsigned index = 0);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Any thread.

  /// Writes the calls on the caller's thread, if the connection is idle, instead of waking the I/O
  /// thread. False if nothing was done. Does not throw.
  [[nodiscard]] bool write_if_idle(std::span<CallPtr> calls) noexcept;
  [[nodiscard]] const Pipeline::Counters& counters() const noexcept { return pipeline_.counters(); }
  [[nodiscard]] std::uint64_t connections() const noexcept { return connections_.load(); }
  [[nodiscard]] std::uint64_t protocol_errors() const noexcept { return protocol_errors_.load(); }
  [[nodiscard]] bool is_connected() const noexcept { return is_connected_.load(); }
  [[nodiscard]] unsigned index() const noexcept { return index_; }
  /// Counts a reply that sends a call to another server, and is followed.
  void count_redirection() noexcept { redirections_.fetch_add(1); }
  [[nodiscard]] std::uint64_t redirections() const noexcept { return redirections_.load(); }
  [[nodiscard]] const RecentLatencies& latencies() const noexcept { return latencies_; }
  [[nodiscard]] RedisNodeStats stats() const;
  [[nodiscard]] RedisNodeHealth health() const;

  // The I/O thread.

  /// Connects, and connects again for as long as the owner needs the link.
  void open();
  /// Adds the calls, which work() sends. They fail if the link is stopped.
  void submit(CallList& calls) noexcept;
  void submit(CallPtr call) noexcept;
  /// Ends a call that no link has.
  void fail(CallPtr call, Errc code) noexcept;
  /// Arms the timer for the calls of callers and for those added since, ends those whose deadline
  /// has passed, and writes the others.
  void work();
  void notify(std::string channel);
  void cancel_marked() noexcept;
  /// Lets the server be asked for INFO, once a second at most.
  void refresh_health() noexcept;
  /// Ends calls whose deadline has passed, and arms the timer again.
  void expire();
  /// Moves out the calls that wait, for which `leaves` is true.
  void release_unsent(CallList& calls, const std::function<bool(const Call&)>& leaves);
  /// Sends nothing more on this connection, and makes another one once all replies are there, or
  /// after `longest_drain`.
  void leave(std::string_view cause);
  /// The owner names another server from now on: ends the attempt to connect, or the pause before.
  void connect_anew();
  /// True from connect_anew() until the next attempt: the present one is in vain, and no pause
  /// follows it.
  [[nodiscard]] bool is_to_connect_anew() const noexcept { return is_to_connect_anew_; }
  /// After an exception the connection may be out of step: closes it. Sent calls end as unknown.
  void break_off(std::string_view cause) noexcept;
  /// Ends every call and the link.
  void stop() noexcept;

  /// True if calls wait, make a pause or are sent.
  [[nodiscard]] bool has_calls() const noexcept;
  /// True if it does nothing at all: its connection may be given another target.
  [[nodiscard]] bool is_idle() const noexcept { return !life_->is_serving && !has_calls(); }
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  /// What a server may take to answer the calls that it has when it is left: much longer than one
  /// that works takes, and much shorter than a call's timeout.
  static constexpr Span longest_drain = std::chrono::milliseconds{200};
  [[nodiscard]] RedisAddress target() const { return connection_.target(); }

 private:
  class Serving;
  /// What the end of serve() tells, which may outlive the link.
  struct Life {
    bool is_serving = false;
    bool is_stopped = false;
  };

  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> serve_once();
  boost::asio::awaitable<void> pause();
  boost::asio::awaitable<void> read_replies();
  void take_replies(boost::system::error_code error);
  void pass_on();
  void hear(std::string_view bytes);
  [[nodiscard]] bool hear_all(Time now);
  [[nodiscard]] Pipeline::Heard hear_error(std::string_view message);
  void leave_if_unfit(std::string_view words);
  void note_server();
  void note_info();
  [[nodiscard]] bool may_write_at_once(Time now) noexcept;
  [[nodiscard]] bool is_in_doubt(Time now) const noexcept;
  [[nodiscard]] Span patience() const noexcept;
  void flush();
  void note_taken(std::size_t bytes) noexcept;
  void wait_to_write();
  void drop(Errc oldest = Errc::unknown) noexcept;
  void note_answer(std::string_view words) noexcept;
  void note_loss(std::string_view cause, Errc word = Errc::not_connected) noexcept;
  void note_loss(const boost::system::error_code& error) noexcept;
  void arm(Time at);
  void arm_expiry(Span least);

  const LinkContext context_;
  LinkOwner& owner_;
  const unsigned index_;
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> protocol_errors_{0};
  std::atomic<std::uint64_t> redirections_{0};
  std::atomic<bool> is_connected_{false};
  RecentLatencies latencies_;
  mutable std::mutex health_mutex_;  // guards health_
  RedisNodeHealth health_;
  Time informed_{};  // when INFO was asked for

  Connection connection_;
  boost::asio::steady_timer pause_;   // between attempts
  boost::asio::steady_timer expiry_;  // for the calls' deadlines

  /// Guards what follows, down to armed_until_. The I/O thread holds it while it works on the
  /// connection; callers only try to lock it, and then do not block. Completions run under it and
  /// may stop the link: hence recursive.
  mutable std::recursive_mutex wire_;
  Pipeline pipeline_;
  std::string out_;
  std::size_t written_ = 0;  // bytes of out_ that are sent; the rest is sent first
  bool connected_ = false;
  bool writing_ = false;        // the socket is full: Asio waits for it
  bool draining_ = false;       // nothing more is sent on this connection
  Time heard_{};                // when bytes last arrived on it
  Time left_at_ = Time::max();  // when the replies that are missing are not waited for any more
  Time due_ = Time::max();      // the earliest deadline of a caller's call or of a new one
  Time armed_until_ = Time::max();

  ReconnectPace pace_;
  bool is_to_connect_anew_ = false;
  Errc last_failure_ = Errc::not_connected;  // why there is no connection
  std::optional<Errc> loss_;                 // why the connection is closed, once known
  std::uint64_t epoch_ = 0;                  // of the connection: identifies late write completions
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
};

}  // namespace sluice::redis_detail
