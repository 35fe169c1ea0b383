#include "sim/judges/recorder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::sim::scenario {
namespace {

constexpr Word most_steps = 240;
constexpr Span shortest_step = std::chrono::milliseconds{100};
constexpr Span time_to_adapt = std::chrono::seconds{30};

Time change_of(const Scenario& scenario, Time start) {
  for (const FaultPlan& fault : scenario.faults) {
    if (fault.kind == FaultPlan::Kind::upstream_limit ||
        fault.kind == FaultPlan::Kind::upstream_second) {
      return start + fault.at;
    }
  }
  return Time::max();
}

}  // namespace

Span series_step(Span duration) noexcept {
  const Span even{(duration.count() + most_steps - 1) / most_steps};
  return std::max((even + shortest_step - Span{1}) / shortest_step * shortest_step, shortest_step);
}

std::string_view name_of(JobEvent::What what) {
  static constexpr std::string_view names[] = {"came", "sent", "answered", "gave_up", "lost"};
  return names[static_cast<std::size_t>(what)];
}

Recorder::Recorder(const Scenario& scenario, Time start)
    : worker_ok(scenario.fleet.workers),
      key_asked(scenario.jobs.keys),
      key_refused(scenario.jobs.keys),
      start_(start),
      counted_from_(start + scenario.warm_up),
      changed_at_(change_of(scenario, start)) {
  series.step = series_step(scenario.duration);
  const auto steps =
      static_cast<std::size_t>((scenario.duration + series.step - Span{1}) / series.step);
  for (auto* const column : {&series.offered, &series.sent, &series.ok, &series.refused,
                             &series.waiting, &series.unfinished, &series.store_operations}) {
    column->resize(steps);
  }
}

std::uint32_t& Recorder::in(std::vector<std::uint32_t>& column, Time now) noexcept {
  const auto step = static_cast<std::size_t>((now - start_) / series.step);
  return column[std::min(step, column.size() - 1)];
}

void Recorder::tell(const Job& job, Time now, JobEvent::What what, int status) {
  const JobEvent event{now - start_, what, job.worker, job.number, job.key, status};
  told_[events_told_++ % told_.size()] = event;
  if (on_event) on_event(event);
}

std::vector<JobEvent> Recorder::last_events(Time at) const {
  std::vector<JobEvent> events;
  for (std::uint64_t i = std::min<std::uint64_t>(events_told_, told_.size()); i > 0; --i) {
    const JobEvent& event = told_[(events_told_ - i) % told_.size()];
    if (event.at == at - start_) events.push_back(event);
  }
  return events;
}

void Recorder::came(const Job& job) {
  tell(job, job.came, JobEvent::What::came);
  ++in(series.offered, job.came);
  ++in(series.waiting, job.came);
  ++in(series.unfinished, job.came);
  open_.emplace(job.number, Open{job.came, job.key, {}});
  if (!counts_at(job.came)) return;
  key_asked[job.key] = true;
  ++counts.jobs;
  if (job.critical) ++counts.critical_jobs;
  if (job.key != 0) ++counts.others_jobs;
}

void Recorder::sent(const Job& job, Time now) {
  tell(job, now, JobEvent::What::sent);
  ++in(series.sent, now);
  // A client of the program's own may call again after its success.
  if (const auto open = open_.find(job.number); open != open_.end() && !open->second.sent) {
    open->second.sent = now;
    --in(series.waiting, now);
  }
  if (counts_at(now)) ++counts.calls;
}

void Recorder::compared(const Job& job, bool obeyed, bool shadow) noexcept {
  if (!counts_at(job.came)) return;
  ++counts.shadow_asked;
  if (shadow != obeyed) ++counts.shadow_differs;
  if (shadow) ++counts.shadow_granted;
  if (obeyed) ++counts.obeyed_granted;
}

