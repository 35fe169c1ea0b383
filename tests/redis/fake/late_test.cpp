// A server that is slow and does answer: what comes in time is an answer, what comes late pairs
// with nothing, and neither is a reason to leave. Threading: as calls_test.cpp.
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 20s;
  options.stall_timeout = 1h;
  return options;
}

}  // namespace

TEST_CASE("late answers reach those who still wait, and nobody else", "[fake]") {
  Random random("late answers reach those who still wait, and nobody else");
  CAPTURE(random.repeat());
  constexpr std::size_t calls = 60;
  std::atomic<std::size_t> heard{0};
  std::atomic<bool> answers{false};
  std::array<std::string, calls> refusals;  // where it is empty, the call is decided
  FakeServer server([&](Peer& peer, int) {
    std::vector<Command> held;
    while (held.size() < calls) {
      const auto call = peer.read_call();
      if (!call) return;
      held.push_back(*call);
      ++heard;
    }
    if (!eventually([&] { return answers.load(); })) return;
    for (std::size_t i = 0; i < calls; ++i) {
      const auto at = static_cast<Word>(i) + 1;
      if (!peer.send(refusals[i].empty() ? allowing(held[i], at) : refusals[i])) return;
    }
    serve_well(peer, 500);
  });
  std::array<bool, calls> is_patient{};
  std::size_t impatient = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    is_patient[i] = random.one_in(2);
    impatient += is_patient[i] ? 0U : 1U;
    // Nobody waits for these any more, and nothing follows from them.
    const std::array refused{"-NOSCRIPT x\r\n", "-LOADING x\r\n", "-TRYAGAIN x\r\n", "-ERR x\r\n"};
    if (!is_patient[i] && random.one_in(2)) refusals[i] = refused[random.below(refused.size())];
  }
  const auto store = make_redis_store(options_for(server));
  const Bucket bucket(*store, quota);
  Crowd crowd(calls);
  std::array<std::stop_source, calls> stops;
  for (std::size_t i = 0; i < calls; ++i) {
    bucket.ask(crowd[i], "a", 1h, stops[i].get_token());
  }
  REQUIRE(eventually([&] { return heard == calls; }));
  for (std::size_t i = 0; i < calls; ++i) {
    if (!is_patient[i]) stops[i].request_stop();
  }
  for (std::size_t i = 0; i < calls; ++i) {
    if (!is_patient[i]) CHECK(crowd[i].wait().error == Errc::unknown);
  }
  Asked next;
  bucket.ask(next, "a", 1h);
  answers = true;
  REQUIRE(crowd.wait());
  for (std::size_t i = 0; i < calls; ++i) {
    CAPTURE(i);
    if (!is_patient[i]) continue;
    CHECK_FALSE(crowd[i].error);
    CHECK(crowd[i].decision.at == to_time(static_cast<Word>(i) + 1));
  }
  CHECK_FALSE(next.wait().error);
  CHECK(next.decision.at == to_time(500));
  CHECK(store->stats().late_replies == impatient);
  CHECK(store->stats().unknown == impatient);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a call that its deadline ended and one behind it that waits are not mixed up",
          "[fake]") {
  std::atomic<bool> answers{false};
  FakeServer server([&](Peer& peer, int) {
    const auto late = peer.read_call();
    const auto patient = late ? peer.read_call() : late;
    if (!patient || !eventually([&] { return answers.load(); })) return;
    peer.send(allowing(*late, 1) + allowing(*patient, 2));
    serve_well(peer, 500);
  });
  const auto store = make_redis_store(options_for(server));
  const Bucket bucket(*store, quota);
  Asked late, patient;
  bucket.ask(late, "a", 300ms);
  bucket.ask(patient, "a", 1h);
  CHECK(late.wait().error == Failure::unknown);
  CHECK(patient.answers == 0);
  answers = true;
  CHECK_FALSE(patient.wait().error);
  CHECK(patient.decision.at == to_time(2));
  CHECK(late.answers == 1);
  CHECK(store->stats().connections == 1);
}

TEST_CASE("a server that is never without a request, and answers each in time, is not left",
          "[fake]") {
  constexpr Word calls = 16;
  FakeServer server([](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      std::this_thread::sleep_for(100ms);
      if (!peer.send(allowing(*call, at))) return;
    }
  });
  RedisOptions options = options_for(server);
  options.stall_timeout = 1s;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  Crowd crowd(static_cast<std::size_t>(calls));
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    bucket.ask(crowd[i], "a", 1h);
    if (i >= 2) crowd[i - 2].wait();  // two wait at any time, for longer than a stall in all
  }
  REQUIRE(crowd.wait());
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    CHECK(crowd[i].decision.at == to_time(static_cast<Word>(i) + 1));
  }
  CHECK(store->stats().connections == 1);
}
