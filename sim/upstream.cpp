// Exact windows: the stamps themselves, not counters.
#include "sluice/sim/upstream.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/bad_argument.hpp"
#include "sim/fixed_point.hpp"

namespace sluice::sim {
namespace {

constexpr std::size_t most_limits = 16;

void check_limit(Word limit) {
  if (limit >= 1 && limit <= 100'000'000) return;
  refuse("the API's limit", "1 to 100000000", std::to_string(limit));
}

void check(Word limit, Span window) {
  check_limit(limit);
  if (window.count() >= 1 && window.count() <= word_limit) return;
  refuse("the API's window", "1 us to 2^52 us", us(window.count()));
}

/// The first instant whose window does not hold `stamp`.
Word end_of(Word stamp, const ApiLimit& limit) noexcept {
  const Word window = limit.window.count();
  return limit.aligned ? (stamp / window + 1) * window : stamp + window;
}

}  // namespace

Upstream::Upstream(Word limit, Span window)
    : Upstream(UpstreamOptions{.limits = {{.limit = limit, .window = window}}}) {}

Upstream::Upstream(const UpstreamOptions& options)
    : refusals_count_(options.refusals_count),
      penalty_(options.penalty.count()),
      penalty_renews_(options.penalty_renews) {
  if (penalty_ < 0 || penalty_ > word_limit)
    refuse("the API's penalty", "0 us to 2^52 us", us(penalty_));
  for (const ApiLimit& limit : options.limits) add_limit(limit);
}

std::size_t Upstream::add_limit(const ApiLimit& limit) {
  check(limit.limit, limit.window);
  if (windows_.size() == most_limits) {
    refuse("the number of the API's limits", "at most " + std::to_string(most_limits),
           std::to_string(most_limits + 1));
  }
  windows_.push_back({limit, charged().end(), arrivals_.end(), admissions_.end()});
  return windows_.size() - 1;
}

void Upstream::set_limit(std::size_t index, Word limit) {
  check_limit(limit);
  if (index >= windows_.size()) {
    throw std::out_of_range("the API has " + std::to_string(windows_.size()) +
                            " limits, but limit " + std::to_string(index) + " was to be set");
  }
  windows_[index].limit.limit = limit;
}

/// From when on fewer than `limit` calls are in the window, if none comes: after the `limit`-th
/// youngest has left it. What the log has dropped has left it.
Word Upstream::free_at(const Window& window) const noexcept {
  const std::uint64_t end = charged().end();
  const auto limit = static_cast<std::uint64_t>(window.limit.limit);
  if (end - std::max(window.since, charged().first()) < limit) return 0;
  return end_of(charged().at(end - limit), window.limit);
}

bool Upstream::call(Time now) {
  const Word at = to_word(now);
  bool admitted = at >= closed_until_;
  const bool renews = admitted || penalty_renews_;
  for (Window& window : windows_) {
    if (free_at(window) <= at) continue;
    ++window.refusals;
    admitted = false;
  }
  arrivals_.push(at);
  if (admitted) admissions_.push(at);
  if (!admitted && renews) closed_until_ = at + penalty_;
  ++(admitted ? admitted_ : rejected_);
  count(arrivals_, &Window::first_arrival, &Window::busiest, at);
  count(admissions_, &Window::first_admission, &Window::busiest_admitted, at);
  return admitted;
}

/// Moves the windows to `now`, and drops what has left all of them.
void Upstream::count(StampLog& log, std::uint64_t Window::*first, std::uint64_t Window::*most,
                     Word now) noexcept {
  std::uint64_t oldest = log.end();
  for (Window& window : windows_) {
    std::uint64_t& begin = window.*first;
    while (begin != log.end() && end_of(log.at(begin), window.limit) <= now) ++begin;
    window.*most = std::max(window.*most, log.end() - begin);
    oldest = std::min(oldest, begin);
  }
  log.drop_before(oldest);
}

Span Upstream::retry_after(Time now) const noexcept {
  Word free = std::max(closed_until_, to_word(now));
  for (const Window& window : windows_) free = std::max(free, free_at(window));
  return Span{free - to_word(now)};
}

RetryAfter RetryAfter::too_short(double factor) {
  require_within("the factor of a Retry-After that is too short", factor, 0, 1);
  return {Kind::scaled, static_cast<Word>(fixed::to_q32(factor))};
}

RetryAfter RetryAfter::too_long(double factor) {
  require_within("the factor of a Retry-After that is too long", factor, 1, 1e6);
  return {Kind::scaled, static_cast<Word>(fixed::to_q32(factor))};
}

RetryAfter RetryAfter::fixed(Span span) {
  if (span.count() < 0 || span.count() > word_limit) {
    refuse("a fixed Retry-After", "0 us to 2^52 us", us(span.count()));
  }
  return {Kind::fixed, span.count()};
}

RetryAfter RetryAfter::in_seconds() const noexcept {
  RetryAfter copy = *this;
  copy.seconds_ = true;
  return copy;
}

std::optional<Span> RetryAfter::tell(Span exact) const noexcept {
  constexpr Word second = 1'000'000;
  if (kind_ == Kind::missing) return std::nullopt;
  Word wait = value_;
  if (kind_ == Kind::scaled) {
    const auto product = fixed::Wide(std::max(exact.count(), Word{0})) * fixed::Wide(value_) >> 32;
    wait = static_cast<Word>(std::min(product, fixed::Wide{word_limit}));
  }
  if (seconds_) wait = (wait + second - 1) / second * second;
  return Span{wait};
}

Ideal::Ideal(Word limit, Span window) : window_(window.count()) {
  check(limit, window);
  last_.assign(static_cast<std::size_t>(limit), -word_limit);  // long before any window
}

Time Ideal::send(Time now) {
  // The job `limit` jobs earlier must have left the window. Times of sending never decrease, so
  // that jobs are sent in their order.
  Word& stamp = last_[next_];
  stamp = std::max(to_word(now), stamp + window_);
  next_ = next_ + 1 == last_.size() ? 0 : next_ + 1;
  return to_time(stamp);
}

}  // namespace sluice::sim
