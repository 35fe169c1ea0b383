#include <sluice/limiters/fixed_window.hpp>
#include <sluice/timezone/time_zone.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

int main() {
  VirtualClock clock;  // begins on 2000-01-01 at midnight UTC: 19:00 in New York, in December
  const auto store = make_virtual_store(clock);  // in production make_redis_store()
  const TimeZone zone = load_time_zone("America/New_York");
  const FixedWindow daily(*store, "daily", 100, Calendar::daily(zone));
  const FixedWindow monthly(*store, "monthly", 150, Calendar::monthly(zone));

  // One plan: a report is counted in both, or in neither. The decision names who refuses.
  const auto report = [&](int rows) {
    const Decision decision =
        decide(*store, {daily.acquire_step("acme", rows), monthly.acquire_step("acme", rows)});
    std::cout << rows << " rows: ";
    if (decision) std::cout << "made, " << decision.remaining << " left\n";
    if (!decision) {
      std::cout << "the quota of the " << (decision.step == 0 ? "day" : "month") << " begins in "
                << decision.retry_after / 1h << " h\n";
    }
  };
  report(80);
  report(40);
  clock.advance(5h);  // midnight in New York, of a day and of a month
  report(90);
  clock.advance(24h);
  report(70);
  report(60);

  // A job whose size shows at the end: it is charged an estimate, and then what it was.
  clock.advance(24h * 40);
  Reservation job = daily.reserve("globex", 50);
  daily.settle("globex", job, 20);
  std::cout << "globex: " << daily.peek("globex").remaining << " left\n";
}
