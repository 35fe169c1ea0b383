// The texts of a scenario's values: times, rates, shares, delays, words. Each function throws
// std::invalid_argument that says what is allowed and what was given. Threading: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/sim/scenario.hpp"
#include "src/util/nearest.hpp"
#include "src/util/parse_span.hpp"

namespace sluice::sim::scenario {

/// "expected `what`, got `text`; did you mean x?", the last if one of the names is near.
[[noreturn]] void expected(std::string_view what, std::string_view text,
                           std::span<const std::string_view> names = {});
/// "; did you mean x?", where x is the nearest of the names; "" if none is near.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string_view> names,
                                       std::string_view quote = {});

/// Without the space around it.
[[nodiscard]] std::string_view trim(std::string_view text);

/// A decimal number in [least, most].
[[nodiscard]] double parse_number(std::string_view text, double least, double most);
/// A whole number in [least, most].
[[nodiscard]] Word parse_count(std::string_view text, Word least, Word most);
[[nodiscard]] bool parse_flag(std::string_view text);
/// The same, or with a minus before it.
[[nodiscard]] Span parse_step(std::string_view text);
/// "20s", or "auto": auto_warm_up.
[[nodiscard]] Span parse_warm_up(std::string_view text);
/// "100/s", "0.5/min", "25/5s".
[[nodiscard]] Rate parse_rate(std::string_view text);
/// A time, or the name of a distribution with its parameters: "log_normal(10ms, 30ms)".
[[nodiscard]] Delay parse_delay(std::string_view text);
/// "10000/min", or with " aligned": windows of the clock instead of sliding ones.
[[nodiscard]] ApiLimit parse_window_limit(std::string_view text);
/// "exact", "missing", "seconds", "0.5 times".
[[nodiscard]] RetryAfter parse_retry_after(std::string_view text);
/// "1000 at 59s".
[[nodiscard]] ArrivalOptions::Burst parse_burst(std::string_view text);

using sluice::detail::nearest;
using sluice::detail::parse_span;

/// The value with this name. `Named` is a range of pairs of a name and a value.
template <class Named>
[[nodiscard]] auto parse_word(std::string_view text, const Named& named) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : named) {
    if (name == text) return value;
    names.push_back(name);
  }
  std::string all;
  for (const std::string_view name : names) (all += all.empty() ? "" : ", ") += name;
  expected("one of " + all, text, names);
}

}  // namespace sluice::sim::scenario
