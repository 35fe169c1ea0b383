// BoundTokenBucket: a token bucket for one frequently used key; made by TokenBucket::at().
#pragma once

#include <memory>

#include "sluice/decide.hpp"
#include "sluice/extend/binding.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

class TokenBucket;

/// A TokenBucket for one key, with the same calls, which skips the look-up of the key. Thread-safe;
/// movable while no other thread uses it, and no step of it is in use. Borrows or owns its store:
/// see StoreHandle.
class BoundTokenBucket {
 public:
  static constexpr const char* type_name = "BoundTokenBucket";  ///< in messages of exceptions

  BoundTokenBucket(BoundTokenBucket&& other) noexcept;
  BoundTokenBucket& operator=(BoundTokenBucket&& other) noexcept;
  ~BoundTokenBucket() = default;

  [[nodiscard]] Decision try_acquire(Cost cost = 1) const {
    return decide_as("try_acquire", acquire_step(cost));
  }
  [[nodiscard]] Decision try_acquire(std::error_code& error) const noexcept {
    return detail::decide_own(*store_, step_, error);
  }
  [[nodiscard]] Decision try_acquire(Cost cost, std::error_code& error) const noexcept {
    return detail::decide_own(*store_, acquire_step(cost), error);
  }
  /// Charges at most once under this id; see Plan::idempotent().
  [[nodiscard]] Decision try_acquire(Cost cost, const RequestId& id) const {
    return decide_as("try_acquire", Plan(acquire_step(cost)).idempotent(id));
  }
  [[nodiscard]] Decision try_acquire(Cost cost, const RequestId& id,
                                     std::error_code& error) const noexcept {
    return detail::decide_own(*store_, Plan(acquire_step(cost)).idempotent(id), error);
  }
  template <class Handler>
  void try_acquire_then(Cost cost, Handler handler) const {
    decide_then(*store_, acquire_step(cost), std::move(handler));
  }
  [[nodiscard]] std::future<Decision> future_try_acquire(Cost cost = 1) const {
    return detail::future_decide_as({type_name, "future_try_acquire"}, *store_, acquire_step(cost));
  }
  [[nodiscard]] DecideAwaitable awaitable_try_acquire(Cost cost = 1) const {
    return {*store_, acquire_step(cost)};
  }
  [[nodiscard]] Decision peek(Cost cost = 1) const { return decide_as("peek", peek_step(cost)); }
  [[nodiscard]] Decision peek(std::error_code& error) const noexcept {
    return detail::decide_own(*store_, peek_step(), error);
  }
  [[nodiscard]] Decision peek(Cost cost, std::error_code& error) const noexcept {
    return detail::decide_own(*store_, peek_step(cost), error);
  }
  [[nodiscard]] Step acquire_step(Cost cost = 1) const noexcept {
    Step result = step_;
    result.args[is_plain() ? 4 : 7] = cost.value();
    return result;
  }
  [[nodiscard]] Step peek_step(Cost cost = 1) const noexcept {
    Step result = acquire_step(cost);
    result.operation = is_plain() ? &token_bucket_peek : &token_bucket_peek_reserve;
    return result;
  }

  [[nodiscard]] Store& store() const noexcept { return *store_; }

 private:
  friend class TokenBucket;

  /// `step` acquires one unit.
  BoundTokenBucket(const StoreHandle& store, const Step& step);
  template <class Asked>
  Decision decide_as(const char* verb, const Asked& asked) const {
    return detail::decide_as({type_name, verb}, *store_, asked);
  }
  /// Uses the plain form of the rule.
  [[nodiscard]] bool is_plain() const noexcept { return step_.operation == &token_bucket_acquire; }

  // Contiguous members, so that a cold limiter costs few cache misses.
  StoreHandle store_;
  mutable Binding binding_;  // filled by the store
  Step step_;                // acquires one unit; its key's bytes are in bytes_
  std::unique_ptr<char[]> bytes_;
};

}  // namespace sluice
