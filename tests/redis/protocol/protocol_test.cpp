// Error words and the decoding of replies: what a server can say and what it means.
// Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::decode;
using redis_detail::error_of;
using redis_detail::Reply;

TEST_CASE("every error word has its code, and a known one says that nothing was executed",
          "[protocol]") {
  const std::map<std::string, Errc> words{
      {"NOSCRIPT No matching script. Please use EVAL.", Errc::no_script},
      {"NOSCRIPT No matching script.", Errc::no_script},
      {"LOADING Redis is loading the dataset in memory", Errc::loading},
      {"READONLY You can't write against a read only replica.", Errc::read_only},
      {"MOVED 3999 127.0.0.1:6381", Errc::moved},
      {"ASK 3999 127.0.0.1:6381", Errc::ask},
      {"TRYAGAIN Multiple keys request during rehashing of slot", Errc::try_again},
      {"CLUSTERDOWN Hash slot not served", Errc::cluster_down},
      {"CROSSSLOT Keys in request don't hash to the same slot", Errc::cross_slot},
      {"NOREPLICAS Not enough good replicas to write.", Errc::no_replicas},
      {"OOM command not allowed when used memory > 'maxmemory'.", Errc::out_of_memory},
      {"MASTERDOWN Link with MASTER is down", Errc::master_down},
      {"BUSY Redis is busy running a script.", Errc::busy},
      {"MISCONF Redis is configured to save RDB snapshots", Errc::misconfigured},
      {"NOAUTH Authentication required.", Errc::no_auth},
      {"WRONGPASS invalid username-password pair", Errc::wrong_password},
      {"NOPERM this user has no permissions", Errc::no_permission},
      {"WRONGTYPE Operation against a key", Errc::wrong_type},
      {"ERR max number of clients reached", Errc::too_many_clients},
      {"ERR The user executing the script can't run this command or subcommand",
       Errc::no_permission},
      {"ERR ACL failure in script: User limiter has no permissions to run the 'psetex' command",
       Errc::no_permission},
      {"ERR Function not found", Errc::no_function},
      {"ERR unknown command 'FCALL', with args beginning with: 'f' '1' ", Errc::unknown_command},
      {"ERR unknown command `FCALL`, with args beginning with: `f`, `1`, ", Errc::unknown_command},
      {"ERR anything else", Errc::server_error},
      {"NOSCRIPTS is another word", Errc::server_error},
      {"MOVED", Errc::moved},
      {"", Errc::server_error},
      {" ", Errc::server_error},
  };
  for (const auto& [message, code] : words) {
    CAPTURE(message);
    CHECK(error_of(message) == code);
    const bool is_known = code != Errc::server_error;
    CHECK((make_error_code(code) == Failure::not_executed) == is_known);
  }
}

TEST_CASE("an error that has ended a script says nothing of what it had written", "[protocol]") {
  for (const std::string word :
       {"ERR The user executing the script can't run this command or subcommand",
        "ERR ACL failure in script: User limiter has no permissions to run the 'psetex' command",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "READONLY You can't write against a read only replica.", "NOPERM no"}) {
    for (const std::string end :
         {" script: f1d2, on @user_script:12.", " script: sluice_0_plan, on @sluice_0:7."}) {
      CAPTURE(word, end);
      CHECK(error_of(word) != Errc::server_error);
      CHECK(error_of(word + end) == Errc::server_error);
    }
  }
}

TEST_CASE("a reply of another length is no reply", "[protocol]") {
  Reply reply;
  const std::string good = payload(7, 1, {{1, 0, 0, 0}});
  CHECK(decode(reply, good, 7, 1));
  CHECK_FALSE(decode(reply, good, 7, 2));
  CHECK_FALSE(decode(reply, good, 8, 1));
  CHECK_FALSE(decode(reply, good + '\0', 7, 1));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_FALSE(decode(reply, good.substr(0, size), 7, 1));
  }
}

