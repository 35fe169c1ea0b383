// How one waits for a shared sliding window. Apart from its other calls: who never waits links no
// waiting.
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "src/limiters/shared_sliding_window_rates.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {

struct SharedSlidingWindow::Verbs::Claimed final : detail::ClaimOf<SharedSlidingWindow, Claimed> {
  Claimed(const SharedSlidingWindow& limiter, const Key& key, Cost cost)
      : ClaimOf(limiter, key, cost), rate_(rates().of(Claimed::key())) {}

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  /// As far as it is known.
  bool is_shared() const noexcept override {
    return !rate_ || rate_->setting.type == RateType::overall;
  }

  Step step() const noexcept override { return steps()[1]; }
  std::optional<Step> condition() const noexcept override { return steps()[0]; }
  std::optional<Step> preparation(std::error_code& /*error*/) noexcept override {
    rate_ = std::exchange(is_outdated_, false) ? nullptr : rates().of(key());
    // The stored rate may be larger than the remembered one.
    is_remembered_ = rate_ && rate_->decides(cost().value());
    if (is_remembered_) return {};
    return rates().read_step(key());
  }
  std::error_code prepared(const Outcome& own) noexcept override {
    std::error_code error;
    auto read = rates().remember(key(), own.output, error);
    if (!error) rate_ = std::move(read);
    return error;
  }
  bool is_outdated(const std::error_code& error) noexcept override {
    is_outdated_ =
        error == Errc::config_changed || (error == Errc::not_configured && is_remembered_);
    return is_outdated_;
  }

  Reservation grant_of(const Outcome& own, Time /*asked*/) const noexcept {
    const std::array words{rate_ ? rate_->generation : 0, detail::word_of(own, 1),
                           detail::word_of(own, 2)};
    return {own.decision, cost().value(), words};
  }
  // Later ones of the grant, by its rate. Of a log that nobody asks any more they concern nobody.
  Step refund_step(const Reservation& grant, Word units) const noexcept {
    return rates().steps(*rate_, Log{limiter()}.refund_step(own_key(), grant, units))[1];
  }
  Step charge_step(const Reservation& grant, Word units) const noexcept {
    return rates().steps(*rate_, Log{limiter()}.charge_step(own_key(), grant, units))[1];
  }
  std::system_error failed(const detail::CallName& call,
                           const std::error_code& error) const override {
    return limiter().failed(call, error, asked());
  }

 private:
  [[nodiscard]] const Rates& rates() const noexcept { return *limiter().rates_; }
  [[nodiscard]] Step asked() const noexcept {
    return acquire_step(limiter(), own_key(), cost(), Span{0});
  }
  /// Until the rate is known, steps that stand for those.
  [[nodiscard]] std::array<Step, 2> steps() const noexcept {
    if (rate_) return rates().steps(*rate_, asked());
    const Step read = rates().read_step(key());
    return {read, read};
  }

  std::shared_ptr<const Rate> rate_;  // of the request
  bool is_remembered_ = false;        // ... and it was not read for it
  bool is_outdated_ = false;
};

std::unique_ptr<detail::ClaimedLimit> SharedSlidingWindow::Verbs::claim(
    const SharedSlidingWindow& limiter, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(limiter, key, cost);
}

template Reservation KeyedLimiter<SharedSlidingWindow>::acquire(const KeyArg&, Cost,
                                                                const Deadline&,
                                                                const WaitOptions&) const;
template Reservation KeyedLimiter<SharedSlidingWindow>::acquire(const KeyArg&, Cost,
                                                                const Deadline&, const WaitOptions&,
                                                                std::error_code&) const noexcept;
template std::size_t KeyedLimiter<SharedSlidingWindow>::waiting(const KeyArg&) const;

}  // namespace sluice
