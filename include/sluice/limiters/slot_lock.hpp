// The slot lock, on any store: a minimum interval between calls across the whole fleet. See
// sluice/rules/slot_lock.hpp for the rule.
#pragma once

#include <optional>
#include <string>

#include "sluice/decide.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/quota.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/store_handle.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

/// A reserved slot, or a refusal. If granted, `retry_after` is the wait for the slot. If refused,
/// it is exact: without other requests, the slot is granted then. The two times below are those of
/// Store::clock() in this process, so that they can be compared with its readings even if the
/// server's clock differs.
struct [[nodiscard]] SlotPermit : Decision {
  /// The earliest time to begin the call; never before the slot begins, however long the answer
  /// took.
  Time not_before{};
  /// The latest time to begin the call; later, the interval to the next call is not guaranteed.
  Time not_after{};

  /// The wait from Decision::at for the slot; of a refusal, for another attempt.
  [[nodiscard]] Span wait() const noexcept { return retry_after; }
  /// When the slot begins, by the clock of the store (the server's).
  [[nodiscard]] Time ready_at() const noexcept { return at + retry_after; }
  /// True if the call may begin at this reading of Store::clock(). Check it after waking up: a
  /// stall between the grant and the call then costs the slot, not the interval.
  [[nodiscard]] bool valid_at(Time now) const noexcept {
    return allowed && not_before <= now && now <= not_after;
  }
};

struct SlotLockOptions {
  /// How late in its slot a call may begin. Calls that begin while their permits are valid are at
  /// least `interval - slack` apart. Unset: the whole interval, so that a permit is valid until the
  /// next slot begins. Range: 0 to the interval.
  std::optional<Span> slack{};
};

/// Grants slots at least `interval` apart, in the order of arrival at the store: the caller
/// reserves a slot, and waits for it.
///
///     SlotLock lock{*store, "toggl", 1s};
///     if (const SlotPermit permit = lock.reserve(token, 15s)) {
///       std::this_thread::sleep_for(permit.wait());
///       if (permit.valid_at(store->clock().now())) call();
///     }
///
/// A key without a name gets the limiter's name; use a key for what the API counts by. The
/// lock spaces the beginnings of calls and does not limit how many run at once. One round trip a
/// call. Immutable: one object serves any number of threads. Borrows or owns its store: see
/// StoreHandle.
class SlotLock : public Waitable {
 public:
  using Grant = SlotPermit;                             ///< what acquire() returns
  static constexpr const char* type_name = "SlotLock";  ///< in messages of exceptions

  static constexpr Span max_interval{SlotLockRule::max_interval};  ///< 365 days
  static constexpr Span max_horizon{SlotLockRule::max_horizon};    ///< 24 hours
  static constexpr Span max_block{SlotLockRule::max_block};        ///< 365 days

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, if `interval` is not in
  /// [1 us, max_interval], or if the slack is not in [0, interval]. Units finer than a microsecond
  /// do not compile.
  SlotLock(const StoreHandle& store, detail::TextArg name, Span interval,
           SlotLockOptions options = {});

  /// Reserves the slot that begins now, if it is free; never waits. Throws std::system_error if the
  /// store could not decide.
  SlotPermit try_acquire(const KeyArg& key) const { return granted("try_acquire", key, Span{0}); }
  SlotPermit try_acquire(const KeyArg& key, std::error_code& error) const noexcept {
    return reserve(key, Span{0}, error);
  }

  /// Reserves the next free slot if it begins within `max_wait`; the caller waits for it without
  /// polling. Pass the time left until the deadline: a refusal comes at once. Range: 0 to
  /// max_horizon, else Errc::invalid_argument.
  SlotPermit reserve(const KeyArg& key, SpanArg max_wait) const {
    return granted("reserve", key, max_wait);
  }
  SlotPermit reserve(const KeyArg& key, SpanArg max_wait, std::error_code& error) const noexcept;

  /// Waits for a slot that begins by the deadline; blocks this thread meanwhile. See
  /// KeyedLimiter::acquire().
  SlotPermit acquire(const KeyArg& key, const Deadline& deadline,
                     const WaitOptions& options = {}) const;
  SlotPermit acquire(const KeyArg& key, const Deadline& deadline, const WaitOptions& options,
                     std::error_code& error) const noexcept;
  /// The number of callers in this process that wait for the key.
  [[nodiscard]] std::size_t waiting(const KeyArg& key) const { return waiters_of(named(key)); }

