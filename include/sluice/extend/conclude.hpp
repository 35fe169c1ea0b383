// conclude(): the outcome of a plan from the verdicts on its steps, for implementations of stores.
#pragma once

#include <cstddef>
#include <span>

#include "sluice/extend/operation.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// The part of a step that conclude() needs.
struct AskedStep {
  const Operation* operation = nullptr;
  Word limit = 0;
  std::size_t output = 0;

  AskedStep() = default;
  explicit AskedStep(const Step& step) noexcept
      : operation(step.operation),
        limit(step.args[0]),
        output(output_count(*step.operation, step.table.size())) {}
};

/// Computes the outcome of a plan from the verdicts of its steps, all made at `at`, and delivers
/// it: the first failed step, else the refused step with the longest wait, else the step with the
/// least remaining, with the longest wait of all steps (zero except for reservations). `output`
/// contains the output words of all steps, one step after the other. For implementations of stores.
/// REQUIRES: asked and verdicts have the same size, 1 to Plan::max_steps, and `output` is complete.
void conclude(std::span<const AskedStep> asked, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept;

/// The same for steps.
void conclude(std::span<const Step> steps, std::span<const Verdict> verdicts,
              std::span<const Word> output, Time at, Source source, Completion& done) noexcept;

}  // namespace sluice
