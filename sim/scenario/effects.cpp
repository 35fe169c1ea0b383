#include "sim/scenario/effects.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/scenario/parameters.hpp"

namespace sluice::sim::scenario {

bool is_prefetched(LimiterOptions::Kind kind) noexcept {
  using Kind = LimiterOptions::Kind;
  return kind == Kind::token_bucket || kind == Kind::fixed_window ||
         kind == Kind::sliding_window_counter;
}

bool is_alone(const Scenario& scenario) noexcept {
  return scenario.limiter.scope == LimiterOptions::Scope::per_process;
}

Word shares_of(const Scenario& scenario) noexcept {
  return is_alone(scenario) ? Word{scenario.fleet.workers} : 1;
}

Word burst_of(const LimiterOptions& limiter) noexcept {
  return limiter.burst != 0 ? limiter.burst : limiter.limit.events;
}

bool has_clocks(const Scenario& scenario) noexcept {
  return scenario.clock.offset != Span{0} || scenario.clock.drift != 0;
}

namespace {

using S = Scenario;
using Arrive = ArrivalOptions::Kind;
using Limit = LimiterOptions::Kind;
using Fault = FaultPlan::Kind;
using Retries = ClientOptions::Retries;
using Wait = LimiterOptions::Wait;

template <Arrive... kinds>
bool comes(const S& s) {
  return ((s.arrivals.kind == kinds) || ...);
}
template <Limit... kinds>
bool is(const S& s) {
  return ((s.limiter.kind == kinds) || ...);
}
bool has_fault(const S& s, Fault kind) {
  return std::ranges::any_of(s.faults, [kind](const FaultPlan& f) { return f.kind == kind; });
}

bool limits(const S& s) { return !is<Limit::none, Limit::ideal>(s); }
bool has_shadow(const S& s) {
  return s.limiter.shadow != Limit::none && s.limiter.kind != Limit::ideal;
}
bool has_gates(const S& s) { return s.limiter.gates && s.limiter.kind != Limit::ideal; }
bool is_shared(const S& s) { return !is_alone(s); }
bool asks_store(const S& s) { return is_shared(s) && (limits(s) || has_gates(s) || has_shadow(s)); }
bool hears_of_failures(const S& s) {
  return asks_store(s) && s.store.on_failure == StoreOptions::OnFailure::error;
}
bool waits_in_line(const S& s) {
  return s.limiter.wait == Wait::queue && (limits(s) || has_gates(s));
}
bool polls(const S& s) { return s.limiter.wait == Wait::poll && limits(s); }
bool pauses_anyway(const S& s) { return polls(s) || has_gates(s) || hears_of_failures(s); }
bool retries(const S& s) { return s.client.retries != Retries::none && s.client.attempts > 1; }
bool answers_429(const S& s) {
  return !s.upstream.limits.empty() || has_fault(s, Fault::upstream_second);
}
/// Otherwise than by a 429, which a circuit breaker takes for a success.
bool calls_fail(const S& s) {
  const bool overflows = s.upstream.servers != 0 && s.upstream.queue != 0;
  return s.upstream.failures != 0 || s.upstream.conflicts || overflows ||
         s.client.timeout != Span{0} || has_fault(s, Fault::upstream_down);
}
bool prefetches(const S& s) {
  return is_prefetched(s.limiter.kind) || (has_shadow(s) && is_prefetched(s.limiter.shadow));
}
bool keys_differ(const S& s) { return s.jobs.keys > 1 && s.arrivals.kind != Arrive::trace; }

/// What a parameter needs to have an effect. Of several for one parameter, all.
struct Need {
  std::string_view path;
  bool (*is_met)(const S&);
  std::string_view remedy;
};

constexpr auto* sheds = is<Limit::utilization_shedder>;
constexpr std::string_view a_shedder = "limiter.kind = \"utilization_shedder\"";
constexpr std::string_view a_limiter_in_the_store =
    "a limiter or gates in the store: limiter.scope = \"shared\", and a limiter.kind other than "
    "\"none\" and \"ideal\"";
constexpr std::string_view a_mean_phase = "arrivals.kind = \"mmpp\"";
constexpr std::string_view a_phase = "arrivals.kind = \"on_off\" or \"mmpp\"";
constexpr std::string_view a_day = "arrivals.kind = \"diurnal\"";
constexpr std::string_view a_spike = "arrivals.kind = \"spike\"";
constexpr std::string_view a_factor = "an arrivals.factor other than 1";
constexpr std::string_view clients = "arrivals.kind = \"closed\"";
constexpr std::string_view no_trace =
    "an arrivals.kind other than \"trace\", whose calls have keys";
constexpr std::string_view two_keys = "two of jobs.keys or more";
constexpr std::string_view a_limiter = "a limiter.kind other than \"none\" and \"ideal\"";
constexpr std::string_view refusals = "upstream.limits, without which no call is answered 429";
constexpr std::string_view another_retry = "client.retries other than \"none\"";

const Need needs[] = {
    {"fleet.spread",
     comes<Arrive::poisson, Arrive::on_off, Arrive::mmpp, Arrive::diurnal, Arrive::spike>,
     "arrivals.kind = \"poisson\", \"on_off\", \"mmpp\", \"diurnal\" or \"spike\""},
    {"fleet.spread", [](const S& s) { return s.fleet.workers > 1; },
     "two of fleet.workers or more"},
    {"arrivals.rate", comes<Arrive::constant, Arrive::poisson, Arrive::diurnal, Arrive::spike>,
     "arrivals.kind = \"constant\", \"poisson\", \"diurnal\" or \"spike\""},
    {"arrivals.load", [](const S& s) { return !comes<Arrive::closed>(s); },
     "an arrivals.kind other than \"closed\", whose clients come when they have been served; "
     "arrivals.clients and arrivals.think change their load"},
    {"arrivals.load", [](const S& s) { return !comes<Arrive::trace>(s); },
     "an arrivals.kind other than \"trace\"; limiter.limit changes the load of a trace"},
    {"arrivals.busy", comes<Arrive::on_off, Arrive::mmpp>, a_phase},
    {"arrivals.calm", comes<Arrive::on_off, Arrive::mmpp>, a_phase},
    {"arrivals.calm",
     [](const S& s) { return !comes<Arrive::on_off>(s) || s.arrivals.phase < s.duration; },
     "an arrivals.phase that is shorter than run.duration: the first one is busy"},
    {"arrivals.phase", comes<Arrive::on_off>, "arrivals.kind = \"on_off\""},
    {"arrivals.busy_for", comes<Arrive::mmpp>, a_mean_phase},
    {"arrivals.calm_for", comes<Arrive::mmpp>, a_mean_phase},
    {"arrivals.swing", comes<Arrive::diurnal>, a_day},
    {"arrivals.period", comes<Arrive::diurnal>, a_day},
    {"arrivals.period", [](const S& s) { return s.arrivals.swing != 0; },
     "an arrivals.swing above 0"},
    {"arrivals.factor", comes<Arrive::spike>, a_spike},
    {"arrivals.factor", [](const S& s) { return s.arrivals.length > Span{0}; },
     "an arrivals.length above 0s"},
    {"arrivals.from", comes<Arrive::spike>, a_spike},
    {"arrivals.from", [](const S& s) { return s.arrivals.factor != 1; }, a_factor},
    {"arrivals.length", comes<Arrive::spike>, a_spike},
    {"arrivals.length", [](const S& s) { return s.arrivals.factor != 1; }, a_factor},
    {"arrivals.clients", comes<Arrive::closed>, clients},
    {"arrivals.think", comes<Arrive::closed>, clients},
    {"arrivals.bursts", comes<Arrive::bursts>, "arrivals.kind = \"bursts\""},
    {"arrivals.file", comes<Arrive::trace>, "arrivals.kind = \"trace\""},

    // A program gives the number of a trace's keys with it; of a file, they are counted.
    {"jobs.keys",
     [](const S& s) { return !comes<Arrive::trace>(s) || s.arrivals.trace != nullptr; }, no_trace},
    {"jobs.pick", [](const S& s) { return !comes<Arrive::trace>(s); }, no_trace},
    {"jobs.pick", keys_differ, two_keys},
    {"jobs.exponent",
     [](const S& s) { return keys_differ(s) && s.jobs.pick == JobOptions::Pick::zipf; },
     "jobs.pick = \"zipf\", and two of jobs.keys or more"},
    {"jobs.share",
     [](const S& s) { return keys_differ(s) && s.jobs.pick == JobOptions::Pick::hot; },
     "jobs.pick = \"hot\", and two of jobs.keys or more"},
    {"jobs.cost",
     [](const S& s) {
       return has_shadow(s) ||
              is<Limit::token_bucket, Limit::sliding_window, Limit::fixed_window,
                 Limit::sliding_window_counter, Limit::learned_rate, Limit::concurrency>(s);
     },
     "a limiter.kind that counts units: a bucket, a window, \"learned_rate\" or \"concurrency\""},
    {"jobs.patience",
     [](const S& s) {
       return waits_in_line(s) || polls(s) || retries(s) || hears_of_failures(s) ||
              s.client.adaptive || has_fault(s, Fault::worker_pause);
     },
     "jobs that wait: limiter.wait = \"queue\" or \"poll\" with a limiter, client.retries other "
     "than \"none\", or client.adaptive"},

    {"limiter.scope", [](const S& s) { return limits(s) || has_shadow(s); }, a_limiter},
    {"limiter.wait", [](const S& s) { return limits(s) || has_shadow(s) || has_gates(s); },
     a_limiter},
    {"limiter.limit",
     [](const S& s) {
       return has_shadow(s) ||
              (limits(s) && !is<Limit::concurrency, Limit::utilization_shedder>(s)) ||
              (is<Limit::concurrency>(s) && s.limiter.burst == 0);
     },
     "a limiter.kind with a rate: a bucket, a window, \"slot_lock\" or \"learned_rate\" (the "
     "places of \"concurrency\" are limiter.burst)"},
    {"limiter.burst",
     [](const S& s) {
       return is<Limit::token_bucket, Limit::concurrency>(s) ||
              (has_shadow(s) && s.limiter.shadow == Limit::token_bucket);
     },
     "limiter.kind = \"token_bucket\" or \"concurrency\""},
    {"limiter.by_key",
     [](const S& s) { return has_shadow(s) || (limits(s) && !is<Limit::utilization_shedder>(s)); },
     "a limiter.kind with keys: a bucket, a window, \"slot_lock\", \"learned_rate\" or "
     "\"concurrency\""},
    {"limiter.by_key", [](const S& s) { return s.jobs.keys > 1 || comes<Arrive::trace>(s); },
     two_keys},
    // The store of one process has no line, and who prefetches does not ask for a turn.
    {"limiter.fleet_order",
     [](const S& s) {
       const bool holds = s.limiter.hold != Span{0} && is_prefetched(s.limiter.kind);
       return s.limiter.wait == Wait::queue && is_shared(s) &&
              ((limits(s) && !holds) || has_gates(s));
     },
     "limiter.wait = \"queue\" without limiter.hold, limiter.scope = \"shared\", and a "
     "limiter.kind "
     "that is waited for"},
    {"limiter.hold", prefetches,
     "a limiter.kind whose units are prefetched: \"token_bucket\", \"fixed_window\" or "
     "\"sliding_window_counter\""},
    {"limiter.most", [](const S& s) { return prefetches(s) && s.limiter.hold != Span{0}; },
     "limiter.hold"},
    {"limiter.shadow", [](const S& s) { return !is<Limit::ideal>(s); },
     "a limiter.kind other than \"ideal\""},
    {"limiter.good", sheds, a_shedder},
    {"limiter.bad", sheds, a_shedder},
    {"limiter.grace", sheds, a_shedder},
    {"limiter.full_after", sheds, a_shedder},
    {"limiter.rest_after", sheds, a_shedder},
    {"limiter.period", sheds, a_shedder},

    {"store.to", asks_store, a_limiter_in_the_store},
    {"store.from", asks_store, a_limiter_in_the_store},
    {"store.service", asks_store, a_limiter_in_the_store},
    {"store.timeout", asks_store, a_limiter_in_the_store},
    {"store.on_failure", asks_store, a_limiter_in_the_store},
    {"store.lag", asks_store, a_limiter_in_the_store},
    {"store.lag", [](const S& s) { return has_fault(s, Fault::store_failover); },
     "a fault of kind store_failover"},

    {"upstream.queue", [](const S& s) { return s.upstream.servers != 0; }, "upstream.servers"},
    {"upstream.crowding", [](const S& s) { return s.upstream.latency.max() > Span{0}; },
     "an upstream.latency above 0s"},
    {"upstream.retry_after", answers_429, refusals},
    {"upstream.retry_after", [](const S& s) { return retries(s) || has_gates(s); },
     "client.retries other than \"none\", or limiter.gates"},
    {"upstream.penalty", answers_429, refusals},

    {"client.retries", [](const S& s) { return s.client.attempts > 1 || pauses_anyway(s); },
     "client.attempts above 1"},
    {"client.pause", [](const S& s) { return retries(s) || pauses_anyway(s); },
     "client.retries other than \"none\", or store.on_failure = \"error\""},
    {"client.cap",
     [](const S& s) {
       const bool grows = s.client.retries != Retries::none && s.client.retries != Retries::fixed;
       return grows && (s.client.attempts > 1 || pauses_anyway(s));
     },
     "client.retries = \"exponential\", \"full\", \"equal\" or \"decorrelated\""},
    {"client.attempts", [](const S& s) { return s.client.retries != Retries::none; },
     another_retry},
    {"client.budget", retries, another_retry},
    {"client.breaker", calls_fail,
     "calls that fail otherwise than by a 429: upstream.failures, upstream.queue, client.timeout, "
     "or a fault of kind upstream_down"},
    {"client.adaptive", answers_429, refusals},
    {"client.throttle_window", [](const S& s) { return s.client.throttle != 0; },
     "client.throttle"},

    {"clock.offset", asks_store, a_limiter_in_the_store},
    {"clock.drift", asks_store, a_limiter_in_the_store},
};

/// What a kind of fault needs besides its own values.
std::string_view fault_needs(const S& s, Fault kind) {
  constexpr std::string_view clocks =
      "clock.offset or clock.drift, without which workers have no clocks of their own";
  const bool is_of_store = kind <= Fault::network_doubled || kind == Fault::clock_step;
  if (is_of_store && !asks_store(s)) return a_limiter_in_the_store;
  const bool takes_no_time =
      (kind == Fault::store_slow ? s.store.service : s.upstream.latency).max() == Span{0};
  if (kind == Fault::store_slow && takes_no_time) return "a store.service above 0s";
  if (kind == Fault::upstream_slow && takes_no_time) return "an upstream.latency above 0s";
  return kind == Fault::clock_step && !has_clocks(s) ? clocks : std::string_view();
}

/// Whether `factor` times this number is the number again.
bool rounds_to_itself(Word number, double factor) {
  return std::max<Word>(std::llround(static_cast<double>(number) * factor), 1) == number;
}

/// Which value of a fault makes it do nothing.
std::string_view harmless_value(const S& s, const FaultPlan& fault) {
  const FaultInfo& info = info_of(fault.kind);
  const bool all_stay =
      std::llround(fault.share * s.fleet.workers) == static_cast<Word>(s.fleet.workers);
  if (fault.kind == Fault::scale) return all_stay ? "a share that leaves out a worker" : "";
  if (info.has(FaultInfo::takes_share) && fault.share == 0) return "a share above 0";
  if (info.has(FaultInfo::takes_step) && fault.step == Span{0}) return "a step, as \"-2s\"";
  if (info.has(FaultInfo::takes_factor) && fault.factor == info.harmless()) {
    return info.has(FaultInfo::share_of_messages) ? "a factor above 0" : "a factor other than 1";
  }
  const bool same_servers = fault.kind == Fault::upstream_servers && fault.factor != 0 &&
                            rounds_to_itself(s.upstream.servers, fault.factor);
  const bool same_limit = fault.kind == Fault::upstream_limit && !s.upstream.limits.empty() &&
                          rounds_to_itself(s.upstream.limits.front().limit, fault.factor);
  if (same_servers || same_limit) return "a factor that makes a whole one more or less";
  if (fault.kind == Fault::store_failover && fault.length == Span{0} && s.store.lag == Span{0}) {
    return "a length, as for = \"3s\", or a store.lag above 0s";
  }
  return {};
}

/// A value that the kind of the fault does not take, and that is set.
std::string_view useless_value(const FaultPlan& fault) {
  const FaultInfo& info = info_of(fault.kind);
  const FaultPlan standard;
  if (!info.has(FaultInfo::takes_length) && fault.length != Span{0}) return "for";
  if (!info.has(FaultInfo::takes_share) && fault.share != standard.share) return "share";
  if (!info.has(FaultInfo::takes_factor) && fault.factor != standard.factor) return "factor";
  if (!info.has(FaultInfo::takes_step) && fault.step != standard.step) return "step";
  if (!info.has(FaultInfo::takes_limit) && fault.limit != standard.limit) return "limit";
  return {};
}

}  // namespace

std::string seconds_text(Span span) {
  return std::to_string(static_cast<double>(span.count()) / 1'000'000) + " s";
}

std::string needs_of(std::string_view path) {
  std::string text;
  for (const Need& need : needs) {
    if (need.path == path) (text += text.empty() ? "" : "; ") += need.remedy;
  }
  return text;
}

std::string idle(const Scenario& scenario, std::string_view path) {
  for (const Need& need : needs) {
    if (need.path != path || need.is_met(scenario)) continue;
    return std::string(path) + " does nothing here: it needs " + std::string(need.remedy) +
           "; set that, or leave " + std::string(path) + " out";
  }
  return {};
}

std::string name_for_people(const FaultPlan& fault) {
  return "the fault " + std::string(info_of(fault.kind).name) + " at " + seconds_text(fault.at);
}

std::string idle(const Scenario& scenario, const FaultPlan& fault) {
  const std::string name = name_for_people(fault);
  if (const std::string_view value = useless_value(fault); !value.empty()) {
    return name + ": its \"" + std::string(value) + "\" does nothing; leave it out";
  }
  for (const std::string_view need :
       {fault_needs(scenario, fault.kind), harmless_value(scenario, fault)}) {
    if (!need.empty()) {
      return name + " does nothing here: it needs " + std::string(need) +
             "; set that, or leave the fault out";
    }
  }
  return {};
}

}  // namespace sluice::sim::scenario
