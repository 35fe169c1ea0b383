// The events of the fleet. Every event is folded into the trace.
#include "sim/fleet_model.hpp"

#include <algorithm>

namespace sluice::sim {
namespace {

enum Kind : std::uint32_t {
  arrival = 1,
  asked,
  granted,
  refused,
  failed,
  sent,
  judged,
  answered,
  retry
};
enum Purpose : std::uint64_t { arrivals = 1, to_api, from_api, backoff, pacing, store_link };

constexpr Span shortest_pause{1'000};
constexpr Span longest_pause{120'000'000};
constexpr Span pause_after_error{1'000'000};

Word weight_of(std::uint32_t worker) { return 10'000'000 / (Word{worker} + 10); }

Span spread(const Delay& delay) { return delay.max() - delay.min(); }

/// How far apart from their order two admitted calls can reach the API.
Span jitter_of(const FleetOptions& o) {
  const Span on_the_way = spread(o.to_api);
  if (o.limiting == Limiting::per_process) return on_the_way;
  return on_the_way + spread(o.store_link.from_store);
}

Quota quota_of(const FleetOptions& o) {
  if (o.limiting == Limiting::per_process) {
    return safe_quota(o.limit / Word{o.workers}, o.window, 1, jitter_of(o));
  }
  return safe_quota(o.limit, o.window, o.burst, jitter_of(o));
}

}  // namespace

Fleet::Model::Worker::Worker(Model& owner, std::uint32_t number, Word weight)
    : model(owner),
      index(number),
      key(owner.options_.limiting == Limiting::shared ? "fleet"
                                                      : "worker-" + std::to_string(number)),
      busy_gap(Delay::exponential(owner.options_.window * owner.weights_ /
                                  (owner.options_.demand.busy * weight))),
      calm_gap(Delay::exponential(owner.options_.window * owner.weights_ /
                                  (owner.options_.demand.calm * weight))),
      arrivals(stream(owner.options_.seed, number, Purpose::arrivals)),
      to_api(stream(owner.options_.seed, number, Purpose::to_api)),
      from_api(stream(owner.options_.seed, number, Purpose::from_api)),
      backoff(stream(owner.options_.seed, number, Purpose::backoff)),
      pacing(stream(owner.options_.seed, number, Purpose::pacing)),
      pause(shortest_pause) {}

Fleet::Model::Model(const FleetOptions& options)
    : options_(options),
      bucket_(*store_, "api", quota_of(options)),
      upstream_(options.limit, options.window),
      ideal_(options.limit, options.window) {
  for (std::uint32_t i = 0; i < options.workers; ++i) weights_ += weight_of(i);
  for (std::uint32_t i = 0; i < options.workers; ++i) {
    Worker& worker = workers_.emplace_back(*this, i, weight_of(i));
    if (options.limiting == Limiting::shared) {
      links_.emplace_back(timeline_, *store_, options.store_link,
                          stream(options.seed, i, Purpose::store_link));
    }
    expect_arrival(worker);
  }
}

/// The gaps are exponential, so that a gap beyond the end of its phase may be drawn again there.
void Fleet::Model::expect_arrival(Worker& worker) {
  Time from = timeline_.now();
  for (;;) {
    const Word phase = (from - start_) / options_.demand.phase;
    const Time phase_end = start_ + (phase + 1) * options_.demand.phase;
    const Delay& gap = phase % 2 == 0 ? worker.busy_gap : worker.calm_gap;
    const Time next = from + gap.sample(worker.arrivals);
    if (next < phase_end) {
      timeline_.at<&Model::on_arrival>(next, *this, worker.index);
      return;
    }
    from = phase_end;
  }
}

void Fleet::Model::on_arrival(std::uint64_t index) {
  Worker& worker = workers_[index];
  const Time now = timeline_.now();
  trace(worker.index, Kind::arrival, arrived_);
  ++arrived_;
  settle_ideal(now);
  ideal_jobs_.emplace_back(now, ideal_.send(now));
  const JobId id = new_job(worker);
  admit(id);
  expect_arrival(worker);
}

Fleet::Model::JobId Fleet::Model::new_job(Worker& worker) {
  if (free_jobs_.empty()) {
    free_jobs_.push_back(static_cast<JobId>(jobs_.size()));
    jobs_.emplace_back();
  }
  const JobId id = free_jobs_.back();
  free_jobs_.pop_back();
  jobs_[id] = {Job::State::waiting, worker.index, 0, no_job, timeline_.now(), {}};
  return id;
}

void Fleet::Model::admit(JobId id) {
  if (options_.limiting == Limiting::none) return send(id);
  enqueue(id);
  ask(workers_[jobs_[id].worker]);
}

void Fleet::Model::enqueue(JobId id) {
  Worker& worker = workers_[jobs_[id].worker];
  jobs_[id].next = no_job;
  (worker.queued == 0 ? worker.first : jobs_[worker.last].next) = id;
  worker.last = id;
  ++worker.queued;
}

Fleet::Model::JobId Fleet::Model::dequeue(Worker& worker) {
  const JobId id = worker.first;
  worker.first = jobs_[id].next;
  --worker.queued;
  return id;
}

/// One request at a time for each worker, for several jobs: the store is called less often than the
/// API.
void Fleet::Model::ask(Worker& worker) {
  if (worker.asking || worker.queued == 0) return;
  worker.asking = true;
  const Word most = options_.limiting == Limiting::shared ? options_.largest_batch : 1;
  const Word cost = std::min(worker.queued, most);
  ++store_operations_;
  trace(worker.index, Kind::asked, static_cast<std::uint64_t>(cost));
  Store& store = links_.empty() ? *store_ : links_[worker.index];
  worker.asked_for = cost;
  store.execute(bucket_.acquire_step(worker.key, cost), Completion(&Model::decided, &worker));
}

void Fleet::Model::decided(void* context, const Outcome& outcome) noexcept {
  Worker& worker = *static_cast<Worker*>(context);
  worker.model.on_decided(worker, outcome);
}

/// The hint is exact for a single caller. With many, all would return at that time, one would be
/// granted and the rest refused again. So each adds a random pause, which doubles with a refusal
/// and halves with a grant: about every second request is granted, however many workers wait. The
/// pause is divided by the number of waiting jobs, so that a worker with a longer queue asks more
/// often and no job waits much longer than another.
void Fleet::Model::on_decided(Worker& worker, const Outcome& outcome) {
  const Decision& decision = outcome.decision;
  if (outcome.error) {
    ++errors_;
    trace(worker.index, Kind::failed, static_cast<std::uint64_t>(outcome.error.value()));
    timeline_.after<&Model::on_ask_again>(pause_after_error, *this, worker.index);
    return;
  }
  if (!decision.allowed) {
    trace(worker.index, Kind::refused, static_cast<std::uint64_t>(decision.retry_after.count()));
    Span wait = decision.retry_after;
    if (options_.limiting == Limiting::shared) {
      const Word most = worker.pause.count() / worker.queued;
      wait += Span{static_cast<Word>(worker.pacing.below(static_cast<std::uint64_t>(most) + 1))};
      worker.pause = std::min(worker.pause * 2, longest_pause);
    }
    timeline_.after<&Model::on_ask_again>(wait, *this, worker.index);
    return;
  }
  trace(worker.index, Kind::granted, static_cast<std::uint64_t>(decision.remaining));
  worker.pause = std::max(worker.pause / 2, shortest_pause);
  for (Word i = 0; i < worker.asked_for; ++i) send(dequeue(worker));
  worker.asking = false;
  ask(worker);
}

void Fleet::Model::on_ask_again(std::uint64_t index) {
  workers_[index].asking = false;
  ask(workers_[index]);
}

void Fleet::Model::send(JobId id) {
  Job& job = jobs_[id];
  job.state = Job::State::in_flight;
  job.sent = timeline_.now();
  ++calls_;
  ++in_flight_;
  trace(job.worker, Kind::sent, id);
  const Span way = options_.to_api.sample(workers_[job.worker].to_api);
  timeline_.after<&Model::on_reach>(way, *this, id);
}

void Fleet::Model::on_reach(std::uint64_t id) {
  const Job& job = jobs_[id];
  const std::uint64_t ok = upstream_.call(timeline_.now()) ? 1 : 0;
  trace(job.worker, Kind::judged, id << 1 | ok);
  const Span way = options_.from_api.sample(workers_[job.worker].from_api);
  timeline_.after<&Model::on_answer>(way, *this, id << 1 | ok);
}

void Fleet::Model::on_answer(std::uint64_t id_and_status) {
  const auto id = static_cast<JobId>(id_and_status >> 1);
  Job& job = jobs_[id];
  --in_flight_;
  trace(job.worker, Kind::answered, id_and_status);
  if ((id_and_status & 1) != 0) {
    ++successes_;
    wait_.add(job.sent - job.wanted);
    job.state = Job::State::done;
    free_jobs_.push_back(id);
    return;
  }
  ++rejected_;
  ++job.rejections;
  job.state = Job::State::waiting;
  timeline_.after<&Model::on_retry>(backoff_of(job), *this, id);
}

void Fleet::Model::on_retry(std::uint64_t id) {
  trace(jobs_[id].worker, Kind::retry, id);
  admit(static_cast<JobId>(id));
}

Span Fleet::Model::backoff_of(const Job& job) {
  Span most = options_.backoff.base;
  for (std::uint32_t i = 1; i < job.rejections && most < options_.backoff.cap; ++i) most *= 2;
  most = std::min(most, options_.backoff.cap);
  Rng& rng = workers_[job.worker].backoff;
  return Span{static_cast<Word>(rng.below(static_cast<std::uint64_t>(most.count()) + 1))};
}

FleetResult Fleet::Model::result() const {
  FleetResult r;
  r.jobs = arrived_;
  r.calls = calls_;
  r.successes = successes_;
  r.rejected = rejected_;
  r.in_flight = in_flight_;
  r.waiting = arrived_ - successes_ - in_flight_;
  r.errors = errors_;
  r.store_operations = store_operations_;
  r.judged = upstream_.calls();
  r.judged_rejected = upstream_.rejected();
  r.busiest_window = upstream_.busiest();
  r.busiest_admitted = upstream_.busiest_admitted();
  r.wait = wait_;
  for (const Job& job : jobs_) {
    if (job.state == Job::State::waiting) r.wait.add(timeline_.now() - job.wanted);
    if (job.state == Job::State::in_flight) r.wait.add(job.sent - job.wanted);
  }
  r.ideal_successes = ideal_successes_;
  r.ideal_wait = ideal_wait_;
  for (const auto& [came, sends] : ideal_jobs_) {
    if (sends <= timeline_.now()) ++r.ideal_successes;
    r.ideal_wait.add(std::min(sends, timeline_.now()) - came);
  }
  r.events = timeline_.events();
  r.trace = trace_.value();
  return r;
}

/// Counts the jobs that the ideal has sent by now, so that only its backlog is stored.
void Fleet::Model::settle_ideal(Time now) {
  while (!ideal_jobs_.empty() && ideal_jobs_.front().second <= now) {
    const auto [came, sends] = ideal_jobs_.front();
    ++ideal_successes_;
    ideal_wait_.add(sends - came);
    ideal_jobs_.pop_front();
  }
}

}  // namespace sluice::sim
