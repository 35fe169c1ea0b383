// Runs of a study: replications on all cores, intervals, verdicts. The result is the same under any
// number of threads. Threading: run_study() starts its own threads.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/study.hpp"
#include "sluice/sim/run.hpp"

namespace sluice::sim::scenario {

enum class Status : std::uint8_t { holds, fails, undecided };

/// What a figure can be.
struct Range {
  double least;
  double most;
};

/// A figure over replications: its mean, and its interval as far as it is possible.
struct Estimate {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double low = mean;
  double high = mean;
  double half_width = 0;         ///< of the interval before it is cut to what is possible
  std::size_t replications = 0;  ///< that have the figure; of one, there is no interval
  std::size_t never = 0;         ///< in so many, it had not happened when the run ended
  std::size_t of = 0;            ///< all replications

  [[nodiscard]] bool is_known() const noexcept { return replications != 0 && never == 0; }
};

/// Of the value of each replication: not a number if it has none, infinite if it never came.
[[nodiscard]] Estimate estimate_of(std::span<const double> values, Range possible,
                                   double confidence);

/// A variant at a point.
struct Row {
  std::size_t variant = 0;
  std::size_t point = 0;
  RunResult first;               ///< the first replication, with its charts
  std::vector<Figures> figures;  ///< of each replication
  Span warm_up{0};               ///< of all replications

  [[nodiscard]] Estimate estimate(Metric metric, double confidence) const;
};

struct Verdict {
  std::string text;
  Status status = Status::undecided;
  const Expectation* expectation = nullptr;
  std::size_t variant = 0;
  std::size_t point = 0;
  Estimate value;
};

/// What a judge says of all replications of a row.
struct Judgement {
  std::string judge;
  std::size_t variant = 0;
  bool objects = false;
  std::string text;
  std::optional<std::size_t> replication;  ///< the first that it objects to
  std::size_t point = 0;
};

struct StudyResult {
  const Study* study = nullptr;
  std::vector<Row> rows;
  std::vector<Verdict> verdicts;
  std::vector<Judgement> judgements;
  std::size_t replications = 0;  ///< of each row
  bool partial = false;          ///< stopped before all replications were done
  bool imprecise = false;        ///< Study::precision was not reached

  [[nodiscard]] Status status() const;
  [[nodiscard]] const Row& row(std::size_t variant, std::size_t point) const {
    return rows[variant * study->points() + point];
  }
};

/// How far a study has come.
struct StudyProgress {
  std::size_t done = 0;  ///< runs
  std::size_t all = 0;
  Span reached{0};  ///< of the newest run: its virtual time
  std::uint64_t events = 0;
};

struct StudyOptions {
  unsigned jobs = 0;  ///< threads; 0: one for each processor
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const StudyProgress&)> progress;  ///< called on the thread of run_study()
};

/// The seed of a replication, from 0: the first one is the study's own.
[[nodiscard]] std::uint64_t seed_of(const Study& study, std::size_t replication);

/// Pilots come first where the warm-up is automatic: of each variant at each point, and the
/// variants of a point, which are compared with one another, all have the longest. Throws what a
/// run and find_warm_up() throw. REQUIRES: the study outlives the result.
[[nodiscard]] StudyResult run_study(const Study& study, const StudyOptions& options = {});

/// A study of one run, which repeats a replication of a row. `warm_up`: of the row. Without it,
/// pilots find an automatic one of this variant alone.
[[nodiscard]] Study single_run(const Study& study, std::size_t variant, std::size_t point,
                               std::size_t replication, std::optional<Span> warm_up = {});

}  // namespace sluice::sim::scenario
