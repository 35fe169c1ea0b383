// Draws states that are likely to show a difference: words at the edges, near the clock's time, and
// near what is there already.
#include "tests/twin/tamper.hpp"

#include <algorithm>
#include <stdexcept>

#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {
namespace {

using testing::detail::Configuration;
using testing::detail::log_uniform;

constexpr Word ahead = TokenBucketRule::max_ahead;

/// What no rule writes.
constexpr std::array<Word, 6> never_written{-1,        INT64_MIN,   word_limit + 1,
                                            INT64_MAX, -word_limit, word_limit * 2 + 1};
Word draw_never_written(Random& random) {
  return never_written[random.below(never_written.size())];
}

Word draw_word(Random& random, const Configuration& config, Word now) {
  const std::array<Word, 6> edges{0, 1, word_limit - 1, word_limit, now, config.args[0]};
  switch (random.below(12)) {
    case 0:
      return edges[random.below(edges.size())];
    case 1:
      return log_uniform(random, 52);
    case 2:
      return random.between(0, 12);
    case 3:
      return std::clamp<Word>(config.args[random.below(max_arguments)], 0, word_limit);
    case 4:  // a stamp around the bound of how far it may lie ahead
      return std::min(now + ahead + random.between(-1, 1), word_limit);
    case 5:
      return std::min(now + random.between(0, ahead), word_limit);
    case 6:
      return now - random.between(0, std::min<Word>(now, Word{1} << random.below(50)));
    default:
      return now - random.between(0, std::min<Word>(now, 1'000'000));
  }
}

/// One word, or one byte behind the last word, that no rule writes.
std::string spoil(Random& random, std::string raw, std::size_t words) {
  const std::size_t at = random.below(std::max<std::size_t>(words, 1));
  if (raw.size() < 9 + 8 * at) return raw;
  return raw.replace(1 + 8 * at, 8, le64(draw_never_written(random)));
}

/// What is there, with a word or two changed.
std::string disturb(Random& random, std::string raw, const Configuration& config, Word now) {
  const std::size_t words = raw.size() / 8;
  for (auto changes = 1 + random.below(2); changes > 0; --changes) {
    const std::size_t at = 1 + 8 * random.below(random.one_in(2) ? words : std::min(words, 6UL));
    if (at == 17 && raw.size() == 25 && random.one_in(2)) {  // when a cell expires
      raw.replace(at, 8, le64(draw_never_written(random)));
      continue;
    }
    const Word old = read_le64(raw, at);
    const Word word =
        random.one_in(2) ? std::clamp(std::clamp(old, Word{-2}, word_limit) + random.between(-2, 2),
                                      Word{0}, word_limit)
                         : draw_word(random, config, now);
    raw.replace(at, 8, le64(word));
  }
  return raw;
}

}  // namespace

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Operation* row : operations()) {
    const auto found = std::ranges::find(all, row->kind, &Subject::kind);
    if (found != all.end()) {
      found->rows.push_back(row);
      continue;
    }
    const auto* generator = testing::detail::find_generator(row->kind);
    if (generator == nullptr)
      throw std::runtime_error("no generator for " + std::string(row->name));
    all.push_back({generator, {row}});
  }
  return all;
}

namespace {

/// Generators tell rows by their address.
const Operation& in_table(const Operation& row) {
  const auto found = std::ranges::find(operations(), row.id, [](const auto* r) { return r->id; });
  return found == operations().end() ? row : **found;
}

}  // namespace

void draw_call(Random& random, const Subject& subject, const Operation& row, Arguments& args) {
  subject.generator->draw(random, in_table(row), args);
}

void draw_impossible(Random& random, const Subject& subject, const Operation& row,
                     Arguments& args) {
  spoil(random, *subject.generator, in_table(row), args);
}

void draw_impossible_table(Random& random, const Subject& subject, std::span<Word> table) {
  if (subject.kind() != StateKind::sliding_window || table.empty()) return;
  const std::size_t at = random.below(table.size());
  const Word beyond =
      at % 2 == 0 ? SlidingWindowRule::max_limit + 1 : SlidingWindowRule::max_span + 1;
  const std::array wrong{Word{0}, Word{-1}, beyond, word_limit + 1, INT64_MAX, INT64_MIN};
  table[at] = wrong[random.below(wrong.size())];
}

Configuration draw_config(Random& random, const Subject& subject) {
  if (subject.kind() == StateKind::token_bucket && random.one_in(6)) {
    static const std::array<Quota, 5> corners{
        Quota::per(Quota::bound - 1, Span{1}), Quota::per(1, Span{1}).burst(Quota::bound - 1),
        Quota::per(1, Span{Quota::bound - 1}), Quota::per(Quota::bound - 2, Span{2}).burst(1),
        Quota::per(67'108'859, Span{67'108'864}).burst(33'554'431)};
    return testing::detail::token_bucket::pack(corners[random.below(corners.size())]);
  }
  return subject.generator->any(random);
}

Configuration draw_change(Random& random, const Subject& subject, const Configuration& config) {
  if (subject.kind() != StateKind::sliding_window || config.table.empty() || random.one_in(2)) {
    return draw_config(random, subject);
  }
  const std::size_t other = random.below(config.table.size() / 2);
  Configuration changed;
  for (std::size_t k = 0; 2 * k < config.table.size(); ++k) {
    const Word change = k == other ? random.between(-2, 2) : 0;
    testing::detail::sliding_window::add(
        changed, std::clamp<Word>(config.table[2 * k] + change, 1, SlidingWindowRule::max_limit),
        config.table[2 * k + 1]);
  }
  return changed;
}

std::string draw_state(Random& random, StateKind kind, std::size_t head, const std::string& raw,
                       const Configuration& config, Word now) {
  std::vector<Word> words(is_cell(kind)      ? cell_words
                          : random.one_in(2) ? random.below(head + 2)
                                             : head + random.below(40));
  for (Word& word : words) word = draw_word(random, config, now);
  const std::string drawn = encode(kind, words);
  const bool sound = raw.size() > 8 && raw.size() % 8 == 1 && raw[0] == static_cast<char>(kind);
  switch (random.below(10)) {
    case 0: {
      const std::string& whole = sound && random.one_in(2) ? raw : drawn;
      return spoil(random, whole, is_cell(kind) ? cell_words : std::min(head, whole.size() / 8));
    }
    case 1: {
      std::string other = random.one_in(2) && sound ? raw : drawn;
      const std::array<int, 7> edges{0, 1, 7, 31, 32, 128, 255};
      other[0] = static_cast<char>(edges[random.below(edges.size())]);
      return other;
    }
    case 2:
      return std::string(1 + random.below(is_cell(kind) ? 40 : 8 * head + 1),
                         static_cast<char>(kind));
    case 3:
    case 4:
      return "";
    case 5:
    case 6:
    case 7:
      return sound ? disturb(random, raw, config, now) : drawn;
    default:
      return drawn;
  }
}

}  // namespace sluice::test
