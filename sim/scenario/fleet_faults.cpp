// What befalls a fleet.
#include <cmath>

#include "sim/scenario/fleet_run.hpp"

namespace sluice::sim::scenario {

using Kind = FaultPlan::Kind;

namespace {

std::uint32_t millionths(double share) {
  return static_cast<std::uint32_t>(std::llround(share * 1'000'000));
}

}  // namespace

/// Calls `act` for this share of the workers, the first ones, rounded up.
template <class Do>
void FleetRun::for_share(double share, Do act) {
  const auto all = static_cast<double>(workers_.size());
  const auto some = static_cast<std::size_t>(std::ceil(share * all));
  for (std::size_t i = 0; i < std::min(some, workers_.size()); ++i) act(workers_[i]);
}

Task<> FleetRun::befall(FaultPlan fault) {
  co_await sleep(fault.at);
  if (fault.kind == Kind::rolling_deploy) co_return co_await deploy(fault);
  begin_fault(fault);
  if (fault.length == Span{0} && fault.kind != Kind::store_failover &&
      fault.kind != Kind::store_lost && fault.kind != Kind::worker_crash) {
    co_return;  // for good
  }
  co_await sleep(fault.length);
  end_fault(fault);
}

Task<> FleetRun::deploy(FaultPlan fault) {
  for (Worker& worker : workers_) {
    stop_process(worker);
    start_process(worker);
    co_await sleep(fault.length / static_cast<Word>(workers_.size()));
  }
}

void FleetRun::begin_fault(const FaultPlan& fault) {
  switch (fault.kind) {
    case Kind::store_down:
      return server_.set_state(StoreServer::State::refusing);
    case Kind::store_failover:
      lost_writes_ += store_->unreplicated();
      store_->fail_over();
      return server_.set_state(StoreServer::State::refusing);
    case Kind::store_lost:
      lost_writes_ += store_->writes();
      store_->lose_all();
      return server_.set_state(StoreServer::State::refusing);
    case Kind::store_silent:
      return server_.set_state(StoreServer::State::silent);
    case Kind::store_paused:
      return server_.pause(world_.now() + fault.length);
    case Kind::store_slow:
      return server_.slow_down(static_cast<std::uint32_t>(std::llround(fault.factor * 1000)));
    case Kind::network_cut:
      return for_share(fault.share, [](Worker& worker) { worker.link_faults.cut = true; });
    case Kind::network_loss:
      return for_share(fault.share,
                       [&](Worker& worker) { worker.link_faults.lost = millionths(fault.factor); });
    case Kind::answers_lost:
      return for_share(fault.share, [&](Worker& worker) {
        worker.link_faults.answer_lost = millionths(fault.factor);
      });
    case Kind::network_doubled:
      return for_share(fault.share, [&](Worker& worker) {
        worker.link_faults.doubled = millionths(fault.factor);
      });
    case Kind::upstream_down:
      return api_.set_down(true);
    case Kind::upstream_slow:
      return api_.slow_down(fault.factor);
    case Kind::upstream_servers:
      return api_.set_servers(fault.factor);
    case Kind::upstream_limit:
      return api_.scale_limit(fault.factor);
    case Kind::upstream_second:
      return api_.add_limit(fault.limit);
    case Kind::worker_crash:
      return for_share(fault.share, [this](Worker& worker) { stop_process(worker); });
    case Kind::worker_pause:
      return for_share(fault.share,
                       [&](Worker& worker) { worker.frozen_until = world_.now() + fault.length; });
    case Kind::scale:
      for (std::size_t i = workers_.size(); i > 0; --i) {
        const auto kept = std::llround(fault.share * static_cast<double>(workers_.size()));
        if (static_cast<long long>(i) > kept) stop_process(workers_[i - 1]);
      }
      return;
    case Kind::clock_step:
      return for_share(fault.share, [&](Worker& worker) {
        if (worker.clock != nullptr) worker.clock->step(fault.step);
      });
    case Kind::rolling_deploy:
      return;
  }
}

void FleetRun::end_fault(const FaultPlan& fault) {
  switch (fault.kind) {
    case Kind::store_failover:
    case Kind::store_lost:
    case Kind::store_down:
    case Kind::store_silent:
      return server_.set_state(StoreServer::State::up);
    case Kind::store_slow:
      return server_.slow_down(1000);
    case Kind::network_cut:
    case Kind::network_loss:
    case Kind::answers_lost:
    case Kind::network_doubled:
      return for_share(fault.share, [](Worker& worker) { worker.link_faults = {}; });
    case Kind::upstream_down:
      return api_.set_down(false);
    case Kind::upstream_slow:
      return api_.slow_down(1);
    case Kind::upstream_servers:
      return api_.set_servers(1);
    case Kind::upstream_limit:
      return api_.scale_limit(1);
    case Kind::worker_crash:
    case Kind::scale:
      for (Worker& worker : workers_) {
        if (!worker.process) start_process(worker);
      }
      return;
    default:
      return;
  }
}

}  // namespace sluice::sim::scenario
