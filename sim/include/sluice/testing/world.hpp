// WorldFixture: a world in virtual time, and for each worker a connection to its store with
// injected faults and a recording under the worker's name.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/sim/world.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/fixture.hpp"
#include "sluice/testing/matchers.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/testing/text.hpp"

namespace sluice::testing {

/// Runs events until none is left. Returns how far time has moved. Throws std::runtime_error after
/// `most` events: something runs for ever; use run_for() for such a world.
inline Span advance_until_idle(sim::World& world, std::size_t most = 10'000'000) {
  const Time start = world.now();
  for (std::size_t events = 0; world.run_one() != 0;) {
    if (++events < most) continue;
    throw std::runtime_error("advance_until_idle: after " + std::to_string(most) +
                             " events, the clock " + to_text(world.now() - start) +
                             " on, the world still has something to do");
  }
  return world.now() - start;
}

/// One worker's connection to the store of a WorldFixture.
class WorldClient {
 public:
  WorldClient(std::unique_ptr<Store> link, Store& inner, Recording& recording,
              sluice::detail::TextArg name)
      : link_(std::move(link)), faults(link_ ? *link_ : inner), store(faults, recording, name) {}

 private:
  std::unique_ptr<Store> link_;

 public:
  FaultyStore faults;    ///< injects faults into this worker's calls
  RecordingStore store;  ///< pass it to the worker
};

/// A base or a member of a test case, as VirtualFixture.
class WorldFixture {
 public:
  explicit WorldFixture(const sim::WorldOptions& options = {}) : world(options) {}

  sim::World world;

  /// Makes a connection that answers at once, or over a network. It lives as long as the fixture.
  WorldClient& client(sluice::detail::TextArg name) {
    return clients_.emplace_back(nullptr, world.store(), recording_, name);
  }
  WorldClient& client(sluice::detail::TextArg name, const sim::Link& link) {
    return clients_.emplace_back(world.connect(link), world.store(), recording_, name);
  }

  /// Records a fault, or its end, for recovers_within().
  void mark(sluice::detail::TextArg text) { recording_.mark(world.now(), text); }
  [[nodiscard]] Trace trace() const { return recording_.trace(); }

 private:
  Recording recording_;
  std::list<WorldClient> clients_;
};

}  // namespace sluice::testing
