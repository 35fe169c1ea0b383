// Web server logs in the Common or the Combined Log Format, read strictly and within bounds.
// Threading: one thread for each object.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/log/lines.hpp"

namespace sluice::tool {

/// What one line says. Views into the line.
struct LogLine {
  std::string_view client;      ///< 1 to 255 printable characters
  std::int64_t second = 0;      ///< since 1970-01-01 00:00 UTC, in years 1970 to 2111
  std::int64_t utc_offset = 0;  ///< of the stamp, in seconds
  bool damaged_tail = false;    ///< what follows the bytes does not read
  bool virtual_host = false;    ///< a field before the client names the server
  bool forwarded = false;       ///< the client is the first of X-Forwarded-For
};

/// Reads `client ident user [17/May/2015:10:05:03 +0000] "request" status bytes`, and whatever
/// bare or quoted fields follow (the Combined format has two: referer and user agent). A line that
/// is cut or garbled behind `bytes` was a request all the same, whose client and time are known:
/// it is read, with damaged_tail.
///
/// Before the client may stand the virtual host: with a port (Apache's vhost_combined), or any word
/// before an address. The client may be a list of addresses (X-Forwarded-For), also in quotes; so
/// may be a quoted field behind `bytes`. The first of the list, without its port, is the client. A
/// line that leaves open who the client is (two addresses, "-", more words before the stamp) is
/// refused, for it would make many clients one, or one many.
///
/// Returns why the line is not that, or null if `line` was filled. O(bytes), no allocation.
[[nodiscard]] const char* parse_log_line(std::string_view text, LogLine& line);

/// One request of a log.
struct LogRequest {
  std::int64_t second;
  std::uint32_t client;  ///< place in AccessLog::clients
};

/// A line that is not a request.
struct UnreadableLine {
  std::uint64_t number;  ///< from 1, counting all lines
  std::string reason;
  std::string excerpt;  ///< how the line begins, printable
};

/// So many unreadable lines are kept to be shown.
inline constexpr std::size_t most_unreadable_shown = 3;

/// A whole log, in memory: 16 bytes a request, and the clients.
struct AccessLog {
  std::vector<LogRequest> requests;  ///< in the order of their stamps; equal stamps as they stood
  std::vector<std::string> clients;
  std::uint64_t lines = 0;          ///< not counting blank ones
  std::uint64_t unreadable = 0;     ///< lines
  std::uint64_t damaged_tails = 0;  ///< requests, see parse_log_line()
  std::uint64_t virtual_hosts = 0;  ///< requests with a virtual host before their client
  std::uint64_t forwarded = 0;      ///< requests whose client X-Forwarded-For names
  std::uint64_t out_of_order = 0;   ///< requests whose stamp lay before one that stood earlier
  std::vector<UnreadableLine> first_unreadable;  ///< at most most_unreadable_shown
  bool one_offset = true;                        ///< every stamp has the same UTC offset
  std::int64_t utc_offset = 0;                   ///< that offset, in seconds; 0 if they differ
};

/// Reads `file` to its end. Throws std::system_error if reading fails, std::length_error beyond
/// 2^32 - 1 requests.
[[nodiscard]] AccessLog read_access_log(std::FILE* file, const LinesRead& progress = {});

}  // namespace sluice::tool
