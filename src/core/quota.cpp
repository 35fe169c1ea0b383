// Validation of quotas, where they are built.
#include "sluice/quota.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/detail/limit_of.hpp"
#include "src/core/unit_text.hpp"
#include "src/util/quoted.hpp"

namespace sluice {

std::string detail::to_string(Given given) {
  return given.negative ? std::to_string(given.word()) : std::to_string(given.bits);
}

namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

/// The largest burst for which burst * period + refill stays within Quota's bound.
Word largest_burst(Word refill, Word period) { return (Quota::bound - refill) / period; }

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

/// Reads a quota's text from front to back.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const noexcept { return rest().empty(); }
  [[nodiscard]] bool at_digit() const noexcept {
    return !at_end() && rest().front() >= '0' && rest().front() <= '9';
  }
  [[nodiscard]] bool take(char c) noexcept {
    const bool found = rest().starts_with(c);
    if (found) ++at_;
    return found;
  }
  void require(char c, const char* what) {
    if (!take(c)) expected(what);
  }

  /// A whole number; one out of range is clamped.
  Word number(const char* what) {
    Word number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc::invalid_argument) expected(what);
    at_ += static_cast<std::size_t>(end - begin);
    if (error == std::errc{}) return number;
    return *begin == '-' ? std::numeric_limits<Word>::min() : std::numeric_limits<Word>::max();
  }

  /// A unit: the letters up to the colon of a burst, or the end.
  const Unit& unit() {
    const std::string_view name = rest().substr(0, rest().find(':'));
    const auto found = std::find_if(units.begin(), units.end(),
                                    [&](const Unit& known) { return known.name == name; });
    if (found == units.end()) expected("a unit (us, ms, s, min, h, day or week)");
    at_ += name.size();
    return *found;
  }

  /// Rejects a number out of range; `what` names it and the range.
  [[noreturn]] void out_of_range(const std::string& what) const {
    reject(what + ", got " + detail::quoted(text_));
  }
  [[noreturn]] void expected(const std::string& what) const {
    reject(
        "a quota is COUNT/PERIOD or COUNT/PERIOD:BURST, such as 30/min, 25/5s or 10/s:3, or never "
        "or unlimited: "
        "expected " +
        what + " at byte " + std::to_string(at_ + 1) + ", got " + detail::quoted(text_));
  }

 private:
  [[nodiscard]] std::string_view rest() const noexcept { return text_.substr(at_); }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// "min" or "5s" in microseconds; 0 if it is longer than any period.
Word read_period(Reader& reader) {
  const Word count = reader.at_digit() ? reader.number("a number") : 1;
  const Unit& unit = reader.unit();
  return count > word_limit / unit.us ? 0 : count * unit.us;
}

/// "30/min", "7/13s": a count and a number of microseconds.
std::string count_text(Word count, Word us) {
  const std::string span = detail::span_text(Span{us});
  const bool is_one = span[0] == '1' && (span[1] < '0' || span[1] > '9');
  return std::to_string(count) + '/' + (is_one ? span.substr(1) : span);
}

/// One period of a unit, as in "60/min".
bool is_unit(Word us) {
  return std::any_of(units.begin(), units.end(), [&](const Unit& known) { return known.us == us; });
}

}  // namespace

Quota::Quota(std::string_view what, detail::Given given, SpanArg period) {
  if (!given.within(0, word_limit)) {
    const std::string most = std::to_string(word_limit);
    reject(std::string(what) +
           (given.negative
                ? " must be 0 or more, got " + to_string(given) + " (at most " + most + ")"
                : " must be 0 to " + most + " (2^52), got " + to_string(given)));
  }
  if (!period.is_exact()) reject("the period must be a whole number of microseconds");
  const Word count = given.word();
  if (period.count() < 1 || period.count() > word_limit) {
    reject("the period must be 1 us to 2^52 us (142 years), got " + std::to_string(period.count()) +
           " us");
  }
  if (count == 0) return;  // never
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
  if (detail::is_constant(capacity_)) {
    reject("a quota of " + to_string(*this) + " has no burst, got " + to_string(burst));
  }
  const Word largest = largest_burst(refill_, period_);
  if (!burst.within(1, largest)) {
    reject("burst must be 1 to " + std::to_string(largest) + " at " + std::to_string(refill_) +
           " per " + std::to_string(period_) + " us, got " + to_string(burst));
  }
  Quota result = *this;
  result.capacity_ = burst.word();
  return result;
}

