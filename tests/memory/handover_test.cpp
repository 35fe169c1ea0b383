// A slot that changes hands while a plan looks up its keys. The clock, which the store reads for
// each key that is new to the table, plays the other threads.
#include <deque>
#include <functional>
#include <utility>

#include "tests/memory/fixture.hpp"
#include "tests/memory/rules.hpp"

namespace sluice::test {
namespace {

/// A clock that makes one of the given calls at each reading, from within it.
class Interruption final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override {
    if (!calls.empty() && !std::exchange(calling, true)) {
      calls.front()();
      calls.pop_front();
      calling = false;
    }
    return time;
  }

  Time time = VirtualClock::default_start;
  mutable std::deque<std::function<void()>> calls;
  mutable bool calling = false;
};

}  // namespace

TEST_CASE("a plan never takes the slot of one of its keys for that of another", "[memory]") {
  Interruption clock;
  SeededRng rng(1);
  const auto store = make_memory_store({.max_keys = 1, .clock = &clock, .rng = &rng});
  const auto ask = [&](const Step& step) { return decide(*store, step).allowed; };

  // Eight slots, in this order: five in use for long, `first`, `other`, `spare`.
  for (std::size_t i = 0; i < 5; ++i)
    REQUIRE(ask(asks(counter_add, {name("known", i), "x"}, 1, 5, 24 * 3'600'000'000)));
  const Step first = asks(counter_add, {"first", "x"});
  const Step second = asks(log_push, {"second", "x"});
  const Step other = asks(counter_add, {"other", "x"});
  REQUIRE(ask(first));
  REQUIRE(ask(asks(log_push, other.key)));
  REQUIRE(ask(asks(counter_add, {"spare", "x"})));
  REQUIRE(store->stats().keys == 8);

  clock.time += 2min;                            // the last three are idle
  clock.calls = {[&] { REQUIRE(ask(second)); },  // where `first` was, which the plan has found
                 [&] {
                   clock.time += 2min;
                   REQUIRE(ask(first));  // where `second` is, which the plan has found as well
                 }};
  std::error_code error;
  const Decision decision = decide(*store, {first, second, other}, error);
  CHECK(clock.calls.empty());
  CHECK(error == std::error_code());
  CHECK(decision.allowed);
  CHECK(decide(*store, asks(counter_add, first.key, 0)).remaining == 3);
  CHECK(decide(*store, asks(log_push, second.key, 0)).remaining == 4);
}

}  // namespace sluice::test
