// Types for time: whole microseconds, so that every store decides with the same integers. Plain
// values; no threading rule.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <ratio>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

class Clock;

/// The integer type of all rules. A word in a state, an argument or a verdict is in [0,
/// word_limit], so that Lua numbers (doubles) represent it exactly.
using Word = std::int64_t;

/// 2^52: the sum of two words stays below 2^53, and the quotient of two words rounds down to the
/// same integer in C++ and in Lua.
inline constexpr Word word_limit = Word{1} << 52;

/// A length of time in microseconds.
using Span = std::chrono::duration<std::int64_t, std::micro>;

/// A span as the argument of a call: any duration of whole numbers whose unit divides or is divided
/// by a microsecond. What is finer than a microsecond is rounded up; what is beyond the range of
/// Span counts as the longest one.
class SpanArg {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the span
  template <std::integral Rep, class Period>
  requires(std::ratio_divide<Period, std::micro>::den == 1 ||
           std::ratio_divide<std::micro, Period>::den ==
               1) constexpr SpanArg(const std::chrono::duration<Rep, Period>& span) noexcept
      : span_(Span::max()) {
    using Unit = std::chrono::duration<std::int64_t, Period>;
    constexpr bool is_finer = std::ratio_less_v<Period, std::micro>;
    // Checked first: the conversions of durations overflow in silence.
    if constexpr (is_finer) {
      if (!std::in_range<std::int64_t>(span.count())) return;
      span_ = std::chrono::ceil<Span>(Unit(span));
      is_exact_ = span_ == Unit(span);
    } else {
      constexpr auto longest = std::chrono::duration_cast<Unit>(Span::max()).count();
      if (std::cmp_greater(span.count(), longest)) return;
      span_ = std::cmp_less(span.count(), -longest) ? Span::min() : Span(Unit(span));
    }
  }

  // NOLINTNEXTLINE(google-explicit-constructor): stands for the span
  [[nodiscard]] constexpr operator Span() const noexcept { return span_; }
  [[nodiscard]] constexpr Word count() const noexcept { return span_.count(); }
  /// False if it was rounded.
  [[nodiscard]] constexpr bool is_exact() const noexcept { return is_exact_; }

 private:
  Span span_;
  bool is_exact_ = true;
};

/// An instant of a store's clock: microseconds since 1970-01-01 00:00 UTC.
/// Range: [0, word_limit], which ends in the year 2112.
using Time = std::chrono::time_point<Clock, Span>;

/// Microseconds since the epoch.
[[nodiscard]] constexpr Word to_word(Time time) noexcept { return time.time_since_epoch().count(); }

/// The instant `microseconds` after the epoch.
[[nodiscard]] constexpr Time to_time(Word microseconds) noexcept {
  return Time{Span{microseconds}};
}

}  // namespace sluice
