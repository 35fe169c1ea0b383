// What every row of the table of operations promises to stores, whatever its rule: tried on random
// requests of its kind's generator, on states of its own making and on words that no rule wrote.
// And that each row says all that FallbackStore, exceptions and matchers read in it.
// Threading: single-threaded.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/model.hpp"
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

using Grants = Operation::Grants;
using Role = Argument::Role;
using Share = Operation::Share;
using WithoutStore = Operation::WithoutStore;

/// What is wrong with the arguments that a row describes.
std::vector<std::string> faults_of_arguments(const Operation& row) {
  std::vector<std::string> faults;
  std::map<std::size_t, int> of_index;
  std::map<Role, int> of_role;
  for (const Argument& each : row.arguments) {
    const bool is_named = each.name != nullptr && *each.name != '\0';
    const std::string name = is_named ? each.name : "an argument without a name";
    if (!is_named) faults.push_back(".arguments: name each of them");
    if (each.index >= row.argument_count) {
      faults.push_back(name + ": its .index is not below .argument_count");
    }
    if (++of_index[each.index] == 2) faults.push_back(name + ": another has its .index");
    if (each.role != Role::other && ++of_role[each.role] == 2) {
      faults.push_back(name + ": another has its .role");
    }
    const bool is_time = std::string_view(each.unit) == "us";
    if (each.role == Role::wait && !is_time) faults.push_back(name + ": a wait has .unit = \"us\"");
  }
  return faults;
}

/// What is wrong with what a row grants.
std::vector<std::string> faults_of_grants(const Operation& row) {
  std::vector<std::string> faults;
  const bool has_cost = row.arguments.find(Role::cost) != nullptr;
  const bool grants_cost = row.grants == Grants::cost || row.grants == Grants::up_to_cost;
  if (grants_cost && !has_cost) faults.push_back(".grants its cost: which of .arguments is it?");
  if (row.grants == Grants::one && has_cost) faults.push_back(".grants one, and is asked a cost");
  if (row.grants == Grants::nothing && has_cost && row.writes) {
    faults.push_back("takes a cost and writes: say what it .grants");
  }
  if (row.grants == Grants::up_to_cost && (row.output == 0 || row.names_part)) {
    faults.push_back(".grants up to its cost: its first detail must say how much");
  }
  return faults;
}

/// What is wrong with what a row says of the time without its store.
std::vector<std::string> faults_without_store(const Operation& row) {
  std::vector<std::string> faults;
  if (row.grants != Grants::nothing && row.without_store == WithoutStore::error) {
    faults.push_back("grants: say what it answers .without_store");
  }
  const bool asks_local = row.without_store == WithoutStore::fresh_state ||
                          row.without_store == WithoutStore::local_only ||
                          row.without_store == WithoutStore::local_lease;
  if (row.share != Share::whole && !asks_local) {
    faults.push_back("has a .share, and .without_store asks no local store");
  }
  if (row.share == Share::whole && asks_local && row.arguments.find(Role::cost) != nullptr) {
    faults.push_back("takes a cost in a local store: say what is the .share of a client");
  }
  if (row.charge_output.first + row.charge_output.count > row.output) {
    faults.push_back(".charge_output are not below .output");
  }
  return faults;
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

/// Often of units that the state holds: those of an entry of the log, of the window that is stored.
Step aimed(Random& random, Step step, const Subject& subject) {
  const std::vector<Word>& state = subject.state;
  if (state.size() < cell_words || random.one_in(4)) return step;
  if (step.operation == &sliding_window_settle) {
    const auto entry = sliding_window::any_entry(random, state);
    step.args[2] = entry.number;
    step.args[3] = entry.time;
  }
  if (step.operation == &sliding_window_counter_adjust) step.args[4] = state[0];
  if (step.operation == &fixed_window_refund) {
    const Arguments& config = subject.config.args;
    const Word width = config[1];
    for (std::size_t i = 2; width == 0 && i + 1 < config.size() - 1; ++i) {
      if (config[i] > state[0] || state[0] >= config[i + 1]) continue;
      std::tie(step.args[1], step.args[2]) = std::pair(config[i], config[i + 1]);
    }
    if (width > 0 && state[0] >= config[2]) {
      step.args[1] = state[0] - (state[0] - config[2]) % width;
      step.args[2] = std::min(word_limit, step.args[1] + width);
    }
  }
  return step;
}

/// What check() says of the call with this argument.
Word status_with(const Step& call, std::size_t index, Word value) {
  Arguments args = call.args;
  args[index] = value;
  return call.operation->check(args);
}

}  // namespace

TEST_CASE("a row describes itself fully, in the order of its id", "[core][rows]") {
  int last = -1;
  for (const Operation* row : operations()) {
    CAPTURE(row->name);
    CHECK(row->id > last);
    last = row->id;
    CHECK((row->apply != nullptr) != (row->decide != nullptr));
    CHECK((row->check != nullptr && row->ttl != nullptr));
    CHECK(row->argument_count <= max_arguments);
    for (const auto& faults :
         {faults_of_arguments(*row), faults_of_grants(*row), faults_without_store(*row)}) {
      CHECK(faults == std::vector<std::string>());
    }
    INFO("its kind has a line in state_descriptions");
    CHECK(std::ranges::count(state_descriptions, row->kind, &StateDescription::kind) == 1);
  }
}

