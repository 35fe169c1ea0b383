// The blocks that large states lie in, from inside.
#include "backends/memory/blocks.hpp"

#include <algorithm>
#include <vector>

#include "tests/memory/fixture.hpp"

namespace sluice::memory {
namespace {

constexpr std::size_t largest_bytes = max_state_words * sizeof(Word);
/// What a pool of so many bytes of blocks takes, its map included.
constexpr std::size_t with_map(std::size_t bytes) {
  return bytes / Blocks::unit_bytes * (Blocks::unit_bytes + 1);
}

struct Block {
  BlockId id;
  Word* first;
  std::size_t words;
};

Block taken(Blocks& blocks, std::size_t words) {
  const BlockId id = blocks.take(words);
  return {id, id != 0 ? blocks.words(id) : nullptr, Blocks::room(id)};
}

}  // namespace

TEST_CASE("a block has room for what was asked and less than twice that", "[memory]") {
  Blocks blocks(with_map(4 * largest_bytes));
  for (const std::size_t words : {std::size_t{1}, std::size_t{4}, std::size_t{5}, std::size_t{8},
                                  std::size_t{9}, std::size_t{1000}, max_state_words}) {
    const Block block = taken(blocks, words);
    REQUIRE(block.id != 0);
    CHECK(block.words >= words);
    CHECK(block.words < std::max<std::size_t>(2 * words, 5));
    CHECK(block.id <= static_cast<std::uint64_t>(word_limit));
    CHECK(blocks.bytes_used() == block.words * sizeof(Word));
    blocks.refund(block.id);
    CHECK(blocks.bytes_used() == 0);
  }
  CHECK(blocks.take(max_state_words + 1) == 0);
  CHECK(blocks.take(0) == 0);
  blocks.refund(0);
}

TEST_CASE("blocks in use never overlap, and all memory is one again when they are back",
          "[memory]") {
  sluice::test::Random random(
      "blocks in use never overlap, and all memory is one again when they are back");
  CAPTURE(random.repeat());
  constexpr std::size_t pool = 2 * largest_bytes + 5 * Blocks::unit_bytes;
  Blocks blocks(with_map(pool));
  REQUIRE(blocks.bytes() == pool);
  std::vector<Block> locked_slot;
  std::size_t refused = 0;
  for (std::size_t run = 0; run < sluice::test::scaled(40'000, 4'000) || refused == 0; ++run) {
    if (!locked_slot.empty() && random.below(100) < 40) {
      std::swap(locked_slot[random.below(locked_slot.size())], locked_slot.back());
      const Block& old = locked_slot.back();
      // Nobody else has written into it.
      REQUIRE(std::all_of(old.first, old.first + old.words,
                          [&](Word word) { return word == static_cast<Word>(old.id); }));
      blocks.refund(old.id);
      locked_slot.pop_back();
      continue;
    }
    const Block block = taken(blocks, 1 + random.below(std::size_t{1} << random.below(16)));
    if (block.id == 0) {
      ++refused;
      while (locked_slot.size() > 20) {
        blocks.refund(locked_slot.back().id);
        locked_slot.pop_back();
      }
      continue;
    }
    std::fill_n(block.first, block.words, static_cast<Word>(block.id));
    locked_slot.push_back(block);
  }
  CHECK(refused > 0);
  for (const Block& block : locked_slot) blocks.refund(block.id);
  CHECK(blocks.bytes_used() == 0);
  const BlockId first = blocks.take(max_state_words);
  const BlockId second = blocks.take(max_state_words);
  CHECK((first != 0 && second != 0 && first != second));
  CHECK(blocks.take(max_state_words) == 0);
  CHECK(blocks.take(5 * Blocks::unit_words) == 0);  // five units are one of four and one
  CHECK(blocks.take(4 * Blocks::unit_words) != 0);
  CHECK(blocks.take(1) != 0);
  CHECK(blocks.take(1) == 0);
}

TEST_CASE("a pool of nothing has no blocks", "[memory]") {
  Blocks blocks(0);
  CHECK(blocks.bytes() == 0);
  CHECK(blocks.take(1) == 0);
}

}  // namespace sluice::memory
