#include "sim/study/study_run.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <future>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <type_traits>

#include "sim/fleet/pilot.hpp"
#include "sim/study/verdicts.hpp"
#include "sluice/sim/interval.hpp"
#include "sluice/sim/random.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr std::uint64_t replication_seeds = 0x7265706c;  // a purpose of stream()
constexpr std::size_t most_replications = 1000;
constexpr auto report_every = std::chrono::milliseconds{100};

/// Runs tasks 0 to `count` - 1 on threads, whichever is next, until one returns false, and calls
/// `look` meanwhile. Throws what a task threw.
void run_tasks(std::size_t count, unsigned jobs, const std::function<bool(std::size_t)>& task,
               const std::function<void()>& look) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        if (!task(i)) next = count;
      }
    } catch (...) {
      next = count;
      throw;
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t most = std::min<std::size_t>(jobs != 0 ? jobs : cores, count);
  std::vector<std::future<void>> threads;
  try {
    while (threads.size() < most) threads.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {
    if (threads.empty()) throw;  // else those that could start do it all
  }
  for (const std::future<void>& thread : threads) {
    while (thread.wait_for(report_every) != std::future_status::ready) look();
  }
  look();
  for (std::future<void>& thread : threads) thread.get();
}

class StudyRun {
 public:
  StudyRun(const Study& study, const StudyOptions& options) : study_(study), options_(options) {
    result_.study = &study;
    for (std::size_t variant = 0; variant < study.variants.size(); ++variant) {
      for (std::size_t point = 0; point < study.points(); ++point) {
        result_.rows.push_back({variant, point, {}, {}, {}});
      }
    }
  }

  StudyResult run() {
    std::size_t target = study_.replications;
    if (find_warm_ups()) add(target);
    // Twice as many, until the interval is as narrow as was asked for.
    while (study_.precision != 0 && !result_.partial && !is_precise() &&
           target < most_replications) {
      target = std::min(2 * target, most_replications);
      add(target);
    }
    result_.imprecise = study_.precision != 0 && !result_.partial && !is_precise();
    judge(result_);
    return std::move(result_);
  }

 private:
  /// Fills in the warm-ups of the rows. False if it was stopped.
  bool find_warm_ups() {
    std::vector<Automatic> rows;
    for (Row& row : result_.rows) {
      const Scenario scenario = study_.scenario(row.variant, row.point);
      row.warm_up = scenario.warm_up;
      if (row.warm_up == auto_warm_up) rows.push_back({row, scenario, {}});
    }
    if (rows.empty()) return true;
    for (Automatic& each : rows) each.series.resize(pilots);
    progress_.all += rows.size() * pilots;
    std::atomic<bool> stopped{false};
    const auto task = [&](std::size_t i) {
      if (!run_pilot_of(rows[i % rows.size()], i / rows.size())) stopped.store(true);
      return !stopped.load();
    };
    run_tasks(rows.size() * pilots, options_.jobs, task, [this] { report(); });
    result_.partial = stopped.load();
    if (result_.partial) return false;
    std::vector<Span> longest(study_.points());
    for (const Automatic& each : rows) {
      Span& span = longest[each.row.point];
      span =
          std::max(span, placed(each.row, [&] { return warm_up_by(each.scenario, each.series); }));
    }
    for (const Automatic& each : rows) each.row.warm_up = longest[each.row.point];
    return true;
  }

  /// A row whose warm-up pilots find.
  struct Automatic {
    Row& row;
    Scenario scenario;
    std::vector<std::vector<std::uint64_t>> series;
  };

  /// What `function` returns; an error of it names the row.
  template <class Function>
  std::invoke_result_t<Function> placed(const Row& row, Function function) const {
    const auto text = [&](const std::exception& error) {
      return study_.name + study_.row_text(row.variant, row.point) + ": " + error.what();
    };
    try {
      return function();
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(text(error));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(text(error));
    }
  }

  /// False if it was stopped.
  bool run_pilot_of(Automatic& each, std::size_t pilot) {
    try {
      each.series[pilot] =
          placed(each.row, [&] { return run_pilot(each.scenario, pilot, {}, options_.stop); });
    } catch (const Stopped&) {
      return false;
    }
    runs_.fetch_add(1, std::memory_order_relaxed);  // for people
    return true;
  }

  /// Adds replications to each row, up to `target`. Replications come in order, so that a stopped
  /// study has the first ones of all rows.
  void add(std::size_t target) {
    const std::size_t before = result_.replications;
    const std::size_t rows = result_.rows.size();
    const std::size_t count = (target - before) * rows;
    for (Row& row : result_.rows) row.figures.resize(target);
    std::vector<std::vector<Objection>> objections(count);
    std::vector<char> done(count, 0);
    progress_.all += count;
    const auto task = [&](std::size_t i) {
      const bool ended = run_one(i % rows, before + i / rows, objections[i]);
      done[i] = ended ? 1 : 0;
      return ended;
    };
    run_tasks(count, options_.jobs, task, [this] { report(); });
    std::size_t complete = before;
    while (complete < target &&
           std::all_of(done.begin() + static_cast<std::ptrdiff_t>((complete - before) * rows),
                       done.begin() + static_cast<std::ptrdiff_t>((complete - before + 1) * rows),
                       [](char flag) { return flag != 0; })) {
      ++complete;
    }
    result_.partial = complete < target;
    result_.replications = complete;
    for (Row& row : result_.rows) {
      row.figures.resize(complete);
      if (complete == 0) row.first = {};  // of it, no judge is heard either
    }
    for (std::size_t i = 0; i < (complete - before) * rows; ++i) {
      for (const Objection& objection : objections[i]) {
        note_objection(result_, result_.rows[i % rows], before + i / rows, objection);
      }
    }
  }

  /// False if the run was stopped.
  bool run_one(std::size_t index, std::size_t replication, std::vector<Objection>& objections) {
    Row& row = result_.rows[index];
    Scenario scenario = study_.scenario(row.variant, row.point);
    scenario.seed = seed_of(study_, replication);
    scenario.warm_up = row.warm_up;
    std::uint64_t counted = 0;
    // Of a row in which the faults do nothing, nobody asks whether it recovers from them.
    const Span recovery = scenario.faults.empty() ? Span{0} : study_.judges.recovery;
    RunOptions options{.recovery = recovery, .stop = options_.stop, .progress = {}};
    options.progress = [&](Span reached, std::uint64_t events) {
      reached_.store(reached.count(), std::memory_order_relaxed);  // for people
      events_.fetch_add(events - std::exchange(counted, events), std::memory_order_relaxed);
    };
    RunResult result;
    try {
      // Only the limiters themselves can tell some errors, such as too long a hold.
      result = placed(row, [&] { return sim::run(scenario, options); });
    } catch (const Stopped&) {
      return false;
    }
    row.figures[replication] = result.figures;
    objections = result.objections;
    if (replication == 0) row.first = std::move(result);
    runs_.fetch_add(1, std::memory_order_relaxed);  // for people
    return true;
  }

  void report() {
    if (!options_.progress) return;
    progress_.done = runs_.load(std::memory_order_relaxed);              // for people
    progress_.reached = Span{reached_.load(std::memory_order_relaxed)};  // for people
    progress_.events = events_.load(std::memory_order_relaxed);          // for people
    options_.progress(progress_);
  }

  [[nodiscard]] bool is_precise() const {
    const Metric metric = sim::metric(study_.headline.front());
    return std::ranges::all_of(result_.rows, [&](const Row& row) {
      const Estimate estimate = row.estimate(metric, study_.confidence);
      // One replication has no interval.
      return !estimate.is_known() ||
             (row.figures.size() > 1 &&
              estimate.half_width <= study_.precision * std::abs(estimate.mean));
    });
  }

  const Study& study_;
  const StudyOptions& options_;
  StudyResult result_;
  StudyProgress progress_;
  std::atomic<std::size_t> runs_{0};
  std::atomic<Word> reached_{0};
  std::atomic<std::uint64_t> events_{0};
};

}  // namespace

