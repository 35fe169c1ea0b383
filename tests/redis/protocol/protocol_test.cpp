// What a request says of its steps, byte for byte, what a server can answer and what that means:
// error words and replies. Threading: single-threaded.
#include <cstring>
#include <set>

#include "sluice/extend/idempotency_record.hpp"
#include "sluice/sluice.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::decode;
using redis_detail::error_of;
using redis_detail::Reply;

namespace {

std::string bytes_of(std::span<const Word> words) {
  std::string bytes;
  for (const Word word : words) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(word >> shift & 255);
  }
  return bytes;
}

/// What a script reads of a step.
std::string words_of(const Step& step) {
  const Word keep = (step.operation->ttl(step.args) + 999) / 1000 + 1000;
  return bytes_of(std::span(step.args).first(step.operation->argument_count)) +
         bytes_of(step.table) + bytes_of({&keep, 1});
}

Command encoded(std::span<const Step> steps, std::uint64_t nonce,
                const std::optional<RequestId>& id = {}) {
  redis_detail::Request request;
  redis_detail::encode(request, steps, nonce, {}, id);
  std::string out;
  redis_detail::append_evalsha(out, request);
  const auto command = take_command(out);
  REQUIRE((command && out.empty()));
  return *command;
}

/// A limiter of each form: a fixed state, a variable one with a table, another fixed one.
struct Limiters {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "bucket", Quota::per_second(10).burst(3)};
  SlidingWindow windows{*store, "windows", {{25, 5s}, {300, 60s}}};
  SlotLock lock{*store, "lock", 1s + 1us};

  [[nodiscard]] std::vector<Step> steps() const {
    return {bucket.acquire_step("t", 2), windows.acquire_step("t", 7), lock.acquire_step("t", 2s)};
  }
};

}  // namespace

TEST_CASE(
    "a request says of its steps their rules, arguments, tables and times to live, and its id",
    "[protocol]") {
  const Limiters limiters;
  const auto all = limiters.steps();
  const std::string nonce("\x8\x7\x6\x5\x4\x3\x2\x1", 8);
  for (const auto& id : {std::optional<RequestId>(), std::optional(RequestId{0x1234, 0xabcd})}) {
    std::vector<std::span<const Step>> plans;
    for (std::size_t i = 0; i < all.size(); ++i) {
      plans.push_back(std::span(all).first(i + 1));
      plans.push_back(std::span(all).subspan(i, 1));
    }
    for (const auto& steps : plans) {
      const Command command = encoded(steps, 0x0102030405060708, id);
      const std::size_t keys = steps.size() + (id ? 1 : 0);
      const bool is_alone = keys == 1;
      CAPTURE(keys, steps[0].operation->name);
      REQUIRE(command.size() == 4 + keys + (is_alone ? 0 : steps.size()));
      CHECK(command[1] == redis_detail::script_for(steps, id.has_value()).sha1);
      CHECK(command[2] == std::to_string(keys));
      if (id) CHECK(command[2 + keys] == "{t}:once%3a0000000000001234000000000000abcd");
      std::string head = nonce;
      std::size_t output = 0;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(command[3 + i] == render(steps[i].key));
        output += output_count(*steps[i].operation, steps[i].table.size());
        if (is_alone) continue;
        CHECK(command[4 + keys + i] ==
              std::string(1, static_cast<char>(steps[i].operation->id)) + words_of(steps[i]));
      }
      const Word print = fingerprint(steps);
      if (id) head += std::string{static_cast<char>(output), '\0'} + bytes_of({&print, 1});
      if (is_alone) head += words_of(steps[0]);
      CHECK(command[3 + keys] == head);
    }
  }
}

