// Leases whose table is full, or nearly so: no run of random requests gets so far.
#include "sluice/rules/leases.hpp"

#include <algorithm>
#include <optional>

#include "tests/twin/single.hpp"
#include "tests/twin/twin.hpp"

namespace sluice::test {
namespace {

using Rule = LeasesRule;
using testing::detail::Configuration;

constexpr Word places = Rule::max_holders;
constexpr std::size_t head_words = 11;
constexpr std::size_t place_words = 8;

/// The words of a table in which every place holds a lease of weight 1, the first to end first; or
/// all but the last place, which is free, and of which the front tells what is `under` it.
std::vector<Word> full_table(Word now, std::optional<Word> under) {
  const Word held = under ? places - 1 : places;
  const Word ends = now + 1'000'000;
  const std::array<Word, head_words> front{
      held,     now,        0, places, places, 1, held, under ? places : 0, under.value_or(0),
      ends + 1, ends + held};
  std::vector<Word> words(front.begin(), front.end());
  for (Word i = 1; i <= held; ++i) {
    const std::array<Word, place_words> place{1, i == held ? 0 : i + 1, ends + i, i - 1, i, i, i,
                                              i};
    words.insert(words.end(), place.begin(), place.end());
  }
  if (under) words.insert(words.end(), place_words, 0);
  return words;
}

/// The state as far as somewhere in a place, of the first two or the last: often in its links.
std::string tear(Random& random, const std::string& raw) {
  const std::array<Word, 3> torn{0, 1, places - 1};
  const auto place = static_cast<std::size_t>(torn[random.below(torn.size())]);
  const std::size_t begin = 1 + 8 * (head_words + place_words * place);
  return raw.substr(0, begin + random.below(random.one_in(2) ? 24 : 8 * place_words));
}

/// A request that concerns one of the last places, or none that is held.
Arguments draw_arguments(Random& random, const Operation& row) {
  const Word limit = places + random.between(-2, 2);
  const Word place = random.one_in(8) ? 1 : places - random.between(0, 2);
  const Word ttl = random.one_in(2) ? Rule::max_ttl : Rule::min_ttl + random.between(0, 3'000'000);
  if (row.id == leases_acquire.id) return {limit, random.between(1, 2), ttl, 0, 0, 7, 7, 0};
  if (row.id == leases_release.id) return {limit, place, place, place, place};
  if (row.id == leases_renew.id) return {limit, ttl, place, place, place, place};
  if (row.id == leases_peek.id) return {limit, 1, 0};
  return {limit, ttl};
}

}  // namespace

std::optional<std::string> check_full_tables(RedisClient& client, const Scripts& scripts,
                                             std::span<const Subject> subjects, Random& random) {
  const auto leases = std::ranges::find(subjects, StateKind::leases, &Subject::kind);
  if (leases == subjects.end()) return std::nullopt;
  SingleTwin twin(client, scripts, random);
  const Word now = random.between(0, word_limit / 2);
  for (const std::optional<Word> under : {std::optional<Word>(), {0}, {Rule::unread}}) {
    const std::string raw = encode(StateKind::leases, full_table(now, under));
    for (const Operation* row : leases->rows) {
      for (int i = 0; i < 24; ++i) {
        const Ask ask{row, Configuration{.args = draw_arguments(random, *row)}};
        const bool is_torn = i % 3 != 0;
        if (auto difference = twin.compare(ask, is_torn ? tear(random, raw) : raw, now, is_torn)) {
          return difference;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace sluice::test
