// The virtual store: deterministic decisions on a clock that a test or a simulation moves.
#pragma once

#include <memory>

#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice {

/// Makes a store that decides calls in their order, at the time that `clock` shows, and answers
/// before execute() returns. It depends on no real time, address or thread, so that the same calls
/// always give the same answers. Thread-safe: a mutex serialises the calls. Memory grows with the
/// number of keys that are not idle. Once the clock has ended, calls fail with Errc::shut_down.
[[nodiscard]] NewStore<Store> make_virtual_store(VirtualClock& clock);

}  // namespace sluice
