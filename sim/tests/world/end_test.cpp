// The end of a World with everything under way: its stores and limiters, ended in every order with
// calls, waits and leases, and coroutines, channels and timers. What is wrong here is seen under
// AddressSanitizer. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/strand.hpp>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/lease_renewer.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/testing/world.hpp"

using namespace sluice;
using namespace sluice::test;
using sluice::asio::async_acquire;
using sluice::testing::Fault;
using sluice::testing::FaultScript;
using sluice::testing::FaultyStore;
using sluice::testing::RecordingStore;
using sluice::testing::WorldFixture;

namespace {

const Deadline for_ever = Deadline::never();
const Link slow{Delay::constant(1ms), Delay::constant(1ms)};

net::awaitable<void> sleep(Clock& clock, Span span) {
  co_await sluice::asio::sleep_for(clock, span);
}

/// Asks, holds what it is granted for two seconds, and asks again.
template <class L, class... Asked>
net::awaitable<void> ask_for_ever(const L& limiter, Clock& clock, Counted alive, Asked... asked) {
  for (const Counted own(alive);;) {
    [[maybe_unused]] const auto grant = co_await async_acquire(limiter, asked..., for_ever);
    co_await sluice::asio::sleep_for(clock, 2s);
  }
}

/// Asks again when it is granted, until its store has gone.
template <class L, class... Asked>
net::awaitable<void> ask_while(const L& limiter, const bool& gone, Counted, Asked... asked) {
  while (!gone) static_cast<void>(co_await async_acquire(limiter, asked..., for_ever));
}

/// Makes guarded calls that last a second.
template <class L>
net::awaitable<void> guard_for_ever(const L& limiter, Clock& clock, Counted alive) {
  const auto call = [&clock] { return sleep(clock, 1s); };
  for (const Counted own(alive);;) {
    co_await sluice::asio::guarded(limiter, "k", 1, for_ever, call);
  }
}

/// Makes calls that last a second, and that the API refuses.
net::awaitable<void> back_off_for_ever(const Gates& gates, std::span<const Scope> scopes,
                                       Clock& clock, Counted alive) {
  const auto call = [&clock]() -> net::awaitable<void> {
    co_await sleep(clock, 1s);
    throw RateLimited(2s, 0);
  };
  for (const Counted own(alive);;) {
    try {
      co_await sluice::asio::with_backoff(gates, scopes, call);
    } catch (const RateLimited&) {  // it has given up
    }
  }
}

net::awaitable<void> renew_for_ever(LeaseRenewer& renewer, Clock& clock, Counted alive) {
  for (const Counted own(alive);;) {
    (void)renewer.renew_due();
    co_await sluice::asio::sleep_for(clock, 500ms);
  }
}

/// Every limiter that can be waited for. All grant about one call in three seconds.
struct Limiters {
  Limiters(Store& at, bool across) : store(at) {
    const WaitQueueOptions line{.across_processes = across};
    const auto set = [&](const auto&... limiter) { (limiter.set_wait_queue(line), ...); };
    set(bucket, shared_token_bucket, windows, slots, minutes, counter, leases, gates, rate);
  }

  /// Three callers of each, so that some wait behind others.
  void spawn(World& world, int& alive) {
    Clock& clock = world.clock();
    const Counted counted(alive);
    const auto start = [&](auto coroutine) {
      net::co_spawn(world, std::move(coroutine), net::detached);
    };
    start(renew_for_ever(renewer, clock, counted));
    for (int i = 0; i < 3; ++i) {
      start(ask_for_ever(bucket, clock, counted, "k", 1));
      start(ask_for_ever(shared_token_bucket, clock, counted, "k", 1));
      start(ask_for_ever(windows, clock, counted, "k", 1));
      start(ask_for_ever(slots, clock, counted, "k"));
      start(ask_for_ever(minutes, clock, counted, "k", 1));
      start(ask_for_ever(counter, clock, counted, "k", 1));
      start(ask_for_ever(leases, clock, counted, "k", 1));
      start(ask_for_ever(gates, clock, counted, std::span<const Scope>(scopes)));
      start(ask_for_ever(rate, clock, counted, "rate", 1));
      start(guard_for_ever(guarded_bucket, clock, counted));
      start(guard_for_ever(guarded_leases, clock, counted));
      start(back_off_for_ever(called_gates, called, clock, counted));
    }
  }

