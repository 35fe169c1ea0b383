// The protocol of the Redis store without I/O: which requests are waiting, which are sent, and
// what each reply means. Every reply belongs to the oldest entry sent; an entry whose caller has
// gone stays as a tombstone, so that the pairing never shifts, and keeps the call's place, so that
// entries are as bounded as calls. A request of which the socket took no byte waits as before; one
// that the server refused for now makes a pause and waits again. Only flush() needs memory. Not
// thread-safe: it belongs to the store's I/O thread, or to a caller that writes for it, or to a
// test.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "sluice/redis/redis_store.hpp"
#include "sluice/rng.hpp"

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

  /// `seed`: of the pauses.
  explicit Pipeline(RedisScripts how = RedisScripts::eval, std::uint64_t seed = 0)
      : functions_(how == RedisScripts::functions), jitter_(seed) {}

  /// Takes a call that is to be sent.
  void submit(CallPtr call) noexcept { waiting_.push_back(std::move(call)); }

  /// Has `channel` published to behind the calls that wait. Bounded: what is too much is lost, and
  /// all of it on a connection whose user may not publish.
  void notify(std::string channel);

  /// Writes requests to `out`, oldest first, until it holds chunk_bytes; they are sent at `now`, as
  /// far as took() says. Throws std::bad_alloc; then, too, `out` has whole requests, which took()
  /// has to be told of. REQUIRES: `out` is empty, and what was in it before is taken.
  void flush(std::string& out, Time now);

  /// The socket took so many bytes more of `out`. What lies wholly behind them leaves `out` and
  /// goes on waiting: it is certainly not executed. What is left is the rest of one request, if
  /// any.
  void took(std::string& out, std::size_t bytes) noexcept;

  /// A reply that is a string.
  Heard hear_string(std::string_view bytes);
  /// A reply that is a number.
  Heard hear_integer();
  /// An error reply, without its leading '-'. Of what will pass (LOADING, READONLY, MASTERDOWN,
  /// TRYAGAIN, CLUSTERDOWN) a call makes a pause and goes on waiting.
  Heard hear_error(std::string_view message, Time now);

  /// The connection is gone: what was sent and not answered is unknown, and the oldest of it ends
  /// with `oldest`; what waits goes on waiting.
  void disconnect(Errc oldest = Errc::unknown);

  /// Ends the calls whose deadline has come: those that wait with what the server answered them
  /// last, if it did, else with `unsent`; those sent as unknown. Ends the pauses that are over.
  void expire(Time now, Errc unsent);

  /// Ends the calls that are marked as cancelled: those that wait with Errc::cancelled, those sent
  /// as unknown. O(calls), however many are marked.
  void cancel_marked();

  /// Ends every call: those that wait with `unsent`, those sent as unknown.
  void abandon(Errc unsent);

  [[nodiscard]] bool has_unsent() const noexcept {
    return !waiting_.empty() || !again_.empty() || notices_.size() > published_;
  }
  /// True once this connection has decided a call.
  [[nodiscard]] bool has_decided() const noexcept { return has_decided_; }
  /// How many replies are still to come.
  [[nodiscard]] std::size_t sent_count() const noexcept { return sent_.size(); }
  [[nodiscard]] bool has_sent() const noexcept { return !sent_.empty(); }
  /// When the oldest unanswered request was sent. REQUIRES: has_sent().
  [[nodiscard]] Time oldest_sent() const noexcept { return sent_.front().at; }
  /// The earliest deadline of all calls and end of a pause, or Time::max().
  [[nodiscard]] Time next_deadline() const noexcept;
  /// The earliest end of a pause, or Time::max().
  [[nodiscard]] Time next_resumption() const noexcept { return resumption_; }

  /// Calls that have ended since the last time: their memory can be used again.
  [[nodiscard]] CallList& ended() noexcept { return ended_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  static constexpr std::size_t chunk_bytes = 65'536;
  static constexpr std::size_t max_notices = 1024;  // that wait or are sent
  /// The n-th pause of a call is drawn from [least_pause, least_pause * 2^n], up to longest_pause.
  static constexpr Span least_pause = std::chrono::milliseconds{5};
  static constexpr Span longest_pause = std::chrono::milliseconds{100};

 private:
  /// A request on the wire. Without a call it is a tombstone, the loading of a script or of the
  /// library, or a wake-up.
  struct Sent {
    CallPtr call;
    std::string_view loads{};  // what the server answers when it has
    std::uint64_t nonce = 0;
    std::size_t steps = 0;
    std::size_t output = 0;
    Time at{};
    Time deadline = Time::max();  // of the call
    InFlight in_flight{};         // of a call that has gone
    bool publishes = false;
    std::uint64_t begin = 0;  // of its bytes among all
  };

  Sent& append_entry(const std::string& out, Time now);
  void append(std::string& out, const Call& call, Time now);
  void append_load(std::string& out, std::string_view kind, std::string_view text,
                   std::string_view answer, Time now);
  void send(std::string& out, CallList& queue, Time now);
  void publish(std::string& out, Time now);
  void end(CallPtr call, Errc code);
  [[nodiscard]] bool has_untaken() const noexcept;
  void take_back_last() noexcept;
  void take_unsent(const auto& code_of);
  void pause(CallPtr call, Errc code, Time now) noexcept;
  void resume(Time now) noexcept;
  void bury(Sent& sent);
  void end_all();
  void conclude_call(CallPtr call, const Reply& reply);
  Heard ask_again(CallPtr call, Errc code, Time now);
  void hear_load_error(std::string_view message);
  Sent take_front();

  CallList waiting_;
  CallList again_;  // met NOSCRIPT or no function; go before those that wait
  CallList paused_;
  Time resumption_ = Time::max();  // the earliest of paused_
  std::deque<Sent> sent_;
  std::uint64_t taken_ = 0;  // bytes that sockets took, of all that was ever to be sent
  std::uint64_t start_ = 0;  // of what flush() wrote last, among these
  bool has_decided_ = false;
  CallList ending_;
  std::vector<std::string_view> loading_;  // SCRIPT LOAD or FUNCTION LOAD is on the wire
  const bool functions_;
  bool wants_library_ = false;       // FUNCTION LOAD goes before the next call
  bool may_load_ = true;             // the library, on this connection
  Errc load_error_{};                // why the server has no library, since the last attempt
  std::deque<std::string> notices_;  // channels: those on the wire, and those that wait
  std::size_t published_ = 0;        // of them, how many are on the wire
  bool muted_ = false;               // this connection's user may not publish
  SeededRng jitter_;
  CallList ended_;
  Counters counters_;
};

}  // namespace sluice::redis_detail
