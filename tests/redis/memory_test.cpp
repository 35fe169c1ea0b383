// The store without memory: what cannot report a failure must not need any.
// Threading: the test's thread runs out of memory, or the store's.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/redis/fake/rig.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

thread_local bool out_of_memory = false;
thread_local std::size_t refused = 0;

/// Threads that are poor get no memory during a general drought.
thread_local bool is_poor = false;
std::atomic<bool> general_drought{false};
std::atomic<std::size_t> refused_to_poor{0};

/// While it lives, this thread gets no memory.
struct Drought {
  Drought() { out_of_memory = true; }
  ~Drought() { out_of_memory = false; }
};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (out_of_memory) {
    ++refused;
    throw std::bad_alloc();
  }
  if (is_poor && general_drought) {
    ++refused_to_poor;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a call without memory is refused, and the first one too", "[fake]") {
  const Rig rig([](Peer& peer, int) { serve_well(peer); });
  const Step step = (*rig.bucket).acquire_step("a");
  Asked asked;
  {
    const Drought drought;
    rig.store->execute(step, asked.completion());
  }
  CHECK(asked.answers == 1);
  CHECK(asked.error == Errc::queue_full);
  CHECK_FALSE(rig.error());
}

TEST_CASE("a stop request, a call in used memory and the end of the store need no memory",
          "[fake]") {
  Rig rig([](Peer& peer, int number) {
    serving(3)(peer, number);
    peer.wait_for_close();
  });
  // The memory of the first two is there to be used once the third is answered.
  Crowd used(2);
  rig.ask_all(used);
  REQUIRE(used.wait());
  REQUIRE_FALSE(rig.error());
  std::stop_source stop;
  const Step step = (*rig.bucket).acquire_step("a");
  const Plan plan = Plan(step).within(20s).cancelled_by(stop.get_token());
  Asked stopped, ended;
  refused = 0;
  {
    const Drought drought;
    rig.store->execute(plan, stopped.completion());
    stop.request_stop();
  }
  stopped.wait();
  CHECK((stopped.error == Errc::cancelled || stopped.error == Errc::unknown));
  rig.ask(ended);
  {
    const Drought drought;
    rig.store.reset();
  }
  CHECK(ended.answers == 1);
  CHECK((ended.error == Errc::shut_down || ended.error == Errc::unknown));
  CHECK(refused == 0);
}

TEST_CASE("a caller without memory leaves its write to the store's thread", "[fake]") {
  const Rig rig([](Peer& peer, int) { serve_well(peer); });
  Crowd used(2);  // as above
  rig.ask_all(used);
  REQUIRE(used.wait());
  REQUIRE_FALSE(rig.error(1h));
  const Step step = (*rig.bucket).acquire_step("a");
  const Plan plan = Plan(step).within(1h);
  refused = 0;
  const bool happened = eventually([&] {
    Asked asked;
    {
      const Drought drought;
      rig.store->execute(plan, asked.completion());
    }
    REQUIRE_FALSE(asked.wait().error);
    return refused > 0;
  });
  CHECK(happened);
}

TEST_CASE("a store whose thread ran out of memory serves again once there is some, and can end",
          "[fake]") {
  Rig rig(at_first([](Peer& peer) {
            const auto first = peer.read_call();
            if (!first || !peer.send(allowing(*first, 1))) return;
            eventually([] { return general_drought.load(); });
          }),
          [](RedisOptions& options) { options.reconnect_max = 10ms; });
  const Step step = (*rig.bucket).acquire_step("a");
  std::atomic<bool> over{false};
  rig.store->execute(Plan(step).within(20s), Completion(
                                                 [](void* self, const Outcome&) noexcept {
                                                   is_poor = true;
                                                   *static_cast<std::atomic<bool>*>(self) = true;
                                                 },
                                                 &over));
  REQUIRE(eventually([&] { return over.load(); }));
  const auto wait_for_refusals = [] {
    const std::size_t before = refused_to_poor;
    general_drought = true;
    return eventually([&] { return refused_to_poor >= before + 5; });
  };
  Crowd crowd(100);
  CHECK(wait_for_refusals());
  rig.ask_all(crowd, 60s);
  CHECK(wait_for_refusals());
  general_drought = false;
  CHECK(crowd.wait());
  CHECK(crowd.count([](const Asked& c) { return !c.error || c.error == Failure::unknown; }) ==
        crowd.size());
  CHECK(eventually([&] { return !rig.error(1s); }));
  Asked last;
  rig.ask(last, 20s);
  general_drought = true;
  rig.store.reset();
  general_drought = false;
  CHECK(last.answers == 1);
}
