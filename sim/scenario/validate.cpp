// What a scenario cannot be.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/scenario/parameters.hpp"
#include "sluice/sim/scenario.hpp"

namespace sluice::sim {
namespace {

using Arrive = ArrivalOptions::Kind;
using Limit = LimiterOptions::Kind;

constexpr Span longest_run = std::chrono::hours{24 * 31};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

std::string seconds(Span span) {
  return std::to_string(static_cast<double>(span.count()) / 1'000'000) + " s";
}

void validate_run(const Scenario& s) {
  require(s.duration > Span{0} && s.duration <= longest_run,
          "run.duration must be more than 0 and at most 31 days, got " + seconds(s.duration));
  require(s.warm_up >= Span{0} && s.warm_up < s.duration,
          "run.warm_up must be less than run.duration (" + seconds(s.duration) + "), got " +
              seconds(s.warm_up));
  require(s.fleet.workers >= 1 && s.fleet.workers <= 5000,
          "fleet.workers must be 1 to 5000, got " + std::to_string(s.fleet.workers));
  require(s.jobs.keys >= 1, "jobs.keys must be 1 or more, got 0");
}

void validate_arrivals(const Scenario& s) {
  const ArrivalOptions& a = s.arrivals;
  require(a.kind != Arrive::bursts || !a.bursts.empty(),
          "arrivals.kind is bursts, and arrivals.bursts is empty");
  require(std::ranges::is_sorted(a.bursts, {}, &ArrivalOptions::Burst::at),
          "arrivals.bursts must be in the order of their times");
  require(a.kind != Arrive::trace || !a.trace.empty(),
          "arrivals.kind is trace, and there is no trace: name a file by arrivals.file");
  require(std::ranges::is_sorted(a.trace, {}, &ArrivalOptions::Traced::at),
          "the times of a trace must not go back");
}

void validate_limiter(const Scenario& s) {
  const LimiterOptions& l = s.limiter;
  require(l.limit.events >= 1, "limiter.limit must be 1 or more");
  const bool alone = l.scope == LimiterOptions::Scope::per_process;
  require(!alone || l.limit.events >= s.fleet.workers || l.kind == Limit::token_bucket ||
              l.kind == Limit::none,
          "limiter.limit of " + std::to_string(l.limit.events) + " cannot be shared out to " +
              std::to_string(s.fleet.workers) + " processes");
  require(!alone || !l.gates, "limiter.gates need limiter.scope = \"shared\"");
  require(l.wait == LimiterOptions::Wait::queue || !l.gates,
          "limiter.gates need limiter.wait = \"queue\"");
  const Word cost = s.jobs.cost;
  const Word share = alone ? static_cast<Word>(s.fleet.workers) : 1;
  const Word burst = l.burst != 0 ? l.burst : l.limit.events;
  const bool counts_burst = l.kind == Limit::token_bucket || l.kind == Limit::concurrency;
  const Word most = std::max<Word>((counts_burst ? burst : l.limit.events) / share, 1);
  const bool has_most = l.kind != Limit::none && l.kind != Limit::ideal;
  require(!has_most || cost <= (l.kind == Limit::slot_lock ? 1 : most),
          "jobs.cost of " + std::to_string(cost) +
              " is more than the limiter ever grants at once (" +
              std::to_string(l.kind == Limit::slot_lock ? 1 : most) + ")");
  require(l.wait == LimiterOptions::Wait::queue || l.kind != Limit::slot_lock,
          "limiter.kind = \"slot_lock\" needs limiter.wait = \"queue\"");
  require(l.kind != Limit::ideal || !s.upstream.limits.empty(),
          "limiter.kind = \"ideal\" needs upstream.limits");
  require(
      l.shadow != Limit::slot_lock && l.shadow != Limit::ideal && l.shadow != Limit::concurrency,
      "limiter.shadow must be a bucket or a window");
  require(l.shadow == Limit::none || l.wait == LimiterOptions::Wait::skip,
          "limiter.shadow needs limiter.wait = \"skip\"");
}

void validate_fault(const Scenario& s, const FaultPlan& fault) {
  using Kind = FaultPlan::Kind;
  const std::string name =
      "the fault " + std::string(scenario::name_of(fault.kind)) + " at " + seconds(fault.at);
  require(fault.at >= Span{0} && fault.at < s.duration, name + " must begin within run.duration");
  require(fault.length >= Span{0}, name + " must last 0s or longer");
  const bool is_share = fault.kind == Kind::network_loss || fault.kind == Kind::answers_lost ||
                        fault.kind == Kind::network_doubled;
  require(!is_share || fault.factor <= 1, name + ": its factor must be 0 to 1");
  require(fault.kind != Kind::upstream_second || fault.limit.limit > 0,
          name + " needs a limit, as \"300/min\"");
  require(fault.kind != Kind::upstream_limit || !s.upstream.limits.empty(),
          name + " needs upstream.limits");
  require(fault.kind != Kind::upstream_servers || s.upstream.servers != 0,
          name + " needs upstream.servers");
  constexpr double most_limit = 1e8;
  require(fault.kind != Kind::upstream_limit ||
              fault.factor * static_cast<double>(s.upstream.limits.front().limit) <= most_limit,
          name + " would raise the limit above 100000000");
  const bool ends = fault.kind != Kind::worker_pause && fault.kind != Kind::store_paused &&
                    fault.kind != Kind::rolling_deploy;
  require(ends || fault.length > Span{0}, name + " needs a length: for = \"10s\"");
}

}  // namespace

void validate(const Scenario& scenario) {
  validate_run(scenario);
  validate_arrivals(scenario);
  validate_limiter(scenario);
  require(scenario.client.pause >= Span{1} && scenario.client.pause <= std::chrono::hours{24},
          "client.pause must be 1us to 1d, got " + seconds(scenario.client.pause));
  require(scenario.store.timeout > Span{0}, "store.timeout must be more than 0");
  for (const FaultPlan& fault : scenario.faults) validate_fault(scenario, fault);
}

}  // namespace sluice::sim
