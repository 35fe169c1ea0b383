// The matchers in GoogleMock's EXPECT_THAT, among its own. Threading: single-threaded.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include "sluice/sluice.hpp"
#include "sluice/testing/fixture.hpp"
#include "sluice/testing/gtest.hpp"

namespace {

using ::sluice::testing::allowed;
using ::sluice::testing::never_exceeds;
using ::sluice::testing::refused;
using ::testing::AllOf;
using ::testing::Not;
using namespace std::chrono_literals;

TEST(Gmock, TakesTheMatchersAsTheyAre) {
  sluice::testing::VirtualFixture fixture;
  const sluice::TokenBucket bucket(fixture.store, "api", sluice::Quota::per_second(10).burst(1));
  EXPECT_THAT(bucket.try_acquire("alice"), AllOf(allowed(), Not(refused())));
  EXPECT_THAT(fixture.trace(), never_exceeds(1, 1s));
  EXPECT_THAT(fixture.trace(), Not(never_exceeds(0, 1s)));
  const sluice::Decision decision = bucket.try_acquire("alice");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(decision, refused(1ms)),
                          "Expected: is refused, retry after 1 ms");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(decision, refused(1ms)),
                          "it was refused, 0 of 1 left, retry after 100 ms");
}

}  // namespace
