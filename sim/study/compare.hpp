// Comparing two studies replication by replication: both have the same seeds, and so the same
// arrivals and delays. Threading: pure.
#pragma once

#include <string>

#include "sim/study/study_run.hpp"

namespace sluice::sim::scenario {

/// Makes a study sweep a parameter, instead of what it swept. Throws std::invalid_argument.
void sweep(Study& study, const std::string& path, const std::vector<Texts>& values);

/// Leaves one variant. Throws std::invalid_argument with the nearest name.
void keep_variant(Study& study, const std::string& name);

/// Throws std::invalid_argument with the remedy if a study has several rows, or if the two have
/// different seeds: their replications would be no pairs.
void check_pair(const Study& a, const Study& b);

/// If the warm-up of one of the first rows is automatic: gives all rows of both studies the longer
/// one, so that both count the same arrivals, and returns it. Throws as find_warm_up() does.
std::optional<Span> share_warm_up(Study& a, Study& b);

/// What is said of one figure of two studies.
struct Difference {
  Metric metric;
  Estimate value;            ///< of the second less the first, of the replications that have both
  std::string_view verdict;  ///< "higher", "lower", "no difference shown", "not known"
};

/// Of each headline figure. REQUIRES: a pair of check_pair().
[[nodiscard]] std::vector<Difference> differences(const StudyResult& a, const StudyResult& b);

/// A table of the headline figures: both means, and the paired difference with its interval and a
/// verdict. REQUIRES: a pair of check_pair().
[[nodiscard]] std::string compare(const StudyResult& a, const StudyResult& b,
                                  const std::string& name_a, const std::string& name_b);

}  // namespace sluice::sim::scenario
