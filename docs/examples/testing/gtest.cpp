// A table of moments with GoogleTest, as docs/testing.md shows it.
#include <gtest/gtest.h>
#include <sluice/testing.hpp>
#include <sluice/testing/gtest.hpp>

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

class Api : public ::testing::Test, protected VirtualFixture {};

TEST_F(Api, TakesTenCallsASecond) {
  const TokenBucket limit(store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return limit.try_acquire("key"); };

  EXPECT_TRUE(passes(play({
      {at(0s), take, allowed(0)},
      {at(99ms), take, refused(1ms)},
      {at(100ms), take, allowed(0)},
  })));
  EXPECT_TRUE(meets(trace(), never_exceeds(1, 100ms)));
}
