// A store behind a server and a network that fail: each call completes once, at the right time,
// with the error that is true. Threading: single-threaded.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/remote_store.hpp"
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
  Time when{};
  int completions = 0;
};

constexpr Span to_store = 1ms;
constexpr Span from_store = 2ms;
constexpr Span service = 10ms;

/// One server, one connection, a bucket of 1,000 units that hardly refills.
struct Setup {
  VirtualClock clock;
  Timeline timeline{clock};
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  StoreServer server{Delay::constant(service), stream(1, 1, 1)};
  LinkFaults faults;
  std::optional<RemoteStore> remote;
  TokenBucket bucket;
  Time start = clock.now();

  explicit Setup(Span timeout = 100ms)
      : remote(
            std::in_place, timeline, *inner,
            Link{Delay::constant(to_store), Delay::constant(from_store), &server, &faults, timeout},
            stream(1, 2, 2)),
        bucket(*remote, "api", Quota::per(1, std::chrono::hours{24}).burst(1000)) {}

  void ask(Heard& answer) {
    contexts.push_back(std::make_unique<Context>(Context{&clock, &answer}));
    remote->execute(bucket.acquire_step("a"), Completion(&Context::note, contexts.back().get()));
  }
  void run_to(Span since_start) { timeline.run_until(start + since_start); }
  /// The units that the store has charged.
  Word charged() {
    const TokenBucket direct(*inner, "api", Quota::per(1, std::chrono::hours{24}).burst(1000));
    return 1000 - direct.peek("a").remaining;
  }

  struct Context {
    VirtualClock* clock;
    Heard* answer;
    static void note(void* context, const Outcome& outcome) noexcept {
      auto& [now, into] = *static_cast<Context*>(context);
      into->error = outcome.error;
      into->decision = outcome.decision;
      into->when = now->now();
      ++into->completions;
    }
  };
  std::vector<std::unique_ptr<Context>> contexts;
};

}  // namespace

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
  Setup::Context context{&s.clock, &answer};
  const Step step = s.bucket.acquire_step("a");
  s.remote->execute(Plan(step).within(14ms), Completion(&Setup::Context::note, &context));
  s.run_to(1s);
  CHECK(answer.completions == 1);
  CHECK(answer.decision.allowed);

  Heard late;
  Setup::Context other{&s.clock, &late};
  s.remote->execute(Plan(step).within(-1ms), Completion(&Setup::Context::note, &other));
  CHECK(late.completions == 1);
  CHECK(late.error == Errc::timed_out);
  CHECK(s.remote->operations() == 1);
}

TEST_CASE("a server that refuses connections is known to have executed nothing") {
  Setup s;
  s.server.set_state(StoreServer::State::refusing);
  Heard answer;
  s.ask(answer);
  s.run_to(1s);
  CHECK(answer.completions == 1);
  CHECK(answer.error == Errc::not_connected);
  CHECK(answer.error == Failure::not_executed);
  CHECK(answer.when == s.start + to_store + from_store);
  CHECK(s.charged() == 0);
}

TEST_CASE("a silent server lets calls run into their timeouts") {
  Setup s;
  s.server.set_state(StoreServer::State::silent);
  Heard answer;
  s.ask(answer);
  s.run_to(1s);
  CHECK(answer.completions == 1);
  CHECK(answer.error == Errc::unknown);
  CHECK(answer.when == s.start + 100ms);
  CHECK(s.charged() == 0);
  CHECK(s.remote->in_flight() == 0);
  CHECK(s.timeline.pending() == 0);
}

TEST_CASE("a paused server works off afterwards what has come meanwhile") {
  Setup s;
  s.server.pause(s.start + 50ms);
  std::array<Heard, 2> answers;
  for (Heard& answer : answers) s.ask(answer);
  s.run_to(1s);
  CHECK(answers[0].when == s.start + 50ms + service + from_store);
  CHECK(answers[1].when == s.start + 50ms + 2 * service + from_store);
  CHECK(s.charged() == 2);
}

TEST_CASE("a slow server takes that many times as long") {
  Setup s;
  s.server.slow_down(2500);
  Heard slow;
  s.ask(slow);
  s.run_to(50ms);
  CHECK(slow.when == s.start + to_store + 25ms + from_store);
  s.server.slow_down(1000);
  Heard even;
  s.ask(even);
  s.run_to(1s);
  CHECK(even.when == s.start + 50ms + to_store + service + from_store);
}

