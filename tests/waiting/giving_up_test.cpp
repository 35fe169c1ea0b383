// Callers that give up: nothing of the limit is lost while others wait, whoever leaves, and how.
#include <cstdio>
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/crowd.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// How many units can be served by somebody who knows all callers, their units and when they leave:
/// a unit every 200 ms, to the caller who leaves first. A caller of several units may have part of
/// them, so that nobody can serve more.
double planned(const Crowded& run, const CrowdOptions& options) {
  using Left = std::pair<Time, Word>;  // when it leaves, its units
  std::multiset<Left> waiting;
  std::size_t next = 0;
  double served = 0;
  const Time start = run.callers.front().came;
  for (Time now = start; now <= start + options.length; now += 200ms) {
    for (; next < run.callers.size() && run.callers[next].came <= now; ++next) {
      const bool stays = options.leaving == Leaving::dropped;
      waiting.emplace(stays ? Time::max() : run.callers[next].leaves, run.callers[next].units);
    }
    while (!waiting.empty() && waiting.begin()->first < now) waiting.erase(waiting.begin());
    if (waiting.empty()) continue;
    ++served;
    const Left first = *waiting.begin();
    waiting.erase(waiting.begin());
    if (first.second > 1) waiting.emplace(first.first, first.second - 1);
  }
  return served;
}

/// Of what can be served, how much was. Windows do not grant a unit every 200 ms, and no order of
/// large and small requests fills them: they are compared to one process without a network that
/// knows the deadline of each caller.
double share_of(const CrowdedLimit& kind, const CrowdOptions& options, const Crowded& run) {
  const auto units = static_cast<double>(run.units);
  if (kind.is_even) return units / planned(run, options);
  CrowdOptions best = options;
  best.processes = 1;
  best.slowest = 0us;
  if (options.leaving == Leaving::cancels) best.leaving = Leaving::deadline;
  return units / static_cast<double>(kind.run(best).units);
}

const char* name_of(Leaving leaving) {
  constexpr std::array<const char*, 4> names{"never", "cancels", "deadline", "dropped"};
  return names.at(static_cast<std::size_t>(leaving));
}

template <class Visit>
void for_each_case(Span length, std::uint64_t seed, Visit visit) {
  for (const CrowdedLimit& kind : crowded_limits()) {
    for (const std::size_t processes : {1U, 4U, 20U}) {
      for (const double patience : {0.5, 2.0, 20.0}) {
        for (const Leaving leaving : {Leaving::cancels, Leaving::deadline, Leaving::dropped}) {
          for (const Word most : {Word{1}, Word{10}}) {
            if (most > 1 && !kind.has_costs) continue;
            // Twice what the limit grants, as long as a unit takes.
            visit(kind, CrowdOptions{.processes = processes,
                                     .arrivals = most == 1 ? 10.0 : 2.0,
                                     .length = length,
                                     .slowest = processes == 1 ? 0us : 500us,
                                     .leaving = leaving,
                                     .patience = most == 1 ? patience : 5 * patience,
                                     .most = most,
                                     .seed = seed});
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("callers that give up leave what they waited for to those behind them",
          "[waiting][giving_up]") {
  Random random("callers that give up leave what they waited for to those behind them");
  CAPTURE(random.repeat());
  for_each_case(5min, random.next(), [](const CrowdedLimit& kind, const CrowdOptions& options) {
    CAPTURE(kind.name, options.processes, options.patience, name_of(options.leaving), options.most);
    const Crowded run = kind.run(options);
    const double share = share_of(kind, options, run);
    CAPTURE(run.grants());
    // Where a large request must wait until a window has room, those behind it wait as well.
    const double held_up = kind.is_even || options.most == 1 ? 0 : 0.05;
    CHECK(share >= (options.processes == 1 ? 0.97 : 0.90) - held_up);
    CHECK(static_cast<double>(run.units) <= 5 * 300 + 21);
  });
}

TEST_CASE("the figures of docs/waiting.md", "[.figures]") {
  std::printf("%-20s %9s %8s %-9s %5s  %6s %10s %8s\n", "limiter", "processes", "patience",
              "leaving", "units", "share", "operations", "tickets");
  for_each_case(10min, 1, [](const CrowdedLimit& kind, const CrowdOptions& options) {
    const Crowded run = kind.run(options);
    const double grants = run.grants();
    std::printf("%-20s %9zu %7gs %-9s %5s  %6.3f %10.2f %8.2f\n", kind.name.c_str(),
                options.processes, options.patience, name_of(options.leaving),
                options.most == 1 ? "1" : "1-10", share_of(kind, options, run),
                static_cast<double>(run.operations - run.entries) / grants,
                static_cast<double>(run.entries) / grants);
  });
}

}  // namespace sluice::test
