// Validation of quotas, where they are built.
#include "sluice/quota.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <stdexcept>
#include <string>

#include "quoted.hpp"

namespace sluice {
namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

/// The largest burst for which burst * period + refill stays within Quota's bound.
Word largest_burst(Word refill, Word period) { return (Quota::bound - refill) / period; }

std::string text_of(detail::Given given) {
  return given.negative ? std::to_string(given.word()) : std::to_string(given.bits);
}

struct Unit {
  std::string_view name;
  Word us;
};
constexpr std::array<Unit, 19> units{{{"us", 1},
                                      {"ms", 1'000},
                                      {"s", 1'000'000},
                                      {"sec", 1'000'000},
                                      {"second", 1'000'000},
                                      {"seconds", 1'000'000},
                                      {"m", 60'000'000},
                                      {"min", 60'000'000},
                                      {"minute", 60'000'000},
                                      {"minutes", 60'000'000},
                                      {"h", 3'600'000'000},
                                      {"hr", 3'600'000'000},
                                      {"hour", 3'600'000'000},
                                      {"hours", 3'600'000'000},
                                      {"d", 86'400'000'000},
                                      {"day", 86'400'000'000},
                                      {"days", 86'400'000'000},
                                      {"week", 604'800'000'000},
                                      {"weeks", 604'800'000'000}}};

enum class Reading { number, nothing, too_large };

/// Takes the number at the front of `text`, also one that does not fit.
Reading take_number(std::string_view& text, Word& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument) return Reading::nothing;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{} ? Reading::number : Reading::too_large;
}

/// Reads "min" or "5s" as microseconds.
Reading parse_period(std::string_view text, Word& us) {
  Word count = 1;
  bool fits = true;
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    fits = take_number(text, count) == Reading::number;
  }
  const auto unit = std::ranges::find(units, text, &Unit::name);
  if (unit == units.end()) return Reading::nothing;
  if (!fits || count > word_limit / unit->us) return Reading::too_large;
  us = count * unit->us;
  return Reading::number;
}

}  // namespace

Quota::Quota(std::string_view what, detail::Given given, Span period) {
  if (!given.within(1, word_limit)) {
    const std::string most = std::to_string(word_limit);
    const bool low = given.negative || given.bits == 0;
    reject(std::string(what) +
           (low ? " must be 1 or more, got " + text_of(given) + " (at most " + most + ")"
                : " must be 1 to " + most + " (2^52), got " + text_of(given)));
  }
  const Word count = given.word();
  if (period.count() < 1 || period.count() > word_limit) {
    reject("the period must be 1 us to 2^52 us (142 years), got " + std::to_string(period.count()) +
           " us");
  }
  const Word common = std::gcd(count, period.count());
  refill_ = count / common;
  period_ = period.count() / common;
  const Word largest = largest_burst(refill_, period_);
  if (largest < 1) {
    reject(std::to_string(count) + " per " + std::to_string(period.count()) +
           " us is not exact within 2^51: the reduced fraction " + std::to_string(refill_) + "/" +
           std::to_string(period_) + " leaves no room for a burst of 1");
  }
  capacity_ = std::min(count, largest);
}

Quota Quota::with_burst(detail::Given burst) const {
  const Word largest = largest_burst(refill_, period_);
  if (!burst.within(1, largest)) {
    reject("burst must be 1 to " + std::to_string(largest) + " at " + std::to_string(refill_) +
           " per " + std::to_string(period_) + " us, got " + text_of(burst));
  }
  Quota result = *this;
  result.capacity_ = burst.word();
  return result;
}

Quota Quota::parse(std::string_view text) {
  std::string_view rest = text;
  Word count = 0;
  Word period = 0;
  const Reading counted = take_number(rest, count);
  const Reading timed = counted != Reading::nothing && rest.starts_with('/')
                            ? parse_period(rest.substr(1), period)
                            : Reading::nothing;
  if (timed == Reading::nothing) {
    reject("a quota is COUNT/PERIOD, such as 30/min, 25/5s or 10000/h, got " +
           detail::quoted(text));
  }
  if (counted == Reading::too_large) {
    reject("the count of a quota must be 1 to " + std::to_string(word_limit) + " (2^52), got " +
           detail::quoted(text));
  }
  if (timed == Reading::too_large || period == 0) {
    reject("the period of a quota must be 1 us to 2^52 us (142 years), got " +
           detail::quoted(text));
  }
  return per(count, Span{period});
}

}  // namespace sluice
