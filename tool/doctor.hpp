// What doctor finds out about a server, from what it replies. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::tool {

/// One thing that was looked at.
struct Check {
  std::string name;
  bool is_fine;
  std::string text;
  std::string advice{};  ///< what to do; empty if it is fine
};
using Checks = std::vector<Check>;

/// The fields of replies to INFO; those that are missing were not told.
using Info = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] Info read_info(std::string_view text);

[[nodiscard]] Check check_role(const Info& info);
[[nodiscard]] Check check_eviction(const Info& info);
[[nodiscard]] Check check_memory(const Info& info);
[[nodiscard]] Check check_persistence(const Info& info, std::string_view appendfsync);
[[nodiscard]] Check check_replicas(const Info& info, std::string_view min_replicas);
/// `ahead`: the server's clock minus that of this machine.
[[nodiscard]] Check check_clock(Span ahead);
/// `median` and `longest` of PINGs.
[[nodiscard]] Check check_latency(Span median, Span longest);
/// `missing`: commands that the user may not use; `optional`: those for wake-ups.
[[nodiscard]] Check check_rights(std::string_view user, const std::vector<std::string>& missing,
                                 const std::vector<std::string>& optional);

}  // namespace sluice::tool
