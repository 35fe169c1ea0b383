// Shrinking of real runs: a failing one loses all that its judge does not need. The model of
// study_models_test.cpp has everything else.
#include <atomic>
#include <string>

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
  study.judges.never = {"crashes"};
  const Study single = single_run(study, 0, 0, 0);
  REQUIRE(objectors(single) == std::vector<std::string>{"never crashes"});
  const Shrunk shrunk = shrink(single, "never crashes");
  CHECK(shrunk.fails);
  REQUIRE(shrunk.study.faults.size() == 1);
  CHECK(shrunk.study.faults[0].kind == Kind::worker_crash);
  CHECK(shrunk.study.scenario(0, 0).fleet.workers == 1);
  CHECK(objectors(shrunk.study) == std::vector<std::string>{"never crashes"});
  CHECK_FALSE(shrink(single, "no such judge").fails);
  std::atomic<bool> stop{false};
  const auto look = [&stop](const Shrunk& now) { stop = now.runs == 5; };
  const Shrunk stopped = shrink(single, "never crashes", look, &stop);
  CHECK(stopped.partial);
  CHECK(stopped.runs == 5);
  CHECK(objectors(stopped.study) == std::vector<std::string>{"never crashes"});
}
