// Leases in the hands of holders whose store fails; when they are renewed, and who hears of a lost
// one, is said by a model (lease_renewal_test.cpp). Threading: as each test says, mostly one
// thread.
#include "sluice/limiters/lease.hpp"

#include <pthread.h>

#include <array>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/core/async_store.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// A virtual store that fails, or must not be waited for, when it is told to.
class FickleStore final : public Store {
 public:
  void execute(const Plan& plan, Completion done) noexcept override {
    note(plan);
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    if (failure) return done.fail(failure);
    inner_->execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return time; }
  [[nodiscard]] bool may_block() const noexcept override { return blocks; }

  VirtualClock time;
  std::error_code failure;
  std::function<void()> meanwhile;  // what happens during the next call
  bool blocks = true;
  int calls = 0;
  std::vector<Span> timeouts;  // of all calls

 private:
  void note(const Plan& plan) noexcept {
    const std::lock_guard lock(noting_);  // a renewer's thread may ask at the same time
    ++calls;
    timeouts.push_back(plan.timeout());
  }

  std::mutex noting_;
  std::unique_ptr<Store> inner_ = make_virtual_store(time);
};

class BrokenRng final : public Rng {
 public:
  std::uint64_t next() override { throw std::system_error(ENOSYS, std::generic_category()); }
};

}  // namespace

TEST_CASE("the end of a lease whose store fails throws nothing, and waits within a bound",
          "[core][leases][C-033]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 10s, .release_within = 70ms});
  {
    const Lease lease = jobs.try_acquire("alice");
    store.failure = Errc::not_connected;
  }
  CHECK(store.timeouts == std::vector<Span>{0s, 70ms, 10s});  // the last one is not waited for
  store.failure = {};
  CHECK_FALSE(jobs.try_acquire("alice").decision().allowed);
  store.time.advance(10s);
  CHECK(jobs.try_acquire("alice").decision().allowed);
}

TEST_CASE("the end of a lease on a thread that must not block gives it back all the same",
          "[core][leases]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1);
  Lease lease = jobs.try_acquire("alice");
  store.blocks = false;
  lease = Lease();
  store.blocks = true;
  CHECK(jobs.try_acquire("alice").decision().allowed);
}

TEST_CASE("a return that failed may be asked for again", "[core][leases]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1);
  Lease lease = jobs.try_acquire("alice");
  store.failure = Errc::not_connected;
  std::error_code error;
  CHECK_FALSE(lease.release(error));
  CHECK(error == Errc::not_connected);
  CHECK(lease);
  CHECK_THROWS_AS(lease.release(), std::system_error);
  store.failure = {};
  CHECK(lease.release(error));
  CHECK_FALSE(error);
  CHECK_FALSE(lease);
  const int calls = store.calls;
  CHECK_FALSE(lease.release());
  CHECK_FALSE(lease.renew());
  CHECK(store.calls == calls);
}

TEST_CASE("who has lost a lease tells of that alone, however it ends", "[core][leases]") {
  struct Noted final : Observer {
    void lease_changed(const LeaseEvent& event) override { changes.push_back(event.change); }
    std::vector<LeaseEvent::Change> changes;
  } noted;
  FickleStore store;
  ObservedStore observed(store, noted);
  const ConcurrencyLimiter jobs(observed, "jobs", 1, {.ttl = 60s});
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    noted.changes.clear();
    {
      Lease lease = jobs.try_acquire("a");
      jobs.reset("a");
      CHECK_FALSE(lease.renew());
      std::error_code error;
      store.failure = Errc::not_connected;
      CHECK_FALSE(lease.release(error));
      store.failure = {};
      CHECK(error);
      CHECK(lease.lost());
      if (way == 0) lease.release();
      if (way == 1) lease.release_later();
    }
    CHECK(noted.changes == std::vector{LeaseEvent::Change::granted, LeaseEvent::Change::lost});
  }
}

