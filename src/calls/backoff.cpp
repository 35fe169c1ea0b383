#include "sluice/calls/backoff.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice {
namespace {

Span uniform(Rng& rng, Span low, Span high) {
  return low +
         Span{static_cast<Word>(rng.below(static_cast<std::uint64_t>((high - low).count()) + 1))};
}

}  // namespace

Backoff::Backoff(Span base, Span cap, Jitter jitter)
    : base_(base), cap_(cap), jitter_(jitter), most_(base) {
  if (base < Span{1} || base > cap || cap > std::chrono::hours{24}) {
    throw std::invalid_argument("Backoff: 1 us <= base <= cap <= 86400000000 us, got base " +
                                std::to_string(base.count()) + " us, cap " +
                                std::to_string(cap.count()) + " us");
  }
}

Span Backoff::next(Rng& rng) {
  if (jitter_ == Jitter::decorrelated) {
    most_ = std::min(cap_, uniform(rng, base_, std::max(base_, 3 * most_)));
    return most_;
  }
  const Span v = std::min(cap_, most_);
  most_ = std::min(cap_, 2 * v);
  return jitter_ == Jitter::full ? uniform(rng, Span{0}, v) : v / 2 + uniform(rng, Span{0}, v / 2);
}

RetryBudget::RetryBudget(int percent, int burst)
    : percent_(percent), most_(std::int64_t{burst} * 100), left_(most_) {
  if (percent < 0 || percent > 1000) {
    throw std::invalid_argument("RetryBudget: percent must be 0 to 1000, got " +
                                std::to_string(percent));
  }
  if (burst < 0 || burst > 1'000'000) {
    throw std::invalid_argument("RetryBudget: burst must be 0 to 1000000, got " +
                                std::to_string(burst));
  }
  // One whole retry must be possible, and the share of one call must fit.
  most_ = std::max({most_, std::int64_t{100}, percent_});
}

void RetryBudget::note_call() noexcept {
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (!left_.compare_exchange_weak(left, std::min(most_, left + percent_),
                                      std::memory_order_relaxed)) {
  }
}

bool RetryBudget::take_retry() noexcept {
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= 100) {
    if (left_.compare_exchange_weak(left, left - 100, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace sluice
