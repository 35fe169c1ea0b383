// A fleet of worker processes that call one third-party API, with or without a limiter.
// Threading: one fleet is one simulation, on one thread. Fleets are independent of each other.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/quota.hpp"
#include "sluice/sim/histogram.hpp"
#include "sluice/sim/remote_store.hpp"

namespace sluice::sim {

/// Who decides when a worker may call.
enum class Limiting : std::uint8_t {
  none,         ///< nobody: a worker calls at once, and backs off after a 429
  per_process,  ///< each process has a limiter of its own, with an equal share of the limit
  shared,       ///< one limiter in one store, reached over a network
};

/// Jobs come to the whole fleet in alternating phases, at `busy` and at `calm` jobs a window of the
/// API. Which worker a job comes to is uneven: worker i of 0, 1, 2... has the weight 1 / (i + 10).
struct Demand {
  Word busy = 15'000;
  Word calm = 4'000;
  Span phase = std::chrono::minutes{3};
};

/// After a 429 a job waits a uniform time from 0 to `base`, doubled with every further 429 up to
/// `cap` (full jitter), and asks again.
struct Backoff {
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::seconds{32};
};

struct FleetOptions {
  Limiting limiting = Limiting::shared;
  std::uint64_t seed = 1;
  std::uint32_t workers = 200;  ///< 1 to limit / 5
  Word limit = 10'000;          ///< calls that the API answers in any window; 5 to 10^7
  Span window = std::chrono::minutes{1};
  Word burst = 20;         ///< of the shared limiter; 1 to limit / 2
  Word largest_batch = 4;  ///< most permits that one worker asks for at once; 1 to burst
  Demand demand{};
  Backoff backoff{};
  Link store_link{Delay::log_normal(Span{250}, Span{800}), Delay::log_normal(Span{250}, Span{800})};
  Delay to_api = Delay::log_normal(Span{10'000}, Span{30'000});
  Delay from_api = Delay::log_normal(Span{60'000}, Span{300'000});
};

/// What one run came to. Every job is counted once in `successes`, `in_flight` or `waiting`.
struct FleetResult {
  std::uint64_t jobs = 0;       ///< that came
  std::uint64_t calls = 0;      ///< sent to the API
  std::uint64_t successes = 0;  ///< answers 200
  std::uint64_t rejected = 0;   ///< answers 429
  std::uint64_t in_flight = 0;  ///< calls without an answer yet
  std::uint64_t waiting = 0;    ///< jobs that wait for permission, or for the end of a back-off
  std::uint64_t errors = 0;     ///< failed store operations
  std::uint64_t store_operations = 0;
  /// As the API counts them: arrivals, and the most of them within any window.
  std::uint64_t judged = 0;
  std::uint64_t judged_rejected = 0;
  std::uint64_t busiest_window = 0;
  std::uint64_t busiest_admitted = 0;
  /// From when a job came until the call that succeeded was sent. A job that has not succeeded
  /// counts with its wait so far.
  Histogram wait;
  /// The same of the ideal, for the same jobs.
  std::uint64_t ideal_successes = 0;
  Histogram ideal_wait;
  std::uint64_t events = 0;
  std::uint64_t trace = 0;  ///< hash over every event; the same for the same options, everywhere
};

/// The quota with which calls that are admitted now and arrive up to `jitter` apart from their
/// order never exceed `limit` in any `window`: burst + rate * (window + jitter) = limit.
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

  /// Goes on for `span` of virtual time. May be called again.
  void run_for(Span span);

  /// The state of affairs now. O(jobs that have not succeeded).
  [[nodiscard]] FleetResult result() const;

  /// Events so far.
  [[nodiscard]] std::uint64_t events() const noexcept;

  /// The quota of the limiter (of each limiter, if there is one per process); of the shared one
  /// if there is none.
  [[nodiscard]] const Quota& quota() const noexcept;

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace sluice::sim