TEST_CASE("of a kind that is answered without its store, a row grants and questions are answered",
          "[core][rows]") {
  const auto is_answered = [](const Operation& row) {
    return row.without_store == WithoutStore::fresh_state ||
           row.without_store == WithoutStore::no_state;
  };
  std::map<StateKind, bool> grants;
  for (const Operation* row : operations()) {
    if (is_answered(*row)) grants[row->kind] |= row->grants != Grants::nothing;
  }
  for (const Operation* row : operations()) {
    const auto kind = grants.find(row->kind);
    if (kind == grants.end()) continue;
    CAPTURE(row->name);
    INFO("one of the rows of this kind says what it .grants");
    CHECK(kind->second);
    INFO("a row that never writes says what it answers .without_store");
    CHECK((row->writes || is_answered(*row)));
  }
}

TEST_CASE("the units of a spender are the cost that its row grants", "[core][rows]") {
  for (const Generator& generator : generators()) {
    if (generator.spender == nullptr) continue;
    const Spender& spender = *generator.spender;
    for (const Operation* row : {spender.acquire, spender.peek}) {
      CAPTURE(row->name);
      CHECK(row->grants == (row == spender.acquire ? Grants::cost : Grants::nothing));
      const Argument* const cost = row->arguments.find(Role::cost);
      REQUIRE(cost != nullptr);
      Arguments args{};
      spender.ask(args, 12'345);
      CHECK(args[cost->index] == 12'345);
    }
  }
}

TEST_CASE("the numbers of kinds are unique and below 32", "[core][rows]") {
  std::map<StateKind, int> seen;
  for (const StateDescription& each : state_descriptions) {
    INFO(each.name);
    CHECK(++seen[each.kind] == 1);
    CHECK(static_cast<int>(each.kind) < 32);
  }
}

TEST_CASE("the kinds that have a kernel for cells alone are those whose states keys may share",
          "[core][rows]") {
  for (const StateDescription& each : state_descriptions) {
    INFO(each.name);
    const bool has_apply = std::ranges::any_of(operations(), [&](const Operation* row) {
      return row->kind == each.kind && row->apply != nullptr;
    });
    CHECK(each.is_shareable == has_apply);
    CHECK(is_shareable(each.kind) == has_apply);
  }
}

TEST_CASE("a row accepts what is within its bounds, and what is beyond is that error, by its check",
          "[core][rows][C-006][C-024][C-025][C-078]") {
  Random random(
      "a row accepts what is within its bounds, and what is beyond is that error, by its check");
  CAPTURE(random.repeat());
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    INFO("src/testing/generators.hpp has a line for the rule of " << row->name);
    REQUIRE(generator != nullptr);
    for (std::size_t i = 0; i < scaled(200); ++i) {
      Subject subject("tag", "name", *generator, generator->any(random));
      const Step call = subject.draw(random, *row);
      INFO(describe(call));
      REQUIRE(row->check(call.args) == Verdict::allowed);
      for (const Bound& bound : generator->bounds(*row, call.args)) {
        INFO("argument " << bound.index << " is " << bound.least << " to " << bound.most);
        CHECK(status_with(call, bound.index, bound.least) == Verdict::allowed);
        CHECK(status_with(call, bound.index, bound.most) == Verdict::allowed);
        CHECK(status_with(call, bound.index, bound.least - 1) == -Word(bound.below));
        CHECK(status_with(call, bound.index, bound.most + 1) == -Word(bound.above));
      }
    }
  }
}

TEST_CASE("a row answers what its check says, whatever the state", "[core][rows]") {
  Random random("a row answers what its check says, whatever the state");
  CAPTURE(random.repeat());
  for (const Operation* row : operations()) {
    const Generator& generator = *find_generator(row->kind);
    for (std::size_t i = 0; i < scaled(200); ++i) {
      Subject subject("tag", "name", generator, generator.any(random));
      Step step = subject.draw(random, *row);
      if (!spoil(random, generator, *row, step.args)) break;
      INFO(describe(step));
      CHECK(row->check(step.args) < 0);
      const auto state = tampered(random, {1, 2}, is_cell(row->kind));
      if (!std::ranges::all_of(state, in_range)) continue;
      const Ruled ruled = rule(step, state, start(random));
      CHECK(ruled.verdict.status == row->check(step.args));
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
        // A kernel for cells alone counts on its store to have looked at both words.
        if (step.operation->apply != nullptr && !std::ranges::all_of(words, in_range)) continue;
        const Ruled ruled = rule(step, words, now);
        INFO(describe(step) << " at " << now << " on " << describe(words));
        check_answer(step, ruled);
        now = move(random, now, ruled.verdict.retry_after);
      }
    }
  }
}

// A store may drop a state when every write has been kept for its time: what is answered from then
// on must be the same with it and without it.
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
      std::string writer;
      // In half of the lives one row alone: its time is not hidden by a longer one.
      const auto rows = rows_of(generator.kind);
      const Operation* const only = random.one_in(2) ? rows[random.below(rows.size())] : nullptr;
      const auto set_back = [&](Word& clock) {
        const Word by = random.one_in(3) ? 0 : random.between(0, Operation::clock_slack);
        clock -= by;
        return by;
      };
      for (int j = 0; j < 10; ++j) {
        const Step drawn = only != nullptr ? subject.draw(random, *only) : subject.draw(random);
        const Step step = aimed(random, drawn, subject);
        const Ruled ruled = rule(step, subject.state, now);
        if (ruled.changes) {
          idle_at = std::max(idle_at, now + step.operation->ttl(step.args));
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
        const Step step = aimed(random, subject.draw(random), subject);
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
    const bool has_state = generator.kind != StateKind::constant;
    CHECK((compared[generator.kind] > 0) == has_state);
  }
}
