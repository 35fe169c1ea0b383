// The fixed window limiter, which sends the windows around the store's time.
#include "sluice/limiters/fixed_window.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <stdexcept>

#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

constexpr int max_asked = 3;

constexpr std::size_t window_words = 1 + FixedWindowRule::boundaries;

Word valid(detail::Given limit) {
  if (limit.within(0, FixedWindowRule::max_limit)) return limit.word();
  if (limit.within(unlimited, unlimited)) return unlimited;
  throw std::invalid_argument("the limit of a window must be 0 to 2^42, or unlimited, got " +
                              to_string(limit));
}

}  // namespace

/// Any thread may call any member.
struct FixedWindow::Known {
  /// The store's clock minus Store::clock(), as far as it is known.
  std::atomic<Word> ahead{0};

  /// Calendar::words() at `now`, if the stored window contains `now` and the next `lag`.
  [[nodiscard]] bool around(Time now, Span lag,
                            std::span<Word, window_words> words) const noexcept {
    const unsigned turn = turn_;
    std::copy(words_.begin(), words_.end(), words.begin());
    return turn % 2 == 0 && turn_ == turn && words[2] <= to_word(now) &&
           to_word(now + lag) < words[3];
  }
  void remember(std::span<const Word, window_words> words) noexcept {
    unsigned turn = turn_;
    if (turn % 2 != 0 || !turn_.compare_exchange_strong(turn, turn + 1)) return;
    std::copy(words.begin(), words.end(), words_.begin());
    turn_ = turn + 2;
  }

 private:
  std::atomic<unsigned> turn_{0};  // odd while words are written
  std::array<std::atomic<Word>, window_words> words_{};
};

FixedWindow::FixedWindow(const StoreHandle& store, detail::TextArg name, detail::Given limit,
                         Calendar calendar)
    : FixedWindow(store, name, detail::LimitOf<Word>(valid(limit)), std::move(calendar)) {}

FixedWindow::FixedWindow(const StoreHandle& store, detail::TextArg name,
                         std::shared_ptr<const LimitTable<Word>> limits, Calendar calendar)
    : FixedWindow(store, name, detail::LimitOf<Word>(std::move(limits)), std::move(calendar)) {}

FixedWindow::FixedWindow(const StoreHandle& store, detail::TextArg name,
                         detail::LimitOf<Word> limit, Calendar calendar)
    : KeyedLimiter(store, name, calendar.to_string()),
      limit_(std::move(limit)),
      calendar_(std::move(calendar)),
      known_(std::make_shared<Known>()) {}

Step FixedWindow::step(const Operation& operation, const Key& key, Cost cost) const noexcept {
  Step result{&operation, named(key), {limit_.of(key)}};
  result.args[7] = cost.value();
  if (detail::is_constant(result.args[0])) return detail::constant_step(result);
  const auto words = std::span(result.args).subspan<1, window_words>();
  const auto set_words = [&](Time time) {
    const auto the_words = calendar_.words(time);
    std::copy(the_words.begin(), the_words.end(), words.begin());
  };
  if (calendar_.is_even()) {
    set_words({});
    return result;
  }
  Clock& clock = store().clock();
  const auto by_store = [&](Time now) {
    return std::clamp(now + Span{known_->ahead}, Time{}, to_time(word_limit));
  };
  if (known_->around(by_store(clock.coarse_now()), Clock::coarse_lag, words)) return result;
  const Time now = by_store(clock.now());
  if (!known_->around(now, Span{0}, words)) {
    set_words(now);
    known_->remember(words);
  }
  return result;
}

Step FixedWindow::refund_step(const Key& key, const Reservation& grant,
                              Cost amount) const noexcept {
  const Calendar::Window window = calendar_.window(grant.at);
  return detail::by_limit(
      {&fixed_window_refund,
       named(key),
       {limit_.of(key), to_word(window.begin), to_word(window.end), amount.value()}});
}

/// It sends a calendar of the grant's window alone: once that has ended, it does not contain the
/// present.
Step FixedWindow::charge_step(const Key& key, const Reservation& grant, Cost units) const noexcept {
  const Calendar::Window window = calendar_.window(grant.at);
  const Word end = to_word(window.end);
  return detail::by_limit(
      {&fixed_window_adjust,
       named(key),
       {limit_.of(key), 0, to_word(window.begin), end, end, end, end, units.value()}});
}

