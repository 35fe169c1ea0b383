// A table in a forked child.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "src/util/published.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

TEST_CASE("a forked child replaces a value that a thread of its parent was reading",
          "[tables][threads][fork]") {
  detail::Published<int> published(std::make_unique<const int>(1));
  const pid_t child = published.read([&](const int&) {
    // The child leaves the reader in the parent behind, as it would one of another thread.
    const pid_t pid = fork();
    if (pid == 0) {
      std::thread([&] { published.replace(std::make_unique<const int>(2)); }).join();
      const bool is_new = published.read([](const int& now) { return now; }) == 2;
      _exit(is_new ? 0 : 1);
    }
    return pid;
  });
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace sluice::test
