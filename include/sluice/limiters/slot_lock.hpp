// The slot lock, on any store: a minimum interval between calls over the whole fleet. See
// sluice/rules/slot_lock.hpp for the rule.
#pragma once

#include <optional>
#include <string>

#include "sluice/decide.hpp"
#include "sluice/detail/acquire.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// A slot that was granted, or a refusal. Times are those of Store::clock() in this process, so
/// they compare with its readings even if the server's clock says something else.
struct [[nodiscard]] SlotPermit {
  /// If granted, `retry_after` is how long to wait for the slot. If refused, it is exact: asked
  /// again alone then, the slot is granted.
  Decision decision;
  /// The call may begin from here; never before the slot does, however long the answer took.
  Time not_before{};
  /// The call must have begun here, or the interval to the next call is no longer kept.
  Time not_after{};

  [[nodiscard]] explicit operator bool() const noexcept { return decision.allowed; }
  /// How long to wait before the call. Zero if refused.
  [[nodiscard]] Span wait() const noexcept {
    return decision.allowed ? decision.retry_after : Span{0};
  }
  /// When the slot begins, by the clock of the store's own side.
  [[nodiscard]] Time at() const noexcept { return decision.at + wait(); }
  /// True if the call may begin at this reading of Store::clock(). Ask after waking up: a stall
  /// between the grant and the call costs the slot, not the interval.
  [[nodiscard]] bool valid_at(Time now) const noexcept {
    return decision.allowed && not_before <= now && now <= not_after;
  }
};

struct SlotLockOptions {
  /// How late in its slot a call may begin. Calls that begin while their permits are valid are at
  /// least `interval - slack` apart. Unset: the whole interval, so that a permit is valid until the
  /// next slot begins. Range: 0 to the interval.
  std::optional<Span> slack{};
};

/// Grants slots that lie at least `interval` apart, in the order of arrival at the store.
///
///     SlotLock lock{*store, "toggl", 1s};
///     if (const SlotPermit permit = lock.reserve(token, 15s)) {
///       std::this_thread::sleep_for(permit.wait());
///       if (permit.valid_at(store->clock().now())) call();
///     }
///
/// A key without a name takes the limiter's; let a key be what the upstream counts by. It spaces
/// the beginnings of calls and does not count how many are under way. One round trip a call.
/// Immutable: one object serves any number of threads. Borrows or owns its store: see StoreHandle.
class SlotLock : public Waitable {
 public:
  static constexpr const char* type_name = "SlotLock";  ///< in texts of exceptions

  static constexpr Span max_interval{SlotLockRule::max_interval};  ///< 365 days
  static constexpr Span max_horizon{SlotLockRule::max_horizon};    ///< 24 hours
  static constexpr Span max_block{SlotLockRule::max_block};        ///< 365 days

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, if `interval` is not in
  /// [1 us, max_interval], or if the slack is not in [0, interval]. What is finer than a
  /// microsecond does not compile.
  SlotLock(const StoreHandle& store, std::string name, Span interval, SlotLockOptions options = {});

  /// Takes the present slot if it is free; never waits. Throws std::system_error if the store could
  /// not decide.
  SlotPermit try_acquire(const Key& key) const { return granted("try_acquire", key, Span{0}); }
  SlotPermit try_acquire(const Key& key, std::error_code& error) const noexcept {
    return reserve(key, Span{0}, error);
  }

  /// Reserves the next free slot if it begins within `max_wait`; the caller waits, nobody polls.
  /// Pass what is left until the deadline: a refusal comes at once. Range: 0 to max_horizon, else
  /// Errc::invalid_argument.
  SlotPermit reserve(const Key& key, Span max_wait) const {
    return granted("reserve", key, max_wait);
  }
  SlotPermit reserve(const Key& key, Span max_wait, std::error_code& error) const noexcept;

  /// Waits for a slot that begins by the deadline, and until it begins; blocks this thread
  /// meanwhile. If there is none, it is refused at once. See KeyedLimiter::acquire().
  SlotPermit acquire(const Key& key, const Deadline& deadline,
                     const WaitOptions& options = {}) const;
  SlotPermit acquire(const Key& key, const Deadline& deadline, const WaitOptions& options,
                     std::error_code& error) const noexcept;
  /// Callers in this process that wait for the key.
  [[nodiscard]] std::size_t waiting(const Key& key) const {
    return waiters_of(named(key));
  }

  /// What reserve() would answer; changes nothing. `remaining` is 1 if a slot is free now.
  [[nodiscard]] Decision peek(const Key& key, Span max_wait = Span{0}) const {
    return decide_as("peek", peek_step(key, max_wait));
  }
  [[nodiscard]] Decision peek(const Key& key, std::error_code& error) const noexcept {
    return peek(key, Span{0}, error);
  }
  [[nodiscard]] Decision peek(const Key& key, Span max_wait,
                              std::error_code& error) const noexcept {
    return decide(*store_, peek_step(key, max_wait), error);
  }

