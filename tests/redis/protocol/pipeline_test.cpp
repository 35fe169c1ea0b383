// The pipeline step by step, without a network. Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("each reply belongs to the oldest request", "[pipeline]") {
  World world;
  Asked a, b, c;
  world.pipeline.submit(make_call(a, 1));
  world.pipeline.submit(make_call(b, 2));
  const auto sent = world.flush();
  REQUIRE(sent.size() == 2);
  CHECK(nonce_of(sent[0]) == 1);
  CHECK(nonce_of(sent[1]) == 2);
  world.pipeline.submit(make_call(c, 3, Time::max(), 2));
  CHECK(world.flush().size() == 1);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(a, 101));
  CHECK(b.answers == 0);
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(world.answer(3, 103, 2) == Heard::ok);
  CHECK(was_decided(b, 102));
  CHECK(was_decided(c, 103));
  CHECK_FALSE(world.pipeline.has_sent());
  CHECK(world.pipeline.ended().size() == 3);
}

TEST_CASE("the reply to a call that timed out is thrown away", "[pipeline]") {
  World world;
  Asked late, next, waiting;
  world.pipeline.submit(make_call(late, 1, world.now + 1ms));
  world.pipeline.submit(make_call(next, 2));
  world.flush();
  world.pipeline.submit(make_call(waiting, 3, world.now + 1ms));
  CHECK(world.pipeline.next_deadline() == world.now + 1ms);
  world.pipeline.expire(world.now + 1ms - 1us, Errc::timed_out);
  CHECK(late.answers == 0);
  world.pipeline.expire(world.now + 1ms, Errc::timed_out);
  CHECK(has_ended(late, Errc::unknown));
  CHECK(has_ended(waiting, Errc::timed_out));
  CHECK(world.flush().empty());
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(next.answers == 0);
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(was_decided(next, 102));
  CHECK(world.pipeline.counters().late_replies == 1);
  CHECK(world.pipeline.counters().unknown == 1);
}

TEST_CASE("an error reply to a call that timed out is thrown away as well", "[pipeline]") {
  World world;
  Asked late, next;
  world.pipeline.submit(make_call(late, 1, world.now));
  world.pipeline.submit(make_call(next, 2));
  world.flush();
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.hear_error("NOSCRIPT lost") == Heard::ok);
  CHECK(next.answers == 0);
  CHECK(world.flush().empty());
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(was_decided(next, 102));
}

TEST_CASE("a cancelled call is cancelled before it is sent and unknown after", "[pipeline]") {
  World world;
  Asked sent, waiting, next;
  CallPtr first = make_call(sent, 1);
  Call& first_call = *first;
  world.pipeline.submit(std::move(first));
  world.flush();
  CallPtr second = make_call(waiting, 2);
  Call& second_call = *second;
  world.pipeline.submit(std::move(second));
  world.pipeline.submit(make_call(next, 3));
  first_call.cancelled = true;
  second_call.cancelled = true;
  world.pipeline.cancel_marked();
  CHECK(has_ended(sent, Errc::unknown));
  CHECK(has_ended(waiting, Errc::cancelled));
  const auto commands = world.flush();
  REQUIRE(commands.size() == 1);
  CHECK(nonce_of(commands[0]) == 3);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(world.answer(3, 103) == Heard::ok);
  CHECK(was_decided(next, 103));
}

TEST_CASE("a reply with another nonce decides nothing", "[pipeline]") {
  World world;
  Asked a, b;
  world.pipeline.submit(make_call(a, 1));
  world.pipeline.submit(make_call(b, 2));
  world.flush();
  CHECK(world.answer(2, 102) == Heard::nonsense);
  CHECK(has_ended(a, Errc::protocol_error));
  CHECK(a.error == Failure::unknown);
  world.pipeline.disconnect();
  CHECK(has_ended(b, Errc::unknown));
}

TEST_CASE("a tombstone checks its nonce too", "[pipeline]") {
  World world;
  Asked a, b;
  world.pipeline.submit(make_call(a, 1, world.now));
  world.pipeline.submit(make_call(b, 2));
  world.flush();
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.answer(2, 102) == Heard::nonsense);
  CHECK(b.answers == 0);
}

TEST_CASE("a reply that nobody asked for is nonsense", "[pipeline]") {
  World world;
  Asked waiting;
  world.pipeline.submit(make_call(waiting, 1));
  CHECK(world.answer(1, 101) == Heard::nonsense);
  CHECK(world.hear_error("ERR no") == Heard::nonsense);
  CHECK(waiting.answers == 0);
  world.pipeline.abandon(Errc::shut_down);
  CHECK(has_ended(waiting, Errc::shut_down));
}

