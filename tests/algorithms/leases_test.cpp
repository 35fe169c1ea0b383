// Leases as their holders see them, on every store in virtual time.
// Threading: single-threaded but where threads are the subject.
#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/far_client.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::FarClient;
using sluice::test::for_each_store;
using sluice::test::Random;
using sluice::test::Stores;

TEST_CASE("a lease gives its place back however its scope is left", "[leases][C-033]") {
  for_each_store([](Store& store, VirtualClock&) {
    const ConcurrencyLimiter jobs(store, "jobs", 1);
    {
      const Lease lease = jobs.try_acquire("alice");
      CHECK(lease);
      CHECK(lease.decision().remaining == 0);
      CHECK_FALSE(jobs.try_acquire("alice").decision().allowed);
      CHECK(jobs.try_acquire("bob").decision().allowed);
    }
    const auto fail = [&] {
      const Lease lease = jobs.try_acquire("alice");
      throw std::runtime_error("the work failed");
    };
    CHECK_THROWS_AS(fail(), std::runtime_error);
    Lease lease = jobs.try_acquire("alice");
    Lease moved = std::move(lease);
    CHECK_FALSE(lease);  // NOLINT: what it is after a move is the claim
    lease = std::move(moved);
    CHECK(lease);
    CHECK(lease.release());
    CHECK_FALSE(lease);
    CHECK(jobs.peek("alice").remaining == 1);
  });
}

TEST_CASE("the id of a lease that is not live is a typed error, and gives nothing back",
          "[leases][C-033]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const ConcurrencyLimiter jobs(store, "jobs", 2, {.ttl = 10s});
    const ConcurrencyLimiter others(store, "others", 2, {.ttl = 10s});
    Lease held = jobs.try_acquire("alice");
    Lease bobs = jobs.try_acquire("bob");
    const LeaseId id = held.id();
    const auto error_of = [&](const ConcurrencyLimiter& limiter, const Key& key,
                              const LeaseId& given) {
      std::error_code error;
      CHECK_FALSE(limiter.release(key, given, error));
      CHECK_FALSE(limiter.release(key, given));  // does not throw
      CHECK(error == Failure::not_executed);
      return error;
    };
    CHECK(error_of(jobs, "alice", bobs.id()) == Errc::lease_not_live);
    CHECK(error_of(jobs, "bob", id) == Errc::lease_not_live);
    CHECK(error_of(others, "alice", id) == Errc::lease_not_live);
    CHECK(error_of(jobs, "nobody", id) == Errc::lease_not_live);
    CHECK(error_of(jobs, "alice", LeaseId{}) == Errc::lease_not_live);
    jobs.block("alice", 5s);
    CHECK(error_of(jobs, "alice", LeaseId{~0ULL, ~0ULL}) == Errc::lease_not_live);
    CHECK_FALSE(jobs.peek("alice"));
    clock.advance(5s);
    CHECK(jobs.peek("alice").remaining == 1);
    CHECK(jobs.peek("bob").remaining == 1);

    std::error_code error = Errc::unknown;
    CHECK(jobs.release("alice", id, error));
    CHECK_FALSE(error);
    CHECK(error_of(jobs, "alice", id) == Errc::lease_not_live);
    CHECK_FALSE(held.release(error));
    CHECK_FALSE(error);  // a Lease that was lost is no failure
    clock.advance(5s);
    CHECK(error_of(jobs, "bob", bobs.id()) == Errc::lease_not_live);
    CHECK(jobs.peek("bob").remaining == 2);
    CHECK_THROWS_AS(jobs.release(Key{"", "jobs"}, id), std::system_error);
  });
}

TEST_CASE("ids use all of their 128 bits", "[leases][C-030]") {
  for_each_store([](Store& store, VirtualClock&) {
    const ConcurrencyLimiter jobs(store, "jobs", 200);
    std::vector<Lease> leases;
    leases.push_back(jobs.try_acquire("alice", 1, LeaseId{}));
    for (unsigned bit = 0; bit < 128; ++bit) {
      const std::uint64_t one = std::uint64_t{1} << bit % 64;
      leases.push_back(jobs.try_acquire("alice", 1, bit < 64 ? LeaseId{one, 0} : LeaseId{0, one}));
    }
    CHECK(jobs.peek("alice").remaining == 200 - 129);
  });
}

