// How the calls of a FixedWindow are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/fixed_window.hpp"

namespace sluice {

/// Asks a step with the windows around the present; if the store's clock is not in them, learns the
/// difference of the clocks and asks again. The limiter must live until it is over.
class FixedWindow::Asking {
 public:
  using Result = Decision;

  Asking(const FixedWindow& window, const Step& step) noexcept : window_(&window), step_(step) {}
  /// Plan::idempotent()
  [[nodiscard]] Asking idempotent(const RequestId& id) && noexcept {
    id_ = id;
    return *this;
  }

  [[nodiscard]] Store& store() const noexcept { return window_->store(); }
  [[nodiscard]] std::optional<Plan> next() noexcept;
  void hear(const Outcome& outcome) noexcept;
  [[nodiscard]] Decision take(std::error_code& error) const noexcept {
    error = error_;
    return decision_;
  }

 private:
  enum class Due : std::uint8_t { step, clock, nothing };

  const FixedWindow* window_;
  Step step_;
  Step clock_step_ = step_;
  std::optional<RequestId> id_{};
  Due due_ = Due::step;
  int asked_ = 0;
  std::error_code error_{};
  Decision decision_{};
};

/// Verbs of the calls that are more than a step; see sluice/detail/verb.hpp.
struct FixedWindow::Verbs : detail::ReservationVerbs<FixedWindow> {
  using Reward = detail::GivesBack<Asking, detail::WhenUnits>;

  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const FixedWindow& window, const Key& key,
                                                     Cost cost);

  struct AsReservation {
    Reservation operator()(const Decision& decision, std::error_code& /*error*/) const noexcept {
      Reservation result = reservation(decision, {}, cost);
      result.key_mark = key_mark;
      return result;
    }
    Cost cost;
    std::uint64_t key_mark;
  };
  struct Learn {
    detail::Done operator()(const Outcome& outcome, std::error_code& error) const noexcept {
      if (!error) window->learn_clock(outcome.decision);
      return {};
    }
    const FixedWindow* window;
  };

  static Asking try_acquire(const FixedWindow& window, const Key& key, Cost cost) {
    return {window, window.acquire_step(key, cost)};
  }
  static Asking peek(const FixedWindow& window, const Key& key, Cost cost) {
    return {window, window.peek_step(key, cost)};
  }
  static Reward reward(const FixedWindow& window, const Key& key, Cost amount) {
    return {detail::WakeUp(window),
            [&] { return Asking(window, window.reward_step(key, amount)); }};
  }
  static Asking penalize(const FixedWindow& window, const Key& key, Cost amount) {
    return {window, window.penalize_step(key, amount)};
  }
  static Asking block(const FixedWindow& window, const Key& key, Span span) {
    return {window, window.block_step(key, span)};
  }
  static detail::MappedVerb<Asking, AsReservation> reserve(const FixedWindow& window,
                                                           const Key& key, Cost cost) {
    return {try_acquire(window, key, cost), {cost, detail::key_mark(window.named(key))}};
  }
  static detail::StepVerb<Learn> synchronize(const FixedWindow& window, const Key& key) {
    return {window.store(), window.clock_step(key), {&window}};
  }

  static Word refunded(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                       std::error_code& /*error*/) noexcept {
    return outcome.decision.allowed ? detail::word_of(outcome, 0) : 0;
  }
  /// Once the window of the grant has ended, there is nothing to charge.
  static Word charged(const Outcome& outcome, Word units, Reservation& after,
                      std::error_code& error) noexcept {
    if (error == Errc::outside_calendar) error.clear();
    return refunded(outcome, units, after, error);
  }
};

}  // namespace sluice
