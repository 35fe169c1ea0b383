// A Boost.Asio execution context whose run loop is virtual time: coroutines, timers, limiters,
// stores and the network between them live through a day in a second, in an order that repeats.
// Threading: one thread runs a World and uses it meanwhile; several Worlds are independent.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>

#include "sluice/sim/remote_store.hpp"
#include "sluice/sim/timeline.hpp"
#include "sluice/sim/world/executor.hpp"
#include "sluice/sim/world/loop.hpp"
#include "sluice/sim/world/loop_clock.hpp"
#include "sluice/store.hpp"

namespace sluice::sim {

struct WorldOptions {
  std::uint64_t seed = 1;  ///< of everything that is drawn in the World
  /// Runs events of one instant in an order drawn from the seed instead of the order in which they
  /// were scheduled: what depends on an order that nothing promises shows itself under some seed.
  bool shuffle_ties = false;
  Time start = VirtualClock::default_start;
};

/// What io_context is to real time. Whatever runs on an execution context runs here unchanged:
///
///     boost::asio::awaitable<void> worker(const TokenBucket& bucket, Clock& clock) {
///       while (co_await ask(bucket)) co_await sluice::asio::sleep_for(clock, 1s);
///     }
///
///     World world({.seed = 7});
///     const TokenBucket bucket(world.store(), "api", Quota::per_second(10));
///     boost::asio::co_spawn(world, worker(bucket, world.clock()), boost::asio::detached);
///     world.run_for(1h);              // returns when the hour is over, in milliseconds
///
/// Functions that are posted run at the instant at which they were posted, behind what is due then
/// already; time moves on when nothing is left to do at an instant. A coroutine of
/// `awaitable<T, World::Executor>` is somewhat faster than one of `awaitable<T>` (bench/README.md).
///
/// Wait on clock() (sluice::asio::Timer, sleep_for, the waits of the limiters). Real timers and
/// sockets do not see virtual time: after one was made on a World, running the World throws
/// std::logic_error instead of leaving its user to wait for it.
///
/// Draws: what the library draws for those who gave it no generator comes from the seed as well, on
/// clock(): Clock::rng().
///
/// The end: the destructor cuts the connections off, then destroys what waits, coroutines included,
/// and calls none of it. Nothing is given back: from its first step on, waits and leases ask no
/// store. So connections, stores in front of them, limiters, renewers and leases may end before the
/// World or after it, in any order among themselves that their own contracts allow. Afterwards a
/// connection answers Errc::shut_down and its clock stands still; clock() and store() are gone.
///
/// REQUIRES: nothing but events of the World moves its clock.
class World : public boost::asio::execution_context {
 public:
  using Executor = WorldExecutor<std::allocator<void>, false>;
  using executor_type = Executor;

  /// Throws std::invalid_argument if `start` lies outside [0, word_limit].
  explicit World(const WorldOptions& options = {});
  ~World();

  [[nodiscard]] Executor get_executor() noexcept { return {loop_, {}, false, false}; }

  /// Runs until nothing is left, or until stop(); returns the number of events. What still waits
  /// then, waits for something that nobody will do: see outstanding_work().
  ///
  /// Every function of this kind throws what a handler throws, and may be called again then; it
  /// throws std::logic_error if the World is running already, if its clock was moved, or if a real
  /// timer or socket was made on it.
  std::uint64_t run();

  /// Runs every event up to and including `end`, then stands at `end` unless it was stopped. Throws
  /// std::out_of_range if `end` lies before now() or beyond word_limit.
  std::uint64_t run_until(Time end);
  /// run_until(), counted from now().
  std::uint64_t run_for(Span span);

  /// Runs the next event, wherever in time; 0 if there is none.
  std::uint64_t run_one();

  /// Runs what is due now; time stands still.
  std::uint64_t poll();

  /// Makes a run return after the present event, and the next ones at once, until restart(). May be
  /// called from any thread.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  void restart() noexcept { stopped_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

  [[nodiscard]] Time now() const noexcept { return timeline_.now(); }
  /// What limiters and coroutines wait on. Make other stores with it too. A thread that blocks on
  /// it (outside the run loop) runs the World meanwhile.
  [[nodiscard]] VirtualClock& clock() noexcept { return clock_; }
  /// A virtual store on clock().
  [[nodiscard]] Store& store() noexcept { return *store_; }

  /// One client's connection to a store, through a simulated network. Every connection draws its
  /// delays from a stream of its own. It may belong to a coroutine of the World, and may outlive
  /// the World. REQUIRES: `inner` answers at once, as RemoteStore says, and outlives the connection
  /// or the World.
  [[nodiscard]] std::unique_ptr<RemoteStore> connect(Store& inner, const Link& link);
  /// The same to store().
  [[nodiscard]] std::unique_ptr<RemoteStore> connect(const Link& link) {
    return connect(store(), link);
  }

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Where models that are not coroutines schedule their events.
  [[nodiscard]] Timeline& timeline() noexcept { return timeline_; }

  /// Events that have run.
  [[nodiscard]] std::uint64_t events() const noexcept { return timeline_.events(); }
  /// Executors with outstanding_work.tracked, as they are kept by what is not complete: 0 after
  /// run() means that every coroutine has ended.
  [[nodiscard]] std::size_t outstanding_work() const noexcept { return loop_.work(); }

 private:
  friend class LoopClock;
  class Connection;

  template <class Body>
  std::uint64_t inside(Body body);
  std::uint64_t run_events(Time end);
  std::uint64_t run_event(Time end);
  void drain();

  std::uint64_t seed_;
  std::uint64_t connections_made_ = 0;
  Connection* connections_ = nullptr;  // a list
  std::atomic<bool> stopped_{false};
  LoopClock clock_;
  Timeline timeline_;
  detail::Loop loop_;
  std::unique_ptr<Store> store_;
  // Asio recycles the frames of coroutines on threads that run an io_context.
  boost::asio::io_context recycling_;
};

}  // namespace sluice::sim
