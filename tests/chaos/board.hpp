// What the processes of a run write down, in memory that they share: counters and lists that are
// read when the writers have ended. Times are microseconds of the monotonic clock.
// Threading: any thread of any process writes; see the members for what is read meanwhile.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "sluice/error.hpp"

namespace sluice::chaos {

inline constexpr std::size_t most_processes = 8;
inline constexpr std::size_t most_threads = 32;  ///< of callers, in a process
inline constexpr std::size_t most_cpus = 64;
inline constexpr std::size_t groups = 2;  ///< of keys; see Board::group_of_slot

[[nodiscard]] std::int64_t now_us() noexcept;

/// A list that takes the first N values, and counts the others.
template <class T, std::size_t N>
class Notes {
 public:
  void add(const T& value) noexcept {
    const std::size_t at = count_.fetch_add(1);
    if (at < N) values_[at] = value;
  }
  [[nodiscard]] std::span<const T> all() const noexcept {
    return {values_.data(), std::min<std::size_t>(count_, N)};
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::atomic<std::size_t> count_{0};
  std::array<T, N> values_{};
};

/// A stretch of time: a stall of a control thread, or a time without a decision.
struct Stretch {
  std::int64_t begin;
  std::int64_t end;
};

/// A call that came back behind its deadline.
struct Late {
  std::int64_t due;
  std::int64_t back;
};

/// What one process of callers has seen.
struct Tally {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> decided{0};                      ///< by the server
  std::atomic<std::uint64_t> granted{0};                      ///< of the shared key, by the server
  std::array<std::atomic<std::uint64_t>, groups> degraded{};  ///< decided without the server
  std::array<std::atomic<std::uint64_t>, groups> failed{};
  std::array<std::atomic<std::uint64_t>, 64> errors{};  ///< by the value of Errc
  std::atomic<std::uint64_t> mispaired{0};
  std::atomic<std::uint64_t> answered_twice{0};
  /// When a thread's call began; 0 between calls.
  std::array<std::atomic<std::int64_t>, most_threads> since{};
  std::atomic<std::uint64_t> hung{0};      ///< calls that were given up
  std::atomic<std::uint64_t> switches{0};  ///< to another master, as the Sentinels name it
  std::atomic<std::int64_t> first_call{0};
  std::atomic<std::int64_t> last_call{0};

  std::array<std::atomic<std::int64_t>, groups> last_decision{};
  /// Times without a decision, of 20 ms or more.
  std::array<Notes<Stretch, 4'096>, groups> gaps;
  Notes<Late, 65'536> late;
  std::atomic<bool> is_ready{false};

  void note_decision(std::size_t group, std::int64_t at) noexcept;
};

struct Board {
  std::atomic<bool> over{false};  ///< callers make no further calls
  /// Odd while the server is about to lose what it holds; counts twice for each such time.
  std::atomic<std::uint64_t> upset{0};
  /// Which group a key belongs to, by its slot in a cluster.
  std::array<std::atomic<std::uint8_t>, 16'384> group_of_slot{};
  std::array<Tally, most_processes> tallies;
  std::array<Notes<Stretch, 16'384>, most_cpus> stalls;  ///< of the control threads
  std::atomic<std::int64_t> control_began{0};
};

/// Memory that is zero, and that this process shares with the children that it forks. Throws
/// std::bad_alloc.
[[nodiscard]] void* map_shared(std::size_t size);
void unmap_shared(void* memory, std::size_t size) noexcept;

/// An object in such memory.
template <class T>
class Shared {
 public:
  Shared() : object_(new (map_shared(sizeof(T))) T) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { unmap_shared(object_, sizeof(T)); }
  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace sluice::chaos
