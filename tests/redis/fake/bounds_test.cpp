// What a server that answers nothing may cost, and stores that end in the middle of a batch.
// Threading: as calls_test.cpp.
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const Quota quota = Quota::per_second(10);

}  // namespace

TEST_CASE("requests that a mute server holds never exceed max_in_flight", "[fake]") {
  std::atomic<int> calls{0};
  std::atomic<bool> answers{false};
  FakeServer server([&](Peer& peer, int) {
    std::vector<Command> held;
    while (const auto call = peer.read_call()) {
      ++calls;
      held.push_back(*call);
      if (held.size() < 8 || !eventually([&] { return answers.load(); })) continue;
      for (const Command& command : held) peer.send(allowing(command, 1));
      return serve_well(peer, 500);
    }
  });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 60s;
  options.max_in_flight = 8;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  Crowd crowd(8);
  for (std::size_t i = 0; i < crowd.size(); ++i) bucket.ask(crowd[i], "a", 3s);
  REQUIRE(eventually([&] { return calls == 8; }));
  CHECK(crowd.wait());
  CHECK(crowd.count([](const Asked& call) { return call.error == Errc::unknown; }) == 8);
  for (int i = 0; i < 100; ++i) CHECK(bucket.error("a", 10s) == Errc::queue_full);
  answers = true;
  CHECK(eventually([&] { return store->stats().late_replies == 8; }));
  CHECK_FALSE(bucket.error("a", 10s));
  CHECK(store->stats().connections == 1);
}

TEST_CASE("places that a mute server holds are free again when its connection is given up",
          "[fake]") {
  FakeServer server([](Peer& peer, int number) {
    if (number > 0) return serve_well(peer);
    const auto first = peer.read_call();  // behind it the store is connected
    if (first && peer.send(allowing(*first, 1)) && peer.read_call()) peer.wait_for_close();
  });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 20s;
  options.stall_timeout = 2s;
  options.max_in_flight = 1;
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  REQUIRE_FALSE(bucket.error("a", 20s));
  CHECK(bucket.error("a", 1s) == Errc::unknown);
  CHECK(eventually([&] { return !bucket.error("a", 20s); }));
  CHECK(store->stats().connections == 2);
}

TEST_CASE("a completion may make the next call when its own ended by a reply", "[fake]") {
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.max_in_flight = 1;
  const auto store = make_redis_store(options);
  struct Chain {
    Bucket bucket;
    Asked second;
  } chain{Bucket(*store, quota), {}};
  const Step step = (*chain.bucket).acquire_step("a");
  store->execute(Plan(step).within(20s), Completion(
                                             [](void* self, const Outcome&) noexcept {
                                               auto& it = *static_cast<Chain*>(self);
                                               it.bucket.ask(it.second, "b", 20s);
                                             },
                                             &chain));
  CHECK_FALSE(chain.second.wait().error);
}

TEST_CASE("the completion of an invalid plan in a batch may destroy the store", "[fake]") {
  FakeServer server([](Peer& peer, int) {
    if (peer.read_call()) peer.wait_for_close();
  });
  RedisOptions options;
  options.port = server.port();
  struct Destroyer {
    std::unique_ptr<RedisStore> store;
    Crowd others{100};
    std::size_t ended = 0;
    std::error_code error{};
  };
  for (const std::size_t at : {0U, 1U, 63U, 64U, 70U, 99U}) {
    CAPTURE(at);
    Destroyer it{make_redis_store(options)};
    const Bucket bucket(*it.store, quota);
    const Step good = (*bucket).acquire_step("a");
    const Step bad = (*bucket).acquire_step("");
    std::vector<Plan> plans;
    std::vector<Completion> done;
    for (std::size_t i = 0; i < it.others.size(); ++i) {
      if (i == at) {
        plans.emplace_back(bad);
        done.emplace_back(
            [](void* self, const Outcome& outcome) noexcept {
              auto& destroyer = *static_cast<Destroyer*>(self);
              destroyer.error = outcome.error;
              destroyer.store.reset();
              destroyer.ended =
                  destroyer.others.count([](const Asked& c) { return c.answers == 1; });
            },
            &it);
      }
      plans.push_back(Plan(good).within(20s));
      done.push_back(it.others[i].completion());
    }
    RedisStore& store = *it.store;
    store.execute_batch(plans, done);
    CHECK(it.error == Errc::invalid_key);
    CHECK(it.ended == at);
    CHECK(it.others.wait());
    CHECK(it.others.count([](const Asked& c) {
      return c.error == Errc::shut_down || c.error == Errc::unknown;
    }) == it.others.size());
  }
}
