// Slots of keys: known values, tags, and the definition bit by bit. Threading: single-threaded.
#include "backends/redis/protocol/hash_slot.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::redis_detail::hash_slot;
using sluice::redis_detail::hash_slots;

namespace {

/// The remainder of the message with 16 zero bits behind it, by long division.
unsigned divided(const std::string& message) {
  unsigned rest = 0;
  for (const char c : message + std::string(2, '\0')) {
    for (int bit = 7; bit >= 0; --bit) {
      rest = (rest << 1U) | ((static_cast<unsigned char>(c) >> static_cast<unsigned>(bit)) & 1U);
      if ((rest & 0x10000U) != 0) rest ^= 0x11021U;
    }
  }
  return rest;
}

}  // namespace

TEST_CASE("the slots of some keys are those of Redis", "[hash_slot]") {
  CHECK(hash_slot("") == 0);
  CHECK(hash_slot("123456789") == 0x31c3);
  CHECK(hash_slot("foo") == 12'182);
  CHECK(hash_slot("bar") == 5'061);
  CHECK(hash_slot("hello") == 866);
}

TEST_CASE("a key with a tag has the slot of its tag", "[hash_slot]") {
  CHECK(hash_slot("{bar}") == hash_slot("bar"));
  CHECK(hash_slot("app:{bar}:bucket") == hash_slot("bar"));
  CHECK(hash_slot("foo{bar}{zap}") == hash_slot("bar"));
  CHECK(hash_slot("foo{{bar}}zap") == hash_slot("{bar"));
  CHECK(hash_slot("}{bar}") == hash_slot("bar"));
  CHECK(hash_slot("{bar}}") == hash_slot("bar"));
}

TEST_CASE("a key without a tag has the slot of all its bytes", "[hash_slot]") {
  for (const std::string key : {"foo{}{bar}", "{}", "{", "}", "{bar", "bar}", "}bar{", "a{}"}) {
    CAPTURE(key);
    CHECK(hash_slot(key) == divided(key) % hash_slots);
  }
}

TEST_CASE("the slot of any bytes is the remainder of their polynomial", "[hash_slot]") {
  Random random("the slot of any bytes is the remainder of their polynomial");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(2'000); ++i) {
    std::string key;
    for (auto n = random.below(40); n > 0; --n) key += static_cast<char>(random.below(256));
    const std::string tagged = "x{" + key + "}y";
    const bool is_tag = !key.empty() && key.find('}') == std::string::npos;
    const bool has_tag = key.find('{') != std::string::npos;
    if (!has_tag) CHECK(hash_slot(key) == divided(key) % hash_slots);
    if (is_tag) CHECK(hash_slot(tagged) == divided(key) % hash_slots);
  }
}