  /// The decision that reserve() would make; changes nothing. `remaining` is 1 if a slot is free
  /// now.
  [[nodiscard]] Decision peek(const KeyArg& key, SpanArg max_wait = Span{0}) const {
    return decide_as("peek", peek_step(key, max_wait));
  }
  [[nodiscard]] Decision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return peek(key, Span{0}, error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, SpanArg max_wait,
                              std::error_code& error) const noexcept {
    return decide(*store_, peek_step(key, max_wait), error);
  }

  /// Cancels an unused slot, as if it had never been reserved. Returns the number of slots
  /// cancelled: 1; or 0, and nothing changes, if a later slot was reserved since, the key was
  /// blocked since, the slot was cancelled already, or it has passed. Cancel a slot once: it is
  /// identified by its time alone, and another caller may have it by now.
  Word cancel(const KeyArg& key, const SlotPermit& permit) const;
  Word cancel(const KeyArg& key, const SlotPermit& permit, std::error_code& error) const noexcept;

  /// Reserves no slot that begins within `span` from now: for an API that asks for a pause. A
  /// later end of an earlier block stays in force, and reserved slots keep their time; reset() ends
  /// the block. `reset_after` is when the next slot may begin. Slots that were reserved before a
  /// block can no longer be cancelled: cancel() returns 0, also for a slot after the block, behind
  /// which the next slot is then free a microsecond later. Range: 0, which changes nothing, to
  /// max_block, else Errc::invalid_argument. O(1), one store operation.
  ///
  ///     if (response.status == 429) lock.block(token, feedback.wait().value_or(pause));
  ///
  /// REQUIRES: all limiters of this name have the same interval. With a longer one, another limiter
  /// may have reserved a slot more than max_horizon later than ours can: that slot then stays the
  /// last, and can be cancelled.
  Decision block(const KeyArg& key, SpanArg span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const KeyArg& key, SpanArg span, std::error_code& error) const noexcept {
    return decide(*store_, block_step(key, span), error);
  }

  /// Forgets all reserved slots, and ends a block; the holders of the slots are not notified.
  void reset(const KeyArg& key) const;
  void reset(const KeyArg& key, std::error_code& error) const noexcept;

  /// The steps of these calls, for plans and for the forms of decide.hpp. In a plan that is
  /// allowed, acquire_step() is a reservation: its wait is in Outcome::steps.
  [[nodiscard]] Step acquire_step(const Key& key, SpanArg max_wait = Span{0}) const noexcept {
    return step(slot_lock_acquire, key, max_wait.count());
  }
  [[nodiscard]] Step peek_step(const Key& key, SpanArg max_wait = Span{0}) const noexcept {
    return step(slot_lock_peek, key, max_wait.count());
  }
  [[nodiscard]] Step cancel_step(const Key& key, const SlotPermit& permit) const noexcept {
    // A permit that was refused or granted without the store has no slot: no slot begins at 0.
    const bool none = !permit || is_degraded(permit.source);
    return step(slot_lock_cancel, key, none ? 0 : to_word(permit.ready_at()));
  }
  [[nodiscard]] Step block_step(const Key& key, SpanArg span) const noexcept {
    return step(slot_lock_block, key, span.count());
  }
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  /// Makes a permit of the decision on an acquire_step(). `asked` is the reading of Store::clock()
  /// before the (first) call; ignored if Store::stamps_by_clock().
  [[nodiscard]] SlotPermit permit(const Decision& decision, Time asked) const noexcept;

  [[nodiscard]] Span interval() const noexcept { return interval_; }
  [[nodiscard]] Span slack() const noexcept { return slack_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // For the library; see sluice/limiters/detail/slot_lock.hpp.
  struct Verbs;
  void borrow_store() noexcept { store_.borrow(); }

 private:
  SlotPermit granted(const char* verb, const Key& key, Span max_wait) const;
  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, *store_, step);
  }
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Word last) const noexcept {
    return {&operation, named(key), {1, interval_.count(), last}};
  }
  [[nodiscard]] detail::LimiterKey named(const Key& key) const noexcept {
    return {key.with_default_name(name_), store_.address()};
  }

  StoreHandle store_;
  std::string name_;
  Span interval_;
  Span slack_;
};

}  // namespace sluice

#include "sluice/limiters/detail/slot_lock.hpp"
