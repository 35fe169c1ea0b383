// The program sluice-demo. Threading: one thread, but for the parts that say otherwise.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command_line.hpp"
#include "sim/log/log_command.hpp"
#include "sim/tool/demo.hpp"

namespace {

using namespace sluice::tool;

int run(const DemoOptions& options, const std::string& file, bool redis) {
  if (redis) return run_processes();
  if (!file.empty()) {
    run_log({.file = file, .quotas = default_quotas()});
    return 0;
  }
  int code = run_fleets(options);
  if (code == 0) code = run_threads();
  if (code == 0) code = run_outage(options);
  return code;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{
      "What Sluice is for, shown: a simulated fleet against an API with a limit, then real "
      "threads\n"
      "on the memory store, then a rehearsed outage with its report. With --redis instead: real "
      "processes that share a redis-server. With "
      "a\n"
      "FILE instead: what rate limits would have done to that web access log."};
  app.name("sluice-demo");
  DemoOptions options;
  std::string file;
  bool redis = false;
  auto* seed = app.add_option("--seed", options.seed, "Seed of everything drawn in the simulation")
                   ->capture_default_str()
                   ->transform(whole_number());
  auto* minutes = app.add_option("--minutes", options.minutes, "Simulated time")
                      ->capture_default_str()
                      ->check(CLI::Range(1, 1440));
  auto* workers = app.add_option("--workers", options.workers, "Simulated worker processes")
                      ->capture_default_str()
                      ->check(CLI::Range(1, 2000));
  app.add_option("--report", options.report, "The folder for the report of the outage")
      ->capture_default_str();
  auto* with_redis = app.add_flag("--redis", redis,
                                  "Several processes share a redis-server that is started for it");
  auto* log = app.add_option("FILE", file,
                             "A web access log, as for sluice-sim log; - is the standard input");
  for (auto* simulated : {seed, minutes, workers}) {
    simulated->excludes(with_redis)->excludes(log);
  }
  log->excludes(with_redis);
  return parse_and_run(app, argc, argv, [&] { return run(options, file, redis); });
} catch (...) {
  std::fputs("sluice-demo: no memory for the command line\n", stderr);
  return 1;
}
