// A table of moments, as docs/testing.md shows it.
#include <sluice/testing.hpp>
#include <sluice/testing/catch2.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE_METHOD(VirtualFixture, "an API key makes five calls at once and ten a second") {
  const TokenBucket limit(store, "api", Quota::per_second(10).burst(5));
  const auto take = [&] { return limit.try_acquire("key"); };
  const auto take_five = [&] { return limit.try_acquire("key", 5); };

  CHECK(play({
      {at(0s), take_five, allowed(0)},
      {at(0s), take, refused(100ms)},
      {at(100ms - 1us), take, refused(1us)},
      {after(1us), take, allowed(0)},
      {at(600ms), take_five, allowed(0)},
  }));
}
