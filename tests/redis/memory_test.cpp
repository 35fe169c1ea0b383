// The store without memory: what cannot report a failure must not need any.
// Threading: the test's thread runs out of memory, the others do not.
#include <cstdlib>
#include <new>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake_server.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

thread_local bool out_of_memory = false;
thread_local std::size_t refused = 0;

/// While it lives, this thread gets no memory.
struct Drought {
  Drought() { out_of_memory = true; }
  ~Drought() { out_of_memory = false; }
};

const Quota quota = Quota::per_second(10);

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (out_of_memory) {
    ++refused;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a call without memory is refused, and the first one too", "[fake]") {
  FakeServer server([](Peer& peer, int) { serve_well(peer); });
  RedisOptions options;
  options.port = server.port();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const Key key = "a";
  const Step step = (*bucket).take(key);
  Asked asked;
  {
    const Drought drought;
    store->execute(step, asked.completion());
  }
  CHECK(asked.answers == 1);
  CHECK(asked.error == Errc::queue_full);
  CHECK_FALSE(bucket.error(key));
}

TEST_CASE("a stop request, a call in used memory and the end of the store need no memory",
          "[fake]") {
  FakeServer server([](Peer& peer, int) {
    for (Word at = 1; at <= 3; ++at) {
      const auto call = peer.read_call();
      if (!call || !peer.send(allowing(*call, at))) return;
    }
    peer.wait_for_close();
  });
  RedisOptions options;
  options.port = server.port();
  auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const Key key = "a";
  // The memory of the first two is there to be used once the third is answered.
  Crowd used(2);
  for (std::size_t i = 0; i < used.size(); ++i) bucket.ask(used[i], key, 20s);
  REQUIRE(used.wait());
  REQUIRE_FALSE(bucket.error(key));
  std::stop_source stop;
  const Plan plan = Plan((*bucket).take(key)).within(20s).cancelled_by(stop.get_token());
  Asked stopped, ended;
  refused = 0;
  {
    const Drought drought;
    store->execute(plan, stopped.completion());
    stop.request_stop();
  }
  stopped.wait();
  CHECK((stopped.error == Errc::cancelled || stopped.error == Errc::unknown));
  bucket.ask(ended, key, 20s);
  {
    const Drought drought;
    store.reset();
  }
  CHECK(ended.answers == 1);
  CHECK((ended.error == Errc::shut_down || ended.error == Errc::unknown));
  CHECK(refused == 0);
}
