// Files of scenarios, and traces from CSV files and access logs: what is read, what is told of a
// mistake, and how scenarios replay traces. Threading: single-threaded.
#include <filesystem>
#include <stdexcept>
#include <string>

#include "sim/study/study.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/trace_file.hpp"
#include "sim/tests/help.hpp"
#include "sluice/sim/run.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;
using test::Folder;
using test::message_of;
using test::told_of_file;

namespace {

/// Of six points.
const std::string two_sweeps =
    "[[sweep]]\nparameter = \"arrivals.load\"\nvalues = [0.5, 2.0]\n"
    "[[sweep]]\nparameter = \"jobs.keys\"\nvalues = [1, 2, 5]\n";

Study study_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  const Folder folder;
  return load_study(folder.write("s.toml", "schema = 1\n" + text), sets);
}

}  // namespace

TEST_CASE("mistakes in a file are told with their line, and what is right") {
  struct Mistake {
    std::string text;
    std::string message;
  };
  const Mistake table[] = {
      {"qestion = \"?\"", "s.toml:2: qestion: there is no such key here; did you mean question?"},
      {"[arrivals]\nrat = \"1/s\"",
       "s.toml:3: arrivals.rat: there is no such parameter; did you mean arrivals.rate?"},
      {"[arivals]\nrate = \"1/s\"",
       "s.toml:2: arivals: there is no such key here; did you mean arrivals?"},
      {"[arrivals]\nrate = \"fast\"",
       "s.toml:3: arrivals.rate: expected a rate, as 100/s, 0.5/min or 25/5s, got \"fast\""},
      {"[fleet]\nworkers = 0",
       "s.toml:3: fleet.workers: expected a whole number from 1 to 5000, got \"0\""},
      {"[fleet]\nworkers = [1, 2]", "s.toml:3: fleet.workers: expected one value, got 2"},
      {"[fleet]\nworkers = {a = 1}", "s.toml:3: expected a text, a number, true or false"},
      {"[fleet]\nworkers = 2026-01-01", "s.toml:3: expected a text, a number, true or false"},
      {"fleet = 5", "s.toml:2: fleet must be a table"},
      {"judges = 5", "s.toml:2: judges must be a table"},
      {"fault = 5", "s.toml:2: write [[fault]]"},
      {"[fault]\nkind = \"store_down\"", "s.toml:2: write [[fault]]"},
      {"replications = 0",
       "s.toml:2: replications: expected a whole number from 1 to 100000, got \"0\""},
      {"precision = 2", "s.toml:2: precision: expected a number from 0 to 1, got \"2\""},
      {"confidence = 1.0", "s.toml:2: confidence: expected a number from 0.5 to 0.9999, got \"1\""},
      {"seed = -1",
       "s.toml:2: seed: expected a whole number from 0 to 4503599627370496, got \"-1\""},
      {"\n[[fault]]\nat = \"1s\"", "s.toml:3: a [[fault]] needs a kind"},
      {"[[fault]]\nkind = \"store_don\"", "s.toml:3: kind: expected one of "},
      {"[[fault]]\nkind = \"store_down\"\nfacto = 1",
       "s.toml:4: facto: there is no such key here; did you mean factor?"},
      {"[[fault]]\nkind = \"store_down\"\nat = \"-1s\"", "s.toml:4: at: expected a time, as 250us"},
      {"[[variant]]\nstore.timeout = \"1s\"", "s.toml:2: a [[variant]] needs a name"},
      {"[[variant]]\nname = \"a\"\nstore.timeot = \"1s\"",
       "s.toml:4: store.timeot: there is no such parameter; did you mean store.timeout?"},
      {"[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"",
       "s.toml: two variants have the name \"a\""},
      {"[[sweep]]\nparameter = \"arrivals.load\"", "s.toml:2: [[sweep]]: expected a list `values`"},
      {"[[sweep]]\nparameter = \"arrivals.load\"\nvalues = []",
       "s.toml:4: values: expected a list of values"},
      {"[[sweep]]\nparameter = \"arrivals.lood\"\nvalues = [1]",
       "s.toml:2: [[sweep]]: arrivals.lood: there is no such parameter; did you mean "
       "arrivals.load?"},
      {"[[sweep]]\nparameter = \"arrivals.load\"\nvalues = [1, \"x\"]",
       "s.toml:2: [[sweep]]: arrivals.load: expected a number from 0 to 1000, got \"x\""},
      {"[[sweep]]\nparameter=\"arrivals.load\"\nvalues=[1]\n[[sweep]]\nparameter=\"arrivals."
       "load\"\nvalues=[2]",
       "s.toml:5: [[sweep]]: arrivals.load is swept twice"},
      {"[[sweep]]\nparameter=\"arrivals.load\"\nvalues=[1]\n[[sweep]]\nparameter=\"jobs."
       "cost\"\nvalues=[]",
       "s.toml:7: values: expected a list of values"},
      {"[[sweep]]\nparameter = \"run.duration\"\nvalues = [\"30s\", \"1min\", \"60s\"]",
       "s.toml:2: [[sweep]]: run.duration: 1min and 60s are the same value; leave out one"},
      {"[[sweep]]\nparameter = \"store.to\"\nvalues = [\"gamma(1s, 2)\", \"gamma(1s, 2)\"]",
       "s.toml:2: [[sweep]]: store.to: gamma(1s, 2) and gamma(1s, 2) are the same value; leave"},
      {two_sweeps + "[[expect]]\nmetric = \"goodput\"\nleast = 1\nat = \"0.5\"",
       "s.toml:8: at: of several sweeps, name the parameter too, as at = { arrivals.load = ... }"},
      {two_sweeps + "[[expect]]\nmetric = \"goodput\"\nleast = 1\nat = { jobs.cost = 1 }",
       "s.toml:8: at: jobs.cost is not swept"},
      {two_sweeps + "[[expect]]\nmetric = \"goodput\"\nleast = 1\nat = { jobs.keys = 3 }",
       "s.toml:8: at: 3 is not a value of the sweep of jobs.keys: 1, 2, 5"},
      {"\n[[expect]]\nmost = 1", "s.toml:3: an [[expect]] needs a metric"},
      {"[[expect]]\nmetric = \"goodput\"", "s.toml:2: an [[expect]] needs least, most or equals"},
      {"[[expect]]\nmetric = \"godput\"\nleast = 1", "s.toml:3: metric: "},
      {"[[expect]]\nmetric = \"goodput\"\nleast = \"much\"",
       "s.toml:4: least: expected a number from -1e+18 to 1e+18, got \"much\""},
      {"\n[[expect]]\nmetric = \"goodput\"\nleast = 1\nvariant = \"b\"",
       "s.toml:3: there is no variant \"b\""},
      {"[[variant]]\nname = \"shared\"\n[[expect]]\nmetric = \"goodput\"\nleast = 1\nof = "
       "\"share\"",
       "s.toml:4: there is no variant \"share\"; did you mean shared?"},
      {"\n[[expect]]\nmetric = \"goodput\"\nleast = 1\nat = \"0.8\"",
       "s.toml:3: at: \"0.8\" is not a value of the sweep"},
      {"[judges]\nsometimes = [\"crash\"]", "s.toml:3: sometimes: "},
      {"headline = []", "s.toml:2: headline: expected one metric or more, got nothing"},
      {"headline = [\"goodputt\"]", "s.toml:2: headline: "},
      {"[run]\nduration = \"1min\"\nwarm_up = \"2min\"", "s.toml: run.warm_up must be less than"},
      {"[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nrun.warm_up = \"2min\"",
       "s.toml (variant \"b\"): run.warm_up must be less than"},
      {"[[sweep]]\nparameter = \"run.warm_up\"\nvalues = [\"1s\", \"2min\"]",
       "s.toml (run.warm_up = 2min): run.warm_up must be less than"},
      {"[judges]\nrecovery = \"5s\"\n[[fault]]\nkind = \"store_down\"\nat = \"10s\"\nfor = "
       "\"1s\"\n[[sweep]]\nparameter = \"run.duration\"\nvalues = [\"1min\", \"12s\"]",
       "s.toml (run.duration = 12s): "},
      {"[[expect]]\nmetric = \"goodput\"\nleast = 5\nmost = 3",
       "s.toml:2: an [[expect]] of least = 5 and most = 3 cannot hold"},
      {"[[fault]]\nkind = \"store_down\"\nfor = \"0s\"", "s.toml:4: for: expected more than 0s; "},
      {"question = \"open", "s.toml:2: "},
      {"a = 1\na = 2", "s.toml:3: "},
  };
  for (const auto& [text, message] : table) {
    CAPTURE(text, message);
    CHECK(told_of_file(text).substr(0, message.size()) == message);
  }
}

