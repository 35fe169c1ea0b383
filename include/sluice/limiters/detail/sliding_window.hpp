// How the calls of a SlidingWindow are made.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/sliding_window.hpp"

namespace sluice {

/// Verbs of the calls whose result is no Decision; see sluice/detail/verb.hpp.
struct SlidingWindow::Verbs {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SlidingWindow& windows, const Key& key,
                                                     Cost cost);

  struct WithWindows {
    WindowsDecision operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return with_windows(outcome.decision, outcome.output);
    }
  };
  struct AsReservation {
    WindowReservation operator()(const Outcome& outcome,
                                 std::error_code& /*error*/) const noexcept {
      return reservation(outcome.decision, outcome.output, cost);
    }
    Cost cost;
  };
  struct AsUnits {
    Word operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return detail::word_of(outcome, 0);
    }
  };
  struct AsSettlement {
    Settlement operator()(const Outcome& outcome, std::error_code& error) const noexcept;
    SettledCost cost;
  };
  using Windows = detail::StepVerb<WithWindows>;
  using Refund = detail::StepVerb<AsUnits>;

  static Windows try_acquire(const SlidingWindow& windows, const Key& key, Cost cost) {
    return {windows.store(), windows.acquire_step(key, cost), {}};
  }
  static Windows peek(const SlidingWindow& windows, const Key& key, Cost cost) {
    return {windows.store(), windows.peek_step(key, cost), {}};
  }
  static detail::StepVerb<AsReservation> reserve(const SlidingWindow& windows, const Key& key,
                                                 Cost cost, Span max_wait) {
    return {windows.store(), windows.acquire_step(key, cost, max_wait), {cost}};
  }
  static Refund refund(const SlidingWindow& windows, const Key& key, const Decision& grant,
                       Cost unused) {
    if (!grant.allowed && unused.value() >= 0) return {windows.store(), {}, {}};
    return {windows.store(), windows.refund_step(key, grant, unused), {}};
  }
  static Refund cancel(const SlidingWindow& windows, const Key& key,
                       const WindowReservation& reservation) {
    return refund(windows, key, reservation, reservation.granted);
  }
  static detail::StepVerb<AsSettlement> settle(const SlidingWindow& windows, const Key& key,
                                               const Decision& taken, const SettledCost& cost) {
    if (detail::nothing_to_settle(taken, cost)) return {windows.store(), {}, {cost}};
    return {windows.store(), windows.settle_step(key, taken, cost), {cost}};
  }
  static Windows block(const SlidingWindow& windows, const Key& key, Span span) {
    return {windows.store(), windows.block_step(key, span), {}};
  }
  static Windows reward(const SlidingWindow& windows, const Key& key, Cost amount) {
    return {windows.store(), windows.reward_step(key, amount), {}};
  }
};

}  // namespace sluice
