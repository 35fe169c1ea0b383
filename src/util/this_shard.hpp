// Shards of what threads count: each thread has one, so that few share a cache line.
#pragma once

#include <atomic>
#include <cstddef>

namespace sluice::detail {

inline constexpr std::size_t shard_count = 16;

/// That of the calling thread, below shard_count.
[[nodiscard]] inline std::size_t this_shard() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine =
      threads.fetch_add(1, std::memory_order_relaxed) % shard_count;
  return mine;
}

}  // namespace sluice::detail
