// What the model of the pipeline does not draw: how pauses are distributed, bounds, and completions
// that call back. Threading: single-threaded.
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("pauses are drawn from 5 ms to a bound that doubles up to 100 ms", "[pipeline]") {
  Random random("pauses are drawn from 5 ms to a bound that doubles up to 100 ms");
  CAPTURE(random.repeat());
  constexpr std::array<Span, 7> most{10ms, 20ms, 40ms, 80ms, 100ms, 100ms, 100ms};
  std::array<Span, most.size()> longest{}, shortest;
  shortest.fill(1h);
  for (int run = 0; run < 200; ++run) {
    Asked asked;
    Pipeline pipeline(RedisScripts::eval, random.below(1'000'000'000));
    pipeline.submit(make_call(asked, 1));
    Time now = to_time(1'000'000);
    for (std::size_t i = 0; i < most.size(); ++i) {
      std::string out;
      pipeline.flush(out, now);
      pipeline.took(out, out.size());
      pipeline.hear_error("LOADING", now);
      const Span pause = pipeline.next_resumption() - now;
      longest[i] = std::max(longest[i], pause);
      shortest[i] = std::min(shortest[i], pause);
      now += pause;
      pipeline.expire(now, Errc::timed_out);
    }
    pipeline.abandon(Errc::shut_down);
  }
  for (std::size_t i = 0; i < most.size(); ++i) {
    CAPTURE(i);
    CHECK(shortest[i] >= 5ms);
    CHECK(longest[i] <= most[i]);
    // 200 draws, of which none falls into the last or first sixth: less likely than 2^-50.
    CHECK(longest[i] > most[i] - (most[i] - 5ms) / 6);
    CHECK(shortest[i] < 5ms + (most[i] - 5ms) / 6);
  }
}

TEST_CASE("a completion that abandons everything finds every other call once", "[pipeline]") {
  World world;
  struct Destroyer {
    World* world;
    Crowd* others;
    unsigned answers;
    std::size_t ended_at_return;
  };
  for (const bool sent : {false, true}) {
    Crowd others(10);
    Destroyer destroyer{&world, &others, 0, 0};
    Asked unused;
    CallPtr first = make_call(unused, 99, world.now);
    first->done = Completion(
        [](void* self, const Outcome&) noexcept {
          auto& it = *static_cast<Destroyer*>(self);
          ++it.answers;
          it.world->pipeline.abandon(Errc::shut_down);
          it.ended_at_return = it.others->count([](const Asked& c) { return c.answers == 1; });
        },
        &destroyer);
    world.pipeline.submit(std::move(first));
    for (std::size_t i = 0; i < others.size(); ++i) {
      world.pipeline.submit(make_call(others[i], i, i < 5 ? world.now : Time::max()));
    }
    if (sent) world.flush();
    world.pipeline.expire(world.now, Errc::timed_out);
    CHECK(destroyer.answers == 1);
    CHECK(destroyer.ended_at_return == others.size());
    CHECK(others.wait());
    CHECK_FALSE(world.pipeline.has_sent());
    CHECK_FALSE(world.pipeline.has_unsent());
  }
}

TEST_CASE("wake-ups are bounded", "[pipeline][watch]") {
  World world;
  for (std::size_t i = 0; i < 2 * Pipeline::max_notices; ++i) world.pipeline.notify("x");
  CHECK(world.flush().size() == Pipeline::max_notices);
  world.pipeline.notify("x");
  CHECK(world.flush().empty());
  CHECK(world.pipeline.hear_integer() == Heard::ok);
  for (int i = 0; i < 2; ++i) world.pipeline.notify("x");
  CHECK(world.flush().size() == 1);
}
