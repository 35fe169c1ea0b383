// Detects forks of the process without a system call for each check.
#pragma once

namespace sluice::detail {

/// How often this process and its ancestors were forked since the first call of this function: a
/// child gets another number than its parent. Thread-safe. The first call throws std::bad_alloc if
/// the hook cannot be registered.
[[nodiscard]] unsigned fork_count();

}  // namespace sluice::detail
