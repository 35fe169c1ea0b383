// What the model of the pipeline does not draw: how pauses are distributed, and bounds.
// Threading: single-threaded.
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

TEST_CASE("wake-ups are bounded", "[pipeline][watch]") {
  Pipeline pipeline;
  const auto notify = [&](std::size_t times) {
    for (; times > 0; --times) pipeline.notify("x");
    std::string out;
    pipeline.flush(out, Time{});
    pipeline.took(out, out.size());
    std::size_t sent = 0;
    for (; take_command(out); ++sent) continue;
    return sent;
  };
  CHECK(notify(2 * Pipeline::max_notices) == Pipeline::max_notices);
  CHECK(notify(1) == 0);
  CHECK(pipeline.hear_integer() == Heard::ok);
  CHECK(notify(2) == 1);
}
