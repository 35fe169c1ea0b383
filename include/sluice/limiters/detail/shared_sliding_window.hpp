// How the calls of a SharedSlidingWindow are made, and how acquire() waits.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"

namespace sluice {

/// A request, which is decided by the cached configuration or, if that has changed, by the one in
/// the store.
struct SharedSlidingWindow::Question {
  enum class Verb : std::uint8_t { acquire, peek, block, reward };

  Cost permits;
  Verb verb = Verb::acquire;
  Span span{0};  // the longest wait, or the length of a block
  std::optional<RequestId> id{};
  /// The least rate under which the request can succeed.
  [[nodiscard]] Word needed() const noexcept { return verb == Verb::reward ? 0 : permits.value(); }
};

/// A decision and the configuration that it was made by; on an error, the configuration whose log
/// was at fault, or null.
struct SharedSlidingWindow::Answered {
  Decision decision;
  std::shared_ptr<const Known> used;
};

/// A request: by the cached configuration, and again by the stored one if that has changed.
class SharedSlidingWindow::Asking {
 public:
  using Result = Answered;

  Asking(const SharedSlidingWindow& limiter, const Question& question);

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next();
  void hear(const Outcome& outcome) noexcept;
  /// On an error, the configuration whose log was at fault, or null.
  [[nodiscard]] Answered take(std::error_code& error) noexcept {
    error = error_;
    return std::move(answered_);
  }

 private:
  void hear_setting(const Outcome& outcome) noexcept;
  void hear_answer(const Outcome& outcome) noexcept;

  const SharedSlidingWindow* limiter_;
  Store* store_;
  detail::Life::View life_;  // the limiter's
  Question question_;
  std::shared_ptr<const Known> setting_;
  bool remembered_;  // setting_ was cached
  enum class Due : std::uint8_t { setting, request, nothing } due_;
  std::optional<std::array<Step, 2>> steps_{};
  int attempts_ = 0;
  std::error_code error_{};
  Answered answered_{};
};

/// A refund or a further charge of a reservation, which is read when the verb is made, and updated
/// by commit().
class SharedSlidingWindow::Changing {
 public:
  /// A call that is over at once.
  Changing(const SharedSlidingWindow& limiter, RateReservation& reservation,
           std::error_code error = {});
  /// Refunds `units`.
  static Changing refund(const SharedSlidingWindow& limiter, RateReservation& reservation,
                         Cost units);
  /// Refunds or charges the difference to the true cost.
  static Changing settle(const SharedSlidingWindow& limiter, RateReservation& reservation,
                         Cost true_cost);

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] std::optional<Plan> next();
  void hear(const Outcome& outcome) noexcept;
  void commit() noexcept;

 protected:
  [[nodiscard]] Settlement settlement(std::error_code& error) const noexcept {
    error = error_;
    return settlement_;
  }

 private:
  Store* store_;
  RateReservation* reservation_;
  std::shared_ptr<const void> setting_;  // owns what refund_ views
  std::optional<Step> refund_{};
  std::optional<Asking> charge_{};
  bool asked_ = false;
  Word more_ = 0;
  std::error_code error_{};
  Settlement settlement_{};
};

