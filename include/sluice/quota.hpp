// What is allowed: a rate as an exact fraction, and a burst. An immutable value.
#pragma once

#include <concepts>
#include <string_view>
#include <utility>

#include "sluice/time.hpp"

namespace sluice {

namespace detail {
/// The value as a Word, or -1 where it does not fit: validation then names the allowed range.
template <std::integral T>
[[nodiscard]] constexpr Word as_word(T value) noexcept {
  return std::in_range<Word>(value) ? static_cast<Word>(value) : Word{-1};
}
}  // namespace detail

/// The weight of one request: any integer type; floating point does not compile, since fractions,
/// infinities and NaN have no meaning here. A value below 0 is answered with Errc::invalid_cost.
class Cost {
 public:
  template <std::integral T>
  constexpr Cost(T value) noexcept : value_(detail::as_word(value)) {}  // NOLINT: converts
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
/// count 1 to 2^52, period 1 us to 2^52 us, burst 1 to 2^52, and burst * period() + refill() at
/// most 2^52, so that no rule ever leaves the integers that a double holds. Each violation throws
/// std::invalid_argument with the value and the allowed range.
class Quota {
 public:
  /// `count` units every `period`; the burst is `count` until burst() says otherwise, or the
  /// largest possible one if `count` is too large for a burst at this rate.
  template <std::integral T>
  static Quota per(T count, Span period) {
    return Quota("count", detail::as_word(count), period);
  }
  template <std::integral T>
  static Quota per_second(T count) {
    return Quota("per_second", detail::as_word(count), std::chrono::seconds{1});
  }
  template <std::integral T>
  static Quota per_minute(T count) {
    return Quota("per_minute", detail::as_word(count), std::chrono::minutes{1});
  }
  template <std::integral T>
  static Quota per_hour(T count) {
    return Quota("per_hour", detail::as_word(count), std::chrono::hours{1});
  }
  template <std::integral T>
  static Quota per_day(T count) {
    return Quota("per_day", detail::as_word(count), std::chrono::hours{24});
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

  /// Reads "COUNT/PERIOD", where PERIOD is a unit (us, ms, s, sec, second, min, minute, h, hour,
  /// d, day) or a whole number and a unit: "30/min", "25/5s". Throws std::invalid_argument.
  static Quota parse(std::string_view text);

  /// The same rate with another burst.
  template <std::integral T>
  Quota burst(T units) const {
    return with_burst(detail::as_word(units));
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
  Quota(std::string_view what, Word count, Span period);
  [[nodiscard]] Quota with_burst(Word units) const;

  Word capacity_ = 0;
  Word refill_ = 0;
  Word period_ = 0;
};

}  // namespace sluice
