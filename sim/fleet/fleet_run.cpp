#include "sim/fleet/fleet_run.hpp"

#include <algorithm>

#include "sim/scenario/effects.hpp"

namespace sluice::sim::scenario {
namespace {

Choice choice_of(const JobOptions& jobs) {
  if (jobs.keys == 1) return Choice::uniform(1);  // the same draws, whichever way it is picked
  switch (jobs.pick) {
    case JobOptions::Pick::zipf:
      return Choice::zipf(jobs.keys, jobs.exponent);
    case JobOptions::Pick::hot:
      return Choice::hot(jobs.keys, jobs.share);
    default:
      return Choice::uniform(jobs.keys);
  }
}

/// How often the store fails over or loses everything.
std::size_t replicas_of(const Scenario& scenario) {
  return static_cast<std::size_t>(
      std::ranges::count_if(scenario.faults, [](const FaultPlan& fault) {
        return fault.kind == FaultPlan::Kind::store_failover ||
               fault.kind == FaultPlan::Kind::store_lost;
      }));
}

/// How many events may happen at one instant: those of jobs that come together are no endless loop.
std::uint64_t events_per_instant(const Scenario& scenario) {
  constexpr std::uint64_t of_a_job = 100;
  const ArrivalOptions& arrivals = scenario.arrivals;
  double jobs = arrivals.trace ? static_cast<double>(arrivals.trace->size()) : 0;
  for (const ArrivalOptions::Burst& burst : arrivals.bursts) {
    jobs += static_cast<double>(burst.jobs) * arrivals.load;
  }
  const auto most = static_cast<std::uint64_t>(std::min(jobs, 1e15));
  return std::min<std::uint64_t>(scenario.events_per_instant, 1'000'000'000'000) + of_a_job * most;
}

}  // namespace

double busy_share(const ResourceStats& since, const ResourceStats& now) noexcept {
  const std::uint64_t whole = now.server_time - since.server_time;
  if (whole == 0) return 0;
  return static_cast<double>(now.busy_time - since.busy_time) / static_cast<double>(whole);
}

FleetRun::FleetRun(const Scenario& scenario, const MakeRehearsedClient& make)
    : scenario_(scenario),
      make_(make),
      server_(scenario.store.service, stream(scenario.seed, 0, serve)),
      recorder_(scenario, VirtualClock::default_start),
      world_({.seed = scenario.seed, .events_per_instant = events_per_instant(scenario)}),
      start_(world_.now()),
      api_(world_, scenario.upstream, scenario.client.timeout),
      keys_(choice_of(scenario.jobs)) {
  store_ =
      std::make_unique<ReplicatedStore>(world_.clock(), scenario.store.lag, replicas_of(scenario));
  if (scenario.limiter.kind == LimiterOptions::Kind::ideal) {
    const ApiLimit& limit = scenario.upstream.limits.front();
    ideal_.emplace(limit.limit, limit.window);
  }
  for (std::uint32_t key = 0; scenario.limiter.by_key && key < scenario.jobs.keys; ++key) {
    key_names_.push_back("k" + std::to_string(key));
  }
  for (std::uint32_t number = 0; number < scenario.fleet.workers; ++number) {
    Worker& worker = workers_.emplace_back();
    worker.number = number;
    if (has_clocks(scenario)) {
      SeededRng rng = stream(scenario.seed, number, skew);
      const auto within = [&rng](Word most) {
        return static_cast<Word>(rng.below(static_cast<std::uint64_t>(2 * most + 1))) - most;
      };
      const Span offset{within(scenario.clock.offset.count())};
      const Word drift = within(static_cast<Word>(scenario.clock.drift));
      worker.clock = &make_worker_clock(world_, {offset, drift});
    }
    start_process(worker);
  }
  apply_to_links();
  for (const FaultPlan& fault : scenario.faults) world_.spawn(befall(fault));
  world_.spawn(sample_store());
  if (scenario.warm_up != Span{0} || scenario.upstream.servers != 0) world_.spawn(note_warm_up());
  if (scenario.limiter.kind == LimiterOptions::Kind::utilization_shedder) {
    world_.spawn(sample_utilization());
  }
  start_arrivals();
}

FleetRun::~FleetRun() = default;

void FleetRun::finish() {
  recorder_.finish(world_.now());
  Counts& counts = recorder_.counts;
  counts.store_failures = store_failures();
  if (!disturbed_) counts.early_failures = counts.store_failures;
  for (const auto& process : ended_) counts.orphaned += process->orphaned();
}

/// Those that jobs have heard of, and those behind a failure policy.
std::uint64_t FleetRun::store_failures() const {
  std::uint64_t sum = recorder_.counts.store_failures;
  for (const Worker& worker : workers_) {
    if (worker.process) sum += worker.process->store_failures();
  }
  for (const auto& process : ended_) sum += process->store_failures();
  return sum;
}

std::uint64_t FleetRun::store_operations() const noexcept {
  std::uint64_t sum = 0;
  for (const Worker& worker : workers_) {
    sum += worker.operations + (worker.process ? worker.process->store_operations() : 0);
  }
  return sum;
}

/// The operations in each step of the series.
Task<> FleetRun::sample_store() {
  std::uint64_t before = 0;
  for (std::uint32_t& count : recorder_.series.store_operations) {
    co_await sleep(recorder_.series.step - Span{1});
    const std::uint64_t now = store_operations();
    count = static_cast<std::uint32_t>(now - std::exchange(before, now));
    co_await sleep(Span{1});
  }
}

Task<> FleetRun::note_warm_up() {
  co_await sleep(scenario_.warm_up);
  warm_up_ = load();
}

FleetRun::Load FleetRun::load() const noexcept {
  return {store_operations(), server_.served(), server_.waited(), server_.busy(), api_.servers()};
}

/// What the API tells of itself: to one worker if they share a limiter, else to each.
Task<> FleetRun::sample_utilization() {
  ResourceStats before;
  for (;;) {
    co_await sleep(scenario_.limiter.period);
    const ResourceStats now = api_.servers();
    // More are busy than there are after their number was reduced.
    const double busy = std::min(busy_share(std::exchange(before, now), now), 1.0);
    for (Worker& worker : workers_) {
      const std::shared_ptr<Process> process = worker.process;
      if (!process) continue;
      co_await process->limiter().sample(busy);
      if (!is_alone(scenario_)) break;
    }
  }
}

void FleetRun::start_process(Worker& worker) {
  const Link link{scenario_.store.to, scenario_.store.from, &server_, &worker.link_faults,
                  scenario_.store.timeout};
  worker.process =
      std::make_shared<Process>(world_, *store_, link, worker.clock, scenario_, processes_++);
  if (make_) worker.process->client = make_(worker.process->store());
}

void FleetRun::stop_process(Worker& worker) {
  if (!worker.process) return;
  worker.operations += worker.process->store_operations();
  worker.process->die();
  ended_.push_back(std::exchange(worker.process, nullptr));
  ++recorder_.counts.crashes;
}

}  // namespace sluice::sim::scenario
