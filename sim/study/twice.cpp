#include "sim/study/twice.hpp"

#include <fmt/format.h>

#include <vector>

#include "sluice/sim/run.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr std::size_t most_steps = 50'000'000;

std::string describe(const TraceStep& step) {
  return step.is_note ? fmt::format("{} of entity {} with {}", step.kind, step.entity, step.value)
                      : fmt::format("event {}", step.order);
}

/// Keeps the hash of each step of one run, and compares those of the next.
struct Comparison {
  std::vector<std::uint64_t> hashes;
  std::size_t next = 0;
  bool second = false;
  std::string difference;

  static void see(void* context, const TraceStep& step) {
    auto& self = *static_cast<Comparison*>(context);
    if (!self.second) {
      if (self.hashes.size() < most_steps) self.hashes.push_back(step.trace);
      return;
    }
    const std::size_t at = self.next++;
    if (!self.difference.empty() || at >= self.hashes.size()) return;
    if (self.hashes[at] == step.trace) return;
    self.difference = fmt::format("the runs differ from step {} on, at {} us: {}", at + 1,
                                  to_word(step.time), describe(step));
  }
};

}  // namespace

std::string run_both(const Scenario& one, const Scenario& other) {
  Comparison comparison;
  RunOptions options{.recovery = {}, .stop = nullptr, .progress = {}};
  options.observer = &Comparison::see;
  options.observed = &comparison;
  const RunResult first = sim::run(one, options);
  comparison.second = true;
  const RunResult second = sim::run(other, options);
  if (comparison.difference.empty() && first.trace != second.trace) {
    return fmt::format("the runs differ after {} steps", comparison.hashes.size());
  }
  return comparison.difference;
}

}  // namespace sluice::sim::scenario
