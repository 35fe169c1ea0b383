// A quota: a rate as an exact fraction, and a burst. An immutable value.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/decision.hpp"
#include "sluice/detail/arguments.hpp"
#include "sluice/time.hpp"

namespace sluice {

namespace detail {
/// A number in the type that the caller passed, for exact messages about it.
struct Given {
  template <CountType T>
  constexpr explicit Given(T value) noexcept
      : bits(static_cast<std::uint64_t>(value)), negative(std::cmp_less(value, 0)) {}

  [[nodiscard]] constexpr bool within(Word least, Word most) const noexcept {
    return std::in_range<Word>(bits) && !negative && word() >= least && word() <= most;
  }
  /// REQUIRES: the number fits.
  [[nodiscard]] constexpr Word word() const noexcept { return static_cast<Word>(bits); }

  std::uint64_t bits;  ///< in two's complement
  bool negative;
};
[[nodiscard]] std::string to_string(Given given);
}  // namespace detail

/// The weight of one request. It converts from any CountType; floating point, bool and character
/// types do not compile. A negative value fails the call with Errc::invalid_cost, a value above the
/// burst with Errc::cost_exceeds_capacity. An unsigned value beyond the range of Word counts as the
/// largest Word, which no call accepts.
class Cost {
 public:
  template <CountType T>
  constexpr Cost(T value) noexcept  // NOLINT(google-explicit-constructor): converts
      : value_(std::in_range<Word>(value) ? static_cast<Word>(value)
                                          : std::numeric_limits<Word>::max()) {}
  template <std::floating_point T>
  Cost(T) = delete;

  [[nodiscard]] constexpr Word value() const noexcept { return value_; }

 private:
  Word value_;
};

/// A rate of `refill` units of cost per `period`, and a burst: the most units that can be spent at
/// once.
///
///     Quota::per_second(100).burst(500)
///     Quota::per(25, 5s)                 // burst 25
///     Quota::parse("10000/min")
///
/// The burst comes on top of the rate: Quota::per_minute(500) admits up to 1,000 units in a minute,
/// 500 at once and 500 as they are refilled. At most 500 in any minute are:
///
///     Quota::per_minute(500).burst(1)                // one each 120 ms
///     SlidingWindow(store, "api", {{500, 1min}});    // or exactly, also 500 at once
///
/// The rate is a reduced fraction refill()/period(), in units per microsecond. Ranges: count 1 to
/// 2^52, period 1 us to 2^52 us, burst 1 to 2^51, and burst * period() + refill() at most 2^51, so
/// that every intermediate result of a rule is an integer that a double represents exactly. A value
/// out of range throws std::invalid_argument, which names the value and the allowed range. Counts
/// and bursts are of any CountType; other types (floating point, bool, characters) do not compile.
///
/// A count of 0 is never(). It and unlimited() are quotas without a period and a burst: their
/// capacity() is 0 and sluice::unlimited, and they have no common state with other quotas.
class Quota {
 public:
  /// The upper bound of burst * period() + refill().
  static constexpr Word bound = word_limit / 2;

  /// Nothing is allowed, whatever the wait.
  static Quota never() noexcept { return Quota(0); }
  /// Everything is allowed, and nothing is charged.
  static Quota unlimited() noexcept { return Quota(sluice::unlimited); }

  /// `count` units every `period`, on top of a burst; the burst is `count` unless burst() sets it,
  /// or the largest possible burst if `count` is too large for a burst at this rate. The period
  /// must be a whole number of microseconds, in any unit.
  template <CountType T>
  static Quota per(T count, SpanArg period) {
    return Quota("count", detail::Given(count), period);
  }
  template <CountType T>
  static Quota per_second(T count) {
    return Quota("per_second", detail::Given(count), std::chrono::seconds{1});
  }
  template <CountType T>
  static Quota per_minute(T count) {
    return Quota("per_minute", detail::Given(count), std::chrono::minutes{1});
  }
  template <CountType T>
  static Quota per_hour(T count) {
    return Quota("per_hour", detail::Given(count), std::chrono::hours{1});
  }
  template <CountType T>
  static Quota per_day(T count) {
    return Quota("per_day", detail::Given(count), std::chrono::hours{24});
  }
  template <std::floating_point T>
  static Quota per(T, SpanArg) = delete;
  template <std::floating_point T>
  static Quota per_second(T) = delete;
  template <std::floating_point T>
  static Quota per_minute(T) = delete;
  template <std::floating_point T>
  static Quota per_hour(T) = delete;
  template <std::floating_point T>
  static Quota per_day(T) = delete;

  /// Parses what to_string() writes and the usual spellings of units:
  ///
  ///     QUOTA  = COUNT "/" PERIOD [":" BURST]      30/min, 25/5s, 10/s:3, 0/s
  ///            | "never" | "unlimited"
  ///     PERIOD = [NUMBER] UNIT
  ///     UNIT   = us | ms | s | sec | second[s] | m | min | minute[s] |
  ///              h | hr | hour[s] | d | day[s] | week[s]
  ///
  /// COUNT, NUMBER and BURST are whole numbers, units are in lower case, a day has 24 h. Without a
  /// burst, it is that of per(). No other character, also no space, is allowed. Throws
  /// std::invalid_argument, which names the expected token and its byte, counted from 1, and quotes
  /// the first 64 bytes of `text` with everything but printable ASCII as `\\xNN`.
  static Quota parse(detail::TextArg text);

  /// The same rate with another burst. never() and unlimited() have none.
  template <CountType T>
  Quota burst(T units) const {
    return with_burst(detail::Given(units));
  }
  template <std::floating_point T>
  Quota burst(T) const = delete;

  /// For LimitTable: the same quota with `unit` as its period(), so that its fraction may not be
  /// reduced. Throws std::invalid_argument if period() does not divide it, or if the burst is above
  /// the bound then.
  [[nodiscard]] Quota counted_in(SpanArg unit) const;
  /// The same quota with a reduced fraction.
  [[nodiscard]] Quota reduced() const noexcept;

  /// The most that can be spent at once, in units of cost.
  [[nodiscard]] constexpr Word capacity() const noexcept { return capacity_; }
  /// Units of cost that are refilled every period(); the two have no common factor.
  [[nodiscard]] constexpr Word refill() const noexcept { return refill_; }
  /// Microseconds.
  [[nodiscard]] constexpr Word period() const noexcept { return period_; }
  /// How long an empty bucket takes to fill, rounded up.
  [[nodiscard]] constexpr Span full_after() const noexcept {
    return Span{(capacity_ * period_ + refill_ - 1) / refill_};
  }

  [[nodiscard]] constexpr bool is_never() const noexcept { return capacity_ == 0; }
  [[nodiscard]] constexpr bool is_unlimited() const noexcept {
    return capacity_ == sluice::unlimited;
  }

  friend bool operator==(const Quota&, const Quota&) = default;

 private:
  explicit Quota(Word constant) noexcept : capacity_(constant) {}
  Quota(std::string_view what, detail::Given count, SpanArg period);
  [[nodiscard]] Quota with_burst(detail::Given units) const;

  Word capacity_ = 0;
  Word refill_ = 1;
  Word period_ = 1;
};

/// The quota in the grammar of Quota::parse(): parse(to_string(q)) == q for every quota. "60/min"
/// if the burst is refilled in one unit of time, else "10/s:3" by the smallest unit in which a
/// whole number of units is refilled, else "3/7us:5". "never" and "unlimited".
[[nodiscard]] std::string to_string(const Quota& quota);
std::ostream& operator<<(std::ostream& out, const Quota& quota);

}  // namespace sluice
