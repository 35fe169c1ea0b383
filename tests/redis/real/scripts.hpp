// What tests of scripts and of functions share: a server that loses them, and a pass over every
// row of the table. Threading: the test's thread asks; a second one disturbs the server.
#pragma once

#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

namespace sluice::test {

using Servers = std::vector<const RedisServer*>;

/// SCRIPT FLUSH or FUNCTION FLUSH on each server again and again while it lives.
class Flusher {
 public:
  Flusher(const Servers& servers, std::string_view kind, Span pause)
      : thread_([this, servers, kind, pause] {
          std::vector<RedisClient> clients;
          for (const RedisServer* server : servers) clients.emplace_back(server->unix_socket());
          while (!over_) {
            for (RedisClient& client : clients) client({kind, "FLUSH"});
            ++flushes_;
            std::this_thread::sleep_for(pause);
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

/// Calls under way while what they need (`kind`: SCRIPT, FUNCTION) is lost every `pause`: none
/// fails, and none is charged twice. The store needs one connection to each of `masters` servers.
inline void check_lost_scripts(const Servers& servers, RedisOptions options, std::string_view kind,
                               Span pause, std::size_t masters = 1) {
  options.stall_timeout = 1h;  // of a busy machine
  options.connect_timeout = 20s;
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", Quota::per(1, 30min).burst(1'000'000));
  const Flusher flusher(servers, kind, pause);
  // Each caller keeps some calls in flight; each key's remaining counts down one by one, so that a
  // repeated or a lost execution would show.
  constexpr std::size_t keys = 16;
  constexpr Word depth = 8;
  Word wrong = 0;
  std::size_t rounds = 0;
  std::array<Word, keys> expected;
  expected.fill(1'000'000);
  const std::size_t least = scaled(500, 100) / masters;
  while (rounds < least || flusher.flushes() < 50 / masters) {
    ++rounds;
    Crowd crowd(keys * depth);
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      const std::string tag = std::to_string(i % keys);
      const Key twin(tag, "twin");
      if (i % 3 == 0) {
        store->execute(Plan({bucket.acquire_step(tag), bucket.peek_step(twin)}).within(20s),
                       crowd[i].completion());
      } else {
        store->execute(Plan(bucket.acquire_step(tag)).within(20s), crowd[i].completion());
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
  CHECK(store->stats().connections == masters);
}

/// One operation, and a configuration of its kind.
struct Asking {
  const Operation* row;
  testing::detail::Configuration config;
  [[nodiscard]] Step step(const std::string& name) const {
    return {row, Key{"t", name}, config.args, nullptr, config.table};
  }
};

/// Of every row. A request that the client refuses itself, which runs no script, is not drawn.
inline std::vector<Asking> any_askings(Random& random) {
  std::vector<Asking> askings;
  for (const Operation* row : operations()) {
    const auto* generator = testing::detail::find_generator(row->kind);
    REQUIRE(generator != nullptr);
    Asking& asking = askings.emplace_back(Asking{row, {}});
    do {
      asking.config = generator->any(random);
      generator->draw(random, *row, asking.config.args);
    } while (row->check(asking.config.args) < 0);
  }
  return askings;
}

/// Asks every row, twice, so that states are there the second time: alone, in a plan, and with an
/// id. Returns how often the store has loaded something. `test`: the name of the test case.
inline std::uint64_t ask_all_rows(const RedisOptions& options, const char* test) {
  const auto store = make_redis_store(options);
  Random random(test);
  // What a rule itself answers: it has run.
  const auto is_of_rule = [](const std::error_code& error) {
    return error == Errc::cost_exceeds_capacity || error == Errc::invalid_argument ||
           error == Errc::not_configured || error == Errc::config_changed ||
           error == Errc::outside_calendar;
  };
  CAPTURE(random.repeat());
  const auto askings = any_askings(random);
  for (int round = 0; round < 2; ++round) {
    for (const Asking& asking : askings) {
      const std::string name = "kind " + std::to_string(static_cast<int>(asking.row->kind));
      const Step step = asking.step(name);
      std::error_code error;
      for (const Plan& plan : {Plan(step), Plan(step).idempotent(RequestId::draw(random))}) {
        static_cast<void>(decide(*store, plan, error));
        INFO(asking.row->name << ": " << error.message());
        CHECK((!error || is_of_rule(error)));
      }
    }
  }
  const TokenBucket bucket(*store, "api", Quota::per_second(10));
  const Key other("a", "b");
  CHECK(decide(*store, {bucket.acquire_step("a"), bucket.acquire_step(other)}).allowed);
  CHECK(decide(*store, {bucket.acquire_step("a"), bucket.peek_step(other)}).allowed);
  return store->stats().scripts_loaded;
}

}  // namespace sluice::test
