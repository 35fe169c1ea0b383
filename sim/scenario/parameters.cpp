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
constexpr Names<Fault> faults[] = {{"store_down", Fault::store_down},
                                   {"store_silent", Fault::store_silent},
                                   {"store_paused", Fault::store_paused},
                                   {"store_slow", Fault::store_slow},
                                   {"store_failover", Fault::store_failover},
                                   {"store_lost", Fault::store_lost},
                                   {"network_cut", Fault::network_cut},
                                   {"network_loss", Fault::network_loss},
                                   {"answers_lost", Fault::answers_lost},
                                   {"network_doubled", Fault::network_doubled},
                                   {"upstream_down", Fault::upstream_down},
                                   {"upstream_slow", Fault::upstream_slow},
                                   {"upstream_servers", Fault::upstream_servers},
                                   {"upstream_limit", Fault::upstream_limit},
                                   {"upstream_second", Fault::upstream_second},
                                   {"upstream_cut", Fault::upstream_cut},
                                   {"upstream_loss", Fault::upstream_loss},
                                   {"upstream_answers_lost", Fault::upstream_answers_lost},
                                   {"upstream_doubled", Fault::upstream_doubled},
                                   {"worker_crash", Fault::worker_crash},
                                   {"worker_pause", Fault::worker_pause},
                                   {"rolling_deploy", Fault::rolling_deploy},
                                   {"scale", Fault::scale},
                                   {"clock_step", Fault::clock_step}};

// How a text becomes the value of a member, by the type of the member.
void read(std::string_view text, Span& value) { value = parse_span(text); }
void read(std::string_view text, std::string& value) { value = text; }
void read(std::string_view text, bool& value) { value = parse_flag(text); }
void read(std::string_view text, Rate& value) { value = parse_rate(text); }
void read(std::string_view text, Delay& value) { value = parse_delay(text); }
void read(std::string_view text, RetryAfter& value) { value = parse_retry_after(text); }
void read(std::string_view text, ArrivalOptions::Burst& value) { value = parse_burst(text); }
void read(std::string_view text, WindowLimit& value) { value = parse_window_limit(text); }
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

