// Random requests for the shared sliding window's setting. Threading: pure functions.
#include <array>

#include "sluice/decision.hpp"

#include "sluice/rules/shared_sliding_window.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::shared_sliding_window {
namespace {

Configuration any(Rng& rng) {
  Configuration config;
  config.args[0] = log_uniform(rng, 16);
  return config;
}
void draw(Rng& rng, const Operation& row, Arguments& args) {
  // Twelve days or more: an error has no time, so that no configuration may expire while the suite
  // runs on a store in real time.
  const Word keep_alive = rng.below(8) == 0 ? log_uniform(rng, 51) | Word{1} << 40
                                            : SharedSlidingWindowRule::max_keep_alive;
  if (row.id == shared_sliding_window_configure.id) {
    const Word longest = std::min(keep_alive, SharedSlidingWindowRule::max_interval);
    const Word interval = rng.below(2) == 0 ? longest : uniform(rng, 1, longest);
    const Word constant = rng.below(2) == 0 ? 0 : unlimited;
    args = {rng.below(6) == 0 ? constant : log_uniform(rng, 16), interval, uniform(rng, 0, 1),
            uniform(rng, 0, 2), keep_alive};
  } else if (row.id == shared_sliding_window_expect.id) {
    // Versions of configurations made in the first microseconds are small numbers.
    const Word version = rng.below(2) == 0 ? uniform(rng, 0, 4) : log_uniform(rng, 52);
    args = {log_uniform(rng, 16), version, rng.below(3) == 0 ? 0 : log_uniform(rng, 16), keep_alive,
            rng.below(3) == 0 ? log_uniform(rng, 52) : 0};
  } else {
    args = {log_uniform(rng, 16), keep_alive};
  }
}
bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  struct Flaw {
    std::size_t place;
    Word value;
  };
  static constexpr Word big = word_limit + 1;
  if (row.id == shared_sliding_window_configure.id) {
    static constexpr std::array<Flaw, 9> flaws{
        {{0, -1}, {0, 65'537}, {1, 0}, {1, big}, {2, 2}, {3, -1}, {3, 3}, {4, 0}, {4, 999}}};
    if (trial >= flaws.size()) return false;
    args = {10, 1000, 0, 0, 1000};
    args[flaws[trial].place] = flaws[trial].value;
    return true;
  }
  static constexpr std::array<Flaw, 8> of_expect{
      {{2, -1}, {2, INT64_MIN}, {2, 65'537}, {1, -1}, {3, 0}, {0, big}, {4, -1}, {4, big}}};
  static constexpr std::array<Flaw, 4> of_read{{{0, -1}, {0, big}, {1, 0}, {1, big}}};
  const bool reads = row.id == shared_sliding_window_config.id;
  if (trial >= (reads ? of_read.size() : of_expect.size())) return false;
  const Flaw flaw = reads ? of_read[trial] : of_expect[trial];
  args = reads ? Arguments{1, 1000} : Arguments{1, 1, 1, 1000};
  args[flaw.place] = flaw.value;
  return true;
}

}  // namespace

constinit const Generator generator{StateKind::shared_sliding_window, any, draw, impossible,
                                    nullptr};

}  // namespace sluice::testing::detail::shared_sliding_window
