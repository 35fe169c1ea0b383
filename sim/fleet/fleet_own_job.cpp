// A job that the program's own client does.
#include <boost/system/system_error.hpp>
#include <system_error>

#include "sim/fleet/fleet_run.hpp"

namespace sluice::sim::scenario {

class FleetRun::OwnJob final : public RehearsedJob {
 public:
  OwnJob(FleetRun& fleet, Worker& worker, const Job& job, std::uint64_t number)
      : fleet_(fleet),
        worker_(worker),
        job_(job),
        way_(stream(fleet.scenario_.seed, number, Purpose::way)),
        rng_(stream(fleet.scenario_.seed, number, Purpose::own)) {}

  Task<ApiAnswer> call() override {
    co_await fleet_.thaw(worker_);
    const Time sent = fleet_.world_.now();
    fleet_.recorder_.sent(job_, sent);
    const ApiAnswer answer = co_await fleet_.api_.call(way_, worker_.api_faults);
    // After a success the job is done; a client that calls again is not counted twice.
    if (!done_) fleet_.recorder_.answered(job_, sent, fleet_.world_.now(), answer.status);
    done_ = done_ || answer.status == 200;
    co_return answer;
  }
  Clock& clock() noexcept override { return fleet_.world_.clock(); }
  Rng& rng() noexcept override { return rng_; }
  [[nodiscard]] std::uint32_t key() const noexcept override { return job_.key; }
  [[nodiscard]] bool is_critical() const noexcept override { return job_.critical; }
  [[nodiscard]] bool is_done() const noexcept { return done_; }

 private:
  FleetRun& fleet_;
  Worker& worker_;
  Job job_;
  SeededRng way_;
  SeededRng rng_;
  bool done_ = false;
};

Task<> FleetRun::do_own_job(Worker& worker, std::shared_ptr<Process> process, Job job,
                            std::uint64_t number) {
  OwnJob own_job(*this, worker, job, number);
  bool failed = false;
  try {
    co_await process->client(own_job);
  } catch (const std::system_error&) {
    failed = true;
  } catch (const boost::system::system_error&) {  // of Asio's operations
    failed = true;
  }
  if (own_job.is_done()) co_return;
  if (process->is_dead()) co_return recorder_.lost(job, world_.now());
  if (failed) ++recorder_.counts.store_failures;
  recorder_.gave_up(job, world_.now());
}

}  // namespace sluice::sim::scenario
