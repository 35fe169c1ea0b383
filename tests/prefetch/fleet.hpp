// A fleet of simulated processes that spend one quota through PrefetchStores, and a judge that
// counts the calls at the upstream. The model has crashes, lost calls and clocks that are set back.
// Threading: single-threaded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/prefetch_store.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::test {

enum class Spread { equal, zipf };

struct PrefetchFleetOptions {
  std::uint64_t seed = 1;
  std::size_t workers = 10;
  Quota quota = Quota::per_minute(10'000).burst(500);
  std::optional<PrefetchStoreOptions> prefetch{};  ///< none: every call is a trip
  /// Jobs of the whole fleet, as a part of the quota in percent; above 100: always enough.
  Word load = 200;
  Spread spread = Spread::equal;
  sim::Link link{sim::Delay::log_normal(Span{250}, Span{800}),
                 sim::Delay::log_normal(Span{250}, Span{800})};
};

struct PrefetchFleetResult {
  std::uint64_t calls = 0;
  std::uint64_t operations = 0;
  std::vector<std::uint64_t> calls_of;  ///< by worker
  std::vector<Word> waits;              ///< of each job, in microseconds
  std::string breach;                   ///< of the bound; empty: none

  [[nodiscard]] double jain() const;
  [[nodiscard]] Word wait_at(double quantile) const;
};

class PrefetchFleet {
 public:
  explicit PrefetchFleet(const PrefetchFleetOptions& options);
  ~PrefetchFleet();
  void run_for(Span span);
  [[nodiscard]] PrefetchFleetResult result() const;

 private:
  class Process;
  class Worker;

  void call(std::size_t worker, Time wanted);
  [[nodiscard]] std::string judge() const;

  PrefetchFleetOptions options_;
  VirtualClock clock_;
  sim::Timeline timeline_{clock_};
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  std::vector<std::unique_ptr<Worker>> workers_;
  testing::History calls_;
  std::vector<Word> waits_;
};

}  // namespace sluice::test
