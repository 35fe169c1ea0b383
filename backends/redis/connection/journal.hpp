// Journal: the results of attempts to connect and the ends of connections, for statistics, events
// and exceptions. It contains no secrets.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// Foreign text, sanitised: on one line and bounded.
[[nodiscard]] std::string presentable(std::string_view words);

/// A server's words in reply to AUTH, which may quote what it was sent. All of them or none are
/// shown: a text with gaps would tell where the login fits in. A sentence that servers are known to
/// say is shown, whatever the password has in common with it.
[[nodiscard]] std::string without_login(std::string_view words, const RedisCredentials& login);

/// "127.0.0.1:6379", or "[::1]:6379".
[[nodiscard]] std::string text_of(const RedisAddress& address);

/// "no answer within 500 ms".
[[nodiscard]] std::string no_answer_within(Span span);

/// Members under "any thread" are thread-safe; all else belongs to the I/O thread.
class Journal {
 public:
  /// REQUIRES: the options outlive it.
  explicit Journal(const RedisOptions& options);

  /// An attempt begins.
  void note_attempt(RedisStep step, std::string_view address);
  /// It failed. `code`: the error of calls until there is a connection.
  void note_failure(RedisStep step, std::string_view address, std::string_view cause, Errc code);
  /// A connection was made.
  void note_connection(std::string_view address);
  /// The Sentinels name another master, or slots have moved.
  void note_change(RedisEvent::Kind kind, std::string_view address);
  /// A call was decided: temporary errors have ended.
  void note_decision();
  /// The connection is lost. Not recorded without memory.
  void note_loss(std::string_view address, std::string_view cause, Errc code) noexcept;

  /// The server answered with an error whose words say more than its code. Not recorded without
  /// memory.
  void note_answer(std::string_view address, std::string_view words, Errc code) noexcept;

  /// Calls RedisOptions::on_event for the new events, which may destroy the store. REQUIRES: no
  /// lock is held.
  void tell();
  /// No more events.
  void stop() noexcept { stopped_ = true; }

  // Any thread.

  /// Details of why a call failed with `code`; null if there are none.
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(Errc code) const;
  [[nodiscard]] std::optional<RedisEvent> last_failure() const;
  [[nodiscard]] std::uint64_t failed_attempts() const;

 private:
  void note(RedisEvent event, Errc code);

  const RedisOptions& options_;
  std::vector<RedisEvent> untold_;
  bool stopped_ = false;
  bool has_reasons_ = false;  // whether reasons_ is not empty, for the I/O thread

  mutable std::mutex mutex_;                                    // guards what follows
  std::shared_ptr<const std::string> attempt_;                  // pending
  std::shared_ptr<const std::string> latest_;                   // failure since the last connection
  std::map<Errc, std::shared_ptr<const std::string>> reasons_;  // since the last connection
  std::optional<RedisEvent> last_failure_;
  std::uint64_t failed_attempts_ = 0;
};

}  // namespace sluice::redis_detail