  Store& store;
  TokenBucket bucket{store, "bucket", Quota::per(1, 3s).burst(1)};
  SharedTokenBucket shared_token_bucket{store, "shared"};
  SlidingWindow windows{store, "windows", {{1, 3s}}};
  SlotLock slots{store, "slots", 3s};
  FixedWindow minutes{store, "minutes", 1, Calendar::every(3s)};
  SlidingWindowCounter counter{store, "counter", {1, 3s}};
  LeaseRenewer renewer{store.clock(), Renewing::by_hand};
  ConcurrencyLimiter leases{store, "leases", 1, {.ttl = 1s, .renewer = &renewer}};
  Gates gates{store, "gates", {"host"}, {.ramp = 1h, .spacing = 3s}};
  std::vector<Scope> scopes{gates.scope("host", "k")};
  SharedSlidingWindow rate{store, "k"};
  TokenBucket guarded_bucket{store, "guarded", Quota::per(1, 3s).burst(1)};
  ConcurrencyLimiter guarded_leases{store, "calls", 1, {.ttl = 3s}};
  Gates called_gates{store, "called", {"host"}};
  std::vector<Scope> called{called_gates.scope("host", "k")};
};

/// What stands between a client's connection and its limiters.
struct Front {
  virtual ~Front() = default;
  [[nodiscard]] virtual Store& store() = 0;
};

struct Nothing final : Front {
  explicit Nothing(Store& of) : link(of) {}
  Store& store() override { return link; }
  Store& link;
};

struct Recorded final : Front {
  explicit Recorded(Store& link) : recording(link) {}
  Store& store() override { return recording; }
  RecordingStore recording;
};

/// Half of the answers are late or lost.
struct Faulty final : Front {
  explicit Faulty(Store& link) : faults(link) {
    faults.fail_some(0.3, Fault::none().late(30ms), rng);
    faults.fail_every(5, Fault::answer_lost());
  }
  Store& store() override { return faults; }
  SeededRng rng{7};
  FaultyStore faults;
};

/// Behind it, every second half second is an outage.
struct Fallen final : Front {
  Fallen(Store& link, World& world)
      : faults(link),
        local(make_virtual_store(world.clock())),
        breaker(world.clock(), {.failures = 2, .rng = &rng}),
        fallback(faults, breaker, FailurePolicy::local(*local, 1)) {
    net::co_spawn(world, outages(faults, world.clock()), net::detached);
  }
  static net::awaitable<void> outages(FaultyStore& faults, Clock& clock) {
    for (;;) {
      co_await sluice::asio::sleep_for(clock, 500ms);
      faults.fail_all(Fault::not_executed(Errc::not_connected));
      co_await sluice::asio::sleep_for(clock, 500ms);
      faults.heal();
    }
  }
  Store& store() override { return fallback; }
  SeededRng rng{7};
  FaultyStore faults;
  std::unique_ptr<Store> local;
  CircuitBreaker breaker;
  FallbackStore fallback;
};

enum class Between { nothing, recorded, faulty, fallen };

std::unique_ptr<Front> make_front(Between between, Store& link, World& world) {
  switch (between) {
    case Between::nothing:
      break;
    case Between::recorded:
      return std::make_unique<Recorded>(link);
    case Between::faulty:
      return std::make_unique<Faulty>(link);
    case Between::fallen:
      return std::make_unique<Fallen>(link, world);
  }
  return std::make_unique<Nothing>(link);
}

/// All of it, each part to be ended alone.
struct Rig {
  enum Part { the_limiters, the_front, the_link, the_world };
  using Order = std::array<Part, 4>;

