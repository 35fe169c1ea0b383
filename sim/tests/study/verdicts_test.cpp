// Verdicts of a study: their worst, ratios of variants, what must happen. Expectations at their
// borders are in the model of study_models_test.cpp.
#include <cmath>
#include <vector>

#include "sim/study/study_run.hpp"
#include "sim/study/verdicts.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;

namespace {

/// A result of one row with these values of the goodput.
struct Judged {
  Study study;
  StudyResult result;

  explicit Judged(std::vector<double> values) {
    study.variants = {Variant{}};
    result.rows.push_back({0, 0, {}, {}});
    for (const double value : values) {
      result.rows.front().figures.emplace_back()[Metric::goodput] = value;
    }
    result.replications = values.size();
  }
  Status status(const Expectation& expectation) {
    study.expectations = {expectation};
    result.study = &study;
    result.verdicts.clear();
    result.judgements.clear();
    judge(result);
    return result.verdicts.at(0).status;
  }
};

Expectation goodput() {
  Expectation expectation;
  expectation.metric = "goodput";
  return expectation;
}
Expectation least(double value) {
  Expectation expectation = goodput();
  expectation.least = value;
  return expectation;
}
Expectation equals(double value) {
  Expectation expectation = goodput();
  expectation.equals = value;
  return expectation;
}

}  // namespace

TEST_CASE("the status of a study is its worst verdict") {
  Judged judged({9, 10, 11});
  (void)judged.status(least(0));
  CHECK(judged.result.status() == Status::holds);
  judged.result.partial = true;
  CHECK(judged.result.status() == Status::undecided);
  judged.result.partial = false;
  (void)judged.status(least(10));
  CHECK(judged.result.status() == Status::undecided);
  judged.result.judgements.push_back({"a judge", 0, true, "why", 0, 0});
  CHECK(judged.result.status() == Status::fails);
  (void)judged.status(least(1000));
  CHECK(judged.result.status() == Status::fails);
}

TEST_CASE("ratios of variants are taken replication by replication") {
  Judged judged({10, 20, 40});
  judged.study.variants = {{"a", {}}, {"b", {}}};
  judged.result.rows.push_back({1, 0, {}, {}});
  for (const double value : {5.0, 10.0, 20.0}) {
    judged.result.rows[1].figures.emplace_back()[Metric::goodput] = value;
  }
  Expectation twice = equals(2);
  twice.variant = "a";
  twice.of = "b";
  CHECK(judged.status(twice) == Status::holds);
  for (Figures& figures : judged.result.rows[1].figures) figures[Metric::goodput] = 0;
  CHECK(judged.status(twice) == Status::undecided);
  // How many times as long what never came took is not known.
  Expectation longer = least(2);
  longer.variant = "a";
  longer.of = "b";
  for (Figures& figures : judged.result.rows[0].figures) figures[Metric::goodput] = INFINITY;
  for (Figures& figures : judged.result.rows[1].figures) figures[Metric::goodput] = 5;
  CHECK(judged.status(longer) == Status::undecided);
}

TEST_CASE("what must happen in some replication, and what in none") {
  const auto judged = [](double crashes, bool sometimes) {
    Judged all({1, 1});
    for (Figures& figures : all.result.rows[0].figures) figures[Metric::crashes] = 0;
    all.result.rows[0].figures[1][Metric::crashes] = crashes;
    (sometimes ? all.study.judges.sometimes : all.study.judges.never) = {"crashes"};
    all.result.study = &all.study;
    judge(all.result);
    REQUIRE(all.result.judgements.size() == 1);
    const Judgement& judgement = all.result.judgements.front();
    CHECK(judgement.replication.has_value() == (crashes > 0));
    if (judgement.replication) CHECK(*judgement.replication == 1);
    return judgement.objects;
  };
  CHECK_FALSE(judged(1, true));
  CHECK(judged(0, true));
  CHECK(judged(1, false));
  CHECK_FALSE(judged(0, false));
}