TEST_CASE("a lost script is loaded once and the calls are repeated in order", "[pipeline]") {
  World world;
  Asked calls[4];
  for (std::uint64_t i = 0; i < 3; ++i) world.pipeline.submit(make_call(calls[i], i + 1));
  world.flush();
  for (int i = 0; i < 2; ++i) CHECK(world.hear_error("NOSCRIPT No matching") == Heard::ok);
  world.pipeline.submit(make_call(calls[3], 4));
  auto sent = world.flush();
  REQUIRE(sent.size() == 4);
  CHECK(sent[0][0] == "SCRIPT");
  CHECK(sent[0][1] == "LOAD");
  CHECK(nonce_of(sent[1]) == 1);
  CHECK(nonce_of(sent[2]) == 2);
  CHECK(nonce_of(sent[3]) == 4);
  CHECK(world.hear_error("NOSCRIPT of the third") == Heard::ok);
  sent = world.flush();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0][0] == "EVALSHA");
  CHECK(nonce_of(sent[0]) == 3);
  CHECK(world.pipeline.hear_string(sent[0][1]) == Heard::ok);
  for (const std::uint64_t nonce : {1U, 2U, 4U, 3U}) {
    CHECK(world.answer(nonce, static_cast<Word>(100 + nonce)) == Heard::ok);
  }
  for (Word i = 0; i < 4; ++i) CHECK(was_decided(calls[i], 101 + i));
  CHECK(world.pipeline.counters().scripts_loaded == 1);
}

TEST_CASE("a script that is lost again travels with the call", "[pipeline]") {
  World world;
  Asked call;
  world.pipeline.submit(make_call(call, 1));
  const std::string sha = world.flush().at(0).at(1);
  world.hear_error("NOSCRIPT");
  CHECK(world.flush().size() == 2);
  CHECK(world.pipeline.hear_string(sha) == Heard::ok);
  CHECK(world.hear_error("NOSCRIPT") == Heard::ok);
  const auto sent = world.flush();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0][0] == "EVAL");
  CHECK(nonce_of(sent[0]) == 1);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(call, 101));
}

TEST_CASE("a script that must not be loaded travels with the call", "[pipeline]") {
  World world;
  Asked call;
  world.pipeline.submit(make_call(call, 1));
  world.flush();
  world.hear_error("NOSCRIPT");
  world.flush();
  CHECK(world.hear_error("NOPERM no script|load") == Heard::ok);
  CHECK(world.hear_error("NOSCRIPT") == Heard::ok);
  CHECK(world.flush().at(0).at(0) == "EVAL");
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(call, 101));
  CHECK(world.pipeline.counters().scripts_loaded == 0);
}

TEST_CASE("a server that never has the script is asked four times", "[pipeline]") {
  World world;
  Asked call;
  world.pipeline.submit(make_call(call, 1));
  std::vector<std::string> sent;
  for (int i = 0; i < 20 && call.answers == 0; ++i) {
    for (const Command& command : world.flush()) {
      sent.push_back(command[0]);
      CHECK(world.hear_error(command[0] == "SCRIPT" ? "NOPERM" : "NOSCRIPT") == Heard::ok);
    }
  }
  CHECK(sent == std::vector<std::string>{"EVALSHA", "SCRIPT", "EVALSHA", "EVAL", "EVAL"});
  CHECK(has_ended(call, Errc::no_script));
  CHECK(call.error == Failure::not_executed);
}

TEST_CASE("a script under another name is nonsense", "[pipeline]") {
  World world;
  Asked call;
  world.pipeline.submit(make_call(call, 1));
  world.flush();
  world.hear_error("NOSCRIPT");
  world.flush();
  CHECK(world.pipeline.hear_string(std::string(40, 'a')) == Heard::nonsense);
  world.pipeline.disconnect();
  CHECK(has_ended(call, Errc::unknown));
}

TEST_CASE("a new connection forgets what was being loaded, and keeps what waits", "[pipeline]") {
  World world;
  Asked sent, again, waiting;
  world.pipeline.submit(make_call(again, 1));
  world.pipeline.submit(make_call(sent, 2));
  world.flush();
  world.hear_error("NOSCRIPT");
  world.pipeline.submit(make_call(waiting, 3));
  world.pipeline.disconnect(Errc::protocol_error);
  CHECK(has_ended(sent, Errc::protocol_error));
  CHECK_FALSE(world.pipeline.has_sent());
  const auto commands = world.flush();
  REQUIRE(commands.size() == 3);
  CHECK(commands[0][0] == "SCRIPT");
  CHECK(nonce_of(commands[1]) == 1);
  CHECK(nonce_of(commands[2]) == 3);
}

