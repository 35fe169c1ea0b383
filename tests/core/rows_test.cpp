// What every row of the table of operations promises to stores, whatever its rule: tried on random
// requests of its kind's generator, on states of its own making and on words that no rule wrote.
// Threading: single-threaded.
#include <algorithm>
#include <map>

#include "sluice/testing/detail/model.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing::detail;

namespace {

bool in_range(Word word) { return word >= 0 && word <= word_limit; }

/// Two words may add up, as from a stamp ahead of the clock.
bool is_span(Word word) { return word >= 0 && word < 2 * word_limit; }

/// What a row did to a state.
struct Ruled {
  Verdict verdict;
  std::vector<Word> output;
  std::vector<Word> state;
  bool changes = false;
  bool first_word = false;
  bool in_range = true;  // what was written
  std::size_t extent = 0;
};

Ruled rule(const Step& step, const std::vector<Word>& state, Word now) {
  Effects effects;
  Ruled ruled;
  ruled.verdict = run(*step.operation, state, {step.args, step.table}, now, effects);
  ruled.output.assign(effects.output().begin(), effects.output().end());
  ruled.changes = effects.changes();
  ruled.extent = effects.extent();
  for (const Effects::Fill& fill : effects.fills()) {
    ruled.first_word = ruled.first_word || fill.index == 0;
    ruled.in_range = ruled.in_range && in_range(fill.value);
  }
  ruled.state = state;
  ruled.state.resize(std::max(state.size(), ruled.extent));
  effects.make(ruled.state);
  return ruled;
}

/// Words that no rule wrote, small ones as often as any: they pass for indices.
std::vector<Word> tampered(Random& random, const std::vector<Word>& real, bool cell) {
  std::vector<Word> words = real;
  if (!cell && random.one_in(3)) words.resize(random.below(60), 0);
  for (Word& word : words) {
    if (!random.one_in(3)) continue;
    word = random.one_in(2) ? random.between(0, 12) : random.between(0, word_limit);
    if (random.one_in(20)) word = random.one_in(2) ? word_limit : word_limit - 1;
    if (random.one_in(200)) word = random.one_in(2) ? -1 : word_limit + 1;
  }
  return words;
}

void check_answer(const Step& step, const Ruled& ruled) {
  const Verdict& v = ruled.verdict;
  CHECK(ruled.output.size() == output_count(*step.operation, step.table.size()));
  CHECK(std::ranges::all_of(ruled.output, in_range));
  CHECK(v.status <= Verdict::allowed);
  CHECK(in_range(v.remaining));
  CHECK((is_span(v.retry_after) && is_span(v.reset_after)));
  if (v.status < 0) {
    CHECK(v == Verdict::failed(static_cast<Errc>(-v.status)));
    CHECK(std::ranges::count(ruled.output, 0) == std::ssize(ruled.output));
  }
  if (ruled.changes) {
    CHECK(v.status == Verdict::allowed);
    CHECK(step.operation->writes);
    CHECK(ruled.first_word);
    CHECK(ruled.in_range);
    CHECK(ruled.extent <= max_state_words);
    if (is_cell(step.operation->kind)) CHECK(ruled.extent <= cell_words);
  }
}

/// Now and then a moment on, a long time, or back.
Word move(Random& random, Word now, Word hint) {
  switch (random.below(5)) {
    case 0:
      return now;
    case 1:
      return std::clamp(now + hint + random.between(-1, 1), Word{0}, word_limit);
    case 2:
      return std::clamp(now - log_uniform(random, 30), Word{0}, word_limit);
    default:
      return std::min(word_limit, now + log_uniform(random, 34));
  }
}

/// From when the clocks of tests start: configurations may name instants about then.
Word start(Random& random) {
  const Word first = to_word(VirtualClock::default_start);
  return random.between(first, 2 * first);
}

}  // namespace

TEST_CASE("a row answers what its check says, whatever the state", "[core][rows]") {
  Random random("a row answers what its check says, whatever the state");
  CAPTURE(random.repeat());
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    REQUIRE(generator != nullptr);
    for (std::size_t i = 0; i < scaled(200); ++i) {
      Subject subject("tag", "name", *generator, generator->any(random));
      CHECK(row->check(subject.draw(random, *row).args) == Verdict::allowed);
      Arguments args = subject.config.args;
      if (!generator->impossible(*row, args, i % 32)) continue;
      const Step step = subject.step(*row, args);
      INFO(describe(step));
      CHECK(row->check(args) < 0);
      const auto state = tampered(random, {1, 2}, is_cell(row->kind));
      if (!std::ranges::all_of(state, in_range)) continue;
      const Ruled ruled = rule(step, state, start(random));
      CHECK(ruled.verdict.status == row->check(args));
      check_answer(step, ruled);
    }
  }
}

