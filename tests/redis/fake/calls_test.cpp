// The store against a server that answers nonsense, too much, too little, late, not at all, or to
// the wrong call. Threading: the test's thread asks, the fake server runs on its own.
#include "sluice/circuit_breaker.hpp"
#include "sluice/fallback_store.hpp"
#include "tests/redis/fake/rig.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

std::size_t count(const Crowd& crowd, Errc code) {
  return crowd.count([=](const Asked& call) { return call.error == code; });
}
bool are_decided_from(Crowd& crowd, Word first_at) {
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    const bool is_right =
        !crowd[i].error && crowd[i].decision.at == to_time(first_at + static_cast<Word>(i));
    if (!is_right) return false;
  }
  return true;
}

/// The first connection answers the first call with `reply` and whatever follows; later ones serve.
void check_nonsense(std::string_view reply, bool closes = false) {
  CAPTURE(std::string(reply.substr(0, 40)));
  const Rig rig(at_first([&](Peer& peer) {
    if (peer.read_call() && peer.send(reply) && !closes) peer.wait_for_close();
  }));
  Asked first, second;
  rig.ask(first);
  CHECK(first.wait().error == (closes ? Errc::unknown : Errc::protocol_error));
  CHECK_FALSE(first.decision.allowed);
  rig.ask(second);
  CHECK_FALSE(second.wait().error);
  CHECK(second.decision.at >= to_time(500));
  if (!closes) CHECK(rig.stats().protocol_errors == 1);
}

/// Refuses calls with a word as long as the test wants, and counts them.
struct Refusing {
  explicit Refusing(std::string word) : reply("-" + std::move(word) + " no\r\n") {}

  std::string reply;
  std::atomic<bool> refuses{true};
  std::atomic<int> refused{0};
  Rig rig{[this](Peer& peer, int) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      const bool no = refuses;
      if (no) ++refused;
      if (!peer.send(no ? reply : allowing(*call, at))) return;
    }
  }};
};

}  // namespace

