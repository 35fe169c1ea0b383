// A PrefetchStore in virtual time in front of a store that fails when told to.
// Threading: the test's thread.
#pragma once

#include <chrono>
#include <memory>

#include "sluice/decide.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/prefetch_store.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using testing::Fault;
using testing::FaultScript;
using testing::FaultyStore;

struct PrefetchRig {
  explicit PrefetchRig(const PrefetchStoreOptions& options = {}) : store(inner, options) {}

  /// The number of plans that the inner store was asked for since the last call.
  std::uint64_t asked() {
    const std::uint64_t before = asked_;
    asked_ = inner.counts().calls;
    return asked_ - before;
  }
  /// Spends `count` units, one at a time, with `gap` between them; returns how many were granted.
  template <class Limiter>
  int spend(const Limiter& limiter, int count, Span gap = Span{0}, const char* key = "a") {
    int granted = 0;
    for (int i = 0; i < count; ++i) {
      granted += limiter.try_acquire(key).allowed ? 1 : 0;
      clock.advance(gap);
    }
    return granted;
  }

  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  FaultyStore inner{*whole};
  PrefetchStore store;

 private:
  std::uint64_t asked_ = 0;
};

}  // namespace sluice::test