Estimate estimate_of(std::span<const double> values, Range possible, double confidence) {
  Estimate result;
  result.of = values.size();
  std::vector<double> known;
  for (const double value : values) {
    if (std::isinf(value)) ++result.never;
    if (std::isfinite(value)) known.push_back(value);
  }
  result.replications = known.size();
  if (!result.is_known()) return result;
  const Interval interval =
      known.size() == 1 ? Interval{known.front(), 0} : student_interval(known, confidence);
  result.mean = interval.mean;
  result.half_width = interval.half_width;
  // The mean of equal values may differ from them in its last digits.
  result.low = std::min(std::max(interval.low(), possible.least), result.mean);
  result.high = std::max(std::min(interval.high(), possible.most), result.mean);
  return result;
}

Estimate Row::estimate(Metric metric, double confidence) const {
  std::vector<double> values;
  for (const Figures& each : figures) values.push_back(each[metric]);
  const MetricInfo& what = info(metric);
  return estimate_of(values, {what.least, what.most}, confidence);
}

std::uint64_t seed_of(const Study& study, std::size_t replication) {
  if (replication == 0) return study.seed;
  return stream(study.seed, replication, replication_seeds).next() %
         static_cast<std::uint64_t>(word_limit);
}

StudyResult run_study(const Study& study, const StudyOptions& options) {
  return StudyRun(study, options).run();
}

Study single_run(const Study& study, std::size_t variant, std::size_t point,
                 std::size_t replication, std::optional<Span> warm_up) {
  Study single = study;
  single.seed = seed_of(study, replication);
  single.replications = 1;
  single.precision = 0;
  single.expectations.clear();
  for (const Setting& setting : study.variants[variant].settings) {
    single.settings.push_back(setting);
  }
  for (std::size_t i = 0; i < study.sweeps.size(); ++i) {
    single.settings.push_back({study.sweeps[i].path, study.value(i, point)});
  }
  const Scenario scenario = study.scenario(variant, point);
  if (scenario.warm_up == auto_warm_up) {
    const Span cut = warm_up ? *warm_up : find_warm_up(scenario);
    single.settings.push_back({"run.warm_up", {std::to_string(cut.count()) + "us"}});
  }
  single.sweeps.clear();
  single.variants = {Variant{}};
  drop_idle(single);
  return single;
}

}  // namespace sluice::sim::scenario
