// The claims of the conformance suite, each a function that throws a Mismatch.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/testing/conformance.hpp"
#include "src/testing/claims_concurrent.hpp"
#include "src/testing/claims_faults.hpp"
#include "src/testing/claims_history.hpp"
#include "src/testing/claims_once.hpp"
#include "src/testing/claims_plan.hpp"
#include "src/testing/claims_rules.hpp"
#include "src/testing/claims_time.hpp"

namespace sluice::testing::detail {

struct Check {
  std::string_view name;
  void (*run)(Context&);
  bool moves_time = false;  // needs ConformanceOptions::clock
  bool of_leased = false;   // holds also with ConformanceOptions::leased
};

/// All claims, in the order in which they are checked.
[[nodiscard]] std::span<const Check> checks() noexcept;

/// How the store breaks the claim, or an empty text.
[[nodiscard]] std::string run_check(const Check& check, Store& store,
                                    const ConformanceOptions& options, const std::string& prefix);

}  // namespace sluice::testing::detail