  /// Gives an unused slot back, as if it had never been reserved. Answers how many slots came back:
  /// 1; or 0, and nothing changes, if a later one has been reserved since, the key was blocked
  /// since, it was given back already, or it has passed. Give a slot back once: under the same key
  /// it is known by its time alone, and may be another's by now.
  Word cancel(const Key& key, const SlotPermit& permit) const;
  Word cancel(const Key& key, const SlotPermit& permit, std::error_code& error) const noexcept;

  /// No slot that is not granted yet begins within `span` from now: an upstream has asked to wait.
  /// A later time stands, and so do the slots that were granted; reset() opens the key again.
  /// `reset_after` says when the next slot may begin. Once blocked, slots from before come back no
  /// more: cancel() of one answers 0, even if it lies beyond the block, behind which the next slot
  /// is then free a microsecond later. Range: 0, which changes nothing, to max_block, else
  /// Errc::invalid_argument. O(1), one store operation.
  ///
  ///     if (response.status == 429) lock.block(token, feedback.wait());
  ///
  /// REQUIRES: limiters of this name have one interval. One with a longer interval may have taken
  /// the key for more than max_horizon beyond ours: its slot then stays the last, and can be given
  /// back.
  Decision block(const Key& key, Span span) const {
    return decide_as("block", block_step(key, span));
  }
  Decision block(const Key& key, Span span, std::error_code& error) const noexcept {
    return decide(*store_, block_step(key, span), error);
  }

  /// Forgets every slot reserved so far, and a block; their holders do not learn of it.
  void reset(const Key& key) const { (void)decide_as("reset", reset_step(key)); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    (void)decide(*store_, reset_step(key), error);
  }

  /// The steps of these calls, for plans and for the forms of decide.hpp. In a plan that grants, an
  /// answer of `acquire_step` is a reservation: look at Outcome::steps for its wait.
  [[nodiscard]] Step acquire_step(const Key& key, Span max_wait = Span{0}) const noexcept {
    return step(slot_lock_acquire, key, max_wait.count());
  }
  [[nodiscard]] Step peek_step(const Key& key, Span max_wait = Span{0}) const noexcept {
    return step(slot_lock_peek, key, max_wait.count());
  }
  [[nodiscard]] Step cancel_step(const Key& key, const SlotPermit& permit) const noexcept {
    // Refused, or granted without the store, it took no slot: an instant at which none can begin.
    const bool none = !permit || is_degraded(permit.decision.source);
    return step(slot_lock_cancel, key, none ? 0 : to_word(permit.at()));
  }
  [[nodiscard]] Step block_step(const Key& key, Span span) const noexcept {
    return step(slot_lock_block, key, span.count());
  }
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  /// The permit of a step's answer. `asked` is the reading of Store::clock() before the (first)
  /// call; not needed if the store stamps its answers by that clock.
  [[nodiscard]] SlotPermit permit(const Decision& decision, Time asked) const noexcept;

  [[nodiscard]] Span interval() const noexcept { return interval_; }
  [[nodiscard]] Span slack() const noexcept { return slack_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  SlotPermit granted(const char* verb, const Key& key, Span max_wait) const;
  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, *store_, step);
  }
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Word last) const noexcept {
    return {&operation, named(key), {1, interval_.count(), last}};
  }
  [[nodiscard]] Key named(const Key& key) const noexcept { return key.with_default_name(name_); }

  StoreHandle store_;
  std::string name_;
  Span interval_;
  Span slack_;
};

/// How acquire() waits; see detail::WaiterFor.
struct SlotLock::Waiting {
  using Grant = SlotPermit;
  using Request = detail::KeyedRequest;
  static constexpr bool freed_early = false;
  static Key key(const SlotLock& lock, const Request& request) noexcept {
    return lock.named(request.key());
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(const SlotLock& lock) noexcept {
    return lock.queues();
  }
  static void borrow_store(SlotLock& lock) noexcept { lock.store_.borrow(); }
  static Span reach(const SlotLock&) noexcept { return max_horizon; }
  static void ask(const SlotLock& lock, const Request& request, Span max_wait,
                  Completion done) noexcept {
    lock.store().execute(lock.acquire_step(request.key(), max_wait), std::move(done));
  }
  static std::system_error failed(const detail::CallName& call, const std::error_code& error,
                                  const SlotLock& lock, const Request& request) {
    return detail::failed_call(call, error, lock.acquire_step(request.key()));
  }
  static Grant grant(const SlotLock& lock, const Request&, const Outcome& outcome,
                     Time asked) noexcept {
    return lock.permit(outcome.decision, asked);
  }
  static void refund(const SlotLock& lock, const Request& request, Grant& grant,
                     Completion done) noexcept {
    lock.store().execute(lock.cancel_step(request.key(), grant), std::move(done));
  }
};

inline SlotPermit SlotLock::acquire(const Key& key, const Deadline& deadline,
                                    const WaitOptions& options) const {
  return detail::block(*this, {key, 1}, deadline, options);
}
inline SlotPermit SlotLock::acquire(const Key& key, const Deadline& deadline,
                                    const WaitOptions& options,
                                    std::error_code& error) const noexcept {
  return detail::block(*this, {key, 1}, deadline, options, error);
}

}  // namespace sluice
