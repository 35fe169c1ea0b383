// An exact sliding window: the stamps themselves, not counters.
#include "sluice/sim/upstream.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::sim {
namespace {

void check(Word limit, Span window) {
  if (limit < 1 || limit > 100'000'000) {
    throw std::invalid_argument("the API's limit must be 1 to 100000000, got " +
                                std::to_string(limit));
  }
  if (window.count() < 1 || window.count() > word_limit) {
    throw std::invalid_argument("the API's window must be 1 us to 2^52 us, got " +
                                std::to_string(window.count()));
  }
}

/// Removes the stamps outside (now - window, now].
void forget(StampQueue& stamps, Word now, Word window) {
  while (stamps.size() > 0 && now - stamps.front() >= window) stamps.pop();
}

}  // namespace

void StampQueue::push(Word stamp) {
  if (size() == ring_.size()) {
    std::vector<Word> larger(ring_.size() * 2);
    for (std::size_t i = first_; i != end_; ++i)
      larger[i & (larger.size() - 1)] = ring_[i & mask()];
    ring_.swap(larger);
  }
  ring_[end_++ & mask()] = stamp;
}

Upstream::Upstream(Word limit, Span window)
    : limit_(static_cast<std::size_t>(limit)), window_(window.count()) {
  check(limit, window);
}

bool Upstream::call(Time now) {
  const Word at = to_word(now);
  forget(arrivals_, at, window_);
  arrivals_.push(at);
  busiest_ = std::max<std::uint64_t>(busiest_, arrivals_.size());

  forget(admissions_, at, window_);
  if (admissions_.size() >= limit_) {
    ++rejected_;
    return false;
  }
  admissions_.push(at);
  busiest_admitted_ = std::max<std::uint64_t>(busiest_admitted_, admissions_.size());
  ++admitted_;
  return true;
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
