// What a socket takes of a write and what it does not, byte by byte, without a network.
// Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::uint64_t calls = 3;

/// Calls 1, 2 and 3 of one size, in `out`, of which nothing was taken yet.
struct Written {
  Asked asked[calls];  // before the world, whose end answers what is left
  World world;
  std::string out;
  std::size_t bytes = 0;  // of one

  Written() {
    for (std::uint64_t i = 0; i < calls; ++i) world.pipeline.submit(make_call(asked[i], i + 1));
    world.pipeline.flush(out, world.now);
    bytes = out.size() / calls;
  }
  /// Of how many calls the socket took a byte.
  [[nodiscard]] std::size_t touched(std::size_t taken) const { return (taken + bytes - 1) / bytes; }
};

std::vector<std::uint64_t> nonces(const std::vector<Command>& commands) {
  std::vector<std::uint64_t> result;
  for (const Command& command : commands) result.push_back(nonce_of(command));
  return result;
}

}  // namespace

TEST_CASE("what a socket took no byte of leaves the write and waits in its order", "[pipeline]") {
  const std::size_t all = Written().out.size();
  for (std::size_t taken = 0; taken <= all; ++taken) {
    CAPTURE(taken);
    Written it;
    const std::string before = it.out;
    const std::size_t touched = it.touched(taken);
    it.world.pipeline.took(it.out, taken);
    CHECK(it.out == before.substr(0, touched * it.bytes));
    CHECK(it.world.pipeline.sent_count() == touched);
    CHECK(it.world.pipeline.has_unsent() == (touched < calls));
    it.world.pipeline.took(it.out, touched * it.bytes - taken);  // the rest
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = touched; i < calls; ++i) expected.push_back(i + 1);
    CHECK(nonces(it.world.flush()) == expected);
    for (std::uint64_t i = 1; i <= calls; ++i) {
      CHECK(it.world.answer(i, static_cast<Word>(100 + i)) == Heard::ok);
      CHECK(was_decided(it.asked[i - 1], static_cast<Word>(100 + i)));
    }
  }
}

TEST_CASE("at the end of a connection a call is unknown if the socket took a byte of it",
          "[pipeline]") {
  const std::size_t all = Written().out.size();
  for (std::size_t taken = 0; taken <= all; ++taken) {
    CAPTURE(taken);
    Written it;
    it.world.pipeline.took(it.out, taken);
    const std::size_t touched = it.touched(taken);
    it.world.pipeline.disconnect();
    for (std::uint64_t i = 0; i < calls; ++i) {
      if (i < touched) {
        CHECK(has_ended(it.asked[i], Errc::unknown));
      } else {
        CHECK(it.asked[i].answers == 0);
      }
    }
    CHECK(it.world.pipeline.counters().unknown == touched);
    CHECK(it.world.flush().size() == calls - touched);
  }
}

TEST_CASE("a write that nobody could begin leaves all calls waiting", "[pipeline]") {
  Written it;
  it.world.pipeline.disconnect();  // took() was not reached
  CHECK_FALSE(it.world.pipeline.has_sent());
  CHECK(nonces(it.world.flush()) == std::vector<std::uint64_t>{1, 2, 3});
  it.world.pipeline.disconnect();
  for (const Asked& asked : it.asked) CHECK(has_ended(asked, Errc::unknown));
}

TEST_CASE("what is taken back ends as not executed by its deadline, a stop or the end",
          "[pipeline]") {
  Asked first, late, stopped, left;
  World world;
  const Time deadline = world.now + 1ms;
  world.pipeline.submit(make_call(first, 1, deadline));
  world.pipeline.submit(make_call(late, 2, deadline));
  CallPtr call = make_call(stopped, 3);
  Call& marked = *call;
  world.pipeline.submit(std::move(call));
  world.pipeline.submit(make_call(left, 4));
  std::string out;
  world.pipeline.flush(out, world.now);
  world.pipeline.took(out, 1);
  CHECK(world.pipeline.next_deadline() == deadline);
  world.pipeline.expire(deadline, Errc::timed_out);
  CHECK(has_ended(first, Errc::unknown));
  CHECK(has_ended(late, Errc::timed_out));
  marked.cancelled = true;
  world.pipeline.cancel_marked();
  CHECK(has_ended(stopped, Errc::cancelled));
  world.pipeline.abandon(Errc::shut_down);
  CHECK(has_ended(left, Errc::shut_down));
}

