// What is charged when a right is missing: an error that says "not executed" has changed no key,
// whatever the call would have written. Threading: the test's thread.
#include "tests/redis/real/rights.hpp"

#include <map>

#include "src/testing/generators.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// The documented rights to keys and of scripts; `+evalsha +eval`, or `+fcall`, is added.
const Rights of_scripts{"~rl:*",   "+time",     "+get",      "+mget",
                        "+psetex", "+getrange", "+setrange", "+pexpire"};

/// Every key with its bytes. How long it lives does not count: that is no part of a rule.
std::map<std::string, std::string> contents(RedisClient& admin) {
  std::map<std::string, std::string> keys;
  for (const RedisReply& key : admin({"KEYS", "rl:*"}).elements) {
    keys[key.text] = admin({"GET", key.text}).text;
  }
  return keys;
}

/// One operation, and a key of its kind.
struct Asking {
  const Operation* row;
  testing::detail::Configuration config;
  [[nodiscard]] Step step(const std::string& name) const {
    return {row, Key{"t", name}, config.args, nullptr, config.table};
  }
};

/// A server whose user `limiter` may lack a right, and two stores: one of that user, and one that
/// may do everything and makes the states that the first one finds.
class Restricted {
 public:
  explicit Restricted(RedisScripts how) : how_(how) {
    if (how == RedisScripts::functions) {
      REQUIRE_FALSE(admin({"FUNCTION", "LOAD", redis_functions()}).is_error());
    }
    grant({});
    limited = make_redis_store(options(options_of_limiter()));
    RedisOptions all;
    all.key_prefix = "rl:";
    whole = make_redis_store(options(all));
  }

  /// Gives the user the documented rights without this one, which may be empty.
  void grant(std::string_view missing) {
    Rights rights = missing.empty() ? of_scripts : without(of_scripts, missing);
    if (how_ == RedisScripts::functions) {
      rights.emplace_back("+fcall");
    } else {
      rights.insert(rights.end(), {"+evalsha", "+eval"});
    }
    test::grant(RedisClient(server.unix_socket()), "limiter", rights);
  }

  RedisServer server;
  RedisClient admin{server.unix_socket()};
  std::unique_ptr<RedisStore> limited;
  std::unique_ptr<RedisStore> whole;

 private:
  [[nodiscard]] RedisOptions options(RedisOptions options) const {
    options.unix_socket = server.unix_socket();
    options.scripts = how_;
    options.call_timeout = 20s;
    return options;
  }

  RedisScripts how_;
};

std::vector<Asking> any_askings(Random& random) {
  std::vector<Asking> askings;
  for (const Operation* row : operations()) {
    const auto* generator = testing::detail::find_generator(row->kind);
    REQUIRE(generator != nullptr);
    Asking& asking = askings.emplace_back(Asking{row, {}});
    do {  // a request that the client refuses itself runs no script
      asking.config = generator->any(random);
      generator->draw(random, *row, asking.config.args);
    } while (row->check(asking.config.args) < 0);
  }
  return askings;
}

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

}  // namespace

TEST_CASE("without any single right, a call that fails has changed no key", "[redis][rights]") {
  if (redis_left_out()) return;
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

TEST_CASE("an id is charged once, however often it was asked while a right was missing",
          "[redis][rights]") {
  if (redis_left_out()) return;
  Random random("an id is charged once, however often it was asked while a right was missing");
  CAPTURE(random.repeat());
  Restricted it(RedisScripts::eval);
  const TokenBucket bucket(*it.limited, "api", Quota::per(1, 30min).burst(100));
  for (const std::string_view missing : of_scripts) {
    CAPTURE(missing);
    it.grant("");
    REQUIRE(bucket.try_acquire("alice").allowed);
    const Word before = bucket.peek("alice").remaining;
    const RequestId id = RequestId::draw(random);
    const auto ask = [&](std::error_code& error) {
      return decide(*it.limited, Plan(bucket.acquire_step("alice")).idempotent(id), error).allowed;
    };
    it.grant(missing);
    std::error_code error;
    bool is_granted = false;
    for (int i = 0; i < 5; ++i) {
      is_granted = ask(error);  // an MGET, a PEXPIRE and a GETRANGE are not needed
      if (error) CHECK(error == Errc::no_permission);
    }
    it.grant("");
    if (!is_granted) CHECK(bucket.peek("alice").remaining == before);
    CHECK(ask(error));
    CHECK(ask(error));
    CHECK(bucket.peek("alice").remaining == before - 1);
  }
}
