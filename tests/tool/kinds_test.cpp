// What holds of every kind of state: it has a description, which no bytes can break.
#include <cstring>
#include <limits>
#include <set>

#include "sluice/sluice.hpp"
#include "src/core/state_file.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/tool/book.hpp"

namespace sluice::test {
namespace {

using tool::KeyName;
using tool::StoredState;

const KeyName name = *KeyName::parse("{a}:limit");

/// States of this kind that its rows write, one behind the other.
std::vector<StoredState> written(StateKind kind, Random& random, Word& now) {
  std::vector<StoredState> states;
  const auto* const generator = testing::detail::find_generator(kind);
  if (generator == nullptr) return states;
  StoredState state{kind, std::vector<Word>(is_cell(kind) ? cell_words : 0)};
  const auto config = generator->any(random);
  for (int i = 0; i < 40; ++i) {
    for (const Operation* const row : operations()) {
      if (row->kind != kind || !row->writes) continue;
      Arguments args = config.args;
      generator->draw(random, *row, args);
      Effects effects;
      const Verdict verdict = run(*row, state.words, {args, config.table}, now, effects);
      if (verdict.status != Verdict::allowed || !effects.changes()) continue;
      state.words.resize(std::max(state.words.size(), effects.extent()));
      effects.make(state.words);
      states.push_back(state);
    }
    now += random.between(0, 1'000'000);
  }
  return states;
}

TEST_CASE("each kind of state is described as what it is", "[kinds]") {
  Random random("each kind of state is described as what it is");
  CAPTURE(random.repeat());
  for (const StateDescription& kind : state_descriptions) {
    INFO(kind.name);
    if (kind.kind == StateKind::constant) continue;
    std::size_t described = 0;
    if (kind.kind == StateKind::idempotency_record) {
      const StoredState record{kind.kind, {1, 2, 1, 0, 0, 0}};
      const auto d = tool::describe(name, record, {}, 3);
      CHECK(d.kind == kind.name);
      CHECK(d.is_sound);
      continue;
    }
    for (std::size_t life = 0; life < scaled(20); ++life) {
      Word now = 1'800'000'000'000'000;
      for (const StoredState& state : written(kind.kind, random, now)) {
        const auto d = tool::describe(name, state, {}, now);
        CHECK(d.kind == kind.name);
        CHECK(d.is_sound);
        CHECK(detail::is_sound(state.kind, state.words, now));
        CHECK_FALSE(d.summary.empty());
        ++described;
      }
    }
    CHECK(described > 20);
  }
}

TEST_CASE("a bucket with a table of quotas is described by the quota that is given", "[kinds]") {
  VirtualClock clock;
  const Quota quota = Quota::per_second(10).burst(20);
  const TokenBucket bucket(make_virtual_store(clock), "api",
                           std::make_shared<QuotaTable>(LimitList(quota)));
  REQUIRE(bucket.try_acquire("a", 15));
  KeyName of_table = name;
  of_table.unit = "table/1min";
  const Word now = to_word(clock.now());
  const StoredState spent{StateKind::token_bucket,
                          {token_bucket::word_of(15 * Word{60'000'000}), now}};
  const auto unknown = tool::describe(of_table, spent, {}, now);
  CHECK(unknown.is_sound);
  CHECK(unknown.summary == "counted with a table of quotas: give its --quota");
  const auto known = tool::describe(of_table, spent, {.quota = quota}, now);
  CHECK(known.limit == 20);
  REQUIRE(known.verdict);
  CHECK(known.verdict->remaining == bucket.peek("a").remaining);
  CHECK_THROWS_AS(tool::describe(of_table, spent, {.quota = Quota::per_hour(1)}, now),
                  std::invalid_argument);
}

TEST_CASE("a constant has no state", "[kinds]") {
  CHECK_FALSE(tool::describe(name, {StateKind::constant, {0, 0}}, {}, 1).is_sound);
}

TEST_CASE("a state becomes bytes and is read again", "[kinds]") {
  for (const StateDescription& kind : state_descriptions) {
    const StoredState state{kind.kind, {7, word_limit}};
    const std::string bytes = tool::encode_state(state);
    CHECK(bytes.size() == (kind.is_cell ? 25 : 17));
    const auto again = tool::decode_state(bytes);
    REQUIRE(again);
    CHECK(again->kind == kind.kind);
    CHECK(again->words == state.words);
    CHECK_FALSE(tool::decode_state(bytes + '\0'));
    CHECK(tool::decode_state(bytes.substr(0, 9)).has_value() == !kind.is_cell);
  }
  CHECK_FALSE(tool::decode_state(""));
  CHECK_FALSE(tool::decode_state("\x12"));              // a kind and no words
  CHECK_FALSE(tool::decode_state(std::string(25, 1)));  // no kind any more
  CHECK_FALSE(tool::decode_state(std::string(25, 'x')));
}

TEST_CASE("any words under any unit are described or found unsound", "[kinds]") {
  Random random("any words under any unit are described or found unsound");
  CAPTURE(random.repeat());
  const std::string_view units[]{"",           "10/s",      "1/s@1min",          "7/3us",
                                 "1s",         "daily@UTC", "1s+1min+1h,grants", "1min+10s",
                                 "%ff",        "never",     "9999999999999/d",   "1s,unlimited",
                                 "@",          "+",         "1/1us@100d",        "0/s",
                                 "table/1min", "table/"};
  std::size_t sound = 0;
  std::size_t unsound = 0;
  std::set<StateKind> refused;  // although words of this number and size are possible
  for (std::size_t i = 0; i < scaled(20'000); ++i) {
    const StateDescription& kind = state_descriptions[random.below(std::size(state_descriptions))];
    StoredState state{kind.kind, {}};
    const std::size_t size = kind.is_cell ? cell_words : random.below(60);
    while (state.words.size() < size) {
      const Word shapes[]{0, random.between(0, 20), random.between(0, word_limit),
                          random.between(1'799'999'000'000'000, 1'800'001'000'000'000),
                          static_cast<Word>(random.next())};
      state.words.push_back(shapes[random.below(random.one_in(8) ? 5 : 4)]);
    }
    KeyName any = name;
    any.unit = units[random.below(std::size(units))];
    tool::Given given;
    if (random.one_in(3)) given.limits = {random.between(1, word_limit / 2)};
    INFO(kind.name << " under " << any.unit);
    const auto is_word = [](Word w) { return w >= 0 && w <= word_limit; };
    const bool may_be = std::ranges::all_of(state.words, is_word) && size >= (kind.is_cell ? 2 : 6);
    if (may_be && !detail::is_sound(kind.kind, state.words, 1'800'000'000'000'000)) {
      refused.insert(kind.kind);
    }
    try {
      const auto d = tool::describe(any, state, given, 1'800'000'000'000'000);
      ++(d.is_sound ? sound : unsound);
      CHECK_FALSE(d.summary.empty());
    } catch (const std::invalid_argument& error) {
      INFO(error.what());
      CHECK_FALSE(given.limits.empty());
    }
  }
  CHECK(sound > 100);
  CHECK(unsound > 100);
  for (const StateDescription& kind : state_descriptions) {
    INFO(kind.name << " is asked nothing in src/core/state_file.cpp");
    CHECK(refused.contains(kind.kind) == (kind.kind != StateKind::token_bucket));
  }
}

}  // namespace
}  // namespace sluice::test
