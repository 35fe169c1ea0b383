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

constexpr std::array<Entry, 11> whole_names{{
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
}};

/// The first match counts.
constexpr std::array<Entry, 26> words{{
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
    {"name", Meaning::resource},
    {"scope", Meaning::scope},
    {"global", Meaning::global},
    {"reason", Meaning::reason},
    {"remaining", Meaning::remaining},
    {"observed", Meaning::used},
    {"window", Meaning::length},
    {"policy", Meaning::unknown},
    {"limit", Meaning::limit},
    {"reset", Meaning::reset},
    {"quota", Meaning::limit},
    {"used", Meaning::used},
    {"max", Meaning::limit},
}};

/// The number without a word, X-HubSpot-RateLimit-Daily, is the limit itself.
constexpr std::array<std::string_view, 2> groups_alone{"daily", "secondly"};

constexpr std::array<std::string_view, 4> stems{"ratelimit", "rate-limit", "x-app-limit",
                                                "x-user-limit"};

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
  for (const Entry& word : words) {
    if (const auto group = group_beside(word.name, rest)) return {word.meaning, source, *group};
  }
  if (std::find(groups_alone.begin(), groups_alone.end(), rest) != groups_alone.end()) {
    return {Meaning::limit, source, rest};
  }
  return {Meaning::unknown, source, rest};
}

}  // namespace

Text lower_name(std::string_view name) noexcept {
  Text lower;
  if (name.size() > Text::capacity) return lower;
  for (const char c : name) (void)lower.push_back(to_lower(c));
  return lower;
}

FieldName read_field_name(std::string_view lower) noexcept {
  const auto* const whole = std::find_if(whole_names.begin(), whole_names.end(),
                                         [&](const Entry& entry) { return entry.name == lower; });
  if (whole != whole_names.end()) return {whole->meaning, lower, {}};
  for (const std::string_view stem : stems) {
    if (const auto end = end_of(stem, lower)) {
      return read_rest(lower.substr(0, *end),
                       *end == lower.size() ? std::string_view{} : lower.substr(*end + 1));
    }
  }
  return {};
}

}  // namespace sluice::http::detail
