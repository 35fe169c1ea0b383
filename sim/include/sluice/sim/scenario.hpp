// Scenario: a fleet of worker processes that call an API through a limiter, and what befalls them.
// A plain value; sim/run.hpp runs it. docs/models.md states each model exactly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/calls/backoff.hpp"
#include "sluice/sim/arrivals.hpp"
#include "sluice/sim/delay.hpp"
#include "sluice/sim/upstream.hpp"

namespace sluice::sim {

/// The worker processes. Each has its own connection, limiter, queues and back-off.
struct FleetOptions {
  enum class Spread : std::uint8_t {
    equal,
    uneven,  ///< worker i, from 0, has the weight 1 / (i + 10) of the arrivals
  };
  std::uint32_t workers = 10;  ///< 1 to 5000
  Spread spread = Spread::equal;
};

/// When jobs come. Each job wants one successful call.
struct ArrivalOptions {
  enum class Kind : std::uint8_t {
    constant,
    poisson,
    on_off,   ///< alternating phases of the rates `busy` and `calm`
    mmpp,     ///< the same, of random lengths with the means `busy_for` and `calm_for`
    diurnal,  ///< around `rate`, by `swing` of it, in a `period`
    spike,    ///< `factor` times the rate for `length`, `from` the start on
    closed,   ///< `clients` a worker, each of which thinks before its next job
    bursts,   ///< the numbers of `bursts`, at their times, spread over the workers in turn
    trace,    ///< the times and keys of `trace`
  };
  struct Burst {
    Word jobs = 0;
    Span at{0};  ///< since the start
    friend bool operator==(const Burst&, const Burst&) = default;
  };
  struct Traced {
    Span at{0};              ///< since the start
    std::uint32_t key = 0;   ///< below JobOptions::keys
    std::uint32_t cost = 1;  ///< multiplies JobOptions::cost; 1 to 10^6
  };

