// A table in a forked child.
#include <memory>
#include <thread>

#include "src/util/published.hpp"
#include "tests/catch.hpp"
#include "tests/support/in_child.hpp"

namespace sluice::test {

TEST_CASE("a forked child replaces a value that a thread of its parent was reading",
          "[tables][threads][fork]") {
  detail::Published<int> published(std::make_unique<const int>(1));
  const auto value = [&] { return published.read([](const int& now) { return now; }); };
  // The child leaves the reader in the parent behind, as it would one of another thread.
  CHECK(published.read([&](const int&) {
    return in_child([&] {
      std::thread([&] { published.replace(std::make_unique<const int>(2)); }).join();
      return value() == 2;
    });
  }));
  CHECK(value() == 1);
}

}  // namespace sluice::test
