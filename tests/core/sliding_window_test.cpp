// The kernels of the sliding windows as tables of moments: at this instant, this request, this
// answer. Threading: single-threaded.
#include "sluice/rules/sliding_window.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = SlidingWindowRule;

constexpr Word limit = 100;  // what a request reports; the windows in the table decide

Ask acquire(Word cost, Span max_wait = 0s) {
  return {&sliding_window_acquire, {limit, cost, max_wait.count(), Rule::max_span}};
}
Ask peek(Word cost, Span max_wait = 0s) {
  return {&sliding_window_peek, {limit, cost, max_wait.count(), Rule::max_span}};
}
Ask settle(Word units, Word entry, Span time, Rule::Change change) {
  return {&sliding_window_settle,
          {limit, units, entry, start + time.count(), static_cast<Word>(change), Rule::max_span}};
}
Ask back(Word units, Word entry, Span time) {
  return settle(units, entry, time, Rule::Change::refund);
}
Ask charge(Word units, Word entry, Span time) {
  return settle(units, entry, time, Rule::Change::charge);
}
Ask block(Span span) { return {&sliding_window_block, {limit, span.count(), Rule::max_span}}; }
Ask reward(Word units) { return {&sliding_window_reward, {limit, units, Rule::max_span}}; }
const Ask reset{&sliding_window_reset, {limit}};

Kernel windows(std::vector<std::pair<Word, Span>> all) {
  Kernel kernel;
  for (const auto& [most, span] : all)
    kernel.table.insert(kernel.table.end(), {most, span.count()});
  return kernel;
}

/// The part, no entry, and what remains.
Output told(Word part, std::vector<Word> left) {
  Output output{part, 0, 0};
  output.insert(output.end(), left.begin(), left.end());
  return output;
}
/// The part, the entry that was logged, and what remains.
Output logged(Word part, Word entry, Span time, std::vector<Word> left) {
  Output output = told(part, std::move(left));
  output[1] = entry;
  output[2] = start + time.count();
  return output;
}

/// Words of the state, by their index.
constexpr std::size_t capacity_word = 2;
constexpr std::size_t next_word = 3;
constexpr std::size_t size_word = 4;
constexpr std::size_t sequence_word = 5;
constexpr std::size_t blocked_word = 7;
constexpr std::size_t places_word = 8;
constexpr std::size_t first_place = 13;

}  // namespace

TEST_CASE("a unit counts until a span after it, in every window, and not at that microsecond",
          "[core][sliding_window][C-002][C-003]") {
  check_moments(windows({{2, 5s}, {3, 60s}}),
                {{0s, acquire(2), admitted(0, 60s), logged(0, 1, 0s, {0, 1})},
                 {0s, acquire(1), turned_away(5s, 60s), told(0, {0, 1})},
                 {5s - 1us, acquire(1), turned_away(1us, 55s + 1us), told(0, {0, 1})},
                 {5s, acquire(1), admitted(0, 60s), logged(1, 2, 5s, {1, 0})},
                 {5s, acquire(1), turned_away(55s, 60s), told(1, {1, 0})},
                 {60s - 1us, acquire(1), turned_away(1us, 5s + 1us), told(1, {2, 0})},
                 {60s, acquire(1), admitted(1, 60s), logged(0, 3, 60s, {1, 1})}});
}

TEST_CASE("a charge ends at the most that is counted, and what is given back at the entry's units",
          "[core][sliding_window]") {
  check_moments(windows({{1, 60s}}),
                {{0s, acquire(1), admitted(0, 60s)},
                 {0s, charge(Word{1} << 52, 1, 0s), admitted(0, 60s), {Rule::max_units - 1, 0}},
                 {0s, charge(1, 1, 0s), admitted(0, 60s), {0, 0}},
                 {0s, back(Word{1} << 52, 1, 0s), admitted(1, 0s), {Rule::max_units, 1}}});
}

