// Construction of a memory store, and its statistics.
#include "backends/memory/engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sluice/virtual_clock.hpp"

namespace sluice::memory {
namespace {

constexpr std::size_t most_keys = std::size_t{1} << 32;
constexpr std::size_t fewest_shared = 64;

std::size_t shared_for(std::size_t keys) noexcept { return std::max(fewest_shared, keys / 64); }

const MemoryOptions& validated(const MemoryOptions& options) {
  if (options.max_keys < 1 || options.max_keys > most_keys) {
    throw std::invalid_argument("MemoryOptions::max_keys must be 1 to 2^32, got " +
                                std::to_string(options.max_keys));
  }
  if (const std::size_t needed = Engine::bytes_for(options); needed > options.max_bytes) {
    throw std::invalid_argument("MemoryOptions::max_bytes must be " + std::to_string(needed) +
                                " or more for " + std::to_string(options.max_keys) + " keys, got " +
                                std::to_string(options.max_bytes));
  }
  return options;
}

std::array<std::uint64_t, 2> draw_secret(const MemoryOptions& options) {
  SystemRng system;
  Rng* const world = options.clock != nullptr ? options.clock->rng(DrawFor::hash) : nullptr;
  Rng& source = options.rng != nullptr ? *options.rng : world != nullptr ? *world : system;
  const std::uint64_t first = source.next();
  return {first, source.next()};
}

}  // namespace

std::size_t Engine::bytes_for(const MemoryOptions& options) noexcept {
  return Table::bytes_for(options.max_keys) + Table::bytes_for(shared_for(options.max_keys)) +
         sizeof(Engine);
}

Engine::Engine(const MemoryOptions& options)
    : table_(validated(options).max_keys),
      overflow_(shared_for(options.max_keys)),
      blocks_(options.max_bytes - bytes_for(options)),
      names_(options.keep_names ? std::make_unique<Names>(table_.size()) : nullptr),
      clock_(options.clock),
      clock_life_(options.clock != nullptr ? options.clock->Clock::life() : detail::Life::View()),
      own_clock_(options.clock == nullptr ? std::make_unique<SystemClock>() : nullptr),
      // A virtual clock has no coarse reading.
      coarse_(options.coarse_clock && dynamic_cast<VirtualClock*>(options.clock) == nullptr),
      secret_(draw_secret(options)) {
  if (clock_ == nullptr) clock_ = own_clock_.get();
  start_ = to_word(clock_->now());
}

void Engine::bind(const Key& key, Binding& binding) noexcept {
  if (!is_valid(key)) return;
  binding.owner = this;
  binding.hash = hash(key);
  // Relaxed, here and wherever a binding's slot is read or written: the pointer is a hint into this
  // store's table, which lives as long as the store, and each use compares the slot's hash.
  binding.slot.store(nullptr, std::memory_order_relaxed);   // see above
  binding.fine.store(!coarse_, std::memory_order_relaxed);  // a hint: see acquire_coarse()
}

Counters& Engine::counters() const noexcept {
  static thread_local char id;
  return counters_[reinterpret_cast<std::uintptr_t>(&id) / 4096 % counters_.size()];
}

MemoryStats Engine::stats() const noexcept {
  MemoryStats stats;
  stats.keys = table_.used();
  stats.bytes = table_.bytes() + overflow_.bytes() + sizeof(Engine);
  stats.block_bytes = blocks_.bytes_used();
  for (const Counters& some : counters_) {
    stats.evicted_idle += some.evicted_idle.load(std::memory_order_relaxed);  // statistics
    stats.overflowed += some.overflowed.load(std::memory_order_relaxed);      // statistics
    stats.rejected += some.rejected.load(std::memory_order_relaxed);          // statistics
    stats.conflicts += some.conflicts.load(std::memory_order_relaxed);        // statistics
    stats.waits += some.waits.load(std::memory_order_relaxed);                // statistics
  }
  return stats;
}

}  // namespace sluice::memory

namespace sluice {

NewStore<MemoryStore> make_memory_store(const MemoryOptions& options) {
  return std::unique_ptr<MemoryStore>(std::make_unique<memory::Engine>(options));
}

}  // namespace sluice