TEST_CASE("the version of a file must be there, and known") {
  const Folder folder;
  const auto told = [&](const std::string& text) {
    const auto file = folder.write("v.toml", text);
    return folder.shortened(message_of([&] { return load_study(file); }));
  };
  const std::string rest = "schema = 1 must be there; it is the only version";
  CHECK(told("") == "v.toml:1: " + rest);
  CHECK(told("name = \"a\"\nschema = 2") == "v.toml:2: " + rest);
  CHECK(told("schema = \"1\"") == "v.toml:1: " + rest);
  CHECK(told("schema = 1") == "");
  CHECK_THROWS_AS(load_study(folder.path() / "absent.toml"), std::invalid_argument);
  CHECK_THROWS_AS(load_study(folder.path()), std::invalid_argument);
}

TEST_CASE("a file includes another, whose settings it may change") {
  const Folder folder;
  (void)folder.write(
      "base.toml",
      "schema = 1\nreplications = 3\n[arrivals]\nrate = \"5/s\"\n[fleet]\nworkers = 2\n"
      "[[fault]]\nkind = \"store_down\"\nfor = \"1s\"\n[[variant]]\nname = \"a\"\n"
      "[[sweep]]\nparameter = \"arrivals.load\"\nvalues = [1, 2]\n"
      "[limiter]\nmost = 5\n"  // which does nothing, and may
      "[[expect]]\nmetric = \"goodput\"\nleast = 1\n");
  const Study same = load_study(folder.write("same.toml", "include = \"base.toml\"\n"));
  CHECK(same.name == "same");
  CHECK(same.replications == 3);
  CHECK(same.faults.size() == 1);
  CHECK(same.scenario(0, 0).fleet.workers == 2);
  const Study other = load_study(
      folder.write("other.toml",
                   "schema = 1\ninclude = \"same.toml\"\nname = \"o\"\n[fleet]\nworkers = 3\n"
                   "[[fault]]\nkind = \"store_slow\"\nfor = \"1s\"\nfactor = 2\n"
                   "[[variant]]\nname = \"b\"\nfleet.workers = 4\n"
                   "[[sweep]]\nparameter = \"arrivals.load\"\nvalues = [3]\n"
                   "[[expect]]\nmetric = \"goodput\"\nleast = 2\nmost = 2\n"));
  CHECK(other.points() == 1);
  REQUIRE(other.expectations.size() == 1);
  CHECK(other.expectations[0].least == 2);
  CHECK_THROWS_WITH(load_study(folder.write("idle.toml",
                                            "include = \"base.toml\"\n\n[[fault]]\n"
                                            "kind = \"store_slow\"\nfor = \"1s\"\n")),
                    Catch::Matchers::StartsWith((folder.path() / "idle.toml").string() + ":3: "));
  CHECK(other.name == "o");
  CHECK(other.scenario(0, 0).fleet.workers == 4);
  CHECK(other.scenario(0, 0).arrivals.rate.events == 5);
  REQUIRE(other.faults.size() == 1);
  CHECK(other.faults.front().kind == FaultPlan::Kind::store_slow);
  REQUIRE(other.variants.size() == 1);
  CHECK(other.variants.front().name == "b");
}

