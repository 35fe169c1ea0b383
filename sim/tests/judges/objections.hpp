// What the judges of a run say.
#pragma once

#include <algorithm>
#include <string_view>

#include "sluice/sim/run.hpp"

namespace sluice::test {

inline bool objects(const sim::RunResult& result, std::string_view judge) {
  return std::ranges::any_of(result.objections, [judge](const sim::Objection& objection) {
    return objection.judge == judge;
  });
}
inline bool has_looked(const sim::RunResult& result, std::string_view judge) {
  return std::ranges::find(result.judges, judge) != result.judges.end();
}

}  // namespace sluice::test
