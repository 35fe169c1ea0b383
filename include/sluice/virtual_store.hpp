// The virtual store: deterministic decisions on a clock that a test or a simulation moves.
#pragma once

#include <memory>

#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice {

/// A store that runs the kernels in the order of the calls, at the time that `clock` shows, and
/// answers before execute() returns. Nothing in it depends on real time, addresses or threads, so
/// the same calls give the same answers always. Thread-safe: calls are put in order by a mutex.
/// Memory grows with the number of keys that are not idle.
/// REQUIRES: the clock outlives the store.
[[nodiscard]] std::unique_ptr<Store> make_virtual_store(VirtualClock& clock);

}  // namespace sluice
