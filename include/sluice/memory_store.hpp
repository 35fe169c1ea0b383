// The in-memory store: limits within one process, shared by all its threads.
#pragma once

#include <memory>

#include "sluice/rng.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// How large a memory store may grow, and what it is driven by.
struct MemoryOptions {
  /// Keys whose state is kept at once, rounded up to a power of two of slots. 1 to 2^32.
  std::size_t max_keys = std::size_t{1} << 20;
  /// Upper bound for all memory of the store; make_memory_store() throws if max_keys needs more.
  std::size_t max_bytes = std::size_t{1} << 30;
  /// The clock; null means a SystemClock of the store's own. REQUIRES: it outlives the store.
  Clock* clock = nullptr;
  /// Draws the secret of the table's hash; null means SystemRng. Used during construction only.
  Rng* rng = nullptr;
};

/// What a memory store has seen. Counters only rise.
struct MemoryStats {
  std::size_t keys = 0;            ///< slots in use now
  std::size_t bytes = 0;           ///< memory of the store, constant
  std::uint64_t evicted_idle = 0;  ///< idle keys whose slot went to another key: harmless
  /// Decisions for keys that found no slot, and were taken from a bucket shared with other such
  /// keys: never more permissive than a bucket of their own. A security event worth an alert.
  std::uint64_t overflowed = 0;
  std::uint64_t rejected = 0;  ///< decisions that ended in Errc::store_full
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