TEST_CASE("a row changes only what it may, and stays within the number range",
          "[core][rows][C-016]") {
  Random random("a row changes only what it may, and stays within the number range");
  CAPTURE(random.repeat());
  for (const Generator& generator : generators()) {
    for (std::size_t i = 0; i < scaled(200); ++i) {
      Subject subject("tag", "name", generator, generator.any(random));
      Word now = start(random);
      for (int j = 0; j < 30; ++j) {
        const Step step = subject.draw(random);
        const Ruled ruled = rule(step, subject.state, now);
        INFO(describe(step) << " at " << now << " on " << describe(subject.state));
        check_answer(step, ruled);
        CHECK(ruled.verdict.status != -static_cast<Word>(Errc::corrupt_state));
        CHECK(is_span(step.operation->ttl(step.args)));
        subject.state = ruled.state;
        now = move(random, now, ruled.verdict.retry_after);
      }
    }
  }
}

TEST_CASE("a row answers whatever words it finds, and says which it cannot have written",
          "[core][rows]") {
  Random random("a row answers whatever words it finds, and says which it cannot have written");
  CAPTURE(random.repeat());
  for (const Generator& generator : generators()) {
    for (std::size_t i = 0; i < scaled(200); ++i) {
      Subject subject("tag", "name", generator, generator.any(random));
      Word now = start(random);
      for (int j = 0; j < 20; ++j) {
        subject.state = rule(subject.draw(random), subject.state, now).state;
        const Step step = subject.draw(random);
        const auto words = tampered(random, subject.state, is_cell(generator.kind));
        const Ruled ruled = rule(step, words, now);
        INFO(describe(step) << " at " << now << " on " << describe(words));
        check_answer(step, ruled);
        now = move(random, now, ruled.verdict.retry_after);
      }
    }
  }
}

// A store may drop a cell when it has been kept since it was last written, and a wide state when
// every write has been: what is answered from then on must be the same with it and without it.
TEST_CASE(
    "a state that has been kept for its time means the same as none, the clock corrected or not",
    "[core][rows][C-035]") {
  Random random(
      "a state that has been kept for its time means the same as none, the clock corrected or not");
  CAPTURE(random.repeat());
  std::map<StateKind, std::size_t> compared;
  for (const Generator& generator : generators()) {
    for (std::size_t i = 0; i < scaled(400); ++i) {
      Subject subject("tag", "name", generator, generator.any(random));
      Word now = start(random);
      Word idle_at = 0;
      Word slack = Operation::clock_slack;  // what the clock may be set back by, in all
      std::string writer;
      const auto set_back = [&](Word& clock) {
        if (random.one_in(3)) return Word{0};
        const Word by = random.between(0, slack);
        slack -= by;
        clock -= by;
        return by;
      };
      for (int j = 0; j < 10; ++j) {
        const Step step = subject.draw(random);
        const Ruled ruled = rule(step, subject.state, now);
        if (ruled.changes) {
          const Word kept_for = now + step.operation->ttl(step.args);
          idle_at = is_cell(generator.kind) ? kept_for : std::max(idle_at, kept_for);
          writer = describe(step) + " at " + std::to_string(now);
        }
        subject.state = ruled.state;
        if (j != 9) now = std::min(word_limit, now + log_uniform(random, 24));
        if (j != 9 && random.one_in(4)) set_back(now);
      }
      Word later = idle_at + (random.one_in(2) ? 0 : log_uniform(random, 30));
      if (idle_at == 0 || later > word_limit) continue;
      const Word back = set_back(later);
      std::vector<Word> none(cell_words);
      for (int j = 0; j < 6; ++j) {
        const Step step = subject.draw(random);
        const Ruled kept = rule(step, subject.state, later);
        const Ruled dropped = rule(step, none, later);
        INFO(describe(step) << " at " << later << ", set back by " << back << ", idle since "
                            << idle_at << ", kept " << describe(subject.state) << ", new "
                            << describe(none) << ", written by " << writer);
        CHECK(kept.verdict.status == dropped.verdict.status);
        CHECK(kept.verdict.remaining == dropped.verdict.remaining);
        CHECK(kept.verdict.retry_after == dropped.verdict.retry_after);
        CHECK(kept.verdict.reset_after == dropped.verdict.reset_after);
        CHECK(kept.output == dropped.output);
        subject.state = kept.state;
        none = dropped.state;
        later = std::min(word_limit, later + log_uniform(random, 20));
        ++compared[generator.kind];
      }
    }
    CHECK(compared[generator.kind] > 0);
  }
}
