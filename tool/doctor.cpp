// See doctor.hpp. docs/redis.md says what a store promises under which configuration.
#include "tool/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/text.hpp"

namespace sluice::tool {
namespace {

/// After a failover all times move by the difference of two clocks.
constexpr Span largest_difference = std::chrono::milliseconds{500};
/// A tenth of RedisOptions::call_timeout.
constexpr Span longest_latency = std::chrono::milliseconds{50};
constexpr std::uint64_t nearly_full = 90;  // percent

/// A server that does not tell may be set up in any way.
Check not_told(const char* name, const std::string& right) {
  return {name, false, "not told", "Grant the user " + right + ", or ask who runs the server."};
}

std::string_view text_in(const Info& info, std::string_view name) {
  const auto found = info.find(name);
  return found == info.end() ? std::string_view() : found->second;
}

std::uint64_t number_in(const Info& info, std::string_view name) {
  const std::string_view text = text_in(info, name);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace

Info read_info(std::string_view text) {
  Info info;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && line[0] != '#') {
      info[std::string(line.substr(0, colon))] = line.substr(colon + 1);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return info;
}

Check check_role(const Info& info) {
  const std::string role(text_in(info, "role"));
  if (role.empty()) return not_told("role", "+info");
  if (text_in(info, "loading") == "1") {
    return {"role", false, role + ", which loads its data", "Wait until it has loaded them."};
  }
  if (role == "slave") {
    return {"role", false, "a replica, which refuses every call that writes",
            "Name the master, or the Sentinels, in the URL."};
  }
  return {"role", true, role};
}

Check check_eviction(const Info& info) {
  const std::string policy(text_in(info, "maxmemory_policy"));
  const std::uint64_t evicted = number_in(info, "evicted_keys");
  const bool is_bounded = number_in(info, "maxmemory") > 0;
  if (policy.empty()) return not_told("eviction", "+info");
  if (evicted > 0) {
    return {"eviction", false,
            fmt::format("{}; {} evicted, each of which may have been a limit in use", policy,
                        plural(evicted, "key")),
            "Set maxmemory-policy noeviction, and give the server more memory."};
  }
  if (policy != "noeviction" && policy.find("volatile") == std::string::npos && !is_bounded) {
    return {"eviction", false, policy + ", without effect as maxmemory is 0",
            "Set maxmemory-policy noeviction before somebody sets maxmemory."};
  }
  if (policy != "noeviction") {
    return {"eviction", false, policy + ": a key that is evicted is a limit that starts anew",
            "Set maxmemory-policy noeviction."};
  }
  return {"eviction", true, policy + ", no key evicted"};
}

Check check_memory(const Info& info) {
  const std::uint64_t used = number_in(info, "used_memory");
  const std::uint64_t most = number_in(info, "maxmemory");
  if (text_in(info, "used_memory").empty()) return not_told("memory", "+info");
  const std::string text = fmt::format("{} MB", thousands(used / 1'000'000));
  if (most == 0) return {"memory", true, text + " used, without a bound"};
  const std::string of = fmt::format("{} of {} MB used", text, thousands(most / 1'000'000));
  if (used < most / 100 * nearly_full) return {"memory", true, of};
  return {"memory", false, of + ": calls will fail with out_of_memory",
          "Raise maxmemory, or move other data to another server."};
}

Check check_persistence(const Info& info, std::string_view appendfsync) {
  for (const char* const name : {"aof_last_write_status", "rdb_last_bgsave_status"}) {
    if (text_in(info, name) == "err") {
      return {"persistence", false, fmt::format("{} is err: the server refuses to write", name),
              "Look into the server's log and at its disk."};
    }
  }
  if (text_in(info, "aof_enabled").empty()) return not_told("persistence", "+info");
  if (text_in(info, "aof_enabled") != "1") {
    return {"persistence", false, "no append-only file: a server that restarts has lost charges",
            "Set appendonly yes, unless limits may start anew."};
  }
  return {"persistence", true,
          fmt::format("append-only file{}", appendfsync.empty()
                                                ? std::string()
                                                : fmt::format(", appendfsync {}", appendfsync))};
}

Check check_replicas(const Info& info, std::string_view min_replicas) {
  const std::uint64_t replicas = number_in(info, "connected_slaves");
  if (text_in(info, "connected_slaves").empty()) return not_told("replicas", "+info");
  if (replicas == 0) return {"replicas", true, "none"};
  const std::string text = plural(replicas, "replica");
  if (min_replicas != "0") {
    return {"replicas", true,
            min_replicas.empty() ? text
                                 : fmt::format("{}, min-replicas-to-write {}", text, min_replicas)};
  }
  return {"replicas", false, text + ": a master that is cut off decides beside its successor",
          "Set min-replicas-to-write 1 and min-replicas-max-lag 1."};
}

Check check_clock(const std::optional<Span>& ahead) {
  if (!ahead) return not_told("clock", "+time");
  const Span away{std::abs(ahead->count())};
  const std::string text =
      fmt::format("{} {} this machine's", duration(away), *ahead < Span{0} ? "behind" : "ahead of");
  if (away <= largest_difference) return {"clock", true, text};
  return {"clock", false, text,
          "Run NTP on both: the server's clock decides, and a failover moves all times."};
}

Check check_latency(Span median, Span longest) {
  const std::string text =
      fmt::format("{} at the median, {} at most", duration(median), duration(longest));
  if (median <= longest_latency) return {"latency", true, text};
  return {"latency", false, text,
          "Move the server nearer, or raise RedisOptions::call_timeout (500 ms)."};
}

Check check_version(const std::string& version) {
  return version.empty() ? not_told("version", "+info") : Check{"version", true, version};
}

Check check_rights(const std::string& user, const std::optional<Denied>& denied) {
  if (!denied) return not_told("rights", "+acl|dryrun");
  const auto& [needed, wake_ups, loading] = *denied;
  if (!needed.empty()) {
    const bool is_of_eval = std::ranges::count(needed, "EVAL") > 0;
    return {"rights", false, fmt::format("{} lacks {}", user, joined(needed)),
            fmt::format("Grant them with ACL SETUSER{}: docs/failures.md has the line.",
                        is_of_eval ? ", or give --functions if the programs call functions" : "")};
  }
  if (!wake_ups.empty()) {
    return {"rights", false,
            fmt::format("{} lacks {}: waiters are not woken", user, joined(wake_ups)),
            "Grant them, if calls wait: docs/failures.md has the line."};
  }
  return {"rights", true,
          fmt::format("{} may do all that the store does{}", user,
                      loading.empty() ? "" : "; another user loads the library of functions")};
}

}  // namespace sluice::tool
