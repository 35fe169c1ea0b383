// A sliding window limiter whose rate is stored next to its log, so that all clients follow a
// change. See sluice/rules/shared_sliding_window.hpp for the rule.
#pragma once

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "sluice/limiters/keyed_limiter.hpp"
#include "sluice/rules/shared_sliding_window.hpp"

namespace sluice {

/// The scope of a shared sliding window.
enum class RateType : Word {
  overall = 0,     ///< all clients together
  per_client = 1,  ///< each client separately
};

/// The configuration of a key in the store.
struct RateConfiguration {
  RateType type;
  Word rate;  ///< units in any `interval`
  Span interval;
  Word version;  ///< differs after each change
};

struct SharedSlidingWindowOptions {
  /// The name of this client, for RateType::per_client. Empty: a random name; in a simulated world
  /// it is drawn from the seed. Copies of a limiter are one client.
  std::string client{};
  /// How long the configuration outlives its last use. Use one value for all clients.
  Span keep_alive = std::chrono::hours{24 * 30};
};

/// What happens to spent units when the rate changes.
enum class SpentUnits : std::uint8_t {
  kept,       ///< they also count under the new rate
  forgotten,  ///< nothing is spent
};

class SharedSlidingWindowAwaitable;

/// The two steps of one request, for a plan: one that checks the configuration, and one for the
/// units. It owns what its steps view. REQUIRES: it lives until the plan was passed to the store.
class SharedSlidingWindowSteps {
 public:
  SharedSlidingWindowSteps() = default;  ///< no steps: there is no configuration

  [[nodiscard]] const Step& operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] const Step* data() const noexcept { return steps_ ? steps_->data() : nullptr; }
  [[nodiscard]] const Step* begin() const noexcept { return data(); }
  [[nodiscard]] const Step* end() const noexcept { return data() + size(); }
  [[nodiscard]] std::size_t size() const noexcept { return steps_ ? steps_->size() : 0; }

  /// What acquire_steps() have granted: of the decision on the second one and its output words.
  /// REQUIRES: there are steps.
  [[nodiscard]] Reservation reservation(const Decision& decision,
                                        std::span<const Word> output) const noexcept {
    const bool is_told = output.size() >= 3;
    const std::array words{generation_, is_told ? output[1] : 0, is_told ? output[2] : 0};
    return {decision, (*steps_)[1].args[1], words};
  }

 private:
  friend class SharedSlidingWindow;
  std::shared_ptr<const void> rate_;
  Word generation_ = 0;
  std::optional<std::array<Step, 2>> steps_;
};

/// Limits each key to exactly `rate` units in any interval, with a rate that is stored in the
/// store: every client follows a change with its next request.
///
///     SharedSlidingWindow limiter{*store, "rate"};
///     limiter.try_configure("partner-api", RateType::overall, 100, 1s);  // the first one wins
///     if (const auto d = limiter.try_acquire("partner-api", 3); !d) retry_later(d.retry_after);
///
/// The limiter remembers the configuration of up to 1,024 keys, and each request verifies it in the
/// same round trip: one store operation, and two more after a change. The first request for a key
/// reads its configuration before, and so does a later one if other keys have taken its place.
/// Copies share what they know, and are one client. Thread-safe. Calls throw std::system_error or
/// fill an error_code; Errc::not_configured means that no rate was configured, or that it was not
/// used for keep_alive. A key without a name gets the limiter's name. Borrows or owns its store:
/// see StoreHandle.
///
/// Grants are refunded and settled as those of a SlidingWindow, by the rate that is then in force.
/// Of a grant that the log no longer counts, because spent units were forgotten or the type has
/// changed, nothing is refunded or charged.
class SharedSlidingWindow : public KeyedLimiter<SharedSlidingWindow> {
 public:
  static constexpr const char* type_name = "SharedSlidingWindow";  ///< in messages of exceptions

  static constexpr Span max_block{SharedSlidingWindowRule::max_interval};  ///< 366 days

  /// Throws std::invalid_argument if `name` is empty, or it and the client's name are too long, or
  /// keep_alive is below 1 us or above 71 years.
  SharedSlidingWindow(const StoreHandle& store, detail::TextArg name,
                      SharedSlidingWindowOptions options = {});

  /// The result of a change.
  struct Change {
    bool changed;  ///< false: a rate was there, or the same one, and is kept
    Word version;  ///< of the rate now in force
  };

  /// Sets the rate if there is none. `rate` is 0 to 65,536 units or `unlimited`, `interval` 1 us
  /// to 366 days and at most keep_alive; otherwise, here and below, Errc::invalid_argument.
  Change try_configure(const KeyArg& key, RateType type, Word rate, SpanArg interval) const;
  Change try_configure(const KeyArg& key, RateType type, Word rate, SpanArg interval,
                       std::error_code& error) const noexcept;
  /// Sets the rate. If spent units are kept, any interval across the change, of the old or the new
  /// length, holds at most the larger number of units that the two rates allow in it
  /// (docs/shared_sliding_window.md). If they are forgotten, or if the type changes, such an
  /// interval may hold as many as both rates allow together. The rate that is in force already
  /// changes nothing, unless spent units are to be forgotten.
  Change configure(const KeyArg& key, RateType type, Word rate, SpanArg interval,
                   SpentUnits spent = SpentUnits::kept) const;
  Change configure(const KeyArg& key, RateType type, Word rate, SpanArg interval, SpentUnits spent,
                   std::error_code& error) const noexcept;
  /// The configuration in force, or none.
  [[nodiscard]] std::optional<RateConfiguration> configuration(const KeyArg& key) const;
  [[nodiscard]] std::optional<RateConfiguration> configuration(
      const KeyArg& key, std::error_code& error) const noexcept;

