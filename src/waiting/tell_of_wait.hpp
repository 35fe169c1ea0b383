// Tells the observer of a store of the calls that wait there. Called without a lock.
#pragma once

#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/detail/store_ref.hpp"
#include "sluice/observer.hpp"

namespace sluice::detail {

/// How observers and operators are told of a limit and its key: a gate's scope has a name alone.
struct ToldNames {
  std::string_view limiter;
  std::string_view key;
};
[[nodiscard]] inline ToldNames names_of(const ClaimedLimit& limit) noexcept {
  const Key key = limit.key();
  const bool is_gate = limit.close_step(Span{0}).has_value();
  return {limit.name(), is_gate ? key.name() : key.tag()};
}

/// Which wait it is.
struct ToldWait {
  const StoreRef& store;
  const void* call;           ///< its address
  const ClaimedLimit& first;  ///< of its limits

  /// Null: nobody is told.
  [[nodiscard]] Observer* observer() const noexcept {
    return store.is_over() ? nullptr : store.get().observer();
  }
  [[nodiscard]] WaitEvent event() const noexcept {
    const auto [limiter, key] = names_of(first);
    return {.call = call, .limiter = limiter, .key = key};
  }
};

inline void tell_of_begin(const ToldWait& wait) noexcept {
  if (Observer* const observer = wait.observer()) tell(*observer, wait.event());
}

/// `refuser`: the limit that has refused it last, or null.
inline void tell_of_end(const ToldWait& wait, const Arrival& arrival, const std::error_code& error,
                        bool is_refused, const ClaimedLimit* refuser) noexcept {
  Observer* const observer = wait.observer();
  if (observer == nullptr) return;
  using Result = WaitEvent::Result;
  WaitEvent event = wait.event();
  event.result = error == Errc::cancelled ? Result::cancelled
                 : error                  ? Result::failed
                 : is_refused             ? Result::refused
                                          : Result::granted;
  if (refuser != nullptr) event.waited_for = refuser->name();
  event.waited = wait.store.get().clock().now() - to_time(arrival.at);
  event.error = error;
  tell(*observer, event);
}

}  // namespace sluice::detail
