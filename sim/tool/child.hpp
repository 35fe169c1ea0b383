// Child processes that never outlive this one. Threading: one thread, and no other may exist when
// a child is started.
#pragma once

#include <sys/types.h>

#include <exception>
#include <string>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::tool {

/// Thrown where a signal to stop (Ctrl-C, SIGTERM, SIGHUP) is noticed.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

/// From here on a signal to stop is noticed by the functions below, which throw Interrupted.
void catch_stop_signals();

/// Sleeps for `span`. Throws Interrupted.
void pause_for(Span span);

/// A started program with a pipe to its standard input and one from its standard output. The
/// destructor kills it and waits for its end.
class Child {
 public:
  /// Runs `arguments[0]`, a path. If `output` is not empty, standard output and error go to that
  /// file instead of the pipe. Throws std::system_error.
  explicit Child(std::vector<std::string> arguments, const std::string& output = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  void write(const std::string& text);
  /// One line without its end; what there is if the program ends first, or `timeout` passes.
  /// Throws Interrupted.
  [[nodiscard]] std::string read_line(Span timeout);
  /// True once the program has ended.
  [[nodiscard]] bool ended();
  /// Asks it to end (SIGTERM), and kills it if it has not done so in `patience`.
  void stop(Span patience) noexcept;

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace sluice::tool