TEST_CASE("every script is short enough that the server is not kept by its first call",
          "[protocol]") {
  // Some 30 us a KiB: half a millisecond.
  for (const Operation* row : operations()) {
    const Step step(row, Key("t"), {});
    CAPTURE(row->name);
    CHECK(redis_detail::script_for({&step, 1}, false).text.size() < 16'000);
  }
}

TEST_CASE("a fingerprint tells plans apart by their operations and keys, in their order, alone",
          "[protocol]") {
  const Limiters limiters;
  const auto& bucket = limiters.bucket;
  const auto of = [](std::initializer_list<Step> steps) {
    return fingerprint({steps.begin(), steps.size()});
  };
  const Word print = of({bucket.acquire_step("t", 1), bucket.acquire_step("u", 1)});
  CHECK(of({bucket.acquire_step("t", 3), bucket.acquire_step("u", 2)}) == print);
  const std::set<Word> others{
      print,
      of({bucket.acquire_step("u", 1), bucket.acquire_step("t", 1)}),
      of({bucket.acquire_step("t", 1)}),
      of({bucket.acquire_step("t", 1), bucket.acquire_step("u", 1), bucket.acquire_step("v", 1)}),
      of({bucket.acquire_step("t", 1), bucket.peek_step("u", 1)}),
      of({bucket.acquire_step("t", 1), bucket.acquire_step({"u", "x"}, 1)}),
      of({limiters.windows.acquire_step("t", 1)}),
      of({SlidingWindow(*limiters.store, "windows", {{25, 5s}}).acquire_step("t", 1)}),
  };
  CHECK(others.size() == 8);
  for (const Word word : others) CHECK((word >= 0 && word < word_limit));
  // Written down by other processes, for as long as ids are kept: it does not change.
  CHECK(of({bucket.acquire_step("u", 1)}) == 0xda0472f97a284);
}

TEST_CASE("output come back in the order of the steps, and none but those asked for",
          "[protocol]") {
  const std::array<Word, 5> told{1, 0, word_limit, 7, 42};
  const std::string good = payload(7, 1, {{1, 0, 0, 0}, {1, 3, 0, 9}}) + bytes_of(told);
  Reply reply;
  REQUIRE(decode(reply, good, 7, 2, told.size()));
  CHECK(reply.output_count == told.size());
  CHECK(std::equal(told.begin(), told.end(), reply.output.begin()));
  CHECK(reply.verdicts[1] == Verdict{1, 3, 0, 9});
  for (const std::size_t count : {0U, 4U, 6U}) CHECK_FALSE(decode(reply, good, 7, 2, count));
  for (const Word bad : {Word{-1}, word_limit + 1, INT64_MIN}) {
    auto spoilt = told;
    spoilt[3] = bad;
    const std::string bytes = payload(7, 1, {{1, 0, 0, 0}, {1, 3, 0, 9}}) + bytes_of(spoilt);
    CHECK_FALSE(decode(reply, bytes, 7, 2, told.size()));
  }
}

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
  CHECK(is_good(0, {0, 5, 2 * word_limit, 2 * word_limit}));
  CHECK_FALSE(is_good(0, {0, 5, 2 * word_limit + 1, 9}));
  CHECK_FALSE(is_good(0, {0, 5, 9, 2 * word_limit + 1}));
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

TEST_CASE("a request carries its keys as they are, whatever their bytes", "[protocol]") {
  Asked unused;
  std::string out;
  const CallPtr one = make_call(unused, 5);
  redis_detail::append_evalsha(out, one->request);
  redis_detail::append_eval(out, one->request);
  redis_detail::append_fcall(out, one->request);
  const auto first = take_command(out);
  const auto text = take_command(out);
  const auto function = take_command(out);
  REQUIRE((first && text && function && out.empty()));
  CHECK(first->at(1) == one->request.script->sha1);
  CHECK(text->at(1) == one->request.script->text);
  CHECK(function->at(1) == redis_detail::library().name + "_" + one->request.script->function);
  CHECK(std::equal(first->begin() + 2, first->end(), function->begin() + 2, function->end()));
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
