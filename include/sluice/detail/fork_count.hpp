// Detects forks of the process without a system call for each check.
#pragma once

namespace sluice::detail {

/// How often this process and its ancestors were forked since the first call of this function: a
/// child gets another number than its parent. Thread-safe. The first call throws std::bad_alloc if
/// the hook cannot be registered.
[[nodiscard]] unsigned fork_count();

/// Has each child that is forked from now on call this, before fork() returns there. Throws
/// std::bad_alloc.
void call_in_children(void (*hook)());

/// The process in which this object was made. In a forked child the other threads of the parent do
/// not exist: nobody answers their calls, and locks that they held stay locked.
class HomeProcess {
 public:
  HomeProcess() : forks_(fork_count()) {}
  [[nodiscard]] bool is_here() const noexcept { return fork_count() == forks_; }

 private:
  unsigned forks_;
};

}  // namespace sluice::detail