TEST_CASE("a holder that stood still is told, and its fence is refused downstream",
          "[leases][C-034]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 10s});
    Word highest = 0;  // what the thing that is protected has seen
    const auto write = [&](const Lease& lease) {
      if (lease.fence() < highest) return false;
      highest = lease.fence();
      return true;
    };
    LeaseRenewer renewer(clock, Renewing::by_hand);
    Lease first = jobs.try_acquire("alice");
    std::optional<LeaseId> told;
    first.keep_alive(renewer, [&](const LeaseId& id) { told = id; });
    CHECK(write(first));
    clock.advance(11s);  // the whole process was stopped: nobody renewed
    Lease second = jobs.try_acquire("alice");
    REQUIRE(second);
    CHECK(second.fence() > first.fence());
    CHECK(write(second));
    CHECK(first.lost());
    CHECK_FALSE(write(first));
    renewer.renew_due();
    CHECK(told == first.id());
    CHECK(renewer.size() == 0);
    CHECK_FALSE(first.release());
    CHECK_FALSE(jobs.try_acquire("alice").decision().allowed);
    CHECK(second.renew());
  });
}

TEST_CASE("a renewer keeps leases alive at a third of their TTL", "[leases][C-034]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    LeaseRenewer renewer(clock, Renewing::by_hand);
    int lost = 0;
    const ConcurrencyLimiter jobs(
        store, "jobs", 2,
        {.ttl = 9s, .renewer = &renewer, .on_lost = [&](const LeaseId&) { ++lost; }});
    CHECK(renewer.renew_due() == Time::max());
    Lease first = jobs.try_acquire("alice");
    Lease second = jobs.try_acquire("alice");
    for (int i = 0; i < 20; ++i) {
      const Time due = renewer.renew_due();
      CHECK(due == clock.now() + 3s);
      clock.set(due);
    }
    CHECK_FALSE(jobs.try_acquire("alice").decision().allowed);
    CHECK_FALSE(first.lost());
    CHECK(second.release());
    renewer.renew_due();
    CHECK(renewer.size() == 1);
    jobs.reset("alice");
    clock.advance(3s);
    CHECK(renewer.renew_due() == Time::max());
    CHECK(lost == 1);
    CHECK(first.lost());
  });
}

TEST_CASE("a renewer renews on a thread of its own", "[leases]") {
  VirtualClock clock;
  const auto store = make_memory_store({.clock = &clock});
  const VirtualClock::AutoAdvance moving(clock);
  LeaseRenewer renewer(clock);
  std::atomic<int> lost{0};
  const ConcurrencyLimiter jobs(
      *store, "jobs", 1,
      {.ttl = 30s, .renewer = &renewer, .on_lost = [&](const LeaseId&) { ++lost; }});
  const Lease lease = jobs.try_acquire("alice");
  const Time granted = clock.now();
  const auto wait_until = [&](Time when) {
    ManualResetEvent nobody;
    clock.wait_until(when, nobody);
  };
  wait_until(granted + 10s + 1us);
  CHECK(lease.expires_at() == granted + 40s);
  CHECK_FALSE(lease.lost());
  jobs.reset("alice");
  wait_until(granted + 20s + 1us);
  CHECK(lease.lost());
  CHECK(lost == 1);
  renewer.stop();
}

