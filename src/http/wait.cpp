// Distinguishes durations from instants, and bounds both.
#include "src/http/wait.hpp"

#include <algorithm>
#include <array>

#include "src/http/ascii.hpp"
#include "src/http/date.hpp"
#include "src/http/number.hpp"

namespace sluice::http::detail {
namespace {

Wait relative(Word microseconds, const Frame& frame) noexcept {
  const Span span{microseconds};
  return {span > frame.longest ? Fate::clamped : Fate::used, std::min(span, frame.longest), true};
}

Wait until(Time instant, const Frame& frame) noexcept {
  const Span span = instant - frame.server;
  if (span <= Span{0}) return {Fate::past, Span{0}, false};
  return {span > frame.longest ? Fate::clamped : Fate::used, std::min(span, frame.longest), false};
}

/// Microseconds in an nth part of a second, when that is one or more.
constexpr Word second = 1'000'000;
constexpr Word millisecond = 1'000;

/// Numbers below this are durations (three years), above it instants (after 1973); each factor of a
/// thousand counts them in a unit a thousand times smaller.
constexpr std::uint64_t least_epoch = 100'000'000;
constexpr std::uint64_t thousand = 1'000;

Wait of_number(const Decimal& number, TimeUnit unit, const Frame& frame) noexcept {
  std::uint64_t bound = least_epoch;
  if (unit == TimeUnit::milliseconds) bound *= thousand;
  if (number.whole < bound) {
    if (unit == TimeUnit::unknown) return {Fate::no_unit};
    return relative(number.times_rounded_up(unit == TimeUnit::seconds ? second : millisecond),
                    frame);
  }
  if (number.whole < least_epoch * thousand) {
    return until(to_time(number.times_rounded_up(second)), frame);
  }
  if (number.whole < least_epoch * thousand * thousand) {
    return until(to_time(number.times_rounded_up(millisecond)), frame);
  }
  if (number.whole < least_epoch * thousand * thousand * thousand) {
    return until(to_time(number.times_rounded_up(1)), frame);
  }
  if (number.whole == Decimal::huge) return {Fate::clamped, frame.longest, true};
  const auto in_us = static_cast<Word>(
      std::min(number.whole / thousand + 1, static_cast<std::uint64_t>(word_limit)));
  return until(to_time(in_us), frame);
}

struct DurationUnit {
  std::string_view name;
  Word us;
};
/// Of units with a common prefix, the longer one is first.
constexpr std::array<DurationUnit, 7> duration_units{{{"ms", 1'000},
                                                      {"us", 1},
                                                      {"ns", 0},
                                                      {"d", 86'400'000'000},
                                                      {"h", 3'600'000'000},
                                                      {"m", 60'000'000},
                                                      {"s", 1'000'000}}};

/// The rest of `1h2m3.5s` after its first number.
Wait of_duration(Decimal number, std::string_view rest, const Frame& frame) noexcept {
  Word total = 0;
  bool negative = false;
  for (;;) {
    const auto* const unit =
        std::find_if(duration_units.begin(), duration_units.end(),
                     [&](const DurationUnit& u) { return take(rest, u.name); });
    if (unit == duration_units.end()) return {Fate::malformed};
    negative = negative || number.negative;
    // A nanosecond is less than the smallest span: any number of them counts as at least one.
    const Word part = unit->us == 0 ? static_cast<Word>(std::min<std::uint64_t>(
                                          number.whole / thousand + 1, std::uint64_t{1} << 52U))
                                    : number.times_rounded_up(unit->us);
    total = std::min(total + part, word_limit);
    if (rest.empty()) break;
    const auto next = take_decimal(rest);
    if (!next) return {Fate::malformed};
    number = *next;
  }
  if (negative) return {Fate::negative};
  return relative(total, frame);
}

}  // namespace

Wait parse_wait(std::string_view value, TimeUnit unit, const Frame& frame) noexcept {
  value = trimmed(value);
  if (value.empty()) return {Fate::empty};
  if (const auto date = parse_http_date(value, frame.now)) return until(*date, frame);
  if (const auto date = parse_rfc3339(value)) return until(*date, frame);
  std::string_view rest = value;
  const auto number = take_decimal(rest);
  if (!number) return {Fate::malformed};
  if (!rest.empty()) return of_duration(*number, rest, frame);
  if (number->negative) return {Fate::negative};
  return of_number(*number, unit, frame);
}

Wait seconds_to_wait(Word seconds, const Frame& frame) noexcept {
  if (seconds < 0) return {Fate::negative};
  return relative(seconds > word_limit / second ? word_limit : seconds * second, frame);
}

}  // namespace sluice::http::detail
