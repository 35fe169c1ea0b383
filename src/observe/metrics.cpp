// Counting the events. metrics_text.cpp writes them.
#include "sluice/metrics.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "src/observe/metrics_tables.hpp"

namespace sluice {
namespace detail {
namespace {

/// True once in `sample` calls, at distances that are drawn: a caller's own rhythm does not choose
/// which. `left`: until the next one. Threads that share it may skip some.
bool is_sampled(std::atomic<std::uint32_t>& left, std::uint32_t sample) noexcept {
  if (const std::uint32_t now = left.load(std::memory_order_relaxed); now > 0) {
    left.store(now - 1, std::memory_order_relaxed);
    return false;
  }
  thread_local std::uint64_t state = 0x9e3779b97f4a7c15 * (this_shard() + 1);
  // xorshift64 (G. Marsaglia, 2003)
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  // sample - 1 on average
  left.store(static_cast<std::uint32_t>(state >> 32) % (2 * sample - 1), std::memory_order_relaxed);
  return true;
}

}  // namespace

void TimeHistogram::add(Span span) noexcept {
  const Word time = std::max<Word>(span.count(), 0);
  const auto range = std::lower_bound(bounds.begin(), bounds.end(), time) - bounds.begin();
  detail::add(ranges_[static_cast<std::size_t>(range)]);
  detail::add(sum_, static_cast<std::uint64_t>(time));
}

void ClosedScopes::close(std::string_view scope, Time until, Time now) {
  const std::lock_guard lock(mutex_);
  if (until_.size() >= most) {
    std::erase_if(until_, [now](const auto& known) { return known.second <= now; });
  }
  const auto known = until_.find(scope);
  if (known == until_.end() && until_.size() >= most) {
    others_until_ = std::max(others_until_, until);
  } else if (known == until_.end()) {
    until_.emplace(scope, until);
  } else {
    known->second = std::max(known->second, until);
  }
}

void ClosedScopes::open(std::string_view scope) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto known = until_.find(scope); known != until_.end()) until_.erase(known);
}

bool ClosedScopes::is_any_closed(Time now) const noexcept {
  const std::lock_guard lock(mutex_);
  return others_until_ > now || std::any_of(until_.begin(), until_.end(), [now](const auto& known) {
           return known.second > now;
         });
}

/// Whoever chooses keys can choose collisions of this hash: they cost a look at each counter.
void BusyKeys::add(std::string_view limiter, std::string_view key) {
  limiter = limiter.substr(0, Key::max_plain_bytes);
  key = key.substr(0, Key::max_plain_bytes);
  const std::hash<std::string_view> hash;
  const std::uint64_t both = 31 * hash(limiter) + hash(key);
  const std::lock_guard lock(mutex_);
  hitters_.add(limiter, key, both);
}

std::vector<BusyKey> BusyKeys::busiest(std::size_t most, std::uint64_t scale) const {
  std::vector<BusyKey> keys;
  {
    const std::lock_guard lock(mutex_);
    for (const HeavyHitters::Counter& counter : hitters_.counters()) {
      keys.push_back({counter.limiter, counter.key, counter.count * scale, counter.error * scale});
    }
  }
  std::sort(keys.begin(), keys.end(), [](const BusyKey& a, const BusyKey& b) {
    if (a.count != b.count) return a.count > b.count;
    return a.limiter != b.limiter ? a.limiter < b.limiter : a.key < b.key;
  });
  if (keys.size() > most) keys.resize(most);
  return keys;
}

}  // namespace detail

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("MetricsOptions::" + what);
}

const MetricsOptions& checked(const MetricsOptions& options) {
  require(options.near_limit >= 0 && options.near_limit <= 1,
          "near_limit must be 0 to 1, got " + std::to_string(options.near_limit));
  require(options.keys <= 10'000, "keys must be 0 to 10000, got " + std::to_string(options.keys));
  require(options.sample >= 1 && options.sample <= 1U << 20,
          "sample must be 1 to 1048576, got " + std::to_string(options.sample));
  require(options.names >= 1 && options.names <= 1'000'000,
          "names must be 1 to 1000000, got " + std::to_string(options.names));
  return options;
}

std::unique_ptr<detail::BusyKeys> keys_of(std::size_t count) {
  return count == 0 ? nullptr : std::make_unique<detail::BusyKeys>(count);
}

}  // namespace

Metrics::Tables::Tables(const MetricsOptions& chosen)
    : options(checked(chosen)),
      clock(options.clock != nullptr ? *options.clock : system),
      near_millionths(static_cast<std::uint64_t>((1 - options.near_limit) * 1e6 + 0.5)),
      limiters(options.names),
      stores(options.names),
      gates(options.names),
      refused(keys_of(options.keys)),
      admitted(keys_of(options.keys)) {}

Metrics::Metrics(const MetricsOptions& options) : tables_(std::make_unique<Tables>(options)) {}
Metrics::~Metrics() = default;

