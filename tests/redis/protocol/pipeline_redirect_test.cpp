// Calls that a node of a cluster sends to another one, without a network.
// Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using redis_detail::CallList;

constexpr const char* moved = "MOVED 1 10.0.0.2:6379";
constexpr const char* ask = "ASK 1 10.0.0.2:6379";

/// One node's pipeline.
struct Node : World {
  explicit Node(RedisScripts scripts = RedisScripts::eval) : World(scripts, true) {}

  /// The names of the commands that are sent.
  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const Command& command : flush()) result.push_back(command.at(0));
    return result;
  }
  /// The only call that was sent on.
  CallPtr take_redirected() {
    REQUIRE(pipeline.redirected().size() == 1);
    return pipeline.redirected().pop_front();
  }
};

using Names = std::vector<std::string>;

CallPtr make_asking_call(Asked& asked, std::uint64_t nonce, Time deadline = Time::max()) {
  CallPtr call = make_call(asked, nonce, deadline);
  call->is_asking = true;
  return call;
}

}  // namespace

TEST_CASE("a call that is sent on leaves with what the node said, and is decided elsewhere",
          "[pipeline][cluster]") {
  for (const std::string words : {moved, ask}) {
    CAPTURE(words);
    Asked asked, next;
    Node here, there;
    here.pipeline.submit(make_call(asked, 1));
    here.pipeline.submit(make_call(next, 2));
    REQUIRE(here.flush().size() == 2);
    CHECK(here.hear_error(words) == Heard::ok);
    CallPtr call = here.take_redirected();
    CHECK(call->redirection == words);
    CHECK(here.pipeline.sent_count() == 1);
    CHECK(here.answer(2, 102) == Heard::ok);
    CHECK(was_decided(next, 102));
    CHECK(asked.answers == 0);
    there.pipeline.submit(std::move(call));
    REQUIRE(there.flush().size() == 1);
    CHECK(there.answer(1, 101) == Heard::ok);
    CHECK(was_decided(asked, 101));
    CHECK(here.pipeline.counters().unknown == 0);
  }
}

TEST_CASE("a call is sent on five times, and then fails with what the last node said",
          "[pipeline][cluster]") {
  for (const auto& [words, code] : {std::pair{moved, Errc::moved}, {ask, Errc::ask}}) {
    Asked asked;
    Node node;
    CallPtr call = make_call(asked, 1);
    for (unsigned i = 0; i < Pipeline::max_redirections; ++i) {
      node.pipeline.submit(std::move(call));
      REQUIRE(node.flush().size() == 1);
      node.hear_error(words);
      call = node.take_redirected();
      CHECK(asked.answers == 0);
    }
    node.pipeline.submit(std::move(call));
    REQUIRE(node.flush().size() == 1);
    node.hear_error(words);
    CHECK(node.pipeline.redirected().empty());
    CHECK(has_ended(asked, code));
    CHECK(asked.error == Failure::not_executed);
  }
}

TEST_CASE("outside of a cluster a redirection ends the call", "[pipeline][cluster]") {
  for (const auto& [words, code] : {std::pair{moved, Errc::moved}, {ask, Errc::ask}}) {
    Asked asked;
    World world;
    world.pipeline.submit(make_call(asked, 1));
    world.flush();
    world.hear_error(words);
    CHECK(world.pipeline.redirected().empty());
    CHECK(has_ended(asked, code));
  }
}

TEST_CASE("a call that has ended is not sent on", "[pipeline][cluster]") {
  Asked asked;
  Node node;
  node.pipeline.submit(make_call(asked, 1, node.now + 1ms));
  node.flush();
  node.pipeline.expire(node.now + 1ms, Errc::timed_out);
  CHECK(has_ended(asked, Errc::unknown));
  CHECK(node.hear_error(moved) == Heard::ok);
  CHECK(node.pipeline.redirected().empty());
  CHECK(node.pipeline.counters().late_replies == 1);
}

