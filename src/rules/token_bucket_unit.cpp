// The units that token buckets count in.
#include "sluice/rules/token_bucket_unit.hpp"

#include <bit>
#include <cstdint>

#include "src/rules/token_bucket_level.hpp"

namespace sluice::token_bucket {
namespace {

Word code_of(Word period) noexcept {
  Word code = 0;
  Word rest = period;
  for (const Factor& factor : factors) {
    Word power = 0;
    while (power + 1 < factor.powers && rest % factor.prime == 0) {
      rest /= factor.prime;
      ++power;
    }
    code = code * factor.powers + power;
  }
  if (rest == 1) return code;
  const auto octave = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(period))) - 1;
  const Word whole = Word{1} << octave;
  return exact_codes + steps * octave + (period - whole) * steps / whole;
}

}  // namespace

Word unit_of(Word period, Word limit) noexcept {
  return limit >= coded_limit ? 0 : 2 * code_of(period) + 1;
}

}  // namespace sluice::token_bucket