/// Verbs of the calls; see sluice/detail/verb.hpp. The limiter must live until they are over.
struct SharedSlidingWindow::Verbs {
  class Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SharedSlidingWindow& limiter,
                                                     Cost permits);

  struct AsAnswer {
    Decision operator()(const Answered& answered, std::error_code& /*error*/) const noexcept {
      return answered.decision;
    }
  };
  struct AsRemaining {
    Word operator()(const Answered& answered, std::error_code& /*error*/) const noexcept {
      return answered.decision.remaining;
    }
  };
  struct AsReservation {
    RateReservation operator()(Answered answered, std::error_code& /*error*/) const noexcept {
      return reservation(std::move(answered), permits);
    }
    Cost permits;
  };
  struct AsChange {
    Change operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return {detail::word_of(outcome, 1) != 0, detail::word_of(outcome, 0)};
    }
  };
  struct AsSetting {
    std::optional<RateSetting> operator()(const Outcome& outcome,
                                          std::error_code& error) const noexcept {
      const auto setting = limiter->found(outcome, error);
      if (error == Errc::not_configured) error.clear();
      return setting;
    }
    const SharedSlidingWindow* limiter;
  };
  struct AsRefreshed {
    detail::Done operator()(const Outcome& outcome, std::error_code& error) const noexcept {
      static_cast<void>(limiter->found(outcome, error));
      return {};
    }
    const SharedSlidingWindow* limiter;
  };
  class Refund : public Changing {
   public:
    using Result = Word;
    explicit Refund(Changing changing) : Changing(std::move(changing)) {}
    [[nodiscard]] Word take(std::error_code& error) const noexcept {
      return settlement(error).given_back;
    }
  };
  class Settle : public Changing {
   public:
    using Result = Settlement;
    explicit Settle(Changing changing) : Changing(std::move(changing)) {}
    [[nodiscard]] Settlement take(std::error_code& error) const noexcept {
      return settlement(error);
    }
  };
  using Decide = detail::MappedVerb<Asking, AsAnswer>;
  using Configure = detail::StepVerb<AsChange>;

  static Configure try_configure(const SharedSlidingWindow& limiter, RateType type, Word rate,
                                 Span interval);
  static Configure configure(const SharedSlidingWindow& limiter, RateType type, Word rate,
                             Span interval, SpentPermits spent);
  static detail::StepVerb<AsSetting> config(const SharedSlidingWindow& limiter) {
    return {*limiter.store_, limiter.read_step(), {&limiter}};
  }
  static detail::StepVerb<AsRefreshed> refresh(const SharedSlidingWindow& limiter) {
    return {*limiter.store_, limiter.read_step(), {&limiter}};
  }
  static Decide try_acquire(const SharedSlidingWindow& limiter, Cost permits) {
    return ask(limiter, {.permits = permits});
  }
  static Decide try_acquire(const SharedSlidingWindow& limiter, Cost permits, const RequestId& id) {
    return ask(limiter, {.permits = permits, .id = id});
  }
  static detail::MappedVerb<Asking, AsReservation> reserve(const SharedSlidingWindow& limiter,
                                                           Cost permits, Span max_wait) {
    return {Asking(limiter, {.permits = permits, .span = max_wait}), {permits}};
  }
  static Refund cancel(const SharedSlidingWindow& limiter, RateReservation& reservation) {
    return Refund(Changing::refund(limiter, reservation, reservation.granted));
  }
  static Refund refund(const SharedSlidingWindow& limiter, RateReservation& reservation,
                       Cost amount) {
    return Refund(Changing::refund(limiter, reservation, amount));
  }
  static Settle settle(const SharedSlidingWindow& limiter, RateReservation& reservation,
                       Cost true_cost) {
    return Settle(Changing::settle(limiter, reservation, true_cost));
  }
  static Decide block(const SharedSlidingWindow& limiter, Span span) {
    return ask(limiter, {.permits = 0, .verb = Question::Verb::block, .span = span});
  }
  static Decide reward(const SharedSlidingWindow& limiter, Cost permits) {
    return ask(limiter, {.permits = permits, .verb = Question::Verb::reward});
  }
  static Decide peek(const SharedSlidingWindow& limiter, Cost permits) {
    return ask(limiter, {.permits = permits, .verb = Question::Verb::peek});
  }
  static detail::MappedVerb<Asking, AsRemaining> available_permits(
      const SharedSlidingWindow& limiter) {
    return {Asking(limiter, {.permits = 0, .verb = Question::Verb::peek}), {}};
  }

 private:
  static Decide ask(const SharedSlidingWindow& limiter, const Question& question) {
    return {Asking(limiter, question), {}};
  }
};

/// An awaitable try_acquire(), to be awaited in the expression that makes it; see DecideAwaitable.
class [[nodiscard]] SharedSlidingWindowAwaitable : public detail::Awaited {
 public:
  SharedSlidingWindowAwaitable(const SharedSlidingWindow& limiter, Cost permits)
      : limiter_(limiter), permits_(permits) {}
  bool await_suspend(std::coroutine_handle<> waiter) {
    return suspend(waiter,
                   [this](Completion done) { limiter_.ask_then(permits_, std::move(done)); });
  }

 private:
  const SharedSlidingWindow& limiter_;
  Cost permits_;
};

inline SharedSlidingWindowAwaitable SharedSlidingWindow::awaitable_try_acquire(Cost permits) const {
  return {*this, permits};
}

}  // namespace sluice