TEST_CASE("a call that is between two nodes ends with its store, by its deadline and by a stop",
          "[pipeline][cluster]") {
  Asked late, stopped, left;
  Node node;
  node.pipeline.submit(make_call(late, 1, node.now + 1ms));
  CallPtr call = make_call(stopped, 2);
  Call& marked = *call;
  node.pipeline.submit(std::move(call));
  node.pipeline.submit(make_call(left, 3));
  node.flush();
  for (int i = 0; i < 3; ++i) node.hear_error(moved);
  node.pipeline.expire(node.now + 1ms, Errc::timed_out);
  CHECK(has_ended(late, Errc::timed_out));
  marked.cancelled = true;
  node.pipeline.cancel_marked();
  CHECK(has_ended(stopped, Errc::cancelled));
  node.pipeline.abandon(Errc::shut_down);
  CHECK(has_ended(left, Errc::shut_down));
  CHECK(node.pipeline.counters().unknown == 0);
}

TEST_CASE("ASKING goes directly before its call, and its reply decides nothing",
          "[pipeline][cluster]") {
  Asked asked, plain;
  Node node;
  node.pipeline.submit(make_asking_call(asked, 1));
  node.pipeline.submit(make_call(plain, 2));
  CHECK(node.names() == Names{"ASKING", "EVALSHA", "EVALSHA"});

  SECTION("OK") { CHECK(node.pipeline.hear_status("OK") == Heard::ok); }
  SECTION("an error: the call is asked without it") {
    CHECK(node.hear_error("NOPERM no") == Heard::ok);
    CHECK(node.pipeline.counters().late_replies == 0);
    CHECK(node.hear_error(moved) == Heard::ok);
    CHECK(node.take_redirected()->nonce == 1);
    CHECK(node.answer(2, 102) == Heard::ok);
    return;
  }
  SECTION("anything else is nonsense") {
    const int kind = GENERATE(0, 1, 2);
    CHECK((kind == 0   ? node.pipeline.hear_integer()
           : kind == 1 ? node.pipeline.hear_string("OK")
                       : node.pipeline.hear_status("QUEUED")) == Heard::nonsense);
    node.pipeline.disconnect();
    CHECK(has_ended(asked, Errc::unknown));
    return;
  }
  CHECK(asked.answers == 0);
  CHECK(node.answer(1, 101) == Heard::ok);
  CHECK(node.answer(2, 102) == Heard::ok);
  CHECK(was_decided(asked, 101));
  CHECK(was_decided(plain, 102));
}

TEST_CASE("a call has no status for a reply", "[pipeline][cluster]") {
  Asked asked;
  Node node;
  node.pipeline.submit(make_call(asked, 1));
  node.flush();
  CHECK(node.pipeline.hear_status("OK") == Heard::nonsense);
  CHECK(has_ended(asked, Errc::protocol_error));
}

TEST_CASE("what an asking call needs is loaded before ASKING", "[pipeline][cluster]") {
  Asked asked;
  SECTION("a script") {
    Node node;
    node.pipeline.submit(make_asking_call(asked, 1));
    CHECK(node.names() == Names{"ASKING", "EVALSHA"});
    node.pipeline.hear_status("OK");
    node.hear_error("NOSCRIPT lost");
    CHECK(node.names() == Names{"SCRIPT", "ASKING", "EVALSHA"});
    node.hear_error("NOPERM no");
    node.pipeline.hear_status("OK");
    node.hear_error("NOSCRIPT lost");
    CHECK(node.names() == Names{"ASKING", "EVAL"});
    node.pipeline.hear_status("OK");
    CHECK(node.answer(1, 101) == Heard::ok);
  }
  SECTION("the library") {
    Node node(RedisScripts::functions);
    node.pipeline.submit(make_asking_call(asked, 1));
    CHECK(node.names() == Names{"ASKING", "FCALL"});
    node.pipeline.hear_status("OK");
    node.hear_error("ERR Function not found");
    CHECK(node.names() == Names{"FUNCTION", "ASKING", "FCALL"});
    node.pipeline.hear_string(redis_detail::library().name);
    node.pipeline.hear_status("OK");
    CHECK(node.answer(1, 101) == Heard::ok);
  }
  CHECK(was_decided(asked, 101));
}

