// See unit.hpp.
#include "tool/unit.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/sliding_window.hpp"

namespace sluice::tool {

Word span_in(std::string_view text) noexcept try {
  return Quota::parse("1/" + std::string(text)).period();
} catch (const std::exception&) {
  return 0;
}

std::optional<BucketUnit> bucket_in(std::string_view unit) try {
  const std::size_t at = std::min(unit.find('@'), unit.size());
  const Word interval = at < unit.size() ? span_in(unit.substr(at + 1)) : 1;
  const Quota quota = Quota::parse(std::string(unit.substr(0, at)));
  if (interval == 0 || detail::is_constant(quota.capacity())) return std::nullopt;
  return BucketUnit{quota, interval};
} catch (const std::invalid_argument&) {
  return std::nullopt;
}

Word table_unit_in(std::string_view unit) {
  constexpr std::string_view begin = "table/";
  return unit.rfind(begin, 0) == 0 ? span_in(unit.substr(begin.size())) : 0;
}

std::vector<Word> spans_in(std::string_view unit) {
  std::vector<Word> spans;
  unit = unit.substr(0, unit.find(','));
  while (!unit.empty()) {
    const std::size_t plus = std::min(unit.find('+'), unit.size());
    const Word span = span_in(unit.substr(0, plus));
    if (span == 0 || span > SlidingWindowRule::max_span ||
        spans.size() == SlidingWindowRule::max_windows) {
      return {};
    }
    spans.push_back(span);
    unit.remove_prefix(std::min(plus + 1, unit.size()));
  }
  return spans;
}

/// What is read is right if it has the same text again.
std::optional<Calendar> calendar_in(std::string_view unit) {
  const std::size_t plus = std::min(unit.find('+'), unit.size());
  const Word width = span_in(unit.substr(0, plus));
  const Word origin = plus < unit.size() ? span_in(unit.substr(plus + 1)) : 0;
  if (width > 0 && width <= FixedWindowRule::max_width && origin < width) {
    const Calendar even = Calendar::every(Span{width}, Time{Span{origin}});
    return even.to_string() == unit ? std::optional(even) : std::nullopt;
  }
  for (const Calendar& each : {Calendar::daily(), Calendar::weekly(), Calendar::monthly(),
                               Calendar::quarterly(), Calendar::yearly()}) {
    if (each.to_string() == unit) return each;
  }
  return std::nullopt;
}

}  // namespace sluice::tool
