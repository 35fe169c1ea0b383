// Scripts and functions on a real server: lost in mid-load, loaded by somebody else, forbidden, the
// same on Valkey, and twins that answer the same bytes. Threading: the test's thread asks; some
// tests have a second thread that disturbs the server.
#include <array>
#include <map>
#include <sstream>

#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/check.hpp"
#include "tests/left_out.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/redis/real/rights.hpp"
#include "tests/redis/real/scripts.hpp"
#include "tests/support/frozen_redis.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

const Quota quota = Quota::per_hour(10);

RedisOptions function_options(const RedisServer& server) {
  RedisOptions options = socket_options(server);
  options.scripts = RedisScripts::functions;
  return options;
}

void load(const RedisServer& server) {
  RedisClient admin(server.unix_socket());
  CHECK(admin({"FUNCTION", "LOAD", "REPLACE", redis_functions()}).text.starts_with("sluice_"));
}

/// The documented rights to keys and of scripts; `+evalsha +eval`, or `+fcall`, is added.
const Rights of_scripts{"~rl:*",   "+time",     "+get",      "+mget",
                        "+psetex", "+getrange", "+setrange", "+pexpire"};

/// The store of a user who may use scripts, or functions, and nothing else, but for `more`.
RedisOptions restricted(const RedisServer& server, RedisScripts how, const Rights& more = {},
                        Rights rights = of_scripts) {
  if (how == RedisScripts::functions) {
    rights.emplace_back("+fcall");
  } else {
    rights.insert(rights.end(), {"+evalsha", "+eval"});
  }
  rights.insert(rights.end(), more.begin(), more.end());
  grant(RedisClient(server.unix_socket()), "limiter", rights);
  RedisOptions options = options_of_limiter();
  options.unix_socket = server.unix_socket();
  options.scripts = how;
  return options;
}

/// Every key with its bytes. How long it lives does not count: that is no part of a rule.
std::map<std::string, std::string> contents(RedisClient& admin) {
  std::map<std::string, std::string> keys;
  for (const RedisReply& key : admin({"KEYS", "rl:*"}).elements) {
    keys[key.text] = admin({"GET", key.text}).text;
  }
  return keys;
}

/// A server whose user `limiter` may lack a right, and two stores: one of that user, and one that
/// may do everything and makes the states that the first one finds.
class Restricted {
 public:
  explicit Restricted(RedisScripts how) : how_(how) {
    if (how == RedisScripts::functions) load(server);
    RedisOptions options = restricted(server, how);
    limited = make_redis_store(options);
    options.username.clear();
    options.password = {};
    whole = make_redis_store(options);
  }

  /// Gives the user the documented rights without this one, which may be empty.
  void grant(std::string_view missing) const {
    restricted(server, how_, {}, missing.empty() ? of_scripts : without(of_scripts, missing));
  }

  RedisServer server;
  RedisClient admin{server.unix_socket()};
  std::unique_ptr<RedisStore> limited;
  std::unique_ptr<RedisStore> whole;

 private:
  RedisScripts how_;
};

/// Plans of one to three random operations, with and without an id, while `missing` is missing.
/// Returns how many failed for that.
std::size_t ask_without(Restricted& it, std::string_view missing, Random& random) {
  std::size_t denied = 0;
  it.grant(missing);
  for (std::size_t round = 0; round < scaled(40, 15); ++round) {
    const std::vector<Asking> askings = any_askings(random);
    for (std::size_t i = 0; i < askings.size(); ++i) {
      std::vector<std::string> names;
      std::vector<Step> steps;
      const std::size_t count = 1 + random.below(3);
      for (std::size_t j = 0; j < count; ++j) names.push_back("key" + std::to_string(j));
      for (std::size_t j = 0; j < count; ++j) {
        const std::size_t which = j == 0 ? i : random.below(askings.size());
        steps.push_back(askings[which].step(names[j]));
      }
      std::error_code error;
      it.admin({"FLUSHALL"});
      // Some of the states are there, and young enough to be written in place.
      for (const Step& step : steps) {
        if (random.one_in(2)) static_cast<void>(decide(*it.whole, step, error));
      }
      Plan plan{std::span<const Step>(steps)};
      if (random.one_in(2)) plan = plan.idempotent(RequestId::draw(random));
      const auto before = contents(it.admin);
      static_cast<void>(decide(*it.limited, plan, error));
      INFO(missing << " is missing, " << steps.size() << " steps, the first is "
                   << steps[0].operation->name << ": " << error.message());
      if (!error) continue;
      CHECK(error == Failure::not_executed);
      CHECK(contents(it.admin) == before);
      if (error == Errc::no_permission) ++denied;
    }
  }
  return denied;
}

