// Shrinking a failing run: fewer and weaker faults, fewer workers, tenants and seconds, while the
// same judge objects. Threading: one thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "sim/study/study.hpp"

namespace sluice::sim::scenario {

struct Shrunk {
  Study study;
  std::size_t runs = 0;  ///< that were tried
  bool fails = false;    ///< false: the run that was given does not fail
  bool partial = false;  ///< it was stopped before no change was left to try
};

/// The judges that object to a study of one run. Throws Stopped once `stop` is set.
[[nodiscard]] std::vector<std::string> objectors(const Study& study,
                                                 const std::atomic<bool>* stop = nullptr);

/// Delta debugging (A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
/// IEEE TSE 28(2), 2002): a change is kept if `judge` still objects, until no change is. The draws
/// of what stays do not depend on what goes, because each entity and purpose has its own stream.
/// `progress` is called before each run. Once `stop` is set, it returns what it has. REQUIRES: a
/// study of single_run().
[[nodiscard]] Shrunk shrink(const Study& study, const std::string& judge,
                            const std::function<void(const Shrunk&)>& progress = {},
                            const std::atomic<bool>* stop = nullptr);

/// The same for any question to a study, which is asked of none that is no scenario.
[[nodiscard]] Shrunk shrink_while(const Study& study,
                                  const std::function<bool(const Study&)>& objects,
                                  const std::function<void(const Shrunk&)>& progress = {});

}  // namespace sluice::sim::scenario
