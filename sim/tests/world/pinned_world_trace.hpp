// The traces of a simulated half minute of a World: callers of a service that has two servers, a
// brown-out and a limit in a store behind a network. It is the same in every build.
#pragma once

#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <memory>

#include "sluice/asio/calls.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/asio/verbs.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::test {

/// A service with a limit, called by workers that give up after a while.
class TracedService {
 public:
  enum class Note : std::uint32_t { asked, admitted, served, gave_up };

  explicit TracedService(const sim::WorldOptions& options)
      : world_(options), servers_(world_, 2, sim::Discipline::priority) {
    using namespace std::chrono_literals;
    const sim::Link link{sim::Delay::log_normal(250us, 800us), sim::Delay::uniform(100us, 900us)};
    for (std::uint32_t worker = 0; worker < 20; ++worker) {
      world_.spawn(work(worker, world_.connect(link)));
    }
    world_.spawn([this]() -> boost::asio::awaitable<void> {
      co_await sluice::asio::sleep_for(world_.clock(), 10s);
      servers_.set_servers(1);
      co_await sluice::asio::sleep_for(world_.clock(), 5s);
      servers_.set_servers(2);
    });
  }

  [[nodiscard]] sim::World& world() noexcept { return world_; }

 private:
  void note(std::uint32_t worker, Note what, Word value) {
    world_.note(worker, static_cast<std::uint32_t>(what), static_cast<std::uint64_t>(value));
  }

  boost::asio::awaitable<void> work(std::uint32_t worker, std::unique_ptr<sim::RemoteStore> store) {
    using namespace std::chrono_literals;
    const TokenBucket bucket(*store, "service", Quota::per_second(100).burst(5));
    SeededRng rng = sim::stream(world_.seed(), worker, 1);
    const sim::Delay pause = sim::Delay::exponential(100ms);
    const sim::Delay service = sim::Delay::exponential(20ms);
    for (;;) {
      co_await sluice::asio::sleep_for(world_.clock(), pause.sample(rng));
      note(worker, Note::asked, 0);
      const Decision decision =
          co_await sluice::asio::async_try_acquire(bucket, "all", 1, boost::asio::use_awaitable);
      note(worker, Note::admitted, decision.remaining);
      if (!decision) continue;
      const sim::AcquireOptions options{static_cast<int>(worker % 3), world_.now() + 300ms};
      const sim::Resource::Server server = co_await servers_.acquire(options);
      if (server) co_await sluice::asio::sleep_for(world_.clock(), service.sample(rng));
      note(worker, server ? Note::served : Note::gave_up, 0);
    }
  }

  sim::World world_;
  sim::Resource servers_;
};

[[nodiscard]] inline std::uint64_t trace_of(const sim::WorldOptions& options) {
  TracedService service(options);
  service.world().run_for(std::chrono::seconds{30});
  return service.world().trace();
}

struct PinnedWorldTrace {
  sim::WorldOptions options;
  std::uint64_t trace;
};

inline const std::array<PinnedWorldTrace, 2> pinned_world_traces{{
    {{.seed = 1}, 0xaadc2962364ef7fc},
    {{.seed = 1, .shuffle_ties = true}, 0x69cfd11677fcf298},
}};

}  // namespace sluice::test
