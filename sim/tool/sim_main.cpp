// The program sluice-sim. Threading: one thread.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "sim/tool/command_line.hpp"
#include "sim/tool/log_command.hpp"

int main(int argc, char** argv) try {
  using namespace sluice::tool;
  CLI::App app{"Sluice's simulator: what would a rate limit have done?"};
  app.name("sluice-sim");
  app.require_subcommand(1);

  LogOptions log;
  CLI::App* command = app.add_subcommand("log", "Replay a web server's access log under quotas");
  command->footer(
      "The log is read in the Common or Combined Log Format. Each client (first field) is limited\n"
      "by itself, in virtual time, by the limiter that production code uses. Stamps have whole\n"
      "seconds, so the requests of one second count as made at once. Exit codes: 0, 1 if there "
      "was\n"
      "nothing to read, 2 for wrong options.\n\n"
      "  sluice-sim log access.log --quota 30/min --burst 10\n"
      "  sluice-sim log access.log --quota 30/min:10,60/min:20,1000/h");
  command->add_option("FILE", log.file, "The log; - is the standard input")->required();
  const CLI::Option* quota =
      command
          ->add_option("--quota", log.quotas,
                       "COUNT/PERIOD or COUNT/PERIOD:BURST, such as 30/min or 25/5s:10;\n"
                       "several, separated by commas or each with\n"
                       "its own --quota, are compared in a table")
          ->default_val(default_quotas())
          ->allow_extra_args(false);
  command
      ->add_option("--burst", log.burst,
                   "Burst of the quotas that name none (default: their COUNT);\n"
                   "without --quota, of each quota that is compared")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 52));
  command->add_option("--top", log.top, "How many clients to list")
      ->default_val(10)
      ->check(CLI::Range(0, 1000));

  return parse_and_run(app, argc, argv, [&] {
    if (quota->count() == 0) log.quotas = default_quotas(log.burst == 0);
    return run_log(log);
  });
} catch (...) {
  std::fputs("sluice-sim: no memory for the command line\n", stderr);
  return 1;
}
