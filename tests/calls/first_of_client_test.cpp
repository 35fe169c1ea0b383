// Jobs that take the first of several keys of an API, in a World: they use the quotas of all keys,
// and ask the store rarely. test_calls_client "[.figures]" prints the table of docs/calls.md.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <memory>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/sluice.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr int jobs = 60;
constexpr Span round_trip = 1ms;
constexpr Span warm_up = 10s;
constexpr Span measured = 5min;
constexpr std::array<Word, 3> quotas{60, 120, 300};  // a minute

struct Figures {
  double used = 0;        ///< of the sum of the quotas
  double operations = 0;  ///< a grant
  std::array<int, 3> grants{};
};

class Jobs {
 public:
  Jobs(std::uint64_t seed, int processes) : world_({.seed = seed}) {
    for (int i = 0; i < processes; ++i) {
      processes_.push_back(std::make_unique<Process>(world_));
    }
  }

  Figures run() {
    for (int i = 0; i < jobs; ++i) {
      net::co_spawn(world_, work(*processes_[static_cast<std::size_t>(i) % processes_.size()]),
                    Rethrow{});
    }
    world_.run_until(world_.now() + warm_up);
    const auto operations_before = operations();
    const auto before = grants_;
    world_.run_until(world_.now() + measured);
    Figures figures;
    int all = 0;
    for (std::size_t i = 0; i < quotas.size(); ++i) {
      figures.grants[i] = grants_[i] - before[i];
      all += figures.grants[i];
    }
    figures.used = all / (480.0 * (measured / 1min));
    figures.operations = static_cast<double>(operations() - operations_before) / all;
    return figures;
  }

 private:
  struct Process {
    explicit Process(World& world)
        : link(world.connect(
              {sim::Delay::constant(round_trip / 2), sim::Delay::constant(round_trip / 2)})) {
      std::vector<std::vector<Claim>> alternatives;
      for (const Word quota : quotas) {
        buckets.emplace_back(*link, "key-" + std::to_string(quota), Quota::per_minute(quota));
        alternatives.push_back({{buckets.back(), "k"}});
      }
      keys = std::make_unique<FirstOf>(first_of(std::move(alternatives)));
    }
    std::unique_ptr<sim::RemoteStore> link;
    std::vector<TokenBucket> buckets;
    std::unique_ptr<FirstOf> keys;
  };

  [[nodiscard]] std::uint64_t operations() const {
    std::uint64_t all = 0;
    for (const auto& each : processes_) all += each->link->operations();
    return all;
  }
  net::awaitable<void> work(Process& process) {
    for (;;) {
      const Grants grant =
          co_await asio::async_acquire(*process.keys, Deadline::never(), net::use_awaitable);
      ++grants_[grant.alternative()];
      co_await asio::sleep_for(world_.clock(), 1s, net::use_awaitable);
    }
  }

  World world_;
  std::array<int, 3> grants_{};
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace

TEST_CASE("jobs use the quotas of all their keys", "[calls][first_of]") {
  const Figures figures = Jobs(seed(), 1).run();
  CAPTURE(figures.operations, figures.grants[0], figures.grants[1], figures.grants[2]);
  CHECK(figures.used >= 0.99);
  CHECK(figures.used <= 1.01);
  CHECK(figures.operations <= 2);
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    CHECK(figures.grants[i] >= quotas[i] * (measured / 1min) * 99 / 100);
  }
}

TEST_CASE("figures of the first of several keys", "[.figures]") {
  for (const int processes : {1, 2, 4, 20}) {
    const Figures figures = Jobs(seed(), processes).run();
    std::printf("%2d processes: %.3f of the quotas, %.2f operations a grant, %d %d %d\n", processes,
                figures.used, figures.operations, figures.grants[0], figures.grants[1],
                figures.grants[2]);
  }
}

}  // namespace sluice::test
