// The cases of the benchmark and what each is compared with.
#pragma once

#include <vector>

#include "bench/redis/rig.hpp"

namespace sluice::bench {

/// Each returns its comparisons. REQUIRES: the rig outlives the benchmarks.
std::vector<Comparison> register_server_cases(Rig& rig);
std::vector<Comparison> register_lease_cases(Rig& rig);
std::vector<Comparison> register_client_cases(Rig& rig);
std::vector<Comparison> register_window_cases(Rig& rig);
/// After those of the server, the leases and the windows, which it compares with.
std::vector<Comparison> register_algorithm_cases(Rig& rig);

}  // namespace sluice::bench
