// The grammar of vendors' header names: [vendor-]ratelimit[-word][-group], or the group before the
// word. One grammar accepts the spellings of many vendors, also of unknown ones.
#include "src/http/field_name.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "src/http/ascii.hpp"

namespace sluice::http::detail {
namespace {

struct Entry {
  std::string_view name;
  Meaning meaning;
};

constexpr std::array<Entry, 12> whole_names{{
    {"date", Meaning::date},
    {"age", Meaning::age},
    {"retry-after", Meaning::retry_after},
    {"x-retry-after", Meaning::retry_after},
    {"retry-after-ms", Meaning::retry_after_ms},
    {"x-retry-after-ms", Meaning::retry_after_ms},
    {"x-ms-retry-after-ms", Meaning::retry_after_ms},
    {"ratelimit", Meaning::rate_limit},
    {"ratelimit-policy", Meaning::policy},
    {"x-shopify-shop-api-call-limit", Meaning::used_of_limit},
    {"stripe-rate-limited-reason", Meaning::reason},
    {"x-sentry-rate-limits", Meaning::sentry},
}};

/// The first match counts.
constexpr std::array<Entry, 30> words{{
    {"retry-after-ms", Meaning::retry_after_ms},
    {"retry-after", Meaning::retry_after},
    {"interval-milliseconds", Meaning::length_ms},
    {"time-window-ms", Meaning::length_ms},
    {"time-reset-ms", Meaning::reset_ms},
    {"requests-quota", Meaning::limit},
    {"requests-left", Meaning::remaining},
    {"reset-after", Meaning::reset},
    {"reset-time", Meaning::reset},
    {"resettime", Meaning::reset},
    {"reset-ms", Meaning::reset_ms},
    {"resource", Meaning::resource},
    {"bucket", Meaning::resource},
    {"group", Meaning::resource},
    {"name", Meaning::resource},
    {"scope", Meaning::scope},
    {"global", Meaning::global},
    {"reason", Meaning::reason},
    {"remaining", Meaning::remaining},
    {"remain", Meaning::remaining},
    {"observed", Meaning::used},
    {"usage", Meaning::usage},
    {"window", Meaning::length},
    {"policy", Meaning::unknown},
    {"rules", Meaning::unknown},
    {"limit", Meaning::limit},
    {"reset", Meaning::reset},
    {"quota", Meaning::limit},
    {"used", Meaning::used},
    {"max", Meaning::limit},
}};

/// The number without a word, X-HubSpot-RateLimit-Daily, is the limit itself.
constexpr std::array<std::string_view, 2> groups_alone{"daily", "secondly"};

constexpr std::array<std::string_view, 6> stems{"ratelimit",   "rate-limit",   "readratelimit",
                                                "x-app-limit", "x-user-limit", "x-esi-error-limit"};

/// What stands behind them is an interval such as 1m or 10s.
constexpr std::array<std::string_view, 4> interval_stems{
    "x-mbx-used-weight", "x-mbx-order-count", "x-sapi-used-ip-weight", "x-sapi-used-uid-weight"};

/// What is meant in the headers of one source alone.
struct SourceEntry {
  std::string_view source;
  std::string_view rest;
  Meaning meaning;
};
constexpr std::array<SourceEntry, 3> of_source{{
    {"x-amzn-ratelimit", "limit", Meaning::rate},
    {"x-rate-limit", "rules", Meaning::rules},
    {"x-rate-limit", "policy", Meaning::rule_policy},
}};

constexpr std::array<std::string_view, 14> sources_in_seconds{
    "retry-after",         "x-retry-after",         "ratelimit",       "rate-limit",
    "x-ratelimit",         "x-rate-limit",          "x-readratelimit", "x-app-limit",
    "x-user-limit",        "x-sib-ratelimit",       "x-ogw-ratelimit", "x-esi-error-limit",
    "anthropic-ratelimit", "x-contentful-ratelimit"};
constexpr std::array<std::string_view, 1> sources_in_milliseconds{"gw-ratelimit"};

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& all, std::string_view one) noexcept {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The end of `stem` in `name`, as a whole part of it, or none.
std::optional<std::size_t> end_of(std::string_view stem, std::string_view name) noexcept {
  for (std::size_t at = name.find(stem); at != std::string_view::npos;
       at = name.find(stem, at + 1)) {
    const std::size_t end = at + stem.size();
    const bool begins = at == 0 || name[at - 1] == '-';
    if (begins && (end == name.size() || name[end] == '-')) return end;
  }
  return std::nullopt;
}

/// `word` at one end of `rest`, and the group at the other.
std::optional<std::string_view> group_beside(std::string_view word,
                                             std::string_view rest) noexcept {
  if (rest == word) return std::string_view{};
  if (rest.size() < word.size() + 2) return std::nullopt;
  if (rest.starts_with(word) && rest[word.size()] == '-') return rest.substr(word.size() + 1);
  const std::size_t before = rest.size() - word.size();
  if (rest.ends_with(word) && rest[before - 1] == '-') return rest.substr(0, before - 1);
  return std::nullopt;
}

/// REQUIRES: `source` is the name up to the end of the stem, and `rest` is the text after its
/// hyphen.
FieldName read_rest(std::string_view source, std::string_view rest) noexcept {
  if (rest.empty()) return {Meaning::limit, source, {}};
  for (const SourceEntry& entry : of_source) {
    if (entry.source == source && entry.rest == rest) return {entry.meaning, source, {}};
  }
  for (const Entry& word : words) {
    if (const auto group = group_beside(word.name, rest)) return {word.meaning, source, *group};
  }
  if (contains(groups_alone, rest)) return {Meaning::limit, source, rest};
  return {Meaning::unknown, source, rest};
}

}  // namespace

Text lower_name(std::string_view name) noexcept {
  Text lower;
  if (name.size() > Text::capacity) return lower;
  for (const char c : name) (void)lower.push_back(to_lower(c));
  return lower;
}

TimeUnit unit_of(std::string_view source) noexcept {
  if (contains(sources_in_seconds, source)) return TimeUnit::seconds;
  return contains(sources_in_milliseconds, source) ? TimeUnit::milliseconds : TimeUnit::unknown;
}

FieldName read_field_name(std::string_view lower) noexcept {
  const auto* const whole = std::find_if(whole_names.begin(), whole_names.end(),
                                         [&](const Entry& entry) { return entry.name == lower; });
  if (whole != whole_names.end()) return {whole->meaning, lower, {}};
  for (const std::string_view stem : interval_stems) {
    if (lower == stem) return {Meaning::used_in_interval, stem, {}};
    if (end_of(stem, lower) == stem.size()) {
      return {Meaning::used_in_interval, stem, lower.substr(stem.size() + 1)};
    }
  }
  for (const std::string_view stem : stems) {
    if (const auto end = end_of(stem, lower)) {
      return read_rest(lower.substr(0, *end),
                       *end == lower.size() ? std::string_view{} : lower.substr(*end + 1));
    }
  }
  return {};
}

}  // namespace sluice::http::detail
