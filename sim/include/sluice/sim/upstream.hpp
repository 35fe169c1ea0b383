// Upstream: the third-party API of a simulation, which enforces its limits. It keeps its own count
// and shares no code with the limiters. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::sim {

/// Times in ascending order, at consecutive positions from 0, of which the oldest can be dropped.
class StampLog {
 public:
  void push(Word stamp) { stamps_.push_back(stamp); }
  /// Drops all before this position.
  void drop_before(std::uint64_t position) noexcept {
    for (; first_ < position; ++first_) stamps_.pop_front();
  }
  [[nodiscard]] Word at(std::uint64_t position) const noexcept {
    return stamps_[position - first_];
  }
  /// The oldest position that is kept, and the one behind the newest.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return first_ + stamps_.size(); }

 private:
  std::deque<Word> stamps_;
  std::uint64_t first_ = 0;
};

/// At most `limit` calls in any `window`: at `t`, those in (t - window, t] count. Aligned: at most
/// `limit` in [k * window, (k + 1) * window) for each whole k, as many APIs count, by the clock.
struct ApiLimit {
  Word limit = 1;
  Span window = std::chrono::seconds{1};
  bool aligned = false;

  friend bool operator==(const ApiLimit&, const ApiLimit&) = default;
};

struct UpstreamOptions {
  std::vector<ApiLimit> limits;
  /// Calls that are answered 429 count against the limits as well.
  bool refusals_count = false;
  /// A call that is answered 429 closes the API to all calls for this long.
  Span penalty{0};
  /// The penalty starts anew with each call that is refused while it lasts.
  bool penalty_renews = false;
};

/// An API that answers a call 200 if all of its limits admit it, else 429. Calls answered 429
/// count against no limit, unless refusals_count.
class Upstream {
 public:
  /// Throws std::invalid_argument unless the limit is 1 to 10^8 and the window 1 us or longer.
  Upstream(Word limit, Span window);
  /// Throws std::invalid_argument as above, and unless there are 0 to 16 limits and the penalty is
  /// 0 or longer.
  explicit Upstream(const UpstreamOptions& options);

  /// True for 200, false for 429. REQUIRES: `now` is not before that of the previous call. O(1)
  /// amortised.
  bool call(Time now);

  /// How long after `now` a call would be answered 200, if none comes before: exactly 0 if one at
  /// `now` would be. REQUIRES: `now` is not before the last call. O(limits).
  [[nodiscard]] Span retry_after(Time now) const noexcept;

  /// Changes a limit from now on; what is in its window stays. Throws std::invalid_argument as the
  /// constructor does, std::out_of_range if there is no such limit.
  void set_limit(std::size_t index, Word limit);
  /// Adds a limit, which counts the calls from now on; returns its index. Throws as the
  /// constructor does.
  std::size_t add_limit(const ApiLimit& limit);
  [[nodiscard]] std::size_t limits() const noexcept { return windows_.size(); }
  [[nodiscard]] const ApiLimit& limit(std::size_t index) const { return windows_.at(index).limit; }

  [[nodiscard]] std::uint64_t calls() const noexcept { return admitted_ + rejected_; }
  [[nodiscard]] std::uint64_t admitted() const noexcept { return admitted_; }
  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_; }
  /// The most calls that arrived in any window of a limit, whatever the answer.
  [[nodiscard]] std::uint64_t busiest(std::size_t index = 0) const {
    return windows_.at(index).busiest;
  }
  /// The most calls that were answered 200 in any window of a limit.
  [[nodiscard]] std::uint64_t busiest_admitted(std::size_t index = 0) const {
    return windows_.at(index).busiest_admitted;
  }
  /// The calls that a limit refused; one that several refuse counts for each. Those refused by a
  /// penalty alone count for none.
  [[nodiscard]] std::uint64_t refused_by(std::size_t index) const {
    return windows_.at(index).refusals;
  }

 private:
  struct Window {
    ApiLimit limit;
    std::uint64_t since;          // the first call that is charged, in that log
    std::uint64_t first_arrival;  // in the window that ends now, in each log
    std::uint64_t first_admission;
    std::uint64_t busiest = 0;
    std::uint64_t busiest_admitted = 0;
    std::uint64_t refusals = 0;
  };

  [[nodiscard]] const StampLog& charged() const noexcept {
    return refusals_count_ ? arrivals_ : admissions_;
  }
  [[nodiscard]] Word free_at(const Window& window) const noexcept;
  void count(StampLog& log, std::uint64_t Window::*first, std::uint64_t Window::*most,
             Word now) noexcept;

  bool refusals_count_;
  Word penalty_;
  bool penalty_renews_;
  std::vector<Window> windows_;
  StampLog arrivals_;
  StampLog admissions_;
  Word closed_until_ = 0;
  std::uint64_t admitted_ = 0;
  std::uint64_t rejected_ = 0;
};

/// What an API that answers 429 says about the wait, given the exact one.
class RetryAfter {
 public:
  static RetryAfter exact() noexcept { return {Kind::scaled, one}; }
  /// Nothing.
  static RetryAfter missing() noexcept { return {Kind::missing, 0}; }
  /// The wait times `factor`. Throws std::invalid_argument unless 0 <= factor <= 1 (too_short), 1
  /// <= factor <= 10^6 (too_long). The factor is rounded to a multiple of 2^-32, the product down.
  static RetryAfter too_short(double factor);
  static RetryAfter too_long(double factor);
  /// Always the same. Throws std::invalid_argument if it is negative.
  static RetryAfter fixed(Span span);
  /// The same, rounded up to whole seconds, as HTTP's Retry-After has them.
  [[nodiscard]] RetryAfter in_seconds() const noexcept;

  /// What the API says: none, or at least 0.
  [[nodiscard]] std::optional<Span> tell(Span exact) const noexcept;

  friend bool operator==(const RetryAfter&, const RetryAfter&) = default;

 private:
  enum class Kind : std::uint8_t { missing, scaled, fixed };
  static constexpr Word one = Word{1} << 32;
  RetryAfter(Kind kind, Word value) noexcept : kind_(kind), value_(value) {}

  Kind kind_;
  bool seconds_ = false;
  Word value_;  // the factor in units of 2^-32; the fixed wait
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
