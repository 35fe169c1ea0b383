#include "sluice/sim/world.hpp"

#include <algorithm>
#include <boost/asio/detail/scheduler.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/extend/timer_callback.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::sim {
namespace {

constexpr std::uint64_t delays_of_connections = 0x6c696e6b;  // a purpose of stream()

/// Every wait in real time on a context creates Asio's scheduler, for which Asio has no public
/// name.
bool has_real_io(boost::asio::execution_context& context) {
  return boost::asio::has_service<boost::asio::detail::scheduler>(context);
}

}  // namespace

void detail::Loop::enqueue(Posted& posted) {
  if (running() && !running_here()) {
    posted.finish(false);
    throw std::logic_error("a World was used on a thread while another one runs it");
  }
  try {
    timeline_.post(&run_posted, &posted);
  } catch (...) {
    posted.finish(false);
    throw;
  }
}

World::World(const WorldOptions& options)
    : seed_(options.seed),
      clock_(*this, *this, options.start, options.seed),
      timeline_(clock_),
      loop_(*this, timeline_),
      store_(make_virtual_store(clock_)),
      recycling_(1) {
  timeline_.limit_instant(options.events_per_instant);
  timeline_.fetch_ahead(&LoopClock::fetch);
  if (options.shuffle_ties) timeline_.shuffle_ties(options.seed);
}

// A connection that a coroutine owns may own the coroutine, by a pending answer: the World must
// know it to destroy both. One that outlives the World is disconnected from it.
class World::Connection final : public RemoteStore, public Listed {
 public:
  Connection(World& world, Store& inner, const sim::Link& link)
      : RemoteStore(world.timeline_, inner, link,
                    stream(world.seed_, world.connections_made_++, delays_of_connections)) {
    world.connections_.next()->push_back(*this);
  }

  [[nodiscard]] Clock& clock() noexcept override {
    return stopped_ ? *stopped_ : RemoteStore::clock();
  }

  /// The World ends.
  void cut_off(Time now) noexcept {
    unlink();
    close();
    stopped_.emplace(now);
  }

 private:
  std::optional<VirtualClock> stopped_;  // stands still
};

World::~World() {
  // First: objects that are destroyed now call no store, which may have been destroyed.
  clock_.life_.end();
  // Answered handlers are only queued, to be destroyed.
  while (!connections_.alone()) static_cast<Connection*>(connections_.next())->cut_off(now());
  while (!resources_.alone()) static_cast<detail::ResourceCore*>(resources_.next())->leave_world();
  shutdown();
  drain();
  destroy();
  drain();  // handlers that the services released
}

/// Destroying one handler may release others, which are removed in turn.
void World::drain() {
  timeline_.drain([](Timeline::Action action, void* context, std::uint64_t) {
    if (action == &detail::Loop::run_posted) {
      static_cast<detail::Posted*>(context)->finish(false);
    } else if (action == &LoopClock::finish_wait) {
      static_cast<TimedLoop::Wait*>(context)->finish(false);
    } else if (action == &LoopClock::ring_timer) {
      static_cast<TimerCallback*>(context)->end();
    }
  });
}

template <class Body>
std::uint64_t World::inside(Body body) {
  if (loop_.running()) throw std::logic_error("a World is run while it runs");
  if (clock_.now() != timeline_.now()) {
    throw std::logic_error("a World stands at " + std::to_string(to_word(timeline_.now())) +
                           " us, but its clock was moved to " +
                           std::to_string(to_word(clock_.now())) + " us");
  }
  const std::uint64_t before = timeline_.events();
  recycling_.restart();
  boost::asio::post(recycling_, [&] {
    struct Running {
      detail::Loop& loop;
      ~Running() { loop.leave(); }
    } running{loop_};
    loop_.enter();
    body();
    loop_.rethrow_captured();
  });
  recycling_.run_one();
  if (has_real_io(*this)) {
    throw std::logic_error(
        "a real timer or socket was made on a World, where time is virtual: wait with "
        "sluice::asio::Timer or sleep_for on the clock of the World");
  }
  return timeline_.events() - before;
}

std::uint64_t World::run_events(Time end) {
  return inside([&] {
    while (!stopped() && timeline_.step(end)) loop_.rethrow_captured();
  });
}

std::uint64_t World::run() { return run_events(to_time(word_limit)); }

std::uint64_t World::run_until(Time end) {
  if (end < now() || to_word(end) > word_limit) {
    throw std::out_of_range("a World at " + std::to_string(to_word(now())) +
                            " us cannot run until " + std::to_string(to_word(end)) + " us");
  }
  const std::uint64_t count = run_events(end);
  if (!stopped()) timeline_.run_until(end);  // no events are left: moves the clock
  return count;
}

std::uint64_t World::run_for(Span span) {
  // Clamped to [-2^52, 2^52 + 1], so that the sum cannot overflow, and is out of range if `span`
  // was.
  return run_until(now() + std::clamp(span, Span{-word_limit}, Span{word_limit + 1}));
}

std::uint64_t World::run_event(Time end) {
  return inside([&] {
    if (!stopped()) timeline_.step(end);
  });
}

std::uint64_t World::run_one() { return run_event(to_time(word_limit)); }

std::uint64_t World::poll() { return run_events(now()); }

std::unique_ptr<RemoteStore> World::connect(Store& inner, const Link& link) {
  return std::make_unique<Connection>(*this, inner, link);
}

}  // namespace sluice::sim
