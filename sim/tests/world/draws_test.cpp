// Everything in a World is drawn from its seed: what the library draws when nobody gives it a
// generator as well. Threading: single-threaded.
#include <functional>
#include <map>
#include <set>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/testing/trace.hpp"

using namespace sluice;
using namespace sluice::test;
using sluice::asio::async_acquire;
using sluice::testing::Fault;
using sluice::testing::FaultyStore;
using sluice::testing::RecordingStore;

namespace {

/// A World with a store behind a decorator of each kind. What it draws itself is the same always.
struct Drawing {
  explicit Drawing(std::uint64_t seed) : world({.seed = seed}) {}

  World world;
  std::unique_ptr<RemoteStore> link = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
  FaultyStore faults{*link};
  RecordingStore record{faults};
  CircuitBreaker breaker{world.clock(), {.failures = 2, .longest_pause = 1s}};
  FallbackStore store{record, breaker, FailurePolicy::closed()};

  void spawn(net::awaitable<void> program) { net::co_spawn(world, std::move(program), Rethrow{}); }
};

/// Asks every 10 ms, in an outage: what the store is asked then is the breaker's choice.
net::awaitable<void> ask_in_an_outage(Drawing& in) {
  const TokenBucket bucket(in.store, "api", Quota::per_second(1000));
  in.faults.fail_all(Fault::not_executed(Errc::not_connected));
  for (int i = 0; i < 300; ++i) {
    (void)co_await sluice::asio::async_try_acquire(bucket, "k", 1,
                                                   net::as_tuple(net::use_awaitable));
    co_await sluice::asio::sleep_for(in.world.clock(), 10ms);
  }
}

net::awaitable<void> hold_leases(Drawing& in) {
  const ConcurrencyLimiter jobs(in.store, "jobs", 10);
  for (int i = 0; i < 3; ++i) {
    const Lease lease = co_await async_acquire(jobs, "k", 1, Deadline::never());
  }
}

net::awaitable<void> stand_in_line(Drawing& in) {
  const FixedWindow seconds(in.store, "seconds", 1, Calendar::every(1s));
  seconds.set_wait_queue({.across_processes = true});
  for (int i = 0; i < 3; ++i) {
    CHECK(co_await async_acquire(seconds, "k", 1, Deadline::never()));
  }
}

net::awaitable<void> be_refused(Drawing& in) {
  const Gates gates(in.store, "gates", {"host"});
  const std::array<Scope, 1> scopes{gates.scope("host", "k")};
  int calls = 0;
  const auto call = [&]() -> net::awaitable<void> {
    if (++calls < 4) throw RateLimited();
    co_return;
  };
  co_await sluice::asio::with_backoff(gates, scopes, call);
}

net::awaitable<void> choose(Drawing& in) {
  const TokenBucket keys(in.store, "keys", Quota::per_second(100));
  const FirstOf either = first_of({{{keys, "a"}}, {{keys, "b"}}}).by_weight({1, 1});
  for (int i = 0; i < 20; ++i) {
    const Grants granted = co_await async_acquire(either, 0s, net::use_awaitable);
    CHECK(granted);
  }
}

net::awaitable<void> share_a_rate(Drawing& in) {
  SharedSlidingWindow(in.world.store(), "k")
      .configure("rate", RateType::per_client, 1, 1s, SpentUnits::forgotten);
  const SharedSlidingWindow rate(in.store, "k");
  CHECK(co_await async_acquire(rate, "rate", 1, Deadline::never()));
}

net::awaitable<void> shed(Drawing& in) {
  const UtilizationShedder shedder(in.store, "shedder");
  for (int i = 0; i < 3; ++i) {
    const Step step = shedder.acquire_step(shedder.whole(), shedder.tier("sheddable"));
    co_await sluice::asio::async_decide(in.store, step, net::use_awaitable);
  }
}

net::awaitable<void> sample(Drawing& in) {
  struct Half final : Sensor {
    std::optional<Utilization> read() override { return 0.5; }
  } half;
  const UtilizationShedder shedder(in.store, "shedder");
  Sampler sampler(shedder, half, {.period = 1s});
  for (int i = 0; i < 500; ++i) {
    sampler.poke();
    co_await sluice::asio::sleep_for(in.world.clock(), 10ms);
  }
}

using Program = net::awaitable<void> (*)(Drawing&);
const std::map<std::string, Program> programs{{"a breaker", &ask_in_an_outage},
                                              {"leases", &hold_leases},
                                              {"a line", &stand_in_line},
                                              {"with_backoff", &be_refused},
                                              {"alternatives", &choose},
                                              {"a rate", &share_a_rate},
                                              {"shedding", &shed},
                                              {"a sampler", &sample}};

std::string trace_of(Program program, std::uint64_t seed) {
  Drawing drawing(seed);
  drawing.spawn(program(drawing));
  drawing.world.run_for(1min);
  CHECK(drawing.world.outstanding_work() == 0);
  return to_text(drawing.record.trace());
}

}  // namespace

