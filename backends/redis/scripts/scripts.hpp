// The scripts that the store sends, put together when they are first needed and kept. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/redis/scripts/script_joiner.hpp"
#include "sluice/plan.hpp"

namespace sluice::redis_detail {

struct Script {
  std::string text;
  std::string sha1;      ///< of the text, 40 lower-case hexadecimal digits
  std::string function;  ///< in the library, behind its name and "_"
};

/// The library of all scripts as functions. Its name contains a digest of its text, so that several
/// versions coexist on a server.
struct Library {
  std::string name;
  std::string text;
};

/// The files of lua/, embedded when the store is built.
[[nodiscard]] std::span<const LuaFile> lua_files() noexcept;

/// True if there is a script for each of these steps. Takes no lock and allocates nothing.
[[nodiscard]] bool has_scripts(std::span<const Step> steps) noexcept;

/// The script for these steps: the operation's own for one step, one for the operations of a plan
/// for more, or for a plan with an id. It is valid for the life of the program. REQUIRES:
/// has_scripts(steps).
[[nodiscard]] const Script& script_for(std::span<const Step> steps, bool has_record);

[[nodiscard]] const Library& library();

[[nodiscard]] std::string sha1_of(std::string_view text);

}  // namespace sluice::redis_detail
