// Calls that a server refuses for now: their pauses, and what they end with. In virtual time,
// without a network. Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Said {
  const char* words;
  Errc code;
  Heard heard;
};

const std::vector<Said> passing{
    {"LOADING Redis is loading the dataset in memory", Errc::loading, Heard::ok},
    {"READONLY You can't write against a read only replica.", Errc::read_only, Heard::reconnect},
    {"MASTERDOWN Link with MASTER is down", Errc::master_down, Heard::reconnect},
    {"TRYAGAIN Multiple keys request during rehashing of slot", Errc::try_again, Heard::ok},
    {"CLUSTERDOWN Hash slot not served", Errc::cluster_down, Heard::ok}};
constexpr const char* loading = "LOADING";

/// Time goes on to the next end of a pause.
void sleep(World& world) {
  REQUIRE(world.pipeline.next_resumption() != Time::max());
  world.now = world.pipeline.next_resumption();
  world.pipeline.expire(world.now, Errc::timed_out);
}

}  // namespace

TEST_CASE("a call that a server refuses for now is sent again behind a pause", "[pipeline]") {
  for (const auto& [words, code, heard] : passing) {
    CAPTURE(words);
    Asked asked;
    World world;
    const std::size_t steps = code == Errc::try_again ? 2 : 1;
    world.pipeline.submit(make_call(asked, 7, Time::max(), steps));
    for (int i = 0; i < 20; ++i) {
      const auto sent = world.flush();
      REQUIRE(sent.size() == 1);
      CHECK(nonce_of(sent[0]) == 7);
      CHECK_FALSE(world.pipeline.take_failing());
      CHECK(world.hear_error(words) == heard);
      CHECK(world.pipeline.take_failing());
      CHECK_FALSE(world.pipeline.take_failing());  // it lasts, and has not begun again
      CHECK(world.flush().empty());
      const Time end = world.pipeline.next_resumption();
      world.now = end - 1us;
      world.pipeline.expire(world.now, Errc::timed_out);
      CHECK(world.flush().empty());
      sleep(world);
      CHECK(world.now == end);
    }
    CHECK(asked.answers == 0);
    CHECK(world.flush().size() == 1);
    CHECK(world.answer(7, 107, steps) == Heard::ok);
    CHECK(was_decided(asked, 107));
    CHECK(world.pipeline.counters().unknown == 0);
  }
}

