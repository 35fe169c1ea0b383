// Figure 2: a server that is dead for a while, or stopped, and how soon it decides again.
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {
namespace {

struct Options {
  int times = 30;
  int stops = 6;
  double dead = 5;
  double alive = 1.5;
  Load load{};
};

struct Case {
  bool stopped;
  bool fallback;
  double most_ms;
};

void run_outage(const Options& options, const Case& each, Report& report) {
  test::RedisServer server;
  Load load = options.load;
  load.options.port = server.port();
  load.fallback = each.fallback;
  if (load.fallback) load.deadline = std::chrono::milliseconds{100};
  Fleet fleet(load);
  fleet.start();
  const int times = each.stopped ? options.stops : options.times;
  std::vector<std::int64_t> pongs;
  for (int i = 0; i < times; ++i) {
    sleep_for(seconds(options.alive));
    if (each.stopped) {
      server.suspend();
      sleep_for(seconds(options.dead));
      server.resume();
      pongs.push_back(now_us());
    } else {
      fleet.upset([&] {
        server.kill();
        sleep_for(seconds(options.dead));
        server.start();  // returns at its first PONG
        pongs.push_back(now_us());
      });
    }
  }
  sleep_for(seconds(options.alive));
  fleet.stop();
  std::vector<double> waits;
  for (const std::int64_t pong : pongs) {
    for (const double us : fleet.comebacks(pong)) waits.push_back(us / 1e3);
  }
  const std::string run = std::to_string(times) + " x " + text_of(options.dead) + " s " +
                          (each.stopped ? "stopped" : "dead") +
                          (each.fallback ? ", FallbackStore" : "");
  report.add({"2", run, "decided again at most " + text_of(each.most_ms) + " ms later",
              text_of(quantile(waits, 1)) + " ms (median " + text_of(quantile(waits, 0.5)) + ")",
              quantile(waits, 1) <= each.most_ms});
  fleet.judge(report, "2", run);
}

}  // namespace

void add_outage(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command =
      figures.add("outage", "2: a server that is dead, or stopped", [options](Report& report) {
        run_outage(*options, {false, false, 500}, report);
        run_outage(*options, {false, true, 600}, report);
        run_outage(*options, {true, false, 50}, report);
      });
  command.add("--times", options->times, "Outages");
  command.add("--stops", options->stops, "SIGSTOPs");
  command.add("--dead", options->dead, "Seconds of each");
  command.add("--alive", options->alive, "Seconds between them");
  command.add(options->load);
}

}  // namespace sluice::chaos