TEST_CASE("a reply with values that no rule gives is no reply", "[protocol]") {
  Reply reply;
  const auto is_good = [&](Word at, const Verdict& verdict) {
    return decode(reply, payload(7, at, {{1, 0, 0, 0}, verdict}), 7, 2);
  };
  CHECK(is_good(word_limit, {1, word_limit, 0, word_limit}));
  CHECK(is_good(0, {0, 5, word_limit, 9}));
  CHECK_FALSE(is_good(-1, {1, 0, 0, 0}));
  CHECK_FALSE(is_good(word_limit + 1, {1, 0, 0, 0}));
  CHECK_FALSE(is_good(INT64_MIN, {1, 0, 0, 0}));
  CHECK_FALSE(is_good(1, {1, -1, 0, 0}));
  CHECK_FALSE(is_good(1, {1, word_limit + 1, 0, 0}));
  CHECK_FALSE(is_good(1, {1, 0, -1, 0}));
  CHECK_FALSE(is_good(1, {1, 0, 0, INT64_MAX}));
  CHECK_FALSE(is_good(1, {0, 0, -1, 0}));
  CHECK_FALSE(is_good(1, {0, 0, INT64_MIN, 0}));
  CHECK_FALSE(is_good(1, {2, 0, 0, 0}));
  CHECK_FALSE(is_good(1, {INT64_MIN, 0, 0, 0}));
  CHECK_FALSE(is_good(1, {INT64_MAX, 0, 0, 0}));
  const std::array from_scripts{Errc::cost_exceeds_capacity,
                                Errc::invalid_cost,
                                Errc::invalid_argument,
                                Errc::wrong_type,
                                Errc::wrong_kind,
                                Errc::corrupt_state,
                                Errc::not_configured,
                                Errc::config_changed,
                                Errc::id_reused,
                                Errc::outside_calendar};
  for (Word code = 1; code <= 60; ++code) {
    const bool from_script = std::ranges::count(from_scripts, static_cast<Errc>(code)) != 0;
    CAPTURE(code);
    CHECK(is_good(1, {-code, 0, 0, 0}) == from_script);
    CHECK_FALSE(is_good(1, {-code, 1, 0, 0}));
  }
}

TEST_CASE("a state of another kind is told with the kind, in steps of 256", "[protocol]") {
  const auto kind_in = [](const Verdict& verdict) {
    Reply reply;
    if (!decode(reply, payload(1, 5, {verdict}), 1, 1, 0)) return Word{-1};
    CHECK(reply.verdicts[0].status == -static_cast<Word>(Errc::wrong_kind));
    return reply.verdicts[0].remaining;
  };
  CHECK(kind_in({-16, 0, 0, 0}) == 0);
  CHECK(kind_in({-16 - 256 * 18, 0, 0, 0}) == 18);
  CHECK(kind_in({-16 - 256 * 31, 0, 0, 0}) == 31);
  CHECK(kind_in({-16 - 256 * 32, 0, 0, 0}) == -1);  // a byte that no kind has
  CHECK(kind_in({-17 - 256 * 18, 0, 0, 0}) == -1);
  CHECK(kind_in({-16 - 256 * 18, 18, 0, 0}) == -1);
  CHECK(kind_in({INT64_MIN + 240, 0, 0, 0}) == -1);
}

TEST_CASE("a nonsense verdict never becomes a decision", "[protocol]") {
  World world;
  Asked call;
  world.pipeline.submit(make_call(call, 1));
  world.flush();
  CHECK(world.pipeline.hear_string(payload(1, 5, {{2, 0, 0, 0}})) == Heard::nonsense);
  CHECK(has_ended(call, Errc::protocol_error));
}

TEST_CASE("a state that the script could not use is an error", "[protocol]") {
  for (const Errc code : {Errc::wrong_type, Errc::wrong_kind, Errc::corrupt_state}) {
    World world;
    Asked call;
    world.pipeline.submit(make_call(call, 1));
    world.flush();
    CHECK(world.pipeline.hear_string(payload(1, 5, {Verdict::failed(code)})) == Heard::ok);
    CHECK(has_ended(call, code));
    CHECK(call.error == Failure::not_executed);
  }
}

TEST_CASE("a request carries its keys as they are, whatever their bytes", "[protocol]") {
  Asked unused;
  std::string out;
  const CallPtr one = make_call(unused, 5);
  redis_detail::append_evalsha(out, one->request);
  redis_detail::append_eval(out, one->request);
  redis_detail::append_fcall(out, one->request);
  const CallPtr three = make_call(unused, 6, Time::max(), 3);
  redis_detail::append_evalsha(out, three->request);
  const auto first = take_command(out);
  const auto text = take_command(out);
  const auto function = take_command(out);
  const auto plan = take_command(out);
  REQUIRE((first && text && function && plan && out.empty()));
  CHECK(first->at(1) == one->request.script->sha1);
  CHECK(text->at(1) == one->request.script->text);
  CHECK(function->at(1) == redis_detail::library().name + "_" + one->request.script->function);
  CHECK(std::equal(first->begin() + 2, first->end(), function->begin() + 2, function->end()));
  CHECK(first->at(3) == "{tag0}:api");
  CHECK(nonce_of(*plan) == 6);
  CHECK(steps_of(*plan) == 3);
  CHECK(plan->at(5) == "{tag2}:api");
  redis_detail::Request hostile;
  const std::string tag("}\r\n*1\r\n\0{", 9);
  const Step step = bucket_step(tag);
  redis_detail::encode(hostile, {&step, 1}, 1, {"app:", {}});
  out.clear();
  redis_detail::append_evalsha(out, hostile);
  const auto command = take_command(out);
  REQUIRE((command && out.empty()));
  CHECK(command->at(3) == "app:{%7d%0d%0a%2a1%0d%0a%00%7b}:api");
}