TEST_CASE("a server that lost its rights is left once its replies are in", "[pipeline]") {
  Asked call;
  Asked refused[2];  // before the world, whose end answers what is left
  World world;
  for (const std::uint64_t i : {0U, 1U}) {
    world.pipeline.submit(make_call(refused[i], i));
    world.flush();
    const char* const word = i == 0 ? "READONLY You can't write" : "MASTERDOWN Link is down";
    CHECK(world.hear_error(word) == Heard::reconnect);
    CHECK(refused[i].answers == 0);
  }
  world.pipeline.submit(make_call(call, 2, world.now));
  world.flush();
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(world.hear_error("READONLY also to a tombstone") == Heard::reconnect);
}

TEST_CASE("no more is sent at once than a chunk, and the rest is certainly not executed",
          "[pipeline]") {
  World world;
  Crowd crowd(2'000);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    world.pipeline.submit(make_call(crowd[i], i, world.now));
  }
  const std::size_t sent = world.flush().size();
  CHECK(sent > 100);
  CHECK(sent < 1'000);
  world.pipeline.expire(world.now, Errc::timed_out);
  CHECK(crowd.wait());
  CHECK(crowd.count([](const Asked& c) { return c.error == Errc::unknown; }) == sent);
  CHECK(crowd.count([](const Asked& c) { return c.error == Errc::timed_out; }) ==
        crowd.size() - sent);
}

TEST_CASE("a completion that abandons everything finds every other call once", "[pipeline]") {
  World world;
  struct Destroyer {
    World* world;
    Crowd* others;
    unsigned answers;
    std::size_t ended_at_return;
  };
  for (const bool sent : {false, true}) {
    Crowd others(10);
    Destroyer destroyer{&world, &others, 0, 0};
    Asked unused;
    CallPtr first = make_call(unused, 99, world.now);
    first->done = Completion(
        [](void* self, const Outcome&) noexcept {
          auto& it = *static_cast<Destroyer*>(self);
          ++it.answers;
          it.world->pipeline.abandon(Errc::shut_down);
          it.ended_at_return = it.others->count([](const Asked& c) { return c.answers == 1; });
        },
        &destroyer);
    world.pipeline.submit(std::move(first));
    for (std::size_t i = 0; i < others.size(); ++i) {
      world.pipeline.submit(make_call(others[i], i, i < 5 ? world.now : Time::max()));
    }
    if (sent) world.flush();
    world.pipeline.expire(world.now, Errc::timed_out);
    CHECK(destroyer.answers == 1);
    CHECK(destroyer.ended_at_return == others.size());
    CHECK(others.wait());
    CHECK_FALSE(world.pipeline.has_sent());
    CHECK_FALSE(world.pipeline.has_unsent());
  }
}

TEST_CASE("a call that timed out keeps its place until its reply comes or the connection ends",
          "[pipeline]") {
  World world;
  std::atomic<std::size_t> taken{0};
  const auto submit = [&](Asked& asked, std::uint64_t nonce, Time deadline) {
    CallPtr call = make_call(asked, nonce, deadline);
    ++taken;
    call->in_flight = redis_detail::InFlight(taken);
    world.pipeline.submit(std::move(call));
  };
  Asked late[3];
  Asked waiting;
  for (std::uint64_t i = 0; i < 3; ++i) submit(late[i], i, world.now);
  world.flush();
  submit(waiting, 3, world.now);
  world.pipeline.expire(world.now, Errc::timed_out);
  for (const Asked& asked : late) CHECK(has_ended(asked, Errc::unknown));
  CHECK(has_ended(waiting, Errc::timed_out));
  CHECK(taken == 3);
  CHECK(world.answer(0, 100) == Heard::ok);
  CHECK(taken == 2);
  CHECK(world.hear_error("LOADING") == Heard::ok);
  CHECK(taken == 1);
  world.pipeline.disconnect();
  CHECK(taken == 0);
}

TEST_CASE("an error word that is not known leaves the call unknown", "[pipeline]") {
  World world;
  Asked asked;
  world.pipeline.submit(make_call(asked, 1));
  world.flush();
  CHECK(world.hear_error("ERR upstream failure") == Heard::ok);
  CHECK(has_ended(asked, Errc::server_error));
  CHECK(asked.error == Failure::unknown);
  CHECK(world.pipeline.counters().unknown == 1);
}

TEST_CASE("wake-ups go out behind the calls that wait, and their replies mean nothing",
          "[pipeline][watch]") {
  World world;
  Asked a, b;
  world.pipeline.notify("x");
  world.pipeline.submit(make_call(a, 1));
  CHECK(world.pipeline.has_unsent());
  const auto sent = world.flush();
  REQUIRE(sent.size() == 2);
  CHECK(nonce_of(sent[0]) == 1);
  CHECK(sent[1] == Command{"PUBLISH", "x", ""});
  world.pipeline.submit(make_call(b, 2));
  world.flush();
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(world.pipeline.hear_integer() == Heard::ok);
  CHECK(world.answer(2, 102) == Heard::ok);
  CHECK(was_decided(a, 101));
  CHECK(was_decided(b, 102));
  CHECK_FALSE(world.pipeline.has_sent());
}

TEST_CASE("who may not publish is asked once a connection, and calls go on", "[pipeline][watch]") {
  World world;
  Asked a;
  world.pipeline.notify("x");
  world.flush();
  world.pipeline.notify("y");
  world.pipeline.submit(make_call(a, 1));
  CHECK(world.hear_error("NOPERM no") == Heard::ok);
  world.pipeline.notify("z");
  CHECK(world.flush().size() == 1);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(a, 101));
  world.pipeline.disconnect();
  world.pipeline.notify("z");
  CHECK(world.flush() == std::vector<Command>{{"PUBLISH", "z", ""}});
}

