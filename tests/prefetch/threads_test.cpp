// Threads that spend one bound key, each from a credit of its own. Threading: as each test says.
#include <atomic>
#include <thread>
#include <vector>

#include "sluice/memory_store.hpp"
#include "src/stores/prefetch_credit.hpp"
#include "tests/prefetch/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

/// Calls `work(i)` on each of so many threads.
template <class Work>
void on_threads(int count, Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads with credit spend no more than was granted, and all of it",
          "[prefetch][threads]") {
  const auto memory = make_memory_store();
  PrefetchStore store(*memory, {.hold = 10s, .most = 1000});
  const TokenBucket bucket(store, "api", Quota::per_hour(1).burst(200'000));
  const BoundTokenBucket bound = bucket.at("a");
  std::atomic<Word> granted{0};
  on_threads(4, [&](int i) {
    Word own = 0;
    std::error_code error;
    for (int tries = 0; tries < 100'000; ++tries) {
      const bool by_name = i == 3 && tries % 16 == 0;
      const Decision decision = by_name ? bucket.try_acquire("a", error) : bound.try_acquire(error);
      own += decision.allowed ? 1 : 0;
    }
    granted += own;
  });
  CHECK(granted == 200'000);
  const PrefetchStats stats = store.stats();
  CHECK(stats.taken - stats.returned - stats.lapsed == 200'000);
}

TEST_CASE("a thread's credit ends with hold, a block, and a clock that is set back",
          "[prefetch][threads]") {
  PrefetchRig rig({.hold = 10s, .most = 1000});
  const TokenBucket bucket(rig.store, "api", Quota::per_second(100).burst(10'000));
  const BoundTokenBucket bound = bucket.at("a");
  const auto fill = [&] {
    for (int i = 0; i < 300; ++i) CHECK(bound.try_acquire().allowed);
    static_cast<void>(rig.asked());
    CHECK(bound.try_acquire().source == Source::prefetched);
    CHECK(rig.asked() == 0);
  };
  const auto check_empty = [&] {
    rig.inner.fail_all(Fault::not_executed(Errc::not_connected));
    std::error_code error;
    static_cast<void>(bound.try_acquire(error));
    CHECK(error == Errc::not_connected);
    rig.inner.heal();
  };
  fill();
  CHECK(bound.try_acquire(1, RequestId{1, 2}).source == Source::virtual_store);
  CHECK_THROWS_AS(bound.try_acquire(-1), std::system_error);
  rig.clock.advance(10s);
  check_empty();
  fill();
  rig.clock.advance(-1h);
  check_empty();
  rig.clock.advance(2h);
  fill();
  bucket.block("a", 5s);
  CHECK_FALSE(bound.try_acquire().allowed);
}

TEST_CASE("a credit is spent only while its time cannot be over", "[prefetch][threads]") {
  prefetch::Credit credit;
  const Time now = VirtualClock::default_start;
  const Time until = now + 1s;
  CHECK(credit.spend(1, now) == -1);
  static_cast<void>(credit.give({10, until}, now));
  CHECK(credit.spend(3, now) == 7);
  CHECK(credit.spend(8, now) == -1);
  CHECK(credit.spend(1, until - Clock::coarse_lag - 2ms) == 6);
  CHECK(credit.spend(1, until - Clock::coarse_lag) == -1);          // it may be `until` already
  CHECK(credit.spend(1, now - Clock::coarse_lag - Span{1}) == -1);  // set back
  CHECK(credit.spend(6, now) == 0);
}

TEST_CASE("another limit of the same key has no share in the credit", "[prefetch][threads]") {
  PrefetchRig rig({.hold = 10s, .most = 1000});
  const TokenBucket large(rig.store, "api", Quota::per_second(100).burst(1000));
  const TokenBucket small(rig.store, "api", Quota::per_second(100).burst(3));
  const BoundTokenBucket bound = large.at("a");
  for (int i = 0; i < 300; ++i) CHECK(bound.try_acquire().allowed);
  const Decision decision = small.at("a").try_acquire();
  CHECK_FALSE(decision.allowed);
  CHECK(decision.source == Source::virtual_store);
}

TEST_CASE("threads ask by name, wait, refund and end a store", "[prefetch][threads]") {
  Random random("threads ask by name, wait, refund and end a store");
  CAPTURE(random.repeat());
  const auto memory = make_memory_store();
  std::atomic<int> wrong{0};
  std::uint64_t trips = 0;
  for (std::size_t round = 0; round < scaled(20, 2); ++round) {
    PrefetchStore store(*memory, {.hold = 5ms, .most = 50, .max_keys = 2});
    const TokenBucket bucket(store, "api", Quota::per_second(100'000).burst(100));
    const std::uint64_t seed = random.next();
    std::atomic<Word> spent{0};    // of what was taken
    std::atomic<Word> refunds{0};  // at the most
    on_threads(4, [&](int thread) {
      SeededRng draw(seed + static_cast<std::uint64_t>(thread));
      std::error_code error;
      const auto note = [&](const Decision& decision, Word units) {
        if (error && error != Errc::unknown) ++wrong;
        if (!error && decision.allowed && decision.source == Source::prefetched) spent += units;
      };
      for (int i = 0; i < 500; ++i) {
        const Key key(static_cast<int>(draw.below(4)));
        switch (draw.below(8)) {
          case 0: {
            Reservation grant = bucket.reserve(key, 2, 1ms, error);
            note(grant, 2);
            bucket.cancel(key, grant, error);
            refunds += error ? 0 : 2;
            break;
          }
          case 1:
            bucket.reset(key, error);
            break;
          default:
            note(bucket.try_acquire(key, error), 1);
        }
      }
    });
    const PrefetchStats stats = store.stats();
    const auto kept = static_cast<Word>(stats.taken - stats.returned - stats.lapsed);
    CHECK(spent - refunds <= kept);
    trips += stats.trips;
  }
  CHECK(wrong == 0);
  CHECK(trips > 0);
}

}  // namespace sluice::test