TEST_CASE("a call that the socket took no byte of is sent with its ASKING again",
          "[pipeline][cluster]") {
  std::string whole;
  {
    Asked asked;
    Node node;
    node.pipeline.submit(make_asking_call(asked, 1));
    node.pipeline.flush(whole, node.now);
  }
  std::string rest = whole;
  take_command(rest);
  const std::size_t asking = whole.size() - rest.size();
  for (std::size_t taken = 0; taken <= whole.size(); ++taken) {
    CAPTURE(taken);
    Asked asked;
    Node node;
    node.pipeline.submit(make_asking_call(asked, 1));
    std::string out;
    node.pipeline.flush(out, node.now);
    node.pipeline.took(out, taken);
    const bool is_sent = taken > asking;
    const std::size_t kept = is_sent ? whole.size() : taken > 0 ? asking : 0;
    CHECK(out == whole.substr(0, kept));
    node.pipeline.took(out, kept - taken);
    if (taken > 0) CHECK(node.pipeline.hear_status("OK") == Heard::ok);
    if (!is_sent) {
      CHECK(node.names() == Names{"ASKING", "EVALSHA"});
      CHECK(node.pipeline.hear_status("OK") == Heard::ok);
    }
    CHECK(node.answer(1, 101) == Heard::ok);
    CHECK(was_decided(asked, 101));
    CHECK_FALSE(node.pipeline.has_sent());
  }
}

TEST_CASE("the replies to a call that timed out behind ASKING are both thrown away",
          "[pipeline][cluster]") {
  Asked late, next;
  Node node;
  node.pipeline.submit(make_asking_call(late, 1, node.now + 1ms));
  node.pipeline.submit(make_call(next, 2));
  node.flush();
  node.pipeline.expire(node.now + 1ms, Errc::timed_out);
  CHECK(has_ended(late, Errc::unknown));
  CHECK(node.pipeline.hear_status("OK") == Heard::ok);
  CHECK(node.answer(1, 101) == Heard::ok);
  CHECK(node.answer(2, 102) == Heard::ok);
  CHECK(was_decided(next, 102));
}

TEST_CASE("calls that wait are released as new ones, in order, and sent ones are not",
          "[pipeline][cluster]") {
  Asked sent, lost, paused, asking, stays, waits;
  Node node;
  node.pipeline.submit(make_call(lost, 1));
  node.pipeline.submit(make_call(paused, 2));
  node.pipeline.submit(make_call(sent, 3));
  node.flush();
  node.hear_error("NOSCRIPT lost");
  node.hear_error("CLUSTERDOWN no");
  node.pipeline.submit(make_asking_call(asking, 4));
  node.pipeline.submit(make_call(stays, 5));
  node.pipeline.submit(make_call(waits, 6));
  CallList released;
  node.pipeline.release_unsent(released, [](const Call& call) { return call.nonce != 5; });
  released.for_each([](const Call& call) {
    CAPTURE(call.nonce);
    CHECK(call.attempts == 0);
    CHECK_FALSE(call.is_asking);
  });
  CHECK(released.size() == 4);
  Node other;
  while (!released.empty()) other.pipeline.submit(released.pop_front());
  std::vector<std::uint64_t> elsewhere;
  for (const Command& command : other.flush()) elsewhere.push_back(nonce_of(command));
  CHECK(elsewhere == std::vector<std::uint64_t>{1, 4, 6, 2});
  CHECK(node.answer(3, 103) == Heard::ok);
  CHECK(was_decided(sent, 103));
  const auto left = node.flush();
  REQUIRE(left.size() == 1);
  CHECK(nonce_of(left[0]) == 5);
  for (const std::uint64_t nonce : elsewhere) other.answer(nonce, 200);
  CHECK(lost.answers + paused.answers + asking.answers + waits.answers == 4);
}

TEST_CASE("the memory of a call that was sent on is that of a new call", "[pipeline][cluster]") {
  Asked asked;
  Node node;
  node.pipeline.submit(make_asking_call(asked, 1));
  node.flush();
  node.pipeline.hear_status("OK");
  node.hear_error(ask);
  CallPtr call = node.take_redirected();
  call->renew();
  CHECK_FALSE(call->is_asking);
  CHECK(call->redirections == 0);
  call->leave();
  call->done.fail(Errc::cancelled);
}