  Rig(Between between, bool across)
      : world(std::make_unique<World>()),
        link(world->connect(slow)),
        front(make_front(between, *link, *world)),
        limiters(std::make_unique<Limiters>(front->store(), across)) {
    SharedTokenBucket(world->store(), "shared").configure("k", Quota::per(1, 3s).burst(1));
    SharedSlidingWindow(world->store(), "k")
        .configure("rate", RateType::overall, 1, 3s, SpentUnits::forgotten);
    Gates gates(world->store(), "gates", {"host"}, {.ramp = 1h, .spacing = 3s});
    gates.close(gates.scope("host", "k"), 1us);
    limiters->spawn(*world, alive);
  }

  void end(Part part) {
    if (part == the_limiters) limiters.reset();
    if (part == the_front) front.reset();
    if (part == the_link) link.reset();
    if (part == the_world) world.reset();
  }

  int alive = 0;  // coroutines
  std::unique_ptr<World> world;
  std::unique_ptr<Store> link;
  std::unique_ptr<Front> front;
  std::unique_ptr<Limiters> limiters;
};

/// A store goes before what it stands in front of.
std::vector<Rig::Order> all_orders() {
  Rig::Order order{Rig::the_limiters, Rig::the_front, Rig::the_link, Rig::the_world};
  std::vector<Rig::Order> all;
  do {
    if (std::ranges::find(order, Rig::the_front) < std::ranges::find(order, Rig::the_link)) {
      all.push_back(order);
    }
  } while (std::ranges::next_permutation(order).found);
  return all;
}

}  // namespace

