#include "sim/scenario/parameters.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/scenario/text.hpp"

namespace sluice::sim::scenario {
namespace {

using Arrive = ArrivalOptions::Kind;
using Limit = LimiterOptions::Kind;
using Fault = FaultPlan::Kind;
template <class T>
using Names = std::pair<std::string_view, T>;

constexpr Names<FleetOptions::Spread> spreads[] = {{"equal", FleetOptions::Spread::equal},
                                                   {"uneven", FleetOptions::Spread::uneven}};
constexpr Names<Arrive> arrivals[] = {
    {"constant", Arrive::constant}, {"poisson", Arrive::poisson}, {"on_off", Arrive::on_off},
    {"mmpp", Arrive::mmpp},         {"diurnal", Arrive::diurnal}, {"spike", Arrive::spike},
    {"closed", Arrive::closed},     {"bursts", Arrive::bursts},   {"trace", Arrive::trace}};
constexpr Names<JobOptions::Pick> picks[] = {{"uniform", JobOptions::Pick::uniform},
                                             {"zipf", JobOptions::Pick::zipf},
                                             {"hot", JobOptions::Pick::hot}};
constexpr Names<Limit> limiters[] = {{"none", Limit::none},
                                     {"token_bucket", Limit::token_bucket},
                                     {"sliding_window", Limit::sliding_window},
                                     {"fixed_window", Limit::fixed_window},
                                     {"sliding_window_counter", Limit::sliding_window_counter},
                                     {"slot_lock", Limit::slot_lock},
                                     {"learned_rate", Limit::learned_rate},
                                     {"concurrency", Limit::concurrency},
                                     {"utilization_shedder", Limit::utilization_shedder},
                                     {"ideal", Limit::ideal}};
constexpr Names<LimiterOptions::Scope> scopes[] = {
    {"shared", LimiterOptions::Scope::shared}, {"per_process", LimiterOptions::Scope::per_process}};
constexpr Names<LimiterOptions::Wait> waits[] = {{"queue", LimiterOptions::Wait::queue},
                                                 {"poll", LimiterOptions::Wait::poll},
                                                 {"skip", LimiterOptions::Wait::skip}};
constexpr Names<StoreOptions::OnFailure> policies[] = {{"error", StoreOptions::OnFailure::error},
                                                       {"open", StoreOptions::OnFailure::open},
                                                       {"closed", StoreOptions::OnFailure::closed},
                                                       {"local", StoreOptions::OnFailure::local}};
constexpr Names<ClientOptions::Retries> retries[] = {
    {"none", ClientOptions::Retries::none},
    {"fixed", ClientOptions::Retries::fixed},
    {"exponential", ClientOptions::Retries::exponential},
    {"full", ClientOptions::Retries::full},
    {"equal", ClientOptions::Retries::equal},
    {"decorrelated", ClientOptions::Retries::decorrelated}};
using Takes = FaultInfo::Takes;
constexpr unsigned with_share = Takes::takes_share | Takes::takes_length;
constexpr unsigned with_factor = Takes::takes_factor | Takes::takes_length;
constexpr unsigned of_messages = with_share | Takes::takes_factor | Takes::share_of_messages;

constexpr FaultInfo faults[] = {
    {"store_down", Fault::store_down, Takes::takes_length, "connections to the store are refused"},
    {"store_silent", Fault::store_silent, Takes::takes_length, "the store answers nothing"},
    {"store_paused", Fault::store_paused, Takes::takes_length,
     "its server stands still, and then works off what has come"},
    {"store_slow", Fault::store_slow, with_factor, "its work takes factor times as long"},
    {"store_failover", Fault::store_failover, Takes::takes_length,
     "the writes of the last store.lag are lost; it is down for so long"},
    {"store_lost", Fault::store_lost, Takes::takes_length, "all writes are lost"},
    {"network_cut", Fault::network_cut, with_share, "workers do not reach the store"},
    {"network_loss", Fault::network_loss, of_messages, "requests to the store are lost"},
    {"answers_lost", Fault::answers_lost, of_messages, "its answers are, after execution"},
    {"network_doubled", Fault::network_doubled, of_messages, "requests to it arrive twice"},
    {"upstream_down", Fault::upstream_down, Takes::takes_length, "every call is answered 503"},
    {"upstream_slow", Fault::upstream_slow, with_factor,
     "the API's work takes factor times as long"},
    {"upstream_servers", Fault::upstream_servers, with_factor, "factor times as many servers"},
    {"upstream_limit", Fault::upstream_limit, with_factor,
     "the first of upstream.limits, times factor"},
    {"upstream_second", Fault::upstream_second, Takes::takes_limit,
     "another limit appears, for good"},
    {"upstream_cut", Fault::upstream_cut, with_share, "workers do not reach the API"},
    {"upstream_loss", Fault::upstream_loss, of_messages, "requests to the API are lost"},
    {"upstream_answers_lost", Fault::upstream_answers_lost, of_messages,
     "its answers are, after the work"},
    {"upstream_doubled", Fault::upstream_doubled, of_messages, "requests to it arrive twice"},
    {"worker_crash", Fault::worker_crash, with_share, "workers die, and start anew after so long"},
    {"worker_pause", Fault::worker_pause, with_share, "workers stand still"},
    {"rolling_deploy", Fault::rolling_deploy, Takes::takes_length,
     "one worker after the other starts anew within so long"},
    {"scale", Fault::scale, with_share, "only this share of the workers is there"},
    {"clock_step", Fault::clock_step, Takes::takes_share | Takes::takes_step,
     "the clocks of workers are set by step"},
};

// How a text becomes the value of a member, by the type of the member.
void read(std::string_view text, Span& value) { value = parse_span(text); }
void read(std::string_view text, std::string& value) { value = text; }
void read(std::string_view text, bool& value) { value = parse_flag(text); }
void read(std::string_view text, Rate& value) { value = parse_rate(text); }
void read(std::string_view text, Delay& value) { value = parse_delay(text); }
void read(std::string_view text, RetryAfter& value) { value = parse_retry_after(text); }
void read(std::string_view text, ArrivalOptions::Burst& value) { value = parse_burst(text); }
void read(std::string_view text, ApiLimit& value) { value = parse_window_limit(text); }
void read(std::string_view text, FleetOptions::Spread& value) { value = parse_word(text, spreads); }
void read(std::string_view text, Arrive& value) { value = parse_word(text, arrivals); }
void read(std::string_view text, JobOptions::Pick& value) { value = parse_word(text, picks); }
void read(std::string_view text, Limit& value) { value = parse_word(text, limiters); }
void read(std::string_view text, LimiterOptions::Scope& value) { value = parse_word(text, scopes); }
void read(std::string_view text, LimiterOptions::Wait& value) { value = parse_word(text, waits); }
void read(std::string_view text, StoreOptions::OnFailure& value) {
  value = parse_word(text, policies);
}
void read(std::string_view text, ClientOptions::Retries& value) {
  value = parse_word(text, retries);
}

// What is written for a member, by its type.
template <class T, std::size_t n>
std::string names_of(const Names<T> (&named)[n]) {
  std::string all;
  for (const auto& [name, value] : named) (all += all.empty() ? "" : ", ") += name;
  return all;
}
std::string form(const Span&) { return "a time"; }
std::string form(const std::string&) { return "a text"; }
std::string form(const bool&) { return "true, false"; }
std::string form(const Rate&) { return "a rate"; }
std::string form(const Delay&) { return "a delay"; }
std::string form(const RetryAfter&) { return "exact, missing, seconds, N times"; }
std::string form(const std::vector<ArrivalOptions::Burst>&) { return "a list"; }
std::string form(const std::vector<ApiLimit>&) { return "a list"; }
std::string form(const FleetOptions::Spread&) { return names_of(spreads); }
std::string form(const Arrive&) { return names_of(arrivals); }
std::string form(const JobOptions::Pick&) { return names_of(picks); }
std::string form(const Limit&) { return names_of(limiters); }
std::string form(const LimiterOptions::Scope&) { return names_of(scopes); }
std::string form(const LimiterOptions::Wait&) { return names_of(waits); }
std::string form(const StoreOptions::OnFailure&) { return names_of(policies); }
std::string form(const ClientOptions::Retries&) { return names_of(retries); }

// The rows of the table, by how their values are read.
template <auto section, auto member>
bool differs(const Scenario& a, const Scenario& b) {
  return !(a.*section.*member == b.*section.*member);
}
template <auto section, auto member>
std::string form_of_member() {
  return form(Scenario{}.*section.*member);
}
template <auto section, auto member>
constexpr Parameter any(std::string_view path, std::string_view standard, std::string_view help) {
  constexpr auto setter = [](Scenario& scenario, const Texts& texts) {
    read(texts.front(), scenario.*section.*member);
  };
  constexpr auto what = form_of_member<section, member>;
  return {path, standard, help, false, setter, differs<section, member>, what};
}
template <auto section, auto member, Word least, Word most>
constexpr Parameter count(std::string_view path, std::string_view standard, std::string_view help) {
  constexpr auto setter = [](Scenario& scenario, const Texts& texts) {
    auto& value = scenario.*section.*member;
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        parse_count(texts.front(), least, most));
  };
  constexpr auto what = [] { return std::to_string(least) + " to " + std::to_string(most); };
  return {path, standard, help, false, setter, differs<section, member>, what};
}
/// A number from 0 to `most`.
template <auto section, auto member, Word most>
constexpr Parameter number(std::string_view path, std::string_view standard,
                           std::string_view help) {
  constexpr auto setter = [](Scenario& scenario, const Texts& texts) {
    scenario.*section.*member = parse_number(texts.front(), 0, static_cast<double>(most));
  };
  constexpr auto what = [] { return "0 to " + std::to_string(most); };
  return {path, standard, help, false, setter, differs<section, member>, what};
}
template <auto section, auto member>
constexpr Parameter list(std::string_view path, std::string_view standard, std::string_view help) {
  constexpr auto setter = [](Scenario& scenario, const Texts& texts) {
    auto& values = scenario.*section.*member;
    values.clear();
    for (const std::string& text : texts) read(text, values.emplace_back());
  };
  constexpr auto what = form_of_member<section, member>;
  return {path, standard, help, true, setter, differs<section, member>, what};
}

using S = Scenario;
using F = FleetOptions;
using A = ArrivalOptions;
using J = JobOptions;
using L = LimiterOptions;
using T = StoreOptions;
using U = ApiOptions;
using C = ClientOptions;
using K = ClockOptions;

const Parameter table[] = {
    {"run.duration", "1min", "virtual time", false,
     [](S& s, const Texts& t) { read(t.front(), s.duration); },
     [](const S& a, const S& b) { return a.duration != b.duration; },
     [] { return form(S{}.duration); }},
    {"run.warm_up", "0s", "what comes earlier counts in no figure; auto: pilots find it by MSER-5",
     false, [](S& s, const Texts& t) { s.warm_up = parse_warm_up(t.front()); },
     [](const S& a, const S& b) { return a.warm_up != b.warm_up; },
     [] { return form(S{}.warm_up) + ", or auto"; }},
    {"run.events_per_instant", "10000000",
     "so many at one instant, beyond 100 for each job of a burst or trace, end the run", false,
     [](S& s, const Texts& t) {
       s.events_per_instant =
           static_cast<std::uint64_t>(parse_count(t.front(), 1000, 1'000'000'000'000));
     },
     [](const S& a, const S& b) { return a.events_per_instant != b.events_per_instant; },
     [] { return std::string("1000 to 1000000000000"); }},

    count<&S::fleet, &F::workers, 1, 5000>("fleet.workers", "10", "worker processes, 1 to 5000"),
    any<&S::fleet, &F::spread>("fleet.spread", "equal",
                               "their shares of the arrivals: equal, or uneven: 1 / (i + 10)"),

    any<&S::arrivals, &A::kind>("arrivals.kind", "poisson", "when jobs come"),
    any<&S::arrivals, &A::rate>("arrivals.rate", "100/s", "jobs of the whole fleet"),
    number<&S::arrivals, &A::load, 1000>("arrivals.load", "1",
                                         "multiplies all rates; of bursts, the jobs of each"),
    any<&S::arrivals, &A::busy>("arrivals.busy", "150/s",
                                "on_off, mmpp: the rate of the busy phases"),
    any<&S::arrivals, &A::calm>("arrivals.calm", "40/s",
                                "on_off, mmpp: the rate of the calm phases"),
    any<&S::arrivals, &A::phase>("arrivals.phase", "3min", "on_off: the length of a phase"),
    any<&S::arrivals, &A::busy_for>("arrivals.busy_for", "10s",
                                    "mmpp: the mean length of a busy phase"),
    any<&S::arrivals, &A::calm_for>("arrivals.calm_for", "50s",
                                    "mmpp: the mean length of a calm phase"),
    number<&S::arrivals, &A::swing, 1>("arrivals.swing", "0.5",
                                       "diurnal: the amplitude, of the rate"),
    any<&S::arrivals, &A::period>("arrivals.period", "1d", "diurnal: the length of a day"),
    number<&S::arrivals, &A::factor, 1000>("arrivals.factor", "10", "spike: times the rate"),
    any<&S::arrivals, &A::from>("arrivals.from", "1min", "spike: since the start"),
    any<&S::arrivals, &A::length>("arrivals.length", "1min", "spike: how long"),
    count<&S::arrivals, &A::clients, 1, 100'000>("arrivals.clients", "1",
                                                 "closed: clients of each worker"),
    any<&S::arrivals, &A::think>("arrivals.think", "exponential(1s)",
                                 "closed: the pause of a client between jobs"),
    list<&S::arrivals, &A::bursts>("arrivals.bursts", "", "bursts: as \"1000 at 59s\""),
    any<&S::arrivals, &A::file>("arrivals.file", "",
                                "trace: a CSV file (*.csv) with the columns t,key or t,key,cost, "
                                "or else an access log; its "
                                "place is relative to the scenario's file"),

