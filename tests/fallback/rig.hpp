// A store that fails when told to, with a breaker and a policy before it, in virtual time.
// Threading: the test's thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/fallback_store.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using testing::Fault;
using testing::FaultScript;
using testing::FaultyStore;
using State = CircuitBreaker::State;
using PolicyKind = FailurePolicy::Kind;

inline const Fault dead = Fault::not_executed(Errc::not_connected);
inline constexpr std::array every_policy{PolicyKind::open, PolicyKind::closed, PolicyKind::local};

inline FailurePolicy policy_of(PolicyKind kind, Store& local, Word clients) {
  return kind == PolicyKind::open     ? FailurePolicy::open()
         : kind == PolicyKind::closed ? FailurePolicy::closed()
                                      : FailurePolicy::local(local, clients);
}

struct Rig {
  explicit Rig(const FailurePolicy& policy, const BreakerOptions& options = {.failures = 3})
      : breaker(clock, drawing(options)), store(primary, breaker, policy) {}
  Rig(PolicyKind kind, Word clients)
      : breaker(clock, drawing({.failures = 3})),
        store(primary, breaker, policy_of(kind, *local, clients)) {}
  /// Under FailurePolicy::local(), among so many clients.
  explicit Rig(Word clients) : Rig(PolicyKind::local, clients) {}

  /// The primary is down from now on, and the breaker has found out.
  void trip() {
    primary.fail_all(dead);
    const Step step{&token_bucket_peek, {"trip", "it"}, {1, 1, 1, 1, 1}};
    std::error_code error;
    while (breaker.state() != State::open) (void)decide(store, step, error);
  }
  /// The primary is up, and the breaker has found out.
  void heal() {
    primary.heal();
    clock.advance(1min);
    const Step step{&token_bucket_peek, {"trip", "it"}, {1, 1, 1, 1, 1}};
    (void)decide(store, step);
    REQUIRE(breaker.state() == State::closed);
  }

  /// The same pauses in every run.
  BreakerOptions drawing(BreakerOptions options) {
    if (options.rng == nullptr) options.rng = &rng;
    return options;
  }

  SeededRng rng{11};
  VirtualClock clock;
  std::unique_ptr<Store> whole = make_virtual_store(clock);
  std::unique_ptr<Store> local = make_virtual_store(clock);
  FaultyStore primary{*whole};
  CircuitBreaker breaker;
  FallbackStore store;
};

}  // namespace sluice::test