TEST_CASE("the longest service time times the largest factor is no overflow") {
  StoreServer server(Delay::constant(std::chrono::hours{24 * 30}), stream(1, 1, 1));
  server.slow_down(1'000'000'000);
  const Time now = to_time(1'000'000);
  CHECK(server.serve(now) == now + std::chrono::hours{24 * 366});
}

TEST_CASE("lost requests charge nothing, lost answers do, doubled requests charge twice") {
  Setup s;
  Heard answer;
  SECTION("requests") {
    s.faults.lost = 1'000'000;
    s.ask(answer);
    s.run_to(1s);
    CHECK(s.charged() == 0);
    CHECK(answer.error == Errc::unknown);
  }
  SECTION("answers") {
    s.faults.answer_lost = 1'000'000;
    s.ask(answer);
    s.run_to(1s);
    CHECK(s.charged() == 1);
    CHECK(answer.error == Errc::unknown);
  }
  SECTION("both ways, cut while the plan is decided") {
    s.ask(answer);
    s.run_to(5ms);
    s.faults.cut = true;
    s.run_to(1s);
    CHECK(s.charged() == 1);
    CHECK(answer.error == Errc::unknown);
  }
  SECTION("doubled") {
    s.faults.doubled = 1'000'000;
    s.ask(answer);
    s.run_to(1s);
    CHECK(s.charged() == 2);
    CHECK(answer.decision.allowed);
  }
  CHECK(answer.completions == 1);
  CHECK(s.remote->in_flight() == 0);
  CHECK(s.timeline.pending() == 0);
}

TEST_CASE("a doubled plan with an id is executed once") {
  Setup s;
  s.faults.doubled = 1'000'000;
  Heard answer;
  Setup::Context context{&s.clock, &answer};
  const Step step = s.bucket.acquire_step("a");
  s.remote->execute(Plan(step).idempotent(RequestId{1, 2}),
                    Completion(&Setup::Context::note, &context));
  s.run_to(1s);
  CHECK(answer.decision.allowed);
  CHECK(s.charged() == 1);
}

TEST_CASE("close() and destruction answer messages in every state, once and truly") {
  Setup s(30ms);
  Heard decided;  // its answer is on its way
  Heard serving;  // at the server
  Heard on_way;   // to the server
  Heard expired;  // given up by its caller, at the server
  Heard lost;     // its request was lost
  s.ask(decided);
  s.ask(serving);
  s.server.pause(s.start);
  s.run_to(11ms);  // the first is decided at 11 ms
  s.faults.lost = 1'000'000;
  s.ask(lost);
  s.faults.lost = 0;
  s.run_to(12ms);
  s.ask(on_way);
  CHECK(s.remote->in_flight() == 4);
  const bool destroy = GENERATE(false, true);
  if (destroy) {
    s.remote.reset();
  } else {
    s.remote->close();
  }
  CHECK(decided.completions == 1);
  CHECK(decided.error == Errc::unknown);
  for (Heard* const answer : {&serving, &on_way, &lost}) {
    CHECK(answer->completions == 1);
    CHECK(answer->error == Errc::shut_down);
  }
  s.run_to(1s);
  CHECK(s.charged() == 1);
  CHECK(s.timeline.pending() == 0);
  if (!destroy) {
    s.ask(expired);
    CHECK(expired.completions == 1);
    CHECK(expired.error == Errc::shut_down);
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
  Setup s(30ms);
  Heard decided;  // its answer is on its way
  Heard serving;  // at the server
  Heard on_way;   // to the server
  Heard lost;     // its request was lost
  s.ask(decided);
  s.ask(serving);
  s.run_to(11ms);  // the first is decided at 11 ms
  s.faults.lost = 1'000'000;
  s.ask(lost);
  s.faults.lost = 0;
  s.run_to(12ms);
  s.ask(on_way);
  s.remote->abandon();
  for (Heard* const answer : {&decided, &serving, &on_way, &lost}) {
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
  CHECK(decided.completions + serving.completions + on_way.completions + lost.completions == 4);
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
  VirtualClock clock;
  Timeline timeline{clock};
  const auto inner = make_virtual_store(clock);
  StoreServer server(Delay::constant(Span{1}), stream(1, 1, 1));
  RemoteStore remote(timeline, *inner,
                     {Delay::constant(1ms), Delay::uniform(0us, 50ms), &server, nullptr, 1s},
                     stream(1, 2, 2));
  const TokenBucket bucket(remote, "api", Quota::per_second(1).burst(1000));
  std::vector<Heard> answers(200);
  std::vector<Setup::Context> contexts;
  contexts.reserve(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    server.set_state(i % 2 == 0 ? StoreServer::State::up : StoreServer::State::refusing);
    contexts.push_back({&clock, &answers[i]});
    remote.execute(bucket.acquire_step("a"), Completion(&Setup::Context::note, &contexts.back()));
    timeline.run_until(clock.now() + 1ms);
  }
  timeline.run_until(clock.now() + 1s);
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
