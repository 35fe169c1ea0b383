// The store that fails when it is told to. Threading: as the test cases say.
#include "sluice/testing/faulty_store.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/sluice.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/check.hpp"
#include "tests/support/wire_store.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

struct Setup {
  VirtualClock clock;
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  FaultyStore store{*inner};
  TokenBucket bucket{store, "api", Quota::per_day(1000)};
  TokenBucket truth{*inner, "api", Quota::per_day(1000)};

  /// 'o' for an answer, 'n' for not executed, 'u' for unknown.
  char ask() {
    std::error_code error;
    (void)bucket.try_acquire("alice", error);
    return !error ? 'o' : error == Failure::unknown ? 'u' : 'n';
  }
  std::string ask(int times) {
    std::string out;
    for (; times > 0; --times) out += ask();
    return out;
  }
  [[nodiscard]] Word spent() const { return 1000 - truth.peek("alice").remaining; }
};

}  // namespace

TEST_CASE("a faulty store that is told nothing keeps every promise of the one behind",
          "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  FaultyStore store(*inner);
  test::check_store(store, &clock, 0.3);
  CHECK(store.counts().calls == store.counts().executed);
}

TEST_CASE("what was not executed charged nothing; a lost answer did", "[testing]") {
  Setup t;
  t.store.play(FaultScript("ok not_connected unknown dropped ok"));
  CHECK(t.ask(6) == "onuuoo");
  CHECK(t.spent() == 4);
  CHECK(t.store.counts() ==
        FaultCounts{.calls = 6, .executed = 4, .failed = 2, .lost = 1, .delayed = 0});
  t.store.reset();
  CHECK(t.store.counts() == FaultCounts{});
}

TEST_CASE("the n-th call fails, or every n-th, or all until it heals", "[testing]") {
  Setup t;
  t.store.fail_call(3, Fault::not_executed());
  CHECK(t.ask(7) == "oonoooo");
  t.store.fail_call(1, Fault::not_executed());
  CHECK(t.ask(2) == "no");
  t.store.fail_every(3, Fault::answer_lost());
  CHECK(t.ask(7) == "oouoouo");
  t.store.heal();
  CHECK(t.ask(3) == "ooo");
  t.store.fail_all(Fault::not_executed(Errc::loading));
  CHECK(t.ask(3) == "nnn");
  t.store.heal();
  CHECK(t.ask(1) == "o");
  CHECK_THROWS_WITH(t.store.fail_call(0, {}), "fail_call: n must be 1 or more, got 0");
  CHECK_THROWS_WITH(t.store.fail_every(0, {}), "fail_every: n must be 1 or more, got 0");
}

TEST_CASE("sources of faults count for themselves, and the first in their order wins",
          "[testing]") {
  Setup t;
  t.store.fail_every(2, Fault::answer_lost());
  t.store.fail_call(2, Fault::not_executed());
  CHECK(t.ask(6) == "onouou");
  t.store.play(FaultScript("ok not_connected"));
  t.store.fail_every(1, Fault::answer_lost());
  CHECK(t.ask(3) == "unu");
  t.store.heal();
  SeededRng rng(7);
  t.store.fail_some(0.5, Fault::answer_lost(), rng);
  const std::string alone = t.ask(100);
  SeededRng again(7);
  t.store.fail_some(0.5, Fault::answer_lost(), again);
  t.store.play(FaultScript("not_connected*50"));
  CHECK(t.ask(100) == std::string(50, 'n') + alone.substr(50));  // drawn for each call
}

TEST_CASE("wake-ups are lost from when it is told so until it heals", "[testing]") {
  class Noting final : public StoreWrapper {
   public:
    using StoreWrapper::StoreWrapper;
    void notify(const Key& /*key*/) noexcept override { ++told; }
    int told = 0;
  };
  Setup t;
  Noting noting(*t.inner);
  FaultyStore store(noting);
  const auto arrives = [&] {
    const int before = noting.told;
    store.notify(Key{"alice"});
    return noting.told > before;
  };
  CHECK(arrives());
  store.lose_wake_ups();
  CHECK_FALSE(arrives());
  store.heal();
  CHECK(arrives());
}

