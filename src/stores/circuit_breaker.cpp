#include "sluice/circuit_breaker.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

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

CircuitBreaker::OnPartChange for_any_part(CircuitBreaker::OnChange on_change) {
  using State = CircuitBreaker::State;
  if (!on_change) return {};
  return [told = std::move(on_change)](unsigned, State from, State to) { told(from, to); };
}

}  // namespace

/// Null for a part of which no call has failed: it is closed, in its era 0.
template <class Self>
auto* CircuitBreaker::find(Self& self, unsigned part) noexcept {
  if (part == 0) return &self.first_;
  const std::size_t index = std::min(part, max_parts - 1) - 1;
  return index < self.others_.size() ? &self.others_[index] : nullptr;
}

CircuitBreaker::CircuitBreaker(Clock& clock, const BreakerOptions& options, OnChange on_change)
    : CircuitBreaker(clock, options, for_any_part(std::move(on_change))) {}

CircuitBreaker::CircuitBreaker(Clock& clock, const BreakerOptions& options, OnPartChange on_change)
    : clock_(clock),
      clock_life_(clock.life()),
      options_(options),
      on_change_(std::move(on_change)),
      pauses_(pauses_of(options)),
      first_(pauses_) {
  if (options.failures == 0) {
    throw std::invalid_argument("BreakerOptions::failures must be 1 or more, got 0");
  }
}

CircuitBreaker::Permit CircuitBreaker::ask(unsigned part, std::uint64_t comebacks) noexcept {
  Permit permit;
  permit.part = std::min(part, max_parts - 1);
  permit.comebacks = comebacks;
  {
    const std::lock_guard lock(mutex_);
    if (!home_.is_here()) end_probes_of_parent();
    Part* const asked = find(*this, permit.part);
    if (asked == nullptr || asked->state == State::closed) {
      permit.era = asked == nullptr ? 0 : asked->era;
      permit.granted = true;
      return permit;
    }
    permit.era = asked->era;
    const bool is_back = asked->state == State::open && comebacks > asked->tried;
    permit.wait = is_back ? Span{0} : rest(*asked);
    if (permit.wait > Span{0}) {
      ++stats_.denied;
      return permit;
    }
    asked->state = State::half_open;
    ++stats_.probes;
  }
  permit.granted = permit.is_probe = true;
  notify_change(permit.part, State::open, State::half_open);
  return permit;
}

void CircuitBreaker::answer(const Permit& permit, Result result) noexcept {
  State from{};
  State to{};
  {
    const std::lock_guard lock(mutex_);
    Part* const asked =
        result == Result::failure ? find_or_add(permit.part) : find(*this, permit.part);
    if (asked == nullptr) return;
    if (result == Result::failure) asked->tried = std::max(asked->tried, permit.comebacks);
    from = asked->state;
    if (permit.era != asked->era || permit.is_probe != (from == State::half_open)) return;
    note(*asked, permit.is_probe, result);
    to = asked->state;
  }
  if (from != to) notify_change(permit.part, from, to);
}

CircuitBreaker::State CircuitBreaker::state(unsigned part) const noexcept {
  const std::lock_guard lock(mutex_);
  const Part* const asked = find(*this, part);
  return asked == nullptr ? State::closed : asked->state;
}

CircuitBreaker::Stats CircuitBreaker::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Span CircuitBreaker::wait(unsigned part) const noexcept {
  const std::lock_guard lock(mutex_);
  const Part* const asked = find(*this, part);
  if (asked == nullptr || asked->state == State::closed) return options_.first_pause;
  return std::max(Span{1}, rest(*asked));
}

/// Null if there is no memory.
CircuitBreaker::Part* CircuitBreaker::find_or_add(unsigned part) noexcept try {
  if (find(*this, part) == nullptr) others_.resize(std::min(part, max_parts - 1), Part(pauses_));
  return find(*this, part);
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// REQUIRES: the mutex is held.
Time CircuitBreaker::now() const noexcept {
  if (!clock_life_.is_over()) last_now_ = clock_.now();
  return last_now_;
}

/// How long no call is allowed. While a probe is pending this is unknown: callers should ask again
/// soon.
Span CircuitBreaker::rest(const Part& part) const noexcept {
  if (part.state == State::half_open) return options_.first_pause;
  const Time at = now();
  return at < part.opened ? Span{0} : std::max(Span{0}, part.until - at);
}

void CircuitBreaker::note(Part& part, bool is_probe, Result result) noexcept {
  if (is_probe) {
    if (result != Result::success) {
      return open(part, result == Result::failure ? draw_pause(part) : Span{0});
    }
    part.state = State::closed;
    ++part.era;
    part.failed = 0;
    part.backoff = pauses_;
  } else if (result == Result::success) {
    part.failed = 0;
  } else if (result == Result::failure && ++part.failed >= options_.failures) {
    ++stats_.trips;
    open(part, draw_pause(part));
  }
}

void CircuitBreaker::open(Part& part, Span pause) noexcept {
  part.state = State::open;
  ++part.era;
  part.opened = now();
  part.until = pause > Time::max() - part.opened ? Time::max() : part.opened + pause;
}

/// The threads that would answer are not in this process.
void CircuitBreaker::end_probes_of_parent() noexcept {
  const auto end = [this](Part& part) {
    if (part.state == State::half_open) open(part, Span{0});
  };
  end(first_);
  for (Part& part : others_) end(part);
  home_ = {};
}

Span CircuitBreaker::draw_pause(Part& part) noexcept {
  if (options_.rng == nullptr && clock_life_.is_over()) return options_.longest_pause;
  try {
    return part.backoff.next(options_.rng != nullptr ? *options_.rng
                                                     : rng_of(clock_, DrawFor::breaker));
  } catch (const std::system_error&) {
    return options_.longest_pause;  // no random number: late rather than all at once
  }
}

void CircuitBreaker::notify_change(unsigned part, State from, State to) const noexcept {
  if (!on_change_) return;
  try {
    on_change_(part, from, to);
  } catch (...) {  // the program's own; the call whose outcome was reported is not at fault
  }
}

}  // namespace sluice
