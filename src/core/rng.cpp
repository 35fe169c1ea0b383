// The only place in the library that draws real randomness.
#include "sluice/rng.hpp"

#include <bit>
#include <random>

#include "sluice/detail/fork_count.hpp"
#include "src/util/lasting.hpp"

namespace sluice {

std::uint64_t Rng::below(std::uint64_t bound) {
  if (bound <= 1) return 0;
  // Reject the draws above the largest multiple of `bound`.
  const std::uint64_t reject_below = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t draw = next();
    if (draw >= reject_below) return draw % bound;
  }
}

SeededRng::SeededRng(std::uint64_t seed) noexcept {
  for (auto& word : state_) {  // SplitMix64
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

std::uint64_t SeededRng::next() noexcept {
  auto& s = state_;
  const std::uint64_t result = std::rotl(s[1] * 5, 7) * 9;
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

std::uint64_t SystemRng::next() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

namespace {

/// Seeded anew in a forked child, which must not draw what its parent draws.
class ThreadRng final : public Rng {
 public:
  std::uint64_t next() override {
    static thread_local SeededRng rng(SystemRng().next());
    static thread_local unsigned forks = detail::fork_count();
    if (const unsigned now = detail::fork_count(); now != forks) {
      rng = SeededRng(SystemRng().next());
      forks = now;
    }
    return rng.next();
  }
};

}  // namespace

Rng& thread_rng() noexcept {
  static detail::Lasting<ThreadRng> rng;
  return rng.object;
}

}  // namespace sluice
