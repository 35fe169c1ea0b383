// A value that is replaced as a whole while threads read it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "sluice/detail/fork_count.hpp"
#include "src/util/this_shard.hpp"

namespace sluice::detail {

/// Readers are wait-free: they count themselves in one of two columns of their thread's shard. A
/// writer publishes, then waits until both columns were empty once, with new readers in the other
/// one (sleepable RCU of the Linux kernel; P. McKenney, 2006). Thread-safe.
template <class T>
class Published {
 public:
  explicit Published(std::unique_ptr<const T> value) : value_(value.release()) {}
  ~Published() { delete value_.load(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  /// Calls `read(const T&)`, which must not call replace(), and returns what it returns.
  template <class Read>
  auto read(Read read) const noexcept {
    const Reader reader(shards_[this_shard()].readers[column_.load(std::memory_order_relaxed) % 2]);
    return read(*value_.load());
  }

  /// Returns when nobody reads the former value any more.
  void replace(std::unique_ptr<const T> value) {
    const std::lock_guard lock(writer_);
    std::unique_ptr<const T> former(value_.exchange(value.release()));
    // In a forked child, readers that were under way in the parent never leave.
    if (!home_.is_here()) return static_cast<void>(former.release());
    for (int turn = 0; turn < 2; ++turn) {
      const unsigned left = column_.fetch_add(1) % 2;
      for (const Shard& shard : shards_) {
        while (shard.readers[left].load() != 0) std::this_thread::yield();
      }
    }
  }

 private:
  using Count = std::atomic<std::uint32_t>;
  struct alignas(64) Shard {
    std::array<Count, 2> readers{};
  };
  /// A reader that reads the former value is counted before the exchange of replace() in the one
  /// order of all sequentially consistent operations, so that replace() sees it.
  class Reader {
   public:
    explicit Reader(Count& count) noexcept : count_(count) { count_.fetch_add(1); }
    ~Reader() { count_.fetch_sub(1, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    Count& count_;
  };

  std::atomic<const T*> value_;
  std::atomic<unsigned> column_{0};
  mutable std::array<Shard, shard_count> shards_;
  std::mutex writer_;
  HomeProcess home_;
};

}  // namespace sluice::detail
