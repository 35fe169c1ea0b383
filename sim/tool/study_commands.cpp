#include "sim/tool/study_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/text.hpp"
#include "sim/judges/judges.hpp"
#include "sim/scenario/text.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/figures_file.hpp"
#include "sim/study/random_study.hpp"
#include "sim/study/reference.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/trace_output.hpp"
#include "sim/study/twice.hpp"
#include "sim/tool/study_session.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::tool {
namespace {

using namespace sim::scenario;
namespace fs = std::filesystem;

using Shared = std::shared_ptr<SessionOptions>;

/// Which run it is.
Shared add_options(CLI::App& command) {
  auto options = std::make_shared<SessionOptions>();
  command.add_option("--set", options->sets, "PATH=VALUE: another value of a parameter")
      ->allow_extra_args(false);
  command.add_option("--seed", options->seed, "Another seed")->transform(whole_number());
  return options;
}

void add_jobs(CLI::App& command, const Shared& options) {
  command.add_option("--jobs", options->jobs, "Threads (default: one for each processor)")
      ->check(CLI::Range(1, 1024));
}

void add_replications(CLI::App& command, const Shared& options) {
  command.add_option("--replications", options->replications, "Runs of each row")
      ->check(CLI::Range(1, 100'000));
  // CLI::Range lets nan pass.
  const auto share = [](const std::string& text) {
    const double value = std::strtod(text.c_str(), nullptr);
    return value >= 0.0001 && value <= 1 ? std::string() : "must be 0.0001 to 1, got " + text;
  };
  command
      .add_option("--precision", options->precision,
                  "Doubles the replications until the interval of the first headline figure is\n"
                  "within this share of it, such as 0.02")
      ->check(CLI::Validator(share, "0.0001 to 1"));
}

void add_output(CLI::App& command, const Shared& options) {
  command.add_option("--out", options->output, "A folder for report.html, result.json and CSV");
}
void add_json(CLI::App& command, const Shared& options) {
  command.add_flag("--json", options->json, "Print the result as JSON");
}

Shared add_all_options(CLI::App& command) {
  const Shared options = add_options(command);
  add_replications(command, options);
  add_jobs(command, options);
  add_output(command, options);
  add_json(command, options);
  return options;
}

/// What a command does once it is parsed.
void on_command(CLI::App& command, Command& chosen, const Command& act) {
  command.callback([act, &chosen] { chosen = act; });
}

/// Runs and reports a study; prints how to repeat what a judge objects to.
int run_and_report(const Study& study, const SessionOptions& options, const std::string& command) {
  if (study.sweeps.size() > 1) {
    fmt::print(stderr, "{}: a grid of {}, {}, {} of each\n", study.name,
               plural(study.points(), "point"), plural(study.variants.size(), "variant"),
               plural(study.replications, "replication"));
  }
  const StudyResult result = run_with_progress(study, options);
  report(result, options, command);
  for (const Judgement& judgement : result.judgements) {
    if (!judgement.objects || !judgement.replication) continue;
    const Study single =
        single_run(study, judgement.variant, judgement.point, *judgement.replication,
                   result.row(judgement.variant, judgement.point).warm_up);
    fmt::print(stderr, "\nThis repeats the run that \"{}\" objects to:\n\n{}", judgement.judge,
               to_toml(single, revision()));
    break;
  }
  return exit_code(result);
}

void add_reference(CLI::App& app, Command& chosen) {
  const auto add = [&](const char* name, const char* what, std::string (*text)()) {
    on_command(*app.add_subcommand(name, what), chosen, [text] {
      fmt::print("{}", text());
      return held;
    });
  };
  add("parameters", "What a scenario can set, and the faults that it can have", &parameters_text);
  add("metrics", "The figures that expectations, headlines and judges name", &metrics_text);
}

void add_list(CLI::App& app, Command& chosen) {
  on_command(*app.add_subcommand("list", "The scenarios and their questions"), chosen, [] {
    std::string text;
    for (const std::string& name : scenario_names()) {
      SessionOptions options;
      options.scenario = name;
      text += fmt::format("  {:<18}{}\n", name, load(options).question);
    }
    fmt::print("{}\nsluice-sim run NAME runs one; {} has their files.\n", text,
               scenario_folder().string());
    return held;
  });
}

void add_run(CLI::App& app, Command& chosen) {
  CLI::App* const command = app.add_subcommand("run", "Run a scenario, and judge it");
  const Shared options = add_all_options(*command);
  command->add_option("SCENARIO", options->scenario, "A name, or a file")->required();
  const auto twice = std::make_shared<bool>(false);
  CLI::Option* const runs_twice = command->add_flag(
      "--twice", *twice, "Run one replication twice, and name the first event that differs");
  const auto trace = std::make_shared<std::string>();
  command
      ->add_option("--trace", *trace,
                   "Run one replication, and write its events: as lines of JSON to a file\n"
                   "*.jsonl, else for https://ui.perfetto.dev")
      ->excludes(runs_twice);
  on_command(*command, chosen, [=] {
    const Study study = load(*options);
    if (!trace->empty()) {
      const Interruption interruption;
      try {
        const std::string endless = write_trace(study, *trace, interruption.stop());
        if (!endless.empty()) fmt::print(stderr, "{}\n", endless);
        return endless.empty() ? held : objected;
      } catch (const sim::Stopped&) {
        fmt::print(stderr, "stopped: {} was not written\n", *trace);
        return interrupted;
      }
    }
    if (!*twice) return run_and_report(study, *options, "sluice-sim run " + options->scenario);
    const std::string difference = run_both(study.scenario(0, 0), study.scenario(0, 0));
    fmt::print("{}\n", difference.empty() ? "both runs are the same" : difference);
    return difference.empty() ? held : objected;
  });
}

void add_sweep(CLI::App& app, Command& chosen) {
  CLI::App* const command =
      app.add_subcommand("sweep", "Run a scenario with several values of a parameter, or its own");
  const Shared options = add_all_options(*command);
  const auto path = std::make_shared<std::string>();
  const auto values = std::make_shared<std::vector<std::string>>();
  command->add_option("SCENARIO", options->scenario, "A name, or a file")->required();
  CLI::Option* const parameter =
      command->add_option("PARAMETER", *path, "Such as arrivals.load; none: what the file sweeps");
  command->add_option("VALUES", *values, "Two or more")->needs(parameter);
  on_command(*command, chosen, [=] {
    Study study = load(*options);
    if (path->empty()) {
      if (study.sweeps.empty()) {
        throw std::invalid_argument(options->scenario +
                                    " has no [[sweep]]: name a PARAMETER and its VALUES");
      }
      return run_and_report(study, *options, "sluice-sim sweep " + options->scenario);
    }
    if (values->empty()) throw std::invalid_argument(*path + ": name its VALUES, as 0.5 1 2");
    std::vector<Texts> texts;
    for (const std::string& value : *values) texts.push_back({value});
    sweep(study, *path, texts);
    return run_and_report(study, *options,
                          fmt::format("sluice-sim sweep {} {} {}", options->scenario, *path,
                                      fmt::join(*values, " ")));
  });
}

/// The number of a comparison's judges that object; they are named.
int print_objections(const StudyResult& result) {
  int objections = 0;
  for (const Judgement& judgement : result.judgements) {
    if (!judgement.objects || result.partial) continue;
    fmt::print("OBJECTS   {} of {}: {}\n", judgement.judge, result.study->name, judgement.text);
    ++objections;
  }
  return objections;
}

void add_compare(CLI::App& app, Command& chosen) {
  CLI::App* const command = app.add_subcommand(
      "compare", "The differences of two scenarios, or variants, under the same arrivals");
  const Shared options = add_options(*command);
  add_replications(*command, options);
  add_jobs(*command, options);
  const auto other = std::make_shared<std::string>();
  command->add_option("A", options->scenario, "SCENARIO or SCENARIO:VARIANT")->required();
  command->add_option("B", *other, "The same")->required();
  on_command(*command, chosen, [=] {
    const auto run_side = [&](const std::string& name) {
      SessionOptions side = *options;
      const auto colon = name.rfind(':');
      side.scenario = name.substr(0, colon);
      Study study = load(side);
      if (colon != std::string::npos) keep_variant(study, name.substr(colon + 1));
      return study;
    };
    Study a = run_side(options->scenario);
    Study b = run_side(*other);
    check_pair(a, b);
    const std::optional<Span> warm_up = share_warm_up(a, b);
    const StudyResult result_a = run_with_progress(a, *options);
    const StudyResult result_b = run_with_progress(b, *options);
    fmt::print("{}", compare(result_a, result_b, options->scenario, *other));
    if (warm_up) fmt::print("both with a warm-up of {}, by MSER-5\n", duration(*warm_up));
    const bool objects = print_objections(result_a) + print_objections(result_b) != 0;
    if (was_interrupted()) return interrupted;
    return objects ? objected : held;
  });
}

void add_check(CLI::App& app, Command& chosen) {
  CLI::App* const command = app.add_subcommand(
      "check", "Run all scenarios, and compare their figures with the files beside them");
  const Shared options = add_options(*command);
  add_replications(*command, options);
  add_jobs(*command, options);
  add_output(*command, options);
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto update = std::make_shared<bool>(false);
  const auto traces = std::make_shared<bool>(false);
  command->add_option("SCENARIO", *names, "Only these");
  CLI::Option* const updates = command->add_flag("--update", *update, "Write the figures instead");
  command
      ->add_flag("--traces", *traces,
                 "Run each row once, and compare its trace alone: ten times as quick")
      ->excludes(updates)
      ->excludes("--replications")
      ->excludes("--precision");
  on_command(*command, chosen, [=] {
    int code = held;
    for (const std::string& name : names->empty() ? scenario_names() : *names) {
      SessionOptions each = *options;
      each.scenario = name;
      Study study = load(each);
      if (*traces) {
        study.replications = 1;
        study.expectations.clear();  // they need the intervals of many
      }
      const StudyResult result = run_with_progress(study, each);
      if (was_interrupted()) return interrupted;
      if (!options->output.empty()) {
        each.output = (fs::path(options->output) / name).string();
        report(result, each, "sluice-sim run " + name);
      }
      const fs::path file = scenario_folder() / (name + ".figures");
      if (*update) write_figures(result, file);
      const std::string changes = changed(result, file, *traces ? Compared::traces : Compared::all);
      const bool ok = exit_code(result) == held && changes.empty();
      fmt::print("{:<18} {}\n", name, ok ? "holds" : "does NOT hold");
      if (!ok) fmt::print("{}{}", to_text(result), changes);
      std::fflush(stdout);
      // What fails counts more than what is not known.
      const bool is_open = exit_code(result) == undecided && changes.empty();
      if (!ok && code != objected) code = is_open ? undecided : objected;
    }
    return code;
  });
}

void add_replay(CLI::App& app, Command& chosen) {
  CLI::App* const command =
      app.add_subcommand("replay", "Repeat one run of a file that a failure printed");
  const Shared options = add_options(*command);
  add_jobs(*command, options);
  add_output(*command, options);
  add_json(*command, options);
  command->add_option("FILE", options->scenario, "The file")->required();
  on_command(*command, chosen, [=] {
    Study study = load(*options);
    study.replications = 1;
    return run_and_report(study, *options, "sluice-sim replay " + options->scenario);
  });
}

std::shared_ptr<std::string> add_judge(CLI::App& command) {
  auto judge = std::make_shared<std::string>();
  command.add_option("--judge", *judge, "Only what this judge objects to");
  return judge;
}

/// Empty, or what is wrong with the name of a judge of every run.
std::string check_judge(const std::string& name) {
  if (std::ranges::find(judge_names, name) != judge_names.end()) return {};
  const std::string near = did_you_mean(name, judge_names, "\"");
  return fmt::format(
      "there is no judge \"{}\"{}", name,
      near.empty() ? fmt::format("; there are: {}", fmt::join(judge_names, "; ")) : near);
}

/// The judge in question among those that object: the first, or the one that was asked for. Empty:
/// none.
std::string objector(const std::vector<std::string>& judges, const std::string& asked) {
  if (asked.empty()) return judges.empty() ? std::string() : judges.front();
  return std::ranges::find(judges, asked) != judges.end() ? asked : std::string();
}

void add_shrink(CLI::App& app, Command& chosen) {
  CLI::App* const command =
      app.add_subcommand("shrink", "Find a smaller run to which the same judge objects");
  const Shared options = add_options(*command);
  command->add_option("FILE", options->scenario, "A file that a failure printed")->required();
  const auto asked = add_judge(*command);
  on_command(*command, chosen, [=] {
    const Study study = single_run(load(*options), 0, 0, 0);
    const Interruption interruption;
    std::vector<std::string> judges;
    try {
      judges = objectors(study, interruption.stop());
    } catch (const sim::Stopped&) {
      fmt::print(stderr, "stopped in the first run: there is nothing to show\n");
      return interrupted;
    }
    const std::string judge = objector(judges, *asked);
    if (judge.empty()) {
      fmt::print(stderr, "{} to this run: there is nothing to shrink\n",
                 asked->empty() ? "no judge objects" : '"' + *asked + "\" does not object");
      return undecided;
    }
    Progress progress;
    const auto show = [&](const Shrunk& now) {
      if (progress.due()) {
        progress.show(
            fmt::format("{} runs, {} left", now.runs, plural(now.study.faults.size(), "fault")));
      }
    };
    const Shrunk shrunk = shrink(study, judge, show, interruption.stop());
    fmt::print("# \"{}\" objects to it; found in {} runs{}.\n{}", judge, shrunk.runs,
               shrunk.partial ? "; PARTIAL: it was stopped" : "",
               to_toml(shrunk.study, revision()));
    if (shrunk.partial) return interrupted;
    return objected;
  });
}

void add_fuzz(CLI::App& app, Command& chosen) {
  CLI::App* const command =
      app.add_subcommand("fuzz", "Run random worlds until a judge objects to one");
  const auto first = std::make_shared<std::uint64_t>(1);
  const auto count = std::make_shared<std::uint64_t>(1000);
  command->add_option("--first", *first, "The first seed")
      ->capture_default_str()
      ->transform(whole_number());
  command->add_option("--count", *count, "How many seeds")
      ->capture_default_str()
      ->transform(whole_number());
  const auto asked = add_judge(*command);
  command->get_option("--judge")->check(check_judge);
  on_command(*command, chosen, [=] {
    Progress progress;
    for (std::uint64_t seed = *first; seed - *first < *count; ++seed) {
      const Study study = random_study(seed);
      const std::string judge = objector(objectors(study), *asked);
      if (!judge.empty()) {
        fmt::print("# \"{}\" objects to the world of seed {}.\n{}", judge, seed,
                   to_toml(study, revision()));
        return objected;
      }
      if (progress.due()) {
        progress.show(fmt::format("{} of {}, {}", plural(seed - *first + 1, "world"), *count,
                                  duration(progress.elapsed())));
      }
    }
    fmt::print("{} to {} from seed {} on\n",
               asked->empty() ? "no judge objects" : '"' + *asked + "\" does not object",
               plural(*count, "world"), *first);
    return held;
  });
}

}  // namespace

void add_study_commands(CLI::App& app, Command& chosen) {
  for (auto* const add : {add_list, add_reference, add_run, add_sweep, add_compare, add_check,
                          add_replay, add_shrink, add_fuzz}) {
    add(app, chosen);
  }
}

}  // namespace sluice::tool
