// One test body on every store, in virtual time: exact integers on the virtual store, the memory
// store and a real redis-server whose wall clock is the test's.
// Threading: the body may use the store from any thread; the clock is moved while no call is under
// way, because a server reads its clock when the call arrives.
#pragma once

#include <functional>

#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::test {

enum class Stores : unsigned {
  virtual_time = 1,
  memory = 2,
  local = virtual_time | memory,
  redis = 4,
  redis_and_virtual = redis | virtual_time,
  all = local | redis,
};

/// Those that the environment chooses; all, if it is silent.
[[nodiscard]] Stores chosen_stores();

/// Runs `body` on a fresh store of each kind, each with a clock of its own at
/// VirtualClock::default_start; store.clock() is that clock. A failed assertion names the store.
/// Redis is left out by SLUICE_NO_REDIS=1, which is reported, and in builds without it. The
/// environment may choose: SLUICE_TEST_STORES=local, all but Redis; SLUICE_TEST_STORES=redis, Redis
/// and before it virtual time, with which a test may compare it. Throws std::invalid_argument if it
/// chooses anything else.
void for_each_store(const std::function<void(Store& store, VirtualClock& clock)>& body,
                    Stores stores = Stores::all);

}  // namespace sluice::test
