// The picture of prefetched units: what `hold` saves, and what it may cost.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "docs/pictures/pictures.hpp"
#include "docs/pictures/world.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/prefetch_store.hpp"

namespace sluice::pictures {
namespace {

constexpr double rate = 200;
constexpr double burst = 100;
constexpr std::size_t processes = 20;

struct Process {
  Process(Store& store, Span hold)
      : prefetch(std::make_unique<PrefetchStore>(store,
                                                 PrefetchStoreOptions{.hold = hold, .most = 200})),
        bucket(*prefetch, "api", Quota::per_second(200).burst(100)) {}
  std::unique_ptr<PrefetchStore> prefetch;
  TokenBucket bucket;
  Time frozen_until{};
};

/// The most calls of any interval beyond burst + rate * t, as a bucket that may overflow counts
/// them.
class Judge {
 public:
  void call(double at) {
    level_ = std::max(0.0, level_ - (at - last_) * rate) + 1;
    last_ = at;
    most_ = std::max(most_, level_);
    ++calls_;
  }
  [[nodiscard]] double overshoot() const { return std::max(0.0, most_ - burst); }
  [[nodiscard]] double calls() const { return calls_; }

 private:
  double level_ = 0;
  double last_ = 0;
  double most_ = 0;
  double calls_ = 0;
};

/// Two minutes of waves: a second at three times the rate, then two of calm. Now and then a process
/// freezes for up to `hold`, and then makes the calls that it has missed.
std::array<double, 2> run(Span hold) {
  World world;
  std::vector<Process> all;
  for (std::size_t i = 0; i < processes; ++i) all.emplace_back(*world.store, hold);
  Judge judge;
  for (int tick = 0; tick < 120'000; ++tick) {
    const double at = tick * 0.001;
    world.advance_to(at);
    const double wanted = tick % 3000 < 1000 ? 3 * rate : rate / 4;
    for (Process& one : all) {
      if (one.frozen_until > world.clock.now()) continue;
      if (world.happens(0.2, 0.001)) {
        one.frozen_until = world.clock.now() + hold * world.rng.below(100) / 100;
        continue;
      }
      const bool thawed = one.frozen_until > Time{};
      const int tries = thawed ? 50 : world.happens(wanted / processes, 0.001) ? 1 : 0;
      one.frozen_until = {};
      for (int i = 0; i < tries && one.bucket.try_acquire("key"); ++i) judge.call(at);
    }
  }
  double operations = 0;
  for (const Process& one : all) {
    const PrefetchStats stats = one.prefetch->stats();
    operations += static_cast<double>(stats.trips + stats.passed_on);
  }
  return {1000 * operations / judge.calls(), judge.overshoot()};
}

}  // namespace

void prefetch(std::ostream& out) {
  Block block;
  for (const double seconds : {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0}) {
    const auto [operations, overshoot] = run(Span{static_cast<Word>(seconds * 1e6 + 0.5)});
    block.add({seconds, operations, overshoot, rate * seconds});
  }
  block.print(out, "hold in seconds, operations per 1000 calls, overshoot, its bound");
}

}  // namespace sluice::pictures