    count<&S::jobs, &J::keys, 1, 1'000'000>(
        "jobs.keys", "1", "tenants, 1 to 1,000,000; of a trace: its different keys"),
    any<&S::jobs, &J::pick>("jobs.pick", "uniform", "which tenant a job has"),
    number<&S::jobs, &J::exponent, 10>("jobs.exponent", "1",
                                       "zipf: tenant i has the weight 1 / (i + 1)^exponent"),
    number<&S::jobs, &J::share, 1>("jobs.share", "0.9", "hot: the share of tenant 0"),
    number<&S::jobs, &J::critical, 1>("jobs.critical", "0",
                                      "the share of jobs with a high priority"),
    count<&S::jobs, &J::cost, 1, 1'000'000>(
        "jobs.cost", "1", "units of the limit that a call takes; of a trace: times its cost"),
    any<&S::jobs, &J::patience>("jobs.patience", "0s",
                                "a job that has waited so long is given up; 0s: never"),

    any<&S::limiter, &L::kind>("limiter.kind", "token_bucket", "the limiter in front of the API"),
    any<&S::limiter, &L::scope>("limiter.scope", "shared",
                                "one for the fleet, or a share for each process"),
    any<&S::limiter, &L::wait>("limiter.wait", "queue",
                               "what a refused job does: queue, poll, or skip"),
    any<&S::limiter, &L::limit>(
        "limiter.limit", "100/s",
        "the rate of the bucket, the window, the slots; where a learned rate begins, "
        "which stays within a hundredth and a hundredfold"),
    count<&S::limiter, &L::burst, 0, 1'000'000'000>(
        "limiter.burst", "0", "of a bucket; the places of concurrency; 0: the count of the limit"),
    any<&S::limiter, &L::by_key>("limiter.by_key", "false", "a limit for each tenant"),
    any<&S::limiter, &L::gates>("limiter.gates", "false",
                                "a 429 closes a gate of the fleet for its Retry-After"),
    any<&S::limiter, &L::fleet_order>("limiter.fleet_order", "true",
                                      "first come, first served across processes"),
    any<&S::limiter, &L::hold>("limiter.hold", "0s",
                               "processes hold prefetched units for so long; 0s: not at all"),
    count<&S::limiter, &L::most, 1, 1'000'000'000>("limiter.most", "100",
                                                   "units that a process prefetches at most"),
    any<&S::limiter, &L::shadow>("limiter.shadow", "none",
                                 "another limiter that is asked as well, and not obeyed"),
    number<&S::limiter, &L::good, 1>(
        "limiter.good", "0.7",
        "utilization_shedder: a busy share of the API below which it sheds less"),
    number<&S::limiter, &L::bad, 1>("limiter.bad", "0.8",
                                    "utilization_shedder: a busy share above which it sheds more"),
    any<&S::limiter, &L::grace>(
        "limiter.grace", "28s",
        "utilization_shedder: of a wholly busy API, until it begins to shed"),
    any<&S::limiter, &L::full_after>(
        "limiter.full_after", "120s",
        "utilization_shedder: from there until it sheds all that is not critical"),
    any<&S::limiter, &L::rest_after>(
        "limiter.rest_after", "10min",
        "utilization_shedder: between good and bad, from full to none"),
    any<&S::limiter, &L::period>("limiter.period", "8s",
                                 "utilization_shedder: between samples of the busy share"),

    any<&S::store, &T::to>("store.to", "log_normal(250us, 800us)", "the way to the store"),
    any<&S::store, &T::from>("store.from", "log_normal(250us, 800us)", "the way back"),
    any<&S::store, &T::service>("store.service", "12us",
                                "the store's work on a request; it does one at a time"),
    any<&S::store, &T::timeout>("store.timeout", "100ms",
                                "how long a request waits for its answer"),
    any<&S::store, &T::on_failure>("store.on_failure", "error", "the failure policy"),
    any<&S::store, &T::lag>("store.lag", "100ms", "of the replica: what a fail-over loses"),

    list<&S::upstream, &U::limits>("upstream.limits", "",
                                   "of the API, as \"10000/min\"; none: it never answers 429"),
    count<&S::upstream, &U::servers, 0, 1'000'000>(
        "upstream.servers", "0", "calls that it works on at a time; 0: any number"),
    count<&S::upstream, &U::queue, 0, 100'000'000>(
        "upstream.queue", "0", "calls that wait for a server, beyond which 503; 0: any number"),
    any<&S::upstream, &U::latency>("upstream.latency", "log_normal(20ms, 80ms)",
                                   "the work on a call"),
    number<&S::upstream, &U::crowding, 1000>(
        "upstream.crowding", "0",
        "the work takes 1 + crowding * (calls in work / 100) times as long"),
    number<&S::upstream, &U::failures, 1>("upstream.failures", "0",
                                          "share of calls that are answered 500"),
    any<&S::upstream, &U::conflicts>(
        "upstream.conflicts", "false",
        "the work changes one row, if nobody else has since it began; else 409, a failed call"),
    any<&S::upstream, &U::retry_after>("upstream.retry_after", "exact",
                                       "what a 429 says of the wait"),
    any<&S::upstream, &U::penalty>("upstream.penalty", "0s", "a 429 closes the API for so long"),
    any<&S::upstream, &U::to>("upstream.to", "log_normal(10ms, 30ms)", "the way to the API"),
    any<&S::upstream, &U::from>("upstream.from", "log_normal(10ms, 30ms)", "the way back"),
    number<&S::upstream, &U::lost, 1>("upstream.lost", "0",
                                      "share of the requests to the API that do not arrive"),
    number<&S::upstream, &U::answer_lost, 1>("upstream.answer_lost", "0",
                                             "share of its answers that do not, after the work"),
    number<&S::upstream, &U::doubled, 1>(
        "upstream.doubled", "0", "share of the requests that arrive, and are worked on, twice"),

    any<&S::client, &C::timeout>("client.timeout", "0s", "of a call; 0s: none"),
    any<&S::client, &C::retries>("client.retries", "full", "the pauses after failed calls"),
    any<&S::client, &C::pause>("client.pause", "1s", "the first pause"),
    any<&S::client, &C::cap>("client.cap", "32s", "the longest pause"),
    count<&S::client, &C::attempts, 1, 1'000'000>("client.attempts", "1000000", "calls of one job"),
    count<&S::client, &C::budget, 0, 1000>("client.budget", "0",
                                           "percent of calls that may be retried; 0: any number"),
    any<&S::client, &C::breaker>("client.breaker", "false", "a circuit breaker around the API"),
    any<&S::client, &C::adaptive>(
        "client.adaptive", "false",
        "each process paces itself, as the adaptive mode of the AWS SDKs"),
    number<&S::client, &C::throttle, 1000>("client.throttle", "0",
                                           "adaptive throttling: requests a process sends for each "
                                           "that the API accepts (K), 1 to 1000; "
                                           "0: none"),
    any<&S::client, &C::throttle_window>("client.throttle_window", "2min",
                                         "over which requests and accepts are counted"),

    any<&S::clock, &K::offset>("clock.offset", "0s",
                               "workers' clocks are up to so much ahead or behind"),
    number<&S::clock, &K::drift, 100'000>("clock.drift", "0",
                                          "and up to so many millionths too fast or too slow"),
};

}  // namespace

