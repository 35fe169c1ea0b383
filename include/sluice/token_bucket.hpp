// The token bucket limiter, on any store. See sluice/algorithms/token_bucket.hpp for the rule.
#pragma once

#include <future>
#include <memory>
#include <string>

#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/decide.hpp"

namespace sluice {

class BoundTokenBucket;

/// Limits each key to a quota. Immutable: one object serves any number of threads.
///
///     TokenBucket bucket{*store, "api", Quota::per_second(100).burst(500)};
///     if (const Decision d = bucket.try_acquire("alice"); !d) retry_later(d.retry_after);
///
/// A key without a name takes the limiter's. Limiters of the same name on the same store share
/// their buckets; give them the same quota.
/// REQUIRES: the store outlives the limiter.
class TokenBucket {
 public:
  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB.
  TokenBucket(Store& store, std::string name, Quota quota);

  /// Spends `cost` tokens of `key` if they are there; never waits for tokens. A refusal is a
  /// decision that is not allowed, and spends nothing. Throws std::system_error if the store could
  /// not decide, or if the cost can never be admitted (Errc::cost_exceeds_capacity).
  Decision try_acquire(const Key& key, Cost cost = 1) const {
    return decide(*store_, take(key, cost));
  }
  Decision try_acquire(const Key& key, std::error_code& error) const noexcept {
    return decide(*store_, take(key), error);
  }
  Decision try_acquire(const Key& key, Cost cost, std::error_code& error) const noexcept {
    return decide(*store_, take(key, cost), error);
  }

  /// try_acquire() that calls `handler(std::error_code, Decision)` when it is decided; see
  /// decide_then().
  template <class Handler>
  void try_acquire_then(const Key& key, Cost cost, Handler handler) const {
    decide_then(*store_, take(key, cost), std::move(handler));
  }
  /// try_acquire() as a future; a failure is a std::system_error in it.
  [[nodiscard]] std::future<Decision> future_try_acquire(const Key& key, Cost cost = 1) const {
    return future_decide(*store_, take(key, cost));
  }
  /// try_acquire() for co_await; see DecideAwaitable. The key's bytes must live until then.
  [[nodiscard]] DecideAwaitable awaitable_try_acquire(const Key& key, Cost cost = 1) const {
    return {*store_, take(key, cost)};
  }

  /// What try_acquire() would answer, with what remains now; changes nothing.
  Decision peek(const Key& key, Cost cost = 1) const { return decide(*store_, look(key, cost)); }
  Decision peek(const Key& key, std::error_code& error) const noexcept {
    return decide(*store_, look(key), error);
  }
  Decision peek(const Key& key, Cost cost, std::error_code& error) const noexcept {
    return decide(*store_, look(key, cost), error);
  }

  /// The step that try_acquire() asks, for a plan of several steps.
  [[nodiscard]] Step take(const Key& key, Cost cost = 1) const noexcept {
    return step(token_bucket_take, key, cost);
  }
  /// The step that peek() asks: in a plan, a condition that charges nothing.
  [[nodiscard]] Step look(const Key& key, Cost cost = 1) const noexcept {
    return step(token_bucket_peek, key, cost);
  }

  /// This limiter for one key that is used often: skips the look-up where the store can.
  /// Throws std::system_error (Errc::invalid_key).
  [[nodiscard]] BoundTokenBucket at(const Key& key) const;

  [[nodiscard]] const Quota& quota() const noexcept { return quota_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }

 private:
  [[nodiscard]] Step step(const Operation& operation, const Key& key, Cost cost) const noexcept {
    Step result{&operation, key, args_};
    result.args[4] = cost.value();
    if (key.name.empty()) result.key.name = name_;
    return result;
  }

  Store* store_;
  std::string name_;
  Quota quota_;
  Arguments args_{};  // cost, the last, is filled in by each call
};

/// A TokenBucket for one key, with the same calls. Thread-safe; movable while no other thread uses
/// it, and no step of it is in use. REQUIRES: the store outlives it.
class BoundTokenBucket {
 public:
  BoundTokenBucket(BoundTokenBucket&& other) noexcept;
  BoundTokenBucket& operator=(BoundTokenBucket&& other) noexcept;
  ~BoundTokenBucket() = default;

  Decision try_acquire(Cost cost = 1) const { return decide(*store_, take(cost)); }
  Decision try_acquire(std::error_code& error) const noexcept {
    return decide(*store_, take(), error);
  }
  Decision try_acquire(Cost cost, std::error_code& error) const noexcept {
    return decide(*store_, take(cost), error);
  }
  template <class Handler>
  void try_acquire_then(Cost cost, Handler handler) const {
    decide_then(*store_, take(cost), std::move(handler));
  }
  [[nodiscard]] std::future<Decision> future_try_acquire(Cost cost = 1) const {
    return future_decide(*store_, take(cost));
  }
  [[nodiscard]] DecideAwaitable awaitable_try_acquire(Cost cost = 1) const {
    return {*store_, take(cost)};
  }
  Decision peek(Cost cost = 1) const { return decide(*store_, look(cost)); }
  Decision peek(std::error_code& error) const noexcept { return decide(*store_, look(), error); }
  Decision peek(Cost cost, std::error_code& error) const noexcept {
    return decide(*store_, look(cost), error);
  }
  [[nodiscard]] Step take(Cost cost = 1) const noexcept { return step(token_bucket_take, cost); }
  [[nodiscard]] Step look(Cost cost = 1) const noexcept { return step(token_bucket_peek, cost); }

 private:
  friend class TokenBucket;

  BoundTokenBucket(Store& store, const Key& key, const Arguments& args);
  [[nodiscard]] Step step(const Operation& operation, Cost cost) const noexcept {
    Step result{&operation, key_, args_, &binding_};
    result.args[4] = cost.value();
    return result;
  }

  // In one piece, so that a limiter that is cold costs as few misses as can be.
  Store* store_;
  mutable Binding binding_;  // what the store remembers
  Key key_;                  // its bytes are in bytes_
  Arguments args_;
  std::unique_ptr<char[]> bytes_;
};

}  // namespace sluice