TEST_CASE("includes that lead nowhere, or in a circle") {
  const Folder folder;
  const auto told = [&](const std::filesystem::path& file) {
    return folder.shortened(message_of([&] { return load_study(file); }));
  };
  CHECK(told(folder.write("a.toml", "\ninclude = \"gone.toml\"\n")) ==
        "a.toml:2: include: there is no file gone.toml");
  (void)folder.write("b.toml", "include = \"c.toml\"\n");
  CHECK(told(folder.write("c.toml", "include = \"b.toml\"\n")) ==
        "c.toml:1: include: more than 8 files include one another, perhaps in a circle");
  CHECK(told(folder.write("self.toml", "include = \"self.toml\"\n")).find("in a circle") !=
        std::string::npos);
  (void)folder.write("0.toml", "schema = 1\n");
  for (int i = 1; i <= 9; ++i) {
    const auto file = folder.write(std::to_string(i) + ".toml",
                                   "include = \"" + std::to_string(i - 1) + ".toml\"\n");
    CHECK((told(file) == "") == (i <= 8));
  }
  (void)folder.write("bad.toml", "schema = 1\n[fleet]\nworkers = 0\n");
  CHECK(told(folder.write("user.toml", "include = \"bad.toml\"\n")) ==
        "bad.toml:3: fleet.workers: expected a whole number from 1 to 5000, got \"0\"");
}

