// Recorder: what happens in one run, for its figures, its charts and its judges. Threading: one
// run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "sluice/sim/figures.hpp"
#include "sluice/sim/histogram.hpp"
#include "sluice/sim/run.hpp"
#include "sluice/sim/scenario.hpp"
#include "sluice/testing/invariants.hpp"

namespace sluice::sim::scenario {

struct Job {
  Time came{};
  std::uint32_t worker = 0;
  std::uint32_t key = 0;
  bool critical = false;
  Word cost = 1;
  std::uint64_t number = 0;  ///< unique in its run
};

/// "came", "sent", "answered", "gave_up", "lost".
[[nodiscard]] std::string_view name_of(JobEvent::What what);

/// One number for each kind of event; see Metric.
struct Counts {
  std::uint64_t jobs = 0;
  std::uint64_t calls = 0;
  std::uint64_t ok = 0;
  std::uint64_t refused_429 = 0;
  std::uint64_t failed = 0;     ///< 409, 500, 503 and timeouts
  std::uint64_t timed_out = 0;  ///< of them
  std::uint64_t given_up = 0;   ///< jobs that the limiter refused, or that lost their patience
  std::uint64_t lost = 0;       ///< jobs of workers that crashed
  std::uint64_t critical_jobs = 0;
  std::uint64_t critical_ok = 0;
  std::uint64_t others_jobs = 0;
  std::uint64_t others_ok = 0;
  std::uint64_t store_failures = 0;
  std::uint64_t early_failures = 0;  ///< of the store, before a fault that concerns the limiter
  std::uint64_t without_store = 0;
  std::uint64_t breaker_shed = 0;
  std::uint64_t retries_denied = 0;
  std::uint64_t throttled = 0;
  std::uint64_t crashes = 0;
  std::uint64_t orphaned = 0;  ///< requests that were granted to workers that had crashed
  std::uint64_t stranded = 0;  ///< jobs that waited for the limiter when their worker crashed
  std::uint64_t shadow_asked = 0;
  std::uint64_t shadow_differs = 0;
  std::uint64_t shadow_granted = 0;
  std::uint64_t obeyed_granted = 0;
  std::uint64_t late_429 = 0;
};

/// The length of a step of the series of a run.
[[nodiscard]] Span series_step(Span duration) noexcept;

class Recorder {
 public:
  Recorder(const Scenario& scenario, Time start);

  void came(const Job& job);
  /// A call is sent, with what the limiter said of it.
  void sent(const Job& job, Time now);
  /// A call is not sent, or not sent again, because its client holds it back; `count` says why.
  void held_back(std::uint64_t& count, Time now) noexcept {
    if (counts_at(now)) ++count;
  }
  /// What the limiter and its shadow said of the same job.
  void compared(const Job& job, bool obeyed, bool shadow) noexcept;
  /// status: of HTTP; 0: the client gave up.
  void answered(const Job& job, Time sent, Time now, int status);
  /// The job ends without success.
  void gave_up(const Job& job, Time now);
  void lost(const Job& job, Time now);
  /// A grant of the limiter's store. `index`: of what it limits apart.
  void granted(std::uint64_t index, const testing::Event& grant);
  /// An answer of the limiter's store to a call that does not queue.
  void polled(std::uint64_t index, const testing::Event& answer);
  /// A grant that a FallbackStore made in the memory of its process.
  void granted_locally(std::uint64_t index, const testing::Event& grant);
  /// A lease is granted; returns its number.
  std::uint64_t leased(std::uint64_t index, testing::LeaseRecord event);
  void released(std::uint64_t index, std::uint64_t lease, Word fence, Time now);
  /// A gate of the fleet is closed.
  void closed_gate(Time at, Time until) { closures.push_back({at, until}); }
  /// A place in a queue, which is to be ended by the caller. Beyond the first millions, none is
  /// kept.
  std::size_t queued(const Job& job, Time now, Time deadline);
  void left_queue(const Job& job, std::size_t place, Time now, testing::Wait::End end);
  /// At the end of the run: jobs that are still waiting have waited until now, those whose call is
  /// under way until that was sent.
  void finish(Time now);

  /// The last events of jobs at one instant, in order; few of them.
  [[nodiscard]] std::vector<JobEvent> last_events(Time at) const;

  std::function<void(const JobEvent&)> on_event;  ///< may be empty
  Counts counts;
  Series series;
  Histogram wait;
  Histogram others_wait;
  std::vector<std::uint64_t> worker_ok;
  std::vector<bool> key_asked, key_refused;
  struct Closure {
    Time at;
    Time until;
  };
  using Histories = std::map<std::uint64_t, testing::History>;
  Histories grants;
  Histories polls;
  Histories local_grants;
  std::map<std::uint64_t, std::vector<testing::LeaseRecord>> leases;
  std::vector<Closure> closures;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::vector<testing::Wait>> queues;
  bool truncated = false;  ///< more events than are kept
  Time stopped{};          ///< the end of the run
  double wait_sum = 0;     ///< in microseconds
  Time last_429{};

 private:
  static constexpr std::size_t most_kept = 4'000'000;

  [[nodiscard]] bool counts_at(Time now) const noexcept { return now >= counted_from_; }
  std::uint32_t& in(std::vector<std::uint32_t>& column, Time now) noexcept;
  void waited(const Job& job, Span span);
  void close(const Job& job, Time now);
  void tell(const Job& job, Time now, JobEvent::What what, int status = 0);

  Time start_;
  Time counted_from_;
  Time changed_at_;  // a limit of the API, for late_429; Time::max() if none does
  /// A job that is not done.
  struct Open {
    Time came;
    std::uint32_t key;
    std::optional<Time> sent;  // the call that is under way
  };
  std::map<std::uint64_t, Open> open_;  // by their numbers
  [[nodiscard]] bool keep() noexcept;

  std::array<JobEvent, 4> told_{};  // a ring
  std::uint64_t events_told_ = 0;
  std::size_t kept_ = 0;
  std::uint64_t leases_ = 0;
  std::size_t kept_waits_ = 0;
};

}  // namespace sluice::sim::scenario
