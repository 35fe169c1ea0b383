// Shrinking: a failing run loses all that its judge does not need.
#include <atomic>
#include <string>

#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "tests/catch.hpp"
#include "tests/sim/small_study.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::small_study;

TEST_CASE("shrinking weakens factors on both sides of 1 towards it, and shares towards 0") {
  Study study = small_study();
  study.variants = {Variant{}};
  study.settings = {
      {"run.duration", {"10s"}},    {"fleet.workers", {"1"}},       {"arrivals.kind", {"constant"}},
      {"arrivals.rate", {"100/s"}}, {"limiter.kind", {"none"}},     {"client.retries", {"none"}},
      {"client.timeout", {"1s"}},   {"upstream.limits", {"120/s"}}, {"upstream.to", {"0s"}},
      {"upstream.from", {"0s"}},    {"upstream.latency", {"100ms"}}};
  using Kind = FaultPlan::Kind;
  const auto factor_left = [&study](const std::string& metric, const FaultPlan& fault) {
    study.faults = {fault};
    study.judges.never = {metric};
    const Study single = single_run(study, 0, 0, 0);
    const Shrunk shrunk = shrink(single, "never " + metric);
    REQUIRE(shrunk.fails);
    REQUIRE(shrunk.study.faults.size() == 1);
    CHECK(shrunk.study.faults[0].kind == fault.kind);
    CHECK(objectors(shrunk.study) == std::vector<std::string>{"never " + metric});
    return shrunk.study.faults[0].factor;
  };
  const auto fault = [](Kind kind, double factor) {
    FaultPlan plan{.kind = kind, .at = 2s, .length = 4s};
    plan.factor = factor;
    return plan;
  };
  // Of 0, 0.5, 0.75 and 0.875 times 120/s, the last is enough for 100 calls a second.
  CHECK(factor_left("share_429", fault(Kind::upstream_limit, 0)) == 0.75);
  // Of 40, 20.5, 10.75 and 5.875 times 100 ms, the last is below the timeout.
  CHECK(factor_left("timed_out", fault(Kind::upstream_slow, 40)) == 10.75);
  const double lost = factor_left("timed_out", fault(Kind::upstream_loss, 1));
  CHECK(lost > 0);
  CHECK(lost <= 0.25);
}

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
