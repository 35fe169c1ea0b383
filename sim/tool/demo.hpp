// The parts of sluice-demo. Each prints what it does and returns an exit code.
// Threading: main's thread calls them; run_threads() and run_processes() start their own.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::tool {

struct DemoOptions {
  std::uint64_t seed = 1;
  std::uint32_t minutes = 10;
  std::uint32_t workers = 20;
  std::string report = "sluice-report";  ///< the folder of the outage's report
};

/// The simulated fleet in four rows: no limiter, one per process, one shared, the ideal.
[[nodiscard]] int run_fleets(const DemoOptions& options);

/// An outage of the store under each failure policy, with its report in a folder of its own.
[[nodiscard]] int run_outage(const DemoOptions& options);

/// Real threads that share one key of a memory store, for a second.
[[nodiscard]] int run_threads();

/// Real processes that share one key of a redis-server, which is started for it and stopped again.
/// REQUIRES: the process has one thread.
[[nodiscard]] int run_processes();

}  // namespace sluice::tool
