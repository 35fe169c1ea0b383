// World: a Boost.Asio execution context in virtual time. Coroutines, timers, limiters, stores and
// the network between them run through a day in a second, in a reproducible order. Threading: one
// thread runs a World and uses it meanwhile; several Worlds are independent.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/wait.hpp"
#include "sluice/sim/detail/executor.hpp"
#include "sluice/sim/detail/loop.hpp"
#include "sluice/sim/detail/loop_clock.hpp"
#include "sluice/sim/detail/spawn.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/sim/timeline.hpp"
#include "sluice/store.hpp"

namespace sluice::sim {

namespace detail {
class ResourceCore;
}

struct WorldOptions {
  std::uint64_t seed = 1;  ///< of all random numbers in the World
  /// Runs events of one instant in an order drawn from the seed instead of the order of scheduling,
  /// which reveals dependences on an unspecified order.
  bool shuffle_ties = false;
  Time start = VirtualClock::default_start;
  /// A run throws EndlessInstant behind so many events of one instant; 1 or more.
  std::uint64_t events_per_instant = Timeline::standard_instant;
};

/// An execution context like boost::asio::io_context, in virtual time. Code for any execution
/// context runs here unchanged:
///
///     boost::asio::awaitable<void> worker(const TokenBucket& bucket, Clock& clock) {
///       while (co_await ask(bucket)) co_await sluice::asio::sleep_for(clock, 1s);
///     }
///
///     World world({.seed = 7});
///     const TokenBucket bucket(world.store(), "api", Quota::per_second(10));
///     world.spawn(worker(bucket, world.clock()));
///     world.run_for(1h);              // takes milliseconds of real time
///
/// Posted functions run at the instant of the post, after everything that is already due then; time
/// advances when nothing is left to do at an instant. A coroutine of `awaitable<T,
/// World::Executor>` is somewhat faster than one of `awaitable<T>` (bench/README.md).
///
/// Wait on clock() (sluice::asio::Timer, sleep_for, the waits of the limiters). Real timers and
/// sockets do not see virtual time: if one was made on a World, running the World throws
/// std::logic_error, because its user would wait for ever.
///
/// Random numbers that the library draws without a generator of the caller come from the seed as
/// well, through Clock::rng() of clock().
///
/// The destructor closes the connections, then destroys all pending waits, including coroutines,
/// without calling them. Nothing is refunded or released: from its first step on, waits and leases
/// call no store. So connections, stores in front of them, limiters, renewers and leases may be
/// destroyed before or after the World, in any order that their own contracts allow. Afterwards a
/// connection fails with Errc::shut_down and its clock stands still; clock() and store() are
/// destroyed.
///
/// REQUIRES: only events of the World move its clock.
class World : public boost::asio::execution_context {
 public:
  using Executor = WorldExecutor<std::allocator<void>, false>;
  using executor_type = Executor;

  /// Throws std::invalid_argument if `start` is outside [0, word_limit], or if `events_per_instant`
  /// is 0.
  explicit World(const WorldOptions& options = {});
  ~World();

  [[nodiscard]] Executor get_executor() noexcept { return {loop_, {}, false, false}; }

  /// Starts a coroutine. An exception that leaves it leaves run(), and the next run() goes on
  /// behind it; in all else this is co_spawn() on the World: inside the run loop, the coroutine
  /// runs at once until its first wait, otherwise it starts when the World runs.
  template <class Ex>
  requires std::is_convertible_v<Executor, Ex>
  void spawn(boost::asio::awaitable<void, Ex> coroutine) {
    boost::asio::co_spawn(get_executor(), std::move(coroutine), detail::Rethrow{});
  }
  /// The same for a callable that returns a coroutine. It lives as long as that does, and so do the
  /// captures of a lambda:
  ///
  ///     world.spawn([&, i]() -> boost::asio::awaitable<void> { ... });
  template <detail::MakesCoroutine F>
  void spawn(F&& function) {
    boost::asio::co_spawn(get_executor(), std::forward<F>(function), detail::Rethrow{});
  }

