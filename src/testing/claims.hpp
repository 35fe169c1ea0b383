// The claims of the conformance suite, each a function that throws a Mismatch.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/testing/conformance.hpp"
#include "src/testing/context.hpp"

namespace sluice::testing::detail {

// claims_history.cpp
void every_row_has_a_generator(Context& context);
void history_of_single_steps(Context& context);
void history_of_plans(Context& context);
void history_of_bound_keys(Context& context);
void instants_are_the_clocks(Context& context);
void history_of_moves(Context& context);

// claims_rules.cpp
void output_words_are_the_kernels(Context& context);
void states_grow(Context& context);

// claims_plan.cpp
void similar_keys_are_apart(Context& context);
void peeks_change_nothing(Context& context);
void refusals_change_nothing(Context& context);
void refused_plans_write_nothing(Context& context);
void plans_name_their_step(Context& context);
void every_form_answers_once(Context& context);
void batches_answer_in_place(Context& context);

// claims_alternatives.cpp
void one_alternative_is_admitted(Context& context);

// claims_faults.cpp
void duplicate_keys_are_errors(Context& context);
void invalid_keys_are_errors(Context& context);
void invalid_sizes_are_errors(Context& context);
void impossible_requests_are_errors(Context& context);
void other_kinds_are_errors(Context& context);

// claims_once.cpp
void ids_charge_once(Context& context);
void ids_are_forgotten(Context& context);

// claims_concurrent.cpp
void concurrent_callers_share(Context& context);
void concurrent_plans_are_atomic(Context& context);
void concurrent_callers_are_apart(Context& context);

// claims_time.cpp
void hints_are_exact(Context& context);
void clock_set_back(Context& context);
void states_are_kept(Context& context);

struct Check {
  std::string_view name;
  void (*run)(Context&);
  bool moves_time = false;   // needs ConformanceOptions::clock
  bool of_prefetch = false;  // holds also with ConformanceOptions::prefetch
};

/// All claims, in the order in which they are checked.
[[nodiscard]] std::span<const Check> checks() noexcept;

/// How the store breaks the claim, or an empty text.
[[nodiscard]] std::string run_check(const Check& check, Store& store,
                                    const ConformanceOptions& options, const std::string& prefix);

}  // namespace sluice::testing::detail
