// What a scenario cannot be.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/fleet/pilot.hpp"
#include "sim/scenario/effects.hpp"
#include "sim/scenario/parameters.hpp"
#include "sluice/sim/scenario.hpp"

namespace sluice::sim {
namespace {

using Arrive = ArrivalOptions::Kind;
using Limit = LimiterOptions::Kind;

constexpr Word most_phases = 1'000'000;
constexpr double most_burst = 10'000'000;
constexpr Span longest_run = std::chrono::hours{24 * 31};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

using scenario::seconds_text;

void validate_run(const Scenario& s) {
  require(s.duration > Span{0} && s.duration <= longest_run,
          "run.duration must be more than 0 and at most 31 days, got " + seconds_text(s.duration));
  require(s.warm_up == auto_warm_up || (s.warm_up >= Span{0} && s.warm_up < s.duration),
          "run.warm_up must be less than run.duration (" + seconds_text(s.duration) + "), got " +
              seconds_text(s.warm_up));
  require(s.events_per_instant >= 1, "run.events_per_instant must be 1 or more, got 0");
  require(s.fleet.workers >= 1 && s.fleet.workers <= 5000,
          "fleet.workers must be 1 to 5000, got " + std::to_string(s.fleet.workers));
  require(s.jobs.keys >= 1, "jobs.keys must be 1 or more, got 0");
}

void validate_trace(const Scenario& s) {
  const ArrivalOptions& a = s.arrivals;
  require(a.trace && !a.trace->empty(),
          "arrivals.kind is trace, and there is no trace: name a file by arrivals.file");
  require(std::ranges::is_sorted(*a.trace, {}, &ArrivalOptions::Traced::at),
          "the times of a trace must not go back");
  const auto last = std::ranges::max_element(*a.trace, {}, &ArrivalOptions::Traced::key);
  require(last->key < s.jobs.keys, "a trace's keys must be below jobs.keys (" +
                                       std::to_string(s.jobs.keys) + "), got " +
                                       std::to_string(last->key));
}

void validate_phases(const Scenario& s) {
  constexpr Span shortest = std::chrono::milliseconds{1};
  constexpr Span longest = std::chrono::hours{24 * 365};
  for (const auto& [name, mean] : {std::pair("arrivals.busy_for", s.arrivals.busy_for),
                                   std::pair("arrivals.calm_for", s.arrivals.calm_for)}) {
    require(mean >= shortest && mean <= longest,
            std::string(name) + " must be 1ms to 365d, got " + seconds_text(mean));
    // Each worker follows all phases.
    require(s.duration / mean <= most_phases,
            std::string(name) + " of " + seconds_text(mean) + " makes more than " +
                std::to_string(most_phases) + " phases in run.duration (" +
                seconds_text(s.duration) +
                "): take longer phases, or arrivals.kind = \"poisson\" of their mean rate");
  }
}

void validate_bursts(const Scenario& s) {
  const ArrivalOptions& a = s.arrivals;
  require(!a.bursts.empty(), "arrivals.kind is bursts, and arrivals.bursts is empty");
  for (const ArrivalOptions::Burst& burst : a.bursts) {
    const double jobs = static_cast<double>(burst.jobs) * a.load;
    require(jobs <= most_burst, "a burst of " + std::to_string(burst.jobs) +
                                    " jobs at arrivals.load = " + std::to_string(a.load) +
                                    " has more than 10000000 jobs: lower one of both");
  }
  require(a.bursts.back().at < s.duration,
          "the last of arrivals.bursts, at " + seconds_text(a.bursts.back().at) +
              ", must come within run.duration (" + seconds_text(s.duration) + ")");
}

void validate_arrivals(const Scenario& s) {
  const ArrivalOptions& a = s.arrivals;
  require(std::ranges::is_sorted(a.bursts, {}, &ArrivalOptions::Burst::at),
          "arrivals.bursts must be in the order of their times");
  if (a.kind == Arrive::bursts) validate_bursts(s);
  if (a.kind == Arrive::mmpp) validate_phases(s);
  require(a.kind != Arrive::spike || a.from < s.duration,
          "arrivals.from (" + seconds_text(a.from) +
              ") must be before the end of the run: a spike that "
              "comes later than run.duration (" +
              seconds_text(s.duration) + ") is none");
  if (a.kind == Arrive::trace) validate_trace(s);
}

/// A bucket or a window.
bool counts_units(Limit kind) {
  return kind == Limit::token_bucket || kind == Limit::sliding_window ||
         kind == Limit::fixed_window || kind == Limit::sliding_window_counter;
}

void validate_learned_rate(const Scenario& s) {
  const LimiterOptions& l = s.limiter;
  if (l.kind != Limit::learned_rate) return;
  const double rate = static_cast<double>(l.limit.events) * 1'000'000 /
                      static_cast<double>(l.limit.per.count()) /
                      static_cast<double>(scenario::shares_of(s));
  require(rate >= 0.0001 && rate <= 10'000,
          "limiter.kind = \"learned_rate\" begins at limiter.limit, shared out where "
          "limiter.scope = \"per_process\": 0.0001/s to 10000/s, got " +
              std::to_string(rate) + "/s");
}

void validate_limiter(const Scenario& s) {
  const LimiterOptions& l = s.limiter;
  require(l.limit.events >= 1, "limiter.limit must be 1 or more");
  const bool alone = scenario::is_alone(s);
  require(!alone || l.limit.events >= s.fleet.workers || l.kind == Limit::token_bucket ||
              l.kind == Limit::learned_rate || l.kind == Limit::none,
          "limiter.limit of " + std::to_string(l.limit.events) + " cannot be shared out to " +
              std::to_string(s.fleet.workers) + " processes");
  require(!alone || !l.gates, "limiter.gates need limiter.scope = \"shared\"");
  const bool answers_429 =
      !s.upstream.limits.empty() || std::ranges::any_of(s.faults, [](const FaultPlan& fault) {
        return fault.kind == FaultPlan::Kind::upstream_second;
      });
  require(!l.gates || answers_429, "limiter.gates need upstream.limits: they close after a 429");
  require(!l.gates || l.kind != Limit::ideal,
          "limiter.gates need a limiter.kind other than \"ideal\", which asks none");
  require(l.wait == LimiterOptions::Wait::queue || !l.gates,
          "limiter.gates need limiter.wait = \"queue\"");
  require(l.wait == LimiterOptions::Wait::queue || l.kind != Limit::slot_lock,
          "limiter.kind = \"slot_lock\" needs limiter.wait = \"queue\"");
  require(l.kind != Limit::ideal || !s.upstream.limits.empty(),
          "limiter.kind = \"ideal\" needs upstream.limits");
  require(l.shadow == Limit::none || counts_units(l.shadow),
          "limiter.shadow must be a bucket or a window");
  require(l.shadow == Limit::none || l.wait == LimiterOptions::Wait::skip,
          "limiter.shadow needs limiter.wait = \"skip\"");
}

/// The most units that the limiter can grant at once; 0: any number.
Word most_at_once(const LimiterOptions& l) {
  switch (l.kind) {
    case Limit::token_bucket:
    case Limit::concurrency:
      return scenario::burst_of(l);
    case Limit::sliding_window:
    case Limit::fixed_window:
    case Limit::sliding_window_counter:
      return l.limit.events;
    default:
      return 0;
  }
}

void validate_cost(const Scenario& s) {
  const Word most = std::max<Word>(most_at_once(s.limiter) / scenario::shares_of(s), 1);
  const Word cost = highest_cost(s);
  require(most_at_once(s.limiter) == 0 || cost <= most,
          "a job takes up to " + std::to_string(cost) + " units, and the limiter grants at most " +
              std::to_string(most) + ": raise limiter.burst or limiter.limit, or lower the cost");
}

void validate_shedder(const Scenario& s) {
  const LimiterOptions& l = s.limiter;
  if (l.kind != Limit::utilization_shedder) return;
  require(l.wait == LimiterOptions::Wait::skip,
          "limiter.kind = \"utilization_shedder\" needs limiter.wait = \"skip\"");
  require(
      s.upstream.servers != 0,
      "limiter.kind = \"utilization_shedder\" needs upstream.servers, whose busy share it sees");
  require(l.hold == Span{0},
          "limiter.hold prefetches units, of which a utilization_shedder has none");
  require(l.good > 0 && l.good <= l.bad && l.bad < 1,
          "limiter.good and limiter.bad must be 0 < good <= bad < 1, got " +
              std::to_string(l.good) + " and " + std::to_string(l.bad));
  require(l.grace >= Span{0} && l.full_after >= Span{1} &&
              l.full_after <= std::chrono::hours{1} - l.grace,
          "limiter.grace and limiter.full_after must be at most 1 h together, got " +
              seconds_text(l.grace) + " and " + seconds_text(l.full_after));
  require(l.rest_after >= l.grace + l.full_after && l.rest_after <= std::chrono::hours{24 * 30},
          "limiter.rest_after must be limiter.grace + limiter.full_after to 30 days, got " +
              seconds_text(l.rest_after));
  require(l.period >= Span{1} && l.period <= std::chrono::minutes{24},
          "limiter.period must be 1us to 24min, got " + seconds_text(l.period));
}

/// Whether the fault loses calls of the API.
bool loses_calls(const FaultPlan& fault) {
  return fault.kind == FaultPlan::Kind::upstream_cut ||
         fault.kind == FaultPlan::Kind::upstream_loss ||
         fault.kind == FaultPlan::Kind::upstream_answers_lost;
}

void validate_upstream(const Scenario& s) {
  const ApiOptions& u = s.upstream;
  const bool gives_up = s.client.timeout != Span{0};
  require(gives_up || (u.lost == 0 && u.answer_lost == 0),
          std::string(u.lost != 0 ? "upstream.lost" : "upstream.answer_lost") +
              " needs client.timeout, or a worker waits for a lost answer for ever");
}

void validate_client(const ClientOptions& c) {
  require(c.pause >= Span{1} && c.pause <= std::chrono::hours{24},
          "client.pause must be 1us to 1d, got " + seconds_text(c.pause));
  // Below 1, a client would throttle itself although all that it sends is accepted.
  require(c.throttle == 0 || (c.throttle >= 1 && c.throttle <= 1000),
          "client.throttle must be 1 to 1000, or 0 for none, got " + std::to_string(c.throttle));
  require(c.throttle_window >= Span{1} && c.throttle_window <= std::chrono::hours{1},
          "client.throttle_window must be 1us to 1h, got " + seconds_text(c.throttle_window));
}

void validate_fault(const Scenario& s, const FaultPlan& fault) {
  using Kind = FaultPlan::Kind;
  const std::string name = scenario::name_for_people(fault);
  require(fault.at >= Span{0} && fault.at < s.duration, name + " must begin within run.duration");
  require(fault.length >= Span{0}, name + " must last 0s or longer");
  require(!scenario::info_of(fault.kind).has(scenario::FaultInfo::share_of_messages) ||
              fault.factor <= 1,
          name + ": its factor must be 0 to 1");
  require(fault.kind != Kind::upstream_second || fault.limit.limit > 0,
          name + " needs a limit, as \"300/min\"");
  require(fault.kind != Kind::upstream_limit || !s.upstream.limits.empty(),
          name + " needs upstream.limits");
  require(!loses_calls(fault) || s.client.timeout != Span{0},
          name + " needs client.timeout, or a worker waits for a lost answer for ever");
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

Word highest_cost(const Scenario& scenario) {
  const auto& trace = scenario.arrivals.trace;
  if (!trace || trace->empty()) return scenario.jobs.cost;
  return scenario.jobs.cost *
         static_cast<Word>(
             std::ranges::max_element(*trace, {}, &ArrivalOptions::Traced::cost)->cost);
}

namespace scenario {

void validate_values(const Scenario& scenario) {
  validate_run(scenario);
  validate_arrivals(scenario);
  validate_limiter(scenario);
  validate_learned_rate(scenario);
  validate_cost(scenario);
  validate_shedder(scenario);
  validate_upstream(scenario);
  validate_client(scenario.client);
  require(scenario.store.timeout > Span{0}, "store.timeout must be more than 0");
  for (const FaultPlan& fault : scenario.faults) validate_fault(scenario, fault);
  if (scenario.warm_up == auto_warm_up) validate_pilots(scenario);
}

}  // namespace scenario

void validate(const Scenario& scenario) {
  scenario::validate_values(scenario);
  for (const scenario::Parameter& parameter : scenario::parameters()) {
    const std::string why = scenario::idle(scenario, parameter.path);
    require(why.empty() || !parameter.differs(scenario, {}), why);
  }
  for (const FaultPlan& fault : scenario.faults) {
    const std::string why = scenario::idle(scenario, fault);
    require(why.empty(), why);
  }
}

}  // namespace sluice::sim
