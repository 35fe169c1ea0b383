// The limiters that charge units to a key and give them back, for tests that ask the same of each.
// Threading: none of its own.
#pragma once

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

/// Calls `check(limiter)` for each, whose limit for "k" is five in an hour or at once.
template <class Check>
void for_each_charged(Store& store, Check check) {
  using std::chrono_literals::operator""h;
  const auto named = [&check](const auto& limiter) {
    INFO(limiter.type_name);
    check(limiter);
  };
  const Quota quota = Quota::per_hour(5);
  named(TokenBucket(store, "bucket", quota));
  const SharedTokenBucket shared(store, "shared");
  shared.configure("k", quota, Inheritance::reset);
  named(shared);
  named(SlidingWindow(store, "windows", {{5, 1h}}));
  named(SlidingWindowCounter(store, "counter", {5, 1h}));
  named(FixedWindow(store, "fixed", 5, Calendar::every(1h)));
  const SharedSlidingWindow rate(store, "rate");
  rate.configure("k", RateType::overall, 5, 1h, SpentUnits::forgotten);
  named(rate);
}

}  // namespace sluice::test
