// The adapter for GoogleTest, without GoogleMock. Threading: single-threaded.
#include "sluice/testing/gtest.hpp"

#include <gtest/gtest-spi.h>

#include "sluice/sluice.hpp"
#include "sluice/testing/fixture.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

class Limited : public ::testing::Test, protected VirtualFixture {
 protected:
  TokenBucket bucket{store, "api", Quota::per_second(10).burst(1)};
  Decision take() const { return bucket.try_acquire("alice"); }
};

TEST_F(Limited, AnswersATableOfMoments) {
  const auto ask = [this] { return take(); };
  EXPECT_TRUE(passes(play({
      {at(0s), ask, allowed(0)},
      {at(99ms), ask, refused(1ms)},
      {after(1ms), ask, allowed(0)},
  })));
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(passes(Played{"row 7, at 1 s: no\n"})), "row 7, at 1 s: no");
}

TEST_F(Limited, SaysHowAClaimIsBroken) {
  EXPECT_TRUE(meets(take(), allowed(0)));
  EXPECT_TRUE(meets(take(), refused(100ms)));
  EXPECT_TRUE(meets(trace(), never_exceeds(1, 100ms) && refused_with_exact_hint()));
  EXPECT_FALSE(meets(trace(), never_exceeds(0, 1s)));
  const std::string said = meets(trace(), never_exceeds(0, 1s)).message();
  EXPECT_EQ(said.find("expected that it never exceeds 0 in 1 s, but in the window of 1 s that ends "
                      "with +0 s 1 units were granted, the limit is 0\nsluice-trace 1 from"),
            0U);
  EXPECT_FALSE(holds(Breach{"too much", 1}));
  EXPECT_TRUE(holds(Checked{}));
}

TEST_F(Limited, IsPrintedInWords) {
  EXPECT_EQ(::testing::PrintToString(take()),
            "allowed, 0 of 1 left, reset after 100 ms, from virtual");
  EXPECT_EQ(::testing::PrintToString(clock.now()), "2000-01-01 00:00:00 UTC");
  EXPECT_EQ(::testing::PrintToString(Outcome{Errc::unknown, {}, {}, {}}), "the error unknown");
  EXPECT_EQ(::testing::PrintToString(trace()), excerpt(trace()));
  EXPECT_EQ(::testing::PrintToString(Breach{"too much", 1}), "too much");
  EXPECT_EQ(::testing::PrintToString(Played{}), "as expected\n");
}

}  // namespace
