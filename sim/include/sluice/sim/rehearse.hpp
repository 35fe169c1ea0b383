// rehearse(): a program's own client, instead of the scenario's, under the faults and the judges of
// a Scenario. find_warm_up(): how long a scenario takes to forget its empty start. Needs
// Boost 1.81. Threading: each belongs to one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>

#include "sluice/sim/run.hpp"
#include "sluice/sim/world.hpp"
#include "sluice/store.hpp"

namespace sluice::sim {

/// What the API of a scenario answers.
struct ApiAnswer {
  int status = 200;                 ///< of HTTP; 0: none within ClientOptions::timeout
  std::optional<Span> retry_after;  ///< what a 429 says
};

/// One job of a worker, as the program's client sees it.
class RehearsedJob {
 public:
  template <class T = void>
  using Task = boost::asio::awaitable<T, World::Executor>;

  RehearsedJob() = default;
  RehearsedJob(const RehearsedJob&) = delete;
  RehearsedJob& operator=(const RehearsedJob&) = delete;
  virtual ~RehearsedJob() = default;

  /// Calls the API once.
  [[nodiscard]] virtual Task<ApiAnswer> call() = 0;
  /// The clock of the world, to wait on: `co_await asio::sleep_for(job.clock(), 1s)`.
  [[nodiscard]] virtual Clock& clock() noexcept = 0;
  /// Draws of this job alone.
  [[nodiscard]] virtual Rng& rng() noexcept = 0;
  /// Below JobOptions::keys.
  [[nodiscard]] virtual std::uint32_t key() const noexcept = 0;
  [[nodiscard]] virtual bool is_critical() const noexcept = 0;
};

/// Does one job. It ends after a call that was answered 200, or else it is given up.
using RehearsedClient = std::function<RehearsedJob::Task<>(RehearsedJob& job)>;
/// Makes the client of a process when that starts. `store` is the fleet's store as this process
/// sees it: behind its network, with the failure policy of the scenario.
using MakeRehearsedClient = std::function<RehearsedClient(Store& store)>;

/// run() with the program's client; the scenario's limiter, retries and gates are not used. A job
/// whose client throws std::system_error or boost::system::system_error, which Asio's operations
/// throw, is given up, and counts as a failed operation of the store. Other exceptions leave
/// rehearse().
///
///     const auto result = sim::rehearse(outage, [](Store& store) {
///       const auto limit = std::make_shared<TokenBucket>(store, "api", Quota::per_second(97));
///       return [limit](sim::RehearsedJob& job) -> sim::RehearsedJob::Task<> {
///         const Reservation grant = co_await asio::async_acquire(*limit, "all", 1, 30s);
///         if (grant) co_await job.call();
///       };
///     });
[[nodiscard]] RunResult rehearse(const Scenario& scenario, const MakeRehearsedClient& make,
                                 const RunOptions& options = {});

/// The warm-up of a scenario by mser5(), whatever its own is. Ten pilots run until the first fault
/// (or until ArrivalOptions::from of a spike, or the end), under the scenario's seed and nine that
/// follow from it. The series is the sum of their jobs without an answer, as means over each
/// thousandth of that time. So the result is a multiple of its 200th part, and at most its half.
/// `make`: the program's own client. Throws std::invalid_argument if the cut lies in the second
/// half, or as validate() does; Stopped if `stop` becomes true; std::runtime_error with the seed if
/// the time of a pilot stands still.
///
/// run() and rehearse() call it for a warm-up of `auto_warm_up`. For replications, call it once:
///
///     scenario.warm_up = sim::find_warm_up(scenario);
[[nodiscard]] Span find_warm_up(const Scenario& scenario, const MakeRehearsedClient& make = {},
                                const std::atomic<bool>* stop = nullptr);

}  // namespace sluice::sim
