#include "sluice/sim/random.hpp"

namespace sluice::sim {

SeededRng stream(std::uint64_t seed, std::uint64_t entity, std::uint64_t purpose) {
  std::uint64_t state = seed;
  for (const std::uint64_t word : {entity, purpose}) {
    state = SeededRng(state).next() ^ (word + 0x9e3779b97f4a7c15);
  }
  return SeededRng(state);
}

SeededRng states_of(SeededRng rng, std::uint64_t which) {
  constexpr std::uint64_t states = 0x737461746573;
  return stream(rng.next(), which, states);
}

}  // namespace sluice::sim