TEST_CASE("--set sets lists, numbers and texts, over what variants say") {
  const std::string text =
      "[[variant]]\nname = \"b\"\n[[variant]]\nname = \"a\"\nfleet.workers = 4\n";
  const Study study =
      study_of(text, {"fleet.workers=7", "upstream.limits=[\"5/s\", \"100/min aligned\"]",
                      "arrivals.load=0.5", "store.to=log_normal(1ms, 2ms)", "run.duration = 30s",
                      "limiter.limit=\"7/s\""});
  CHECK(study.scenario(0, 0).fleet.workers == 7);
  const Scenario scenario = study.scenario(1, 0);
  CHECK(scenario.fleet.workers == 7);
  REQUIRE(scenario.upstream.limits.size() == 2);
  CHECK(scenario.upstream.limits[1].aligned);
  CHECK(scenario.arrivals.load == 0.5);
  CHECK(scenario.duration == 30s);
  CHECK(scenario.limiter.limit.events == 7);
  CHECK(study_of(text, {"upstream.limits=[]"}).scenario(0, 0).upstream.limits.empty());
  CHECK(study_of(text, {"upstream.limits=5/s"}).scenario(0, 0).upstream.limits.size() == 1);
}

TEST_CASE("what --set cannot set") {
  CHECK(told_of_file("", {"fleet.workers"}) == "--set: expected PATH=VALUE, got \"fleet.workers\"");
  CHECK(told_of_file("", {"fleet.worker=3"}) ==
        "--set: fleet.worker: there is no such parameter; did you mean fleet.workers?");
  CHECK(told_of_file("", {"fleet.workers=many"}) ==
        "--set: fleet.workers: expected a whole number from 1 to 5000, got \"many\"");
  CHECK(told_of_file("", {"fleet.workers="}) ==
        "--set: fleet.workers: expected a whole number from 1 to 5000, got nothing");
  CHECK(told_of_file("", {"fleet.workers=[]"}) ==
        "--set: fleet.workers: expected one value, got 0");
  CHECK(told_of_file("", {"run.events_per_instant=999"}) ==
        "--set: run.events_per_instant: expected a whole number from 1000 to 1000000000000, got "
        "\"999\"");
  CHECK(told_of_file("", {"run.warm_up=aut"}) ==
        "--set: run.warm_up: expected a time, as 20s or 2min, or auto, got \"aut\"");
  CHECK(told_of_file("", {"arrivals.load=nan"}) ==
        "--set: arrivals.load: expected a number from 0 to 1000, got \"nan\"");
  CHECK(told_of_file("", {"upstream.limits=[\"5/s\", 3]"}) ==
        "--set: upstream.limits: expected a limit, as 10000/min or 10000/min aligned, got \"3\"");
  CHECK(told_of_file("", {"arrivals.rate=2026-01-01"}) ==
        "--set: arrivals.rate: expected a rate, as 100/s, 0.5/min or 25/5s, got \"2026-01-01\"");
  CHECK(told_of_file("", {"run.warm_up=2min"}) ==
        "s.toml: run.warm_up must be less than run.duration (60.000000 s), got 120.000000 s");
}

TEST_CASE("--set of the swept parameter ends the sweep, and what is expected of its values") {
  const std::string text =
      "[[sweep]]\nparameter = \"arrivals.load\"\nvalues = [0.5, 2.0]\n"
      "[[expect]]\nmetric = \"goodput\"\nat = \"0.5\"\nleast = 1\n"
      "[[expect]]\nmetric = \"goodput\"\nleast = 2\n";
  const Study swept = study_of(text);
  CHECK(swept.points() == 2);
  CHECK(swept.point_text(1) == "2");
  CHECK(swept.scenario(0, 1).arrivals.load == 2);
  CHECK(swept.expectations.size() == 2);
  const Study single = study_of(text, {"arrivals.load=3"});
  CHECK(single.sweeps.empty());
  CHECK(single.scenario(0, 0).arrivals.load == 3);
  REQUIRE(single.expectations.size() == 1);
  CHECK(single.expectations.front().least == 2);
}

