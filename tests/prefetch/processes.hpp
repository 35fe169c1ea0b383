// Processes that spend one key of a real server, each through a store of its own; and what they
// called, as an upstream sees it. Threading: the main thread, which has no other threads.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/prefetch_store.hpp"
#include "sluice/quota.hpp"
#include "sluice/testing/invariants.hpp"

namespace sluice::test {

struct ProcessesOptions {
  std::string unix_socket{};
  std::size_t processes = 4;
  Quota quota = Quota::per_second(2000).burst(200);
  std::optional<PrefetchStoreOptions> prefetch{};
  /// Waits for the hint of a refusal, up to a millisecond; else asks again at once.
  bool sleeps = true;
};

class Processes {
 public:
  explicit Processes(const ProcessesOptions& options);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  /// Kills those that are left.
  ~Processes();

  /// SIGKILL, and another one in its place.
  void replace(std::size_t index);
  /// SIGSTOP and SIGCONT.
  void stop(std::size_t index);
  void resume(std::size_t index);
  /// Ends all.
  void end();

  [[nodiscard]] std::uint64_t decisions() const noexcept { return board_->decisions; }
  [[nodiscard]] std::uint64_t errors() const noexcept { return board_->errors; }
  /// Operations that the store behind a PrefetchStore was asked for, as far as told.
  [[nodiscard]] std::uint64_t operations() const noexcept { return board_->operations; }
  /// The calls in the order of their times, which are those of the monotonic clock.
  [[nodiscard]] testing::History calls() const;
  /// The median time of a decision, in nanoseconds, of a sample.
  [[nodiscard]] double median() const;

 private:
  static constexpr std::size_t max_calls = 1 << 20;
  static constexpr std::size_t max_samples = 1 << 16;

  struct Board {
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> decisions{0}, errors{0}, operations{0}, calls{0}, samples{0};
    std::atomic<std::int64_t> times[max_calls];   // of calls, in microseconds; 0: not yet
    std::atomic<std::int64_t> took[max_samples];  // decisions, in nanoseconds
  };

  [[nodiscard]] pid_t start();
  void run() const;

  ProcessesOptions options_;
  Board* board_;
  std::vector<pid_t> pids_;
};

}  // namespace sluice::test