TEST_CASE("positions count on behind the rest of a torn request", "[pipeline]") {
  Written it;
  Pipeline& pipeline = it.world.pipeline;
  pipeline.took(it.out, it.bytes + 1);
  CHECK(it.out.size() == 2 * it.bytes);
  pipeline.took(it.out, 5);
  CHECK(pipeline.sent_count() == 2);
  pipeline.took(it.out, it.bytes - 6);
  CHECK(it.out.size() == 2 * it.bytes);
  CHECK(pipeline.sent_count() == 2);
  std::string next;
  pipeline.flush(next, it.world.now);
  CHECK(next.size() == it.bytes);
  pipeline.took(next, 0);
  CHECK(next.empty());
  CHECK(pipeline.sent_count() == 2);
  pipeline.flush(next, it.world.now);
  pipeline.took(next, 1);
  CHECK(next.size() == it.bytes);
  CHECK(pipeline.sent_count() == 3);
  pipeline.disconnect();  // and the next connection counts from its own start
  Asked fresh[2];
  World& world = it.world;
  for (std::uint64_t i = 0; i < 2; ++i) pipeline.submit(make_call(fresh[i], i + 8));
  next.clear();
  pipeline.flush(next, world.now);
  pipeline.took(next, it.bytes);
  CHECK(pipeline.sent_count() == 1);
  pipeline.abandon(Errc::shut_down);
  CHECK(has_ended(fresh[0], Errc::unknown));
  CHECK(has_ended(fresh[1], Errc::shut_down));
}

TEST_CASE("a script and its call that are taken back go out together, before who waits",
          "[pipeline]") {
  for (const bool load_taken : {false, true}) {
    CAPTURE(load_taken);
    Asked lost, waiting;
    World world;
    world.pipeline.submit(make_call(lost, 1));
    world.flush();
    CHECK(world.hear_error("NOSCRIPT") == Heard::ok);
    world.pipeline.submit(make_call(waiting, 2));
    std::string out;
    world.pipeline.flush(out, world.now);
    std::string copy = out;
    const auto load = take_command(copy);
    REQUIRE(load->at(0) == "SCRIPT");
    world.pipeline.took(out, load_taken ? out.size() - copy.size() : 0);
    CHECK(world.pipeline.sent_count() == (load_taken ? 1 : 0));
    const auto sent = world.flush();
    REQUIRE(sent.size() == (load_taken ? 2 : 3));
    if (!load_taken) CHECK(sent[0] == *load);
    CHECK(nonce_of(sent[sent.size() - 2]) == 1);
    CHECK(nonce_of(sent[sent.size() - 1]) == 2);
    CHECK(world.pipeline.hear_string(
              redis_detail::script_for(std::array{bucket_step("a")}, false).sha1) == Heard::ok);
    CHECK(world.answer(1, 101) == Heard::ok);
    CHECK(world.answer(2, 102) == Heard::ok);
    CHECK(was_decided(lost, 101));
    CHECK(was_decided(waiting, 102));
  }
}

TEST_CASE("a library that is taken back goes out with its call", "[pipeline][functions]") {
  Asked lost;
  World world(RedisScripts::functions);
  world.pipeline.submit(make_call(lost, 1));
  world.flush();
  CHECK(world.hear_error("ERR Function not found") == Heard::ok);
  std::string out;
  world.pipeline.flush(out, world.now);
  world.pipeline.took(out, 0);
  CHECK_FALSE(world.pipeline.has_sent());
  auto sent = world.flush();
  for (Command& command : world.flush()) sent.push_back(std::move(command));  // the load fills one
  REQUIRE(sent.size() == 2);
  CHECK(sent[0][0] == "FUNCTION");
  CHECK(sent[1][0] == "FCALL");
}

TEST_CASE("wake-ups that are taken back go out once, in order", "[pipeline][watch]") {
  World world;
  world.pipeline.notify("x");
  world.pipeline.notify("y");
  world.pipeline.notify("z");
  std::string out;
  world.pipeline.flush(out, world.now);
  world.pipeline.took(out, 1);
  CHECK(world.pipeline.sent_count() == 1);
  CHECK(world.pipeline.has_unsent());
  world.pipeline.took(out, out.size() - 1);
  const auto sent = world.flush();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0][1] == "y");
  CHECK(sent[1][1] == "z");
  for (int i = 0; i < 3; ++i) CHECK(world.pipeline.hear_integer() == Heard::ok);
  CHECK_FALSE(world.pipeline.has_unsent());
  CHECK_FALSE(world.pipeline.has_sent());
}

TEST_CASE("wake-ups on the wire are answered also when the user may not publish any more",
          "[pipeline][watch]") {
  World world;
  for (const char* name : {"x", "y"}) world.pipeline.notify(name);
  CHECK(world.flush().size() == 2);
  world.pipeline.notify("z");
  CHECK(world.hear_error("NOPERM no") == Heard::ok);
  CHECK(world.flush().empty());
  CHECK(world.hear_error("NOPERM no") == Heard::ok);
  CHECK_FALSE(world.pipeline.has_sent());
  CHECK(world.pipeline.hear_integer() == Heard::nonsense);
}
