// Parses the headers of a response to a Feedback.
#include "sluice/http/parse.hpp"

#include <algorithm>

#include "src/http/ascii.hpp"
#include "src/http/date.hpp"
#include "src/http/number.hpp"
#include "src/http/reader.hpp"

namespace sluice::http::detail {
namespace {

Word bounded(Word value) noexcept { return std::clamp(value, Word{0}, word_limit); }

/// The server's clock by its `Date`.
std::optional<Time> server_date(const Sieve& headers, Time now) noexcept {
  for (const auto& [header, place] : headers.picked()) {
    if (!equal_ignoring_case(header.name, "date")) continue;
    if (const auto date = parse_http_date(trimmed(header.value), now)) return date;
  }
  return std::nullopt;
}

/// True if the response comes from a cache.
bool is_cached(const Sieve& headers) noexcept {
  return std::any_of(headers.picked().begin(), headers.picked().end(),
                     [](const Sieve::Picked& picked) {
                       if (!equal_ignoring_case(picked.header.name, "age")) return false;
                       std::string_view value = trimmed(picked.header.value);
                       const auto age = take_decimal(value);
                       return age && value.empty() && !age->negative && age->whole > 0;
                     });
}

Time bounded(Time time) noexcept { return to_time(bounded(to_word(time))); }

/// When the response was made, at the earliest.
Time made_at(std::optional<Time> date, Time now, const ParseOptions& options) noexcept {
  if (!date && !options.sent) return now;
  const Time sent = bounded(options.sent.value_or(Time{}));
  return std::min(std::max(date.value_or(sent), sent), now);
}

}  // namespace

void Sieve::add(std::string_view name, std::string_view value) noexcept {
  if (seen_ == Feedback::max_headers) {
    truncated_ = true;
    return;
  }
  const auto place = static_cast<std::uint16_t>(seen_++);
  const Text lower = lower_name(name);
  if (lower.empty() || read_field_name(lower.view()).meaning == Meaning::none) return;
  if (count_ == picked_.size()) {
    truncated_ = true;
    return;
  }
  picked_[count_++] = {{name, value}, place};
}

Feedback parse(const Sieve& headers, Time now, const ParseOptions& options) noexcept {
  const bool cached = is_cached(headers);
  now = bounded(now);
  std::optional<Time> date;
  // The Date of a cached response is older by its age, which is not exact.
  if (options.correct_by_date && !cached) date = server_date(headers, now);
  const Frame frame{now, date.value_or(now), Span{bounded(options.longest.count())}};
  FeedbackReader reader(frame, cached, headers);
  for (const auto& [header, place] : headers.picked()) {
    const Text lower = lower_name(header.name);
    const FieldName name = read_field_name(lower.view());
    if (name.meaning == Meaning::date || name.meaning == Meaning::age) continue;
    reader.read(name, header.value, place);
  }
  Feedback result = reader.finish();
  result.made = made_at(date, now, options);
  result.truncated = headers.truncated();
  return result;
}

}  // namespace sluice::http::detail
