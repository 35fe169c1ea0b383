// The pipeline with functions in the place of scripts, step by step, without a network: when the
// library is loaded, and what calls end with if it cannot be. Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const std::string library_name(redis_detail::library().name);
constexpr std::string_view missing = "ERR Function not found";

/// The first words of what flush() sends.
std::vector<std::string> flush_words(World& world) {
  std::vector<std::string> words;
  for (const Command& command : world.flush()) words.push_back(command.at(0));
  return words;
}

using Words = std::vector<std::string>;

/// A call that has met no function, and stands behind the library on the wire.
struct Lost {
  Asked call;
  Asked next_call, last_call;  // before the world, whose end answers what is left
  World world{RedisScripts::functions};

  Lost() {
    world.pipeline.submit(make_call(call, 1));
    CHECK(flush_words(world) == Words{"FCALL"});
    CHECK(world.hear_error(missing) == Heard::ok);
    CHECK(flush_words(world) == Words{"FUNCTION", "FCALL"});
  }
  /// What another call sends.
  Words next(Asked& asked) {
    world.pipeline.submit(make_call(asked, 2));
    return flush_words(world);
  }
};

}  // namespace

TEST_CASE("a lost library is loaded once and the calls are repeated in order",
          "[pipeline][functions]") {
  Asked calls[4];
  World world(RedisScripts::functions);
  for (std::uint64_t i = 0; i < 3; ++i) world.pipeline.submit(make_call(calls[i], i + 1));
  CHECK(flush_words(world) == Words{"FCALL", "FCALL", "FCALL"});
  for (int i = 0; i < 2; ++i) CHECK(world.hear_error(missing) == Heard::ok);
  world.pipeline.submit(make_call(calls[3], 4));
  std::vector<Command> sent = world.flush();
  for (Command& command : world.flush()) sent.push_back(std::move(command));  // the load fills one
  REQUIRE(sent.size() == 4);
  CHECK(sent[0] == Command{"FUNCTION", "LOAD", std::string(redis_functions())});
  CHECK(nonce_of(sent[1]) == 1);
  CHECK(nonce_of(sent[2]) == 2);
  CHECK(nonce_of(sent[3]) == 4);
  // The third was sent before the library: it goes again, without another load, also if the load
  // has been answered meanwhile.
  CHECK(world.hear_error(missing) == Heard::ok);
  CHECK(world.pipeline.hear_string(library_name) == Heard::ok);
  CHECK(flush_words(world) == Words{"FCALL"});
  for (const std::uint64_t nonce : {1U, 2U, 4U, 3U}) {
    CHECK(world.answer(nonce, static_cast<Word>(100 + nonce)) == Heard::ok);
  }
  for (Word i = 0; i < 4; ++i) CHECK(was_decided(calls[i], 101 + i));
  CHECK(world.pipeline.counters().scripts_loaded == 1);
}

TEST_CASE("a library that another client has loaded meanwhile is loaded", "[pipeline][functions]") {
  Lost lost;
  CHECK(lost.world.hear_error("ERR Library '" + library_name + "' already exists") == Heard::ok);
  CHECK(lost.world.answer(1, 101) == Heard::ok);
  CHECK(was_decided(lost.call, 101));
  CHECK(lost.world.pipeline.counters().scripts_loaded == 0);
}

TEST_CASE("who may not load the library is told so, and tries once on each connection",
          "[pipeline][functions]") {
  Lost lost;
  const std::string refusal =
      GENERATE("NOPERM this user has no permissions to run the 'function|load' command",
               "ERR unknown command 'FUNCTION'", "ERR Error compiling function");
  CHECK(lost.world.hear_error(refusal) == Heard::ok);
  CHECK(lost.world.hear_error(missing) == Heard::ok);
  CHECK(has_ended(lost.call, Errc::no_function));
  CHECK(lost.call.error == Failure::not_executed);
  Asked& next = lost.next_call;
  CHECK(lost.next(next) == Words{"FCALL"});
  SECTION("until somebody else has loaded it") {
    CHECK(lost.world.answer(2, 102) == Heard::ok);
    CHECK(was_decided(next, 102));
  }
  SECTION("and no further call is sent twice") {
    CHECK(lost.world.hear_error(missing) == Heard::ok);
    CHECK(has_ended(next, Errc::no_function));
    CHECK(flush_words(lost.world).empty());
  }
  SECTION("a new connection may have more rights") {
    lost.world.pipeline.disconnect();
    CHECK(lost.next(lost.last_call) == Words{"FCALL"});
    CHECK(lost.world.hear_error(missing) == Heard::ok);
    CHECK(flush_words(lost.world) == Words{"FUNCTION", "FCALL"});
  }
}

TEST_CASE("a load that fails for now ends its calls with its own error, and is tried again",
          "[pipeline][functions]") {
  Lost lost;
  CHECK(lost.world.hear_error("OOM command not allowed") == Heard::ok);
  CHECK(lost.world.hear_error(missing) == Heard::ok);
  CHECK(has_ended(lost.call, Errc::out_of_memory));
  Asked& next = lost.next_call;
  CHECK(lost.next(next) == Words{"FCALL"});
  CHECK(lost.world.hear_error(missing) == Heard::ok);
  CHECK(flush_words(lost.world) == Words{"FUNCTION", "FCALL"});
  CHECK(lost.world.pipeline.hear_string(library_name) == Heard::ok);
  CHECK(lost.world.answer(2, 102) == Heard::ok);
  CHECK(was_decided(next, 102));
}

TEST_CASE("a server that always loses the library is given it eight times",
          "[pipeline][functions]") {
  Lost lost;
  int loads = 1;
  for (; lost.call.answers == 0; ++loads) {
    REQUIRE(loads < 20);
    CHECK(lost.world.pipeline.hear_string(library_name) == Heard::ok);
    CHECK(lost.world.hear_error(missing) == Heard::ok);
    if (lost.call.answers == 0) CHECK(flush_words(lost.world) == Words{"FUNCTION", "FCALL"});
  }
  CHECK(loads - 1 == 8);
  CHECK(has_ended(lost.call, Errc::no_function));
}

TEST_CASE("a call that waits for the library brings it along on a new connection",
          "[pipeline][functions]") {
  Asked call;
  World world(RedisScripts::functions);
  world.pipeline.submit(make_call(call, 1));
  CHECK(flush_words(world) == Words{"FCALL"});
  CHECK(world.hear_error(missing) == Heard::ok);
  world.pipeline.disconnect();
  CHECK(flush_words(world) == Words{"FUNCTION", "FCALL"});
  CHECK(world.pipeline.hear_string("another library") == Heard::nonsense);
}

TEST_CASE("a server without functions says so at once", "[pipeline][functions]") {
  Asked call;
  World world(RedisScripts::functions);
  world.pipeline.submit(make_call(call, 1));
  CHECK(flush_words(world) == Words{"FCALL"});
  CHECK(world.hear_error("ERR unknown command `FCALL`, with args") == Heard::ok);
  CHECK(has_ended(call, Errc::unknown_command));
  CHECK(call.error == Failure::not_executed);
}

TEST_CASE("a replica that may not load the library is left", "[pipeline][functions]") {
  Lost lost;
  const std::string word = GENERATE("READONLY You can't write against a read only replica.",
                                    "MASTERDOWN Link with MASTER is down");
  CHECK(lost.world.hear_error(word) == Heard::reconnect);
}
