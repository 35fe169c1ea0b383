// What a job does: it passes the limiter, calls the API, and tries again.
#include <algorithm>

#include "sim/fleet/fleet_run.hpp"
#include "sim/scenario/effects.hpp"

namespace sluice::sim::scenario {
namespace {

constexpr int critical_priority = 1;

using Retries = ClientOptions::Retries;

/// The pauses after failures.
class Pauses {
 public:
  Pauses(const ClientOptions& options, const SeededRng& rng) : options_(options), rng_(rng) {
    const auto jittered = [this](Jitter jitter) {
      backoff_.emplace(options_.pause, std::max(options_.pause, options_.cap), jitter);
    };
    if (options.retries == Retries::full) jittered(Jitter::full);
    if (options.retries == Retries::equal) jittered(Jitter::equal);
    if (options.retries == Retries::decorrelated) jittered(Jitter::decorrelated);
  }

  Span next() {
    if (backoff_) return backoff_->next(rng_);
    const Span pause = std::min(options_.pause * times_, std::max(options_.pause, options_.cap));
    if (options_.retries == Retries::exponential && pause < options_.cap) times_ *= 2;
    return pause;
  }

 private:
  const ClientOptions& options_;
  SeededRng rng_;
  std::optional<Backoff> backoff_;
  Word times_ = 1;
};

}  // namespace

/// The state of a job between its calls.
struct FleetRun::Attempt {
  Attempt(const ClientOptions& options, const SeededRng& way_draws, const SeededRng& pause_draws,
          Time until)
      : draws(way_draws), pauses(options, pause_draws), deadline(until) {}
  SeededRng draws;
  Pauses pauses;
  Time deadline;
  Span wait{0};  // before the next call
  std::uint32_t calls = 0;
};

/// Notes the end of a lease when it is destroyed.
struct FleetRun::LeaseNote {
  LeaseNote(FleetRun& fleet, Process& process, const Job& job, Admission& admission)
      : run(fleet), index(fleet.index_of(process, job)) {
    if (admission.error || !admission.is_charged() || !process.limiter().has_places()) return;
    const Lease* const held = admission.lease();
    if (held == nullptr) return;
    fence = held->fence();
    lease =
        run.recorder_.leased(index, {admission.decision.at, testing::LeaseRecord::Act::acquired, 0,
                                     job.cost, admission.decision.at + LeaseOptions{}.ttl, fence});
  }
  LeaseNote(const LeaseNote&) = delete;
  LeaseNote& operator=(const LeaseNote&) = delete;
  ~LeaseNote() { end(); }
  void end() {
    if (lease != 0) run.recorder_.released(index, std::exchange(lease, 0), fence, run.world_.now());
  }

