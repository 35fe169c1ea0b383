// The commands of the operator's tool. Each returns an exit code. Threading: main's thread.
#pragma once

#include <string>
#include <vector>

#include "sluice/redis/redis_options.hpp"
#include "tool/output.hpp"

namespace sluice::tool {

/// Exit codes, beside those of sluice-sim's command line.
inline constexpr int fine = 0;
inline constexpr int objected = 1;     ///< doctor found something, a request would be refused
inline constexpr int bad_input = 2;    ///< also an answer other than yes
inline constexpr int unreachable = 3;  ///< no server, or it refuses the login

/// What all commands share.
struct Session {
  RedisOptions redis{};
  std::string url{};  ///< without the password
  Style style{};
  Given given{};
};

int list_keys(const Session& session, const ScanOptions& options);
int show_key(const Session& session, const std::string& key);
int peek_key(const Session& session, const std::string& key);

struct TopOptions {
  ScanOptions scan{};
  std::size_t most = 10;
};
int top_keys(const Session& session, const TopOptions& options);

struct WatchOptions {
  Span interval = std::chrono::seconds{1};
  std::size_t times = 0;  ///< 0: until Ctrl-C
};
int watch_key(const Session& session, const std::string& key, const WatchOptions& options);

/// A change of one key. `yes`: nobody is asked.
int reset_key(const Session& session, const std::string& key, bool yes);
int block_key(const Session& session, const std::string& key, Span span, bool yes);
int close_gate(const Session& session, const std::string& key, Span span, bool yes);
int open_gate(const Session& session, const std::string& key, bool yes);

/// States into a file, and from it. `yes`: nobody is asked.
int export_states(const Session& session, const ScanOptions& options, const std::string& file);
int import_states(const Session& session, const std::string& prefix, const std::string& file,
                  bool yes);

/// Of the keys with this key_prefix.
int examine(const Session& session, const std::string& prefix);

/// Says what will be done. False after any answer but yes. Throws std::invalid_argument if there is
/// nobody to ask.
bool is_agreed(const Session& session, const std::string& what, bool yes);

/// What a scan has seen; in text on standard error.
void print_totals(const Session& session, const Totals& totals);
/// Throws NotPermitted unless the scan has read all that there is.
void require_all_read(const Totals& totals);

/// Prints what show prints.
void print_found(const Session& session, const Found& found);

}  // namespace sluice::tool