TEST_CASE("a seed repeats all that the library draws in a World, and another one changes it") {
  for (const auto& [name, program] : programs) {
    CAPTURE(name);
    const std::string trace = trace_of(program, 1);
    CHECK(trace.size() > 100);
    CHECK(trace == trace_of(program, 1));
    CHECK(trace != trace_of(program, 2));
  }
}

TEST_CASE("draws for one purpose change none for another, nor the delays of connections") {
  const auto second_of = [](DrawFor purpose, std::uint64_t seed, bool others) {
    World world({.seed = seed});
    for (std::size_t i = 0; others && i < draw_purposes; ++i) {
      const auto other = static_cast<DrawFor>(i);
      if (other != purpose) (void)world.clock().rng(other)->next();
    }
    (void)world.clock().rng(purpose)->next();
    return world.clock().rng(purpose)->next();
  };
  std::set<std::uint64_t> all;
  for (std::size_t i = 0; i < draw_purposes; ++i) {
    const auto purpose = static_cast<DrawFor>(i);
    CHECK(second_of(purpose, 7, false) == second_of(purpose, 7, true));
    all.insert(second_of(purpose, 7, false));
    all.insert(second_of(purpose, 8, false));
  }
  CHECK(all.size() == 2 * draw_purposes);

  const auto answered_at = [](bool draws) {
    World world({.seed = 7});
    const auto link = world.connect({Delay::exponential(10ms), Delay::exponential(10ms)});
    for (std::size_t i = 0; draws && i < draw_purposes; ++i) {
      (void)world.clock().rng(static_cast<DrawFor>(i))->next();
    }
    const TokenBucket bucket(*link, "api", Quota::per_second(1));
    bucket.try_acquire_then("k", 1, [](std::error_code, Decision) {});
    world.run();
    return world.now();
  };
  CHECK(answered_at(true) == answered_at(false));
}

TEST_CASE("a store in memory on the clock of a World draws its secret there, and else by chance") {
  World world({.seed = 7});
  const auto expected = [] {
    World twin({.seed = 7});
    Rng& rng = *twin.clock().rng(DrawFor::hash);
    (void)rng.next();
    (void)rng.next();
    return rng.next();
  }();
  const auto store =
      make_memory_store({.max_keys = 16, .max_bytes = 1 << 20, .clock = &world.clock()});
  CHECK(world.clock().rng(DrawFor::hash)->next() == expected);

  VirtualClock alone;
  CHECK(alone.rng(DrawFor::hash) == nullptr);
  CHECK(&rng_of(alone, DrawFor::lease) == &thread_rng());
}

TEST_CASE("a generator that is given goes before the World's") {
  Drawing drawing(1);
  SeededRng own(5);
  const ConcurrencyLimiter jobs(drawing.world.store(), "jobs", 10, {.rng = &own});
  const Lease lease = jobs.try_acquire("k");
  SeededRng twin(5);
  CHECK(lease.id() == LeaseId::draw(twin));
}
