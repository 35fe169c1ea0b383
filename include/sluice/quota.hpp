// What is allowed: a rate as an exact fraction, and a burst. An immutable value.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/detail/count_type.hpp"
#include "sluice/detail/text_arg.hpp"
#include "sluice/time.hpp"

namespace sluice {

namespace detail {
/// A number as the caller gave it, whatever its type: so that a message can show it.
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
}  // namespace detail

/// The weight of one request, of any CountType; floating point, bool and characters do not compile,
/// since fractions, infinities and NaN have no meaning here. What is below 0 is answered with
/// Errc::invalid_cost, what exceeds the burst with Errc::cost_exceeds_capacity. An unsigned number
/// beyond a Word is a difference that fell below 0, and is taken as that.
class Cost {
 public:
  template <CountType T>
  constexpr Cost(T value) noexcept : value_(static_cast<Word>(value)) {}  // NOLINT: converts
  template <std::floating_point T>
  Cost(T) = delete;

  [[nodiscard]] constexpr Word value() const noexcept { return value_; }

 private:
  Word value_;
};

/// So many units of cost a period, and up to `burst` of them at once.
///
///     Quota::per_second(100).burst(500)
///     Quota::per(25, 5s)                 // burst 25
///     Quota::parse("10000/min")
///
/// The rate is kept as a reduced fraction refill()/period(), in units per microsecond. Bounds:
/// count 1 to 2^52, period 1 us to 2^52 us, burst 1 to 2^51, and burst * period() + refill() at
/// most 2^51, so that no rule ever leaves the integers that a double holds. Each violation throws
/// std::invalid_argument with the value and the allowed range. Counts and bursts are of any
/// CountType; what is none (floating point, bool, characters) does not compile.
class Quota {
 public:
  /// burst * period() + refill() is at most this.
  static constexpr Word bound = word_limit / 2;

  /// `count` units every `period`; the burst is `count` until burst() says otherwise, or the
  /// largest possible one if `count` is too large for a burst at this rate.
  template <CountType T>
  static Quota per(T count, Span period) {
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
  static Quota per(T, Span) = delete;
  template <std::floating_point T>
  static Quota per_second(T) = delete;
  template <std::floating_point T>
  static Quota per_minute(T) = delete;
  template <std::floating_point T>
  static Quota per_hour(T) = delete;
  template <std::floating_point T>
  static Quota per_day(T) = delete;

  /// Reads what to_string() writes, and what people write:
  ///
  ///     QUOTA  = COUNT "/" PERIOD [":" BURST]      30/min, 25/5s, 10/s:3
  ///     PERIOD = [NUMBER] UNIT
  ///     UNIT   = us | ms | s | sec | second[s] | m | min | minute[s] | h | hr | hour[s] | d |
  ///     day[s]
  ///            | week[s]
  ///
  /// COUNT, NUMBER and BURST are whole numbers, units are in lower case, a day has 24 h. Without a
  /// burst it is the one of per(). Nothing else may stand before, between or after. Throws
  /// std::invalid_argument, which says what was expected at which byte and shows the first 64 bytes
  /// of `text`, with everything but printable ASCII as `\\xNN`.
  static Quota parse(detail::TextArg text);

  /// The same rate with another burst.
  template <CountType T>
  Quota burst(T units) const {
    return with_burst(detail::Given(units));
  }
  template <std::floating_point T>
  Quota burst(T) const = delete;

  /// The most that can be spent at once, in units of cost.
  [[nodiscard]] constexpr Word capacity() const noexcept { return capacity_; }
  /// Units of cost that come back every period(), with no common factor.
  [[nodiscard]] constexpr Word refill() const noexcept { return refill_; }
  /// Microseconds.
  [[nodiscard]] constexpr Word period() const noexcept { return period_; }
  /// How long an empty bucket takes to fill, rounded up.
  [[nodiscard]] constexpr Span full_after() const noexcept {
    return Span{(capacity_ * period_ + refill_ - 1) / refill_};
  }

  friend bool operator==(const Quota&, const Quota&) = default;

 private:
  Quota(std::string_view what, detail::Given count, Span period);
  [[nodiscard]] Quota with_burst(detail::Given units) const;

  Word capacity_ = 0;
  Word refill_ = 0;
  Word period_ = 0;
};

/// In the grammar of Quota::parse(), which reads it back: parse(to_string(q)) == q for every quota.
/// "60/min" if the burst comes back in one unit of time, else "10/s:3" by the smallest unit in
/// which a whole number comes back, else "3/7us:5".
[[nodiscard]] std::string to_string(const Quota& quota);
std::ostream& operator<<(std::ostream& out, const Quota& quota);

}  // namespace sluice