std::span<const Parameter> parameters() { return table; }

const Parameter& parameter(std::string_view path) {
  const auto* const found = std::ranges::find(table, path, &Parameter::path);
  if (found != std::end(table)) return *found;
  std::vector<std::string_view> paths;
  for (const Parameter& each : table) paths.push_back(each.path);
  throw std::invalid_argument(std::string(path) + ": there is no such parameter" +
                              did_you_mean(path, paths));
}

void set(Scenario& scenario, std::string_view path, const Texts& texts) {
  const Parameter& found = parameter(path);
  try {
    if (!found.is_list && texts.size() != 1) {
      throw std::invalid_argument("expected one value, got " + std::to_string(texts.size()));
    }
    found.set(scenario, texts);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string(path) + ": " + error.what());
  }
}

std::span<const FaultInfo> faults_info() { return faults; }

const FaultInfo& info_of(FaultPlan::Kind kind) {
  return *std::ranges::find(faults, kind, &FaultInfo::kind);
}

FaultPlan::Kind parse_fault(std::string_view name) {
  std::vector<std::pair<std::string_view, Fault>> named;
  for (const FaultInfo& fault : faults) named.emplace_back(fault.name, fault.kind);
  return parse_word(name, named);
}

}  // namespace sluice::sim::scenario
