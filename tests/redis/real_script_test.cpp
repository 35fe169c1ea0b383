// Scripts on a real server: lost in mid-load, forbidden, and the same on Valkey.
// Threading: the test's thread asks; some tests have a second thread that disturbs the server.
#include <cstdlib>

#include "sluice/testing/detail/generators.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/check.hpp"
#include "tests/redis/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// SCRIPT FLUSH as often as possible while it lives.
class Flusher {
 public:
  explicit Flusher(const RedisServer& server)
      : thread_([this, path = server.unix_socket()] {
          RedisClient client(path);
          while (!over_) {
            client({"SCRIPT", "FLUSH"});
            ++flushes_;
            std::this_thread::sleep_for(500us);
          }
        }) {}
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  ~Flusher() {
    over_ = true;
    thread_.join();
  }
  [[nodiscard]] std::size_t flushes() const { return flushes_; }

 private:
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> flushes_{0};
  std::thread thread_;
};

void check_lost_scripts(const RedisServer& server) {
  const auto store = connect_socket(server);
  const TokenBucket bucket(*store, "api", Quota::per_hour(1).burst(1'000'000));
  const Flusher flusher(server);
  // Each caller keeps some calls in flight; each key's remaining counts down one by one, so that a
  // repeated or a lost execution would show.
  constexpr std::size_t keys = 16;
  constexpr Word depth = 8;
  Word wrong = 0;
  std::size_t rounds = 0;
  std::array<Word, keys> expected;
  expected.fill(1'000'000);
  const std::size_t least = scaled(500, 100);
  while (rounds < least || flusher.flushes() < 50) {
    ++rounds;
    Crowd crowd(keys * depth);
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      const std::string tag = std::to_string(i % keys);
      const std::string twin = "twin" + tag;
      if (i % 3 == 0) {
        store->execute(Plan({bucket.take(tag), bucket.look(twin)}).within(20s),
                       crowd[i].completion());
      } else {
        store->execute(Plan(bucket.take(tag)).within(20s), crowd[i].completion());
      }
    }
    REQUIRE(crowd.wait());
    REQUIRE(crowd.count([](const Asked& call) { return bool(call.error); }) == 0);
    for (std::size_t i = 0; i < keys; ++i) expected[i] -= depth;
    for (std::size_t i = 0; i < keys; ++i) {
      const auto left = bucket.peek(std::to_string(i)).remaining;
      wrong += left == expected[i] ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(store->stats().scripts_loaded > 10);
  CHECK(store->stats().connections == 1);
}

}  // namespace

TEST_CASE("scripts lost in mid-load are loaded again and no caller sees it", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  check_lost_scripts(server);
}

TEST_CASE("Valkey keeps every promise, and loses scripts unseen as well", "[redis][valkey]") {
  if (redis_left_out()) return;
  const auto server = valkey_server();
  if (!server) {
    WARN("left out: no valkey-server in PATH nor in SLUICE_VALKEY_SERVER");
    return;
  }
  check_store(*connect_socket(*server));
  check_store(*connect_tcp(*server));
  check_lost_scripts(*server);
}

TEST_CASE("a user with the documented rights can do everything, and loads scripts", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server;
  RedisClient admin(server.unix_socket());
  RedisOptions options = socket_options(server);
  options.username = "limiter";
  options.password = "secret";
  options.key_prefix = "rl:";
  const auto grant = [&](std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> words{
        "ACL",   "SETUSER", "limiter", "reset", "on",      ">secret",   "~rl:*",     "+evalsha",
        "+eval", "+time",   "+get",    "+mget", "+psetex", "+getrange", "+setrange", "+pexpire"};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(admin.command(words).text == "OK");
  };
  // What a rule itself answers: it has run.
  const auto is_of_rule = [](const std::error_code& error) {
    return error == Errc::cost_exceeds_capacity || error == Errc::invalid_argument ||
           error == Errc::not_configured || error == Errc::config_changed ||
           error == Errc::outside_calendar;
  };
  // Every row, twice, so that states are there the second time: alone, in a plan, and with an id.
  const auto ask_all = [&] {
    admin({"SCRIPT", "FLUSH"});
    const auto store = make_redis_store(options);
    Random random("a user with the documented rights can do everything, and loads scripts");
    CAPTURE(random.repeat());
    std::vector<testing::detail::Configuration> configs;
    std::vector<std::string> names;
    for (const Operation* row : operations()) {
      const auto* generator = testing::detail::find_generator(row->kind);
      REQUIRE(generator != nullptr);
      configs.push_back(generator->any(random));
      generator->draw(random, *row, configs.back().args);
      names.push_back("kind " + std::to_string(static_cast<int>(row->kind)));
    }
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const Step step{operations()[i], Key{"t", names[i]}, configs[i].args, nullptr,
                        configs[i].table};
        std::error_code error;
        for (const Plan& plan : {Plan(step), Plan(step).once(RequestId::draw(random))}) {
          static_cast<void>(decide(*store, plan, error));
          INFO(step.operation->name << ": " << error.message());
          CHECK((!error || is_of_rule(error)));
        }
      }
    }
    const TokenBucket bucket(*store, "api", Quota::per_second(10));
    CHECK(decide(*store, {bucket.take("a"), bucket.take("b")}).allowed);
    return store->stats().scripts_loaded;
  };
  SECTION("with the right to load") {
    grant({"+script|load", "+ping", "+client|setname"});
    CHECK(ask_all() == operations().size() + 2);
  }
  SECTION("without it, the text travels with the call") {
    grant({});
    CHECK(ask_all() == 0);
  }
  SECTION("a key outside of its pattern is refused") {
    grant({});
    options.key_prefix = "other:";
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, Quota::per_second(10)).error("a") == Errc::no_permission);
    CHECK(admin({"DBSIZE"}).integer == 0);
  }
  SECTION("without a right to read or write, nothing is admitted") {
    const std::string_view missing =
        GENERATE(std::string_view("-psetex"), std::string_view("-get"), std::string_view("-time"));
    grant({missing});
    const auto store = make_redis_store(options);
    CHECK(Bucket(*store, Quota::per_second(10)).error("a") == Errc::no_permission);
    CHECK(admin({"DBSIZE"}).integer == 0);
  }
  SECTION("without the right to write in place, a plan changes nothing") {
    grant({});
    const auto store = make_redis_store(options);
    const TokenBucket bucket(*store, "api", Quota::per_hour(10));
    for (int i = 0; i < 2; ++i) CHECK(bucket.try_acquire("b"));
    grant({"-setrange"});
    const auto expiry = [&] { return admin({"PEXPIRETIME", "rl:{b}:api"}).integer; };
    Word before = 0;
    std::error_code error;
    do {  // until both are asked within half a second of each other
      before = expiry();
      decide(*store, {bucket.take("new"), bucket.take("b")}, error);
    } while (!error && before != expiry() && admin({"DEL", "rl:{new}:api"}).integer == 1);
    CHECK(error == Errc::no_permission);
    CHECK(admin({"EXISTS", "rl:{new}:api"}).integer == 0);
  }
}
