// Pipeline: the protocol of the Redis store without I/O, with the waiting and the sent requests and
// the meaning of each reply. Every reply belongs to the oldest sent entry. The entry of an ended
// call stays as a tombstone, so that the pairing never shifts, and keeps the call's unit of
// max_in_flight, so that entries are bounded like calls. A request of which the socket took no byte
// waits again; one with a temporary error of the server makes a pause and waits again. Only flush()
// needs memory. Not thread-safe: it belongs to the store's I/O thread, to a caller that writes for
// it, or to a test.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/protocol/call.hpp"
#include "sluice/redis/redis_store.hpp"
#include "sluice/rng.hpp"

namespace sluice::redis_detail {

class Pipeline {
 public:
  /// The result of a reply.
  enum class Heard {
    ok,
    reconnect,  // this server no longer serves: drain, then reconnect
    nonsense    // the stream cannot be trusted: drop the connection at once
  };

  /// Counted before the call ends. Any thread may read them.
  struct Counters {
    std::atomic<std::uint64_t> decided{0};
    std::atomic<std::uint64_t> not_executed{0};
    std::atomic<std::uint64_t> unknown{0};
    std::atomic<std::uint64_t> late_replies{0};
    std::atomic<std::uint64_t> scripts_loaded{0};
  };

  /// `seed`: for the pauses. `in_cluster`: MOVED and ASK move calls to redirected().
  explicit Pipeline(RedisScripts how = RedisScripts::eval, std::uint64_t seed = 0,
                    bool in_cluster = false)
      : functions_(how == RedisScripts::functions), in_cluster_(in_cluster), jitter_(seed) {}

  /// Ends a call that is not in the pipeline.
  void end(CallPtr call, Errc code);
  /// Adds a call to be sent.
  void submit(CallPtr call) noexcept { waiting_.push_back(std::move(call)); }

  /// Publishes to `channel` after the waiting calls. Bounded: more are dropped, and all of them on
  /// a connection whose user may not publish.
  void notify(std::string channel);

  /// Asks the server for INFO once, after the waiting calls and wake-ups.
  void ask_info() noexcept { wants_info_ = !is_bare_; }
  /// Moves out the text of the last reply to INFO; empty if there was none since.
  [[nodiscard]] std::string take_info() noexcept { return std::exchange(info_, {}); }

  /// A connection begins. `is_bare`: the server ends it at anything but calls and PING, so that
  /// nothing is loaded, published or asked.
  void begin(bool is_bare) noexcept { is_bare_ = muted_ = is_bare; }

  /// Writes a PING to `out`, as flush() writes requests. REQUIRES: nothing is sent.
  void check(std::string& out, Time now);
  /// True if the reply to the PING is outstanding.
  [[nodiscard]] bool is_checking() const noexcept { return has_sent() && sent_.front().checks; }

  /// Writes requests to `out`, oldest first, until it has chunk_bytes; they count as sent at `now`,
  /// as far as took() confirms. Throws std::bad_alloc; also then `out` has whole requests, which
  /// took() must confirm. REQUIRES: `out` is empty, and its earlier bytes were taken.
  void flush(std::string& out, Time now);

  /// The socket took `bytes` more of `out`. Requests of which it took no byte leave `out` and wait
  /// again: they are certainly not executed. The rest of `out` belongs to one request, if any.
  void took(std::string& out, std::size_t bytes) noexcept;

  /// A string reply.
  Heard hear_string(std::string_view bytes);
  /// A status reply.
  Heard hear_status(std::string_view text);
  /// An integer reply.
  Heard hear_integer();
  /// An error reply, without its leading '-'. After a temporary error (LOADING, READONLY,
  /// MASTERDOWN, TRYAGAIN, CLUSTERDOWN) the call makes a pause and waits again.
  Heard hear_error(std::string_view message, Time now);

  /// The calls that the server has sent to another one; Call::redirection says which. One that has
  /// been sent on max_redirections times before fails instead.
  [[nodiscard]] CallList& redirected() noexcept { return redirected_; }

  /// Moves the calls that wait and for which `leaves` is true to `calls`, as if they were new.
  void release_unsent(CallList& calls, const std::function<bool(const Call&)>& leaves);

  /// The connection has ended: sent calls without a reply are unknown, and the oldest of them fails
  /// with `oldest`; waiting calls continue to wait.
  void disconnect(Errc oldest = Errc::unknown);

  /// Ends the calls whose deadline has passed: waiting ones with their last temporary error, if
  /// any, else with `unsent`; sent ones as unknown. Ends pauses.
  void expire(Time now, Errc unsent);

  /// Ends the calls that are marked as cancelled: waiting ones with Errc::cancelled, sent ones as
  /// unknown. O(calls), however many are marked.
  void cancel_marked();

  /// Ends every call: waiting ones with `unsent`, sent ones as unknown.
  void abandon(Errc unsent);