void Recorder::answered(const Job& job, Time sent, Time now, int status) {
  tell(job, now, JobEvent::What::answered, status);
  if (status == 429) {
    ++in(series.refused, now);
    last_429 = now;
    if (changed_at_ != Time::max() && now > changed_at_ + time_to_adapt) ++counts.late_429;
  }
  if (status == 200) {
    ++in(series.ok, now);
    close(job, now);
  } else if (std::exchange(open_.at(job.number).sent, std::nullopt)) {
    ++in(series.waiting, now);
  }
  if (status == 200 && counts_at(job.came)) {
    ++worker_ok[job.worker];
    if (job.critical) ++counts.critical_ok;
    if (job.key != 0) ++counts.others_ok;
    waited(job, sent - job.came);
  }
  if (!counts_at(sent)) return;
  if (status == 200) ++counts.ok;
  if (status == 429) ++counts.refused_429;
  if (status != 200 && status != 429) ++counts.failed;
  if (status == 0) ++counts.timed_out;
}

void Recorder::gave_up(const Job& job, Time now) {
  tell(job, now, JobEvent::What::gave_up);
  close(job, now);
  if (!counts_at(job.came)) return;
  key_refused[job.key] = true;
  ++counts.given_up;
}

void Recorder::lost(const Job& job, Time now) {
  tell(job, now, JobEvent::What::lost);
  close(job, now);
  if (counts_at(job.came)) ++counts.lost;
}

void Recorder::close(const Job& job, Time now) {
  const auto open = open_.find(job.number);
  --in(series.unfinished, now);
  if (!open->second.sent) --in(series.waiting, now);
  open_.erase(open);
}

void Recorder::waited(const Job& job, Span span) {
  wait.add(span);
  wait_sum += static_cast<double>(span.count());
  if (job.key != 0) others_wait.add(span);
}

bool Recorder::keep() noexcept {
  truncated = truncated || kept_ == most_kept;
  if (!truncated) ++kept_;
  return !truncated;
}

void Recorder::granted(std::uint64_t index, const testing::Event& grant) {
  if (keep()) grants[index].push_back(grant);
}

void Recorder::polled(std::uint64_t index, const testing::Event& answer) {
  if (keep()) polls[index].push_back(answer);
}

void Recorder::granted_locally(std::uint64_t index, const testing::Event& grant) {
  if (keep()) local_grants[index].push_back(grant);
}

std::uint64_t Recorder::leased(std::uint64_t index, testing::LeaseRecord event) {
  event.lease = ++leases_;
  if (keep()) leases[index].push_back(event);
  return event.lease;
}

void Recorder::released(std::uint64_t index, std::uint64_t lease, Word fence, Time now) {
  if (keep()) {
    leases[index].push_back({now, testing::LeaseRecord::Act::released, lease, 0, {}, fence});
  }
}

std::size_t Recorder::queued(const Job& job, Time now, Time deadline) {
  if (kept_waits_ == most_kept) {
    truncated = true;
    return most_kept;
  }
  ++kept_waits_;
  auto& queue = queues[{job.worker, job.key, job.critical}];
  queue.push_back({now, {}, testing::Wait::End::pending, 0, deadline, job.cost, 0});
  return queue.size() - 1;
}

void Recorder::left_queue(const Job& job, std::size_t place, Time now, testing::Wait::End end) {
  if (place == most_kept) return;
  testing::Wait& left = queues[{job.worker, job.key, job.critical}][place];
  left.ended = now;
  left.end = end;
  ++left.completions;
}

void Recorder::finish(Time now) {
  stopped = now;
  for (const auto& [number, job] : open_) {
    if (!counts_at(job.came)) continue;
    waited({job.came, 0, job.key, false, 1, number}, job.sent.value_or(now) - job.came);
  }
  for (auto& [index, some] : grants) {
    std::ranges::stable_sort(some, {}, &testing::Event::effective);
  }
  // Until now, each step has its change, modulo 2^32.
  for (auto* const column : {&series.waiting, &series.unfinished}) {
    std::partial_sum(column->begin(), column->end(), column->begin());
  }
}

}  // namespace sluice::sim::scenario
