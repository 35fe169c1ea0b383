// StoreHandle: how a limiter refers to its store, borrowed or owned. Threading: as std::shared_ptr.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/detail/exceptions.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// The store parameter of limiters: a reference borrows the store, a smart pointer shares its
/// ownership.
///
///     TokenBucket(*store, "api", quota)                // the store outlives the limiter
///     TokenBucket(make_memory_store(), "api", quota)   // the limiter and its copies own the store
///     TokenBucket(shared_store, "api", quota)          // the same, with other owners
///
/// A temporary store does not compile. If a borrowed store ends before its limiter, as static
/// objects may, the calls of the limiter fail with Errc::shut_down; on other threads no call may be
/// under way then. Copies share the ownership of the original; a move copies, so that a moved-from
/// limiter stays valid. Waits and leases do not own the store: a limiter or another owner must live
/// until they have ended.
class StoreHandle {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a store is a handle
  StoreHandle(Store& store) noexcept
      : store_(std::shared_ptr<Store>(), &store), life_(store.life()) {}
  StoreHandle(Store&&) = delete;
  /// From a std::shared_ptr or std::unique_ptr to a store. Throws std::invalid_argument if it is
  /// null.
  template <class Owner>
  requires(!std::same_as<std::remove_cvref_t<Owner>, StoreHandle> &&
           !std::same_as<std::remove_cvref_t<Owner>, std::nullptr_t> &&
           std::convertible_to<Owner, std::shared_ptr<Store>>) StoreHandle(Owner&& owner)
      : store_(std::forward<Owner>(owner)) {
    if (store_ == nullptr) {
      detail::raise(std::invalid_argument("the pointer to a store is null"));
    }
  }
  template <class S, class Deleter>
  StoreHandle(const std::unique_ptr<S, Deleter>&) = delete;  // pass *store, or std::move(store)
  // NOLINTEND(google-explicit-constructor)
  StoreHandle(const StoreHandle&) noexcept = default;
  StoreHandle& operator=(const StoreHandle&) noexcept = default;
  ~StoreHandle() = default;

  /// The store, or detail::ended_store() once a borrowed one has ended.
  [[nodiscard]] Store& operator*() const noexcept {
    return life_.is_over() ? detail::ended_store() : *store_;
  }
  [[nodiscard]] Store* operator->() const noexcept { return &**this; }
  /// Only its address may be used: it may have ended.
  [[nodiscard]] const Store& address() const noexcept { return *store_; }

  /// Gives up the ownership and keeps the reference.
  void borrow() noexcept {
    if (store_.use_count() == 0) return;
    life_ = store_->life();
    store_ = {std::shared_ptr<Store>(), store_.get()};
  }

 private:
  std::shared_ptr<Store> store_;
  detail::Life::View life_;  // of a borrowed store
};

}  // namespace sluice