Step FixedWindow::clock_step(const Key& key) const noexcept {
  // A peek with windows of one width, which every clock is in, under a unit that no calendar has,
  // so that it reads no state.
  return {&fixed_window_peek,
          detail::LimiterKey{named(key).with_unit("clock"), store_handle().address()},
          {1, std::chrono::microseconds{std::chrono::hours{1}}.count()}};
}

void FixedWindow::learn_clock(const Decision& answer) const noexcept {
  known_->ahead = (answer.at - store().clock().now()).count();
}

void FixedWindow::synchronize(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::synchronize(*this, key), error);
}

void FixedWindow::synchronize(const KeyArg& key) const {
  std::error_code error;
  synchronize(key, error);
  if (error) throw detail::failed_call({type_name, "synchronize"}, error, reset_step(key));
}

std::optional<Plan> FixedWindow::Asking::next() noexcept {
  if (due_ == Due::nothing) return std::nullopt;
  if (due_ == Due::clock) {
    clock_step_ = window_->clock_step(step_.key);
    return Plan(clock_step_);
  }
  // Again: by what was learned about the store's clock.
  if (asked_ != 0) step_ = window_->step(*step_.operation, step_.key, step_.args[7]);
  ++asked_;
  return id_ ? Plan(step_).idempotent(*id_) : Plan(step_);
}

void FixedWindow::Asking::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  if (due_ == Due::clock) {
    due_ = error_ ? Due::nothing : Due::step;
    if (!error_) window_->learn_clock(outcome.decision);
    return;
  }
  decision_ = outcome.decision;
  due_ = error_ == Errc::outside_calendar && asked_ < max_asked ? Due::clock : Due::nothing;
}

Decision FixedWindow::try_acquire(const KeyArg& key, Cost cost,
                                  std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost), error);
}

Decision FixedWindow::try_acquire(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, error); });
}

Decision FixedWindow::try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                  std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost).idempotent(id), error);
}

Decision FixedWindow::try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const {
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return try_acquire(key, cost, id, error); });
}

Decision FixedWindow::peek(const KeyArg& key, Cost cost, std::error_code& error) const noexcept {
  return detail::run(Verbs::peek(*this, key, cost), error);
}

Decision FixedWindow::peek(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "peek"}, [&] { return peek_step(key, cost); },
      [&](auto& error) { return peek(key, cost, error); });
}

Decision FixedWindow::penalize(const KeyArg& key, Cost amount,
                               std::error_code& error) const noexcept {
  return detail::run(Verbs::penalize(*this, key, amount), error);
}

Decision FixedWindow::penalize(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "penalize"}, [&] { return refund_step(key, {}, amount); },
      [&](auto& error) { return penalize(key, amount, error); });
}

Decision FixedWindow::block(const KeyArg& key, SpanArg span,
                            std::error_code& error) const noexcept {
  return detail::run(Verbs::block(*this, key, span), error);
}

Decision FixedWindow::block(const KeyArg& key, SpanArg span) const {
  return detail::or_throw(
      {type_name, "block"}, [&] { return block_step(key, span); },
      [&](auto& error) { return block(key, span, error); });
}

Reservation FixedWindow::reserve(const KeyArg& key, Cost cost,
                                 std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost), error);
}

Reservation FixedWindow::reserve(const KeyArg& key, Cost cost) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return acquire_step(key, cost); },
      [&](auto& error) { return reserve(key, cost, error); });
}

Decision FixedWindow::reward(const KeyArg& key, Cost amount,
                             std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision FixedWindow::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return refund_step(key, {}, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

void FixedWindow::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void FixedWindow::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

struct FixedWindow::Verbs::Claimed final : detail::ClaimOf<FixedWindow, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
};

std::unique_ptr<detail::ClaimedLimit> FixedWindow::Verbs::claim(const FixedWindow& window,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(window, key, cost);
}

template class KeyedLimiter<FixedWindow>;

}  // namespace sluice
