// A user's Catch2 test with the installed test kit. Threading: single-threaded.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

#include "sluice/testing.hpp"
#include "sluice/testing/catch2.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

TEST_CASE_METHOD(VirtualFixture, "one call every 100 ms") {
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(1));
  const auto take = [&] { return bucket.try_acquire("alice"); };
  CHECK(play({{at(0s), take, allowed(0)}, {at(99ms), take, refused(1ms)}}));
  move(at(100ms));
  CHECK_THAT(take(), allowed());
  REQUIRE_THAT(trace(), spacing_at_least(100ms) && !spacing_at_least(101ms));
}