/// A value of any kind but a number.
template <auto section, auto member>
void put(Scenario& scenario, const Texts& texts) {
  read(texts.front(), scenario.*section.*member);
}
template <auto section, auto member, Word least, Word most>
void put_count(Scenario& scenario, const Texts& texts) {
  auto& value = scenario.*section.*member;
  value = static_cast<std::remove_reference_t<decltype(value)>>(
      parse_count(texts.front(), least, most));
}
/// A number from 0 to `most`.
template <auto section, auto member, Word most>
void put_number(Scenario& scenario, const Texts& texts) {
  scenario.*section.*member = parse_number(texts.front(), 0, static_cast<double>(most));
}
template <auto section, auto member>
void put_list(Scenario& scenario, const Texts& texts) {
  auto& list = scenario.*section.*member;
  list.clear();
  for (const std::string& text : texts) read(text, list.emplace_back());
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
     [](S& s, const Texts& t) { read(t.front(), s.duration); }},
    {"run.warm_up", "0s", "what comes earlier counts in no figure", false,
     [](S& s, const Texts& t) { read(t.front(), s.warm_up); }},

    {"fleet.workers", "10", "worker processes, 1 to 5000", false,
     put_count<&S::fleet, &F::workers, 1, 5000>},
    {"fleet.spread", "equal", "their shares of the arrivals: equal, or uneven: 1 / (i + 10)", false,
     put<&S::fleet, &F::spread>},

    {"arrivals.kind", "poisson", "when jobs come", false, put<&S::arrivals, &A::kind>},
    {"arrivals.rate", "100/s", "jobs of the whole fleet", false, put<&S::arrivals, &A::rate>},
    {"arrivals.load", "1", "multiplies all rates; of bursts, the jobs of each", false,
     put_number<&S::arrivals, &A::load, 1000>},
    {"arrivals.busy", "150/s", "on_off, mmpp: the rate of the busy phases", false,
     put<&S::arrivals, &A::busy>},
    {"arrivals.calm", "40/s", "on_off, mmpp: the rate of the calm phases", false,
     put<&S::arrivals, &A::calm>},
    {"arrivals.phase", "3min", "on_off: the length of a phase", false,
     put<&S::arrivals, &A::phase>},
    {"arrivals.busy_for", "10s", "mmpp: the mean length of a busy phase", false,
     put<&S::arrivals, &A::busy_for>},
    {"arrivals.calm_for", "50s", "mmpp: the mean length of a calm phase", false,
     put<&S::arrivals, &A::calm_for>},
    {"arrivals.swing", "0.5", "diurnal: the amplitude, of the rate", false,
     put_number<&S::arrivals, &A::swing, 1>},
    {"arrivals.period", "1d", "diurnal: the length of a day", false, put<&S::arrivals, &A::period>},
    {"arrivals.factor", "10", "spike: times the rate", false,
     put_number<&S::arrivals, &A::factor, 1000>},
    {"arrivals.from", "1min", "spike: since the start", false, put<&S::arrivals, &A::from>},
    {"arrivals.length", "1min", "spike: how long", false, put<&S::arrivals, &A::length>},
    {"arrivals.clients", "1", "closed: clients of each worker", false,
     put_count<&S::arrivals, &A::clients, 1, 100'000>},
    {"arrivals.think", "exponential(1s)", "closed: the pause of a client between jobs", false,
     put<&S::arrivals, &A::think>},
    {"arrivals.bursts", "", "bursts: as \"1000 at 59s\"", true, put_list<&S::arrivals, &A::bursts>},
    {"arrivals.file", "",
     "trace: a CSV file (*.csv) with the columns t,key or t,key,cost, or else an access log; its "
     "place is relative to the scenario's file",
     false, put<&S::arrivals, &A::file>},

    {"jobs.keys", "1", "tenants, 1 to 1,000,000; of a trace: its different keys", false,
     put_count<&S::jobs, &J::keys, 1, 1'000'000>},
    {"jobs.pick", "uniform", "which tenant a job has", false, put<&S::jobs, &J::pick>},
    {"jobs.exponent", "1", "zipf: tenant i has the weight 1 / (i + 1)^exponent", false,
     put_number<&S::jobs, &J::exponent, 10>},
    {"jobs.share", "0.9", "hot: the share of tenant 0", false, put_number<&S::jobs, &J::share, 1>},
    {"jobs.critical", "0", "the share of jobs with a high priority", false,
     put_number<&S::jobs, &J::critical, 1>},
    {"jobs.cost", "1", "units of the limit that a call takes; of a trace: times its cost", false,
     put_count<&S::jobs, &J::cost, 1, 1'000'000>},
    {"jobs.patience", "0s", "a job that has waited so long is given up; 0s: never", false,
     put<&S::jobs, &J::patience>},

    {"limiter.kind", "token_bucket", "the limiter in front of the API", false,
     put<&S::limiter, &L::kind>},
    {"limiter.scope", "shared", "one for the fleet, or a share for each process", false,
     put<&S::limiter, &L::scope>},
    {"limiter.wait", "queue", "what a refused job does: queue, poll, or skip", false,
     put<&S::limiter, &L::wait>},
    {"limiter.limit", "100/s", "the rate of the bucket, the window, the slots", false,
     put<&S::limiter, &L::limit>},
    {"limiter.burst", "0", "of a bucket; the places of concurrency; 0: the count of the limit",
     false, put_count<&S::limiter, &L::burst, 0, 1'000'000'000>},
    {"limiter.by_key", "false", "a limit for each tenant", false, put<&S::limiter, &L::by_key>},
    {"limiter.gates", "false", "a 429 closes a gate of the fleet for its Retry-After", false,
     put<&S::limiter, &L::gates>},
    {"limiter.fleet_order", "false", "first come, first served across processes", false,
     put<&S::limiter, &L::fleet_order>},
    {"limiter.horizon", "1d", "how far ahead a queue reserves; priorities call for a short one",
     false, put<&S::limiter, &L::horizon>},
    {"limiter.hold", "0s", "processes lease units for so long; 0s: not at all", false,
     put<&S::limiter, &L::hold>},
    {"limiter.most", "100", "units that a process leases at most", false,
     put_count<&S::limiter, &L::most, 1, 1'000'000'000>},
    {"limiter.shadow", "none", "another limiter that is asked as well, and not obeyed", false,
     put<&S::limiter, &L::shadow>},
    {"limiter.good", "0.7",
     "utilization_shedder: a busy share of the API below which it sheds less", false,
     put_number<&S::limiter, &L::good, 1>},
    {"limiter.bad", "0.8", "utilization_shedder: a busy share above which it sheds more", false,
     put_number<&S::limiter, &L::bad, 1>},
    {"limiter.grace", "28s", "utilization_shedder: of a wholly busy API, until it begins to shed",
     false, put<&S::limiter, &L::grace>},
    {"limiter.full_after", "120s",
     "utilization_shedder: from there until it sheds all that is not critical", false,
     put<&S::limiter, &L::full_after>},
    {"limiter.rest_after", "10min", "utilization_shedder: between good and bad, from full to none",
     false, put<&S::limiter, &L::rest_after>},
    {"limiter.period", "8s", "utilization_shedder: between samples of the busy share", false,
     put<&S::limiter, &L::period>},

    {"store.to", "log_normal(250us, 800us)", "the way to the store", false, put<&S::store, &T::to>},
    {"store.from", "log_normal(250us, 800us)", "the way back", false, put<&S::store, &T::from>},
    {"store.service", "12us", "the store's work on a request; it does one at a time", false,
     put<&S::store, &T::service>},
    {"store.timeout", "100ms", "how long a request waits for its answer", false,
     put<&S::store, &T::timeout>},
    {"store.on_failure", "error", "the failure policy", false, put<&S::store, &T::on_failure>},
    {"store.lag", "100ms", "of the replica: what a fail-over loses", false,
     put<&S::store, &T::lag>},

    {"upstream.limits", "", "of the API, as \"10000/min\"; none: it never answers 429", true,
     put_list<&S::upstream, &U::limits>},
    {"upstream.servers", "0", "calls that it works on at a time; 0: any number", false,
     put_count<&S::upstream, &U::servers, 0, 1'000'000>},
    {"upstream.queue", "0", "calls that wait for a server, beyond which 503; 0: any number", false,
     put_count<&S::upstream, &U::queue, 0, 100'000'000>},
    {"upstream.latency", "log_normal(20ms, 80ms)", "the work on a call", false,
     put<&S::upstream, &U::latency>},
    {"upstream.crowding", "0", "the work takes 1 + crowding * (calls in work / 100) times as long",
     false, put_number<&S::upstream, &U::crowding, 1000>},
    {"upstream.failures", "0", "share of calls that are answered 500", false,
     put_number<&S::upstream, &U::failures, 1>},
    {"upstream.conflicts", "false",
     "the work changes one row, if nobody else has since it began; else 409, a failed call", false,
     put<&S::upstream, &U::conflicts>},
    {"upstream.retry_after", "exact", "what a 429 says of the wait", false,
     put<&S::upstream, &U::retry_after>},
    {"upstream.penalty", "0s", "a 429 closes the API for so long", false,
     put<&S::upstream, &U::penalty>},
    {"upstream.to", "log_normal(10ms, 30ms)", "the way to the API", false,
     put<&S::upstream, &U::to>},
    {"upstream.from", "log_normal(10ms, 30ms)", "the way back", false, put<&S::upstream, &U::from>},
    {"upstream.lost", "0", "share of the requests to the API that do not arrive", false,
     put_number<&S::upstream, &U::lost, 1>},
    {"upstream.answer_lost", "0", "share of its answers that do not, after the work", false,
     put_number<&S::upstream, &U::answer_lost, 1>},
    {"upstream.doubled", "0", "share of the requests that arrive, and are worked on, twice", false,
     put_number<&S::upstream, &U::doubled, 1>},

    {"client.timeout", "0s", "of a call; 0s: none", false, put<&S::client, &C::timeout>},
    {"client.retries", "full", "the pauses after failed calls", false,
     put<&S::client, &C::retries>},
    {"client.pause", "1s", "the first pause", false, put<&S::client, &C::pause>},
    {"client.cap", "32s", "the longest pause", false, put<&S::client, &C::cap>},
    {"client.attempts", "1000000", "calls of one job", false,
     put_count<&S::client, &C::attempts, 1, 1'000'000>},
    {"client.budget", "0", "percent of calls that may be retried; 0: any number", false,
     put_count<&S::client, &C::budget, 0, 1000>},
    {"client.breaker", "false", "a circuit breaker around the API", false,
     put<&S::client, &C::breaker>},
    {"client.throttle", "0",
     "adaptive throttling: requests a process sends for each that the API accepts (K), 1 to 1000; "
     "0: none",
     false, put_number<&S::client, &C::throttle, 1000>},
    {"client.throttle_window", "2min", "over which requests and accepts are counted", false,
     put<&S::client, &C::throttle_window>},

    {"clock.offset", "0s", "workers' clocks are up to so much ahead or behind", false,
     put<&S::clock, &K::offset>},
    {"clock.drift", "0", "and up to so many millionths too fast or too slow", false,
     put_number<&S::clock, &K::drift, 100'000>},
};

}  // namespace

std::span<const Parameter> parameters() { return table; }

void set(Scenario& scenario, std::string_view path, const Texts& texts) {
  const auto* const found =
      std::find_if(std::begin(table), std::end(table),
                   [path](const Parameter& parameter) { return parameter.path == path; });
  if (found == std::end(table)) {
    std::vector<std::string_view> paths;
    for (const Parameter& parameter : table) paths.push_back(parameter.path);
    const std::string_view near = nearest(path, paths);
    throw std::invalid_argument(
        std::string(path) + ": there is no such parameter" +
        (near.empty() ? std::string() : "; did you mean " + std::string(near) + "?"));
  }
  try {
    if (!found->is_list && texts.size() != 1) {
      throw std::invalid_argument("expected one value, got " + std::to_string(texts.size()));
    }
    found->set(scenario, texts);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string(path) + ": " + error.what());
  }
}

std::span<const std::pair<std::string_view, FaultPlan::Kind>> fault_kinds() { return faults; }

std::string_view name_of(FaultPlan::Kind kind) {
  return std::find_if(std::begin(faults), std::end(faults),
                      [kind](const auto& named) { return named.second == kind; })
      ->first;
}

}  // namespace sluice::sim::scenario
