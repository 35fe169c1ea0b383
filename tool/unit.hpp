// What the unit of a key says of its limiter: Key::unit(), read by the library's own parsers. Pure
// functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sluice/limiters/calendar.hpp"
#include "sluice/quota.hpp"

namespace sluice::tool {

/// "1min" in microseconds; 0 if it is no span.
[[nodiscard]] Word span_in(std::string_view text) noexcept;

/// Of a token bucket: "10/s", or with refills each minute "10/s@1min". The quota's burst means
/// nothing.
struct BucketUnit {
  Quota quota;
  Word interval;
};
[[nodiscard]] std::optional<BucketUnit> bucket_in(std::string_view unit);

/// Of a bucket with a table of quotas: "table/1min", whose states are counted in a minute. 0 of
/// others.
[[nodiscard]] Word table_unit_in(std::string_view unit);

/// Of a sliding window: "1s+1min,grants". Empty if there are none.
[[nodiscard]] std::vector<Word> spans_in(std::string_view unit);

/// Of a fixed window: windows of one width, and days, weeks, months, quarters and years of UTC.
/// Empty: another calendar.
[[nodiscard]] std::optional<Calendar> calendar_in(std::string_view unit);

}  // namespace sluice::tool
