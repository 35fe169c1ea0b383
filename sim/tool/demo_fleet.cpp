// The fleet three times under the same arrivals and latencies, and what came of it.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "sim/tool/demo.hpp"
#include "sim/tool/text.hpp"
#include "sluice/sim/fleet.hpp"

namespace sluice::tool {
namespace {

using sim::FleetOptions;
using sim::FleetResult;
using sim::Limiting;

constexpr Span slice = std::chrono::seconds{5};

struct Row {
  Limiting limiting;
  std::string name;
};

const std::array<Row, 3> rows{{{Limiting::none, "no limiter"},
                               {Limiting::per_process, "one limiter per process"},
                               {Limiting::shared, "one shared limiter"}}};

struct Run {
  std::string name;
  FleetResult result;
  Span elapsed{0};
};

std::uint64_t unsigned_of(Word word) { return static_cast<std::uint64_t>(word); }

std::string minutes(Span span) {
  return plural(static_cast<std::uint64_t>(span / std::chrono::minutes{1}), "minute");
}

std::string quota_text(const Quota& quota) {
  // The fraction is exact but unreadable; what it comes to in a minute is not.
  return fmt::format("{}.{:02} a minute, burst {}",
                     thousands(unsigned_of(quota.refill() * 60'000'000 / quota.period())),
                     quota.refill() * 6'000'000'000 / quota.period() % 100,
                     thousands(unsigned_of(quota.capacity())));
}

Run simulate(const Row& row, const FleetOptions& options, Span length) {
  Progress progress;
  sim::Fleet fleet(options);
  for (Span done{0}; done < length; done += slice) {
    fleet.run_for(std::min(slice, length - done));
    if (!progress.due()) continue;
    progress.show(fmt::format("{}: {} of {}, {}", row.name, duration(done + slice),
                              duration(length),
                              rate(fleet.events(), progress.elapsed()) + " events"));
  }
  return {row.name, fleet.result(), progress.elapsed()};
}

void print_introduction(const DemoOptions& options, const FleetOptions& fleet) {
  const sim::Fleet shared(fleet);
  FleetOptions each = fleet;
  each.limiting = Limiting::per_process;
  const sim::Fleet per_process(each);
  const std::string phase = minutes(fleet.demand.phase);
  fmt::print(
      "Simulated: {} of {} that call one API, which answers at most {} calls in\n"
      "any 60 s and the others with 429; jobs come at {} a minute for {}, then at {} for\n"
      "{}, and so on, to the busiest worker {} times as often as to the calmest.\n\n",
      minutes(std::chrono::minutes{options.minutes}), plural(options.workers, "worker"),
      thousands(unsigned_of(fleet.limit)), thousands(unsigned_of(fleet.demand.busy)), phase,
      thousands(unsigned_of(fleet.demand.calm)), phase, (options.workers + 9) / 10);
  fmt::print("  no limiter               calls at once; after a 429, random back-off up to {}\n",
             duration(fleet.backoff.cap));
  fmt::print("  one limiter per process  each an equal share: {}\n",
             quota_text(per_process.quota()));
  fmt::print("  one shared limiter       {}, over a network\n\n", quota_text(shared.quota()));
}

void print_results(const std::vector<Run>& runs) {
  Table table({"", "calls", "429s", "successes", "of ideal", "p50 wait", "p99 wait", "ops/call"});
  for (const Run& run : runs) {
    const FleetResult& r = run.result;
    table.add({run.name, thousands(r.calls), thousands(r.rejected), thousands(r.successes),
               percent(r.successes, r.ideal_successes, 2), duration(r.wait.quantile(50, 100)),
               duration(r.wait.quantile(99, 100)), ratio(r.store_operations, r.calls)});
  }
  const FleetResult& any = runs.front().result;
  table.add({"ideal, to compare with", thousands(any.ideal_successes), "0",
             thousands(any.ideal_successes), "", duration(any.ideal_wait.quantile(50, 100)),
             duration(any.ideal_wait.quantile(99, 100)), ""});
  fmt::print("{}\n", table.text());
}

void print_machinery(const std::vector<Run>& runs, std::uint64_t seed) {
  Table table({"", "calls in busiest 60 s", "events", "real time", "events/s", "trace hash"});
  for (const Run& run : runs) {
    const FleetResult& r = run.result;
    table.add({run.name, thousands(r.busiest_window), thousands(r.events), duration(run.elapsed),
               rate(r.events, run.elapsed), fmt::format("{:016x}", r.trace)});
  }
  fmt::print("{}\n", table.text());
  fmt::print("seed {}; the same seed gives the same trace hash on every machine and compiler\n\n",
             seed);
}

void print_legend() {
  fmt::print(
      "wait      from when a job wants to call until the call that succeeds; jobs still waiting "
      "at\n"
      "          the end count with their wait so far\n"
      "of ideal  successes against a planner that knows every job at once, needs no network and\n"
      "          serves first come, first served, so that its jobs share the wait alike\n"
      "ops/call  questions to the limiter's store for each call to the API\n");
}

}  // namespace

int run_fleets(const DemoOptions& options) {
  FleetOptions fleet;
  fleet.seed = options.seed;
  fleet.workers = options.workers;
  print_introduction(options, fleet);
  std::fflush(stdout);
  std::vector<Run> runs;
  for (const Row& row : rows) {
    fleet.limiting = row.limiting;
    runs.push_back(simulate(row, fleet, std::chrono::minutes{options.minutes}));
  }
  print_results(runs);
  print_machinery(runs, options.seed);
  print_legend();
  for (const Run& run : runs) {
    const FleetResult& r = run.result;
    if (r.errors == 0) continue;
    fmt::print(stderr, "{}: {} failed\n", run.name, plural(r.errors, "store operation"));
    return 1;
  }
  return 0;
}

}  // namespace sluice::tool
