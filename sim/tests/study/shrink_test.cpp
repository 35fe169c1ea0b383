// Shrinking of real runs: a failing one loses all that its judge does not need. The model of
// study/models_test.cpp has everything else.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/judges/judges.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/tests/study/small_study.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::small_study;

TEST_CASE("shrinking drops what the judge does not need") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {{"run.duration", {"20s"}}, {"fleet.workers", {"8"}}};
  using Kind = FaultPlan::Kind;
  study.faults = {{.kind = Kind::upstream_slow, .at = 1s, .length = 1s, .factor = 2},
                  {.kind = Kind::worker_crash, .at = 5s, .length = 1s},
                  {.kind = Kind::store_slow, .at = 3s, .length = 1s, .factor = 2},
                  {.kind = Kind::worker_pause, .at = 7s, .length = 1s}};
  // The first judge objects to every run, and says nothing of the second.
  study.judges.never = {"offered", "crashes"};
  const std::vector<std::string> both = {"never offered", "never crashes"};
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == both);
  CHECK(shrink(single, "never offered").study.faults.empty());
  const Shrunk shrunk = shrink(single, "never crashes");
  CHECK(shrunk.fails);
  REQUIRE(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.faults[0].kind == Kind::worker_crash);
  CHECK(shrunk.study.scenario(0, 0).fleet.workers == 1);
  CHECK(objectors(shrunk.study) == both);
  CHECK_FALSE(shrink(single, "no such judge").fails);
  std::atomic<bool> stop{false};
  const auto look = [&stop](const Shrunk& now) { stop = now.runs == 5; };
  const Shrunk stopped = shrink(single, "never crashes", look, &stop);
  CHECK(stopped.partial);
  CHECK(stopped.runs == 5);
  CHECK(objectors(stopped.study) == both);
}

TEST_CASE("shrinking keeps the fault from which a run does not recover in time") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {{"run.duration", {"60s"}}, {"limiter.kind", {"none"}}};
  using Kind = FaultPlan::Kind;
  study.faults = {{.kind = Kind::worker_pause, .at = 5s, .length = 1s, .share = 0.5},
                  {.kind = Kind::upstream_down, .at = 10s, .length = 20s}};
  study.judges.recovery = 1s;
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == std::vector<std::string>{recovery_judge});
  const Shrunk shrunk = shrink(single, recovery_judge);
  CHECK(shrunk.fails);
  CHECK(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.judges.recovery == 1s);
  CHECK(objectors(shrunk.study) == std::vector<std::string>{recovery_judge});
}

TEST_CASE("shrinking leaves the keys of a trace alone, which its file has") {
  const auto file = std::filesystem::temp_directory_path() /
                    ("sluice-shrink-" + std::to_string(getpid()) + ".csv");
  std::ofstream(file) << "t,key\n0.1,a\n0.2,b\n0.3,c\n0.4,d\n";
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {
      {"run.duration", {"2s"}}, {"arrivals.kind", {"trace"}}, {"arrivals.file", {file.string()}}};
  const Study single = single_run(study, 0, 0, 0);
  const Shrunk shrunk = shrink_while(single, [](const Study& each) {
    CHECK(each.scenario(0, 0).jobs.keys == 4);
    return true;
  });
  std::filesystem::remove(file);
  CHECK(shrunk.runs < 200);
}