Quota Quota::counted_in(SpanArg unit) const {
  if (detail::is_constant(capacity_)) return *this;
  const std::string in = " in a table of quotas per " + detail::span_text(unit);
  if (unit.count() % period_ != 0) {
    reject("the period must divide the unit" + in + ", got " + to_string(*this));
  }
  const Word times = unit.count() / period_;
  const Word most =
      refill_ <= (bound - unit.count()) / times ? largest_burst(refill_ * times, unit.count()) : 0;
  if (capacity_ > most) {
    reject("the burst must be at most " + std::to_string(most) + " at this rate" + in + ", got " +
           to_string(*this));
  }
  Quota result = *this;
  result.refill_ *= times;
  result.period_ = unit.count();
  return result;
}

Quota Quota::reduced() const noexcept {
  const Word divisor = std::gcd(refill_, period_);
  Quota result = *this;
  result.refill_ /= divisor;
  result.period_ /= divisor;
  return result;
}

Quota Quota::parse(detail::TextArg text) {
  if (text.view() == "never") return never();
  if (text.view() == "unlimited") return unlimited();
  Reader reader(text);
  const Word count = reader.number("a whole number");
  reader.require('/', "a slash");
  const Word period = read_period(reader);
  std::optional<Word> burst;
  if (reader.take(':')) burst = reader.number("a burst, which is a whole number,");
  if (!reader.at_end()) reader.expected(burst ? "the end" : "a colon and a burst, or the end");
  if (count < 0 || count > word_limit) {
    reader.out_of_range("the count of a quota must be 0 to " + std::to_string(word_limit) +
                        " (2^52)");
  }
  if (period == 0) {
    reader.out_of_range("the period of a quota must be 1 us to 2^52 us (142 years)");
  }
  if (burst && count == 0) reader.out_of_range("a quota of never has no burst");
  if (burst && *burst > bound) {
    reader.out_of_range("the burst of a quota must be 1 to " + std::to_string(bound) + " (2^51)");
  }
  const Quota quota = per(count, Span{period});
  return burst ? quota.burst(*burst) : quota;
}

std::string detail::span_text(Span span) {
  constexpr std::array<Unit, 7> shown{{{"week", 604'800'000'000},
                                       {"day", 86'400'000'000},
                                       {"h", 3'600'000'000},
                                       {"min", 60'000'000},
                                       {"s", 1'000'000},
                                       {"ms", 1'000},
                                       {"us", 1}}};
  const Word us = span.count();
  const auto unit =
      std::find_if(shown.begin(), shown.end(), [&](const Unit& u) { return us % u.us == 0; });
  return std::to_string(us / unit->us) + std::string(unit->name);
}

std::string detail::rate_text(const Quota& quota) {
  if (quota.is_never()) return "never";
  if (quota.is_unlimited()) return "unlimited";
  for (const Word unit :
       {Word{1'000'000}, Word{60'000'000}, Word{3'600'000'000}, Word{86'400'000'000}}) {
    if (unit % quota.period() == 0 && quota.refill() <= word_limit / (unit / quota.period())) {
      return count_text(quota.refill() * (unit / quota.period()), unit);
    }
  }
  return count_text(quota.refill(), quota.period());
}

std::string to_string(const Quota& quota) {
  const Word capacity = quota.capacity();
  if (detail::is_constant(capacity)) return detail::rate_text(quota);
  // The time in which the burst is refilled.
  const Word back_in =
      capacity % quota.refill() == 0 ? capacity / quota.refill() * quota.period() : 0;
  if (is_unit(back_in)) return count_text(capacity, back_in);
  return detail::rate_text(quota) + ':' + std::to_string(capacity);
}

}  // namespace sluice
