// The cases of the benchmark and what is claimed of them.
#pragma once

#include <vector>

#include "bench/redis/rig.hpp"

namespace sluice::bench {

/// Each returns its claims. REQUIRES: the rig outlives the benchmarks.
std::vector<Claim> register_server_cases(Rig& rig);
std::vector<Claim> register_lease_cases(Rig& rig);
std::vector<Claim> register_client_cases(Rig& rig);
std::vector<Claim> register_window_cases(Rig& rig);
/// After those of the server, the leases and the windows, which it compares with.
std::vector<Claim> register_algorithm_cases(Rig& rig);

}  // namespace sluice::bench