/// A request of any rows, over states that several rows share, in both forms.
class Requests {
 public:
  struct Made {
    Command script;
    Command function;
    std::string_view text{};  // of the script
  };

  explicit Requests(Random& random) : random_(random) {
    for (const auto& generator : testing::detail::generators()) {
      for (int i = 0; i < 2; ++i) {
        slots_.push_back(
            {generator.kind, "k" + std::to_string(slots_.size()), generator.any(random)});
      }
    }
  }

  Made draw() {
    if (random_.one_in(30)) return spoil();
    std::vector<Step> steps;
    const bool both_taken = random_.one_in(20);
    const std::size_t first =
        both_taken ? 2 * random_.below(slots_.size() / 2) : random_.below(slots_.size());
    const std::size_t count = both_taken ? 2 : random_.one_in(3) ? 1 + random_.below(4) : 1;
    for (std::size_t i = 0; i < count; ++i)
      steps.push_back(draw_step(slots_.at((first + i) % slots_.size()), both_taken));
    std::optional<RequestId> id;
    if (random_.one_in(10)) id = random_.one_in(2) ? RequestId{1, 2} : RequestId::draw(random_);
    redis_detail::Request request;
    redis_detail::encode(request, steps, random_.next(), {}, id);
    std::string bytes;
    redis_detail::append_evalsha(bytes, request);
    redis_detail::append_fcall(bytes, request);
    asked_.insert(request.script->function);
    auto script = take_command(bytes);
    auto function = take_command(bytes);
    return {std::move(*script), std::move(*function), request.script->text};
  }

  /// How many functions were asked.
  [[nodiscard]] std::size_t asked() const { return asked_.size(); }

 private:
  struct Slot {
    StateKind kind;
    std::string name;
    testing::detail::Configuration config;
  };

  /// Something else under a key: of another type or kind, or with words that no rule writes.
  Made spoil() {
    const Slot& slot = slots_[random_.below(slots_.size())];
    const char kind =
        static_cast<char>(random_.one_in(2) ? slot.kind : StateKind::idempotency_record);
    const std::string state = kind + std::string(8 * random_.below(40), '\xff');
    const Command command{"SET", "{t}:" + slot.name, random_.one_in(4) ? "text" : state, "PX",
                          "1000"};
    return {command, command};
  }

  /// `takes`: the kind's first row.
  Step draw_step(Slot& slot, bool takes) {
    std::vector<const Operation*> rows;
    for (const Operation* row : operations()) {
      if (row->kind == slot.kind) rows.push_back(row);
    }
    const Operation& row = *rows[takes ? 0 : random_.below(rows.size())];
    if (random_.one_in(20)) slot.config = testing::detail::find_generator(slot.kind)->any(random_);
    Arguments args = slot.config.args;
    testing::detail::find_generator(slot.kind)->draw(random_, row, args);
    return {&row, Key{"t", slot.name}, args, nullptr, slot.config.table};
  }

  Random& random_;
  std::vector<Slot> slots_;
  std::set<std::string_view> asked_;
};

std::string ask(RedisClient& client, const Command& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  const RedisReply reply = client.command(views);
  return (reply.is_error() ? "-" : "+") + reply.text;
}

/// Whether this Valkey has the fix of CVE-2025-49844, without which it may itself crash when
/// functions are loaded again and again.
bool loads_safely(const RedisServer& valkey) {
  const std::string info = RedisClient(valkey.unix_socket())({"INFO", "server"}).text;
  const std::string name = "valkey_version:";
  std::istringstream version(info.substr(info.find(name) + name.size()));
  std::array<int, 3> parts{};
  char dot;
  version >> parts[0] >> dot >> parts[1] >> dot >> parts[2];
  return parts >= std::array{8, 1, 4} || (parts[1] == 0 && parts >= std::array{8, 0, 6});
}

/// Every key, its value and how long it lives.
std::map<std::string, std::string> everything_in(RedisClient& client) {
  std::map<std::string, std::string> all;
  for (const RedisReply& key : client({"KEYS", "*"}).elements) {
    all[key.text] = client({"GET", key.text}).text + " " +
                    std::to_string(client({"PEXPIRETIME", key.text}).integer);
  }
  return all;
}

}  // namespace

