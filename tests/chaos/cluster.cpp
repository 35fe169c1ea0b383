// Figure 4: a cluster whose slots move, whose replicas take over, and whose masters die.
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_cluster.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  int failovers = 20;
  int moves = 200;
  int kills = 3;
  double alive = 1;
  Load load{};
};

void use_cluster(Load& load, const test::RedisCluster& cluster) {
  load.keys = 32;
  for (const std::uint16_t port : cluster.ports()) {
    load.options.cluster.push_back({"127.0.0.1", port});
  }
}

std::vector<std::size_t> masters_of(const test::RedisCluster& cluster) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < test::RedisCluster::size; ++i) {
    if (cluster.is_master(i)) result.push_back(i);
  }
  return result;
}

/// Moves slots that hold keys, each to the next master.
void move_slots(test::RedisCluster& cluster, int count) {
  const std::vector<std::size_t> masters = masters_of(cluster);
  for (int i = 0; i < count; ++i) {
    const std::size_t from = masters[static_cast<std::size_t>(i) % masters.size()];
    const std::size_t to = masters[static_cast<std::size_t>(i + 1) % masters.size()];
    const std::string key = cluster.client(from)({"RANDOMKEY"}).text;
    cluster.move_slot(test::cluster_slot(key), from, to);
  }
}

void move_and_fail_over(const Options& options, test::RedisCluster& cluster, Fleet& fleet) {
  const int rounds = std::max(1, options.failovers);
  int moved = 0;
  for (int i = 0; i < rounds; ++i) {
    const int until = options.moves * (i + 1) / rounds;
    move_slots(cluster, until - moved);
    moved = until;
    cluster.await_ok();
    if (i < options.failovers) {
      const std::vector<std::size_t> masters = masters_of(cluster);
      const std::size_t master = masters[static_cast<std::size_t>(i) % masters.size()];
      fleet.upset([&] {
        cluster.failover(cluster.replicas_of(master).at(0));
        sleep_for(seconds(options.alive) / 2);
      });
    }
    cluster.await_ok();
  }
}

/// Planned changes: nothing fails at callers with patience.
void run_planned(const Options& options, Report& report) {
  test::RedisCluster cluster;
  Load load = options.load;
  use_cluster(load, cluster);
  load.deadline = 2s;
  Fleet fleet(load);
  fleet.start();
  move_and_fail_over(options, cluster, fleet);
  sleep_for(seconds(options.alive));
  fleet.stop();
  const std::string run = std::to_string(options.failovers) + " CLUSTER FAILOVER, " +
                          std::to_string(options.moves) + " slots moved";
  std::uint64_t failed = 0;
  for (const Tally& tally : fleet.board().tallies) failed += tally.failed[0];
  report.add({"4", run, "0 errors at callers with 2 s", std::to_string(failed), failed == 0});
  fleet.judge(report, "4", run);
}

/// Kills the master of some keys; when its replica was promoted.
std::int64_t kill_master(test::RedisCluster& cluster, Fleet& fleet, std::size_t victim,
                         const Options& options) {
  const std::size_t replica = cluster.replicas_of(victim).at(0);
  std::int64_t promoted = 0;
  fleet.upset([&] {
    cluster.kill(victim);
    test::await("the replica is promoted",
                [&] { return test::role_of(cluster.server(replica), "") == "master"; });
    promoted = now_us();
    sleep_for(seconds(options.alive));
  });
  return promoted;
}

void mark_slots(const test::RedisCluster& cluster, std::size_t victim, Board& board) {
  for (auto& group : board.group_of_slot) group = 0;
  for (const unsigned slot : cluster.slots_of(victim)) board.group_of_slot[slot] = 1;
}

void run_killed(const Options& options, bool fallback, Report& report) {
  test::RedisCluster::Options setup;
  setup.config = {"cluster-require-full-coverage no"};
  test::RedisCluster cluster(setup);
  Load load = options.load;
  use_cluster(load, cluster);
  load.fallback = fallback;
  load.deadline = fallback ? Span{100ms} : Span{2s};
  Fleet fleet(load);
  const std::size_t victim = cluster.master_of(test::cluster_slot("all"));
  mark_slots(cluster, victim, fleet.board());
  fleet.start();
  std::vector<std::int64_t> promotions;
  for (int i = 0; i < options.kills; ++i) {
    const std::size_t master = cluster.master_of(test::cluster_slot("all"));
    sleep_for(seconds(options.alive));
    promotions.push_back(kill_master(cluster, fleet, master, options));
    cluster.restart(master);
    cluster.await_ok();
  }
  fleet.stop();
  std::vector<double> waits;
  for (const std::int64_t at : promotions) {
    for (const double us : fleet.comebacks(at, 500ms, 1)) waits.push_back(us / 1e3);
  }
  const std::string run =
      std::to_string(options.kills) + " masters killed" + (fallback ? ", FallbackStore" : "");
  report.add({"4", run, "its keys back at most 500 ms after the promotion",
              text_of(quantile(waits, 1)) + " ms (median " + text_of(quantile(waits, 0.5)) + ")",
              quantile(waits, 1) <= 500});
  std::uint64_t other = 0;
  std::uint64_t own = 0;
  for (const Tally& tally : fleet.board().tallies) {
    other += tally.degraded[0] + tally.failed[0];
    own += tally.degraded[1] + tally.failed[1];
  }
  report.add({"4", run, "0 calls on other keys degraded or failed",
              std::to_string(other) + " (and " + std::to_string(own) + " on its keys)",
              other == 0});
  fleet.judge(report, "4", run);
}

}  // namespace

void add_cluster(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command =
      figures.add("cluster", "4: slots move, masters change and die", [options](Report& report) {
        run_planned(*options, report);
        run_killed(*options, false, report);
        run_killed(*options, true, report);
      });
  command.add("--failovers", options->failovers, "CLUSTER FAILOVER");
  command.add("--moves", options->moves, "Slots moved");
  command.add("--kills", options->kills, "Masters killed, in each of two runs");
  command.add("--alive", options->alive, "Seconds before and behind each");
  command.add(options->load);
}

}  // namespace sluice::chaos
