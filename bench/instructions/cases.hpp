// The decisions whose instructions are counted. Each case runs on one thread, through the public
// classes.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::bench {

struct InstructionCase {
  const char* name;
  const char* what;
  /// Makes a limiter and calls it `times` times. Returns how many decisions were not the expected
  /// ones.
  std::uint64_t (*run)(std::uint64_t times);
  /// The most instructions of one decision that the test accepts; 0: any number.
  double most;
};

[[nodiscard]] std::span<const InstructionCase> instruction_cases() noexcept;

}  // namespace sluice::bench
