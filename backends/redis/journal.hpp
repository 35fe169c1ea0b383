// What became of the attempts to connect and of connections: for figures, events, and the texts of
// exceptions. No secret gets in.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// What somebody else said, fit to be shown: on one line, not too long, and without what the user
/// and the password have in common with it.
[[nodiscard]] std::string presentable(std::string_view words, const RedisCredentials& credentials);

/// "no answer within 500 ms".
[[nodiscard]] std::string no_answer_within(Span span);

/// Members under "any thread" are thread-safe; all else belongs to the I/O thread.
class Journal {
 public:
  /// REQUIRES: the options outlive it.
  explicit Journal(const RedisOptions& options)
      : options_(options), credentials_{options.username, options.password} {}

  /// The next login is made with these: what is quoted of them is struck out from now on.
  void note_credentials(RedisCredentials credentials) { credentials_ = std::move(credentials); }

  /// This is being tried.
  void note_attempt(RedisStep step, std::string_view address);
  /// It failed. `code`: what calls end with until there is a connection.
  void note_failure(RedisStep step, std::string_view address, std::string_view cause, Errc code);
  /// A connection was made.
  void note_connection(std::string_view address);
  /// A call was decided: what passed has passed.
  void note_decision();
  /// It is lost. Without memory it is lost without a word.
  void note_loss(std::string_view address, std::string_view cause, Errc code) noexcept;

  /// Tells RedisOptions::on_event what was noted since the last time. It may destroy the store.
  /// REQUIRES: no lock is held.
  void tell();
  /// Nothing is told any more.
  void stop() noexcept { stopped_ = true; }

  // Any thread.

  /// More about why a call has ended with `code`; null if nothing is known.
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(Errc code) const;
  [[nodiscard]] std::optional<RedisEvent> last_failure() const;
  [[nodiscard]] std::uint64_t failed_attempts() const;

 private:
  void note(RedisEvent event, Errc code);

  const RedisOptions& options_;
  RedisCredentials credentials_;
  std::vector<RedisEvent> untold_;
  bool stopped_ = false;
  bool has_reasons_ = false;  // what reasons_ is, for the I/O thread

  mutable std::mutex mutex_;                    // guards what follows
  std::shared_ptr<const std::string> attempt_;  // under way, and nothing has failed yet
  std::map<Errc, std::shared_ptr<const std::string>> reasons_;  // since the last connection
  std::optional<RedisEvent> last_failure_;
  std::uint64_t failed_attempts_ = 0;
};

}  // namespace sluice::redis_detail
