// The program sluice_chaos: bad days of a Redis server, and what the callers of the store see.
// Threading: one thread, which starts the servers; a figure has processes or threads of its own.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/chaos/figures.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {

void add_load(CLI::App& command, Load& load) {
  command.add_option("--processes", load.processes, "Processes of callers")
      ->check(CLI::Range(1, static_cast<int>(most_processes)))
      ->capture_default_str();
  command.add_option("--threads", load.threads, "Callers in each process")
      ->check(CLI::Range(2, static_cast<int>(most_threads)))
      ->capture_default_str();
  command.add_flag("--events", load.events, "Print the stores' events on standard error");
}

namespace {

/// Files of the servers are in memory, if the system has a folder for that: Sentinels and AOF write
/// through to the disk, and a disk that other programs keep busy may stall for seconds.
void keep_files_in_memory() {
  constexpr const char* folder = "/dev/shm";
  if (::access(folder, W_OK | X_OK) == 0) ::setenv("TMPDIR", folder, 0);
}

int run(const Figures& figures, bool all, bool strict) {
  Report report;
  for (const Figure& figure : figures) {
    if (all || figure.command->parsed()) figure.run(report);
  }
  report.print();
  return report.holds(strict) ? 0 : 1;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  using namespace sluice::chaos;
  CLI::App app{
      "Kills, cuts, hangs and moves Redis servers under load, and judges what callers see."};
  app.name("sluice_chaos");
  app.require_subcommand(1);
  app.footer(
      "Each command has the options of its figure; its defaults are the long run. Exit codes: 0;\n"
      "1 if a bound on grants is broken, a call hangs or a reply is mis-paired, or with --strict "
      "if\n"
      "any figure is missed; 2 for wrong options.");
  bool strict = false;
  app.add_flag("--strict", strict, "Figures that depend on the machine's speed must hold as well");
  Figures figures;
  for (const auto add : {add_crash, add_outage, add_sentinel, add_cluster, add_cuts, add_flush,
                         add_look_up, add_crowd, add_cpu, add_clock, add_lone, add_hostile}) {
    add(app, figures);
  }
  const CLI::App* all = app.add_subcommand("all", "Every figure, by its defaults");
  try {
    app.parse(argc, argv);
    if (sluice::test::without_redis()) {
      std::puts("left out: it needs a redis-server, and SLUICE_NO_REDIS=1");
      return 77;
    }
    keep_files_in_memory();
    return run(figures, all->parsed(), strict);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_chaos: %s\n", error.what());
    return 1;
  }
}
