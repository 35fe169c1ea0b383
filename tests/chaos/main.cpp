// The program sluice_chaos: bad days of a Redis server, and what the callers of the store see.
// Threading: one thread, which starts the servers; a figure has processes or threads of its own.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/chaos/figures.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {

void Command::add(const std::string& name, double& value, const std::string& text) {
  command_->add_option(name, value, text)->capture_default_str();
}
void Command::add(const std::string& name, bool& flag, const std::string& text) {
  command_->add_flag(name, flag, text);
}
void Command::add(const std::string& name, int& value, const std::string& text, int most) {
  CLI::Option* const option = command_->add_option(name, value, text)->capture_default_str();
  if (most > 0) option->check(CLI::Range(1, most));
}
void Command::add(const std::string& name, std::size_t& value, const std::string& text,
                  std::size_t most) {
  CLI::Option* const option = command_->add_option(name, value, text)->capture_default_str();
  if (most > 0) option->check(CLI::Range(std::size_t{1}, most));
}
void Command::add(Load& load) {
  add("--processes", load.processes, "Processes of callers", most_processes);
  command_->add_option("--threads", load.threads, "Callers in each process")
      ->check(CLI::Range(std::size_t{2}, most_threads))
      ->capture_default_str();
  add("--events", load.events, "Print the stores' events on standard error");
}

Command Figures::add(const std::string& name, const std::string& text,
                     std::function<void(Report&)> run) {
  figures_.push_back({app_.add_subcommand(name, text), std::move(run)});
  return Command(figures_.back().command);
}

void Figures::run(Report& report, bool all) const {
  for (const Figure& figure : figures_) {
    if (all || figure.command->parsed()) figure.run(report);
  }
}

namespace {

/// Files of the servers are in memory, if the system has a folder for that: Sentinels and AOF write
/// through to the disk, and a disk that other programs keep busy may stall for seconds.
void keep_files_in_memory() {
  constexpr const char* folder = "/dev/shm";
  if (::access(folder, W_OK | X_OK) == 0) ::setenv("TMPDIR", folder, 0);
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
  Figures figures(app);
  for (const auto add : {add_crash, add_outage, add_sentinel, add_cluster, add_cuts, add_flush,
                         add_look_up, add_crowd, add_cpu, add_clock, add_lone, add_hostile}) {
    add(figures);
  }
  const CLI::App* all = app.add_subcommand("all", "Every figure, by its defaults");
  try {
    app.parse(argc, argv);
    if (sluice::test::without_redis()) {
      std::puts("left out: it needs a redis-server, and SLUICE_NO_REDIS=1");
      return 77;
    }
    keep_files_in_memory();
    Report report;
    figures.run(report, all->parsed());
    report.print();
    return report.holds(strict) ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_chaos: %s\n", error.what());
    return 1;
  }
}
