// A user's GoogleTest with the installed test kit. Threading: single-threaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/testing.hpp"
#include "sluice/testing/gtest.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

class Api : public ::testing::Test, protected VirtualFixture {};

TEST_F(Api, TakesOneCallEvery100ms) {
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  EXPECT_TRUE(passes(play({{at(0s), take, allowed(0)}, {at(99ms), take, refused(1ms)}})));
  move(at(100ms));
  EXPECT_THAT(take(), allowed());
  EXPECT_TRUE(meets(trace(), spacing_at_least(100ms)));
  EXPECT_THAT(trace(), ::testing::Not(spacing_at_least(101ms)));
}
