// Verdicts: whether the figures are what a study expects, and what the judges say of all
// replications. Threading: pure.
#pragma once

#include "sim/study/study_run.hpp"

namespace sluice::sim::scenario {

/// Adds an objection of a run, of which the first of each judge and row is kept.
void note_objection(StudyResult& result, const Row& row, std::size_t replication,
                    const Objection& objection);

/// Fills in the verdicts and the judgements.
void judge(StudyResult& result);

/// "calls answered 429 of 'local': at most 0.1 %".
[[nodiscard]] std::string describe(const Study& study, const Expectation& expectation,
                                   std::size_t variant, std::size_t point);

}  // namespace sluice::sim::scenario
