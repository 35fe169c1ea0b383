// How sliding windows follow their edges when several units leave at once, against lists of the
// admissions, on every store. Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;

TEST_CASE("however many units leave a window at once, exactly those that are left count",
          "[sliding_window]") {
  test::Random random(
      "however many units leave a window at once, exactly those that are left count");
  CAPTURE(random.repeat());
  test::for_each_store([&](Store& store, VirtualClock& clock) {
    const std::vector<std::vector<WindowLimit>> quotas{{{60, 600ms}}, {{40, 300ms}, {60, 600ms}}};
    for (const auto& windows : quotas) {
      const SlidingWindow limiter(store, "w" + std::to_string(windows.size()), windows);
      std::vector<Span> admitted;
      Span at{0};
      const auto remaining = [&](const WindowLimit& window) {
        const auto within = [&](Span time) { return time > at - window.span; };
        return window.limit - static_cast<Word>(std::ranges::count_if(admitted, within));
      };
      for (int i = 0; i < 600; ++i) {
        // Mostly at the pace of the units, and now and then up to fourteen of them later.
        const Span step{random.below(6) == 0 ? random.between(0, 140'000) : 10'000};
        clock.advance(step);
        at += step;
        const bool allowed = std::ranges::all_of(
            windows, [&](const WindowLimit& window) { return remaining(window) > 0; });
        if (allowed) admitted.push_back(at);
        REQUIRE(limiter.try_acquire("k").allowed == allowed);
        const std::vector<Word> left = limiter.remaining("k");
        for (std::size_t k = 0; k < windows.size(); ++k) {
          REQUIRE(left[k] == std::max(Word{0}, remaining(windows[k])));
        }
      }
    }
  });
}
