// What doctor finds out about a server, from what it replies. Pure functions.
#pragma once

#include <map>
#include <optional>
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
/// `ahead`: the server's clock minus that of this machine; empty if the server does not tell.
[[nodiscard]] Check check_clock(const std::optional<Span>& ahead);
/// `median` and `longest` of replies to TIME.
[[nodiscard]] Check check_latency(Span median, Span longest);
/// `version`: as the server told it at the login, which refuses one that is too old.
[[nodiscard]] Check check_version(const std::string& version);

/// The commands that a user may not use.
struct Denied {
  std::vector<std::string> needed{};    ///< of those that calls need
  std::vector<std::string> wake_ups{};  ///< of those for wake-ups
  std::vector<std::string> loading{};   ///< of those that load the library of functions
};
/// `denied`: empty if the server does not tell.
[[nodiscard]] Check check_rights(const std::string& user, const std::optional<Denied>& denied);

}  // namespace sluice::tool