TEST_CASE("pauses are drawn from 5 ms to a bound that doubles up to 100 ms", "[pipeline]") {
  Random random("pauses are drawn from 5 ms to a bound that doubles up to 100 ms");
  CAPTURE(random.repeat());
  constexpr std::array<Span, 7> most{10ms, 20ms, 40ms, 80ms, 100ms, 100ms, 100ms};
  std::array<Span, most.size()> longest{}, shortest;
  shortest.fill(1h);
  for (int run = 0; run < 200; ++run) {
    Asked asked;
    Pipeline pipeline(RedisScripts::eval, random.below(1'000'000'000));
    pipeline.submit(make_call(asked, 1));
    Time now = to_time(1'000'000);
    for (std::size_t i = 0; i < most.size(); ++i) {
      std::string out;
      pipeline.flush(out, now);
      pipeline.took(out, out.size());
      pipeline.hear_error(loading, now);
      const Span pause = pipeline.next_resumption() - now;
      longest[i] = std::max(longest[i], pause);
      shortest[i] = std::min(shortest[i], pause);
      now += pause;
      pipeline.expire(now, Errc::timed_out);
    }
    pipeline.abandon(Errc::shut_down);
  }
  for (std::size_t i = 0; i < most.size(); ++i) {
    CAPTURE(i);
    CHECK(shortest[i] >= 5ms);
    CHECK(longest[i] <= most[i]);
    // 200 draws, of which none falls into the last or first sixth: less likely than 2^-50.
    CHECK(longest[i] > most[i] - (most[i] - 5ms) / 6);
    CHECK(shortest[i] < 5ms + (most[i] - 5ms) / 6);
  }
}

TEST_CASE("calls that are refused together do not come back together", "[pipeline]") {
  Asked asked[50];
  World world;
  for (std::uint64_t i = 0; i < 50; ++i) world.pipeline.submit(make_call(asked[i], i));
  world.flush();
  for (int i = 0; i < 50; ++i) world.hear_error(loading);
  std::size_t moments = 0;
  for (std::size_t sent = 0; sent < 50; ++moments) {
    sleep(world);
    sent += world.flush().size();
  }
  CHECK(moments > 10);
}

TEST_CASE("by its deadline a call ends with what the server said last", "[pipeline]") {
  for (const auto& [words, code, heard] : passing) {
    CAPTURE(words);
    Asked asked;
    World world;
    const Time deadline = world.now + 1s;
    world.pipeline.submit(make_call(asked, 1, deadline));
    world.flush();
    world.hear_error("LOADING first");
    while (world.pipeline.next_resumption() != Time::max()) {
      sleep(world);
      CHECK(world.now <= deadline - Pipeline::least_pause);  // time for an answer
      CHECK(world.flush().size() == 1);
      world.hear_error(words);
    }
    CHECK(world.pipeline.next_deadline() == deadline);
    world.pipeline.expire(deadline - 1us, Errc::timed_out);
    CHECK(asked.answers == 0);
    CHECK(world.flush().empty());
    world.pipeline.expire(deadline, Errc::timed_out);
    CHECK(has_ended(asked, code));
    CHECK(asked.error == Failure::not_executed);
    CHECK_FALSE(world.pipeline.has_unsent());
  }
}

TEST_CASE("a call whose pause is over, and which finds no connection, ends with what it met",
          "[pipeline]") {
  Asked asked;
  World world;
  world.pipeline.submit(make_call(asked, 1, world.now + 50ms));
  world.flush();
  world.hear_error("READONLY");
  world.pipeline.disconnect();
  CHECK(asked.answers == 0);
  sleep(world);
  CHECK(world.pipeline.has_unsent());
  world.pipeline.expire(world.now + 50ms, Errc::not_connected);
  CHECK(has_ended(asked, Errc::read_only));
}

TEST_CASE("a call that was sent again and not answered is unknown", "[pipeline]") {
  const bool by_deadline = GENERATE(true, false);
  Asked asked;
  World world;
  world.pipeline.submit(make_call(asked, 1, world.now + 50ms));
  world.flush();
  world.hear_error(loading);
  sleep(world);
  CHECK(world.flush().size() == 1);
  if (by_deadline) {
    world.pipeline.expire(world.now + 50ms, Errc::timed_out);
  } else {
    world.pipeline.disconnect();
  }
  CHECK(has_ended(asked, Errc::unknown));
}

TEST_CASE("a stop request or the end of the store ends a pause, and nothing was executed",
          "[pipeline]") {
  Asked stopped, shut;
  World world;
  CallPtr call = make_call(stopped, 1);
  Call& marked = *call;
  world.pipeline.submit(std::move(call));
  world.pipeline.submit(make_call(shut, 2));
  world.flush();
  for (int i = 0; i < 2; ++i) world.hear_error(loading);
  marked.cancelled = true;
  world.pipeline.cancel_marked();
  CHECK(has_ended(stopped, Errc::cancelled));
  CHECK(shut.answers == 0);
  world.pipeline.abandon(Errc::shut_down);
  CHECK(has_ended(shut, Errc::shut_down));
  CHECK(world.pipeline.next_deadline() == Time::max());
}

TEST_CASE("a call in its pause keeps its place, and its memory is that of a new call later",
          "[pipeline]") {
  std::atomic<std::size_t> taken{1};
  Asked asked;
  World world;
  CallPtr call = make_call(asked, 1);
  call->in_flight = redis_detail::InFlight(taken);
  world.pipeline.submit(std::move(call));
  world.flush();
  world.hear_error(loading);
  CHECK(taken == 1);
  sleep(world);
  CHECK(taken == 1);
  world.flush();
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(taken == 0);
  REQUIRE(world.pipeline.ended().size() == 1);
  CallPtr used = world.pipeline.ended().pop_front();
  used->renew();
  CHECK(used->met == Errc{});
  CHECK(used->pauses == 0);
}

TEST_CASE("calls whose pauses are over go in their order, before younger ones", "[pipeline]") {
  Asked asked[6];
  World world;
  for (std::uint64_t i = 0; i < 4; ++i) world.pipeline.submit(make_call(asked[i], i));
  world.flush();
  for (int i = 0; i < 4; ++i) world.hear_error(loading);
  for (std::uint64_t i = 4; i < 6; ++i) world.pipeline.submit(make_call(asked[i], i));
  world.now += 10ms;  // every first pause
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.pipeline.next_resumption() == Time::max());
  const auto sent = world.flush();
  REQUIRE(sent.size() == 6);
  for (std::uint64_t i = 0; i < 6; ++i) CHECK(nonce_of(sent[i]) == i);
}

TEST_CASE("a refusal for now to a call that has gone is thrown away", "[pipeline]") {
  Asked late, next;
  World world;
  world.pipeline.submit(make_call(late, 1, world.now));
  world.pipeline.submit(make_call(next, 2));
  world.flush();
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.hear_error(loading) == Heard::ok);
  CHECK(world.pipeline.next_resumption() == Time::max());
  CHECK(world.pipeline.counters().late_replies == 1);
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(was_decided(next, 102));
}