  Kind kind = Kind::poisson;
  Rate rate{100, std::chrono::seconds{1}};  ///< of the whole fleet
  double load = 1;                          ///< multiplies the rates, or the jobs of bursts
  Rate busy{150, std::chrono::seconds{1}};
  Rate calm{40, std::chrono::seconds{1}};
  Span phase = std::chrono::minutes{3};
  Span busy_for = std::chrono::seconds{10};
  Span calm_for = std::chrono::seconds{50};
  double swing = 0.5;
  Span period = std::chrono::hours{24};
  double factor = 10;
  Span from = std::chrono::minutes{1};
  Span length = std::chrono::minutes{1};
  std::uint32_t clients = 1;
  Delay think = Delay::exponential(std::chrono::seconds{1});
  std::vector<Burst> bursts;
  std::string file;  ///< of a trace, for who reads it into `trace`; runs do not
  std::shared_ptr<const std::vector<Traced>> trace;  ///< in the order of time; shared by runs
};

struct JobOptions {
  enum class Pick : std::uint8_t { uniform, zipf, hot };
  std::uint32_t keys = 1;  ///< tenants, or clients of a log; 1 to 10^6
  Pick pick = Pick::uniform;
  double exponent = 1;  ///< zipf: key i, from 0, has the weight 1 / (i + 1)^exponent
  double share = 0.9;   ///< hot: of key 0
  double critical = 0;  ///< the share of jobs with a high priority
  Word cost = 1;        ///< units that a call takes of the limiter
  Span patience{0};     ///< a job that has waited so long is given up; zero: never
};

/// The limiter in front of the API: production code.
struct LimiterOptions {
  enum class Kind : std::uint8_t {
    none,
    token_bucket,
    sliding_window,
    fixed_window,
    sliding_window_counter,
    slot_lock,
    learned_rate,         ///< from `limit` on, within a hundredth and a hundredfold of it
    concurrency,          ///< `burst` places
    ideal,                ///< knows every job when it comes, and needs no network
    utilization_shedder,  ///< sheds jobs, those of high priority never, while the API is busy
  };
  enum class Scope : std::uint8_t {
    shared,       ///< one for the fleet, in the store
    per_process,  ///< each process has an equal share in its own memory
  };
  enum class Wait : std::uint8_t {
    queue,  ///< acquire(): in line, at the exact hint
    poll,   ///< try_acquire(), and again after the hint and the client's pause
    skip,   ///< try_acquire(), and the job is refused
  };
  Kind kind = Kind::token_bucket;
  Scope scope = Scope::shared;
  Wait wait = Wait::queue;
  Rate limit{100, std::chrono::seconds{1}};  ///< of a bucket, a window, slots, a learned rate
  Word burst = 0;            ///< of a bucket; the places of `concurrency`; 0: the events of `limit`
  bool by_key = false;       ///< a limit for each key of the jobs
  bool gates = false;        ///< a 429 closes a gate of the fleet for its Retry-After
  bool fleet_order = true;   ///< first come, first served across processes
  Span hold{0};              ///< a PrefetchStore holds units for so long; zero: there is none
  Word most = 100;           ///< units that a process prefetches at most
  Kind shadow = Kind::none;  ///< another limiter that is asked as well, and not obeyed
  // Of a utilization shedder; see UtilizationOptions. Its sensor is the share of the API's servers
  // that were busy in the last `period`; `max_gap` is 2.5 periods.
  double good = 0.7;
  double bad = 0.8;
  Span grace = std::chrono::seconds{28};
  Span full_after = std::chrono::seconds{120};
  Span rest_after = std::chrono::minutes{10};
  Span period = std::chrono::seconds{8};
};

/// The store of shared limiters, and the network to it.
struct StoreOptions {
  enum class OnFailure : std::uint8_t { error, open, closed, local };
  Delay to = Delay::log_normal(Span{250}, Span{800});
  Delay from = Delay::log_normal(Span{250}, Span{800});
  Delay service = Delay::constant(Span{12});  ///< of each plan; the server does one at a time
  Span timeout = std::chrono::milliseconds{100};
  OnFailure on_failure = OnFailure::error;    ///< the policy of a FallbackStore; error: none
  Span lag = std::chrono::milliseconds{100};  ///< of the replica: writes that a fail-over loses
};

/// The API.
struct ApiOptions {
  std::vector<ApiLimit> limits;  ///< none: it never answers 429
  std::uint32_t servers = 0;     ///< calls that it works on at a time; 0: any number
  std::uint32_t queue = 0;       ///< calls that wait for a server, beyond which 503; 0: any number
  Delay latency = Delay::log_normal(Span{20'000}, Span{80'000});  ///< of the work on a call
  double crowding = 0;  ///< the work takes 1 + crowding * (calls in work / 100) times as long
  double failures = 0;  ///< share of calls that are answered 500
  /// The work reads a row and writes it if nobody else has since: else the call is answered 409.
  bool conflicts = false;
  RetryAfter retry_after = RetryAfter::exact();
  Span penalty{0};  ///< a 429 closes the API to everybody for so long
  Delay to = Delay::log_normal(Span{10'000}, Span{30'000});
  Delay from = Delay::log_normal(Span{10'000}, Span{30'000});
  // Of the network between the workers and the API; what is lost needs ClientOptions::timeout.
  double lost = 0;         ///< share of the requests that do not arrive
  double answer_lost = 0;  ///< share of the answers that do not
  double doubled = 0;      ///< share of the requests that arrive, and are worked on, twice
};

/// What a worker does when a call fails.
struct ClientOptions {
  enum class Retries : std::uint8_t {
    none,
    fixed,        ///< after `pause`
    exponential,  ///< after `pause`, doubled with each failure up to `cap`
    full,         ///< Backoff with Jitter::full, and so on
    equal,
    decorrelated,
  };
  Span timeout{0};  ///< of a call; zero: none. The API goes on with calls that were given up
  Retries retries = Retries::full;
  Span pause = std::chrono::seconds{1};
  Span cap = std::chrono::seconds{32};
  std::uint32_t attempts = 1'000'000;  ///< calls of one job
  int budget = 0;                      ///< percent of calls that may be retried; 0: any number
  bool breaker = false;                ///< a CircuitBreaker around the API
  bool adaptive = false;  ///< each process paces itself, as the adaptive mode of the AWS SDKs
  /// Adaptive throttling: the K of max(0, (requests - K * accepts) / (requests + 1)), the share of
  /// calls that a process refuses by itself; 1 to 1000; 0: none.
  double throttle = 0;
  Span throttle_window = std::chrono::minutes{2};  ///< over which both are counted
};

/// The clocks of the workers, which show world time * (1 + drift) + offset.
struct ClockOptions {
  Span offset{0};    ///< uniform in [-offset, offset]
  double drift = 0;  ///< parts per million, uniform in [-drift, drift]
};

/// Something that goes wrong `at` a time since the start, and is mended after `length`.
struct FaultPlan {
  enum class Kind : std::uint8_t {
    store_down,        ///< connections are refused
    store_silent,      ///< no answer comes
    store_paused,      ///< the server stands still, and then works off what has come
    store_slow,        ///< service times are `factor` times as long
    store_failover,    ///< the writes of the last StoreOptions::lag are lost, after `length` down
    store_lost,        ///< all writes are
    network_cut,       ///< `share` of the workers does not reach the store
    network_loss,      ///< `factor` (0 to 1) of the requests is lost
    answers_lost,      ///< `factor` of the answers is, after execution
    network_doubled,   ///< `factor` of the requests arrives twice
    upstream_down,     ///< every call is answered 503
    upstream_slow,     ///< the work takes `factor` times as long
    upstream_servers,  ///< `factor` times as many servers
    upstream_limit,    ///< the first limit is multiplied by `factor`
    upstream_second,   ///< a second limit appears: `limit`
    upstream_cut,      ///< `share` of the workers does not reach the API
    upstream_loss,     ///< `factor` of the requests to the API is lost
    upstream_answers_lost,  ///< `factor` of its answers is, after the work
    upstream_doubled,       ///< `factor` of the requests to the API arrives twice
    worker_crash,           ///< `share` of the workers dies, and starts anew after `length`
    worker_pause,           ///< `share` of the workers stands still
    rolling_deploy,         ///< one worker after the other starts anew within `length`
    scale,                  ///< only `share` of the workers is there
    clock_step,             ///< the clocks of `share` of the workers are set by `step`
  };
  Kind kind = Kind::store_down;
  Span at{0};
  Span length{0};
  double share = 1;
  double factor = 1;
  Span step{0};
  ApiLimit limit{.limit = 0};  ///< of upstream_second, which needs one

  [[nodiscard]] Span end() const noexcept { return at + length; }
};

/// A warm-up that pilots find; see find_warm_up().
inline constexpr Span auto_warm_up{-1};

struct Scenario {
  Span duration = std::chrono::minutes{1};
  Span warm_up{0};  ///< what comes earlier counts in no figure; may be auto_warm_up
  /// A run in which so many events happen at one instant, beyond 100 for each job of a burst or a
  /// trace, is ended, and a judge objects.
  std::uint64_t events_per_instant = 10'000'000;
  std::uint64_t seed = 1;
  FleetOptions fleet{};
  ArrivalOptions arrivals{};
  JobOptions jobs{};
  LimiterOptions limiter{};
  StoreOptions store{};
  ApiOptions upstream{};
  ClientOptions client{};
  ClockOptions clock{};
  std::vector<FaultPlan> faults;
};

/// The most units that a job takes.
[[nodiscard]] Word highest_cost(const Scenario& scenario);

/// Throws std::invalid_argument that names the first value that is out of range, contradicts
/// another one, or is set and does nothing because of another one, and so for faults. What it
/// throws says what to do.
void validate(const Scenario& scenario);

}  // namespace sluice::sim
