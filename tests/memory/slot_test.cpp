// The table from inside: what a thread that took its time may still do to a slot.
#include "backends/memory/table.hpp"
#include "tests/memory/fixture.hpp"

namespace sluice::memory {
namespace {

SlotId id_of(std::uint64_t number) {
  return {{number * 0x9e3779b97f4a7c15, ~number << 40}, StateKind::token_bucket};
}

}  // namespace

TEST_CASE("a state that was read before the slot changed hands cannot be exchanged", "[memory]") {
  const auto on_heap = std::make_unique<Table>(1);  // g++'s ASan frames are aligned to 32 bytes
  Table& table = *on_heap;
  std::array<Slot*, 8> slots{};
  for (std::uint64_t i = 0; i < slots.size(); ++i) {
    slots[i] = table.find_or_claim(id_of(i), 1);
    REQUIRE(slots[i] != nullptr);
  }
  CHECK(table.find_or_claim(id_of(100), 1) == nullptr);
  Slot::Snapshot slow = slots[0]->snapshot();
  Slot* const taken = table.take_over(id_of(100), {}, 5, 1).slot;
  REQUIRE(taken == slots[0]);
  // Both owners' states are absent, word for word; the generation tells them apart.
  CHECK(state::words(slow.state) == state::words(taken->snapshot().state));
  CHECK_FALSE(taken->state.exchange(slow.state, state::make(7, 7, state::generation(slow.state))));
  CHECK(state::words(taken->snapshot().state) == StateWords{0, 0});
  // Nor can the old owner prolong the new one's time.
  taken->keep_until(id_of(0), 99);
  CHECK(Slot::idle_at(taken->snapshot().identity.high) == 5);
  CHECK(table.find(id_of(0)).slot == nullptr);
  CHECK(table.find(id_of(100)).slot == taken);
}

TEST_CASE("a slot in use, locked_slot or never idle is not taken over", "[memory]") {
  const auto on_heap = std::make_unique<Table>(1);  // g++'s ASan frames are aligned to 32 bytes
  Table& table = *on_heap;
  for (std::uint64_t i = 0; i < 8; ++i) {
    REQUIRE(table.find_or_claim(id_of(i), i == 0 ? never : 10) != nullptr);
  }
  CHECK(table.take_over(id_of(100), {}, 20, 9).slot == nullptr);
  CHECK_FALSE(table.has_idle(id_of(100), 9));
  Slot& locked_slot = *table.find(id_of(1)).slot;
  Pair before = locked_slot.snapshot().state;
  REQUIRE(locked_slot.state.exchange(before, state::make(state::locked, 0, 0)));
  for (std::uint64_t i = 0; i < 6; ++i) {
    REQUIRE(table.take_over(id_of(200 + i), {1, 2}, 1'000, 10).slot != nullptr);
  }
  CHECK(table.take_over(id_of(300), {}, 20, std::int64_t{1} << 40).slot != nullptr);
  CHECK(table.find(id_of(0)).slot != nullptr);
  CHECK(table.find(id_of(1)).slot == &locked_slot);
}

TEST_CASE("a state keeps its words and generation in a cell", "[memory]") {
  const std::uint64_t generation = (std::uint64_t{1} << 22) - 1;
  const StateWords words{word_limit, word_limit - 1};
  const Pair pair = state::make(words, generation);
  CHECK(state::words(pair) == words);
  CHECK(state::generation(pair) == generation);
  CHECK_FALSE(state::is_special(pair));
  CHECK(state::generation(state::make(words, generation + 1)) == 0);
  CHECK(state::is_special(state::make(state::dead, 0, 1)));
  CHECK(state::is_special(state::make(state::locked, 0, 1)));
}

}  // namespace sluice::memory
