// Wrong use is answered with an error that says what was wrong, and changes nothing.
#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace sluice::test {
namespace {

std::string complaint(const MemoryOptions& options) {
  try {
    const auto store = make_memory_store(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("options out of range are named with the range", "[memory]") {
  CHECK(complaint({.max_keys = 0}) == "MemoryOptions::max_keys must be 1 to 2^32, got 0");
  CHECK(complaint({.max_keys = (std::size_t{1} << 32) + 1}) ==
        "MemoryOptions::max_keys must be 1 to 2^32, got 4294967297");
  const std::string small = complaint({.max_keys = 1000, .max_bytes = 1000});
  CHECK(small.starts_with("MemoryOptions::max_bytes must be "));
  CHECK(small.ends_with(" or more for 1000 keys, got 1000"));
  CHECK(complaint({.max_keys = 1}) == "none");
}

TEST_CASE("a key with the state of another kind is refused as wrong", "[memory]") {
  Memory memory(64);
  const TokenBucket bucket(*memory.store, "b", Quota::per_second(1).burst(4));
  REQUIRE(bucket.try_acquire("k").allowed);
  Operation other = token_bucket_acquire;
  other.kind = static_cast<StateKind>(200);
  Step step = bucket.acquire_step("k");
  step.operation = &other;
  CHECK(error_of(*memory.store, step) == Errc::wrong_kind);
  CHECK(error_of(*memory.store, {step, bucket.acquire_step("fresh")}) == Errc::wrong_kind);
  step.args[4] = 5;  // what can never be admitted is said first
  CHECK(error_of(*memory.store, step) == Errc::cost_exceeds_capacity);
  CHECK(bucket.peek("k").remaining == 3);
  CHECK(bucket.peek("fresh").remaining == 4);
}

TEST_CASE("a key whose state is absent may take a state of another kind", "[memory]") {
  Memory memory(64);
  Store& store = *memory.store;
  const TokenBucket bucket(store, "k", Quota::per_second(1).burst(4));
  const Key key = bucket.acquire_step("tag").key;
  // A refused plan leaves a slot without a state behind.
  REQUIRE_FALSE(decide(store, {asks(log_pop, key), bucket.acquire_step("other")}).allowed);
  CHECK(bucket.try_acquire("tag", 4).allowed);
  CHECK(error_of(store, asks(log_push, key)) == Errc::wrong_kind);
  CHECK(error_of(store, {asks(log_push, key), bucket.acquire_step("other")}) == Errc::wrong_kind);
  memory.clock.advance(5s);  // what was spent has drained
  CHECK(decide(store, {asks(log_push, key), bucket.acquire_step("other")}).allowed);
  CHECK(memory.stats().block_bytes != 0);
  CHECK(error_of(store, asks(counter_add, key)) == Errc::wrong_kind);
  CHECK(error_of(store, bucket.acquire_step("tag")) == Errc::wrong_kind);
  memory.clock.advance(2min);
  CHECK(decide(store, asks(counter_add, key)).remaining == 4);
  CHECK(decide(store, asks(counter_add, key)).part == 2);  // what it has counted
  CHECK(memory.stats().block_bytes == 0);
  CHECK(error_of(store, asks(log_push, key)) == Errc::wrong_kind);
  memory.clock.advance(2min);
  CHECK(decide(store, asks(log_push, key)).remaining == 4);
  memory.clock.advance(2min);
  CHECK(bucket.try_acquire("tag").remaining == 3);
}

}  // namespace sluice::test
