// How the calls of a SharedSlidingWindow are made.
#pragma once

#include "sluice/detail/reservation_verb.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"

namespace sluice {

/// A request by the rate of its key: the remembered one and, if that has changed, the one in the
/// store. It owns what its plans view.
class SharedSlidingWindow::Asking {
 public:
  /// `asked`: the step of the log, without what depends on the rate; see Rates::steps().
  Asking(std::shared_ptr<const Rates> rates, const Step& asked,
         const std::optional<RequestId>& id) noexcept;

  [[nodiscard]] std::optional<Plan> next() noexcept;
  void hear(const Outcome& outcome) noexcept;
  /// That of the step of the log, when next() has nothing to ask: its output words are the first
  /// one of the step, the generation of the log, and the next two of the step.
  [[nodiscard]] Outcome outcome() const noexcept { return {error_, decision_, {}, words_}; }
  /// For exceptions: the step that has failed.
  [[nodiscard]] Step failed_step() const noexcept;

 private:
  enum class Due : std::uint8_t { rate, request, nothing };

  void hear_rate(const Outcome& outcome) noexcept;
  void hear_answer(const Outcome& outcome) noexcept;
  /// Nothing is left that the request is about.
  void find_nothing() noexcept;

  std::shared_ptr<const Rates> rates_;
  std::shared_ptr<const Rate> rate_;
  Step asked_;
  std::optional<RequestId> id_;
  std::optional<std::array<Step, 2>> steps_{};
  Due due_ = Due::nothing;
  bool remembered_ = false;  // rate_ was
  int attempts_ = 0;
  bool of_log_ = false;  // the log was at fault
  std::error_code error_{};
  Decision decision_{};
  std::array<Word, 4> words_{};
};

/// Verbs of the calls; see sluice/detail/verb.hpp. The limiter, or a copy of it, must live until
/// those that give something back are over.
struct SharedSlidingWindow::Verbs {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const SharedSlidingWindow& limiter,
                                                     const Key& key, Cost cost);

  /// A verb of one step of the log, which is asked by the rate of the key.
  template <class Verb>
  class ByRate {
   public:
    using Result = typename Verb::Result;
    ByRate(const SharedSlidingWindow& limiter, Verb verb)
        : rates_(limiter.rates_), verb_(std::move(verb)) {}
    /// Plan::idempotent()
    [[nodiscard]] ByRate idempotent(const RequestId& id) && {
      id_ = id;
      return std::move(*this);
    }

    [[nodiscard]] Store& store() const noexcept { return verb_.store(); }
    [[nodiscard]] std::optional<Plan> next() {
      if (!asking_) {
        const std::optional<Plan> plan = verb_.next();
        if (!plan) return std::nullopt;
        asking_.emplace(std::move(rates_), plan->steps().front(), id_);
      }
      auto plan = asking_->next();
      if (!plan) verb_.hear(asking_->outcome());
      return plan;
    }
    void hear(const Outcome& outcome) noexcept { asking_->hear(outcome); }
    [[nodiscard]] Result take(std::error_code& error) { return verb_.take(error); }
    void commit() noexcept { detail::commit(verb_); }
    [[nodiscard]] bool gives_back() const noexcept {
      if constexpr (requires { verb_.gives_back(); }) return verb_.gives_back();
      return true;
    }
    /// After an error of the store.
    [[nodiscard]] std::optional<Step> failed_step() const noexcept {
      return asking_ ? std::optional(asking_->failed_step()) : std::nullopt;
    }

   private:
    std::shared_ptr<const Rates> rates_;
    Verb verb_;
    std::optional<RequestId> id_{};
    std::optional<Asking> asking_{};
  };

