// The in-memory store: limits within one process, shared by all its threads.
//
// What is lock-free. A decision of one step about a state of two words (is_cell(): token buckets,
// fixed windows, slot locks, gates, utilization), for a key that has a slot or finds an empty one,
// takes no lock: it reads the key's 16 bytes of state, runs the rule and swaps them; if another
// thread was first, it goes again with what that thread wrote. Refusals and peeks write nothing. It
// waits in one case only: while another thread holds the key, for about as long as a plan's rules
// take to run.
//
// What holds its keys. A state of more words lies in a block, and a decision about it holds the key
// while the rule reads and writes there, peeks and refusals too. So do plans of several steps, and
// plans with an id, for all their keys. Who holds a key delays only those who ask for the same one.
//
// What takes a short lock. A new key that finds the table full, among such keys; and a state that
// takes a block, or one of twice the size, or gives it back.
//
// On a processor without a 16-byte compare-and-swap a spin lock stands in for it. No decision
// allocates memory: tables and blocks lie in ranges that are reserved when the store is made.
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
  /// A key needs about 57 bytes of table; what is left is for the blocks of states of more than two
  /// words, and of the answers that are kept for request ids. A block is the state's words of 8
  /// bytes, rounded up to 4, 8, 16 and so on, and one byte more for each 32. When all blocks are in
  /// use, those of states that mean nothing any more are freed; if that is not enough, the decision
  /// ends in Errc::store_full and nothing has changed. The range is reserved at once, and its pages
  /// take memory when they are first used.
  std::size_t max_bytes = std::size_t{1} << 30;
  /// The clock; null means a SystemClock of the store's own. REQUIRES: it outlives the store.
  Clock* clock = nullptr;
  /// Draws the secret of the table's hash; null: Clock::rng() of `clock`, else SystemRng. Used
  /// during construction only.
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
  std::size_t bytes = 0;           ///< memory of the tables, constant
  std::size_t block_bytes = 0;     ///< blocks in use by states of more than two words
  std::uint64_t evicted_idle = 0;  ///< idle keys whose slot went to another key: harmless
  /// Decisions for keys that found no slot, and were taken from a bucket shared with other such
  /// keys: never more permissive than a bucket of their own. A security event worth an alert.
  std::uint64_t overflowed = 0;
  std::uint64_t rejected = 0;  ///< decisions that ended in Errc::store_full
  /// Exchanges of a state that another thread had changed, each of which was repeated.
  std::uint64_t conflicts = 0;
  /// Keys that a decision found held by another thread, and waited for.
  std::uint64_t waits = 0;
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
