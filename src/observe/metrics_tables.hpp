// What Metrics counts. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "sluice/metrics.hpp"
#include "src/observe/heavy_hitters.hpp"
#include "src/util/this_shard.hpp"

namespace sluice::detail {

using Count = std::atomic<std::uint64_t>;

inline void add(Count& count, std::uint64_t amount = 1) noexcept {
  count.fetch_add(amount, std::memory_order_relaxed);  // counters order nothing
}

inline constexpr std::size_t source_count = 7;  // of Source
inline constexpr std::size_t wait_results = 4;  // of WaitEvent::Result, without begun
inline constexpr std::size_t error_count = 64;  // Errc is below; 0 stands for other errors

/// Counts of times by ranges.
class TimeHistogram {
 public:
  /// Upper bounds in microseconds; a last range has none.
  static constexpr std::array<Word, 14> bounds{
      100,     500,       1'000,     5'000,      10'000,     50'000,      100'000,
      500'000, 1'000'000, 5'000'000, 10'000'000, 60'000'000, 300'000'000, 3'600'000'000};

  void add(Span span) noexcept;
  [[nodiscard]] std::uint64_t at(std::size_t range) const noexcept { return ranges_[range].load(); }
  [[nodiscard]] bool is_empty() const noexcept {
    return std::all_of(ranges_.begin(), ranges_.end(),
                       [](const Count& count) { return count.load() == 0; });
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.load(); }  ///< microseconds

 private:
  std::array<Count, bounds.size() + 1> ranges_{};
  Count sum_{0};
};

struct LimiterMetrics {
  /// Threads count apart, so that they do not wait for each other's cache lines.
  struct alignas(64) Shard {
    std::array<Count, source_count> allowed{};
    std::array<Count, source_count> refused{};
    Count failed{0};
    Count near_limit{0};
  };
  std::array<Shard, shard_count> shards{};
  std::array<TimeHistogram, wait_results> waits{};
  std::atomic<std::int64_t> waiting{0};
  std::atomic<std::int64_t> leases_held{0};
  Count shadow_refusals{0};
  Count leases_granted{0};
  Count leases_lost{0};
  Count renewals_failed{0};
  std::array<Count, 2> retries{};   // by FailedTryEvent::Reason
  std::array<Count, 2> given_up{};  // ...
};

struct StoreMetrics {
  std::array<Count, error_count> failures{};
  std::array<Count, 4> connections{};  // by ConnectionEvent::Change
  mutable std::mutex mutex;            // of the maps by part; a round trip is far longer
  std::map<unsigned, TimeHistogram> requests;
  std::map<unsigned, CircuitBreaker::State> breaker;
};

/// The scopes of one Gates that this process knows to be closed.
class ClosedScopes {
 public:
  void close(std::string_view scope, Time until, Time now);
  void open(std::string_view scope) noexcept;
  [[nodiscard]] bool is_any_closed(Time now) const noexcept;

 private:
  static constexpr std::size_t most = 1000;

  mutable std::mutex mutex_;
  std::map<std::string, Time, std::less<>> until_;  // guarded by mutex_, as the next
  Time others_until_{};                             // of scopes beyond `most`
};

struct GateMetrics {
  Count closures{0};
  ClosedScopes closed;
};

/// Values by name, of which there are at most so many, and one for all others. Lock-free for a name
/// that was seen before.
template <class T>
class ByName {
 public:
  explicit ByName(std::size_t most) : most_(most) {}

  /// A long name is cut: callers may choose it, and it is a label. May throw std::bad_alloc at the
  /// first call with a name.
  T& of(std::string_view name) {
    name = name.substr(0, Key::max_plain_bytes);
    // By the address, since a limiter's name stays where it is; what is there is compared.
    const auto address = reinterpret_cast<std::uintptr_t>(name.data());
    std::atomic<const Entry*>& known = known_[(address >> 4 ^ address >> 12) % known_.size()];
    const Entry* const entry = known.load(std::memory_order_acquire);
    if (entry != nullptr && entry->first == name) return *entry->second;
    return find(name, known);
  }
  [[nodiscard]] const T* find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(name);
    return found == all_.end() ? nullptr : found->second.get();
  }
  /// Calls `visit(name, value)` in the order of names.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, value] : all_) visit(std::string_view(name), *value);
  }

 private:
  using Entry = std::pair<const std::string, std::unique_ptr<T>>;

  T& find(std::string_view name, std::atomic<const Entry*>& known) {
    const std::lock_guard lock(mutex_);
    auto found = all_.find(name);
    if (found == all_.end()) {
      const std::string_view kept = all_.size() < most_ ? name : std::string_view("other");
      found = all_.try_emplace(std::string(kept)).first;
      if (!found->second) found->second = std::make_unique<T>();
    }
    if (found->first == name) known.store(&*found, std::memory_order_release);
    return *found->second;
  }

  std::size_t most_;
  std::array<std::atomic<const Entry*>, 256> known_{};
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<T>, std::less<>> all_;  // guarded by mutex_, but its values
};

/// The busiest keys.
class BusyKeys {
 public:
  explicit BusyKeys(std::size_t counters) : hitters_(counters, Key::max_plain_bytes) {}
  void add(std::string_view limiter, std::string_view key);
  [[nodiscard]] std::vector<BusyKey> busiest(std::size_t most, std::uint64_t scale) const;

 private:
  mutable std::mutex mutex_;
  HeavyHitters hitters_;  // guarded by mutex_
};

}  // namespace sluice::detail

namespace sluice {

struct Metrics::Tables {
  explicit Tables(const MetricsOptions& chosen);

  MetricsOptions options;
  SystemClock system;
  const Clock& clock;
  std::uint64_t near_millionths;  // of the limit, that are left at most near it
  detail::ByName<detail::LimiterMetrics> limiters;
  detail::ByName<detail::StoreMetrics> stores;
  detail::ByName<detail::GateMetrics> gates;
  struct alignas(64) UntilSample {
    std::atomic<std::uint32_t> left{0};
  };
  std::array<UntilSample, detail::shard_count> until_sample{};
  std::unique_ptr<detail::BusyKeys> refused;   // null: none are counted
  std::unique_ptr<detail::BusyKeys> admitted;  // ...
  mutable std::mutex prefetching_mutex;
  std::map<std::string, std::function<PrefetchStats()>, std::less<>> prefetching;  // by store
};

}  // namespace sluice