TEST_CASE("a server that answers nonsense, or too much, is left, and the call is unknown",
          "[fake]") {
  for (const std::string& reply :
       split("HTTP/1.1 400 Bad Request\r\n\r\n;\r\n;+OK\r\n;:1\r\n;$-1\r\n;$0\r\n\r\n;$3\r\nabcde;"
             "*1\r\n$1\r\na\r\n;*-1\r\n;>2\r\n+a\r\n+b\r\n;+a\n+a\n+a\n;"
             "$00000000000000000000000000000005\r\n;$2147483647\r\n;$16385\r\n;*1000000000\r\n")) {
    check_nonsense(reply);
  }
  check_nonsense("-" + std::string(2'000'000, 'a'));
  check_nonsense(bulk(std::string(16'384, 'x')));
  check_nonsense(bulk(payload(0, 1, {{1, 1, 0, 1}})));  // another nonce
  for (const char* reply : {"$48\r\nabc", "-NOSCR", ""}) check_nonsense(reply, true);
}

TEST_CASE("a call whose reply was swallowed is not asked again", "[fake]") {
  std::atomic<int> calls{0};
  const bool reset = GENERATE(false, true);
  const Rig rig([&](Peer& peer, int) {
    if (!peer.read_call()) return;
    ++calls;
    if (reset) peer.reset_on_close();
  });
  for (const int expected : {1, 2}) {
    CHECK(rig.error() == Errc::unknown);
    CHECK(calls == expected);
  }
}

TEST_CASE("a server that answers nothing is given up, also by calls without an end", "[fake]") {
  const Rig rig(at_first([](Peer& peer) {
                  if (peer.read_call()) peer.wait_for_close();
                }),
                [](RedisOptions& options) { options.stall_timeout = 50ms; });
  CHECK(rig.error(Span::max()) == Errc::unknown);
  CHECK_FALSE(rig.error(Span::max()));
  CHECK(rig.stats().connections == 2);
}

TEST_CASE("a server that is never without a request, and answers each in time, is not left",
          "[fake]") {
  const Rig rig(
      [](Peer& peer, int) {
        for (Word at = 1; const auto call = peer.read_call(); ++at) {
          std::this_thread::sleep_for(100ms);
          if (!peer.send(allowing(*call, at))) return;
        }
      },
      [](RedisOptions& options) { options.stall_timeout = 1s; });
  Crowd crowd(16);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    rig.ask(crowd[i]);
    if (i >= 2) crowd[i - 2].wait();  // two wait at any time, for longer than a stall in all
  }
  REQUIRE(crowd.wait());
  CHECK(are_decided_from(crowd, 1));
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("what a full socket did not take is certainly not executed, and never sent", "[fake]") {
  const bool is_stopped = GENERATE(true, false);
  const Errc unsent = is_stopped ? Errc::cancelled : Errc::timed_out;
  std::atomic<bool> reads{false};
  std::atomic<std::size_t> heard{0};
  const Rig rig(
      [&](Peer& peer, int) {
        const auto first = peer.read_call();
        if (!first || !eventually([&] { return reads.load(); })) return;
        if (!peer.send(allowing(*first, 1))) return;
        for (Word at = 2; const auto call = peer.read_call(); ++at) {
          ++heard;
          if (!peer.send(allowing(*call, at))) return;
        }
      },
      [](RedisOptions& options) {
        options.max_in_flight = 100'000;
        options.stall_timeout = 1h;  // for it may take seconds here until the server answers
      });
  std::stop_source stop;
  Crowd crowd(40'000);  // more than a socket takes
  rig.ask_all(crowd, is_stopped ? Span(1h) : 500ms, stop.get_token());
  CHECK(rig.error(1ms) == Errc::timed_out);  // and the socket is full
  if (is_stopped) stop.request_stop();
  REQUIRE(crowd.wait());
  CHECK(count(crowd, Errc::unknown) > 0);
  CHECK(count(crowd, unsent) > 0);
  CHECK(count(crowd, Errc::unknown) + count(crowd, unsent) == crowd.size());
  reads = true;
  CHECK_FALSE(rig.error(1h));
  CHECK(heard == count(crowd, Errc::unknown));  // one was read before, and one was asked now
  CHECK(rig.stats().late_replies == count(crowd, Errc::unknown));
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("calls behind a full socket are decided on the next connection", "[fake]") {
  std::atomic<bool> is_full{false};
  const Rig rig(at_first([&](Peer& peer) {
                  if (peer.read_call()) eventually([&] { return is_full.load(); });
                }),
                [](RedisOptions& options) { options.max_in_flight = 100'000; });
  Crowd crowd(40'000);  // more than a socket takes
  rig.ask_all(crowd);
  CHECK(rig.error(1ms) == Errc::timed_out);
  is_full = true;
  REQUIRE(crowd.wait());
  const std::size_t decided = crowd.count([](const Asked& call) { return !call.error; });
  CHECK(count(crowd, Errc::unknown) > 0);
  CHECK(decided > 0);
  CHECK(count(crowd, Errc::unknown) + decided == crowd.size());
}

TEST_CASE("late answers reach those who still wait, and nobody else", "[fake]") {
  Random random("late answers reach those who still wait, and nobody else");
  CAPTURE(random.repeat());
  constexpr std::size_t calls = 60;
  std::atomic<std::size_t> heard{0};
  std::atomic<bool> answers{false};
  std::array<std::string, calls> refusals;  // where it is empty, the call is decided
  std::array<bool, calls> is_patient{};
  std::size_t impatient = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    is_patient[i] = random.one_in(2);
    impatient += is_patient[i] ? 0U : 1U;
    // Nobody waits for these any more, and nothing follows from them.
    const std::array refused{"-NOSCRIPT x\r\n", "-LOADING x\r\n", "-TRYAGAIN x\r\n", "-ERR x\r\n"};
    if (!is_patient[i] && random.one_in(2)) refusals[i] = refused[random.below(refused.size())];
  }
  const Rig rig([&](Peer& peer, int) {
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
  Crowd crowd(calls);
  std::array<std::stop_source, calls> stops;
  for (std::size_t i = 0; i < calls; ++i) rig.ask(crowd[i], 1h, stops[i].get_token());
  REQUIRE(eventually([&] { return heard == calls; }));
  for (std::size_t i = 0; i < calls; ++i) {
    if (is_patient[i]) continue;
    stops[i].request_stop();
    CHECK(crowd[i].wait().error == Errc::unknown);
  }
  Asked next;
  rig.ask(next);
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
  CHECK(rig.stats().late_replies == impatient);
  CHECK(rig.stats().unknown == impatient);
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("a call that meets what will pass is tried again and decided", "[fake]") {
  for (const char* word : {"LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN"}) {
    CAPTURE(word);
    Refusing it{word};
    Asked asked;
    it.rig.ask(asked);
    REQUIRE(eventually([&] { return it.refused >= 4; }));
    CHECK(asked.answers == 0);
    it.refuses = false;
    CHECK_FALSE(asked.wait().error);
    CHECK(asked.answers == 1);
    CHECK(it.rig.stats().unknown == 0);
  }
}

TEST_CASE("behind a fallback store a server that is loading costs a call its patience, and no more",
          "[fake][fallback]") {
  Refusing it{"LOADING"};
  CircuitBreaker breaker(it.rig.store->clock(), {.failures = 1000});
  FallbackStore store(*it.rig.store, breaker, FailurePolicy::open());
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  // On a busy machine the first call may end before there is a connection.
  CHECK(eventually([&] {
    CHECK(bucket.try_acquire("a").source == Source::policy);
    return it.refused >= 1;
  }));
  CHECK(store.stats().failures >= 1);
  it.refuses = false;
  CHECK(eventually([&] { return bucket.try_acquire("a").source == Source::redis; }));
}

TEST_CASE("a connection that decided a call was a good one, however short", "[fake]") {
  const Rig rig(serving(1), [](RedisOptions& options) {
    // Pauses that grew would be longer than the test's patience by far.
    options.reconnect_min = 1ms;
    options.reconnect_max = 24h;
  });
  // A call that meets the end of the connection may be unknown.
  for (int decided = 0; decided < 60;) decided += rig.error(1h) ? 0 : 1;
  CHECK(rig.stats().connections >= 60);
}

TEST_CASE("a server that cannot decide any more is come back to by the back-off", "[fake]") {
  Crowd crowd(100);
  const SystemClock clock;
  const Time begin = clock.now();
  const Rig rig([](Peer& peer, int) {  // each connection decides one call, as a replica a peek
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      if (!peer.send(at == 1 ? allowing(*call, at) : "-READONLY a replica\r\n")) return;
    }
  });
  rig.ask_all(crowd);
  REQUIRE(eventually([&] { return rig.server.connections() >= 16; }));
  // The pauses are drawn from [0, 10 ms * 2^n), at most 250 ms: that 15 of them take less than
  // 200 ms is less likely than 2^-28.
  CHECK(clock.now() - begin > 200ms);
}

TEST_CASE("a server that is left answers the calls that it has", "[fake]") {
  const Rig rig(at_first([](Peer& peer) {
    const auto first = peer.read_call();
    const auto second = peer.read_call();
    if (!first || !second || !peer.send("-READONLY a replica\r\n")) return;
    std::this_thread::sleep_for(20ms);
    if (peer.send(allowing(*second, 1))) peer.wait_for_close();
  }));
  Crowd crowd(2);
  rig.ask_all(crowd);
  REQUIRE(crowd.wait());
  CHECK(crowd[0].decision.at >= to_time(500));
  CHECK(crowd[1].decision.at == to_time(1));
}

TEST_CASE("requests that a mute server holds never exceed max_in_flight", "[fake]") {
  std::atomic<int> calls{0};
  std::atomic<bool> answers{false};
  const Rig rig(
      [&](Peer& peer, int) {
        std::vector<Command> held;
        while (const auto call = peer.read_call()) {
          ++calls;
          held.push_back(*call);
          if (held.size() < 8 || !eventually([&] { return answers.load(); })) continue;
          for (const Command& command : held) peer.send(allowing(command, 1));
          return serve_well(peer, 500);
        }
      },
      [](RedisOptions& options) { options.max_in_flight = 8; });
  Crowd crowd(8);
  rig.ask_all(crowd, 3s);
  REQUIRE(eventually([&] { return calls == 8; }));
  CHECK(crowd.wait());
  CHECK(count(crowd, Errc::unknown) == 8);
  for (int i = 0; i < 100; ++i) CHECK(rig.error(10s) == Errc::queue_full);
  answers = true;
  CHECK(eventually([&] { return rig.stats().late_replies == 8; }));
  CHECK_FALSE(rig.error(10s));
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("the completion of an invalid plan in a batch may destroy the store", "[fake]") {
  for (const std::size_t at : {0U, 1U, 63U, 64U, 70U, 99U}) {
    CAPTURE(at);
    Rig rig([](Peer& peer, int) {
      if (peer.read_call()) peer.wait_for_close();
    });
    struct Destroyer {
      Rig& rig;
      Crowd others{100};
      std::size_t ended = 0;
      std::error_code error{};
    } it{rig};
    const Step good = (*rig.bucket).acquire_step("a");
    const Step bad = (*rig.bucket).acquire_step("");
    std::vector<Plan> plans;
    std::vector<Completion> done;
    for (std::size_t i = 0; i < it.others.size(); ++i) {
      if (i == at) {
        plans.emplace_back(bad);
        done.emplace_back(
            [](void* self, const Outcome& outcome) noexcept {
              auto& destroyer = *static_cast<Destroyer*>(self);
              destroyer.error = outcome.error;
              destroyer.rig.store.reset();
              destroyer.ended =
                  destroyer.others.count([](const Asked& c) { return c.answers == 1; });
            },
            &it);
      }
      plans.push_back(Plan(good).within(20s));
      done.push_back(it.others[i].completion());
    }
    RedisStore& store = *rig.store;
    store.execute_batch(plans, done);
    CHECK(it.error == Errc::invalid_key);
    CHECK(it.ended == at);
    CHECK(it.others.wait());
    CHECK(count(it.others, Errc::shut_down) + count(it.others, Errc::unknown) == it.others.size());
  }
}
