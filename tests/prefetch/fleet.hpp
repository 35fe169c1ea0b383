// A fleet of simulated processes that spend one quota through PrefetchStores, with crashes, pauses,
// partitions and failovers of the store, and a judge that counts the calls at the upstream.
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
  bool faults = false;
  sim::Link link{sim::Delay::log_normal(Span{250}, Span{800}),
                 sim::Delay::log_normal(Span{250}, Span{800})};
};

struct PrefetchFleetResult {
  std::uint64_t calls = 0;
  std::uint64_t operations = 0;
  std::vector<std::uint64_t> calls_of;  ///< by worker
  std::vector<Word> waits;              ///< of each job, in microseconds
  std::uint64_t crashes = 0, pauses = 0, partitions = 0, failovers = 0;
  std::string breach;  ///< of the bound; empty: none

  [[nodiscard]] double jain() const;
  [[nodiscard]] Word wait_at(double quantile) const;
};

/// The state of all keys, which a failover loses.
class ForgetfulStore final : public Store {
 public:
  explicit ForgetfulStore(VirtualClock& clock) : clock_(clock), inner_(make_virtual_store(clock)) {}
  void forget() { inner_ = make_virtual_store(clock_); }
  void execute(const Plan& plan, Completion done) noexcept override {
    inner_->execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  VirtualClock& clock_;
  std::unique_ptr<Store> inner_;
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

  void plan_faults(Span span);
  void on_fault(std::uint64_t value);
  void call(std::size_t worker, Time wanted);
  [[nodiscard]] std::string judge() const;

  PrefetchFleetOptions options_;
  VirtualClock clock_;
  sim::Timeline timeline_{clock_};
  Time start_ = clock_.now();
  ForgetfulStore store_{clock_};
  SeededRng faults_;
  std::vector<std::unique_ptr<Worker>> workers_;
  testing::History calls_;
  std::vector<Time> failovers_;
  std::vector<Word> waits_;
  PrefetchFleetResult counts_;
};

/// A small fleet with every kind of fault; the seed says which, when, and the quota and options.
[[nodiscard]] PrefetchFleetResult run_with_faults(std::uint64_t seed);

}  // namespace sluice::test
