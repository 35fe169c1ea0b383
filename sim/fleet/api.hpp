// Api: the upstream of a scenario, with its limits, its servers and the way to it. Threading: the
// thread of the World.
#pragma once

#include <memory>
#include <optional>

#include "sim/fleet/task.hpp"
#include "sluice/sim/rehearse.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/sim/scenario.hpp"
#include "sluice/sim/store_server.hpp"

namespace sluice::sim::scenario {

class Api {
 public:
  Api(World& world, const ApiOptions& options, Span timeout);

  /// One call. `way` draws its delays, so that they do not depend on other calls. `faults`: of the
  /// way of its worker, which are looked at when a message leaves. A call that is lost is answered
  /// 0 after the timeout; without one, at once. REQUIRES: `faults` lives as long as the World runs.
  Task<ApiAnswer> call(SeededRng& way, const LinkFaults& faults);

  // Faults.
  void set_down(bool down) noexcept { down_ = down; }
  void slow_down(double factor) noexcept;
  void set_servers(double factor);
  void scale_limit(double factor);
  void add_limit(const ApiLimit& limit) { upstream_.add_limit(limit); }

  [[nodiscard]] const Upstream& upstream() const noexcept { return upstream_; }
  /// Sums over its servers since the start; zero if it has any number of them.
  [[nodiscard]] ResourceStats servers() const noexcept {
    return servers_ ? servers_->stats() : ResourceStats{};
  }

 private:
  struct Call;

  Task<> serve_for(std::shared_ptr<Call> call, SeededRng way, const LinkFaults& faults);
  Task<> serve_copy(SeededRng way, const LinkFaults& faults);
  Task<std::optional<ApiAnswer>> serve(SeededRng& way, const LinkFaults& faults);
  Task<int> work(SeededRng& way);
  [[nodiscard]] auto sleep(DelayProcess& delay, SeededRng& rng) {
    return asio::sleep_for(world_.clock(), delay.sample(world_.now(), rng));
  }

  World& world_;
  ApiOptions options_;
  Span timeout_;
  DelayProcess to_;
  DelayProcess from_;
  DelayProcess latency_;
  Upstream upstream_;
  std::optional<Resource> servers_;
  bool down_ = false;
  Word slowness_ = 1000;  // in thousandths
  double servers_factor_ = 1;
  double limit_factor_ = 1;
  Word working_ = 0;
  Word crowding_;  // in millionths
  Word failures_;
  std::uint64_t row_version_ = 0;  // of the row that calls change, with ApiOptions::conflicts
};

}  // namespace sluice::sim::scenario
