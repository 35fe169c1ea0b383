// Random draws: the same everywhere for the same seed, and without bias. Threading:
// single-threaded.
#include "sluice/rng.hpp"

#include <unistd.h>

#include <array>
#include <set>
#include <thread>

#include "tests/catch.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;

TEST_CASE("a seed gives the same draws on every platform", "[core][rng]") {
  // Worked out apart from this code, from the published definitions of SplitMix64 and xoshiro256**.
  const std::pair<std::uint64_t, std::array<std::uint64_t, 5>> table[] = {
      {0,
       {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c,
        0xbba5ad4a1f842e59}},
      {1,
       {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7,
        0xb27a48e29a233673}},
      {0xdeadbeef,
       {0xc5555444a74d7e83, 0x65c30d37b4b16e38, 0x54f773200a4efa23, 0x429aed75fb958af7,
        0xfb0e1dd69c255b2e}},
  };
  for (const auto& [seed, draws] : table) {
    SeededRng rng(seed);
    for (const std::uint64_t draw : draws) CHECK(rng.next() == draw);
  }
}

TEST_CASE("a bounded draw is uniform", "[core][rng]") {
  SeededRng rng(test::seed());
  INFO(test::repeat_line("a bounded draw is uniform"));
  CHECK(rng.below(0) == 0);
  CHECK(rng.below(1) == 0);
  // Of 3 * 2^62 values: draws modulo that would give the first third twice as often.
  for (const std::uint64_t side : {std::uint64_t{1}, std::uint64_t{1} << 62}) {
    const std::uint64_t sides = side == 1 ? 6 : 3;
    constexpr std::uint64_t throws_each = 10'000;
    std::array<double, 6> count{};
    for (std::uint64_t i = 0; i < sides * throws_each; ++i) {
      ++count.at(rng.below(sides * side) / side);
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < sides; ++i) {
      const double off = count[i] - double(throws_each);
      chi_square += off * off / double(throws_each);
    }
    CHECK(chi_square < 40);  // five degrees of freedom: above it once in six million seeds
  }
}

TEST_CASE("the system's generator does not repeat itself", "[core][rng]") {
  SystemRng rng;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(rng.next());
  CHECK(seen.size() == 1'000);
}

TEST_CASE("every thread, and a forked child, draws what no other draws", "[core][rng][realtime]") {
  std::set<std::uint64_t> seen;
  const auto draw = [&] { return thread_rng().next(); };
  for (int i = 0; i < 100; ++i) seen.insert(draw());
  std::thread([&] {
    for (int i = 0; i < 100; ++i) seen.insert(draw());
  }).join();
  CHECK(seen.size() == 200);

  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  CHECK(test::in_child([&] {
    const std::uint64_t drawn = draw();
    return ::write(ends[1], &drawn, sizeof drawn) == sizeof drawn;
  }));
  std::uint64_t of_child = 0;
  CHECK(::read(ends[0], &of_child, sizeof of_child) == sizeof of_child);
  for (const int end : ends) ::close(end);
  CHECK(of_child != draw());
}
