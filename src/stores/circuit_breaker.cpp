#include "sluice/circuit_breaker.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>

namespace sluice {
namespace {

Backoff pauses_of(const BreakerOptions& options) try {
  return {options.first_pause, options.longest_pause, Jitter::full};
} catch (const std::invalid_argument&) {
  throw std::invalid_argument(
      "BreakerOptions: 1 us <= first_pause <= longest_pause <= 86400000000 us, got " +
      std::to_string(options.first_pause.count()) + " us and " +
      std::to_string(options.longest_pause.count()) + " us");
}

}  // namespace

CircuitBreaker::CircuitBreaker(Clock& clock, const BreakerOptions& options, OnChange on_change)
    : clock_(clock),
      options_(options),
      on_change_(std::move(on_change)),
      backoff_(pauses_of(options)) {
  if (options.failures == 0) {
    throw std::invalid_argument("BreakerOptions::failures must be 1 or more, got 0");
  }
}

CircuitBreaker::Permit CircuitBreaker::ask() noexcept {
  Permit permit;
  {
    const std::lock_guard lock(mutex_);
    permit.era = era_;
    if (state_ == State::closed) {
      permit.granted = true;
      return permit;
    }
    permit.wait = rest(clock_.now());
    if (permit.wait > Span{0}) {
      ++stats_.denied;
      return permit;
    }
    state_ = State::half_open;
    ++stats_.probes;
  }
  permit.granted = permit.is_probe = true;
  notify_change(State::open, State::half_open);
  return permit;
}

void CircuitBreaker::answer(const Permit& permit, Result result) noexcept {
  State from{};
  State to{};
  {
    const std::lock_guard lock(mutex_);
    from = state_;
    if (permit.era != era_ || permit.is_probe != (state_ == State::half_open)) return;
    if (permit.is_probe) {
      if (result == Result::success) {
        state_ = State::closed;
        ++era_;
        failed_ = 0;
        backoff_ = Backoff(options_.first_pause, options_.longest_pause, Jitter::full);
      } else {
        open(result == Result::failure ? draw_pause() : Span{0});
      }
    } else if (result == Result::success) {
      failed_ = 0;
    } else if (result == Result::failure && ++failed_ >= options_.failures) {
      ++stats_.trips;
      open(draw_pause());
    }
    to = state_;
  }
  if (from != to) notify_change(from, to);
}

CircuitBreaker::State CircuitBreaker::state() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_;
}

CircuitBreaker::Stats CircuitBreaker::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Span CircuitBreaker::wait() const noexcept {
  const std::lock_guard lock(mutex_);
  if (state_ == State::closed) return options_.first_pause;
  return std::max(Span{1}, rest(clock_.now()));
}

/// How long no call is allowed. While a probe is pending this is unknown: callers should ask again
/// soon.
Span CircuitBreaker::rest(Time now) const noexcept {
  if (state_ == State::half_open) return options_.first_pause;
  return now < opened_ ? Span{0} : std::max(Span{0}, until_ - now);
}

void CircuitBreaker::open(Span pause) noexcept {
  state_ = State::open;
  ++era_;
  opened_ = clock_.now();
  until_ = pause > Time::max() - opened_ ? Time::max() : opened_ + pause;
}

Span CircuitBreaker::draw_pause() noexcept {
  try {
    return backoff_.next(options_.rng != nullptr ? *options_.rng
                                                 : rng_of(clock_, DrawFor::breaker));
  } catch (const std::system_error&) {
    return options_.longest_pause;  // no random number: late rather than all at once
  }
}

void CircuitBreaker::notify_change(State from, State to) const noexcept {
  if (on_change_) on_change_(from, to);
}

}  // namespace sluice
