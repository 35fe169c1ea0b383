// A store behind a network and a server that fail: when plans arrive and answers come, and that
// each call completes once, with the error that is true. Threading: single-threaded.
#include "sluice/sim/remote_store.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace std::chrono_literals;

namespace {

struct Heard {
  std::error_code error;
  Decision decision;
  std::vector<Decision> steps;
  Time when{};
  int completions = 0;
};

constexpr Span to_store = 1ms;
constexpr Span from_store = 2ms;
constexpr Span service = 10ms;

/// A store in virtual time.
struct Local {
  VirtualClock clock;
  Timeline timeline{clock};
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  Time start = clock.now();

  /// Without a server or faults.
  RemoteStore remote(Delay to, Delay from) {
    return {timeline, *inner, {to, from}, stream(1, 1, 1)};
  }
  void ask(Store& store, const Plan& plan, Heard& answer) {
    contexts.push_back(std::make_unique<Context>(Context{&clock, &answer}));
    store.execute(plan, Completion(&Context::note, contexts.back().get()));
  }
  void run_to(Span since_start) { timeline.run_until(start + since_start); }

  struct Context {
    VirtualClock* clock;
    Heard* answer;
    static void note(void* context, const Outcome& outcome) noexcept {
      auto& [now, into] = *static_cast<Context*>(context);
      into->error = outcome.error;
      into->decision = outcome.decision;
      into->steps.assign(outcome.steps.begin(), outcome.steps.end());
      into->when = now->now();
      ++into->completions;
    }
  };
  std::vector<std::unique_ptr<Context>> contexts;
};

/// One server, one connection, a bucket of 1,000 units that hardly refills.
struct Setup : Local {
  StoreServer server{Delay::constant(service), stream(1, 1, 1)};
  LinkFaults faults;
  std::optional<RemoteStore> remote;
  TokenBucket bucket;

  explicit Setup(Span timeout = 100ms)
      : remote(
            std::in_place, timeline, *inner,
            Link{Delay::constant(to_store), Delay::constant(from_store), &server, &faults, timeout},
            stream(1, 2, 2)),
        bucket(*remote, "api", Quota::per(1, std::chrono::hours{24}).burst(1000)) {}

  using Local::ask;
  void ask(Heard& answer) { ask(*remote, bucket.acquire_step("a"), answer); }
  /// The units that the store has charged.
  Word charged() {
    const TokenBucket direct(*inner, "api", Quota::per(1, std::chrono::hours{24}).burst(1000));
    return 1000 - direct.peek("a").remaining;
  }
};

}  // namespace

