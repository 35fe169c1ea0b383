// A program that a test starts, and whose standard output it reads. It dies with the test.
// Threading: one thread, which must outlive the child.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sluice::test {

class ChildProcess {
 public:
  /// Throws std::runtime_error if it cannot be started.
  explicit ChildProcess(std::vector<std::string> command);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills it if it still runs.
  ~ChildProcess();

  /// The next line of its output, without its end; empty when there is no more. Waits for it.
  std::string read_line();
  /// As Ctrl-C does.
  void interrupt() const;
  /// Waits for its end. The exit code, or 128 and the number of the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace sluice::test