  /// As in KeyedLimiter. `retry_after` of a refusal is exact. Errc::cost_exceeds_capacity if `cost`
  /// exceeds the rate.
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, std::error_code& error) const noexcept {
    return try_acquire(key, 1, error);
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const;
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                     std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] Decision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return peek(key, 1, error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost, std::error_code& error) const noexcept;
  template <AnswerHandler Handler>
  void try_acquire_then(const KeyArg& key, Cost cost, Handler handler) const {
    ask_then(key, cost, detail::completion_of(std::move(handler)));
  }
  [[nodiscard]] std::future<Decision> future_try_acquire(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] SharedSlidingWindowAwaitable awaitable_try_acquire(const Key& key,
                                                                   Cost cost = 1) const;

  /// Reserves `cost` at the first instant at which it is available, if that is at most `max_wait`
  /// ahead; the caller then waits. Reservations are in the order of arrival at the store, over all
  /// clients, and keep their time if the rate changes meanwhile. Errc::invalid_argument if max_wait
  /// is below zero or above 366 days.
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait = Span{0}) const;
  Reservation reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                      std::error_code& error) const noexcept;

  /// Schedules no new grant before `span` from now, for all clients or, with RateType::per_client,
  /// for this one; existing reservations keep their time. A later end of an earlier block stays in
  /// force, and configure() keeps a block unless it forgets spent units or changes the type.
  /// `span`: 0, which changes nothing, to max_block; otherwise Errc::invalid_argument.
  Decision block(const KeyArg& key, SpanArg span) const;
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept;
  /// Takes the newest `amount` units out of the log, whichever client spent them, reservations
  /// first; all, if there are fewer. Errc::invalid_cost if `amount` is negative or above 2^52.
  Decision reward(const KeyArg& key, Cost amount) const;
  Decision reward(const KeyArg& key, Cost amount, std::error_code& error) const noexcept;

  /// The two steps of try_acquire(), for a plan with other steps, by the remembered configuration.
  /// If there is none, or if its rate is below `cost`, this call reads it first, which blocks. If
  /// the plan fails with Errc::config_changed or Errc::not_configured, nothing was charged: call
  /// refresh() and make the steps again. On an error there are no steps.
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps acquire_steps(const KeyArg& key, Cost cost,
                                                       std::error_code& error) const noexcept;
  /// The steps of peek(): in a plan, a condition that charges nothing.
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(const KeyArg& key, Cost cost = 1) const;
  [[nodiscard]] SharedSlidingWindowSteps peek_steps(const KeyArg& key, Cost cost,
                                                    std::error_code& error) const noexcept;
  /// The steps of block() and reward().
  [[nodiscard]] SharedSlidingWindowSteps block_steps(const KeyArg& key, SpanArg span) const;
  [[nodiscard]] SharedSlidingWindowSteps block_steps(const KeyArg& key, SpanArg span,
                                                     std::error_code& error) const noexcept;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(const KeyArg& key, Cost amount) const;
  [[nodiscard]] SharedSlidingWindowSteps reward_steps(const KeyArg& key, Cost amount,
                                                      std::error_code& error) const noexcept;
  /// Reads the configuration for the next steps. Errc::not_configured if there is none.
  void refresh(const KeyArg& key) const;
  void refresh(const KeyArg& key, std::error_code& error) const noexcept;

  [[nodiscard]] const std::string& client() const noexcept;

  // For the library; see sluice/limiters/detail/shared_sliding_window.hpp.
  struct Verbs;

 private:
  friend class SharedSlidingWindowAwaitable;
  struct Rate;
  class Rates;
  class Asking;

  [[nodiscard]] Step configure_step(const Key& key, SharedSlidingWindowRule::Mode mode,
                                    RateType type, Word rate, Span interval) const noexcept;
  void ask_then(const Key& key, Cost cost, Completion done) const;
  /// `asked`: the step of the log, as Verbs makes it.
  [[nodiscard]] SharedSlidingWindowSteps steps(const Step& asked,
                                               std::error_code& error) const noexcept;
  [[nodiscard]] SharedSlidingWindowSteps steps_as(const char* verb, const Step& asked) const;
  /// The exception of a call of which it is not known whether the configuration or the log is at
  /// fault.
  [[nodiscard]] std::system_error failed(const detail::CallName& call, const std::error_code& error,
                                         const Step& asked) const;

  detail::CopyOnMovePtr<const Rates> rates_;  // shared by copies
};

}  // namespace sluice

#include "sluice/limiters/detail/shared_sliding_window.hpp"
