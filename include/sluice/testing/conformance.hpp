// The conformance suite: checks the contract of Store on any store, including your own. It needs no
// test framework:
//
//     const auto report = sluice::testing::check_conformance(store);
//     if (!report) std::cerr << report.text();
//
// The store may have any clock: the suite replays each history through the kernels at the times in
// the decisions, and requires the same integers. Threading: one thread calls check_conformance();
// some claims start threads, which have ended when it returns.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/testing/detail/claims_concurrent.hpp"
#include "sluice/testing/detail/claims_faults.hpp"
#include "sluice/testing/detail/claims_history.hpp"
#include "sluice/testing/detail/claims_once.hpp"
#include "sluice/testing/detail/claims_plan.hpp"
#include "sluice/testing/detail/claims_rules.hpp"
#include "sluice/testing/detail/claims_time.hpp"
#include "sluice/testing/options.hpp"

namespace sluice::testing {

/// One claim about the store, and whether it holds.
struct CheckedClaim {
  std::string_view name;  ///< a sentence: "a refused plan leaves every key as it was"
  bool ok = false;
  std::string failure;  ///< the expected and the actual result, and the seed that repeats it
};

/// The result of a run. Converts to true if every claim holds.
struct Report {
  std::uint64_t seed = 0;
  std::vector<CheckedClaim> claims;

  [[nodiscard]] explicit operator bool() const noexcept {
    for (const CheckedClaim& claim : claims) {
      if (!claim.ok) return false;
    }
    return !claims.empty();
  }

  /// True if the claim of this name was checked and does not hold.
  [[nodiscard]] bool rejects(sluice::detail::TextArg name) const noexcept {
    for (const CheckedClaim& claim : claims) {
      if (claim.name == name.view()) return !claim.ok;
    }
    return false;
  }

  /// One line a claim, with the reasons of failures.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const CheckedClaim& claim : claims) {
      out += claim.ok ? "ok    " : "FAIL  ";
      out += claim.name;
      if (!claim.ok) out += "\n      " + claim.failure;
      out += '\n';
    }
    return out;
  }
};

namespace detail {

struct Check {
  std::string_view name;
  void (*run)(Context&);
  bool moves_time = false;  // needs ConformanceOptions::clock
  bool of_leased = false;   // holds also with ConformanceOptions::leased
};

inline constexpr Check checks[] = {
    {"every operation of the table can be checked", every_row_has_a_generator, false, true},
    {"the instant of a decision is the store's time", instants_are_the_clocks},
    {"every decision of a long history is the kernel's", history_of_single_steps},
    {"every plan of a long history is decided as its steps together", history_of_plans},
    {"a key that was bound is the same key", history_of_bound_keys},
    {"output words are those of the kernel", output_words_are_the_kernels},
    {"a state of any size survives", states_grow},
    {"keys that look alike are different keys", similar_keys_are_apart, false, true},
    {"a peek changes nothing", peeks_change_nothing},
    {"a refusal changes nothing", refusals_change_nothing},
    {"a refused plan leaves every key as it was", refused_plans_write_nothing},
    {"a plan names the step that decides it", plans_name_their_step, false, true},
    {"the same key twice in one plan is an error", duplicate_keys_are_errors},
    {"an invalid key is an error", invalid_keys_are_errors},
    {"a plan without steps, or with too many, is an error", invalid_sizes_are_errors},
    {"a request that can never be admitted is an error, not a refusal",
     impossible_requests_are_errors},
    {"a key of another kind of rule is an error", other_kinds_are_errors},
    {"an id charges once, however often it is used", ids_charge_once},
    {"every form of a call gives its answer once", every_form_answers_once},
    {"a batch answers each plan in its place", batches_answer_in_place},
    {"concurrent callers get no more than the quota, and no less", concurrent_callers_share, false,
     true},
    {"concurrent plans are all or nothing", concurrent_plans_are_atomic, false, true},
    {"concurrent callers with keys of their own do not affect each other",
     concurrent_callers_are_apart},
    {"the hint is exact to the microsecond", hints_are_exact, true},
    {"decisions follow the clock when it moves", history_of_moves, true},
    {"a clock that is set back adds no units and locks no key", clock_set_back, true},
    {"a state counts until it expires", states_are_kept, true},
    {"an id is kept for its time", ids_are_forgotten, true},
};

inline std::string run_check(const Check& check, Store& store, const ConformanceOptions& options,
                             const std::string& prefix) {
  Context context(store, options, prefix, check.name);
  try {
    check.run(context);
    return {};
  } catch (const Mismatch& mismatch) {
    return mismatch.text;
  } catch (const std::exception& error) {
    return std::string("an exception: ") + error.what();
  }
}

}  // namespace detail

/// Checks every claim on `store`, by keys with the prefix of the run and plans of one tag each. The
/// report contains all claims; `on_failure` is called for each failure. Takes about a second on a
/// store in memory. Throws only std::bad_alloc, and what std::thread throws if it makes no thread.
inline Report check_conformance(Store& store, ConformanceOptions options = {},
                                const std::function<void(const CheckedClaim&)>& on_failure = {}) {
  if (options.seed == 0) options.seed = detail::choose_seed();
  const std::string prefix = detail::make_prefix(options);
  Report report{options.seed, {}};
  for (const detail::Check& check : detail::checks) {
    if (check.moves_time && options.clock == nullptr) continue;
    if (options.leased && !check.of_leased) continue;
    CheckedClaim claim{check.name, false, detail::run_check(check, store, options, prefix)};
    claim.ok = claim.failure.empty();
    if (!claim.ok) {
      claim.failure += "\n      repeat with SLUICE_SEED=" + std::to_string(options.seed) +
                       " or ConformanceOptions::seed";
      if (on_failure) on_failure(claim);
    }
    report.claims.push_back(std::move(claim));
  }
  return report;
}

}  // namespace sluice::testing
