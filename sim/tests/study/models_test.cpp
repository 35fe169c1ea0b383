// Models of shrink and compare: what they must answer, by brute force and by the formulas of
// textbooks, of random questions. Threading: single-threaded.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "sim/judges/judges.hpp"
#include "sim/scenario/effects.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/output.hpp"
#include "sim/study/shrink.hpp"
#include "sim/study/study_run.hpp"
#include "sim/study/verdicts.hpp"
#include "sim/tests/study/textbook.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::asked_of;
using test::has_infinite;
using test::infinite;
using test::is_near;
using test::random_figures;
using test::Textbook;

namespace {

using Kind = FaultPlan::Kind;

double percent(test::Random& random) { return static_cast<double>(random.between(1, 100)) / 100; }

/// A study of one run, which never runs: only questions are asked of it.
Study random_plan(test::Random& random) {
  Study study;
  study.variants = {Variant{}};
  const auto set = [&](const char* path, Word low, Word high, const char* unit) {
    study.settings.push_back({path, {std::to_string(random.between(low, high)) + unit}});
  };
  set("run.duration", 20'000, 90'000, "ms");
  set("fleet.workers", 1, 40, "");
  set("jobs.keys", 1, 40, "");
  study.settings.push_back({"upstream.servers", {"64"}});
  study.settings.push_back({"upstream.limits", {"640/s"}});
  study.settings.push_back({"client.timeout", {"1s"}});
  study.settings.push_back({"clock.offset", {"1s"}});
  std::vector<Kind> kinds;
  for (const FaultInfo& info : faults_info()) kinds.push_back(info.kind);
  for (Word count = random.between(0, 7); count > 0; --count) {
    const auto at =
        static_cast<std::size_t>(random.between(0, static_cast<Word>(kinds.size()) - 1));
    const FaultInfo& info = info_of(kinds[at]);
    kinds.erase(kinds.begin() + static_cast<std::ptrdiff_t>(at));
    FaultPlan fault{.kind = info.kind, .at = Span{random.between(0, 19'999'999)}};
    if (info.has(FaultInfo::takes_length)) fault.length = Span{random.between(1, 20'000'000)};
    if (info.has(FaultInfo::takes_share)) fault.share = percent(random);
    if (info.has(FaultInfo::share_of_messages))
      fault.factor = percent(random);
    else if (info.has(FaultInfo::takes_factor))
      fault.factor = static_cast<double>(random.between(2, 60));
    if (info.has(FaultInfo::takes_step)) fault.step = Span{random.between(1, 1'000'000)};
    if (info.has(FaultInfo::takes_limit)) fault.limit = {random.between(1, 99), 1s};
    study.faults.push_back(fault);
  }
  drop_idle(study);
  return study;
}

bool is_scenario(const Study& study) {
  try {
    validate_recovery(study.scenario(0, 0), study.judges.recovery);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Study with(Study study, const std::string& path, const std::string& text) {
  std::erase_if(study.settings, [&](const Setting& each) { return each.path == path; });
  study.settings.push_back({path, {text}});
  return study;
}

/// How much a fault does: 0 is nothing.
double strength(const FaultPlan& fault) {
  return std::abs(fault.factor - info_of(fault.kind).harmless());
}

/// All that are smaller by one step: the documentation of shrink, once more.
std::vector<Study> smaller_than(const Study& study) {
  std::vector<Study> all;
  const Scenario now = study.scenario(0, 0);
  for (std::size_t i = 0; i < study.faults.size(); ++i) {
    Study one = study;
    one.faults.erase(one.faults.begin() + static_cast<std::ptrdiff_t>(i));
    all.push_back(one);
    const FaultPlan& fault = study.faults[i];
    const FaultInfo& info = info_of(fault.kind);
    const auto add = [&](auto change) {
      one = study;
      change(one.faults[i]);
      all.push_back(one);
    };
    if (fault.length > 1ms) add([](FaultPlan& f) { f.length = f.length / 2; });
    if (info.has(FaultInfo::takes_share)) {
      if (fault.kind == Kind::scale && 1 - fault.share > 0.05) {
        add([](FaultPlan& f) { f.share = 1 - (1 - f.share) / 2; });
      }
      if (fault.kind != Kind::scale && fault.share > 0.05) {
        add([](FaultPlan& f) { f.share = f.share / 2; });
      }
    }
    if (info.has(FaultInfo::takes_factor) && strength(fault) > 0.1) {
      add([&](FaultPlan& f) { f.factor = info.harmless() + (f.factor - info.harmless()) / 2; });
    }
  }
  for (const Word tenths : {5, 8, 9}) {
    const Span shorter = now.duration * tenths / 10;
    all.push_back(with(study, "run.duration", std::to_string(shorter.count()) + "us"));
  }
  const auto fewer = [&](const char* path, std::uint32_t count) {
    for (const std::uint32_t less : {1U, count / 4, count / 2, count - 1}) {
      if (less >= 1 && less < count) all.push_back(with(study, path, std::to_string(less)));
    }
  };
  fewer("fleet.workers", now.fleet.workers);
  fewer("jobs.keys", now.jobs.keys);
  for (Study& each : all) {
    drop_idle(each);
    if (each.faults.empty()) each.judges.recovery = Span{0};
  }
  return all;
}

std::uint64_t hash_of(const Study& study) {
  const Scenario s = study.scenario(0, 0);
  SeededRng rng(static_cast<std::uint64_t>(s.duration.count()) * 31 + s.fleet.workers);
  std::uint64_t hash = rng.next() ^ s.jobs.keys;
  for (const FaultPlan& fault : s.faults) {
    SeededRng mix(hash ^ static_cast<std::uint64_t>(fault.kind));
    hash = mix.next() + static_cast<std::uint64_t>(fault.length.count()) +
           static_cast<std::uint64_t>(std::llround(1e6 * (fault.share + 7 * fault.factor)));
  }
  return SeededRng(hash).next();
}

/// Every fault is one of before, at its time, and does no more.
bool is_part_of(const Study& small, const Study& whole) {
  const Scenario s = small.scenario(0, 0);
  const Scenario w = whole.scenario(0, 0);
  bool holds = s.duration <= w.duration && s.fleet.workers <= w.fleet.workers &&
               s.jobs.keys <= w.jobs.keys && s.upstream.servers == w.upstream.servers;
  for (const FaultPlan& fault : small.faults) {
    const auto same = std::ranges::find(whole.faults, fault.kind, &FaultPlan::kind);
    const bool is_scale = fault.kind == Kind::scale;
    holds = holds && same != whole.faults.end() && same->at == fault.at &&
            same->step == fault.step && same->limit == fault.limit &&
            fault.length <= same->length &&
            (is_scale ? fault.share >= same->share : fault.share <= same->share) &&
            strength(fault) <= strength(*same);
  }
  return holds;
}

}  // namespace

TEST_CASE("shrink leaves nothing that one more step would make smaller, whatever the judge") {
  const std::string name =
      "shrink leaves nothing that one more step would make smaller, whatever the judge";
  test::Random random(name);
  CAPTURE(random.repeat());
  std::size_t changed = 0;
  std::size_t stopped = 0;
  const auto is_enough = [&](std::size_t lives) {
    return lives >= test::scaled(100) && changed > 0 && stopped > 0;
  };
  for (std::size_t life = 0; life < 1000 && !is_enough(life); ++life) {
    Study study = random_plan(random);
    if (!study.faults.empty()) study.judges.recovery = Span{random.between(1, 20'000'000)};
    if (!is_scenario(study)) study.judges.recovery = Span{0};
    const std::uint64_t salt = random.next();
    const auto objects = [&](const Study& each) {
      return hash_of(each) == hash_of(study) || (hash_of(each) ^ salt) % 3 == 0;
    };
    const std::size_t stop_at =
        random.one_in(3) ? static_cast<std::size_t>(random.between(1, 30)) : 0;
    std::size_t shown = 0;
    std::set<std::string> asked;
    const Shrunk shrunk = shrink_while(
        study,
        [&](const Study& each) {
          if (shown == stop_at) throw Stopped();
          REQUIRE(is_scenario(each));
          REQUIRE(is_part_of(each, study));
          return objects(each);
        },
        [&](const Shrunk& now) {
          CHECK(now.runs == ++shown);
          CHECK((now.runs == 1 || objects(now.study)));
        });
    CHECK(shrunk.runs == shown);
    if (shrunk.partial) ++stopped;
    if (stop_at == 1) CHECK_FALSE(shrunk.fails);
    if (shrunk.fails) CHECK(objects(shrunk.study));
    Study without_idle = shrunk.study;
    drop_idle(without_idle);
    CHECK(to_toml(without_idle, "r") == to_toml(shrunk.study, "r"));
    if (!shrunk.fails || shrunk.partial) continue;
    if (hash_of(shrunk.study) != hash_of(study)) ++changed;
    for (const Study& smaller : smaller_than(shrunk.study)) {
      CHECK_FALSE(
          (is_scenario(smaller) && hash_of(smaller) != hash_of(shrunk.study) && objects(smaller)));
    }
  }
  CHECK(changed > 0);
  CHECK(stopped > 0);
}

TEST_CASE("shrink returns what no judge objects to") {
  test::Random random("shrink returns what no judge objects to");
  CAPTURE(random.repeat());
  const Study study = random_plan(random);
  const Shrunk shrunk = shrink_while(study, [](const Study&) { return false; });
  CHECK_FALSE(shrunk.fails);
  CHECK(shrunk.runs == 1);
  CHECK(to_toml(shrunk.study, "r") == to_toml(study, "r"));
}

namespace {

/// Studies of one row each, with the same replications.
struct Pair {
  Study study;
  StudyResult a;
  StudyResult b;

  Pair(test::Random& random, std::size_t replications) {
    study.variants = {Variant{}};
    study.settings = {{"run.duration", {"60s"}}, {"client.timeout", {"1s"}}};
    study.faults = {{.kind = Kind::upstream_down, .at = 10s, .length = 10s}};  // 40 s remain
    study.confidence = random.one_in(2) ? 0.99 : 0.95;
    study.headline.clear();
    for (const Metric metric : asked_of) study.headline.emplace_back(info(metric).name);
    for (StudyResult* const result : {&a, &b}) {
      result->study = &study;
      result->rows.push_back({0, 0, {}, random_figures(random, replications), {}});
      result->replications = replications;
    }
  }
};

std::vector<double> values_of(const StudyResult& result, Metric metric) {
  std::vector<double> values;
  for (const Figures& each : result.rows[0].figures) values.push_back(each[metric]);
  return values;
}

}  // namespace

TEST_CASE("compare says of each figure what the paired differences show, with their sign") {
  test::Random random(
      "compare says of each figure what the paired differences show, with their "
      "sign");
  CAPTURE(random.repeat());
  std::set<std::string_view> seen;
  for (std::size_t life = 0; life < test::scaled(400); ++life) {
    Pair pair(random, static_cast<std::size_t>(random.between(1, 9)));
    pair.a.partial = random.one_in(4);
    pair.b.partial = random.one_in(4);
    const auto all = differences(pair.a, pair.b);
    REQUIRE(all.size() == std::size(asked_of));
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(info(asked_of[i]).name);
      const auto left = values_of(pair.a, asked_of[i]);
      const auto right = values_of(pair.b, asked_of[i]);
      std::vector<double> paired;
      for (std::size_t k = 0; k < left.size(); ++k) {
        if (std::isfinite(left[k]) && std::isfinite(right[k])) paired.push_back(right[k] - left[k]);
      }
      const Textbook book(paired, pair.study.confidence);
      std::string_view expected = "not known";
      if (book.count >= 2 && !has_infinite(left) && !has_infinite(right)) {
        // Values are whole numbers, and the table has four digits.
        if (book.half != 0 && std::abs(std::abs(book.mean) - book.half) < 0.001 * book.half)
          continue;
        expected = book.mean - book.half > 0   ? "higher"
                   : book.mean + book.half < 0 ? "lower"
                                               : "no difference shown";
        CHECK(all[i].value.mean == Approx(book.mean).margin(1e-9));
        CHECK(all[i].value.half_width == Approx(book.half).epsilon(0.001).margin(1e-9));
        const double most = asked_of[i] == Metric::share_429 ? 100 : infinite;
        CHECK(is_near(all[i].value.low, std::max(book.mean - book.half, -most), book.half));
        CHECK(is_near(all[i].value.high, std::min(book.mean + book.half, most), book.half));
      }
      CHECK(all[i].metric == asked_of[i]);
      CHECK(all[i].verdict == expected);
      seen.insert(expected);
    }
    const std::string text = compare(pair.a, pair.b, "first", "second");
    CHECK(text.find("difference of second - first") != std::string::npos);
    CHECK((text.find("PARTIAL") != std::string::npos) == (pair.a.partial || pair.b.partial));
    CHECK(text.find("first") < text.find("second"));
    const std::string percent = pair.study.confidence == 0.99 ? "99" : "95";
    CHECK(text.find(", " + percent + " % intervals") != std::string::npos);
    for (const auto& [metric, value, verdict] : all) {  // in the order of the head
      std::size_t at = text.find(info(metric).title);
      for (const StudyResult* const side : {&pair.a, &pair.b}) {
        const Estimate one = side->rows[0].estimate(metric, pair.study.confidence);
        at = text.find(figure_text(one, info(metric).unit), at);
      }
      at = text.find(figure_text(value, info(metric).unit), at);
      const std::size_t end = text.find('\n', text.find(info(metric).title));
      CHECK(text.find(verdict, at) < end);
    }
  }
  CHECK(seen.size() == 4);
}

TEST_CASE("a figure says how much is known of it") {
  const auto text = [](const std::vector<double>& values, Range possible, std::string_view unit) {
    return figure_text(estimate_of(values, possible, 0.99), unit);
  };
  const Range share{0, 100};
  const Range any{0, infinite};
  CHECK(text({4, 4, 4, 4}, share, "%") == "4 %");
  CHECK(text({40, 41, 39, 40}, share, "%") == "40 ±2.38 %");
  CHECK(text({0, 0, 0, 4}, share, "%") == "1 (0 to 6.84) %");
  CHECK(text({100, 100, 96}, share, "%") == "98.7 (85.4 to 100) %");
  CHECK(text({9'999, 9'999}, any, "s") == "9999 s");
  CHECK(text({-12'345, -12'345}, {-infinite, infinite}, "") == "-12,345");
  CHECK(text({7}, any, "s") == "7 s (1 run)");
  CHECK(text({NAN, 7, NAN}, any, "s") == "7 s (1 of 3 runs)");
  CHECK(text({infinite, 7, infinite}, any, "s") == "not in 2 of 3 runs");
  CHECK(text({NAN, NAN}, any, "s") == "-");
  CHECK(text({}, any, "s") == "-");
}