TEST_CASE_METHOD(SharedServer, "scripts lost in mid-load are loaded again and no caller sees it",
                 "[redis]") {
  check_lost_scripts({&server}, socket_options(server), "SCRIPT", 500us);
}

TEST_CASE("Valkey keeps every promise, and loses scripts and functions unseen as well",
          "[redis][valkey]") {
  const auto server = valkey_server();
  if (!server) {
    return leave_out("no valkey-server in PATH nor in SLUICE_VALKEY_SERVER");
  }
  check_store(*connect_socket(*server));
  check_store(*connect_tcp(*server));
  check_lost_scripts({server.get()}, socket_options(*server), "SCRIPT", 500us);
  if (!loads_safely(*server)) return;
  RedisOptions functions = function_options(*server);
  functions.key_prefix = "other:";  // fresh keys
  check_lost_scripts({server.get()}, functions, "FUNCTION", 20ms);
}

TEST_CASE_METHOD(SharedServer,
                 "a user with the documented rights can do everything, and loads scripts",
                 "[redis]") {
  constexpr const char* name =
      "a user with the documented rights can do everything, and loads scripts";
  SECTION("with the right to load") {
    const Rights more{"+script|load", "+ping", "+client|setname"};
    // Of each row its own, and that of a plan of it with an id; and those of two plans. The two
    // rows of constants are answered without the server where they have no id.
    CHECK(ask_all_rows(restricted(server, RedisScripts::eval, more), name) ==
          2 * operations().size() + 2 - 2);
  }
  SECTION("without it, the text travels with the call") {
    CHECK(ask_all_rows(restricted(server, RedisScripts::eval), name) == 0);
  }
  SECTION("a key outside of its pattern is refused") {
    RedisOptions options = restricted(server, RedisScripts::eval);
    options.key_prefix = "other:";
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, Quota::per_second(10)).error("a") == Errc::no_permission);
    CHECK(admin({"DBSIZE"}).integer == 0);
  }
  SECTION("without the right to write in place, a plan changes nothing") {
    const auto store = make_redis_store(restricted(server, RedisScripts::eval));
    const TokenBucket bucket(*store, "api", Quota::per_hour(10));
    for (int i = 0; i < 2; ++i) CHECK(bucket.try_acquire("b"));
    restricted(server, RedisScripts::eval, {"-setrange"});
    const auto expiry = [&] { return admin({"PEXPIRETIME", "rl:{b}:api:10/h"}).integer; };
    Word before = 0;
    std::error_code error;
    do {  // until both are asked within half a second of each other
      before = expiry();
      static_cast<void>(
          decide(*store, {bucket.acquire_step("new"), bucket.acquire_step("b")}, error));
    } while (!error && before != expiry() && admin({"DEL", "rl:{new}:api:10/h"}).integer == 1);
    CHECK(error == Errc::no_permission);
    CHECK(admin({"EXISTS", "rl:{new}:api:10/h"}).integer == 0);
  }
}

TEST_CASE_METHOD(SharedServer, "functions lost in mid-load are loaded again and no caller sees it",
                 "[redis][functions]") {
  check_lost_scripts({&server}, function_options(server), "FUNCTION", 20ms);
}

TEST_CASE("a user who may call functions and nothing else can do everything",
          "[redis][functions]") {
  RedisServer server;
  const RedisOptions options = restricted(server, RedisScripts::functions);
  load(server);
  CHECK(ask_all_rows(options, "a user who may call functions and nothing else can do everything") ==
        0);
  RedisClient client(server.unix_socket());
  CHECK(client({"AUTH", "limiter", "secret"}).text == "OK");
  CHECK(client({"EVAL", "return 0", "0"}).text.starts_with("NOPERM"));
  CHECK(client({"FUNCTION", "FLUSH"}).text.starts_with("NOPERM"));
}

TEST_CASE("without the library such a user is told what is missing, until somebody loads it",
          "[redis][functions]") {
  RedisServer server;
  const auto store = make_redis_store(restricted(server, RedisScripts::functions));
  const Bucket bucket(*store, quota);
  for (int i = 0; i < 3; ++i) {
    const std::error_code error = bucket.error("a");
    CHECK(error == Errc::no_function);
    CHECK(error == Failure::not_executed);
    CHECK(error.message().find("redis_functions()") != std::string::npos);
  }
  CHECK(RedisClient(server.unix_socket())({"DBSIZE"}).integer == 0);
  load(server);
  CHECK((*bucket).try_acquire("a").remaining == 9);
  CHECK(store->stats().connections == 1);
  SECTION("a restart without persistence loses it") {
    server.restart();
    restricted(server, RedisScripts::functions);
    REQUIRE(eventually([&] { return bucket.error("b") == Errc::no_function; }));
    load(server);
    CHECK_FALSE(bucket.error("b"));
  }
}