TEST_CASE("a lease is granted in one plan with other limits, and adopted from it", "[leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random("a lease is granted in one plan with other limits, and adopted from it");
    const TokenBucket bucket(store, "bucket", Quota::per_hour(1));
    const ConcurrencyLimiter everyone(store, "everyone", 2, {.ttl = 10s});
    const Key key{"alice", "everyone"};
    std::array<Decision, 2> each;
    std::array<Word, ConcurrencyLimiter::output> told{};
    const auto ask = [&](const LeaseId& id) {
      const std::array steps{bucket.acquire_step("alice"), everyone.acquire_step(key, id)};
      std::error_code error;
      const Decision decision = decide(store, steps, error, each, told);
      CHECK_FALSE(error);
      return decision;
    };
    const LeaseId id = LeaseId::draw(random);
    REQUIRE(ask(id));
    Lease lease = everyone.adopt(key, id, 1, each[1], told, clock.now());
    CHECK(lease);
    CHECK(lease.expires_at() == clock.now() + 10s);
    const Decision refused = ask(LeaseId::draw(random));
    CHECK_FALSE(refused);
    CHECK(refused.step == 0);
    CHECK(everyone.peek(key).remaining == 1);
    CHECK(lease.renew());
    CHECK(lease.release());
    CHECK(everyone.peek(key).remaining == 2);
    CHECK_THROWS_AS(everyone.adopt(key, id, 1, each[1], std::span(told).first(2), clock.now()),
                    std::invalid_argument);
  });
}

TEST_CASE("a key that cannot be is an error, and options out of range do not construct",
          "[leases]") {
  for_each_store([](Store& store, VirtualClock&) {
    const ConcurrencyLimiter jobs(store, "jobs", 3);
    std::error_code error;
    CHECK_FALSE(jobs.try_acquire("", error).decision().allowed);
    CHECK(error == Errc::invalid_key);
    const SlotLock lock(store, "jobs", 1h);
    REQUIRE(lock.try_acquire("bob"));
    CHECK_FALSE(jobs.try_acquire("bob", error).decision().allowed);
    CHECK(error == Errc::wrong_kind);
    CHECK(jobs.peek("alice").remaining == 3);

    const auto make = [&](Word limit, const LeaseOptions& options) {
      return ConcurrencyLimiter(store, "jobs", limit, options);
    };
    CHECK_THROWS_AS(make(-1, {}), std::invalid_argument);
    CHECK_THROWS_AS(make(word_limit + 1, {}), std::invalid_argument);
    CHECK_THROWS_AS(make(1, {.ttl = 999us}), std::invalid_argument);
    CHECK_THROWS_AS(make(1, {.ttl = Span{LeasesRule::max_ttl + 1}}), std::invalid_argument);
    CHECK_THROWS_AS(make(1, {.release_within = 0us}), std::invalid_argument);
    CHECK_NOTHROW(make(word_limit, {.ttl = Span{LeasesRule::max_ttl}}));
    CHECK_THROWS_AS(ConcurrencyLimiter(store, "", 1), std::invalid_argument);
  });
}

TEST_CASE("threads never hold more than the limit at once", "[leases]") {
  const auto store = make_memory_store();
  const ConcurrencyLimiter jobs(*store, "jobs", 3);
  std::atomic<int> inside{0};
  std::atomic<int> grants{0};
  std::atomic<int> refusals{0};
  std::atomic<bool> broken{false};
  const int rounds = static_cast<int>(sluice::test::scaled(20'000, 2'000));
  const auto work = [&] {
    for (int i = 0; i < rounds; ++i) {
      const Lease one = jobs.try_acquire("alice");
      const Lease two = jobs.try_acquire("alice");
      const int mine = (one ? 1 : 0) + (two ? 1 : 0);
      if ((inside += mine) > 3) broken = true;
      inside -= mine;
      grants += mine;
      refusals += 2 - mine;
      if (i % 64 == 0) std::this_thread::yield();
    }
  };
  {
    const Lease held = jobs.try_acquire("alice", 1);
    inside = 1;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  }
  CHECK_FALSE(broken);
  CHECK(grants > 0);
  CHECK(grants + refusals == 6 * rounds);
  CHECK(jobs.peek("alice").remaining == 3);
}

TEST_CASE("a block finds the room of leases that have all lapsed, however heavy", "[leases]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const ConcurrencyLimiter heavy(store, "jobs", word_limit, {.ttl = 10s});
    const ConcurrencyLimiter jobs(store, "jobs", 3, {.ttl = 10s});
    const Lease lapsed = heavy.try_acquire("k", word_limit);
    REQUIRE(lapsed);
    clock.advance(10s);
    CHECK(jobs.block("k", 5s).allowed);
    CHECK_FALSE(jobs.try_acquire("k").decision().allowed);
  });
}
