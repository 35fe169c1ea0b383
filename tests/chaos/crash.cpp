// Figure 1: kill -9 in a rhythm.
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {
namespace {

struct Options {
  double duration = 60;
  double every = 2;
  Load load{};
};

void run_crash(const Options& options, bool aof, Report& report) {
  test::RedisServer server(aof ? std::vector<std::string>{"appendonly yes", "appendfsync always"}
                               : std::vector<std::string>{});
  Load load = options.load;
  load.options.port = server.port();
  load.deadline = std::chrono::milliseconds{100};
  Fleet fleet(load);
  fleet.start();
  std::uint64_t kills = 0;
  const std::int64_t end = now_us() + seconds(options.duration).count();
  while (now_us() < end) {
    sleep_for(seconds(options.every));
    fleet.upset([&] { server.restart(); });
    ++kills;
  }
  fleet.stop();
  const std::string run = std::to_string(kills) + " kills" + (aof ? ", AOF always" : "");
  const double bound =
      static_cast<double>(load.capacity) * (aof ? 1.0 : 1.0 + static_cast<double>(kills)) +
      static_cast<double>(load.rate) * fleet.seconds();
  report.at_most("1", run, aof ? "grants C + rT" : "grants C + rT + KC",
                 static_cast<double>(fleet.granted()), bound, "", true);
  fleet.judge(report, "1", run);
}

}  // namespace

void add_crash(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("crash", "1: kill -9 in a rhythm, with and without AOF",
                                [options](Report& report) {
                                  run_crash(*options, false, report);
                                  run_crash(*options, true, report);
                                });
  command.add("--seconds", options->duration, "How long");
  command.add("--every", options->every, "Seconds between kills");
  command.add(options->load);
}

}  // namespace sluice::chaos
