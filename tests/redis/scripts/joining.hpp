// Small Lua files in memory, and what a ScriptJoiner makes of them. Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/scripts/script_joiner.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/slot_lock.hpp"

namespace sluice::test {

using redis_detail::LuaFile;
using redis_detail::ScriptJoiner;
using WindowCounts = ScriptJoiner::WindowCounts;
using Files = std::vector<LuaFile>;

inline const std::vector<const Operation*> known{&slot_lock_acquire, &sliding_window_acquire};

inline constexpr std::string_view lock_line =
    "--@ operation slot_lock_acquire(next, stamp | limit, interval, max_wait)\n";
inline constexpr std::string_view windows_line =
    "--@ operation sliding_window_acquire(head[11] | limit, cost, max_wait, longest)\n";

/// Both operations, a fixed and a variable one, and `more`.
inline ScriptJoiner joiner_of(Files more) {
  static const std::string lock = std::string(lock_line) + "return next\n";
  static const std::string windows = std::string(windows_line) + "return head\n";
  more.push_back({"rules/slot_lock.lua", lock});
  more.push_back({"rules/sliding_window.lua", windows});
  return {more, known};
}

/// The script of one step whose driver has these lines.
inline std::string step_of(const std::string& lines, Files more = {},
                           const Operation& operation = slot_lock_acquire,
                           WindowCounts windows = {}) {
  const std::string driver = "--@ piece step\n" + lines;
  more.push_back({"step.lua", driver});
  return joiner_of(std::move(more)).step(operation, windows);
}

/// The script of a plan whose driver has these lines.
inline std::string plan_of(const std::string& lines, std::span<const Operation* const> operations,
                           bool has_record = false, Files more = {}) {
  const std::string driver = "--@ piece plan\n" + lines;
  more.push_back({"plan.lua", driver});
  return joiner_of(std::move(more)).plan(operations, has_record, {});
}

}  // namespace sluice::test
