// What becomes of a study before it is swept, or compared with another one. Threading:
// single-threaded.
#include "sim/study/compare.hpp"

#include <string>
#include <vector>

#include "sim/tests/study/small_study.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;
using test::small_study;

namespace {

/// That the goodput is at least `least`, by which the tests know it again.
Expectation at_least(double least) {
  Expectation made;
  made.metric = "goodput";
  made.least = least;
  return made;
}

std::vector<double> bounds(const Study& study) {
  std::vector<double> all;
  for (const Expectation& each : study.expectations) all.push_back(each.least.value_or(-1));
  return all;
}

}  // namespace

TEST_CASE("a variant that is kept keeps what is expected of it, and of every variant") {
  Study study = small_study();
  for (const auto& [variant, of] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""}, {"a", ""}, {"b", ""}, {"a", "b"}, {"b", "a"}, {"", "b"}, {"b", "b"}}) {
    Expectation made = at_least(static_cast<double>(study.expectations.size()));
    made.variant = variant;
    made.of = of;
    study.expectations.push_back(made);
  }
  keep_variant(study, "b");
  REQUIRE(study.variants.size() == 1);
  CHECK(study.variants[0].name == "b");
  CHECK(study.scenario(0, 0).limiter.wait == LimiterOptions::Wait::poll);
  CHECK(bounds(study) == std::vector<double>{0, 2, 5, 6});
}

TEST_CASE("a sweep of the command line replaces those of the file, and what is expected there") {
  Study study = small_study();
  study.sweeps = {{"arrivals.load", {{"0.5"}, {"1.5"}}}};
  study.expectations = {at_least(0), at_least(1), at_least(2)};
  study.expectations[1].at = "0.5";
  study.expectations[2].at_values = {{"arrivals.load", {"1.5"}}};
  sweep(study, "jobs.keys", {{"1"}, {"3"}, {"4"}});
  CHECK(study.points() == 3);
  CHECK(study.point_name(2) == "jobs.keys = 4");
  CHECK(study.scenario(1, 1).jobs.keys == 3);
  CHECK(bounds(study) == std::vector<double>{0});
  CHECK_THROWS_WITH(sweep(study, "limiter.most", {{"1"}, {"2"}}),
                    contains_text("limiter.most does nothing here"));
  CHECK_NOTHROW(sweep(study, "limiter.burst", {{"1"}, {"2"}}));
}

TEST_CASE("the longer warm-up of a comparison counts more than what a variant says") {
  Study a = small_study();
  keep_variant(a, "a");
  a.settings[0].texts = {"40s"};
  a.settings.push_back({"arrivals.load", {"0.3"}});
  Study b = a;
  a.variants[0].settings.push_back({"run.warm_up", {"auto"}});
  b.settings.push_back({"run.warm_up", {"30s"}});
  CHECK(share_warm_up(a, b) == Span{30s});
  CHECK(a.scenario(0, 0).warm_up == 30s);
  CHECK(b.scenario(0, 0).warm_up == 30s);
}