void Metrics::watch(std::string_view store, std::function<PrefetchStats()> stats) {
  const std::lock_guard lock(tables_->prefetching_mutex);
  if (stats) {
    tables_->prefetching.insert_or_assign(std::string(store), std::move(stats));
  } else if (const auto found = tables_->prefetching.find(store);
             found != tables_->prefetching.end()) {
    tables_->prefetching.erase(found);
  }
}

void Metrics::decided(const DecisionEvent& event) {
  using detail::add;
  Tables& all = *tables_;
  if (event.is_shadow && !event.error) {
    return add(all.limiters.of(event.limiter()).shadow_refusals);
  }
  if (event.error) {
    detail::StoreMetrics& store = all.stores.of(event.store);
    const auto code = static_cast<std::size_t>(event.error.value());
    const bool is_ours = event.error.category() == make_error_code(Errc::unknown).category();
    add(store.failures[is_ours && code < detail::error_count ? code : 0]);
  }
  if (event.is_shadow) return;
  if (event.took > Span{0}) {
    detail::StoreMetrics& store = all.stores.of(event.store);
    const std::lock_guard lock(store.mutex);
    store.requests[std::min(event.part, CircuitBreaker::max_parts - 1)].add(event.took);
  }

  const Decision& decision = event.decision;
  const auto source = static_cast<std::size_t>(decision.source) % detail::source_count;
  const std::size_t number = detail::this_shard();
  detail::LimiterMetrics::Shard& shard = all.limiters.of(event.limiter()).shards[number];
  detail::BusyKeys* keys = nullptr;
  if (event.error) {
    add(shard.failed);
  } else if (decision.allowed) {
    add(shard.allowed[source]);
    const bool counts = decision.limit > 0 && decision.limit < unlimited;
    if (counts &&
        static_cast<double>(decision.remaining) * 1e6 <=
            static_cast<double>(decision.limit) * static_cast<double>(all.near_millionths)) {
      add(shard.near_limit);
    }
    if (all.admitted && detail::is_sampled(all.until_sample[number].left, all.options.sample))
      keys = all.admitted.get();
  } else if (!event.is_of_wait) {
    add(shard.refused[source]);
    keys = all.refused.get();
  }
  if (keys != nullptr) keys->add(event.limiter(), event.key());
}

void Metrics::wait_changed(const WaitEvent& event) {
  detail::LimiterMetrics& limiter = tables_->limiters.of(event.limiter);
  if (event.result == WaitEvent::Result::begun) {
    limiter.waiting.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  limiter.waiting.fetch_sub(1, std::memory_order_relaxed);
  limiter.waits[static_cast<std::size_t>(event.result) - 1].add(event.waited);
}

void Metrics::lease_changed(const LeaseEvent& event) {
  detail::LimiterMetrics& limiter = tables_->limiters.of(event.limiter);
  using Change = LeaseEvent::Change;
  switch (event.change) {
    case Change::granted:
      detail::add(limiter.leases_granted);
      limiter.leases_held.fetch_add(1, std::memory_order_relaxed);
      return;
    case Change::renewal_failed:
      return detail::add(limiter.renewals_failed);
    case Change::lost:
      detail::add(limiter.leases_lost);
      [[fallthrough]];
    case Change::released:
      limiter.leases_held.fetch_sub(1, std::memory_order_relaxed);
      return;
  }
}

void Metrics::gate_changed(const GateEvent& event) {
  detail::GateMetrics& gates = tables_->gates.of(event.gates);
  if (!event.is_closed) return gates.closed.open(event.scope);
  detail::add(gates.closures);
  gates.closed.close(event.scope, event.until, tables_->clock.now());
}

void Metrics::try_failed(const FailedTryEvent& event) {
  detail::LimiterMetrics& limiter = tables_->limiters.of(event.limiter);
  const auto reason = static_cast<std::size_t>(event.reason);
  detail::add((event.is_retried ? limiter.retries : limiter.given_up)[reason]);
}

void Metrics::breaker_changed(const BreakerEvent& event) {
  detail::StoreMetrics& store = tables_->stores.of(event.store);
  const std::lock_guard lock(store.mutex);
  store.breaker[event.part] = event.to;
}

void Metrics::connection_changed(const ConnectionEvent& event) {
  detail::add(tables_->stores.of(event.store).connections[static_cast<std::size_t>(event.change)]);
}

Metrics::Counts Metrics::counts(std::string_view limiter) const {
  Counts sum;
  const detail::LimiterMetrics* const found = tables_->limiters.find(limiter);
  if (found == nullptr) return sum;
  for (const auto& shard : found->shards) {
    for (const detail::Count& count : shard.allowed) sum.allowed += count.load();
    for (const detail::Count& count : shard.refused) sum.refused += count.load();
    sum.failed += shard.failed.load();
    sum.near_limit += shard.near_limit.load();
  }
  sum.shadow_refusals = found->shadow_refusals.load();
  return sum;
}

std::vector<BusyKey> Metrics::busiest(Busy what, std::size_t most) const {
  const bool is_refused = what == Busy::refused;
  const auto& keys = is_refused ? tables_->refused : tables_->admitted;
  if (!keys) return {};
  return keys->busiest(most, is_refused ? 1 : tables_->options.sample);
}

}  // namespace sluice
