// The study on which the tests of studies build.
#pragma once

#include "sim/study/study.hpp"

namespace sluice::test {

/// Two workers, two seconds.
inline sim::scenario::Study small_study() {
  sim::scenario::Study study;
  study.name = "small";
  study.replications = 5;
  study.settings = {{"run.duration", {"2s"}},
                    {"fleet.workers", {"2"}},
                    {"upstream.limits", {"80/s"}},
                    {"limiter.limit", {"90/s"}}};
  study.variants = {{"a", {}}, {"b", {{"limiter.wait", {"poll"}}}}};
  return study;
}

}  // namespace sluice::test
