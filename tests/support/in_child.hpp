// Tests of what a forked child may do. Threading: the child has the calling thread alone.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace sluice::test {

/// True if it holds in a forked child, which ends after 20 s at the latest.
inline bool in_child(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(holds() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace sluice::test