TEST_CASE("a full log waits until its oldest entry leaves the longest window",
          "[core][sliding_window]") {
  const Word many = Word{1} << 40;
  Kernel kernel = windows({{many, 60s}, {many, 5s}});
  for (Word i = 0; i < Rule::max_entries - 1; ++i) {
    REQUIRE(kernel.ask(Span{i}, acquire(1)).status == Verdict::allowed);
  }
  const Word left = many - Rule::max_entries;
  check_moments(
      kernel,
      {{1s, peek(1), admitted(left + 1, 59s + 65'534us), told(0, {left + 1, left + 1})},
       {1s, acquire(1), admitted(0, 60s), logged(0, Rule::max_entries, 1s, {0, left})},
       {2s, acquire(1), turned_away(58s, 59s), told(0, {0, left})},
       {2s, acquire(1, 3600s), turned_away(58s, 59s), told(0, {0, left})},
       {2s, peek(0), admitted(0, 59s), told(0, {0, left})},
       {2s, back(0, 5, 4us), admitted(0, 59s), {0, 0, left}},
       {2s, back(1, 5, 4us), admitted(0, 59s), {1, 0, left + 1}},
       {2s, charge(2, 6, 5us), admitted(0, 59s), {2, 0, left - 1}},
       {60s - 1us, acquire(1), turned_away(1us, 1s + 1us)},
       {60s, acquire(1), admitted(0, 60s), logged(0, Rule::max_entries + 1, 60s, {0, many - 1})},
       {60s, acquire(1), turned_away(1us, 60s)},
       {60s, reward(1), admitted(left + 1 - 1, 1s), {1, left, many}},
       {60s, acquire(1), admitted(0, 60s)}});
  CHECK(kernel.state[capacity_word] == Rule::max_entries);
  CHECK(kernel.state.size() <= max_state_words);
}

TEST_CASE("a place is made for a window that comes later, and stays", "[core][sliding_window]") {
  Kernel kernel = windows({{3, 10s}});
  for (int i = 0; i < 12; ++i) {
    CHECK(kernel.ask(5s * i, acquire(1)).status == Verdict::allowed);
  }
  CHECK(kernel.state[places_word] == 1);
  // The ring of three has lost all before 45 s: 3 are assumed at 45, 35 and 25 s each.
  kernel.table = {3, Word{10'000'000}, 20, Word{20'000'000}, 30, Word{40'000'000}};
  check_moments(kernel, {{55s, peek(1), admitted(1, 40s), told(0, {1, 14, 18})},
                         {55s, acquire(1), admitted(0, 40s), logged(0, 13, 55s, {0, 13, 17})}});
  CHECK(kernel.state[places_word] == 3);
  kernel.table.resize(2);
  check_moments(kernel, {{60s, acquire(1), admitted(0, 10s), logged(0, 14, 60s, {0})}});
  CHECK(kernel.state[places_word] == 3);
  CHECK(kernel.state[first_place + 5 + 1] == 0);  // the second is not known any more

  Kernel smallest = windows({{1, 1s}});  // a ring of one entry, which is used again as it moves
  CHECK(smallest.ask(0s, acquire(1)) == admitted(0, 1s));
  smallest.table = {1, Word{1'000'000}, 1, Word{3'000'000}};
  check_moments(smallest, {{5s, acquire(1), admitted(0, 3s), logged(0, 2, 5s, {0, 0})},
                           {6s, acquire(1), turned_away(2s, 2s), told(1, {1, 0})},
                           {8s, acquire(1), admitted(0, 3s), logged(0, 3, 8s, {0, 0})}});
}

TEST_CASE("what a longer window can no longer see counts as if the shorter one had been full",
          "[core][sliding_window]") {
  Kernel kernel = windows({{2, 5s}});
  for (int i = 0; i < 12; ++i) CHECK(kernel.ask(5s * i, acquire(2)) == admitted(0, 5s));
  // Entries of 20 s on are there; 15, 10, 5 and 0 are assumed, of two units each.
  kernel.table = {25, Word{60'000'000}};
  check_moments(kernel, {{60s - 1us, peek(1), admitted(1, 55s + 1us), told(0, {1})},
                         {60s, peek(1), admitted(3, 55s), told(0, {3})},
                         {60s, acquire(3), admitted(0, 60s), logged(0, 13, 60s, {0})},
                         {60s, acquire(2), turned_away(5s, 60s)},
                         {65s, acquire(2), admitted(0, 60s)},
                         {67s, reward(5), admitted(5, 48s), {5, 5}},
                         {70s, acquire(8), turned_away(5s, 45s, 7)}});
  kernel.table = {100, Word{120'000'000}};  // one more entry was lost, of up to 25 units
  check_moments(kernel, {{70s, peek(1), admitted(100 - 22 - 25, 105s)}});
}

TEST_CASE("entries before a first change of the longest window count by that before it",
          "[core][sliding_window]") {
  Kernel kernel = windows({{2, 1s}});
  for (int i = 0; i < 10; ++i) CHECK(kernel.ask(1s * i, acquire(2)) == admitted(0, 1s));
  kernel.table = {8, Word{30'000'000}};
  check_moments(kernel, {{38s, acquire(6), admitted(0, 30s)}});
  // Entries of 9 s and 38 s are there, and 9 were lost: 8 units each second from 8 s back.
  kernel.table = {100, Word{60'000'000}};
  check_moments(kernel, {{39s, peek(1), admitted(100 - 8 - 72, 59s)}});

  // What was lost behind that change counts by the window of then: 8 units each 30 s.
  Kernel changed = windows({{2, 1s}});
  CHECK(changed.ask(0s, acquire(2)) == admitted(0, 1s));
  changed.table = {8, Word{30'000'000}};
  for (int i = 0; i < 10; ++i) CHECK(changed.ask(40s + 30s * i, acquire(8)) == admitted(0, 30s));
  changed.table = {500, Word{200'000'000}};
  check_moments(changed, {{325s, peek(1), admitted(500 - 7 * 8, 185s)}});
}

TEST_CASE("lost entries count by the largest limit, also after a lower one",
          "[core][sliding_window]") {
  Kernel kernel = windows({{8, 1s}});
  for (int i = 0; i < 10; ++i) CHECK(kernel.ask(1s * i, acquire(8)) == admitted(0, 1s));
  kernel.table[0] = 2;
  check_moments(kernel, {{10s, acquire(2), admitted(0, 1s)}, {11s, acquire(2), admitted(0, 1s)}});
  kernel.table = {100, Word{60'000'000}};  // eight entries are there, four were lost
  check_moments(kernel, {{12s, peek(1), admitted(100 - 6 * 8 - 2 * 2 - 4 * 8, 59s)}});
}

TEST_CASE("beyond as many intervals as are told apart, the rest is as full as can be",
          "[core][sliding_window]") {
  Kernel kernel = windows({{1, 1s}});
  for (int i = 0; i < 40; ++i) CHECK(kernel.ask(1s * i, acquire(1)) == admitted(0, 1s));
  kernel.table = {500, Word{60'000'000}};
  check_moments(kernel, {{40s, peek(1), turned_away(35s, 59s)},  // the 24th, of 15 s
                         {75s - 1us, peek(1), turned_away(1us, 24s + 1us)},
                         {75s, peek(1), admitted(500 - 24, 24s)}});
}

TEST_CASE(
    "when time restarts, what is of the clock's microsecond stays, and a full log takes a grant",
    "[core][sliding_window]") {
  check_moments(windows({{9, 60s}}), {{0s, acquire(2), admitted(7, 60s)},
                                      {10s, acquire(1), admitted(6, 60s)},
                                      {80s, acquire(3), admitted(6, 60s)},
                                      {10s, acquire(2), admitted(1, 60s), logged(0, 3, 10s, {1})},
                                      {10s, back(1, 2, 10s), admitted(2, 60s), {1, 2}}});
  Kernel full = windows({{Word{1} << 40, 600s}});
  for (Word i = 1; i < Rule::max_entries; ++i) {
    REQUIRE(full.ask(Span{i}, acquire(1)).status == Verdict::allowed);
  }
  const Word left = (Word{1} << 40) - Rule::max_entries;
  check_moments(full, {{100s, acquire(1), admitted(0, 600s)},
                       {30s, peek(1), admitted(left, 600s)},
                       {30s, acquire(1), admitted(0, 600s), logged(0, Rule::max_entries, 30s, {0})},
                       {30s, acquire(1), turned_away(570s + 1us, 600s)}});
}

TEST_CASE("a cost above the least of all limits is an error, and so are windows out of range",
          "[core][sliding_window]") {
  CHECK(windows({{2, 5s}}).ask(0s, acquire(3)) == Verdict::failed(Errc::cost_exceeds_capacity));
  for (const Output& table : std::vector<Output>{
           {}, {2}, {0, 1}, {2, 0}, {Rule::max_limit + 1, 1}, {2, Rule::max_span + 1}}) {
    for (const Ask& ask : {acquire(0), peek(0), back(0, 1, 0s), reward(0), reset}) {
      CHECK(Kernel(start, table).ask(0s, ask) == Verdict::failed(Errc::invalid_argument));
    }
  }
}

TEST_CASE("a log that contradicts itself is a corrupt state", "[core][sliding_window]") {
  Kernel sound = windows({{2, 5s}});
  sound.ask(0s, acquire(2));
  const Word now = sound.state[0];
  check_corrupt(sound, 1s,
                {{0, -1},
                 {capacity_word, Rule::max_entries + 1},
                 {next_word, 2},
                 {size_word, 3},
                 {sequence_word, 1},
                 {blocked_word, now + Rule::max_block + 1},
                 {places_word, 0},
                 {places_word, 9},
                 {9, Rule::max_span + 1},
                 {11, Rule::max_span + 1},
                 {12, 0},
                 {12, Rule::max_limit + 1},
                 {first_place + 1, 3},
                 {first_place, word_limit + 1}},
                {acquire(1), peek(0), back(1, 1, 0s), reward(1), block(1s)});
  check_corrupt(sound, 1s, {{first_place + 1, 2}}, {peek(1)});  // units of no entry
  sound.ask(1s, reward(1));
  CHECK(sound.ask(1s, acquire(1)).status == Verdict::allowed);
  check_corrupt(sound, 5s, {{first_place, 0}}, {peek(1)});  // fewer units than its entries
}

TEST_CASE("a block is the last part, a request lifts one that has ended, and the longest is sound",
          "[core][sliding_window]") {
  Kernel kernel = windows({{2, 5s}, {3, 60s}});
  check_moments(kernel, {{0s, acquire(1), admitted(1, 60s), logged(0, 1, 0s, {1, 2})},
                         {1s, block(9s), admitted(0, 59s), told(0, {1, 2})},
                         {1s, peek(1, 9s - 1us), turned_away(1us, 59s), told(2, {1, 2})},
                         {1s, acquire(1, 9s), admitted(0, 69s, 9s), logged(0, 2, 10s, {0, 1})},
                         {11s, acquire(1), admitted(0, 60s), logged(0, 3, 11s, {0, 0})}});
  CHECK(kernel.state[blocked_word] == 0);
  Kernel longest = windows({{2, 5s}});
  CHECK(longest.ask(0s, block(Span{Rule::max_block})).status == Verdict::allowed);
  CHECK(longest.state[first_place + 2] == 0);  // there is no first entry
  CHECK(longest.ask(0s, acquire(1)) == turned_away(Span{Rule::max_block}, Span{Rule::max_block}));
}
