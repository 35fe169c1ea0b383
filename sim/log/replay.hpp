// A log replayed in virtual time through the production limiter. Threading: one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/log/access_log.hpp"
#include "sluice/quota.hpp"

namespace sluice::tool {

/// A quota as the command line names it.
struct NamedQuota {
  std::string name;  ///< "30/min"
  Quota quota;
};

/// Reads "30/min" or "30/min:10", where 10 is the burst. `burst` is taken if the text has none; 0
/// leaves it to Quota. Throws std::invalid_argument.
[[nodiscard]] NamedQuota parse_named_quota(std::string_view text, Word burst);

/// What became of the requests under one quota for each client.
struct ReplayResult {
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t clients_refused = 0;      ///< clients of which any request was refused
  std::vector<std::uint64_t> refused_of;  ///< of each client, as AccessLog::clients
};

/// Each request asks a sluice::TokenBucket on a virtual store, under its client's key, at the time
/// of its stamp. Requests of the same second are decided at the same instant. `progress` is told
/// how many requests are done, now and then. Throws std::system_error if the store fails.
[[nodiscard]] ReplayResult replay(const AccessLog& log, const Quota& quota,
                                  const std::function<void(std::uint64_t)>& progress = {});

/// The minute of the clock, in UTC, in which the most requests came; the first of equal ones.
struct BusiestMinute {
  std::int64_t start = 0;  ///< second since 1970
  std::uint64_t requests = 0;
};
[[nodiscard]] BusiestMinute busiest_minute(const AccessLog& log);

/// How many requests each client made, as AccessLog::clients.
[[nodiscard]] std::vector<std::uint64_t> requests_of(const AccessLog& log);

}  // namespace sluice::tool
