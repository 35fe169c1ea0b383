// Traces of calls from files: a CSV file, or the access log of a web server. Threading: TraceFiles
// may be used by any number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/sim/scenario.hpp"

namespace sluice::sim::scenario {

/// The calls of a file: 16 bytes each, shared by all runs.
struct TraceFile {
  std::shared_ptr<const std::vector<ArrivalOptions::Traced>> calls;
  std::uint32_t keys = 0;             ///< different ones
  std::vector<std::string> warnings;  ///< what speaks against taking it for live traffic
};

/// Reads a file. What ends in .csv has lines "t,key" or "t,key,cost" below that header, as
///
///     t,key,cost
///     0,alice,1
///     0.25,bob,3
///
/// where t counts seconds since the start, with decimals of which six are read, and never goes
/// back, and cost is 1 to 1,000,000. Empty lines and those that begin with "#" are comments. Any
/// other file is an access log; see sim/log/access_log.hpp. Its first request is the start. Throws
/// std::invalid_argument with file, line, what is wrong and what helps.
[[nodiscard]] TraceFile read_trace(const std::filesystem::path& file);

/// Reads each file once.
class TraceFiles {
 public:
  /// Throws as read_trace() does.
  [[nodiscard]] TraceFile read(const std::string& file);

 private:
  std::mutex mutex_;
  std::map<std::string, TraceFile> files_;  // guarded by mutex_
};

}  // namespace sluice::sim::scenario
