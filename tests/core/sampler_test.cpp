// The sampler: when it samples, what becomes of a sample that fails, and fleets of samplers that
// share one level. Virtual time, but for the one test of its thread.
// Threading: as each test says; most are single-threaded.
#include "sluice/limiters/sampler.hpp"

#include <pthread.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// Says what it is told to, or nothing.
class Dial final : public Sensor {
 public:
  explicit Dial(std::optional<Utilization> value) : value_(value) {}
  [[nodiscard]] std::optional<Utilization> read() override {
    ++reads;
    if (throws) throw std::runtime_error("broken");
    return value_;
  }
  std::atomic<int> reads{0};
  bool throws = false;

 private:
  std::optional<Utilization> value_;
};

struct World {
  VirtualClock clock{};
  std::unique_ptr<Store> store = make_virtual_store(clock);
  UtilizationShedder shedder{*store, "api"};
};

}  // namespace

TEST_CASE("a sampler that is poked samples at its period, and only then", "[core][sampler]") {
  World world;
  Dial dial(1.0);
  Sampler sampler(world.shedder, dial, {.period = 8s, .jitter = false});
  CHECK(sampler.poke());
  CHECK_FALSE(sampler.poke());
  world.clock.advance(8s - 1us);
  CHECK_FALSE(sampler.poke());
  world.clock.advance(1us);
  CHECK(sampler.poke());
  CHECK(world.shedder.report().amount == Approx((8 - 28) / 120.0));
  world.clock.advance(1h);
  CHECK(sampler.poke());
  world.clock.advance(-5s);  // a clock that is set back by more does not silence it
  CHECK_FALSE(sampler.poke());
  world.clock.advance(-24h);
  CHECK(sampler.poke());
  CHECK_FALSE(sampler.poke());
  CHECK(dial.reads == 4);
  CHECK(sampler.taken() == 4);
  CHECK(sampler.failed() == 0);
  CHECK_FALSE(sampler.last_error());
}

TEST_CASE("a sample that fails is counted and not repeated before its time", "[core][sampler]") {
  World world;
  Dial silent(std::nullopt);
  Sampler sampler(world.shedder, silent);
  CHECK(sampler.poke());
  CHECK_FALSE(sampler.poke());
  CHECK(sampler.failed() == 1);
  silent.throws = true;
  world.clock.advance(20s);
  CHECK_FALSE(sampler.poke());
  CHECK(sampler.failed() == 2);
  CHECK_FALSE(world.shedder.report().last_sample);

  REQUIRE(SlotLock(*world.store, "api", 1s).try_acquire("taken"));
  Dial dial(1.0);
  Sampler onto(world.shedder, "taken", dial);
  onto.poke();
  CHECK(onto.failed() == 1);
  CHECK(onto.taken() == 0);
  CHECK(onto.last_error() == Errc::wrong_kind);
}

TEST_CASE("a sampler's period fits its shedder", "[core][sampler]") {
  World world;
  Dial dial(1.0);
  CHECK_THROWS_AS(Sampler(world.shedder, dial, {.period = 0s}), std::invalid_argument);
  CHECK_THROWS_WITH(Sampler(world.shedder, dial, {.period = 20s}),
                    sluice::test::contains_text("less than max_gap (20000000 us), got 20000000"));
  CHECK_NOTHROW(Sampler(world.shedder, dial, {.period = 20s - 1us}));
}

TEST_CASE("samplers with jitter keep the period on average, and fall out of step",
          "[core][sampler]") {
  Random random("samplers with jitter keep the period on average, and fall out of step");
  CAPTURE(random.repeat());
  World world;
  // Two hosts whose sampler started at the same time, one wholly busy and one idle: in step, the
  // first to be asked would count for both.
  Dial busy(1.0);
  Dial idle(0.0);
  Sampler first(world.shedder, busy, {.period = 8s}, random);
  Sampler second(world.shedder, idle, {.period = 8s}, random);
  const int hours = 20;
  Span of_busy{0};
  Span of_idle{0};
  Time last = world.clock.now();
  for (int tick = 0; tick < hours * 36'000; ++tick) {
    world.clock.advance(100ms);
    const auto counts = [&](Sampler& sampler, Span& sum) {
      if (!sampler.poke()) return;
      sum += world.clock.now() - last;
      last = world.clock.now();
    };
    counts(first, of_busy);
    counts(second, of_idle);
  }
  const double samples = hours * 450.0;
  CHECK(busy.reads == Approx(samples).epsilon(0.03));
  CHECK(idle.reads == Approx(samples).epsilon(0.03));
  CHECK(of_busy / 1s == Approx(hours * 1800).epsilon(0.05));
  CHECK(of_idle / 1s == Approx(hours * 1800).epsilon(0.05));
}

TEST_CASE("many threads may poke, and one of them samples", "[core][sampler]") {
  World world;
  Dial dial(1.0);
  Sampler sampler(world.shedder, dial, {.period = 8s, .jitter = false});
  for (int round = 0; round < 20; ++round) {
    world.clock.advance(8s);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n) sampler.poke();
      });
    }
    threads.clear();
    CHECK(dial.reads == round + 1);
  }
}

TEST_CASE("a thread of its own samples in virtual time, as often as it should, until it is stopped",
          "[core][sampler]") {
  World world;
  Dial dial(1.0);
  Sampler sampler(world.shedder, dial, {.period = 1s, .jitter = false});
  CHECK(dial.reads == 0);
  sampler.start();
  sampler.stop();
  const int before = dial.reads;
  sampler.start();
  sampler.start();
  const VirtualClock::AutoAdvance moving(world.clock);  // while every thread sleeps
  ManualResetEvent waker;
  world.clock.wait_until(world.clock.now() + 1h + 1us, waker);
  CHECK(dial.reads - before >= 3600);
  CHECK(dial.reads - before <= 3601);
  sampler.stop();
  const int reads = dial.reads;
  world.clock.advance(1h);
  sampler.stop();
  CHECK(dial.reads == reads);
  sampler.start();  // and again; the destructor stops it
}

TEST_CASE("a thread that is cancelled pokes and stops samplers, and ends behind that",
          "[core][sampler]") {
  class Point final : public Sensor {
   public:
    [[nodiscard]] std::optional<Utilization> read() override {
      ::pthread_testcancel();
      return 1.0;
    }
  };
  struct Owner {
    World world{};
    Point point{};
    Sampler sampler{world.shedder, point, {.period = 1s}};
    bool poked = false;
    bool went_on = false;
  };
  const auto run = [](void* self) -> void* {
    auto& mine = *static_cast<Owner*>(self);
    ::pthread_cancel(::pthread_self());
    mine.poked = mine.sampler.poke();
    mine.sampler.stop();
    ::pthread_testcancel();
    mine.went_on = true;
    return nullptr;
  };
  for (int round = 0; round < 20; ++round) {
    Owner owner;
    const bool has_thread = round % 2 == 1;  // and samples there, as soon as it runs
    if (has_thread) owner.sampler.start();
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, run, &owner) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    CHECK((owner.poked || has_thread));
    CHECK_FALSE(owner.went_on);
  }
}
