// The in-memory store: limits within one process, shared by all its threads.
//
// Lock-free: a decision of one step on a state of two words (is_cell(): token buckets, fixed
// windows, slot locks, gates, utilization), for a key that has a slot or finds an empty one. It
// reads the 16 bytes of state, runs the rule, and stores the result by a compare-and-swap; after a
// conflict it runs again on the new state. Refusals and peeks write nothing. It waits only while
// another thread has locked the key, for about as long as the rules of a plan take to run.
//
// A lock on its keys: a state of more words is in a block, and every decision on it, also a peek or
// a refusal, locks the key while the rule reads and writes there. Plans of several steps and plans
// with an id lock all their keys. A locked key delays only the calls for the same key.
//
// A short lock beyond that: a new key that finds the table full, among such keys; and a state that
// allocates a block, grows to one of twice the size, or frees it.
//
// On a processor without a 16-byte compare-and-swap, a spin lock replaces it. No decision allocates
// memory from the heap: the ranges of tables and blocks are reserved when the store is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/rng.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// The size, the clock and the random numbers of a memory store.
struct MemoryOptions {
  /// The most keys with state at one time, 1 to 2^32. The table has three quarters more slots,
  /// because a key can use only 32 of them: of a million keys hardly one overflows before the table
  /// holds as many.
  std::size_t max_keys = std::size_t{1} << 20;
  /// The upper bound of all memory of the store; make_memory_store() throws if max_keys needs more.
  /// A key needs about 57 bytes of table; the rest is for blocks: states of more than two words,
  /// and the recorded answers of request ids. A block is the words of the state at 8 bytes each,
  /// rounded up to 4, 8, 16 and so on, plus one byte for each 32. When all blocks are in use, those
  /// of expired states are freed; if that is not enough, the decision fails with Errc::store_full
  /// and nothing changes. The address range is reserved at once; its pages take memory when they
  /// are first used.
  std::size_t max_bytes = std::size_t{1} << 30;
  /// The clock; null: the store makes a SystemClock. Once the clock has ended, calls fail with
  /// Errc::shut_down.
  Clock* clock = nullptr;
  /// The generator of the secret of the table's hash; null: Clock::rng() of `clock`, else
  /// SystemRng. Used during construction only.
  Rng* rng = nullptr;
  /// Blocking calls of limiters that are bound to one key (BoundTokenBucket) read coarse_now()
  /// where the exact time cannot change the decision. Decision::at is then the coarse time, a few
  /// milliseconds ago; `retry_after` and `reset_after` count exactly from it, and `remaining` is
  /// what was left at it: a lower bound. Decisions are those of now(), as long as the coarse clock
  /// lags by less than Clock::coarse_lag. False: every decision reads now().
  bool coarse_clock = true;
  /// Keeps the name of each key beside its hash, for save_states(). Names are on the heap, beside
  /// max_bytes: some 110 bytes a key. The first decision of a key allocates them.
  bool keep_names = false;
};

/// Statistics of a memory store. Counters never decrease.
struct MemoryStats {
  std::size_t keys = 0;            ///< slots in use; when all are, idle ones are reused
  std::size_t bytes = 0;           ///< memory of the tables; constant
  std::size_t block_bytes = 0;     ///< blocks in use by states of more than two words
  std::uint64_t evicted_idle = 0;  ///< idle keys whose slot was reused: harmless
  /// Decisions on keys that found no slot and shared the state of other such keys, which is never
  /// more permissive than a state of their own. A possible attack, worth an alert.
  std::uint64_t overflowed = 0;
  std::uint64_t rejected = 0;  ///< decisions that failed with Errc::store_full
  /// Compare-and-swaps that failed because another thread had changed the state; each was repeated.
  std::uint64_t conflicts = 0;
  /// Waits for a key that another thread had locked.
  std::uint64_t waits = 0;
};

namespace detail {
struct SavedState;
}

/// What save_states() has written, and what not.
struct SavedStates {
  std::size_t saved = 0;
  /// States without a name, which are not in the file: there was no memory for it.
  std::size_t unnamed = 0;
};

/// What load_states() has done with the states of the file.
struct LoadedStates {
  std::size_t restored = 0;
  std::size_t known = 0;    ///< the store has a state of the key, which stays
  std::size_t expired = 0;  ///< they mean nothing any more
  /// The key has a part of more than Key::max_plain_bytes, of which the file has the hash.
  std::size_t hashed = 0;
  std::size_t no_room = 0;  ///< the table or the blocks are full
};

/// A memory store with statistics, whose states can be kept in a file.
class MemoryStore : public Store {
 public:
  /// Thread-safe. The values are read one by one, not at one instant.
  [[nodiscard]] virtual MemoryStats stats() const noexcept = 0;

  // For save_states() and load_states().

  /// Copies the states that mean something. Returns how many have no name, which are left out.
  /// Throws std::logic_error without MemoryOptions::keep_names.
  virtual std::size_t copy_states(std::vector<detail::SavedState>& states) = 0;
  /// Restores the state of a key that has none. `counts` counts what was done.
  virtual void restore_state(const detail::SavedState& state, const Key& key, Word now,
                             LoadedStates& counts) noexcept = 0;
};

/// Writes the states that mean something to a text file, which `sluice import` and load_states()
/// read (docs/moving.md). Decisions may go on: each state is whole, but the file shows no single
/// instant, and what is granted later is not in it. The states of keys that share a bucket in a
/// full table are left out. Another file of this name is replaced when all is on the disk.
/// O(max_keys), and 150 bytes of memory for each state. Throws std::logic_error without
/// MemoryOptions::keep_names, std::runtime_error that names the file.
SavedStates save_states(MemoryStore& store, const std::string& path);

/// Restores the states of a file; a key that has a state keeps it, so do it before the first
/// decision.
/// Throws std::runtime_error that names the file, the line and what is allowed; then nothing was
/// restored. O(states).
LoadedStates load_states(MemoryStore& store, const std::string& path);

/// Makes a memory store. Throws std::invalid_argument if an option is out of range.
[[nodiscard]] NewStore<MemoryStore> make_memory_store(const MemoryOptions& options = {});

}  // namespace sluice
