// No decision allocates: counted by replacing the program's operator new. And what is lost when
// there is no memory: nothing. Threading: one thread.
#include <atomic>
#include <cstdlib>
#include <new>

#include "sluice/testing/faulty_store.hpp"
#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace {
std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> fails_at{0};  // this allocation alone

/// Runs `work`, whose allocation of this number, from 1, fails. False: it makes fewer.
template <class Work>
bool without_memory(std::size_t number, Work work) {
  fails_at = allocations + number;
  work();
  const bool failed = allocations >= fails_at;
  fails_at = 0;
  return failed;
}
}  // namespace

void* operator new(std::size_t bytes) {
  const std::size_t number = allocations.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number == fails_at.load(std::memory_order_relaxed)) throw std::bad_alloc();
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

TEST_CASE("a decision that metrics count allocates nothing", "[memory]") {
  Memory memory(1);
  Metrics metrics({.keys = 8, .sample = 1, .clock = &memory.clock});
  ObservedStore store(*memory.store, metrics);
  const TokenBucket bucket(store, "b", Quota::per_hour(3));
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 64; ++i) {
    keys.push_back(name("k", i) + std::string(2 * i, 'x'));  // each longer than all before
  }
  std::error_code error;
  static_cast<void>(bucket.try_acquire("first", error));  // the limiter's counters
  const std::size_t before = allocations.load();
  for (int round = 0; round < 5; ++round) {
    for (const std::string& key : keys) static_cast<void>(bucket.try_acquire(key, error));
  }
  CHECK(allocations.load() == before);
  CHECK(metrics.counts("b").allowed > 100);
  CHECK(metrics.counts("b").refused > 100);
  CHECK(metrics.busiest(Metrics::Busy::refused).size() == 8);
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

TEST_CASE("wherever memory ends, a renewer loses no lease", "[memory][leases]") {
  std::size_t thrown = 0;
  bool failed = true;
  for (std::size_t number = 1; failed; ++number) {
    CAPTURE(number);
    VirtualClock clock;
    const std::array stores{make_virtual_store(clock), make_virtual_store(clock)};
    LeaseRenewer renewer(clock, Renewing::by_hand);
    std::vector<Lease> leases;
    for (const auto& store : stores) {
      const ConcurrencyLimiter jobs(*store, "jobs", 3, {.ttl = 12s, .renewer = &renewer});
      for (int i = 0; i < 3; ++i) leases.push_back(jobs.try_acquire("alice"));
    }
    clock.advance(4s);
    failed = without_memory(number, [&] {
      try {
        static_cast<void>(renewer.renew_due());
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
    });
    CHECK(renewer.size() == leases.size());
    CHECK(renewer.renew_due() > clock.now());
    clock.advance(1s);  // what a store had no memory for is asked for again
    static_cast<void>(renewer.renew_due());
    for (const Lease& lease : leases) CHECK(lease.expires_at() >= clock.now() + 11s);
  }
  CHECK(thrown > 0);
}

TEST_CASE("wherever memory ends, a probe is left to others", "[memory][fallback]") {
  std::size_t errors = 0;
  bool failed = true;
  for (std::size_t number = 1; failed; ++number) {
    CAPTURE(number);
    VirtualClock clock;
    const auto whole = make_virtual_store(clock);
    testing::FaultyStore primary(*whole);
    SeededRng rng(1);
    CircuitBreaker breaker(clock, {.failures = 1, .rng = &rng});
    FallbackStore store(primary, breaker, FailurePolicy::open());
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(10));
    primary.fail_all(testing::Fault::not_executed(Errc::not_connected));
    static_cast<void>(bucket.try_acquire("alice"));
    REQUIRE(breaker.state() == CircuitBreaker::State::open);
    primary.heal();
    clock.advance(1s);
    std::error_code error;
    failed = without_memory(number, [&] { static_cast<void>(bucket.try_acquire("alice", error)); });
    if (error) {
      ++errors;
      CHECK(breaker.wait() == 1us);  // it says nothing of the primary
    }
    CHECK(store.stats().primary == primary.counts().calls);
    clock.advance(1s);
    CHECK_FALSE(is_degraded(bucket.try_acquire("alice").source));
    CHECK(breaker.state() == CircuitBreaker::State::closed);
  }
  CHECK(errors > 0);
}

TEST_CASE("the count of allocations counts", "[memory]") {
  const std::size_t before = allocations.load();
  const std::string text(100, 'x');
  CHECK(allocations.load() > before);
}

}  // namespace sluice::test
