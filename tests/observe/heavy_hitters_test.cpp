// The bound of the sketch, on streams with few and with many busy keys.
#include "src/observe/heavy_hitters.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sluice/rng.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

using detail::HeavyHitters;

/// A key i of `keys` has the weight 1 / (i + 1)^exponent.
class Zipf {
 public:
  Zipf(std::size_t keys, double exponent) {
    double sum = 0;
    for (std::size_t i = 0; i < keys; ++i) {
      sum += std::pow(static_cast<double>(i + 1), -exponent);
      sums_.push_back(sum);
    }
  }
  std::size_t draw(Rng& rng) const {
    const double at = static_cast<double>(rng.below(1U << 30)) / (1U << 30) * sums_.back();
    return static_cast<std::size_t>(std::upper_bound(sums_.begin(), sums_.end(), at) -
                                    sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

/// Keys of one name belong to each of so many limiters.
constexpr std::size_t limiters = 3;

void check_stream(std::size_t counters, std::size_t keys, double exponent, std::uint64_t updates,
                  Rng& rng) {
  const Zipf zipf(keys, exponent);
  std::vector<std::uint64_t> truth(keys);
  HeavyHitters sketch(counters, 20);
  for (std::uint64_t i = 0; i < updates; ++i) {
    const std::size_t key = zipf.draw(rng);
    ++truth[key];
    // A hash of few values: keys of one hash, and chains in the table.
    const std::uint64_t hash = exponent > 1 ? key / limiters % 16 : key * 0x9e3779b97f4a7c15;
    sketch.add(std::to_string(key % limiters), std::to_string(key / limiters), hash);
  }
  std::uint64_t sum = 0;
  std::map<std::size_t, std::uint64_t> found;
  for (const auto& counter : sketch.counters()) {
    const std::size_t key = std::stoul(counter.key) * limiters + std::stoul(counter.limiter);
    CHECK(counter.count >= truth[key]);
    CHECK(counter.count - counter.error <= truth[key]);
    CHECK(counter.error <= updates / counters);
    sum += counter.count;
    CHECK(found.emplace(key, counter.count).second);
  }
  CHECK(sum == updates);
  for (std::size_t key = 0; key < keys; ++key) {
    if (truth[key] > updates / counters) CHECK(found.count(key) == 1);
  }
}

}  // namespace

TEST_CASE("counts of the sketch are within its bound", "[observe][busy]") {
  Random random("counts of the sketch are within its bound");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < scaled(20); ++i) {
    check_stream(1 + random.below(64), 1 + random.below(300),
                 0.5 + 0.1 * static_cast<double>(random.below(15)), 1 + random.below(20'000),
                 random);
  }
  check_stream(256, 100'000, 1, scaled(300'000), random);
}

TEST_CASE("counts of the sketch are within its bound after ten million calls",
          "[observe][busy][statistics]") {
  Random random("counts of the sketch are within its bound after ten million calls");
  CAPTURE(random.repeat());
  check_stream(256, 100'000, 1, 10'000'000, random);
}

}  // namespace sluice::test
