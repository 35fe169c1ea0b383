// The protocol of the Redis store without I/O: which requests are waiting, which are sent, and
// what each reply means. Every reply belongs to the oldest entry sent; an entry whose caller has
// gone stays as a tombstone, so that the pairing never shifts, and keeps the call's place, so that
// entries are as bounded as calls. Only flush() needs memory. Not thread-safe: it belongs to
// the store's I/O thread, or to a caller that writes for it, or to a test.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

class Pipeline {
 public:
  /// What became of a reply.
  enum class Heard {
    ok,
    reconnect,  // this server does not serve us any more: drain, then connect anew
    nonsense    // the stream cannot be trusted: drop the connection at once
  };

  /// Counted before the call in question ends. Any thread may read them.
  struct Counters {
    std::atomic<std::uint64_t> unknown{0};
    std::atomic<std::uint64_t> late_replies{0};
    std::atomic<std::uint64_t> scripts_loaded{0};
  };

  explicit Pipeline(RedisScripts how = RedisScripts::eval)
      : functions_(how == RedisScripts::functions) {
    loading_.reserve(script_count);
  }

  /// Takes a call that is to be sent.
  void submit(CallPtr call) noexcept { waiting_.push_back(std::move(call)); }

  /// Has `channel` published to behind the calls that wait. Bounded: what is too much is lost, and
  /// all of it on a connection whose user may not publish.
  void notify(std::string channel);

  /// Appends requests to `out`, oldest first, until it holds chunk_bytes; they count as sent at
  /// `now`. Throws std::bad_alloc; then, too, what counts as sent is in `out`, and all else waits.
  /// What a slow server does not take goes on waiting, and is certainly not executed.
  void flush(std::string& out, Time now);

  /// A reply that is a string.
  Heard hear_string(std::string_view bytes);
  /// A reply that is a number.
  Heard hear_integer();
  /// An error reply, without its leading '-'.
  Heard hear_error(std::string_view message);

  /// The connection is gone: what was sent and not answered is unknown, and the oldest of it ends
  /// with `oldest`; what waits goes on waiting.
  void disconnect(Errc oldest = Errc::unknown);

  /// Ends the calls whose deadline has come: those that wait with `unsent`, those sent as unknown.
  void expire(Time now, Errc unsent);

  /// Ends the calls that are marked as cancelled: those that wait with Errc::cancelled, those sent
  /// as unknown. O(calls), however many are marked.
  void cancel_marked();

  /// Ends every call: those that wait with `unsent`, those sent as unknown.
  void abandon(Errc unsent);

  [[nodiscard]] bool has_unsent() const noexcept {
    return !waiting_.empty() || !again_.empty() || !notices_.empty();
  }
  /// How many replies are still to come.
  [[nodiscard]] std::size_t sent_count() const noexcept { return sent_.size(); }
  [[nodiscard]] bool has_sent() const noexcept { return !sent_.empty(); }
  /// When the oldest unanswered request was sent. REQUIRES: has_sent().
  [[nodiscard]] Time oldest_sent() const noexcept { return sent_.front().at; }
  /// The earliest deadline of all calls, or Time::max().
  [[nodiscard]] Time next_deadline() const noexcept;

  /// Calls that have ended since the last time: their memory can be used again.
  [[nodiscard]] CallList& ended() noexcept { return ended_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  static constexpr std::size_t chunk_bytes = 65'536;
  static constexpr std::size_t max_notices = 1024;  // that wait or are sent

 private:
  /// A request on the wire. Without a call it is a tombstone, the loading of a script or of the
  /// library, or a wake-up.
  struct Sent {
    CallPtr call;
    std::string_view loads{};  // what the server answers when it has
    std::uint64_t nonce = 0;
    std::size_t steps = 0;
    std::size_t details = 0;
    Time at{};
    Time deadline = Time::max();  // of the call
    Place place{};                // of a call that has gone
    bool publishes = false;
  };

  void append(std::string& out, const Call& call, Time now);
  void append_load(std::string& out, std::string_view kind, std::string_view text,
                   std::string_view answer, Time now);
  void send(std::string& out, CallList& queue, Time now);
  void publish(std::string& out, Time now);
  void end(CallPtr call, Errc code);
  void take_unsent(const auto& predicate, Errc code);
  void bury(Sent& sent);
  void end_all();
  void conclude_call(CallPtr call, const Reply& reply);
  Heard ask_again(CallPtr call, Errc code);
  void hear_load_error(std::string_view message);
  Sent take_front();

  CallList waiting_;
  CallList again_;  // met NOSCRIPT or no function; go before those that wait
  std::deque<Sent> sent_;
  CallList ending_;
  std::vector<std::string_view> loading_;  // SCRIPT LOAD or FUNCTION LOAD is on the wire
  const bool functions_;
  bool wants_library_ = false;       // FUNCTION LOAD goes before the next call
  bool may_load_ = true;             // the library, on this connection
  Errc load_error_{};                // why the server has no library, since the last attempt
  std::deque<std::string> notices_;  // channels
  std::size_t published_ = 0;        // on the wire
  bool muted_ = false;               // this connection's user may not publish
  CallList ended_;
  Counters counters_;
};

}  // namespace sluice::redis_detail
