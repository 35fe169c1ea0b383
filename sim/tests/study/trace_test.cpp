// Traces from CSV files and access logs, and how scenarios replay them. Threading: single-threaded.
#include "sim/study/trace_file.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "sim/study/study.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;

namespace {

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-trace-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path write(const std::string& name,
                                            const std::string& text) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file << text;
    REQUIRE(file.flush());
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

std::string error_of(const std::filesystem::path& file) {
  try {
    (void)read_trace(file);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
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
