// The in-memory store: limits within one process, shared by all its threads.
//
// What is lock-free. A decision of one step about a key that has a slot, or that finds an empty
// one, takes no lock: it reads the key's 16 bytes of state, runs the rule and swaps them; if
// another thread was first, it goes again with what that thread wrote. Refusals and peeks write
// nothing. It waits in one case only: while a plan of several steps is writing the same key, which
// holds the keys' cells for about as long as its rules take to run. What is not. A new key that
// finds the table full takes a short lock that only other such keys take. A plan of several steps
// holds its cells, and waits for plans that hold one of them. On a processor without a 16-byte
// compare-and-swap a spin lock stands in for it. No decision allocates memory.
#pragma once

#include <memory>

#include "sluice/rng.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How large a memory store may grow, and what it is driven by.
struct MemoryOptions {
  /// Keys whose state is kept at once. 1 to 2^32. The table has three quarters more slots, since a
  /// key may use 32 of them only: of a million keys hardly one overflows before there are so many.
  std::size_t max_keys = std::size_t{1} << 20;
  /// Upper bound for all memory of the store; make_memory_store() throws if max_keys needs more.
  /// A key needs about 57 bytes. Pages of the table take memory when they are first used.
  std::size_t max_bytes = std::size_t{1} << 30;
  /// The clock; null means a SystemClock of the store's own. REQUIRES: it outlives the store.
  Clock* clock = nullptr;
  /// Draws the secret of the table's hash; null means SystemRng. Used during construction only.
  Rng* rng = nullptr;
  /// Decide by Clock::coarse_now() wherever the fine clock could not decide otherwise, for limiters
  /// that are bound to one key (BoundTokenBucket). Then
  /// Decision::at is the coarse instant, a few milliseconds ago; `retry_after` and `reset_after`
  /// count from it, exactly, and `remaining` is what was left at it: a lower bound. Nothing is
  /// admitted or refused that the fine clock would decide otherwise, as long as the coarse clock
  /// lags by less than Clock::coarse_lag. False reads the fine clock for every decision.
  bool coarse_clock = true;
};

/// What a memory store has seen. Counters only rise.
struct MemoryStats {
  std::size_t keys = 0;            ///< slots in use; idle ones go to other keys when all are
  std::size_t bytes = 0;           ///< memory of the store, constant
  std::uint64_t evicted_idle = 0;  ///< idle keys whose slot went to another key: harmless
  /// Decisions for keys that found no slot, and were taken from a bucket shared with other such
  /// keys: never more permissive than a bucket of their own. A security event worth an alert.
  std::uint64_t overflowed = 0;
  std::uint64_t rejected = 0;  ///< decisions that ended in Errc::store_full
  /// Exchanges of a state that another thread had changed, each of which was repeated.
  std::uint64_t conflicts = 0;
};

/// The memory store, with its figures.
class MemoryStore : public Store {
 public:
  /// Thread-safe; the figures are read one by one.
  [[nodiscard]] virtual MemoryStats stats() const noexcept = 0;
};

/// Throws std::invalid_argument if an option is out of range.
[[nodiscard]] std::unique_ptr<MemoryStore> make_memory_store(const MemoryOptions& options = {});

}  // namespace sluice
