// Upstream: the third-party API of a simulation, which enforces its limit. It keeps its own count
// and shares no code with the limiters. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::sim {

/// A queue of times in ascending order. A ring that grows.
class StampQueue {
 public:
  void push(Word stamp);
  void pop() noexcept { ++first_; }
  [[nodiscard]] Word front() const noexcept { return ring_[first_ & mask()]; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - first_; }

 private:
  [[nodiscard]] std::size_t mask() const noexcept { return ring_.size() - 1; }
  std::vector<Word> ring_ = std::vector<Word>(1024);  // a power of two
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

/// An API that accepts exactly `limit` calls in any `window`: a call at `t` is answered 200 if
/// fewer than `limit` calls were answered 200 in (t - window, t], else 429. Calls answered 429 do
/// not count.
class Upstream {
 public:
  /// Throws std::invalid_argument unless the limit is 1 to 10^8 and the window 1 us or longer.
  Upstream(Word limit, Span window);

  /// True for 200, false for 429. REQUIRES: `now` is not before that of the previous call. O(1)
  /// amortised.
  bool call(Time now);

  [[nodiscard]] std::uint64_t calls() const noexcept { return admitted_ + rejected_; }
  [[nodiscard]] std::uint64_t admitted() const noexcept { return admitted_; }
  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_; }
  /// The most calls that arrived in any window, whatever the answer.
  [[nodiscard]] std::uint64_t busiest() const noexcept { return busiest_; }
  /// The most calls that were answered 200 in any window.
  [[nodiscard]] std::uint64_t busiest_admitted() const noexcept { return busiest_admitted_; }

 private:
  std::size_t limit_;
  Word window_;
  StampQueue arrivals_;
  StampQueue admissions_;
  std::uint64_t admitted_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t busiest_ = 0;
  std::uint64_t busiest_admitted_ = 0;
};

/// The optimal limiter for an Upstream: it knows every job at its arrival, needs no network, and
/// sends each in order at the first instant at which it is answered 200.
class Ideal {
 public:
  /// As Upstream.
  Ideal(Word limit, Span window);

  /// Adds a job that arrives at `now`; returns when it is sent. REQUIRES: ascending times. O(1).
  Time send(Time now);

 private:
  Word window_;
  std::vector<Word> last_;  // when the last `limit` jobs were sent
  std::size_t next_ = 0;
};

}  // namespace sluice::sim