TEST_CASE("a number belongs to a wake-up, and a string to none", "[pipeline][watch]") {
  World world;
  Asked a;
  CHECK(world.pipeline.hear_integer() == Heard::nonsense);
  world.pipeline.submit(make_call(a, 1));
  world.flush();
  CHECK(world.pipeline.hear_integer() == Heard::nonsense);
  CHECK(has_ended(a, Errc::protocol_error));
  world.pipeline.notify("x");
  world.flush();
  CHECK(world.pipeline.hear_string("1") == Heard::nonsense);
}

TEST_CASE("wake-ups are bounded, and end with their connection", "[pipeline][watch]") {
  World world;
  for (std::size_t i = 0; i < 2 * Pipeline::max_notices; ++i) world.pipeline.notify("x");
  CHECK(world.flush().size() == Pipeline::max_notices);
  world.pipeline.notify("x");
  CHECK(world.flush().empty());
  CHECK(world.pipeline.hear_integer() == Heard::ok);
  world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
  world.pipeline.disconnect();
  CHECK_FALSE(world.pipeline.has_sent());
  for (std::size_t i = 0; i < 2 * Pipeline::max_notices; ++i) world.pipeline.notify("x");
  world.pipeline.disconnect();
  CHECK(world.flush().empty());
}

TEST_CASE("a busy server costs one wake-up, not all", "[pipeline][watch]") {
  World world;
  world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
  CHECK(world.hear_error("BUSY Redis is busy running a script.") == Heard::ok);
  world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
  CHECK(world.hear_error("NOPERM this user has no permissions") == Heard::ok);
  world.pipeline.notify("x");
  CHECK(world.flush().empty());
}

TEST_CASE("a PING is alone, and its reply only says that somebody is there", "[pipeline][idle]") {
  World world;
  Asked a;
  world.pipeline.submit(make_call(a, 1));
  const auto check = [&] {
    std::string out;
    world.pipeline.check(out, world.now);
    CHECK(world.pipeline.is_checking());
    world.pipeline.took(out, out.size());
    CHECK(take_command(out) == Command{"PING"});
    CHECK(out.empty());
  };
  for (const bool is_forbidden : {false, true}) {
    check();
    CHECK((is_forbidden ? world.hear_error("NOPERM no") : world.pipeline.hear_status("PONG")) ==
          Heard::ok);
    CHECK_FALSE(world.pipeline.is_checking());
  }
  check();
  CHECK(world.pipeline.hear_status("OK") == Heard::nonsense);
  check();
  CHECK(world.pipeline.hear_string("PONG") == Heard::nonsense);
  std::string out;  // of which the socket takes nothing
  world.pipeline.check(out, world.now);
  world.pipeline.took(out, 0);
  CHECK(out.empty());
  CHECK_FALSE(world.pipeline.is_checking());
  check();
  world.pipeline.disconnect();
  CHECK(a.answers == 0);
  CHECK(nonce_of(world.flush().at(0)) == 1);
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(a, 101));
}

TEST_CASE("a bare connection carries calls alone", "[pipeline]") {
  World world;
  world.pipeline.begin(true);
  Asked a;
  world.pipeline.notify("x");
  world.pipeline.ask_info();
  CHECK_FALSE(world.pipeline.has_unsent());
  world.pipeline.submit(make_call(a, 1));
  CHECK(world.flush().at(0).at(0) == "EVALSHA");
  CHECK(world.hear_error("NOSCRIPT no") == Heard::ok);
  const auto again = world.flush();
  REQUIRE(again.size() == 1);
  CHECK(again[0].at(0) == "EVAL");
  CHECK(world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(a, 101));
  world.pipeline.disconnect();
  world.pipeline.begin(false);
  world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
}
