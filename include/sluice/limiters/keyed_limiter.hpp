// KeyedLimiter: the calls that the limiters over keys share.
#pragma once

#include <future>
#include <string>

#include "sluice/decide.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/reservation.hpp"
#include "sluice/store_handle.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

/// Base of the limiters over keys. What try_acquire() charges stays charged. What a limiter's
/// reserve() or acquire() grants can be taken back: settle(), refund() and cancel() change such a
/// Reservation. Each limiter says how much of a grant it can refund. A refused reservation, and one
/// that a FallbackStore granted without its store, has nothing to refund or to charge.
///
/// Thread-safe: one object serves any number of threads. Unless a limiter says otherwise, every
/// call but acquire() is at most one store operation, by a rule that is O(1), or O(windows).
/// Borrows or owns its store: see StoreHandle. A moved-from limiter has no name: keys without a
/// name of their own then fail with Errc::invalid_key. See docs/failures.md.
template <class Limiter>
class KeyedLimiter : public Waitable {
 public:
  using Grant = Reservation;  ///< what acquire() returns

  /// Spends `cost` of `key` if it is available; never waits. A refusal is a decision that is not
  /// allowed, and spends nothing. Throws std::system_error if the store could not decide, or if the
  /// cost can never be admitted (Errc::cost_exceeds_capacity) or is negative (Errc::invalid_cost).
  /// A limit of 0 refuses every cost from 1, with Decision::never; see docs/composing.md.
  /// A cost of 0 is refused only while a debt, a block or a reservation is ahead; see
  /// docs/composing.md.
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost = 1) const {
    return decide_as("try_acquire", self().acquire_step(key, cost));
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, std::error_code& error) const noexcept {
    return detail::decide_own(*store_, self().acquire_step(key), error);
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost,
                                     std::error_code& error) const noexcept {
    return detail::decide_own(*store_, self().acquire_step(key, cost), error);
  }
  /// Charges at most once under this id; see Plan::idempotent(). The same id with another limiter,
  /// or for another key of the tag, fails with Errc::id_reused.
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const {
    return decide_as("try_acquire", Plan(self().acquire_step(key, cost)).idempotent(id));
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                     std::error_code& error) const noexcept {
    return detail::decide_own(*store_, Plan(self().acquire_step(key, cost)).idempotent(id), error);
  }

  /// try_acquire() with a callback, `handler(std::error_code, Decision)` or `handler(const
  /// Outcome&)`; see decide_then().
  template <class Handler>
  void try_acquire_then(const KeyArg& key, Cost cost, Handler handler) const {
    decide_then(*store_, self().acquire_step(key, cost), std::move(handler));
  }
  /// try_acquire() as a future; a failure is a std::system_error in it.
  [[nodiscard]] std::future<Decision> future_try_acquire(const KeyArg& key, Cost cost = 1) const {
    return detail::future_decide_as({Limiter::type_name, "future_try_acquire"}, *store_,
                                    self().acquire_step(key, cost));
  }
  /// try_acquire() for co_await; see DecideAwaitable. The key's bytes must live until it has ended.
  [[nodiscard]] DecideAwaitable awaitable_try_acquire(const Key& key, Cost cost = 1) const {
    return {*store_, self().acquire_step(key, cost)};
  }

  /// The decision that try_acquire() would make, with what remains now; changes nothing.
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost = 1) const {
    return decide_as("peek", self().peek_step(key, cost));
  }
  [[nodiscard]] Decision peek(const KeyArg& key, std::error_code& error) const noexcept {
    return detail::decide_own(*store_, self().peek_step(key), error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Cost cost, std::error_code& error) const noexcept {
    return detail::decide_own(*store_, self().peek_step(key, cost), error);
  }

  /// Waits until `cost` of `key` is granted, or until the deadline; blocks this thread meanwhile. A
  /// wait that cannot succeed by the deadline, as far as the callers ahead of it tell, is refused
  /// at once, and retry_after is then when it could have succeeded. First come, first served over
  /// all processes; docs/waiting.md has the bounds and the costs. Throws std::system_error:
  /// Errc::cancelled by WaitOptions::stop, Errc::too_many_waiters, Errc::invalid_argument for a
  /// priority out of range, Errc::would_deadlock on a thread or store that must not block, and as
  /// try_acquire().
  [[nodiscard]] Reservation acquire(const KeyArg& key, Cost cost, const Deadline& deadline,
                                    const WaitOptions& options = {}) const;
  [[nodiscard]] Reservation acquire(const KeyArg& key, Cost cost, const Deadline& deadline,
                                    const WaitOptions& options,
                                    std::error_code& error) const noexcept;
  /// The number of callers in this process that wait for the key.
  [[nodiscard]] std::size_t waiting(const KeyArg& key) const;

  /// Refunds all that is granted, as far as the limiter can, and returns the number of whole units
  /// refunded; the reservation is then empty. On an error, here and below, it stays as it is.
  Word cancel(const KeyArg& key, Reservation& grant) const;
  Word cancel(const KeyArg& key, Reservation& grant, std::error_code& error) const noexcept;

  /// Refunds `amount` units in the same way: they were not used. Errc::invalid_argument if that is
  /// more than granted, Errc::invalid_cost, here and in settle(), if it is negative.
  Word refund(const KeyArg& key, Reservation& grant, Cost amount) const;
  Word refund(const KeyArg& key, Reservation& grant, Cost amount,
              std::error_code& error) const noexcept;

  /// Corrects an estimated cost: refunds the difference, or charges it, whatever is available.
  /// What it has charged is not refunded by a later one, which refunds what was granted at most.
  ///
  ///     Reservation grant = limiter.reserve("alice", 100);
  ///     ...
  ///     limiter.settle("alice", grant, tokens_used);
  Settlement settle(const KeyArg& key, Reservation& grant, Cost actual) const;
  Settlement settle(const KeyArg& key, Reservation& grant, Cost actual,
                    std::error_code& error) const noexcept;

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // For the library: keeps the reference to a store that this limiter owned.
  void borrow_store() noexcept { store_.borrow(); }

 protected:
  /// `unit` is the unit of the limiter's keys; see Key::unit(). Throws std::invalid_argument if
  /// `name` is empty or longer than 1 MiB.
  KeyedLimiter(const StoreHandle& store, detail::TextArg name, std::string unit)
      : Waitable(store.address()),
        store_(store),
        name_(detail::valid_name(name)),
        unit_(std::move(unit)) {}
  KeyedLimiter(const KeyedLimiter&) = default;
  KeyedLimiter(KeyedLimiter&&) noexcept = default;
  KeyedLimiter& operator=(const KeyedLimiter&) = default;
  KeyedLimiter& operator=(KeyedLimiter&&) noexcept = default;
  ~KeyedLimiter() = default;

  /// For objects that the limiter makes and that share the ownership of the store.
  [[nodiscard]] const StoreHandle& store_handle() const noexcept { return store_; }
  /// Executes a plan or a step; exceptions name the call, "Limiter::verb".
  template <class Asked>
  Decision decide_as(const char* verb, const Asked& asked) const {
    return detail::decide_as({Limiter::type_name, verb}, *store_, asked);
  }
  /// The key, with the limiter's name if it has none of its own, and the limiter's unit.
  [[nodiscard]] detail::LimiterKey named(const Key& key) const noexcept {
    return {key, name_, unit_, store_.address()};
  }

 private:
  [[nodiscard]] const Limiter& self() const noexcept { return static_cast<const Limiter&>(*this); }

  StoreHandle store_;
  std::string name_;
  std::string unit_;
};

}  // namespace sluice
