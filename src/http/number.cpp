// Parses decimal numbers without overflow.
#include "src/http/number.hpp"

#include <algorithm>

#include "src/http/ascii.hpp"

namespace sluice::http::detail {
namespace {

std::uint64_t digit(char c) noexcept { return static_cast<std::uint64_t>(c - '0'); }

void take_whole(std::string_view& text, Decimal& number) noexcept {
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    const std::uint64_t next = digit(text.front());
    number.whole =
        number.whole > (Decimal::huge - next) / 10 ? Decimal::huge : number.whole * 10 + next;
  }
}

void take_fraction(std::string_view& text, Decimal& number) noexcept {
  std::uint32_t place = 100'000;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    const auto next = static_cast<std::uint32_t>(digit(text.front()));
    number.micro += next * place;
    if (place == 0 && next != 0) number.rounded = true;
    place /= 10;
  }
}

}  // namespace

Word Decimal::times_rounded_up(Word unit) const noexcept {
  const auto factor = static_cast<std::uint64_t>(unit);
  const auto limit = static_cast<std::uint64_t>(word_limit);
  if (factor > limit || whole > limit / factor) return word_limit;
  // A unit is at most a day, so that this product stays below 2^64.
  constexpr std::uint64_t million = 1'000'000;
  const std::uint64_t part = micro * factor;
  const std::uint64_t up = part % million != 0 || (rounded && factor > 0) ? 1 : 0;
  return static_cast<Word>(std::min(whole * factor + part / million + up, limit));
}

std::optional<Decimal> take_decimal(std::string_view& text) noexcept {
  std::string_view rest = text;
  Decimal number;
  const bool minus = take(rest, "-");
  if (!minus) (void)take(rest, "+");
  if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
  take_whole(rest, number);
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    rest.remove_prefix(1);
    take_fraction(rest, number);
  }
  number.negative = minus && (number.whole != 0 || number.micro != 0 || number.rounded);
  text = rest;
  return number;
}

}  // namespace sluice::http::detail
