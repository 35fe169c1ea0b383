// Validation of quotas, where they are built.
#include "sluice/quota.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <stdexcept>
#include <string>

namespace sluice {
namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

/// The largest burst for which burst * period + refill stays within word_limit.
Word largest_burst(Word refill, Word period) { return (word_limit - refill) / period; }

struct Unit {
  std::string_view name;
  Word us;
};
constexpr std::array<Unit, 14> units{{{"us", 1},
                                      {"ms", 1'000},
                                      {"s", 1'000'000},
                                      {"sec", 1'000'000},
                                      {"second", 1'000'000},
                                      {"m", 60'000'000},
                                      {"min", 60'000'000},
                                      {"minute", 60'000'000},
                                      {"h", 3'600'000'000},
                                      {"hr", 3'600'000'000},
                                      {"hour", 3'600'000'000},
                                      {"d", 86'400'000'000},
                                      {"day", 86'400'000'000},
                                      {"week", 604'800'000'000}}};

/// Takes the digits at the front of `text`; false if there are none or they overflow.
bool take_number(std::string_view& text, Word& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// "min" or "5s" as microseconds; 0 if it is neither.
Word parse_period(std::string_view text) {
  Word count = 1;
  if (!text.empty() && text.front() >= '0' && text.front() <= '9' && !take_number(text, count)) {
    return 0;
  }
  const auto unit = std::ranges::find(units, text, &Unit::name);
  if (unit == units.end() || count < 1 || count > word_limit / unit->us) return 0;
  return count * unit->us;
}

}  // namespace

Quota::Quota(std::string_view what, Word count, Span period) {
  if (count < 1 || count > word_limit) {
    reject(std::string(what) + " must be 1 or more" +
           (count == -1 || count > word_limit ? ", at most 2^52 (4503599627370496)" : "") +
           (count == -1 ? ", got -1 or a number beyond that" : ", got " + std::to_string(count)));
  }
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
           " us is not exact within 2^52: the reduced fraction " + std::to_string(refill_) + "/" +
           std::to_string(period_) + " leaves no room for a burst of 1");
  }
  capacity_ = std::min(count, largest);
}

Quota Quota::with_burst(Word burst) const {
  const Word largest = largest_burst(refill_, period_);
  if (burst < 1 || burst > largest) {
    reject("burst must be 1 to " + std::to_string(largest) + " at " + std::to_string(refill_) +
           " per " + std::to_string(period_) + " us" +
           (burst == -1 ? ", got -1 or a number beyond 2^63" : ", got " + std::to_string(burst)));
  }
  Quota result = *this;
  result.capacity_ = burst;
  return result;
}

Quota Quota::parse(std::string_view text) {
  std::string_view rest = text;
  Word count = 0;
  Word period = 0;
  if (take_number(rest, count) && rest.starts_with('/')) period = parse_period(rest.substr(1));
  if (period == 0) {
    reject("a quota is COUNT/PERIOD, such as 30/min, 25/5s or 10000/h, got \"" + std::string(text) +
           "\"");
  }
  return per(count, Span{period});
}

}  // namespace sluice
