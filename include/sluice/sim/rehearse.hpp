// rehearse(): a program's own client, instead of the scenario's, under the faults and the judges of
// a Scenario. Needs Boost 1.81. Threading: a rehearsal belongs to one thread.
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

}  // namespace sluice::sim
