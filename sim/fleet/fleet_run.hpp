// FleetRun: one run of a scenario: workers whose jobs pass the limiter and call the API, while
// faults begin and end. Threading: one run, on one thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/fleet/api.hpp"
#include "sim/fleet/process.hpp"
#include "sim/judges/recorder.hpp"
#include "sluice/sim/choice.hpp"
#include "sluice/sim/replicated_store.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim::scenario {

/// The share of the servers' time between both in which they worked.
[[nodiscard]] double busy_share(const ResourceStats& since, const ResourceStats& now) noexcept;

class FleetRun {
 public:
  /// `make`: the program's own client; may be empty. REQUIRES: validate() accepts the scenario,
  /// which outlives the run, as `make` does.
  FleetRun(const Scenario& scenario, const MakeRehearsedClient& make);
  ~FleetRun();

  /// Continues for a part of the duration.
  void run_for(Span span) { world_.run_for(span); }
  /// After the whole duration.
  void finish();

  [[nodiscard]] const Recorder& recorder() const noexcept { return recorder_; }
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }
  [[nodiscard]] const Upstream& upstream() const noexcept { return api_.upstream(); }
  [[nodiscard]] const StoreServer& server() const noexcept { return server_; }
  [[nodiscard]] World& world() noexcept { return world_; }
  [[nodiscard]] std::uint64_t lost_writes() const noexcept { return lost_writes_; }
  /// What was asked of the store, and what it and the API have done.
  struct Load {
    std::uint64_t store_operations = 0;
    std::uint64_t store_served = 0;
    Span store_waited{0};  // of those that were served
    Span store_busy{0};
    ResourceStats upstream;
  };
  [[nodiscard]] Load load() const noexcept;
  [[nodiscard]] const Load& load_at_warm_up() const noexcept { return warm_up_; }

 private:
  struct Worker {
    std::uint32_t number = 0;
    std::shared_ptr<Process> process;  // none: it is down
    WorkerClock* clock = nullptr;
    LinkFaults link_faults{};
    LinkFaults api_faults{};  // of its way to the API
    Time frozen_until{};
    std::uint64_t jobs = 0;
    std::uint64_t operations = 0;  // of the processes that have ended
  };
  enum Purpose : std::uint64_t { arrive = 1, choose, way, pause, serve, think, skew, own, phase };

  // fleet_arrivals.cpp
  void start_arrivals();
  [[nodiscard]] Arrivals arrivals() const;
  [[nodiscard]] Arrivals share_of(const Arrivals& all, std::uint32_t worker) const;
  Task<> send_jobs(Worker& worker, ArrivalProcess process);
  Task<> send_bursts();
  Task<> send_trace();
  Task<> be_client(Worker& worker, std::uint64_t number);
  Job make_job(Worker& worker);
  void begin(Worker& worker, const Job& job);

  // fleet_job.cpp
  struct Attempt;
  struct LeaseNote;
  class OwnJob;
  enum class Next { done, again, give_up };
  Task<> run_job(Worker& worker, Job job, std::uint64_t number);
  Task<> do_job(Worker& worker, std::shared_ptr<Process> process, Job job, std::uint64_t number);
  Task<Next> try_once(Worker& worker, Process& process, const Job& job, Attempt& attempt);
  Task<ApiAnswer> call_api(const Worker& worker, Process& process, const Job& job, Attempt& attempt,
                           CircuitBreaker::Permit& permit);
  Task<Next> next_after(const ApiAnswer& answer, Process& process, const Job& job,
                        const Admission& admission, Attempt& attempt);
  Task<> note_refusal(const ApiAnswer& answer, Process& process, const Job& job,
                      const Admission& admission, Attempt& attempt);
  Task<> do_own_job(Worker& worker, std::shared_ptr<Process> process, Job job,
                    std::uint64_t number);
  Task<Admission> admit(Process& process, const Job& job, Attempt& attempt);
  Task<Admission> poll(Process& process, const Job& job, Attempt& attempt);
  Task<> ask_shadow(Process& process, const Job& job, bool obeyed);
  Task<> thaw(const Worker& worker);
  void note_grant(const Process& process, const Job& job, const Admission& admission);
  void note_poll(Process& process, const Job& job, const Admission& admission);
  [[nodiscard]] std::uint64_t index_of(const Process& process, const Job& job) const noexcept;
  [[nodiscard]] bool is_held_back(Process& process, Attempt& attempt,
                                  CircuitBreaker::Permit& permit);
  [[nodiscard]] bool may_retry(Process& process, Attempt& attempt);

  // fleet_faults.cpp
  Task<> befall(const FaultPlan& fault);
  Task<> deploy(const FaultPlan& fault);
  void strike(const FaultPlan& fault);
  void apply_faults();
  void apply_to_store();
  void apply_to_links();
  void apply_to_api();
  void apply_to_workers();
  [[nodiscard]] std::size_t some(double share) const;
  [[nodiscard]] std::uint64_t store_failures() const;
  [[nodiscard]] std::uint64_t store_operations() const noexcept;
  void start_process(Worker& worker);
  void stop_process(Worker& worker);

  Task<> sample_store();
  Task<> sample_utilization();
  Task<> note_warm_up();
  [[nodiscard]] Key key_of(const Job& job) const noexcept {
    return scenario_.limiter.by_key ? Key(key_names_[job.key]) : Key("all");
  }
  auto sleep(Span span) { return asio::sleep_for(world_.clock(), span); }

  const Scenario& scenario_;
  const MakeRehearsedClient& make_;
  StoreServer server_;
  std::unique_ptr<ReplicatedStore> store_;  // made after the World, and destroyed after it
  Recorder recorder_;                       // used by coroutines until the World has ended
  World world_;
  Time start_;
  Api api_;
  std::optional<Ideal> ideal_;
  Choice keys_;
  std::vector<std::string> key_names_;
  std::deque<Worker> workers_;
  std::uint32_t processes_ = 0;                  // started so far
  std::vector<std::shared_ptr<Process>> ended_;  // whose coroutines may still hold something
  std::vector<const FaultPlan*> active_;         // of scenario_, in the order of their beginnings
  bool disturbed_ = false;                       // by a fault that concerns the limiter
  std::uint64_t lost_writes_ = 0;
  Load warm_up_;  // at its end
};

}  // namespace sluice::sim::scenario
