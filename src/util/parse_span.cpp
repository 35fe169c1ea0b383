#include "src/util/parse_span.hpp"

#include <stdexcept>
#include <string>

namespace sluice::detail {
namespace {

__extension__ typedef __int128 Wide;

struct Unit {
  std::string_view name;
  Word us;
};
constexpr Unit units[] = {{"us", 1},           {"ms", 1'000},         {"min", 60'000'000},
                          {"m", 60'000'000},   {"d", 86'400'000'000}, {"s", 1'000'000},
                          {"h", 3'600'000'000}};

constexpr std::size_t most_digits = 16;  // of either part: those of word_limit

/// Digits as a number; none if there is no digit, anything else, or too many.
std::optional<Word> whole_of(std::string_view digits) noexcept {
  if (digits.empty() || digits.size() > most_digits) return {};
  Word value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return {};
    value = 10 * value + (digit - '0');
  }
  return value;
}

}  // namespace

std::optional<Span> span_of(std::string_view text) noexcept {
  if (text == "0") return Span{0};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    std::string_view number = text.substr(0, text.size() - unit.name.size());
    while (number.ends_with(' ')) number.remove_suffix(1);
    const std::size_t point = number.find('.');
    const std::string_view decimals = point < number.size() ? number.substr(point + 1) : "0";
    const auto whole = whole_of(point == 0 ? "0" : number.substr(0, point));  // ".5s"
    const auto fraction = whole_of(decimals);
    if (!whole || !fraction) continue;
    Wide scale = 1;
    for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
    const Wide us = Wide{*whole} * unit.us + (Wide{*fraction} * unit.us + scale / 2) / scale;
    if (us > word_limit) return {};
    return Span{static_cast<Word>(us)};
  }
  return {};
}

Span parse_span(std::string_view text) {
  if (const auto span = span_of(text)) return *span;
  throw std::invalid_argument("expected a time, as 250us, 20ms, 1.5s, 2min, 1h or 1d, got " +
                              (text.empty() ? "nothing" : '"' + std::string(text) + '"'));
}

}  // namespace sluice::detail