TEST_CASE("a lease that could not be renewed is held until its TTL is over",
          "[core][leases][C-034]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 10s});
  Lease lease = jobs.try_acquire("alice");
  store.failure = Errc::timed_out;
  std::error_code error;
  store.time.advance(9s);
  CHECK_FALSE(lease.renew(error));
  CHECK(error == Errc::timed_out);
  CHECK_THROWS_AS(lease.renew(), std::system_error);
  CHECK_FALSE(lease.lost());
  store.time.advance(1s - 1us);
  CHECK_FALSE(lease.lost());
  store.time.advance(1us);
  CHECK(lease.lost());
  store.failure = {};
  CHECK_FALSE(lease.renew());
  CHECK(lease.lost());
}

TEST_CASE("a lease that is kept alive starts its renewer, unless that is driven by hand",
          "[core][leases][C-034]") {
  FickleStore store;
  const VirtualClock::AutoAdvance moving(store.time);
  const ConcurrencyLimiter jobs(store, "jobs", 3, {.ttl = 12s});
  LeaseRenewer renewer(store.clock());
  LeaseRenewer by_hand(store.clock(), Renewing::by_hand);
  const auto pass = [&](Span span) {
    ManualResetEvent waker;
    store.time.wait_until(store.time.now() + span, waker);
  };
  Lease lease = jobs.try_acquire("alice");
  lease.keep_alive(renewer);
  pass(1h);
  CHECK_FALSE(lease.lost());
  Lease left = jobs.try_acquire("alice");
  left.keep_alive(by_hand);
  pass(12s);
  CHECK(left.lost());
  renewer.stop();
  Lease next = jobs.try_acquire("alice");
  next.keep_alive(renewer);  // again
  pass(1h);
  CHECK_FALSE(next.lost());
  renewer.stop();
}

TEST_CASE("many threads start and stop one renewer", "[core][leases]") {
  const auto store = make_memory_store();
  LeaseRenewer renewer(store->clock());
  const ConcurrencyLimiter jobs(*store, "jobs", 100, {.ttl = 60s, .renewer = &renewer});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const Lease lease = jobs.try_acquire("alice");
        if (i == 0) renewer.stop();
        if (i == 1) renewer.start();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(renewer.size() == 0);
}

TEST_CASE("a thread that is cancelled stops a renewer, and ends behind that", "[core][leases]") {
  struct Owner {
    FickleStore store;
    LeaseRenewer renewer{store.clock()};
    bool went_on = false;
  };
  const auto run = [](void* self) -> void* {
    auto& mine = *static_cast<Owner*>(self);
    ::pthread_cancel(::pthread_self());
    mine.renewer.stop();
    ::pthread_testcancel();
    mine.went_on = true;
    return nullptr;
  };
  for (int round = 0; round < 20; ++round) {
    Owner owner;
    owner.renewer.start();
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, run, &owner) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    CHECK_FALSE(owner.went_on);
  }
}

TEST_CASE("a handler of a lost lease that throws ends nothing else", "[core][leases]") {
  FickleStore store;
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  int told = 0;
  const auto fail = [&](const LeaseId&) {
    ++told;
    throw std::runtime_error("the program's own");
  };
  const ConcurrencyLimiter jobs(store, "jobs", 3,
                                {.ttl = 12s, .renewer = &renewer, .on_lost = fail});
  const std::array leases{jobs.try_acquire("alice"), jobs.try_acquire("bob")};
  store.failure = Errc::not_connected;
  store.time.advance(12s);
  renewer.renew_due();
  CHECK(told == 2);
  store.failure = {};
  const Lease lease = jobs.try_acquire("carol");
  store.time.advance(4s);
  CHECK(renewer.renew_due() == store.time.now() + 4s);
  CHECK(lease.expires_at() == store.time.now() + 12s);
}