TEST_CASE("with the right to load, such a user loads the library once", "[redis][functions]") {
  RedisServer server;
  const auto options = restricted(server, RedisScripts::functions, {"+function|load"});
  const auto store = make_redis_store(options);
  const auto other = make_redis_store(options);
  CHECK((*Bucket(*store, quota)).try_acquire("a").remaining == 9);
  CHECK((*Bucket(*other, quota)).try_acquire("a").remaining == 8);
  CHECK(store->stats().scripts_loaded == 1);
  CHECK(other->stats().scripts_loaded == 0);
}

TEST_CASE("a server without functions, or without memory for them, says so", "[redis][functions]") {
  SECTION("without functions, as before Redis 7.0") {
    const RedisServer server({"rename-command FCALL \"\""});
    const auto store = make_redis_store(function_options(server));
    CHECK(Bucket(*store, quota).error("a") == Errc::unknown_command);
  }
  SECTION("without memory") {
    const RedisServer server;
    const auto store = make_redis_store(function_options(server));
    const Bucket bucket(*store, quota);
    RedisClient admin(server.unix_socket());
    admin({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(bucket.error("a") == Errc::out_of_memory);  // loading them
    admin({"CONFIG", "SET", "maxmemory", "0"});
    CHECK_FALSE(bucket.error("b"));
    admin({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(bucket.error("a") == Errc::out_of_memory);  // calling one
    admin({"CONFIG", "SET", "maxmemory", "0"});
    CHECK((*bucket).try_acquire("a").remaining == 9);
  }
}

TEST_CASE("without any single right, a call that fails has changed no key", "[redis][rights]") {
  Random random("without any single right, a call that fails has changed no key");
  CAPTURE(random.repeat());
  for (const RedisScripts how : {RedisScripts::eval, RedisScripts::functions}) {
    CAPTURE(how == RedisScripts::functions);
    Restricted it(how);
    for (const std::string_view missing : of_scripts) {
      CAPTURE(missing);
      CHECK(ask_without(it, missing, random) > 0);
    }
    CHECK(ask_without(it, "", random) == 0);
  }
}

TEST_CASE("functions answer and write what scripts do, byte for byte", "[redis][functions]") {
  Random random("functions answer and write what scripts do, byte for byte");
  CAPTURE(random.repeat());
  FrozenRedis& redis = FrozenRedis::instance();
  RedisClient client(redis.server().unix_socket());
  REQUIRE(client({"FUNCTION", "LOAD", redis_functions()}).text == redis_detail::library().name);
  struct Asked {
    Time at;
    Requests::Made request;
    std::string answer;
  };
  std::size_t asked = 0;
  std::size_t answered = 0;
  std::set<std::size_t> scripts;
  for (std::size_t round = scaled(10, 2); round > 0; --round) {
    Requests requests(random);
    std::vector<Asked> all;
    Time now = VirtualClock::default_start;
    redis.set_time(now);
    redis.flush();
    for (int i = 0; i < 2'000; ++i) {
      now += Span{random.one_in(3) ? random.between(0, 3'000'000) : random.between(0, 2'000)};
      redis.set_time(now);
      Asked next{now, requests.draw(), {}};
      next.answer = ask(client, next.request.script);
      if (next.answer.starts_with("-NOSCRIPT")) {
        client({"SCRIPT", "LOAD", next.request.text});
        next.answer = ask(client, next.request.script);
      }
      answered += next.answer.starts_with('+') ? 1U : 0U;
      all.push_back(std::move(next));
    }
    const auto kept = everything_in(client);
    CHECK(kept.size() > 10);
    redis.set_time(VirtualClock::default_start);
    redis.flush();
    for (const Asked& before : all) {
      redis.set_time(before.at);
      INFO(before.request.function.at(1));
      REQUIRE(ask(client, before.request.function) == before.answer);
    }
    CHECK(everything_in(client) == kept);
    asked += all.size();
    scripts.insert(requests.asked());
  }
  CHECK(answered == asked);
  CHECK(*scripts.rbegin() == operations().size() + 3);
}
