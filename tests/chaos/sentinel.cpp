// Figure 3: Sentinels replace the master, because they are told to, or because it dies.
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_sentinels.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  int failovers = 20;
  int kills = 5;
  double alive = 1;
  Load load{};
};

/// When a new master took writes, and when a Sentinel named it.
struct Switch {
  std::int64_t promoted;
  std::int64_t named;
};

Switch replace_master(test::RedisSentinels& group, bool kills, Span alive) {
  const std::size_t old = group.master();
  if (kills) {
    group.kill_master();
    static_cast<void>(group.await_promotion(old));
  } else {
    static_cast<void>(group.force_failover());
  }
  Switch seen{now_us(), 0};
  static_cast<void>(group.await_new_master(old));
  seen.named = now_us();
  sleep_for(alive);
  if (kills) group.restart(old);  // it is a master again, until the Sentinels change that
  return seen;
}

std::vector<Switch> disturb(const Options& options, test::RedisSentinels& group, Fleet& fleet) {
  std::vector<Switch> switches;
  for (int i = 0; i < options.failovers + options.kills; ++i) {
    sleep_for(seconds(options.alive));
    // What callers charge at the old master is lost, until every one of them has left it.
    fleet.upset([&] {
      const bool kills = i >= options.failovers;
      switches.push_back(replace_master(group, kills, seconds(options.alive)));
      group.await_ok();
    });
  }
  return switches;
}

/// How long behind the switches each process decided again, in milliseconds.
std::vector<double> waits(const Fleet& fleet, const std::vector<Switch>& switches,
                          std::int64_t Switch::*since) {
  std::vector<double> result;
  for (const Switch& each : switches) {
    for (const double us : fleet.comebacks(each.*since, 500ms)) result.push_back(us / 1e3);
  }
  return result;
}

void run_sentinel(const Options& options, Report& report) {
  test::RedisSentinels::Options setup;
  setup.down_after_ms = 1'500;
  test::RedisSentinels group(setup);
  Load load = options.load;
  load.options.sentinel.emplace();
  load.options.sentinel->master = test::RedisSentinels::group;
  for (const std::uint16_t port : group.ports()) {
    load.options.sentinel->sentinels.push_back({"127.0.0.1", port});
  }
  Fleet fleet(load);
  fleet.start();
  const std::vector<Switch> switches = disturb(options, group, fleet);
  sleep_for(seconds(options.alive));
  fleet.stop();
  const std::string run =
      std::to_string(options.failovers) + " failovers, " + std::to_string(options.kills) + " kills";
  const auto judge = [&](const std::string& what, std::int64_t Switch::*since) {
    const std::vector<double> all = waits(fleet, switches, since);
    report.add({"3", run, "decided again at most 500 ms after " + what,
                text_of(quantile(all, 1)) + " ms (p90 " + text_of(quantile(all, 0.9)) + ")",
                quantile(all, 1) <= 500});
  };
  judge("the new master took writes", &Switch::promoted);
  judge("a Sentinel named it", &Switch::named);
  // Sentinels may replace a master more often than they were made to.
  auto replaced = static_cast<std::uint64_t>(options.failovers + options.kills);
  for (const Tally& tally : fleet.board().tallies) {
    replaced = std::max(replaced, tally.switches.load());
  }
  const double bound = static_cast<double>(load.capacity) * static_cast<double>(1 + replaced) +
                       static_cast<double>(load.rate) * fleet.seconds();
  report.at_most("3", run, "grants C + rT + FC, F = " + std::to_string(replaced),
                 static_cast<double>(fleet.granted()), bound, "", true);
  fleet.judge(report, "3", run);
}

}  // namespace

void add_sentinel(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("sentinel", "3: Sentinels replace the master",
                                [options](Report& report) { run_sentinel(*options, report); });
  command.add("--failovers", options->failovers, "Forced failovers");
  command.add("--kills", options->kills, "Masters killed");
  command.add("--alive", options->alive, "Seconds before and behind each");
  command.add(options->load);
}

}  // namespace sluice::chaos
