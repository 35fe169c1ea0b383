// What befalls a fleet.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/fleet/fleet_run.hpp"
#include "sim/judges/judges.hpp"

namespace sluice::sim::scenario {

using Kind = FaultPlan::Kind;

namespace {

std::uint32_t millionths(double share) {
  return static_cast<std::uint32_t>(std::llround(share * 1'000'000));
}

}  // namespace

/// The workers that a share is: the first ones, rounded up.
std::size_t FleetRun::some(double share) const {
  const auto all = static_cast<double>(workers_.size());
  return std::min(static_cast<std::size_t>(std::ceil(share * all)), workers_.size());
}

Task<> FleetRun::befall(const FaultPlan& fault) {
  co_await sleep(fault.at);
  if (concerns_limiter(fault) && !std::exchange(disturbed_, true)) {
    recorder_.counts.early_failures = store_failures();
  }
  if (fault.kind == Kind::rolling_deploy) co_return co_await deploy(fault);
  active_.push_back(&fault);
  strike(fault);
  apply_faults();
  const bool ends = fault.length != Span{0} || fault.kind == Kind::store_failover ||
                    fault.kind == Kind::store_lost || fault.kind == Kind::worker_crash;
  if (!ends) co_return;
  co_await sleep(fault.length);
  std::erase(active_, &fault);
  apply_faults();
}

Task<> FleetRun::deploy(const FaultPlan& fault) {
  for (Worker& worker : workers_) {
    if (worker.process) {
      stop_process(worker);
      start_process(worker);
    }
    co_await sleep(fault.length / static_cast<Word>(workers_.size()));
  }
}

/// What happens at one instant.
void FleetRun::strike(const FaultPlan& fault) {
  switch (fault.kind) {
    case Kind::store_failover:
      lost_writes_ += store_->unreplicated();
      return store_->fail_over();
    case Kind::store_lost:
      lost_writes_ += store_->writes();
      return store_->lose_all();
    case Kind::store_paused:
      return server_.pause(world_.now() + fault.length);
    case Kind::upstream_second:
      return api_.add_limit(fault.limit);
    case Kind::worker_pause:
      for (std::size_t i = 0; i < some(fault.share); ++i) {
        Time& until = workers_[i].frozen_until;
        until = std::max(until, world_.now() + fault.length);
      }
      return;
    case Kind::clock_step:
      for (std::size_t i = 0; i < some(fault.share); ++i) {
        if (workers_[i].clock != nullptr) workers_[i].clock->step(fault.step);
      }
      return;
    default:
      return;
  }
}

/// Brings everything into the state that the active faults together call for. Of several factors of
/// one kind, the fault that began last has its way.
void FleetRun::apply_faults() {
  apply_to_store();
  apply_to_links();
  apply_to_api();
  apply_to_workers();
}

void FleetRun::apply_to_store() {
  auto state = StoreServer::State::up;
  double slowness = 1;
  for (const FaultPlan* const fault : active_) {
    const bool refuses = fault->kind == Kind::store_down || fault->kind == Kind::store_failover ||
                         fault->kind == Kind::store_lost;
    if (refuses) state = StoreServer::State::refusing;
    if (fault->kind == Kind::store_silent && state == StoreServer::State::up) {
      state = StoreServer::State::silent;
    }
    if (fault->kind == Kind::store_slow) slowness = fault->factor;
  }
  server_.set_state(state);
  server_.slow_down(static_cast<std::uint32_t>(std::llround(slowness * 1000)));
}

void FleetRun::apply_to_links() {
  const ApiOptions& api = scenario_.upstream;
  const LinkFaults usual{false, millionths(api.lost), millionths(api.answer_lost),
                         millionths(api.doubled)};
  for (Worker& worker : workers_) {
    worker.link_faults = {};
    worker.api_faults = usual;
  }
  for (const FaultPlan* const fault : active_) {
    for (std::size_t i = 0; i < some(fault->share); ++i) {
      LinkFaults& link = workers_[i].link_faults;
      if (fault->kind == Kind::network_cut) link.cut = true;
      if (fault->kind == Kind::network_loss) link.lost = millionths(fault->factor);
      if (fault->kind == Kind::answers_lost) link.answer_lost = millionths(fault->factor);
      if (fault->kind == Kind::network_doubled) link.doubled = millionths(fault->factor);
      LinkFaults& api_way = workers_[i].api_faults;
      if (fault->kind == Kind::upstream_cut) api_way.cut = true;
      if (fault->kind == Kind::upstream_loss) api_way.lost = millionths(fault->factor);
      if (fault->kind == Kind::upstream_answers_lost)
        api_way.answer_lost = millionths(fault->factor);
      if (fault->kind == Kind::upstream_doubled) api_way.doubled = millionths(fault->factor);
    }
  }
}

void FleetRun::apply_to_api() {
  bool down = false;
  double slowness = 1;
  double servers = 1;
  double limit = 1;
  for (const FaultPlan* const fault : active_) {
    if (fault->kind == Kind::upstream_down) down = true;
    if (fault->kind == Kind::upstream_slow) slowness = fault->factor;
    if (fault->kind == Kind::upstream_servers) servers = fault->factor;
    if (fault->kind == Kind::upstream_limit) limit = fault->factor;
  }
  api_.set_down(down);
  api_.slow_down(slowness);
  api_.set_servers(servers);
  api_.scale_limit(limit);
}

void FleetRun::apply_to_workers() {
  std::vector<bool> away(workers_.size(), false);
  for (const FaultPlan* const fault : active_) {
    const bool crashed = fault->kind == Kind::worker_crash;
    const auto all = static_cast<double>(workers_.size());
    const auto kept = static_cast<std::size_t>(std::llround(fault->share * all));
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (crashed && i < some(fault->share)) away[i] = true;
      if (fault->kind == Kind::scale && i >= kept) away[i] = true;
    }
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (away[i]) stop_process(workers_[i]);
    if (!away[i] && !workers_[i].process) start_process(workers_[i]);
  }
}

}  // namespace sluice::sim::scenario
