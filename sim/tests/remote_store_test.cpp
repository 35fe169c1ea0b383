// A store behind a network: when plans arrive, when answers come, what becomes of lost ones.
// Threading: single-threaded.
#include "sluice/sim/remote_store.hpp"
#include "sluice/extend/subscription.hpp"

#include <memory>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

struct Seen {
  std::error_code error;
  Decision decision;
  std::vector<Decision> steps;
  Time when{};
  int calls = 0;
};

struct World {
  VirtualClock clock;
  Timeline timeline{clock};
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  Time start = clock.now();

  RemoteStore remote(Delay to, Delay from) {
    return {timeline, *inner, {to, from}, stream(1, 1, 1)};
  }

  void ask(Store& store, const Plan& plan, Seen& seen) {
    contexts.push_back(std::make_unique<Context>(Context{this, &seen}));
    store.execute(plan, Completion(
                            [](void* context, const Outcome& outcome) noexcept {
                              auto& [world, into] = *static_cast<Context*>(context);
                              into->error = outcome.error;
                              into->decision = outcome.decision;
                              into->steps.assign(outcome.steps.begin(), outcome.steps.end());
                              into->when = world->clock.now();
                              ++into->calls;
                            },
                            contexts.back().get()));
  }

  struct Context {
    World* world;
    Seen* seen;
  };
  std::vector<std::unique_ptr<Context>> contexts;
};

}  // namespace

TEST_CASE("a plan is decided when it arrives, and its answer comes one way later") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(3ms), Delay::constant(5ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10).burst(1));
  Seen first;
  Seen second;
  w.ask(remote, bucket.acquire_step("a"), first);
  w.timeline.run_until(w.start + 7'999us);
  CHECK(first.calls == 0);
  CHECK(remote.in_flight() == 1);
  w.timeline.run_until(w.start + 8ms);
  CHECK(first.calls == 1);
  CHECK(first.decision.allowed);
  CHECK(first.decision.at == w.start + 3ms);
  CHECK(first.steps.size() == 1);
  CHECK(remote.in_flight() == 0);

  w.ask(remote, bucket.acquire_step("a"), second);
  w.timeline.run_until(w.start + 1s);
  CHECK_FALSE(second.decision.allowed);
  CHECK(second.decision.at == w.start + 11ms);
  CHECK(second.decision.retry_after == 92ms);
  CHECK(second.when == w.start + 16ms);
  CHECK(remote.operations() == 2);
}

TEST_CASE("messages of one link do not overtake each other") {
  World w;
  RemoteStore remote = w.remote(Delay::uniform(0us, 50ms), Delay::uniform(0us, 50ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(1).burst(1'000));
  std::vector<Seen> seen(500);
  for (Seen& s : seen) w.ask(remote, bucket.acquire_step("a"), s);
  w.timeline.run_until(w.start + 1s);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    REQUIRE(seen[i].calls == 1);
    REQUIRE(seen[i].decision.remaining == 999 - static_cast<Word>(i));
    if (i > 0) REQUIRE(seen[i].when >= seen[i - 1].when);
  }
  CHECK(seen.back().when > seen.front().when);
}

TEST_CASE("a plan's steps and keys are copied, so that the caller's may go") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  Seen seen;
  {
    const TokenBucket bucket(remote, "api", Quota::per_second(10).burst(3));
    std::string tag = "some tag that is longer than a small string can hold inside";
    std::string name = "and a name of such a length as well, to be quite certain of it";
    const std::array<Step, 2> steps{bucket.acquire_step(Key{tag, name}),
                                    bucket.acquire_step(Key{tag, "b"}, 2)};
    w.ask(remote, Plan(steps), seen);
    tag.assign(tag.size(), 'x');
    name.assign(name.size(), 'y');
  }
  w.timeline.run_until(w.start + 1s);
  REQUIRE(seen.steps.size() == 2);
  CHECK(seen.steps[0].remaining == 2);
  CHECK(seen.steps[1].remaining == 1);
  // It was charged under the key as it was when it was sent.
  const TokenBucket direct(*w.inner, "api", Quota::per_second(10).burst(3));
  w.clock.set(w.start + 1ms);
  CHECK(direct.peek(Key{"some tag that is longer than a small string can hold inside", "b"}, 1)
            .remaining == 1);
}

TEST_CASE("a plan that can never be executed is answered at once and sends nothing") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10).burst(3));
  Seen seen;
  w.ask(remote, bucket.acquire_step("a", 4), seen);
  CHECK(seen.calls == 1);
  CHECK(seen.error == Errc::cost_exceeds_capacity);
  CHECK(remote.operations() == 0);
  CHECK(w.timeline.pending() == 0);
}

