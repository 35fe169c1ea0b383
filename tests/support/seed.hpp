// Seeds of randomized tests: each failure prints the line that repeats it.
// Threading: one Seed per test case, used by the thread that runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/rng.hpp"

namespace sluice::test {

/// SLUICE_SEED from the environment, else drawn from the system's generator once per process.
[[nodiscard]] std::uint64_t seed();

/// `count` times SLUICE_TEST_SCALE (default 1), at least `least`.
[[nodiscard]] std::size_t scaled(std::size_t count, std::size_t least = 1);

/// `SLUICE_SEED=… path/of/test "test name"`: what to type to run this test again.
[[nodiscard]] std::string repeat_line(const std::string& test_name);

/// The draws of one test case. Put `CAPTURE(random.repeat())` after it, and Catch2 prints the line
/// with every failure; the destructor prints it too if the case ends by an exception.
class Random final : public Rng {
 public:
  explicit Random(std::string test_name);
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;
  ~Random() override;

  std::uint64_t next() override { return rng_.next(); }
  /// A uniform draw from [low, high]. REQUIRES: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high);
  /// True once in `n` draws.
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  [[nodiscard]] const std::string& repeat() const noexcept { return repeat_; }

 private:
  std::string repeat_;
  SeededRng rng_;
  int exceptions_;
};

}  // namespace sluice::test
