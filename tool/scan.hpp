// Reading the states of a server: one key, or all of them without harm to its callers. Threading:
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tool/describe.hpp"
#include "tool/server.hpp"

namespace sluice::tool {

/// A key with a state of the library.
struct Found {
  KeyName name;
  StoredState state;
  Word at = 0;                    ///< the server's time at which it was read
  std::optional<Span> expires{};  ///< of one key that was read alone, or by ScanOptions::expiry
  Given given{};                  ///< of this key
  Description description{};
};

/// Reads one key. Throws std::invalid_argument that says why if it has no state of the library, or
/// if what is given contradicts it, and NotPermitted.
[[nodiscard]] Found read_key(const Fleet& fleet, const std::string& key, const Given& given);

/// The same, but empty if the key has no state of the library.
[[nodiscard]] std::optional<Found> find_key(const Fleet& fleet, const std::string& key,
                                            const Given& given);

/// The line of those who wait; empty also if the user may not read it.
[[nodiscard]] std::optional<Found> find_line(const Fleet& fleet, const std::string& key);

/// What a scan has seen.
struct Totals {
  struct Count {
    std::uint64_t keys = 0;
    std::string example{};  ///< the first of them
  };
  std::map<std::string, Count> ours{};     ///< by the kind
  std::map<std::string, Count> foreign{};  ///< by what is wrong
  std::uint64_t denied = 0;                ///< of them, those that the user may not read
  [[nodiscard]] std::uint64_t all_ours() const noexcept;
  [[nodiscard]] std::uint64_t all_foreign() const noexcept;
};

struct ScanOptions {
  std::string prefix{};   ///< only keys that begin with it
  std::string pattern{};  ///< and go on as this glob says, if it is not empty
  Given given{};
  bool expiry = false;  ///< sets Found::expires
};

/// Calls `see` for each key with a state; false ends the scan. A key that is written meanwhile may
/// be seen twice, as by SCAN. It pauses so long that the server works for it a small part of the
/// time.
Totals scan(const Fleet& fleet, const ScanOptions& options, const std::function<bool(Found&)>& see);

}  // namespace sluice::tool
