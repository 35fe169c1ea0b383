// Tells whether the process has been forked, without a system call per question.
#pragma once

namespace sluice::detail {

/// How often this process and its ancestors were forked since the first call of this function: a
/// child sees another number than its parent. Thread-safe. Throws std::bad_alloc at the first call
/// if the hook cannot be registered.
[[nodiscard]] unsigned fork_count();

}  // namespace sluice::detail
