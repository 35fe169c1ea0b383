// No decision allocates: counted by replacing the program's operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace {
std::atomic<std::size_t> allocations{0};
}

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sluice::test {

TEST_CASE("a decision of any kind allocates nothing", "[memory]") {
  Memory memory(1);
  const TokenBucket bucket(*memory.store, "b", Quota::per_hour(3));
  const BoundTokenBucket bound = bucket.at("bound");
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 64; ++i) keys.push_back(name("k", i));
  std::vector<Step> steps;
  for (const std::string& key : keys) steps.push_back(bucket.acquire_step(key));
  const std::vector<Plan> plans(steps.begin(), steps.end());
  std::vector<Decision> results(plans.size());
  std::vector<std::error_code> errors(plans.size());

  const std::size_t before = allocations.load();
  std::error_code error;
  bool refused = false;
  for (std::size_t round = 0; round < 4; ++round) {
    for (int i = 0; i < 4; ++i) refused = !bound.try_acquire(error).allowed || refused;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      // Others come first each time, to what is idle by now.
      const std::string& key = keys[(i + round * 13) % keys.size()];
      static_cast<void>(bucket.try_acquire(key, error));
      static_cast<void>(bucket.peek(key, 1, error));
    }
    static_cast<void>(
        decide(*memory.store, Plan(std::span<const Step>(steps).first(Plan::max_steps)), error));
    decide_batch(*memory.store, plans, results, errors);
    memory.clock.advance(3h);
  }
  const std::size_t after = allocations.load();
  CHECK(after == before);
  CHECK(refused);
  CHECK(memory.stats().overflowed > 0);  // each way was gone
  CHECK(memory.stats().evicted_idle > 0);
}

TEST_CASE("states in blocks, plans over them and request ids allocate nothing", "[memory]") {
  VirtualClock clock;
  SeededRng rng(1);
  const auto store =
      make_memory_store({.max_keys = 16, .max_bytes = 64'000, .clock = &clock, .rng = &rng});
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 16; ++i) keys.push_back(name("k", i));
  std::array<Word, 4> told{};
  std::array<Decision, 2> each;
  std::array<std::size_t, 3> ends{};  // refused, allowed, full

  const std::size_t before = allocations.load();
  std::error_code error;
  for (std::size_t i = 0; i < 2'000; ++i) {
    const std::string& key = keys[i * 7 % keys.size()];
    const Step push = asks(log_push, {key, "l"}, static_cast<Word>(i % 90), 200);
    const Step add = asks(counter_add, {key, "c"});
    static_cast<void>(decide(*store, push, error, each, told));
    ++ends[error ? 2 : each[0].allowed ? 1 : 0];
    static_cast<void>(decide(*store, add, error));
    static_cast<void>(decide(*store, {push, add}, error, each, told));
    for (int again = 0; again < 2; ++again)
      static_cast<void>(decide(*store, Plan(push).idempotent({i, 1}), error));
    if (i % 50 == 0) clock.advance(2min);
  }
  const std::size_t after = allocations.load();
  CHECK(after == before);
  for (const std::size_t end : ends) CHECK(end > 0);
  CHECK(store->stats().evicted_idle > 0);
  CHECK(store->stats().block_bytes > 0);
}

TEST_CASE("the count of allocations counts", "[memory]") {
  const std::size_t before = allocations.load();
  const std::string text(100, 'x');
  CHECK(allocations.load() > before);
}

}  // namespace sluice::test
