// Running one replication twice, to find the first event in which both differ. Threading: one
// thread.
#pragma once

#include <string>

#include "sim/study/study.hpp"

namespace sluice::sim::scenario {

/// "" if both runs of the first row are the same; else a sentence about the first difference.
[[nodiscard]] std::string run_twice(const Study& study);

}  // namespace sluice::sim::scenario