TEST_CASE("a World, its connections, what stands before them and limiters end in any order") {
  const auto between =
      GENERATE(Between::nothing, Between::recorded, Between::faulty, Between::fallen);
  const bool across = GENERATE(false, true);
  const Span age = GENERATE(0us, 500us, 1500us, 2500us, 333'500us, 4s + 500us, 10s);
  for (const Rig::Order& order : all_orders()) {
    Rig rig(between, across);
    rig.world->run_for(age);
    const int alive = rig.alive;
    CHECK(alive > 0);
    for (const Rig::Part part : order) {
      rig.end(part);
      CHECK(rig.alive == (rig.world ? alive : 0));
    }
  }
}

TEST_CASE("the clients of a WorldFixture end before its World with waits under way") {
  int alive = 0;
  std::optional<Limiters> one;
  {
    WorldFixture fixture;
    SharedTokenBucket(fixture.world.store(), "shared").configure("k", Quota::per(1, 3s).burst(1));
    one.emplace(fixture.client("one", slow).store, false);
    one->spawn(fixture.world, alive);
    Limiters two(fixture.client("two").store, true);
    two.spawn(fixture.world, alive);
    fixture.world.run_for(10s + 500us);
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
}

TEST_CASE("a connection that outlives its World answers shut_down, and its clock stands still") {
  auto world = std::make_unique<World>();
  const auto link = world->connect(slow);
  const TokenBucket bucket(*link, "api", Quota::per_second(1));
  const ConcurrencyLimiter jobs(*link, "jobs", 1);
  world->run_for(1min);
  const Time end = world->now();
  std::error_code under_way;
  bucket.try_acquire_then("k", 1, [&](std::error_code error, Decision) { under_way = error; });
  world.reset();
  CHECK(under_way == Errc::shut_down);

  std::error_code afterwards;
  bucket.try_acquire_then("k", 1, [&](std::error_code error, Decision) { afterwards = error; });
  CHECK(afterwards == Errc::shut_down);
  std::error_code of_lease;
  CHECK_FALSE(jobs.try_acquire("k", of_lease).decision().allowed);
  CHECK(of_lease);
  CHECK(link->clock().now() == end);
  CHECK(link->clock().rng(DrawFor::lease) == nullptr);
  CHECK_FALSE(link->may_block());
  link->notify("k");
  CHECK(link->subscribe("k", [] {}) == nullptr);
  CHECK(link->in_flight() == 0);
}

TEST_CASE("a lease that outlives its store, or its World, is lost and gives nothing back") {
  Lease of_link;
  Lease of_world;
  {
    World world;
    auto link = world.connect(slow);
    const ConcurrencyLimiter far(*link, "far", 1);
    const ConcurrencyLimiter near(world.store(), "near", 1);
    net::co_spawn(
        world,
        [&]() -> net::awaitable<void> {
          of_link = co_await async_acquire(far, "k", 1, for_ever);
          of_world = co_await async_acquire(near, "k", 1, for_ever);
        },
        Rethrow{});
    world.run();
    CHECK_FALSE(of_link.lost());
    link.reset();
    CHECK(of_link.lost());
    CHECK_FALSE(of_world.lost());
  }
  for (Lease* const lease : {&of_link, &of_world}) {
    std::error_code error;
    CHECK(lease->lost());
    CHECK_FALSE(lease->renew(error));
    CHECK(error == Errc::shut_down);
    CHECK_FALSE(lease->release(error));
    CHECK(error == Errc::shut_down);
  }
}

TEST_CASE("a renewer tells the holder of a lease whose store has gone, and asks nobody") {
  World world;
  auto link = world.connect(slow);
  CHECK_THROWS_AS(LeaseRenewer(world.clock()), std::invalid_argument);
  LeaseRenewer renewer(world.clock(), Renewing::by_hand);
  int lost = 0;
  const ConcurrencyLimiter jobs(
      *link, "jobs", 1,
      {.ttl = 3s, .renewer = &renewer, .on_lost = [&](const LeaseId&) { ++lost; }});
  Lease lease;
  net::co_spawn(
      world,
      [&]() -> net::awaitable<void> { lease = co_await async_acquire(jobs, "k", 1, for_ever); },
      Rethrow{});
  world.run_for(500ms);
  REQUIRE(lease);
  link.reset();
  CHECK(renewer.size() == 1);
  world.run_for(600ms);  // a third of the TTL is over
  (void)renewer.renew_due();
  CHECK(lost == 1);
  CHECK(renewer.size() == 0);
  (void)renewer.renew_due();
  CHECK(lost == 1);
}

TEST_CASE(
    "waits whose connection goes end with an error, or with what they had, while time goes on") {
  const bool across = GENERATE(false, true);
  World world;
  auto link = world.connect(slow);
  auto limiters = std::make_unique<Limiters>(*link, across);
  SharedSlidingWindow(world.store(), "k")
      .configure("rate", RateType::overall, 1, 3s, SpentUnits::forgotten);
  int alive = 0;
  int failed = 0;
  bool gone = false;
  const auto wait = [&](const auto& limiter, auto... asked) {
    for (int i = 0; i < 3; ++i) {
      net::co_spawn(world, ask_while(limiter, gone, Counted(alive), asked...),
                    [&](const std::exception_ptr& error) { failed += error ? 1 : 0; });
    }
  };
  wait(limiters->bucket, Key("k"), 1);
  wait(limiters->windows, Key("k"), 1);
  wait(limiters->slots, Key("k"));
  wait(limiters->rate, Key("rate"), 1);
  wait(limiters->minutes, Key("k"), 1);
  wait(limiters->counter, Key("k"), 1);
  world.run_for(10s);
  CHECK(failed == 0);
  CHECK(alive == 18);
  gone = true;
  limiters.reset();
  link.reset();
  world.run_for(1min);
  CHECK(alive == 0);
  CHECK(failed == 18);
  CHECK(world.outstanding_work() == 0);
}

TEST_CASE("what waits on the clock of a World elsewhere ends with the World") {
  int alive = 0;
  bool woken = false;
  net::io_context context;
  std::error_code late;
  auto world = std::make_unique<World>();
  auto inner = make_virtual_store(world->clock());
  FaultyStore faults(*inner);
  faults.play(FaultScript("delay(1s)"));
  const TokenBucket bucket(faults, "api", Quota::per_second(1));
  bucket.try_acquire_then("k", 1, [&](std::error_code error, Decision) { late = error; });
  sluice::asio::sleep_for(
      world->clock(), 1s,
      net::bind_executor(context, [&, counted = Counted(alive)](Error) { woken = true; }));
  context.poll();
  CHECK(alive == 1);
  CHECK_FALSE(late);
  world.reset();
  CHECK(alive == 0);
  CHECK(late == Errc::unknown);
  CHECK(faults.held_back() == 0);
  context.restart();
  context.run();
  CHECK_FALSE(woken);
}

namespace {

using Channel = net::experimental::channel<void(Error, int)>;

template <class Executor>
net::awaitable<void, Executor> hold(Clock& clock, Counted counted, int& woken) {
  const Counted own(counted);
  co_await sluice::asio::sleep_for(clock, 1h);
  ++woken;
}

net::awaitable<void> nest(Clock& clock, Counted counted, int depth, int& woken) {
  const Counted own(counted);
  if (depth > 0) {
    co_await nest(clock, counted, depth - 1, woken);
  } else {
    sluice::asio::Timer timer(co_await net::this_coro::executor, clock);
    timer.expires_after(1h);
    co_await timer.async_wait(net::use_awaitable);
  }
  ++woken;
}

}  // namespace

TEST_CASE("a World that ends destroys every suspended coroutine once and wakes none") {
  int alive = 0;
  int woken = 0;
  {
    World world;
    auto strand = net::make_strand(world);
    for (int i = 0; i < 10; ++i) {
      net::co_spawn(world, hold<net::any_io_executor>(world.clock(), Counted(alive), woken),
                    net::detached);
      net::co_spawn(world, hold<World::Executor>(world.clock(), Counted(alive), woken),
                    net::detached);
      net::co_spawn(strand, nest(world.clock(), Counted(alive), i, woken), net::detached);
      net::co_spawn(world, nest(world.clock(), Counted(alive), i, woken), net::use_future);
      sluice::asio::sleep_for(world.clock(), 1h, [&, counted = Counted(alive)](Error) { ++woken; });
      net::post(strand, [&, counted = Counted(alive)] {
        net::post(world, [&, counted] { ++woken; });
        world.stop();
      });
    }
    world.run_for(1s);
    net::co_spawn(world, hold<net::any_io_executor>(world.clock(), Counted(alive), woken),
                  net::detached);  // has not begun
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
  CHECK(woken == 0);
}

TEST_CASE("a World that ends with channels in use, and connections of coroutines, leaves nothing") {
  int alive = 0;
  int answered = 0;
  {
    World world;
    Channel channel(world, 1);
    for (int i = 0; i < 4; ++i) {
      net::co_spawn(
          world,
          [&, counted = Counted(alive)]() -> net::awaitable<void> {
            co_await channel.async_receive(net::use_awaitable);
            ++answered;
          },
          net::detached);
      net::co_spawn(
          world,
          [&, counted = Counted(alive)]() -> net::awaitable<void> {
            const auto own = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
            const TokenBucket mine(*own, "own", Quota::per_second(1));
            co_await sluice::asio::async_try_acquire(mine, "bob", 1, net::use_awaitable);
            ++answered;
          },
          net::detached);
    }
    world.run_for(1500us);
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
  CHECK(answered == 0);
}

TEST_CASE("a future of what a World never ran is broken, not hung") {
  std::future<void> future;
  {
    World world;
    future = sluice::asio::sleep_for(world.clock(), 1h, net::use_future);
  }
  CHECK_THROWS_AS(future.get(), std::future_error);
}

TEST_CASE("timers that are set when a World ends are not rung") {
  bool rung = false;
  TimerCallback timer_callback([](void* flag) noexcept { *static_cast<bool*>(flag) = true; },
                               &rung);
  TimerCallback other([](void* flag) noexcept { *static_cast<bool*>(flag) = true; }, &rung);
  {
    World world;
    CHECK(world.clock().set_timer(timer_callback, world.now() + 1s) == TimerState::set);
    CHECK(world.clock().set_timer(other, Time::max()) == TimerState::set);
    TimerCallback cancelled([](void* flag) noexcept { *static_cast<bool*>(flag) = true; }, &rung);
    CHECK(world.clock().set_timer(cancelled, world.now() + 1s) == TimerState::set);
    CHECK(world.clock().cancel_timer(cancelled));
    CHECK_FALSE(world.clock().cancel_timer(cancelled));
  }
  CHECK_FALSE(rung);
  CHECK(timer_callback.place == 0);
  CHECK(other.place == 0);
}

namespace {

/// One limiter behind a network, and what became of those who wait for it.
struct RateRig {
  RateRig() { every(3s); }

  void every(Span interval) {
    here.configure("rate", RateType::overall, 1, interval, SpentUnits::forgotten);
  }
  void wait() {
    sluice::asio::async_acquire(
        *rate, "rate", 1, Deadline::never(),
        net::bind_cancellation_slot(
            cancels.emplace_back().slot(),
            net::bind_executor(world.get_executor(), [this](Error error, const Reservation&) {
              ends.emplace_back(error);
            })));
  }

  World world;
  std::unique_ptr<RemoteStore> link = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
  SharedSlidingWindow here{world.store(), "k"};
  std::unique_ptr<SharedSlidingWindow> rate = std::make_unique<SharedSlidingWindow>(*link, "k");
  std::list<net::cancellation_signal> cancels;  // one for each wait
  std::vector<std::error_code> ends;
};

const std::error_code granted;

}  // namespace

TEST_CASE("who waits for a shared sliding window outlives it, and ends with its connection") {
  const Span after = GENERATE(as<Span>{}, 500us, 2500us, 1s);  // it is read, asked, waited for
  const bool setting_is_old = GENERATE(false, true);
  const bool ends_connection = GENERATE(false, true);
  RateRig rig;
  if (setting_is_old) {
    rig.wait();
    rig.world.run();
    rig.every(5s);
  }
  rig.wait();
  rig.wait();
  rig.world.run_for(after);
  rig.rate.reset();
  if (ends_connection) rig.link.reset();
  rig.world.run();
  REQUIRE(rig.ends.size() == (setting_is_old ? 3 : 2));
  CHECK(rig.ends.back() == (ends_connection ? make_error_code(Errc::shut_down) : granted));
}

TEST_CASE("a wait for a shared sliding window that has gone is cancelled, and gives back") {
  const std::error_code aborted = Error(net::error::operation_aborted);
  std::size_t cancelled = 0;
  for (Span at = 2990ms; at < 3010ms; at += 500us) {  // the second is granted after 3 s
    RateRig rig;
    rig.wait();
    rig.wait();
    rig.world.run_for(at);
    rig.rate.reset();
    rig.cancels.back().emit(net::cancellation_type::all);
    rig.world.run_for(100ms);
    REQUIRE(rig.ends.size() == 2);
    const bool gave_back = rig.ends.back() == aborted;
    CHECK((gave_back || rig.ends.back() == granted));
    cancelled += gave_back ? 1U : 0U;
    if (at > 3s) CHECK(rig.here.peek("rate").remaining == (gave_back ? 1 : 0));
  }
  CHECK(cancelled > 20);
  CHECK(cancelled < 40);
}
