// When jobs come, and whose they are.
#include <cmath>

#include "sim/fleet/fleet_run.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr Word load_unit = 1'000'000;

Word millionths(double value) { return std::llround(value * static_cast<double>(load_unit)); }

}  // namespace

Arrivals FleetRun::arrivals() const {
  const ArrivalOptions& options = scenario_.arrivals;
  const auto even = [&] {
    switch (options.kind) {
      case ArrivalOptions::Kind::constant:
        return Arrivals::constant(options.rate);
      case ArrivalOptions::Kind::on_off:
        return Arrivals::on_off(options.busy, options.calm, options.phase);
      case ArrivalOptions::Kind::mmpp:
        return Arrivals::mmpp({options.busy, options.busy_for}, {options.calm, options.calm_for},
                              stream(scenario_.seed, 0, phase));
      case ArrivalOptions::Kind::diurnal:
        return Arrivals::diurnal(options.rate, options.swing, options.period);
      case ArrivalOptions::Kind::spike:
        return Arrivals::spike(options.rate, options.factor, options.from, options.length);
      default:
        return Arrivals::poisson(options.rate);
    }
  }();
  return options.load == 1 ? even : even.scaled(millionths(options.load), load_unit);
}

/// Of Poisson processes: shares that do not depend on the other workers' draws.
Arrivals FleetRun::share_of(const Arrivals& all, std::uint32_t worker) const {
  const std::uint32_t workers = scenario_.fleet.workers;
  if (scenario_.fleet.spread == FleetOptions::Spread::equal ||
      scenario_.arrivals.kind == ArrivalOptions::Kind::constant) {
    return all.part(worker, workers);
  }
  const auto weight = [](std::uint32_t i) { return 1.0 / (i + 10); };
  double sum = 0;
  for (std::uint32_t i = 0; i < workers; ++i) sum += weight(i);
  return all.scaled(millionths(weight(worker) / sum), load_unit);
}

void FleetRun::start_arrivals() {
  switch (scenario_.arrivals.kind) {
    case ArrivalOptions::Kind::bursts:
      return world_.spawn(send_bursts());
    case ArrivalOptions::Kind::trace:
      return world_.spawn(send_trace());
    case ArrivalOptions::Kind::closed:
      for (Worker& worker : workers_) {
        for (std::uint32_t i = 0; i < scenario_.arrivals.clients; ++i) {
          world_.spawn(be_client(worker, std::uint64_t{worker.number} << 32 | i));
        }
      }
      return;
    default:
      const Arrivals all = arrivals();
      // A phase costs time even if nobody comes in it.
      const bool has_phases = scenario_.arrivals.kind == ArrivalOptions::Kind::mmpp;
      const Span until = has_phases ? scenario_.duration : Span{word_limit};
      for (Worker& worker : workers_) {
        world_.spawn(send_jobs(
            worker, ArrivalProcess(share_of(all, worker.number),
                                   stream(scenario_.seed, worker.number, arrive), until)));
      }
  }
}

Job FleetRun::make_job(Worker& worker) {
  SeededRng rng = stream(scenario_.seed, std::uint64_t{worker.number} << 32 | worker.jobs, choose);
  Job job{world_.now(), worker.number, 0, false, scenario_.jobs.cost};
  job.key = static_cast<std::uint32_t>(keys_.draw(rng));
  const double critical = scenario_.jobs.critical;
  job.critical = critical != 0 && static_cast<double>(rng.below(load_unit)) < critical * load_unit;
  return job;
}

void FleetRun::begin(Worker& worker, const Job& job) {
  world_.spawn(run_job(worker, job, std::uint64_t{worker.number} << 32 | worker.jobs++));
}

Task<> FleetRun::send_jobs(Worker& worker, ArrivalProcess process) {
  while (const auto at = process.next()) {
    co_await asio::sleep_until(world_.clock(), start_ + *at);
    begin(worker, make_job(worker));
  }
}

Task<> FleetRun::send_bursts() {
  std::size_t next = 0;
  const Word load = millionths(scenario_.arrivals.load);
  for (const auto& [jobs, at] : scenario_.arrivals.bursts) {
    co_await asio::sleep_until(world_.clock(), start_ + at);
    const Word scaled = (jobs * load + load_unit / 2) / load_unit;
    for (Word i = 0; i < scaled; ++i) {
      Worker& worker = workers_[next++ % workers_.size()];
      begin(worker, make_job(worker));
    }
  }
}

Task<> FleetRun::send_trace() {
  std::size_t next = 0;
  for (const auto& [at, key, cost] : *scenario_.arrivals.trace) {
    if (start_ + at > world_.now()) {
      co_await asio::sleep_until(world_.clock(), start_ + at);
    }
    Worker& worker = workers_[next++ % workers_.size()];
    Job job = make_job(worker);
    job.key = key;
    job.cost *= static_cast<Word>(cost);
    begin(worker, job);
  }
}

/// One client of a closed loop.
Task<> FleetRun::be_client(Worker& worker, std::uint64_t number) {
  SeededRng rng = stream(scenario_.seed, number, think);
  DelayProcess pauses(scenario_.arrivals.think, states_of(rng, 0));
  for (;;) {
    co_await sleep(pauses.sample(world_.now(), rng));
    const Job job = make_job(worker);
    co_await run_job(worker, job, std::uint64_t{worker.number} << 32 | worker.jobs++);
  }
}

}  // namespace sluice::sim::scenario