  /// Runs until no event is left, or until stop(); returns the number of events. Waits that remain
  /// wait for something that never happens: see outstanding_work().
  ///
  /// This and the following functions throw what a handler throws, and EndlessInstant if time
  /// stands still (WorldOptions::events_per_instant), and may be called again then; they throw
  /// std::logic_error if the World is already running, if its clock was moved, or if a real timer
  /// or socket was made on it.
  std::uint64_t run();

  /// Runs every event up to and including `end`, then sets the clock to `end` unless it was
  /// stopped. Throws std::out_of_range if `end` is before now() or beyond word_limit.
  std::uint64_t run_until(Time end);
  /// run_until(), counted from now().
  std::uint64_t run_for(Span span);

  /// Runs the next event at any time; 0 if there is none.
  std::uint64_t run_one();

  /// Runs the events that are due now; time stands still.
  std::uint64_t poll();

  /// Makes a run return after the current event, and the following runs at once, until restart().
  /// Callable from any thread.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  void restart() noexcept { stopped_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

  [[nodiscard]] Time now() const noexcept { return timeline_.now(); }
  /// The clock for limiters and coroutines, and for other stores in the World. A thread that blocks
  /// on it (outside the run loop) runs the World meanwhile.
  [[nodiscard]] VirtualClock& clock() noexcept { return clock_; }
  /// A virtual store on clock().
  [[nodiscard]] Store& store() noexcept { return *store_; }

  /// One client's connection to a store, through a simulated network. Every connection draws its
  /// delays from its own stream. It may belong to a coroutine of the World, and may outlive the
  /// World. REQUIRES: `inner` answers at once, as RemoteStore requires, and outlives the connection
  /// or the World.
  [[nodiscard]] std::unique_ptr<RemoteStore> connect(Store& inner, const Link& link);
  /// The same to store().
  [[nodiscard]] std::unique_ptr<RemoteStore> connect(const Link& link) {
    return connect(store(), link);
  }

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// The timeline, on which models without coroutines schedule their events.
  [[nodiscard]] Timeline& timeline() noexcept { return timeline_; }

  /// A hash of the run so far, of every event and every note, the same in every build: see
  /// Timeline::trace().
  [[nodiscard]] std::uint64_t trace() const noexcept { return timeline_.trace(); }
  /// Adds to the trace what `entity` of a model has done; `kind` and `value` are the model's.
  void note(std::uint32_t entity, std::uint32_t kind, std::uint64_t value) {
    timeline_.note(entity, kind, value);
  }
  /// Shows each step of the trace to a function, which finds the first one in which two runs
  /// differ: see Timeline::observe().
  void observe(TraceObserver observer, void* context) noexcept {
    timeline_.observe(observer, context);
  }

  /// The number of events that have run.
  [[nodiscard]] std::uint64_t events() const noexcept { return timeline_.events(); }
  /// The number of executors with outstanding_work.tracked, which incomplete operations hold: 0
  /// after run() means that every coroutine has ended.
  [[nodiscard]] std::size_t outstanding_work() const noexcept { return loop_.work(); }

 private:
  friend class LoopClock;
  friend class detail::ResourceCore;
  class Connection;
  using Listed = sluice::asio::detail::Link;

  template <class Body>
  std::uint64_t inside(Body body);
  std::uint64_t run_events(Time end);
  std::uint64_t run_event(Time end);
  void drain();

  std::uint64_t seed_;
  std::uint64_t connections_made_ = 0;
  Listed connections_;  // the newest first
  Listed resources_;    // the same
  std::atomic<bool> stopped_{false};
  LoopClock clock_;
  Timeline timeline_;
  detail::Loop loop_;
  std::unique_ptr<Store> store_;
  // Asio recycles the frames of coroutines on threads that run an io_context.
  boost::asio::io_context recycling_;
};

}  // namespace sluice::sim