TEST_CASE("a lease whose return failed as it ended is renewed no more", "[core][leases][C-033]") {
  FickleStore store;
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 12s, .renewer = &renewer});
  {
    const Lease lease = jobs.try_acquire("alice");
    store.failure = Errc::unknown;
  }
  store.failure = {};
  CHECK(renewer.size() == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(jobs.peek("alice"));
    store.time.advance(4s);
    CHECK(renewer.renew_due() == Time::max());
  }
  CHECK(jobs.try_acquire("alice").decision().allowed);
}

TEST_CASE("a lease that is due while its return fails goes on being renewed",
          "[core][leases][C-034]") {
  FickleStore store;
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 12s, .renewer = &renewer});
  Lease lease = jobs.try_acquire("alice");
  store.time.advance(4s);
  store.failure = Errc::timed_out;
  store.meanwhile = [&] { renewer.renew_due(); };
  std::error_code error;
  CHECK_FALSE(lease.release(error));
  CHECK(error == Errc::timed_out);
  CHECK(lease);
  store.failure = {};
  for (int i = 0; i < 10; ++i) {
    store.time.advance(4s);
    CHECK(renewer.renew_due() == store.time.now() + 4s);
  }
  CHECK_FALSE(lease.lost());
  CHECK(lease.release());
}

TEST_CASE("a lease that is being given back is held until its TTL is over, and lost from then on",
          "[core][leases][C-034]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.ttl = 12s});
  Lease lease = jobs.try_acquire("alice");
  store.time.advance(12s - 1us);
  bool asked = false;
  store.meanwhile = [&] {
    asked = true;
    CHECK_FALSE(lease.lost());
    store.time.advance(1us);
    CHECK(lease.lost());
  };
  store.failure = Errc::timed_out;
  std::error_code error;
  CHECK_FALSE(lease.release(error));
  CHECK(asked);
  CHECK(lease.lost());
}

TEST_CASE("a handler that destroys a store loses the leases of that store, which are due",
          "[core][leases]") {
  VirtualClock time;
  const auto stays = make_virtual_store(time);
  auto goes = make_virtual_store(time);
  std::optional<ConcurrencyLimiter> of_goes(std::in_place, *goes, "jobs", 2,
                                            LeaseOptions{.ttl = 12s});
  const ConcurrencyLimiter brief(*stays, "jobs", 1, {.ttl = 3s});
  LeaseRenewer renewer(time, Renewing::by_hand);
  std::vector<int> lost;
  Lease first = of_goes->try_acquire("alice");
  Lease second = of_goes->try_acquire("alice");
  Lease runs_out = brief.try_acquire("alice");
  first.keep_alive(renewer, [&](const LeaseId&) { lost.push_back(1); });
  second.keep_alive(renewer, [&](const LeaseId&) { lost.push_back(2); });
  runs_out.keep_alive(renewer, [&](const LeaseId&) {
    lost.push_back(3);
    of_goes.reset();
    goes.reset();
  });
  time.advance(5s);  // the first two are due, and the third has run out
  CHECK(renewer.renew_due() == Time::max());
  REQUIRE(lost.size() == 3);
  CHECK(lost.front() == 3);
  CHECK(first.lost());
  CHECK(second.lost());
  CHECK(renewer.size() == 0);
  std::error_code error;
  CHECK_FALSE(first.release(error));
  CHECK(error == Errc::shut_down);
}

TEST_CASE("what a handler owns may use the renewer as it ends", "[core][leases]") {
  struct Job {
    explicit Job(LeaseRenewer& by) : renewer(by) {}
    ~Job() { static_cast<void>(renewer.size()); }
    LeaseRenewer& renewer;
  };
  FickleStore store;
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  const ConcurrencyLimiter jobs(store, "jobs", 1000, {.ttl = 12s});
  for (int i = 0; i < 1000; ++i) {  // ended behind a sweep, and where they are due
    Lease lease = jobs.try_acquire("alice");
    lease.keep_alive(renewer, [job = std::make_shared<Job>(renewer)](const LeaseId&) {});
  }
  store.time.advance(4s);
  CHECK(renewer.renew_due() == Time::max());
}

