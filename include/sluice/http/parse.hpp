// Parses response headers about limits. Pure functions: any number of threads.
//
// They never throw and never allocate, whatever the bytes; the work is bounded by the constants of
// Feedback. docs/http.md has the table of headers and the rules for malformed ones.
#pragma once

#include <chrono>
#include <concepts>
#include <ranges>

#include "sluice/http/feedback.hpp"

namespace sluice::http {

struct ParseOptions {
  /// The upper bound of every wait and reset. Range: 0 to word_limit; values outside are clamped.
  Span longest = std::chrono::hours{24};
  /// Measures instants (an HTTP-date, seconds of the epoch) from the server's own `Date` header, if
  /// that is well-formed and the response does not come from a cache, so that a wrong local clock
  /// does no harm. A `Date` is up to a second old, which only makes the wait longer.
  bool correct_by_date = true;
  /// When the request was sent, by the clock of `now`: Feedback::made is then right also where this
  /// clock and the server's differ, or there is no `Date`.
  std::optional<Time> sent{};
};

namespace detail {

/// The headers of a response that concern limits: views.
class Sieve {
 public:
  struct Picked {
    Header header;
    std::uint16_t place = 0;
  };

  /// Keeps the header if it concerns limits. O(1).
  void add(std::string_view name, std::string_view value) noexcept;

  [[nodiscard]] std::span<const Picked> picked() const noexcept {
    return std::span(picked_).first(count_);
  }
  [[nodiscard]] bool truncated() const noexcept { return truncated_; }

 private:
  std::array<Picked, Feedback::max_notes> picked_{};
  std::size_t count_ = 0;
  std::size_t seen_ = 0;
  bool truncated_ = false;
};

[[nodiscard]] Feedback parse(const Sieve& headers, Time now, const ParseOptions& options) noexcept;

template <class T>
concept Textual = std::convertible_to<const T&, std::string_view>;

/// Header, or any other struct of the same shape.
template <class T>
concept Named = requires(const T& field) {
  { field.name } -> Textual;
  { field.value } -> Textual;
};
/// std::pair, as in a map.
template <class T>
concept Pair = requires(const T& field) {
  { field.first } -> Textual;
  { field.second } -> Textual;
};
/// The fields of Boost.Beast.
template <class T>
concept BeastField = requires(const T& field) {
  { field.name_string() } -> Textual;
  { field.value() } -> Textual;
};

}  // namespace detail

/// A header of an HTTP library: with members `name` and `value`, `first` and `second`, or
/// `name_string()` and `value()`, which convert to std::string_view.
template <class T>
concept HeaderField = detail::Named<T> || detail::Pair<T> || detail::BeastField<T>;

/// Parses the headers of a response about the server's limits. Names are case-insensitive. `now` is
/// when the response came, by the wall clock (Unix time): `store.clock().now()` of a store on a
/// SystemClock. Worked example:
///
///     const std::array<Header, 2> headers{{{"Retry-After", "30"}, {"Content-Length", "0"}}};
///     parse_feedback(headers, now).retry_after    // 30 s
template <class Headers>
requires std::ranges::input_range<const Headers> &&
    HeaderField<std::ranges::range_value_t<const Headers>>
[[nodiscard]] Feedback parse_feedback(const Headers& headers, Time now,
                                      const ParseOptions& options = {}) {
  detail::Sieve sieve;
  for (const auto& field : headers) {
    if (sieve.truncated()) break;
    using Field = std::ranges::range_value_t<const Headers>;
    if constexpr (detail::Named<Field>) {
      sieve.add(field.name, field.value);
    } else if constexpr (detail::Pair<Field>) {
      sieve.add(field.first, field.second);
    } else {
      sieve.add(field.name_string(), field.value());
    }
  }
  return detail::parse(sieve, now, options);
}

}  // namespace sluice::http