TEST_CASE("several sweeps make a grid, whose last parameter changes first") {
  const Study study = study_of(two_sweeps);
  REQUIRE(study.points() == 6);
  const std::pair<double, std::uint32_t> points[] = {{0.5, 1}, {0.5, 2}, {0.5, 5},
                                                     {2, 1},   {2, 2},   {2, 5}};
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const Scenario scenario = study.scenario(0, i);
    CHECK(scenario.arrivals.load == points[i].first);
    CHECK(scenario.jobs.keys == points[i].second);
  }
  CHECK(study.point_text(2) == "arrivals.load = 0.5, jobs.keys = 5");
  CHECK(study.row_text(0, 3) == " (arrivals.load = 2, jobs.keys = 1)");
  const Study single = single_run(study, 0, 2, 0);
  CHECK(single.points() == 1);
  CHECK(single.scenario(0, 0).arrivals.load == 0.5);
  CHECK(single.scenario(0, 0).jobs.keys == 5);
}

TEST_CASE("expectations at points of a grid") {
  const Study study = study_of(two_sweeps +
                               "[[expect]]\nmetric = \"goodput\"\nleast = 1\n"
                               "at = { arrivals.load = 2.0, jobs.keys = 2 }\n"
                               "[[expect]]\nmetric = \"goodput\"\nleast = 1\n"
                               "at = { jobs.keys = 5 }\n"
                               "[[expect]]\nmetric = \"goodput\"\nleast = 1\n");
  const auto concerned = [&study](std::size_t expectation) {
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < study.points(); ++i) {
      if (study.concerns(study.expectations.at(expectation), i)) points.push_back(i);
    }
    return points;
  };
  CHECK(concerned(0) == std::vector<std::size_t>{4});
  CHECK(concerned(1) == std::vector<std::size_t>{2, 5});
  CHECK(concerned(2).size() == 6);
}

TEST_CASE("--set of one of two swept parameters leaves the sweep of the other") {
  const Study study = study_of(two_sweeps +
                                   "[[expect]]\nmetric = \"goodput\"\nleast = 1\n"
                                   "at = { arrivals.load = 2.0 }\n"
                                   "[[expect]]\nmetric = \"goodput\"\nleast = 1\n"
                                   "at = { jobs.keys = 5 }\n",
                               {"arrivals.load=3"});
  CHECK(study.points() == 3);
  CHECK(study.point_text(2) == "5");
  CHECK(study.scenario(0, 2).arrivals.load == 3);
  REQUIRE(study.expectations.size() == 1);
  CHECK(study.concerns(study.expectations[0], 2));
  CHECK_FALSE(study.concerns(study.expectations[0], 1));
}

TEST_CASE("a grid of more points than can be run is refused, with their number") {
  const auto sweep = [](const std::string& parameter, int values) {
    std::string text = "[[sweep]]\nparameter = \"" + parameter + "\"\nvalues = [";
    for (int i = 1; i <= values; ++i) text += std::to_string(i) + ", ";
    return text + "]\n";
  };
  CHECK(study_of(sweep("arrivals.load", 20) + sweep("jobs.keys", 50)).points() == 1000);
  CHECK(told_of_file(sweep("arrivals.load", 20) + sweep("jobs.keys", 51)) ==
        "s.toml:5: [[sweep]]: 20 of arrivals.load x 51 of jobs.keys are 1020 points, and at most "
        "1000 can be run: leave out values, or sweep fewer parameters at a time");
  // The product of all would not fit into a word.
  std::string many;
  for (const char* const parameter :
       {"arrivals.load", "jobs.keys", "fleet.workers", "jobs.cost", "client.budget"}) {
    many += sweep(parameter, 400);
  }
  CHECK(told_of_file(many).find("400 of arrivals.load x 400 of jobs.keys are 160000 points") !=
        std::string::npos);
}

TEST_CASE("a sweep of lists") {
  const Study study = study_of(
      "[[sweep]]\nparameter = \"upstream.limits\"\nvalues = [[\"5/s\"], [\"5/s\", \"9/min\"], "
      "[]]\n");
  CHECK(study.points() == 3);
  CHECK(study.point_text(1) == "5/s, 9/min");
  CHECK(study.scenario(0, 1).upstream.limits.size() == 2);
  CHECK(study.scenario(0, 2).upstream.limits.empty());
}

