// What a forked child may use of its parent's objects: nothing decides alone there, and nothing
// waits for threads that the child does not have. Threading: as each test says.
#include <unistd.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/lease_renewer.hpp"
#include "sluice/limiters/sampler.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/prefetch_store.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {
namespace {

/// As a Redis store: of the process that made it.
class HomeStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    if (::getpid() != home_) return done.fail(Errc::forked);
    StoreWrapper::execute(plan, std::move(done));
  }

 private:
  pid_t home_ = ::getpid();
};

/// A FallbackStore in front of a store of this process, on a wire.
struct Forking {
  explicit Forking(const FailurePolicy& policy) { store.emplace(wire, breaker, policy, 1s); }

  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  HomeStore home{*whole};
  WireStore wire{home};
  SeededRng rng{1};
  CircuitBreaker breaker{clock, {.failures = 1, .rng = &rng}};
  std::optional<FallbackStore> store;
};

bool is_told(Store& store) {
  const TokenBucket bucket(store, "api", Quota::per_second(100).burst(100));
  for (int i = 0; i < 200; ++i) {
    std::error_code error;
    if (bucket.try_acquire("a", error).allowed || error != Errc::forked) return false;
  }
  std::array<std::error_code, 2> errors;
  std::array<Decision, 2> decisions;
  const std::array steps{bucket.acquire_step("a"), bucket.acquire_step("b")};
  const std::array<Plan, 2> plans{steps[0], steps[1]};
  decide_batch(store, plans, decisions, errors);
  return errors[0] == Errc::forked && errors[1] == Errc::forked;
}

}  // namespace

TEST_CASE("in a forked child a FallbackStore tells so, and does not decide alone",
          "[fallback][fork][realtime]") {
  VirtualClock clock;
  const auto local = make_virtual_store(clock);
  for (const auto& policy :
       {FailurePolicy::open(), FailurePolicy::closed(), FailurePolicy::local(*local, 1)}) {
    for (const char* state : {"closed", "open", "half open"}) {
      CAPTURE(state);
      Forking rig(policy);
      rig.wire.holds = [](const Plan&) { return false; };
      const TokenBucket bucket(*rig.store, "api", Quota::per_second(100).burst(100));
      CHECK(bucket.try_acquire("a").source == Source::virtual_store);
      if (state != std::string("closed")) {
        rig.wire.drops = [](const Plan&) { return true; };
        static_cast<void>(bucket.try_acquire("a"));
        rig.wire.drops = nullptr;
        CHECK(rig.breaker.state() == State::open);
      }
      if (state == std::string("half open")) {
        rig.clock.advance(1min);
        rig.wire.holds = nullptr;
        bucket.try_acquire_then("a", 1, [](const std::error_code&, const Decision&) {});
        CHECK(rig.breaker.state() == State::half_open);
        rig.wire.holds = [](const Plan&) { return false; };
      }
      CHECK(in_child([&] {
        // A child's own store in front of its parent's tells so as well.
        SeededRng rng(1);
        CircuitBreaker breaker(rig.clock, {.failures = 1, .rng = &rng});
        FallbackStore own(rig.wire, breaker, policy);
        const bool told = is_told(*rig.store) && is_told(own);
        rig.store.reset();
        return told;
      }));
      rig.wire.deliver_all();
    }
  }
}

TEST_CASE("children that are forked while all threads ask a FallbackStore are told so, and end",
          "[fallback][fork][realtime]") {
  const auto memory = make_memory_store();
  HomeStore home(*memory);
  CircuitBreaker breaker(memory->clock());
  std::optional<FallbackStore> fallback;
  fallback.emplace(home, breaker, FailurePolicy::open());
  std::optional<PrefetchStore> prefetch;
  prefetch.emplace(*fallback);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Store& store = i == 0 ? static_cast<Store&>(*prefetch) : *fallback;
      const TokenBucket bucket(store, "api", Quota::per_second(100).burst(100));
      std::error_code error;
      while (!over) static_cast<void>(bucket.try_acquire("a", error));
    });
  }
  std::size_t told = 0;
  const std::size_t children = scaled(50, 5);
  while (told < children && in_child([&] {
           const bool is = is_told(*fallback) && is_told(*prefetch);
           fallback.reset();
           return is;
         })) {
    ++told;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(told == children);
}

