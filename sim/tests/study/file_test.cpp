// Files of scenarios: what is read, and what is told of a mistake. Threading: single-threaded.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "sim/study/study.hpp"
#include "sim/study/study_run.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// A folder of its own that is removed at the end.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "sluice-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
};

/// The message for a file with this text after "schema = 1", without its folder; "" if it is good.
std::string message_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  const Folder folder;
  try {
    (void)load_study(folder.write("s.toml", "schema = 1\n" + text), sets);
  } catch (const std::invalid_argument& error) {
    std::string what = error.what();
    const std::string prefix = folder.path.string() + "/";
    for (auto at = what.find(prefix); at != std::string::npos; at = what.find(prefix)) {
      what.erase(at, prefix.size());
    }
    return what;
  }
  return "";
}

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
      {"question = \"open", "s.toml:2: "},
      {"a = 1\na = 2", "s.toml:3: "},
  };
  for (const auto& [text, message] : table) {
    CAPTURE(text, message);
    const std::string told = message_of(text);
    CHECK(told.substr(0, message.size()) == message);
  }
}

TEST_CASE("the version of a file must be there, and known") {
  const Folder folder;
  const auto told = [&](const std::string& text) -> std::string {
    try {
      (void)load_study(folder.write("v.toml", text));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const std::string file = (folder.path / "v.toml").string();
  const std::string rest = "schema = 1 must be there; it is the only version";
  CHECK(told("") == file + ":1: " + rest);
  CHECK(told("name = \"a\"\nschema = 2") == file + ":2: " + rest);
  CHECK(told("schema = \"1\"") == file + ":1: " + rest);
  CHECK(told("schema = 1") == "");
  CHECK_THROWS_AS(load_study(folder.path / "absent.toml"), std::invalid_argument);
  CHECK_THROWS_AS(load_study(folder.path), std::invalid_argument);
}

TEST_CASE("a file includes another, whose settings it may change") {
  const Folder folder;
  folder.write("base.toml",
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
                    Catch::Matchers::StartsWith((folder.path / "idle.toml").string() + ":3: "));
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
  const auto told = [&](const fs::path& file) -> std::string {
    try {
      (void)load_study(file);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const std::string at = folder.path.string();
  CHECK(told(folder.write("a.toml", "\ninclude = \"gone.toml\"\n")) ==
        at + "/a.toml:2: include: there is no file " + at + "/gone.toml");
  folder.write("b.toml", "include = \"c.toml\"\n");
  CHECK(told(folder.write("c.toml", "include = \"b.toml\"\n")) ==
        at + "/c.toml:1: include: more than 8 files include one another, perhaps in a circle");
  CHECK(told(folder.write("self.toml", "include = \"self.toml\"\n")).find("in a circle") !=
        std::string::npos);
  folder.write("0.toml", "schema = 1\n");
  for (int i = 1; i <= 9; ++i) {
    const auto file = folder.write(std::to_string(i) + ".toml",
                                   "include = \"" + std::to_string(i - 1) + ".toml\"\n");
    CHECK((told(file) == "") == (i <= 8));
  }
  folder.write("bad.toml", "schema = 1\n[fleet]\nworkers = 0\n");
  CHECK(told(folder.write("user.toml", "include = \"bad.toml\"\n")) ==
        at + "/bad.toml:3: fleet.workers: expected a whole number from 1 to 5000, got \"0\"");
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
  CHECK(message_of("", {"fleet.workers"}) == "--set: expected PATH=VALUE, got \"fleet.workers\"");
  CHECK(message_of("", {"fleet.worker=3"}) ==
        "--set: fleet.worker: there is no such parameter; did you mean fleet.workers?");
  CHECK(message_of("", {"fleet.workers=many"}) ==
        "--set: fleet.workers: expected a whole number from 1 to 5000, got \"many\"");
  CHECK(message_of("", {"fleet.workers="}) ==
        "--set: fleet.workers: expected a whole number from 1 to 5000, got nothing");
  CHECK(message_of("", {"fleet.workers=[]"}) == "--set: fleet.workers: expected one value, got 0");
  CHECK(message_of("", {"arrivals.load=nan"}) ==
        "--set: arrivals.load: expected a number from 0 to 1000, got \"nan\"");
  CHECK(message_of("", {"upstream.limits=[\"5/s\", 3]"}) ==
        "--set: upstream.limits: expected a limit, as 10000/min or 10000/min aligned, got \"3\"");
  CHECK(message_of("", {"arrivals.rate=2026-01-01"}) ==
        "--set: arrivals.rate: expected a rate, as 100/s, 0.5/min or 25/5s, got \"2026-01-01\"");
  CHECK(message_of("", {"run.warm_up=2min"}) ==
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
  CHECK(message_of(sweep("arrivals.load", 20) + sweep("jobs.keys", 51)) ==
        "s.toml:5: [[sweep]]: 20 of arrivals.load x 51 of jobs.keys are 1020 points, and at most "
        "1000 can be run: leave out values, or sweep fewer parameters at a time");
  // The product of all would not fit into a word.
  std::string many;
  for (const char* const parameter :
       {"arrivals.load", "jobs.keys", "fleet.workers", "jobs.cost", "client.budget"}) {
    many += sweep(parameter, 400);
  }
  CHECK(message_of(many).find("400 of arrivals.load x 400 of jobs.keys are 160000 points") !=
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