  struct AsReservation {
    Reservation operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      if (outcome.error) return {};
      return {outcome.decision, cost.value(), outcome.output.subspan(1)};
    }
    Cost cost;
  };
  struct AsChange {
    Change operator()(const Outcome& outcome, std::error_code& /*error*/) const noexcept {
      return {detail::word_of(outcome, 1) != 0, detail::word_of(outcome, 0)};
    }
  };
  /// Remembers a rate that was read.
  struct AsRead {
    std::optional<RateConfiguration> operator()(const Outcome& outcome,
                                                std::error_code& error) const noexcept;
    std::shared_ptr<const Rates> rates;
    Key key;
  };
  struct AsConfiguration {
    std::optional<RateConfiguration> operator()(const std::optional<RateConfiguration>& read,
                                                std::error_code& error) const noexcept {
      if (error == Errc::not_configured) error.clear();
      return read;
    }
  };
  struct AsRefreshed {
    detail::Done operator()(const std::optional<RateConfiguration>& /*read*/,
                            std::error_code& /*error*/) const noexcept {
      return {};
    }
  };
  /// The log of a key, as detail::ReservationChange takes it.
  struct Log {
    using Verbs = SharedSlidingWindow::Verbs;
    [[nodiscard]] Store& store() const noexcept { return limiter.store(); }
    [[nodiscard]] Step refund_step(const Key& key, const Reservation& grant,
                                   Cost amount) const noexcept;
    [[nodiscard]] Step charge_step(const Key& key, const Reservation& grant,
                                   Cost units) const noexcept;
    /// For exceptions: a charge that was not asked, by the remembered rate.
    [[nodiscard]] Step unasked(const Key& key) const noexcept;
    const SharedSlidingWindow& limiter;

   private:
    [[nodiscard]] Step settle_step(const Key& key, const Reservation& grant, Cost units,
                                   Word change) const noexcept;
  };
  /// The first output word of the log's step is how much; reading the rate gives nothing back.
  struct WhenUnits {
    bool operator()(const Outcome& outcome) const noexcept {
      return outcome.steps.size() > 1 && detail::word_of(outcome, 0) > 0;
    }
  };
  using Configure = detail::GivesBack<detail::StepVerb<AsChange>, detail::WhenChanged>;
  using Decide = ByRate<detail::StepVerb<detail::AsDecision>>;
  using Read = detail::StepVerb<AsRead>;
  using Refund = detail::GivesBack<ByRate<detail::RefundVerb>, WhenUnits>;
  using Settle = detail::GivesBack<ByRate<detail::SettleVerb>, WhenUnits>;

  static Configure try_configure(const SharedSlidingWindow& limiter, const Key& key, RateType type,
                                 Word rate, Span interval);
  static Configure configure(const SharedSlidingWindow& limiter, const Key& key, RateType type,
                             Word rate, Span interval, SpentUnits spent);
  static Read read(const SharedSlidingWindow& limiter, const Key& key);
  static detail::MappedVerb<Read, AsConfiguration> configuration(const SharedSlidingWindow& limiter,
                                                                 const Key& key) {
    return {read(limiter, key), {}};
  }
  static detail::MappedVerb<Read, AsRefreshed> refresh(const SharedSlidingWindow& limiter,
                                                       const Key& key) {
    return {read(limiter, key), {}};
  }

  static Decide try_acquire(const SharedSlidingWindow& limiter, const Key& key, Cost cost) {
    return decide(limiter, acquire_step(limiter, key, cost, Span{0}));
  }
  static Decide peek(const SharedSlidingWindow& limiter, const Key& key, Cost cost) {
    return decide(limiter, peek_step(limiter, key, cost));
  }
  static Decide block(const SharedSlidingWindow& limiter, const Key& key, Span span) {
    return decide(limiter, block_step(limiter, key, span));
  }
  static detail::GivesBack<Decide, WhenUnits> reward(const SharedSlidingWindow& limiter,
                                                     const Key& key, Cost amount) {
    return {detail::WakeUp(limiter),
            [&] { return decide(limiter, reward_step(limiter, key, amount)); }};
  }
  static ByRate<detail::StepVerb<AsReservation>> reserve(const SharedSlidingWindow& limiter,
                                                         const Key& key, Cost cost,
                                                         Span max_wait = Span{0}) {
    return {limiter, {limiter.store(), acquire_step(limiter, key, cost, max_wait), {cost}}};
  }
  static Refund refund(const SharedSlidingWindow& limiter, const Key& key, Reservation& grant,
                       Cost amount) {
    using detail::ReservationChange;
    return {detail::WakeUp(limiter), [&]() -> ByRate<detail::RefundVerb> {
              return {limiter, detail::RefundVerb(
                                   ReservationChange::refund(Log{limiter}, key, grant, amount))};
            }};
  }
  static Refund cancel(const SharedSlidingWindow& limiter, const Key& key, Reservation& grant) {
    return refund(limiter, key, grant, grant.granted);
  }
  static Settle settle(const SharedSlidingWindow& limiter, const Key& key, Reservation& grant,
                       Cost actual) {
    using detail::ReservationChange;
    return {detail::WakeUp(limiter), [&]() -> ByRate<detail::SettleVerb> {
              return {limiter, detail::SettleVerb(
                                   ReservationChange::settle(Log{limiter}, key, grant, actual))};
            }};
  }

  static Word refunded(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                       std::error_code& /*error*/) noexcept {
    return detail::word_of(outcome, 0);
  }
  static Word charged(const Outcome& outcome, Word /*units*/, Reservation& /*after*/,
                      std::error_code& /*error*/) noexcept {
    return detail::word_of(outcome, 0);
  }

  /// Steps of the log, without what depends on the rate; see Rates::steps().
  static Step acquire_step(const SharedSlidingWindow& limiter, const Key& key, Cost cost,
                           Span max_wait) noexcept;
  static Step peek_step(const SharedSlidingWindow& limiter, const Key& key, Cost cost) noexcept;
  static Step block_step(const SharedSlidingWindow& limiter, const Key& key, Span span) noexcept;
  static Step reward_step(const SharedSlidingWindow& limiter, const Key& key, Cost amount) noexcept;

 private:
  static Configure configuring(const SharedSlidingWindow& limiter, const Step& step);
  static Decide decide(const SharedSlidingWindow& limiter, const Step& asked) {
    return {limiter, detail::verb_of(limiter.store(), asked)};
  }
};

// Their exceptions are about the step that has failed.
template <>
Word KeyedLimiter<SharedSlidingWindow>::refund(const KeyArg& key, Reservation& grant,
                                               Cost amount) const;
template <>
Word KeyedLimiter<SharedSlidingWindow>::cancel(const KeyArg& key, Reservation& grant) const;
template <>
Settlement KeyedLimiter<SharedSlidingWindow>::settle(const KeyArg& key, Reservation& grant,
                                                     Cost actual) const;

/// An awaitable try_acquire(), to be awaited in the expression that makes it; see DecideAwaitable.
class [[nodiscard]] SharedSlidingWindowAwaitable : public detail::Awaited {
 public:
  SharedSlidingWindowAwaitable(const SharedSlidingWindow& limiter, const Key& key, Cost cost)
      : limiter_(limiter), key_(key), cost_(cost) {}
  bool await_suspend(std::coroutine_handle<> waiter) {
    return suspend(waiter,
                   [this](Completion done) { limiter_.ask_then(key_, cost_, std::move(done)); });
  }

 private:
  const SharedSlidingWindow& limiter_;
  Key key_;
  Cost cost_;
};

inline SharedSlidingWindowAwaitable SharedSlidingWindow::awaitable_try_acquire(const Key& key,
                                                                               Cost cost) const {
  return {*this, key, cost};
}

}  // namespace sluice
