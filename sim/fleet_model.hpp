// The fleet's workers, jobs and messages as events on a timeline.
// Threading: one thread.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/sim/fleet.hpp"
#include "sluice/sim/trace.hpp"
#include "sluice/sim/upstream.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::sim {

class Fleet::Model {
 public:
  explicit Model(const FleetOptions& options);

  void run_for(Span span) { timeline_.run_until(timeline_.now() + span); }
  [[nodiscard]] FleetResult result() const;
  [[nodiscard]] std::uint64_t events() const noexcept { return timeline_.events(); }
  [[nodiscard]] const Quota& quota() const noexcept { return bucket_.quota(); }

 private:
  using JobId = std::uint32_t;
  static constexpr JobId no_job = ~JobId{0};

  struct Job {
    enum class State : std::uint8_t { done, waiting, in_flight };
    State state = State::done;
    std::uint32_t worker = 0;
    std::uint32_t rejections = 0;
    JobId next = no_job;  // in the worker's queue
    Time wanted{};
    Time sent{};
  };

  struct Worker {
    Worker(Model& owner, std::uint32_t number, Word weight);
    Model& model;
    std::uint32_t index;
    std::string key;
    Delay busy_gap;
    Delay calm_gap;
    SeededRng arrivals;
    SeededRng to_api;
    SeededRng from_api;
    SeededRng backoff;
    SeededRng pacing;
    JobId first = no_job;
    JobId last = no_job;
    Word queued = 0;
    Word asked_for = 0;
    Span pause;
    bool asking = false;  // an answer or a timer is awaited
  };

  void expect_arrival(Worker& worker);
  void on_arrival(std::uint64_t worker);
  JobId new_job(Worker& worker);
  void admit(JobId id);
  void enqueue(JobId id);
  JobId dequeue(Worker& worker);
  void ask(Worker& worker);
  static void decided(void* context, const Outcome& outcome) noexcept;
  void on_decided(Worker& worker, const Outcome& outcome);
  void on_ask_again(std::uint64_t worker);
  void send(JobId id);
  void on_reach(std::uint64_t id);
  void on_answer(std::uint64_t id_and_status);
  void on_retry(std::uint64_t id);
  [[nodiscard]] Span backoff_of(const Job& job);
  void settle_ideal(Time now);

  void trace(std::uint32_t entity, std::uint32_t kind, std::uint64_t value) noexcept {
    trace_.fold(timeline_.now(), entity, kind, value);
  }

  FleetOptions options_;
  VirtualClock clock_;
  Timeline timeline_{clock_};
  Time start_ = clock_.now();
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  TokenBucket bucket_;
  Upstream upstream_;
  Ideal ideal_;
  TraceHash trace_;
  Word weights_ = 0;
  std::deque<Worker> workers_;
  std::deque<RemoteStore> links_;  // destroyed first: the others outlive it
  std::vector<Job> jobs_;
  std::vector<JobId> free_jobs_;
  std::deque<std::pair<Time, Time>> ideal_jobs_;  // when each came, and when the ideal sends it
  std::uint64_t ideal_successes_ = 0;
  Histogram ideal_wait_;
  std::uint64_t calls_ = 0;
  std::uint64_t successes_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t store_operations_ = 0;
  Histogram wait_;
};

}  // namespace sluice::sim
