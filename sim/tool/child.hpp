// Child processes that never outlive this one. Threading: one thread, and no other may exist when
// a child is started.
#pragma once

#include <sys/types.h>

#include <exception>
#include <functional>

#include "sluice/time.hpp"

namespace sluice::tool {

/// Thrown where a signal to stop (Ctrl-C, SIGTERM, SIGHUP) is noticed.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

/// From here on a signal to stop is noticed by pause_for().
void catch_stop_signals();

/// Sleeps for `span`. Throws Interrupted.
void pause_for(Span span);

/// A process that runs a function. The destructor kills it and waits for its end.
class Child {
 public:
  /// `run` returns the exit code; an exception of it is printed. Throws std::system_error.
  explicit Child(const std::function<int()>& run);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// True once it has ended.
  [[nodiscard]] bool ended() noexcept;
  /// Asks it to end (SIGTERM), and returns when it has done so, or after `patience`.
  void stop(Span patience) noexcept;

 private:
  pid_t pid_ = -1;
};

}  // namespace sluice::tool