  FleetRun& run;
  std::uint64_t index;
  std::uint64_t lease = 0;
  Word fence = 0;
};

Task<> FleetRun::run_job(Worker& worker, Job job, std::uint64_t number) {
  job.number = number;
  recorder_.came(job);
  const std::shared_ptr<Process> process = worker.process;
  if (process && process->client) co_return co_await do_own_job(worker, process, job, number);
  if (process) co_return co_await do_job(worker, process, job, number);
  recorder_.lost(job, world_.now());
}

Task<> FleetRun::do_job(Worker& worker, std::shared_ptr<Process> process, Job job,
                        std::uint64_t number) {
  const Span patience = scenario_.jobs.patience;
  Attempt attempt(scenario_.client, stream(scenario_.seed, number, way),
                  stream(scenario_.seed, number, pause),
                  patience == Span{0} ? Time::max() : job.came + patience);
  process->budget().note_call();
  for (;;) {
    const Next next = co_await try_once(worker, *process, job, attempt);
    if (process->is_dead()) break;
    if (next == Next::done) co_return;
    if (next == Next::give_up || world_.now() + attempt.wait >= attempt.deadline) {
      co_return recorder_.gave_up(job, world_.now());
    }
    co_await sleep(attempt.wait);
    if (process->is_dead()) break;
  }
  recorder_.lost(job, world_.now());
}

/// The limiter, the throttle, the breaker, and a call of the API. What is held of the limiter ends
/// with it.
Task<FleetRun::Next> FleetRun::try_once(Worker& worker, Process& process, const Job& job,
                                        Attempt& attempt) {
  co_await thaw(worker);
  if (world_.now() >= attempt.deadline) co_return Next::give_up;
  Admission admission = co_await admit(process, job, attempt);
  LeaseNote lease(*this, process, job, admission);
  if (process.is_dead()) co_return Next::give_up;
  attempt.wait = attempt.pauses.next();
  if (admission.error) {
    ++recorder_.counts.store_failures;
    co_return Next::again;
  }
  if (!admission.decision.allowed) co_return Next::give_up;
  CircuitBreaker::Permit permit{.granted = true};
  if (is_held_back(process, attempt, permit)) {
    co_return may_retry(process, attempt) ? Next::again : Next::give_up;
  }
  if (process.adaptive_rate()) {
    const Time when = process.adaptive_rate()->reserve(world_.now(), attempt.deadline);
    if (when > world_.now()) {
      if (when >= attempt.deadline) co_return Next::give_up;
      co_await asio::sleep_until(world_.clock(), when);
    }
  }
  co_await thaw(worker);
  if (process.is_dead()) co_return Next::give_up;
  const ApiAnswer answer = co_await call_api(worker, process, job, attempt, permit);
  if (process.is_dead()) co_return Next::give_up;
  lease.end();
  admission.held = {};  // a place is free again, before the gate is closed
  const Next next = co_await next_after(answer, process, job, admission, attempt);
  co_return next;
}

Task<ApiAnswer> FleetRun::call_api(const Worker& worker, Process& process, const Job& job,
                                   Attempt& attempt, CircuitBreaker::Permit& permit) {
  const Time sent = world_.now();
  ++attempt.calls;
  recorder_.sent(job, sent);
  const ApiAnswer answer = co_await api_.call(attempt.draws, worker.api_faults);
  if (process.is_dead()) co_return answer;
  recorder_.answered(job, sent, world_.now(), answer.status);
  const bool refused = answer.status == 0 || answer.status == 429 || answer.status == 503;
  if (process.throttle() && !refused) process.throttle()->note_accept(world_.now());
  if (process.adaptive_rate()) {
    process.adaptive_rate()->answered(world_.now(), answer.status == 429);
  }
  if (scenario_.client.breaker) {
    const bool up = answer.status == 200 || answer.status == 429;
    process.breaker().answer(
        permit, up ? CircuitBreaker::Result::success : CircuitBreaker::Result::failure);
  }
  co_return answer;
}

Task<FleetRun::Next> FleetRun::next_after(const ApiAnswer& answer, Process& process, const Job& job,
                                          const Admission& admission, Attempt& attempt) {
  if (answer.status == 200) co_return Next::done;
  if (answer.retry_after) attempt.wait = std::max(attempt.wait, *answer.retry_after);
  if (answer.status == 429) co_await note_refusal(answer, process, job, admission, attempt);
  co_return may_retry(process, attempt) ? Next::again : Next::give_up;
}

Task<> FleetRun::note_refusal(const ApiAnswer& answer, Process& process, const Job& job,
                              const Admission& admission, Attempt& attempt) {
  Limiter& limiter = process.limiter();
  // Where the API says no time, a rate that has fallen says when the next try is due.
  if (limiter.learns()) attempt.wait = answer.retry_after.value_or(Span{0});
  const bool closes = scenario_.limiter.gates;
  const auto closed = co_await limiter.refused(key_of(job), admission,
                                               closes ? std::optional(attempt.wait) : std::nullopt);
  if (closed) recorder_.closed_gate(*closed, *closed + attempt.wait);
  if (closes) attempt.wait = Span{0};  // the gate makes it wait
}

/// Whether the throttle or the breaker refuses the call: then it has failed, and was not sent.
bool FleetRun::is_held_back(Process& process, Attempt& attempt, CircuitBreaker::Permit& permit) {
  const bool throttled = process.throttle() && !process.throttle()->ask(world_.now());
  if (!throttled && scenario_.client.breaker) permit = process.breaker().ask();
  if (!throttled && permit) return false;
  recorder_.held_back(throttled ? recorder_.counts.throttled : recorder_.counts.breaker_shed,
                      world_.now());
  ++attempt.calls;
  return true;
}

bool FleetRun::may_retry(Process& process, Attempt& attempt) {
  if (scenario_.client.retries == Retries::none) return false;
  if (attempt.calls >= scenario_.client.attempts) return false;
  if (scenario_.client.budget == 0 || process.budget().take_retry()) return true;
  recorder_.held_back(recorder_.counts.retries_denied, world_.now());
  return false;
}

Task<Admission> FleetRun::admit(Process& process, const Job& job, Attempt& attempt) {
  if (ideal_) {
    co_await asio::sleep_until(world_.clock(), ideal_->send(world_.now()));
    Admission admission;
    admission.decision.allowed = true;
    co_return admission;
  }
  const std::size_t place = recorder_.queued(job, world_.now(), attempt.deadline);
  // Not a conditional expression: g++ 12 destroys what it awaits twice.
  Admission admission;
  if (scenario_.limiter.wait == LimiterOptions::Wait::queue) {
    admission = co_await process.limiter().acquire(key_of(job), job.cost, attempt.deadline,
                                                   job.critical ? critical_priority : 0);
  } else {
    admission = co_await poll(process, job, attempt);
  }
  using End = testing::Wait::End;
  if (process.is_dead()) {  // whatever its failure policy has said
    ++recorder_.counts.stranded;
    recorder_.left_queue(job, place, world_.now(), End::failed);
    co_return admission;
  }
  // Of two grants for one instant, the answer to the later one may be here first.
  const bool on_time = process.limiter().is_some() && !has_clocks(scenario_);
  const Time end = on_time && !admission.error && admission.is_charged()
                       ? admission.decision.at + admission.decision.retry_after
                       : world_.now();
  recorder_.left_queue(job, place, end,
                       admission.error              ? End::failed
                       : admission.decision.allowed ? End::granted
                                                    : End::refused);
  if (!admission.error && process.limiter().is_some()) note_grant(process, job, admission);
  if (process.shadow().is_some() && !admission.error) {
    co_await ask_shadow(process, job, admission.decision.allowed);
  }
  co_return admission;
}

/// try_acquire(), and again after the hint and a pause, unless refused jobs are skipped.
Task<Admission> FleetRun::poll(Process& process, const Job& job, Attempt& attempt) {
  for (;;) {
    Admission admission = co_await process.limiter().ask(key_of(job), job.cost, job.critical);
    if (!admission.error) note_poll(process, job, admission);
    const bool again = scenario_.limiter.wait == LimiterOptions::Wait::poll && !process.is_dead();
    if (admission.error || admission.decision.allowed || !again) co_return admission;
    const Span wait = std::max(admission.decision.retry_after, attempt.pauses.next());
    if (world_.now() + wait >= attempt.deadline) co_return admission;
    co_await sleep(wait);
  }
}

Task<> FleetRun::ask_shadow(Process& process, const Job& job, bool obeyed) {
  const Admission other = co_await process.shadow().ask(key_of(job), job.cost, job.critical);
  if (!other.error) recorder_.compared(job, obeyed, other.decision.allowed);
}

/// What the limiter limits apart: a tenant, and a process if each has a limiter of its own.
std::uint64_t FleetRun::index_of(const Process& process, const Job& job) const noexcept {
  const std::uint64_t key = scenario_.limiter.by_key ? job.key : 0;
  return key << 32 | (is_alone(scenario_) ? process.number() : 0);
}

void FleetRun::note_grant(const Process& process, const Job& job, const Admission& admission) {
  const Decision& decision = admission.decision;
  if (!decision.allowed) return;
  const bool takes_one = scenario_.limiter.kind == LimiterOptions::Kind::slot_lock;
  const testing::Event event = testing::note(decision, takes_one ? 1 : job.cost, job.worker);
  if (admission.is_charged()) {
    // A shedder charges nobody anything.
    if (scenario_.limiter.kind == LimiterOptions::Kind::utilization_shedder) return;
    return recorder_.granted(index_of(process, job), event);
  }
  ++recorder_.counts.without_store;
  if (decision.source != Source::fallback) return;
  const std::uint64_t key = scenario_.limiter.by_key ? job.key : 0;
  recorder_.granted_locally(key << 32 | process.number(), event);
}

void FleetRun::note_poll(Process& process, const Job& job, const Admission& admission) {
  if (!process.limiter().is_some() || is_degraded(admission.decision.source)) return;
  recorder_.polled(index_of(process, job), testing::note(admission.decision, job.cost, job.worker));
}

/// Waits while the worker stands still.
Task<> FleetRun::thaw(const Worker& worker) {
  while (world_.now() < worker.frozen_until) {
    co_await asio::sleep_until(world_.clock(), worker.frozen_until);
  }
}

}  // namespace sluice::sim::scenario
