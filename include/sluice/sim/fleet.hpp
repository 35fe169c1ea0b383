// Fleet: a simulated fleet of worker processes that call one third-party API, with or without a
// limiter. Threading: one fleet is one simulation, on one thread. Fleets are independent of each
// other.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/quota.hpp"
#include "sluice/sim/histogram.hpp"
#include "sluice/sim/remote_store.hpp"

namespace sluice::sim {

/// The kind of limiting in a simulation.
enum class Limiting : std::uint8_t {
  none,         ///< a worker calls at once, and backs off after a 429
  per_process,  ///< each process has its own limiter, with an equal share of the limit
  shared,       ///< one limiter in one store, reached over a network
};

/// The arrivals of jobs: alternating phases of `busy` and `calm` jobs a window of the API, for the
/// whole fleet. Jobs are spread unevenly: worker i of 0, 1, 2... has the weight 1 / (i + 10).
struct Demand {
  Word busy = 15'000;
  Word calm = 4'000;
  Span phase = std::chrono::minutes{3};
};

/// The back-off after a 429: a uniform time from 0 to `base`, doubled with every further 429 up to
/// `cap` (full jitter).
struct Backoff {
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::seconds{32};
};

struct FleetOptions {
  Limiting limiting = Limiting::shared;
  std::uint64_t seed = 1;
  std::uint32_t workers = 200;  ///< 1 to limit / 5
  Word limit = 10'000;          ///< calls that the API accepts in any window; 5 to 10^7
  Span window = std::chrono::minutes{1};
  Word burst = 20;         ///< of the shared limiter; 1 to limit / 2
  Word largest_batch = 4;  ///< most permits in one request of a worker; 1 to burst
  Demand demand{};
  Backoff backoff{};
  Link store_link{Delay::log_normal(Span{250}, Span{800}), Delay::log_normal(Span{250}, Span{800})};
  Delay to_api = Delay::log_normal(Span{10'000}, Span{30'000});
  Delay from_api = Delay::log_normal(Span{60'000}, Span{300'000});
};

/// The result of one run. Every job is counted once, in `successes`, `in_flight` or `waiting`.
struct FleetResult {
  std::uint64_t jobs = 0;       ///< that arrived
  std::uint64_t calls = 0;      ///< sent to the API
  std::uint64_t successes = 0;  ///< answers 200
  std::uint64_t rejected = 0;   ///< answers 429
  std::uint64_t in_flight = 0;  ///< calls that are not answered yet
  std::uint64_t waiting = 0;    ///< jobs that wait for permits, or for the end of a back-off
  std::uint64_t errors = 0;     ///< failed store operations
  std::uint64_t store_operations = 0;
  /// Counted by the API: arrivals, and the most of them within any window.
  std::uint64_t judged = 0;
  std::uint64_t judged_rejected = 0;
  std::uint64_t busiest_window = 0;
  std::uint64_t busiest_admitted = 0;
  /// The time from the arrival of a job to its successful call. A job without success counts with
  /// its wait so far.
  Histogram wait;
  /// The same for the ideal limiter with the same jobs.
  std::uint64_t ideal_successes = 0;
  Histogram ideal_wait;
  std::uint64_t events = 0;
  std::uint64_t trace = 0;  ///< hash over every event; the same for the same options, everywhere
};

/// The quota under which calls that reach the API up to `jitter` apart from their order of
/// admission never exceed `limit` in any `window`: burst + rate * (window + jitter) = limit.
/// REQUIRES: 1 <= burst < limit.
[[nodiscard]] Quota safe_quota(Word limit, Span window, Word burst, Span jitter);

/// Simulates the fleet. The limiter is the production code: sluice::TokenBucket on a virtual store.
///
///     Fleet fleet{{.limiting = Limiting::shared, .seed = 7}};
///     fleet.run_for(1h);
///     fleet.result().rejected;   // 0
class Fleet {
 public:
  /// Throws std::invalid_argument if an option is out of range.
  explicit Fleet(const FleetOptions& options);
  ~Fleet();

  /// Continues for `span` of virtual time. May be called again.
  void run_for(Span span);

  /// The result so far. O(jobs without success).
  [[nodiscard]] FleetResult result() const;

  /// The number of events so far.
  [[nodiscard]] std::uint64_t events() const noexcept;

  /// The quota of the limiter, or of each limiter with Limiting::per_process; with Limiting::none,
  /// that of a shared one.
  [[nodiscard]] const Quota& quota() const noexcept;

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace sluice::sim
