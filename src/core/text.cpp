// Texts for logs: of spans, sources, decisions and keys.
#include <array>
#include <ostream>

#include "sluice/decision.hpp"
#include "sluice/key.hpp"
#include "sluice/quota.hpp"
#include "src/core/text.hpp"

namespace sluice {

std::string detail::decimal(std::int64_t count, std::int64_t unit) {
  std::string out = std::to_string(count / unit);
  std::string digits = std::to_string(unit + count % unit).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits.empty() ? out : out + '.' + digits;
}

std::string detail::text_of(Span span) {
  constexpr std::int64_t ms = 1'000;
  constexpr std::int64_t s = 1'000 * ms;
  constexpr std::int64_t min = 60 * s;
  constexpr std::int64_t h = 60 * min;
  const std::int64_t us = span.count();
  if (us == INT64_MIN || us == INT64_MAX) return us < 0 ? "-for ever" : "for ever";
  if (us < 0) return '-' + text_of(Span{-us});
  if (us >= h && us % h == 0) return std::to_string(us / h) + " h";
  if (us >= min && us % min == 0) return std::to_string(us / min) + " min";
  if (us >= s || us == 0) return decimal(us, s) + " s";
  if (us >= ms) return decimal(us, ms) + " ms";
  return std::to_string(us) + " us";
}

std::string_view to_string(Source source) noexcept {
  constexpr std::array<std::string_view, 7> names{"memory",   "virtual", "redis",     "other",
                                                  "fallback", "policy",  "prefetched"};
  const auto index = static_cast<std::size_t>(source);
  return index < names.size() ? names[index] : "unknown";
}

std::string to_string(const Decision& d) {
  std::string out = d.allowed ? "allowed" : "refused";
  if (d.allowed && d.retry_after != Span{0}) out += " in " + detail::text_of(d.retry_after);
  const bool is_never = !d.allowed && d.retry_after == Decision::never;
  if (d.limit == unlimited) {
    out += ", unlimited";
  } else {
    out += ", " + std::to_string(d.remaining) + " of " + std::to_string(d.limit) + " left";
  }
  if (is_never) {
    out += ", never";
  } else if (!d.allowed && d.retry_after != Span{0}) {
    out += ", retry after " + detail::text_of(d.retry_after);
  }
  if (d.reset_after != Span{0}) out += ", reset after " + detail::text_of(d.reset_after);
  if (d.step != 0) out += ", step " + std::to_string(d.step);
  if (d.part != 0) out += ", part " + std::to_string(d.part);
  return out.append(", from ").append(to_string(d.source));
}

std::string to_string(const Key& key) { return render(key); }

std::ostream& operator<<(std::ostream& out, Source source) { return out << to_string(source); }
std::ostream& operator<<(std::ostream& out, const Decision& decision) {
  return out << to_string(decision);
}
std::ostream& operator<<(std::ostream& out, const Key& key) { return out << to_string(key); }
std::ostream& operator<<(std::ostream& out, const Quota& quota) { return out << to_string(quota); }

}  // namespace sluice