  [[nodiscard]] bool has_unsent() const noexcept {
    return !waiting_.empty() || !again_.empty() || notices_.size() > published_ || wants_info_;
  }
  /// True if since the last time a call has begun a pause, has got no answer by its deadline, or
  /// has met a server without its replicas.
  [[nodiscard]] bool take_failing() noexcept { return std::exchange(is_failing_, false); }
  /// The number of calls and outstanding replies.
  [[nodiscard]] std::size_t count() const noexcept {
    return waiting_.size() + again_.size() + paused_.size() + sent_.size();
  }
  /// True once this connection has decided a call.
  [[nodiscard]] bool has_decided() const noexcept { return has_decided_; }
  /// The number of outstanding replies.
  [[nodiscard]] std::size_t sent_count() const noexcept { return sent_.size(); }
  [[nodiscard]] bool has_sent() const noexcept { return !sent_.empty(); }
  /// When the oldest unanswered request was sent. REQUIRES: has_sent().
  [[nodiscard]] Time oldest_sent() const noexcept { return sent_.front().at; }
  /// The earliest deadline of all calls or end of a pause, or Time::max().
  [[nodiscard]] Time next_deadline() const noexcept;
  /// The earliest end of a pause, or Time::max().
  [[nodiscard]] Time next_resumption() const noexcept { return resumption_; }

  /// The calls that have ended since the last time, for reuse of their memory.
  [[nodiscard]] CallList& ended() noexcept { return ended_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  static constexpr std::size_t chunk_bytes = 65'536;
  static constexpr std::size_t max_notices = 1024;  // waiting or sent
  static constexpr unsigned max_redirections = 5;
  /// The n-th pause of a call is drawn from [least_pause, least_pause * 2^n], at most
  /// longest_pause.
  static constexpr Span least_pause = std::chrono::milliseconds{5};
  static constexpr Span longest_pause = std::chrono::milliseconds{100};

 private:
  /// A sent request. Without a call it is a tombstone, the loading of a script or of the library,
  /// an ASKING, an INFO, a PING, or a wake-up.
  struct Sent {
    CallPtr call;
    std::string_view loads{};  // the server's reply on success
    std::uint64_t nonce = 0;
    std::size_t steps = 0;
    std::size_t output = 0;
    Time at{};
    Time deadline = Time::max();  // of the call
    InFlight in_flight{};         // the unit of an ended call
    bool publishes = false;
    bool asks = false;
    bool informs = false;
    bool checks = false;
    std::uint64_t begin = 0;  // the offset of its bytes
  };

  Sent& append_entry(const std::string& out, Time now);
  void append(std::string& out, const Call& call, Time now);
  void append_load(std::string& out, std::string_view kind, std::string_view text,
                   std::string_view answer, Time now);
  void send(std::string& out, CallList& queue, Time now);
  void publish(std::string& out, Time now);
  void append_info(std::string& out, Time now);
  Sent& append_alone(std::string& out, std::initializer_list<std::string_view> words, Time now);
  [[nodiscard]] bool has_untaken() const noexcept;
  void take_back_last() noexcept;
  void take_unsent(const auto& code_of);
  void pause(CallPtr call, Errc code, Time now) noexcept;
  void resume(Time now) noexcept;
  void bury(Sent& sent);
  void end_all();
  void conclude_call(CallPtr call, const Reply& reply);
  void redirect(CallPtr call, Errc code, std::string_view message);
  Heard ask_again(CallPtr call, Errc code, Time now);
  void hear_load_error(std::string_view message);
  Sent take_front();

  CallList waiting_;
  CallList again_;  // failed with NOSCRIPT or without the function; sent before waiting calls
  CallList paused_;
  Time resumption_ = Time::max();  // the earliest of paused_
  bool is_failing_ = false;        // since take_failing()
  std::deque<Sent> sent_;
  std::uint64_t taken_ = 0;  // bytes that sockets have taken, of all
  std::uint64_t start_ = 0;  // the offset of the last flush()
  bool has_decided_ = false;
  CallList redirected_;
  CallList ending_;
  std::vector<std::string_view> loading_;  // SCRIPT LOAD or FUNCTION LOAD is sent
  const bool functions_;
  const bool in_cluster_;
  bool wants_library_ = false;       // FUNCTION LOAD goes before the next call
  bool may_load_ = true;             // whether the library may be loaded on this connection
  Errc load_error_{};                // why the server has no library, since the last attempt
  std::deque<std::string> notices_;  // channels: sent ones, then waiting ones
  std::size_t published_ = 0;        // the number of sent ones
  bool wants_info_ = false;
  std::string info_;      // the last reply to INFO
  bool muted_ = false;    // this connection's user may not publish
  bool is_bare_ = false;  // this connection is
  SeededRng jitter_;
  CallList ended_;
  Counters counters_;
};

}  // namespace sluice::redis_detail