TEST_CASE("a single run as a file repeats its run alone") {
  Study study = study_of(
      "name = \"odd \\\"name\\\" \\\\ \\u0007\\u007f\"\nquestion = \"two\\nlines?\"\nreplications "
      "= 4\n"
      "[run]\nduration = \"10s\"\n[upstream]\nlimits = [\"50/s\", \"400/10s aligned\"]\n"
      "[[variant]]\nname = \"a\"\nlimiter.wait = \"poll\"\n[[variant]]\nname = \"b\"\n"
      "limiter.limit = \"90/s\"\nupstream.limits = []\n[[sweep]]\nparameter = "
      "\"arrivals.load\"\nvalues = [0.7, 1.3]\n"
      "[[fault]]\nkind = \"network_loss\"\nat = \"2s\"\nfor = \"1500ms\"\nfactor = "
      "0.301234567\nshare = "
      "0.45\n"
      "[[fault]]\nkind = \"clock_step\"\nat = \"4s\"\nstep = \"-300ms\"\n"
      "[[fault]]\nkind = \"upstream_second\"\nat = \"5s\"\nlimit = \"77/s aligned\"\n"
      "[clock]\noffset = \"10ms\"\n[judges]\nrecovery = \"3s\"\nnever = [\"crashes\"]\n"
      "[[expect]]\nmetric = \"goodput\"\nvariant = \"a\"\nleast = 1\n");
  const Folder folder;
  for (std::size_t variant = 0; variant < 2; ++variant) {
    for (std::size_t point = 0; point < 2; ++point) {
      for (const std::size_t replication : {0U, 3U}) {
        CAPTURE(variant, point, replication);
        const Study single = single_run(study, variant, point, replication);
        Scenario original = study.scenario(variant, point);
        original.seed = seed_of(study, replication);
        const std::string text = to_toml(single, "r1");
        const Study loaded = load_study(folder.write("single.toml", text));
        CHECK(loaded.name == study.name);
        CHECK(loaded.question == study.question);
        CHECK(loaded.judges.recovery == 3s);
        CHECK(loaded.judges.never == study.judges.never);
        CHECK(loaded.variants.size() == 1);
        CHECK(loaded.faults.size() == 3);
        CHECK(sim::run(loaded.scenario(0, 0)).trace == sim::run(original).trace);
        CHECK(to_toml(loaded, "r1") == text);
      }
    }
  }
}

namespace {

std::string error_of(const std::filesystem::path& file) {
  return test::message_of([&] { return read_trace(file); });
}

const std::string scenario_of_trace = R"(schema = 1
replications = 1
[run]
duration = "10s"
[fleet]
workers = 2
[arrivals]
kind = "trace"
file = "calls.csv"
[limiter]
limit = "3/h"
by_key = true
wait = "skip"
)";

std::string log_line(const std::string& client, const std::string& time) {
  return client + " - - [17/May/2015:" + time + " +0000] \"GET / HTTP/1.1\" 200 512\n";
}

}  // namespace

TEST_CASE("a CSV file of calls is read with its keys, costs, comments and line ends") {
  const Folder folder;
  const TraceFile trace = read_trace(folder.write("calls.csv",
                                                  "\xef\xbb\xbf# made by hand\n\nt,key,cost\r\n"
                                                  "0,alice,1\r\n0.25,bob,3\n# later\n"
                                                  "0.2500009,alice,1000000\n2678400,c d,7"));
  REQUIRE(trace.calls->size() == 4);
  CHECK(trace.keys == 3);
  CHECK(trace.warnings.empty());
  const struct {
    Span at;
    std::uint32_t key, cost;
  } calls[] = {{0us, 0, 1}, {250ms, 1, 3}, {250ms, 0, 1'000'000}, {744h, 2, 7}};
  for (std::size_t i = 0; i < trace.calls->size(); ++i) {
    CAPTURE(i);
    CHECK((*trace.calls)[i].at == calls[i].at);
    CHECK((*trace.calls)[i].key == calls[i].key);
    CHECK((*trace.calls)[i].cost == calls[i].cost);
  }
  const TraceFile free = read_trace(folder.write("free.csv", "t,key\n1.5,x\n"));
  CHECK(free.calls->front().at == 1'500'000us);
  CHECK(free.calls->front().cost == 1);
}