TEST_CASE("in a forked child a breaker waits for no probe of the parent",
          "[fallback][fork][realtime]") {
  VirtualClock clock;
  SeededRng rng(1);
  CircuitBreaker breaker(clock, {.failures = 1, .rng = &rng});
  for (const unsigned part : {0U, 2U}) {
    breaker.answer(breaker.ask(part), CircuitBreaker::Result::failure);
    clock.advance(1min);
    REQUIRE(breaker.ask(part).is_probe);
    REQUIRE_FALSE(breaker.ask(part));
  }
  breaker.answer(breaker.ask(1), CircuitBreaker::Result::failure);
  const Span pause = breaker.wait(1);
  CHECK(in_child([&] {
    for (const unsigned part : {0U, 2U}) {
      const CircuitBreaker::Permit permit = breaker.ask(part);
      if (!permit.is_probe || breaker.ask(part)) return false;
      breaker.answer(permit, CircuitBreaker::Result::success);
      if (breaker.state(part) != State::closed) return false;
    }
    return breaker.ask(1).wait == pause;  // which a fork does not end
  }));
  CHECK(breaker.state() == State::half_open);
}

TEST_CASE("a child that is forked while its parent uses the breaker ends a store with a probe",
          "[fallback][fork][realtime]") {
  /// The breaker draws under its lock.
  struct Forks final : Rng {
    std::uint64_t next() override {
      if (drawn) std::exchange(drawn, nullptr)();
      return 1ULL << 63;
    }
    std::function<void()> drawn;
  } rng;
  VirtualClock clock;
  const auto whole = make_virtual_store(clock);
  WireStore wire(*whole);
  CircuitBreaker breaker(clock, {.failures = 1, .rng = &rng});
  std::optional<FallbackStore> store;
  store.emplace(wire, breaker, FailurePolicy::open());
  breaker.answer(breaker.ask(), CircuitBreaker::Result::failure);
  clock.advance(1s);
  const TokenBucket bucket(*store, "api", Quota::per_second(100));
  bucket.try_acquire_then("a", 1, [](const std::error_code&, const Decision&) {});
  REQUIRE(breaker.state() == State::half_open);
  bool ended = false;
  rng.drawn = [&] {
    ended = in_child([&] {
      store.reset();
      return true;
    });
  };
  breaker.answer(breaker.ask(1), CircuitBreaker::Result::failure);
  CHECK(ended);
  wire.deliver_all();
}

TEST_CASE("a forked child neither waits for threads of its parent nor has to do without",
          "[fallback][fork][realtime]") {
  const auto memory = make_memory_store();
  std::optional<LeaseRenewer> renewer;
  renewer.emplace(memory->clock());
  renewer->start();
  const UtilizationShedder shedder(*memory, "shedder");
  BusyWorkers sensor(4);
  std::optional<Sampler> sampler;
  sampler.emplace(shedder, "a", sensor);
  sampler->start();
  const ConcurrencyLimiter jobs(*memory, "jobs", 1, {.ttl = 300ms});
  CHECK(in_child([&] {
    Lease lease = jobs.try_acquire("a");
    lease.keep_alive(*renewer);  // by a thread of the child
    const Time first = lease.expires_at();
    while (lease.expires_at() == first && !lease.lost()) std::this_thread::yield();
    return !lease.lost();
  }));
  CHECK(in_child([&] {
    renewer->start();  // its own
    renewer->stop();
    renewer.reset();
    sampler.reset();
    return true;
  }));
  CHECK(in_child([&] {
    renewer.reset();
    return true;
  }));
}

}  // namespace sluice::test
