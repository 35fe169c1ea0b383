// A rate limit that all clients read from the store. See sluice/algorithms/shared_rate.hpp for the
// rule.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/algorithms/shared_rate.hpp"
#include "sluice/decide.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// Whom a shared rate limits.
enum class RateType : Word {
  overall = 0,     ///< all clients together
  per_client = 1,  ///< each client for itself
};

/// A rate as it is in the store.
struct RateSetting {
  RateType type;
  Word rate;  ///< permits in any interval
  Span interval;
  Word version;  ///< another after each change
};

struct SharedRateOptions {
  /// Who this client is, for RateType::per_client. Empty: a name drawn at random.
  std::string client{};
  /// How long the setting outlives its last use. Give all clients the same.
  Span keep_alive = std::chrono::hours{24 * 30};
};

/// At most `rate` permits in any interval, exactly, by a rate that lives in the store: every client
/// follows a change with its next request.
///
///     SharedRateLimiter limiter{*store, "partner-api", "rate"};
///     limiter.try_set_rate(RateType::overall, 100, 1s);   // the first one wins
///     if (const Decision d = limiter.try_acquire(3); !d) retry_later(d.retry_after);
///
/// The setting is remembered here, and every request proves in the same trip that it still stands.
/// Thread-safe. Calls throw std::system_error or fill an error_code; Errc::not_configured means
/// that no rate was set, or that it was not used for keep_alive. REQUIRES: the store outlives it.
class SharedRateLimiter {
 public:
  /// What a change ended in.
  struct Change {
    bool changed;  ///< false: try_set_rate() found a rate and left it alone
    Word version;  ///< the one in force now
  };

  /// Limits by the setting under Key{tag, name}. Throws std::invalid_argument if the tag or name is
  /// empty or too long, or keep_alive is below 1 us or above 71 years.
  SharedRateLimiter(Store& store, std::string tag, std::string name,
                    SharedRateOptions options = {});
  ~SharedRateLimiter();
  SharedRateLimiter(const SharedRateLimiter&) = delete;
  SharedRateLimiter& operator=(const SharedRateLimiter&) = delete;

  /// Sets the rate if there is none. `rate` is 1 to 65,536 permits and `interval` 1 us to 366 days,
  /// but at most keep_alive; else, here and below, Errc::invalid_argument.
  Change try_set_rate(RateType type, Word rate, Span interval) const;
  Change try_set_rate(RateType type, Word rate, Span interval, std::error_code& error) const;
  /// Sets the rate and starts afresh: nothing is spent. An interval over the change may hold as
  /// much as both rates allow.
  Change set_rate(RateType type, Word rate, Span interval) const;
  Change set_rate(RateType type, Word rate, Span interval, std::error_code& error) const;
  /// Sets the rate and keeps what is spent: no interval over the change holds more than the larger
  /// of the two rates, unless it is longer than the new interval (docs/shared_rate.md). With
  /// another type it starts afresh.
  Change update_rate(RateType type, Word rate, Span interval) const;
  Change update_rate(RateType type, Word rate, Span interval, std::error_code& error) const;
  /// The rate in force, or none.
  std::optional<RateSetting> rate() const;
  std::optional<RateSetting> rate(std::error_code& error) const;

  /// Spends `permits` if they are there; never waits. The hint is exact: until enough of them are.
  /// Errc::cost_exceeds_capacity if the rate is smaller.
  Decision try_acquire(Cost permits = 1) const;
  Decision try_acquire(Cost permits, std::error_code& error) const;
  /// What try_acquire() would answer; spends nothing.
  Decision peek(Cost permits = 1) const;
  Decision peek(Cost permits, std::error_code& error) const;
  /// How many permits are there now.
  Word available_permits() const;
  Word available_permits(std::error_code& error) const;

  [[nodiscard]] const std::string& client() const noexcept { return options_.client; }

 private:
  struct Known;

  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }
  Change change(SharedRateRule::Mode mode, RateType type, Word rate, Span interval,
                std::error_code& error) const;
  std::shared_ptr<const Known> known() const;
  std::shared_ptr<const Known> read(std::error_code& error) const;
  Decision ask(bool spends, Cost permits, std::error_code& error) const;

  Store* store_;
  std::string tag_;
  std::string name_;
  SharedRateOptions options_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Known> known_;  // guarded by mutex_
};

}  // namespace sluice