TEST_CASE("faults by probability come from the generator, as often as told", "[testing]") {
  Setup t;
  SeededRng one(7);
  t.store.fail_some(0.25, Fault::not_executed(), one);
  const std::string first = t.ask(2'000);
  CHECK(std::ranges::count(first, 'n') > 400);
  CHECK(std::ranges::count(first, 'n') < 600);
  SeededRng again(7);
  t.store.fail_some(0.25, Fault::not_executed(), again);
  CHECK(t.ask(2'000) == first);
  t.store.fail_some(0, Fault::not_executed(), again);
  CHECK(t.ask(100) == std::string(100, 'o'));
  t.store.fail_some(1, Fault::not_executed(), again);
  CHECK(t.ask(100) == std::string(100, 'n'));
  for (const double wrong : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(t.store.fail_some(wrong, {}, one), std::invalid_argument);
  }
}

TEST_CASE("an error of the store behind that was not executed is told as it is", "[testing]") {
  Setup t;
  t.store.fail_all(Fault::answer_lost());
  std::error_code error;
  (void)t.bucket.try_acquire("alice", 2000, error);
  CHECK(error == Errc::cost_exceeds_capacity);
}

TEST_CASE("a late answer comes when the clock has moved so far", "[testing]") {
  Setup t;
  t.store.play(FaultScript("delay(50ms) delay(20ms,unknown) delay(30ms,timeout)"));
  std::string order;
  const auto ask = [&](char name) {
    t.bucket.try_acquire_then("alice", 1, [&, name](std::error_code error, Decision d) {
      order += name;
      if (name == 'a') CHECK((!error && d.at == VirtualClock::default_start));
      if (name == 'b') CHECK(error == Errc::unknown);
      if (name == 'c') CHECK(error == Errc::timed_out);
    });
  };
  ask('a');
  ask('b');
  ask('c');
  CHECK(t.spent() == 2);  // decided at once, answered late
  CHECK(t.store.held_back() == 3);
  t.clock.advance(20ms - 1us);
  CHECK(order.empty());
  t.clock.advance(1us);
  CHECK(order == "b");
  t.clock.advance(1h);
  CHECK(order == "bca");
  CHECK(t.store.held_back() == 0);
  CHECK(t.store.counts().delayed == 3);
}

TEST_CASE("a blocking call waits for a late answer if time moves by itself", "[testing]") {
  Setup t;
  t.store.play(FaultScript("delay(50ms)"));
  const VirtualClock::AutoAdvance moving(t.clock);
  const Decision d = t.bucket.try_acquire("alice");
  CHECK(d.allowed);
  CHECK(d.at == VirtualClock::default_start);
  CHECK(t.clock.now() == VirtualClock::default_start + 50ms);
}

TEST_CASE("on a clock that rings nobody the call itself takes that long", "[testing]") {
  const auto inner = make_memory_store();
  FaultyStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  store.play(FaultScript("delay(2ms)"));
  const Time before = store.clock().now();
  CHECK(bucket.try_acquire("alice").allowed);
  CHECK(store.clock().now() - before >= 2ms);
}

TEST_CASE("a faulty store that goes answers what it holds back, once", "[testing]") {
  VirtualClock clock;
  const auto far = make_virtual_store(clock);
  test::WireStore inner(*far);
  int answers = 0;
  int unknown = 0;
  {
    FaultyStore store(inner);
    const TokenBucket bucket(store, "api", Quota::per_second(10));
    store.play(FaultScript("delay(1s,timeout) delay(1s) unknown delay(1s)"));
    for (int i = 0; i < 4; ++i) {
      bucket.try_acquire_then("alice", 1, [&](std::error_code error, Decision) {
        ++answers;
        unknown += error == Errc::unknown ? 1 : 0;
      });
    }
    inner.answer(0);
    CHECK(answers == 0);
    CHECK(store.held_back() == 2);
  }
  CHECK(answers == 4);
  CHECK(unknown == 4);
  inner.deliver_all();
  clock.advance(1h);
  CHECK(answers == 4);
}

TEST_CASE("threads may call while another moves the clock and tells faults", "[testing]") {
  Setup t;
  t.store.play(FaultScript("delay(1ms)*"));
  std::atomic<int> answers{0};
  constexpr int each = 200;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < each; ++n) {
          t.bucket.try_acquire_then("alice", 1, [&](std::error_code, Decision) { ++answers; });
        }
      });
    }
    for (int n = 0; n < each; ++n) {
      t.clock.advance(1ms);
      t.store.fail_every(7, Fault::answer_lost());
    }
  }
  t.clock.advance(1s);
  CHECK(answers == 3 * each);
}
