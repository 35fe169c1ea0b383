// The program sluice-sim. Threading: one thread.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command_line.hpp"
#include "sim/log/log_command.hpp"
#include "sim/tool/study_commands.hpp"

namespace {

using namespace sluice::tool;

void add_log(CLI::App& app, Command& chosen) {
  const auto log = std::make_shared<LogOptions>();
  CLI::App* command = app.add_subcommand("log", "Replay a web server's access log under quotas");
  command->footer(
      "The log is read in the Common or Combined Log Format. Each client is limited by itself, in\n"
      "virtual time, by the limiter that production code uses. The client is the first field, or "
      "the\n"
      "second behind a virtual host (vhost_combined), or the first address of X-Forwarded-For, in\n"
      "the place of the client or in quotes at the end. Lines that leave open who the client is "
      "are\n"
      "not counted; the first are shown with the reason. Stamps have whole seconds, so the "
      "requests\n"
      "of one second count as made at once. Exit codes: 0, or 2 if there was nothing to read or "
      "the\n"
      "options are wrong.\n\n"
      "  sluice-sim log access.log --quota 30/min --burst 10\n"
      "  sluice-sim log access.log --quota 30/min:10,60/min:20,1000/h");
  command->add_option("FILE", log->file, "The log; - is the standard input")->required();
  const CLI::Option* quota =
      command
          ->add_option("--quota", log->quotas,
                       "COUNT/PERIOD or COUNT/PERIOD:BURST, such as 30/min or 25/5s:10;\n"
                       "several, separated by commas or each with\n"
                       "its own --quota, are compared in a table")
          ->default_val(default_quotas())
          ->allow_extra_args(false);
  command
      ->add_option("--burst", log->burst,
                   "Burst of the quotas that name none (default: their COUNT);\n"
                   "without --quota, of each quota that is compared")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 52));
  command->add_option("--top", log->top, "How many clients to list")
      ->default_val(10)
      ->check(CLI::Range(0, 1000));
  command->callback([=, &chosen] {
    chosen = [=] {
      if (quota->count() == 0) log->quotas = default_quotas(log->burst == 0);
      run_log(*log);
      return held;
    };
  });
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Sluice's simulator: what will a rate limit do, and what would it have done?"};
  app.name("sluice-sim");
  app.require_subcommand(1);
  app.footer(
      "Exit codes of commands that run scenarios: 0; 1 if an expectation fails or a judge "
      "objects;\n"
      "2 for bad input, a full disk, no memory; 3 if a figure is not known well enough; 130 after "
      "Ctrl-C.");
  Command chosen;
  add_study_commands(app, chosen);
  add_log(app, chosen);
  return parse_and_run(app, argc, argv, [&] { return chosen(); });
} catch (...) {
  std::fputs("sluice-sim: no memory for the command line\n", stderr);
  return 2;
}