TEST_CASE("a blocking call is refused, since virtual time would stand still") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10));
  std::error_code error;
  (void)bucket.try_acquire("a", error);
  CHECK(error == Errc::would_deadlock);
}

TEST_CASE("calls under way when the link is destroyed end in the error that is true") {
  World w;
  Seen sent;
  Seen decided;
  {
    RemoteStore remote = w.remote(Delay::constant(2ms), Delay::constant(2ms));
    const TokenBucket bucket(remote, "api", Quota::per_second(10));
    w.ask(remote, bucket.acquire_step("a"), decided);
    w.timeline.run_until(w.start + 3ms);
    w.ask(remote, bucket.acquire_step("a"), sent);
    CHECK(remote.in_flight() == 2);
  }
  CHECK(sent.calls == 1);
  CHECK(sent.error == Errc::shut_down);
  CHECK(sent.error == Failure::not_executed);
  CHECK(decided.calls == 1);
  CHECK(decided.error == Failure::unknown);
  CHECK(w.timeline.pending() == 0);
}

TEST_CASE("keys travel whole: with their units, also those of wake-ups") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket slow(remote, "api", Quota::per_second(10).burst(1));
  const TokenBucket fast(remote, "api", Quota::per_second(20).burst(1));
  Seen of_slow;
  Seen of_fast;
  Seen again;
  w.ask(remote, slow.acquire_step("a"), of_slow);
  w.ask(remote, fast.acquire_step("a"), of_fast);
  w.ask(remote, slow.acquire_step("a"), again);
  int heard = 0;
  const Key watched = Key("a", "x").with_unit("u");
  const auto watch = remote.subscribe(watched, [&] { ++heard; });
  remote.notify(watched);
  remote.notify({"a", "x"});
  w.timeline.run_until(w.start + 100ms);
  CHECK(of_slow.decision.allowed);
  CHECK(of_fast.decision.allowed);
  CHECK_FALSE(again.decision.allowed);
  CHECK(heard == 1);
}

TEST_CASE("a completion may ask again") {
  World w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(1'000'000).burst(100));
  struct Chain {
    RemoteStore* store;
    const TokenBucket* bucket;
    int left;
    static void go(void* context, const Outcome& outcome) noexcept {
      auto& self = *static_cast<Chain*>(context);
      if (outcome.decision.allowed && --self.left > 0) {
        self.store->execute(self.bucket->acquire_step("a"), Completion(&Chain::go, &self));
      }
    }
  } chain{&remote, &bucket, 50};
  remote.execute(bucket.acquire_step("a"), Completion(&Chain::go, &chain));
  w.timeline.run_until(w.start + 100ms);
  CHECK(chain.left == 0);
  CHECK(remote.operations() == 50);
}

TEST_CASE("a wake-up travels to the store and on to who watches") {
  World world;
  RemoteStore here = world.remote(Delay::constant(10ms), Delay::constant(20ms));
  RemoteStore there = world.remote(Delay::constant(1ms), Delay::constant(2ms));
  std::vector<Span> heard;
  auto watch =
      there.subscribe(Key{"a", "x"}, [&] { heard.push_back(world.clock.now() - world.start); });
  REQUIRE(watch);
  here.notify(Key{"a", "x"});
  here.notify(Key{"a", "y"});
  world.timeline.run_until(world.start + 100ms);
  CHECK(heard == std::vector<Span>{12ms});

  here.notify(Key{"a", "x"});
  world.timeline.run_until(world.start + 111ms);
  watch.reset();  // while it is on its way back
  here.notify(Key{"a", "x"});
  here.hang_up();
  world.timeline.run_until(world.start + 200ms);
  CHECK(heard.size() == 1);
  CHECK(world.timeline.pending() == 0);
}