TEST_CASE("a bad CSV file is refused with its line, the reason and the remedy") {
  const struct {
    std::string text, says;
  } cases[] = {
      {"", "calls.csv: there is no header in it; begin with the line \"t,key\""},
      {"# nothing\n\n", "calls.csv: there is no header in it"},
      {"t,key\n", "calls.csv: there is no call below its header"},
      {"time,client\n", "calls.csv:1: the header must be t,key or t,key,cost, got \"time,client\""},
      {"key,t\n0,a\n", "calls.csv:1: the header must be"},
      {"0,a\n", "calls.csv:1: the header must be"},
      {"t,key\n1\n", "calls.csv:2: the header has 2 columns, and the line 1"},
      {"t,key\n1,a,1\n", "calls.csv:2: the header has 2 columns, and the line 3"},
      {"t,key,cost\n1,\"a,b\",2\n", "the line 4; a key cannot hold a comma"},
      {"t,key\n# one\n\n5,a\n4.999999,a\n", "calls.csv:5: t goes back from 5 to 4.999999; sort"},
      {"t,key\n-1,a\n", "calls.csv:2: t must be seconds as 12 or 12.345678, got \"-1\""},
      {"t,key\n,a\n", "calls.csv:2: t must be seconds"},
      {"t,key\n1.,a\n", "calls.csv:2: t must be seconds"},
      {"t,key\n1e3,a\n", "calls.csv:2: t must be seconds"},
      {"t,key\nnan,a\n", "calls.csv:2: t must be seconds"},
      {"t,key\n99999999999999999999,a\n", "calls.csv:2: t must be seconds"},
      {"t,key\n1700000000,a\n", "t must be at most 2678400 (31 days), got 1700000000; subtract"},
      {"t,key\n1,\n", "calls.csv:2: the key must have 1 to 255 bytes, got 0"},
      {"t,key\n1," + std::string(256, 'k') + "\n", "the key must have 1 to 255 bytes, got 256"},
      {"t,key\n1," + std::string(70'000, 'k') + "\n",
       "calls.csv:2: the line is longer than 65,536"},
      {"t,key,cost\n1,a,0\n", "cost must be a whole number from 1 to 1000000, got \"0\""},
      {"t,key,cost\n1,a,1.5\n", "cost must be a whole number from 1 to 1000000, got \"1.5\""},
      {"t,key,cost\n1,a,1000001\n", "cost must be a whole number"},
      {"t,key,cost\n1,a,\n", "cost must be a whole number"},
  };
  const Folder folder;
  for (const auto& each : cases) {
    CAPTURE(each.text.substr(0, 80));
    CHECK_THAT(error_of(folder.write("calls.csv", each.text)), contains_text(each.says));
  }
}

TEST_CASE("a file that is not there, a folder, and a file of another kind are refused") {
  const Folder folder;
  CHECK_THAT(error_of(folder.path() / "absent.csv"),
             contains_text("absent.csv: No such file or directory; arrivals.file must name"));
  CHECK_THAT(error_of(folder.path()), contains_text("Is a directory"));
  CHECK_THAT(error_of(folder.write("empty.log", "")), contains_text("there is nothing in it"));
  CHECK_THAT(error_of(folder.write("calls.txt", "t,key\n0,a\n")),
             contains_text("no line of 2 is in the Common or Combined Log Format, and line 1: "
                           "there is no second field; the name of a CSV file ends in .csv"));
}

TEST_CASE("an access log is a trace that begins with its first request") {
  const Folder folder;
  const TraceFile trace =
      read_trace(folder.write("access.log", log_line("a", "10:00:05") + log_line("b", "10:00:03") +
                                                "no request\n" + log_line("a", "10:00:03")));
  REQUIRE(trace.calls->size() == 3);
  CHECK(trace.keys == 2);
  const Span at[] = {0s, 0s, 2s};
  const std::uint32_t keys[] = {1, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((*trace.calls)[i].at == at[i]);
    CHECK((*trace.calls)[i].key == keys[i]);
  }
  REQUIRE(trace.warnings.size() == 1);
  CHECK_THAT(trace.warnings[0], contains_text("1 unreadable line left out, the first is line 3: "));
}

TEST_CASE("a log that cannot tell what live traffic does is replayed with a warning") {
  std::string text;
  for (int hour = 10; hour < 20; ++hour) {
    for (int second = 10; second < 60; second += 10) {
      for (int client = 0; client < 20; ++client) {
        text += log_line("c" + std::to_string(client),
                         std::to_string(hour) + ":05:" + std::to_string(second));
      }
    }
  }
  const Folder folder;
  const TraceFile trace = read_trace(folder.write("sampled.log", text));
  CHECK(trace.calls->size() == 1000);
  REQUIRE(trace.warnings.size() == 1);
  CHECK_THAT(trace.warnings[0], contains_text("this log may not tell"));
  CHECK_THAT(trace.warnings[0], contains_text("lie in minute 05 of every hour"));
}

TEST_CASE("a scenario reads the trace beside it once, and all its runs share the calls") {
  const Folder folder;
  (void)folder.write("calls.csv", "t,key\n0,a\n5,a\n9.999999,b\n10,c\n12,a\n");
  const auto file = folder.write("study.toml", scenario_of_trace);
  const Study study = load_study(file);
  const Scenario first = study.scenario(0, 0);
  std::filesystem::remove(folder.path() / "calls.csv");
  const Scenario second = study.scenario(0, 0);
  CHECK(first.arrivals.trace == second.arrivals.trace);
  CHECK(first.jobs.keys == 3);
  REQUIRE(study.warnings.size() == 1);
  CHECK_THAT(study.warnings[0], contains_text("2 of 5 calls come after run.duration"));
  CHECK_THAT(study.warnings[0], contains_text("the last comes at 12s"));
}

TEST_CASE("the trace of each row is beside the file, and its warnings are told once") {
  const Folder folder;
  (void)folder.write("calls.csv", "t,key\n0,a\n1,b\n");
  (void)folder.write("late.csv", "t,key\n0,a\n12,b\n");
  const Study study = load_study(folder.write(
      "study.toml", scenario_of_trace +
                        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[sweep]]\n"
                        "parameter = \"arrivals.file\"\nvalues = [\"calls.csv\", \"late.csv\"]\n"));
  CHECK(study.scenario(1, 1).arrivals.file == (folder.path() / "late.csv").string());
  REQUIRE(study.warnings.size() == 1);
  CHECK_THAT(study.warnings[0], contains_text("late.csv: 1 of 2 calls come after run.duration"));
}