TEST_CASE("leases are counted while answers come on another thread", "[core][leases]") {
  VirtualClock time;
  const auto inner = make_virtual_store(time);
  test::AsyncStore store(*inner);
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  const ConcurrencyLimiter jobs(store, "jobs", 4, {.ttl = 12s, .renewer = &renewer});
  std::vector<Lease> leases;
  for (int i = 0; i < 4; ++i) leases.push_back(jobs.try_acquire("alice"));
  std::atomic<bool> over{false};
  std::atomic<bool> all{true};
  std::thread counter([&] {
    while (!over) all = all && renewer.size() <= 4;
  });
  for (int i = 0; i < 200; ++i) {
    time.advance(4s);
    renewer.renew_due();
  }
  over = true;
  counter.join();
  CHECK(all);
  CHECK(renewer.size() == 4);
}

TEST_CASE("what is given back is not renewed, nor kept", "[core][leases]") {
  FickleStore store;
  LeaseRenewer renewer(store.clock(), Renewing::by_hand);
  const auto kept = std::make_shared<int>();
  const ConcurrencyLimiter jobs(
      store, "jobs", 1000, {.ttl = 12s, .renewer = &renewer, .on_lost = [kept](const LeaseId&) {}});
  const auto before = kept.use_count();
  for (int i = 0; i < 10'000; ++i) {
    static_cast<void>(jobs.try_acquire("alice"));
    REQUIRE(kept.use_count() - before <= 64);  // as the page says of what was given back
  }
  CHECK(renewer.size() == 0);
  const int calls = store.calls;
  store.time.advance(4s);
  CHECK(renewer.renew_due() == Time::max());
  CHECK(store.calls == calls);
}

TEST_CASE("a generator of ids that fails is an error of the call", "[core][leases]") {
  FickleStore store;
  BrokenRng rng;
  const ConcurrencyLimiter jobs(store, "jobs", 1, {.rng = &rng});
  std::error_code error;
  CHECK_FALSE(jobs.try_acquire("alice", error).decision().allowed);
  CHECK(error == std::error_code(ENOSYS, std::generic_category()));
  CHECK(store.calls == 0);
}

TEST_CASE("an empty lease, a refusal and a lease that was moved from hold nothing",
          "[core][leases]") {
  VirtualClock clock;
  const ConcurrencyLimiter jobs(make_virtual_store(clock), "jobs", 1);
  Lease empty;
  Lease first = jobs.try_acquire("alice");
  const Lease held = std::move(first);
  CHECK(held.fence() > 0);
  Lease refused = jobs.try_acquire("alice");
  for (Lease* lease : {&empty, &first, &refused}) {  // NOLINT(bugprone-use-after-move)
    CHECK_FALSE(*lease);
    CHECK_FALSE(lease->lost());
    CHECK_FALSE(lease->release());
    CHECK_FALSE(lease->renew());
    CHECK(lease->id() == LeaseId{});
    CHECK(lease->fence() == 0);
    CHECK(lease->expires_at() == Time{});
  }
}

TEST_CASE("a lease that is adopted from nonsense is lost or held, and can be given back",
          "[core][lease]") {
  FickleStore store;
  const ConcurrencyLimiter jobs(store, "jobs", 1);
  constexpr Word least = std::numeric_limits<Word>::min();
  constexpr Word most = std::numeric_limits<Word>::max();
  for (const Word word : {least, Word{-1}, Word{0}, most}) {
    for (const Time time : {Time::min(), Time{}, Time::max()}) {
      CAPTURE(word, to_word(time));
      Decision granted;
      granted.allowed = true;
      granted.at = time;
      const std::array<Word, ConcurrencyLimiter::output> told{word, 0, 1, word};
      Lease lease = jobs.adopt("a", LeaseId{1, 2}, 1, granted, told, time);
      CHECK(lease);
      CHECK(lease.lost() == (time != Time::max()));
      CHECK_FALSE(lease.release());
    }
  }
}
