// The callers of one process: threads that ask one shared limit, and their own keys.
// Threading: stated per member.
#pragma once

#include <functional>
#include <memory>

#include "sluice/redis/redis_store.hpp"
#include "tests/chaos/board.hpp"

namespace sluice::chaos {

/// What the processes of a run do.
struct Load {
  RedisOptions options{};
  std::size_t processes = 3;
  std::size_t threads = 21;  ///< the last of them asks without blocking, in bursts
  Word capacity = 100;       ///< of the shared limit
  Word rate = 100;           ///< a second
  Span deadline = std::chrono::milliseconds{500};  ///< of each call
  Span pause = std::chrono::milliseconds{5};       ///< of a caller between its calls
  std::size_t keys = 1;  ///< of each caller, spread over a cluster's slots
  /// The callers ask through a FallbackStore with its defaults: `deadline` is its `within`.
  bool fallback = false;
  bool events = false;  ///< the stores' events are printed on standard error
};

/// Asks until Board::over. Called in the process of the callers, whose number is `process`.
void run_callers(const Load& load, Board& board, std::size_t process);

}  // namespace sluice::chaos