TEST_CASE("each call of a trace takes its own cost of its own key's limit") {
  const Folder folder;
  // 3 units an hour: of 2 + 2 one call is refused, of 1 + 1 + 1 none is.
  (void)folder.write("calls.csv",
                     "t,key,cost\n1,twice,2\n1,once,1\n2,twice,2\n3,once,1\n3.5,once,1\n");
  const Study study = load_study(folder.write("study.toml", scenario_of_trace));
  const RunResult result = run(study.scenario(0, 0));
  CHECK(result.figures[Metric::share_refused] == Approx(100.0 / 5));
  CHECK(result.figures[Metric::clients_refused] == Approx(100.0 / 2));
  CHECK(result.objections.empty());
}

TEST_CASE("what contradicts a trace is refused") {
  const Folder folder;
  (void)folder.write("calls.csv", "t,key,cost\n1,a,4\n");
  const auto file = folder.write("study.toml", scenario_of_trace);
  const struct {
    std::vector<std::string> sets;
    const char* says;
  } cases[] = {
      {{"limiter.burst=4", "arrivals.load=2"}, "arrivals.load does nothing here: it needs an "},
      {{"limiter.burst=4", "jobs.pick=zipf"}, "jobs.pick does nothing here: it needs an arr"},
      {{"limiter.burst=4", "jobs.keys=3"}, "jobs.keys does nothing here: it needs an arr"},
      {{"limiter.burst=4", "arrivals.file="}, "name a file by arrivals.file"},
      {{"limiter.burst=3"}, "a job takes up to 4 units, and the limiter grants at most 3"},
      {{"limiter.burst=7", "jobs.cost=2"}, "a job takes up to 8 units"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.says);
    CHECK_THROWS_WITH(load_study(file, each.sets), contains_text(each.says));
  }
  CHECK_NOTHROW(load_study(file, {"limiter.burst=4"}));
  // Of a file, --set may disable a part.
  CHECK_NOTHROW(load_study(file, {"limiter.burst=4", "arrivals.kind=poisson"}));
}