TEST_CASE("what a server says for good ends a call, in the middle of its attempts as well",
          "[pipeline]") {
  for (const auto& [words, code] : {std::pair{"OOM x", Errc::out_of_memory},
                                    {"NOREPLICAS x", Errc::no_replicas},
                                    {"MISCONF x", Errc::misconfigured},
                                    {"BUSY x", Errc::busy},
                                    {"NOPERM x", Errc::no_permission},
                                    {"MOVED 1 h:1", Errc::moved},
                                    {"ASK 1 h:1", Errc::ask},
                                    {"CROSSSLOT x", Errc::cross_slot},
                                    {"ERR x", Errc::server_error}}) {
    CAPTURE(words);
    for (const bool at_once : {true, false}) {
      Asked asked;
      World world;
      world.pipeline.submit(make_call(asked, 1));
      world.flush();
      if (!at_once) {
        world.hear_error(loading);
        sleep(world);
        world.flush();
      }
      world.hear_error(words);
      CHECK(has_ended(asked, code));
    }
  }
}

TEST_CASE("a script that is lost during a pause is loaded as ever", "[pipeline]") {
  Asked asked;
  World world;
  world.pipeline.submit(make_call(asked, 1));
  world.flush();
  world.hear_error("NOSCRIPT");
  const auto first = world.flush();
  REQUIRE(first.size() == 2);
  world.hear_error(loading);  // to SCRIPT LOAD
  world.hear_error(loading);
  sleep(world);
  CHECK(world.flush().at(0).at(0) == "EVALSHA");
  world.hear_error("NOSCRIPT");
  CHECK(world.flush() == first);
  const auto& script = redis_detail::script_for(std::array{bucket_step("a")}, false);
  CHECK(world.pipeline.hear_string(script.sha1) == Heard::ok);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(asked, 101));
}

TEST_CASE("a call that waits for a library which cannot be loaded for now makes a pause",
          "[pipeline][functions]") {
  Asked asked;
  World world(RedisScripts::functions);
  world.pipeline.submit(make_call(asked, 1, world.now + 1s));
  world.flush();
  world.hear_error("ERR Function not found");
  CHECK(world.flush().size() + world.flush().size() == 2);
  world.hear_error(loading);  // to FUNCTION LOAD
  CHECK(world.hear_error("ERR Function not found") == Heard::ok);
  CHECK(asked.answers == 0);
  sleep(world);
  CHECK(world.flush().at(0).at(0) == "FCALL");
  world.hear_error("ERR Function not found");
  auto sent = world.flush();
  REQUIRE_FALSE(sent.empty());
  CHECK(sent[0][0] == "FUNCTION");
  world.pipeline.abandon(Errc::shut_down);
}

TEST_CASE("a call in its pause does not bring the library along to a new connection",
          "[pipeline][functions]") {
  Asked asked;
  World world(RedisScripts::functions);
  world.pipeline.submit(make_call(asked, 1));
  world.flush();
  world.hear_error("READONLY");
  sleep(world);
  world.pipeline.disconnect();
  const auto sent = world.flush();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0][0] == "FCALL");
}

TEST_CASE("a wake-up that is refused for now is lost, and no other", "[pipeline][watch]") {
  World world;
  for (const auto& [words, code, heard] : passing) {
    world.pipeline.notify("x");
    CHECK(world.flush().size() == 1);
    world.hear_error(words);
    CHECK(world.flush().empty());
  }
  world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
}

TEST_CASE("only a decision makes a connection a good one", "[pipeline]") {
  Asked asked[4];
  World world;
  for (std::uint64_t i = 0; i < 3; ++i) world.pipeline.submit(make_call(asked[i], i));
  world.pipeline.notify("x");
  world.flush();
  world.hear_error("READONLY");
  world.hear_error("ERR upstream failure");
  CHECK_FALSE(world.pipeline.has_decided());
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(world.pipeline.has_decided());
  world.pipeline.hear_integer();
  world.pipeline.disconnect();
  CHECK_FALSE(world.pipeline.has_decided());
  world.pipeline.submit(make_call(asked[3], 3, world.now));
  world.flush();
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.answer(3, 103) == Heard::ok);  // late, and a decision all the same
  CHECK(world.pipeline.has_decided());
}