TEST_CASE("a plan is decided when it arrives, and its answer comes one way later") {
  Local w;
  RemoteStore remote = w.remote(Delay::constant(3ms), Delay::constant(5ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10).burst(1));
  Heard first;
  Heard second;
  w.ask(remote, bucket.acquire_step("a"), first);
  w.timeline.run_until(w.start + 7'999us);
  CHECK(first.completions == 0);
  CHECK(remote.in_flight() == 1);
  w.timeline.run_until(w.start + 8ms);
  CHECK(first.completions == 1);
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
  Local w;
  RemoteStore remote = w.remote(Delay::uniform(0us, 50ms), Delay::uniform(0us, 50ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(1).burst(1'000));
  std::vector<Heard> seen(500);
  for (Heard& s : seen) w.ask(remote, bucket.acquire_step("a"), s);
  w.timeline.run_until(w.start + 1s);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    REQUIRE(seen[i].completions == 1);
    REQUIRE(seen[i].decision.remaining == 999 - static_cast<Word>(i));
    if (i > 0) REQUIRE(seen[i].when >= seen[i - 1].when);
  }
  CHECK(seen.back().when > seen.front().when);
}

TEST_CASE("a plan's steps and keys are copied, so that the caller's may go") {
  Local w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  Heard seen;
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
  Local w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10).burst(3));
  Heard seen;
  w.ask(remote, bucket.acquire_step("a", 4), seen);
  CHECK(seen.completions == 1);
  CHECK(seen.error == Errc::cost_exceeds_capacity);
  CHECK(remote.operations() == 0);
  CHECK(w.timeline.pending() == 0);
}

TEST_CASE("a blocking call is refused, since virtual time would stand still") {
  Local w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket bucket(remote, "api", Quota::per_second(10));
  std::error_code error;
  (void)bucket.try_acquire("a", error);
  CHECK(error == Errc::would_deadlock);
}

TEST_CASE("keys travel whole: with their units, also those of wake-ups") {
  Local w;
  RemoteStore remote = w.remote(Delay::constant(1ms), Delay::constant(1ms));
  const TokenBucket slow(remote, "api", Quota::per_second(10).burst(1));
  const TokenBucket fast(remote, "api", Quota::per_second(20).burst(1));
  Heard of_slow;
  Heard of_fast;
  Heard again;
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
  Local w;
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
  Local world;
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

TEST_CASE("the server decides one plan at a time, in the order in which they arrive") {
  Setup s;
  std::array<Heard, 4> answers;
  for (Heard& answer : answers) s.ask(answer);
  s.run_to(1s);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(i);
    const Span served = to_store + service * static_cast<Word>(i + 1);
    CHECK(answers[i].completions == 1);
    CHECK(answers[i].decision.at == s.start + served);
    CHECK(answers[i].when == s.start + served + from_store);
  }
  CHECK(s.server.served() == 4);
  CHECK(s.server.busy() == 40ms);
  CHECK(s.server.waited() == 60ms);
}

TEST_CASE("a call fails exactly at its timeout, and its plan is executed all the same") {
  Setup s(10ms);  // the answer would come after 13 ms
  Heard answer;
  s.ask(answer);
  s.run_to(9'999us);
  CHECK(answer.completions == 0);
  s.run_to(10ms);
  CHECK(answer.completions == 1);
  CHECK(answer.error == Errc::unknown);
  CHECK(answer.when == s.start + 10ms);
  CHECK(s.charged() == 0);
  s.run_to(1s);
  CHECK(s.charged() == 1);
  CHECK(answer.completions == 1);
  CHECK(s.remote->in_flight() == 0);
}

TEST_CASE("the timeout of a plan goes before that of its link") {
  Setup s(10ms);
  Heard answer;
  const Step step = s.bucket.acquire_step("a");
  s.ask(*s.remote, Plan(step).within(14ms), answer);
  s.run_to(1s);
  CHECK(answer.completions == 1);
  CHECK(answer.decision.allowed);

  Heard late;
  s.ask(*s.remote, Plan(step).within(-1ms), late);
  CHECK(late.completions == 1);
  CHECK(late.error == Errc::timed_out);
  CHECK(s.remote->operations() == 1);
}

TEST_CASE("a server that refuses is known to have executed nothing, one that is silent is not") {
  const bool refuses = GENERATE(true, false);
  Setup s;
  s.server.set_state(refuses ? StoreServer::State::refusing : StoreServer::State::silent);
  Heard answer;
  s.ask(answer);
  s.run_to(1s);
  CHECK(answer.completions == 1);
  CHECK(answer.error == (refuses ? Errc::not_connected : Errc::unknown));
  CHECK((answer.error == Failure::not_executed) == refuses);
  CHECK(answer.when == s.start + (refuses ? to_store + from_store : 100ms));
  CHECK(s.charged() == 0);
  CHECK(s.remote->in_flight() == 0);
  CHECK(s.timeline.pending() == 0);
}

TEST_CASE("a paused server works off afterwards what has come, a slow one takes longer") {
  Setup s;
  s.server.pause(s.start + 50ms);
  std::array<Heard, 4> answers;
  for (std::size_t i = 0; i < 2; ++i) s.ask(answers[i]);
  s.run_to(100ms);
  CHECK(answers[0].when == s.start + 50ms + service + from_store);
  CHECK(answers[1].when == s.start + 50ms + 2 * service + from_store);
  s.server.slow_down(2500);
  s.ask(answers[2]);
  s.run_to(150ms);
  CHECK(answers[2].when == s.start + 100ms + to_store + 25ms + from_store);
  s.server.slow_down(1000);
  s.ask(answers[3]);
  s.run_to(1s);
  CHECK(answers[3].when == s.start + 150ms + to_store + service + from_store);
  CHECK(s.charged() == 4);
}

TEST_CASE("the longest service time times the largest factor is no overflow") {
  StoreServer server(Delay::constant(std::chrono::hours{24 * 30}), stream(1, 1, 1));
  server.slow_down(1'000'000'000);
  const Time now = to_time(1'000'000);
  CHECK(server.serve(now) == now + std::chrono::hours{24 * 366});
}

TEST_CASE("lost requests charge nothing, lost answers do, doubled requests charge twice") {
  constexpr std::uint32_t all = 1'000'000;
  struct Case {
    LinkFaults faults;
    bool cut_later;  // while the plan is decided
    bool has_id;
    Word charged;
    bool answered;
  };
  const auto& [faults, cut_later, has_id, charged, answered] = GENERATE(
      Case{{.lost = all}, false, false, 0, false},
      Case{{.answer_lost = all}, false, false, 1, false},  //
      Case{{}, true, false, 1, false},                     //
      Case{{.doubled = all}, false, false, 2, true}, Case{{.doubled = all}, false, true, 1, true});
  Setup s;
  s.faults = faults;
  Heard answer;
  const Step step = s.bucket.acquire_step("a");
  s.ask(*s.remote, has_id ? Plan(step).idempotent(RequestId{1, 2}) : Plan(step), answer);
  s.run_to(5ms);
  if (cut_later) s.faults.cut = true;
  s.run_to(1s);
  CHECK(s.charged() == charged);
  CHECK(answer.decision.allowed == answered);
  CHECK(answer.error == (answered ? std::error_code() : Errc::unknown));
  CHECK(answer.completions == 1);
  CHECK(s.remote->in_flight() == 0);
  CHECK(s.timeline.pending() == 0);
}

namespace {

/// Calls in every state, 12 ms after the start.
struct UnderWay : Setup {
  Heard decided;  // its answer is on its way
  Heard serving;  // at the server
  Heard on_way;   // to the server
  Heard lost;     // its request was lost

  explicit UnderWay(bool pauses) : Setup(30ms) {
    ask(decided);
    ask(serving);
    if (pauses) server.pause(start);
    run_to(11ms);  // the first is decided at 11 ms
    faults.lost = 1'000'000;
    ask(lost);
    faults.lost = 0;
    run_to(12ms);
    ask(on_way);
  }
};

}  // namespace

TEST_CASE("close() and destruction answer messages in every state, once and truly") {
  UnderWay s(true);
  CHECK(s.remote->in_flight() == 4);
  const bool destroy = GENERATE(false, true);
  if (destroy) {
    s.remote.reset();
  } else {
    s.remote->close();
  }
  CHECK(s.decided.completions == 1);
  CHECK(s.decided.error == Errc::unknown);
  for (const Heard* const answer : {&s.serving, &s.on_way, &s.lost}) {
    CHECK(answer->completions == 1);
    CHECK(answer->error == Errc::shut_down);
  }
  s.run_to(1s);
  CHECK(s.charged() == 1);
  CHECK(s.timeline.pending() == 0);
  if (!destroy) {
    Heard later;
    s.ask(later);
    CHECK(later.completions == 1);
    CHECK(later.error == Errc::shut_down);
    CHECK(s.remote->in_flight() == 0);
  }
}

TEST_CASE("close() takes back messages whose callers have left already") {
  Setup s(5ms);
  Heard answer;
  s.ask(answer);
  s.run_to(6ms);
  CHECK(answer.error == Errc::unknown);
  CHECK(s.remote->in_flight() == 1);
  s.remote->close();
  CHECK(answer.completions == 1);
  CHECK(s.remote->in_flight() == 0);
  CHECK(s.timeline.pending() == 0);
}

TEST_CASE("what a process has sent before it dies is decided, and its answer reaches nobody") {
  UnderWay s(false);
  s.remote->abandon();
  for (const Heard* const answer : {&s.decided, &s.serving, &s.on_way, &s.lost}) {
    CHECK(answer->completions == 1);
    CHECK(answer->error == Errc::unknown);
    CHECK(answer->when == s.start + 12ms);
  }
  CHECK(s.charged() == 1);
  CHECK(s.remote->orphaned() == 1);
  CHECK(s.remote->in_flight() == 3);
  Heard later;
  s.ask(later);
  CHECK(later.error == Errc::shut_down);
  s.contexts.clear();  // nothing of the process is used any more
  SECTION("until all has arrived") {
    s.run_to(1s);
    CHECK(s.charged() == 3);
    CHECK(s.remote->orphaned() == 3);
  }
  SECTION("or the connection is destroyed") {
    s.run_to(21ms);  // the second is decided then
    s.remote.reset();
    s.run_to(1s);
    CHECK(s.charged() == 2);
  }
  CHECK(s.timeline.pending() == 0);
  CHECK(s.decided.completions + s.serving.completions + s.on_way.completions + s.lost.completions ==
        4);
}

TEST_CASE("a refusal that reaches nobody leaves no unit unused") {
  Setup s;
  const TokenBucket direct(*s.inner, "api", Quota::per(1, std::chrono::hours{24}).burst(1000));
  CHECK(direct.try_acquire("a", 1000).allowed);
  Heard refused;
  s.ask(refused);
  s.run_to(11ms);
  s.remote->abandon();
  CHECK(s.remote->orphaned() == 0);
}

TEST_CASE("a wake-up that was sent before its process died arrives, one for it does not") {
  Setup s;
  int dead_seen = 0;
  int other_seen = 0;
  const Key key = Key("tag", "name");
  const auto dead = s.remote->subscribe(key, [&dead_seen] { ++dead_seen; });
  const auto other = s.inner->subscribe(key, [&other_seen] { ++other_seen; });
  s.inner->notify(key);  // on its way to both
  s.remote->notify(key);
  const int before = other_seen;
  s.remote->abandon();
  s.run_to(1s);
  CHECK(other_seen == before + 1);
  CHECK(dead_seen == 0);
  CHECK(s.timeline.pending() == 0);
}

TEST_CASE("refusals do not overtake earlier answers") {
  Local s;
  StoreServer server(Delay::constant(Span{1}), stream(1, 1, 1));
  RemoteStore remote(s.timeline, *s.inner,
                     {Delay::constant(1ms), Delay::uniform(0us, 50ms), &server, nullptr, 1s},
                     stream(1, 2, 2));
  const TokenBucket bucket(remote, "api", Quota::per_second(1).burst(1000));
  std::vector<Heard> answers(200);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    server.set_state(i % 2 == 0 ? StoreServer::State::up : StoreServer::State::refusing);
    s.ask(remote, bucket.acquire_step("a"), answers[i]);
    s.timeline.run_until(s.clock.now() + 1ms);
  }
  s.timeline.run_until(s.clock.now() + 1s);
  for (std::size_t i = 1; i < answers.size(); ++i) {
    CAPTURE(i);
    REQUIRE(answers[i].when >= answers[i - 1].when);
    REQUIRE(answers[i].error == (i % 2 == 0 ? std::error_code() : Errc::not_connected));
  }
}

TEST_CASE("whatever the faults, every call completes once, and what is told is true") {
  test::Random random("whatever the faults, every call completes once, and what is told is true");
  CAPTURE(random.repeat());
  for (std::size_t round = 0; round < test::scaled(60); ++round) {
    Setup s(Span{random.between(1, 60'000)});
    std::vector<Heard> answers(200);
    std::size_t next = 0;
    while (next < answers.size()) {
      switch (random.between(0, 9)) {
        case 0:
          s.server.set_state(static_cast<StoreServer::State>(random.between(0, 2)));
          break;
        case 1:
          s.server.pause(s.timeline.now() + Span{random.between(0, 50'000)});
          break;
        case 2:
          s.server.slow_down(static_cast<std::uint32_t>(random.between(0, 3000)));
          break;
        case 3:
          s.faults = {.cut = random.one_in(4),
                      .lost = static_cast<std::uint32_t>(random.between(0, 500'000)),
                      .answer_lost = static_cast<std::uint32_t>(random.between(0, 500'000)),
                      .doubled = static_cast<std::uint32_t>(random.between(0, 500'000))};
          break;
        case 4:
          if (random.one_in(20)) s.remote->hang_up();
          break;
        default:
          s.ask(answers[next++]);
      }
      s.timeline.run_until(s.timeline.now() + Span{random.between(0, 3'000)});
    }
    if (random.one_in(2)) s.remote.reset();
    s.timeline.run_until(s.timeline.now() + 1h);
    if (s.remote) REQUIRE(s.remote->in_flight() == 0);
    REQUIRE(s.timeline.pending() == 0);
    Word told = 0;  // granted
    Word perhaps = 0;
    for (const Heard& answer : answers) {
      REQUIRE(answer.completions == 1);
      if (!answer.error) {
        ++told;
      } else if (answer.error == Failure::not_executed) {
        REQUIRE((answer.error == Errc::not_connected || answer.error == Errc::shut_down));
      } else {
        REQUIRE(answer.error == Errc::unknown);
        ++perhaps;
      }
    }
    const Word charged = s.charged();
    REQUIRE(charged >= told);
    REQUIRE(charged <= 2 * (told + perhaps));  // requests may arrive twice
  }
}
