// Metrics as families of samples.
#include <algorithm>
#include <utility>
#include <vector>

#include "sluice/metrics.hpp"
#include "sluice/prefetch_store.hpp"
#include "src/core/error_names.hpp"
#include "src/observe/metrics_tables.hpp"

namespace sluice {
namespace detail {
namespace {

constexpr char hex_digits[] = "0123456789ABCDEF";

/// A label's value: what a parser could misread, and bytes that may be no UTF-8, are written as
/// %XX.
std::string label_value(std::string_view value) {
  std::string out;
  for (const char byte : value) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= 0x20 && code < 0x7f && byte != '"' && byte != '\\') {
      out += byte;
    } else {
      out += '%';
      out += hex_digits[code >> 4];
      out += hex_digits[code & 15];
    }
  }
  return out;
}

using Type = MetricFamily::Type;

struct Label {
  const char* name;
  std::string_view value;
};
using Labels = std::initializer_list<Label>;

class Families {
 public:
  /// Of all samples that follow. Families without a sample are there too, so that a dashboard finds
  /// them.
  void begin(const char* name, Type type, const char* help) {
    all_.push_back({.name = name, .help = help, .type = type});
  }
  template <class Number>
  void add(Labels labels, Number value) {
    sample(labels).value = static_cast<std::int64_t>(value);
  }
  /// One that was never counted is left out.
  void add_if(Labels labels, std::uint64_t value) {
    if (value > 0) add(labels, value);
  }
  void add_times(Labels labels, const TimeHistogram& times) {
    MetricFamily::Sample& added = sample(labels);
    for (std::size_t i = 0; i <= TimeHistogram::bounds.size(); ++i) {
      added.value += static_cast<std::int64_t>(times.at(i));
      added.cumulative.push_back(static_cast<std::uint64_t>(added.value));
    }
    added.sum = Span{static_cast<Word>(times.sum())};
  }
  std::vector<MetricFamily> take() { return std::move(all_); }

 private:
  MetricFamily::Sample& sample(Labels labels) {
    MetricFamily::Sample& added = all_.back().samples.emplace_back();
    for (const auto& [name, value] : labels) added.labels.emplace_back(name, label_value(value));
    return added;
  }

  std::vector<MetricFamily> all_;
};

using Limiters = ByName<LimiterMetrics>;
using Stores = ByName<StoreMetrics>;
using Reason = FailedTryEvent::Reason;

template <class Get>
std::uint64_t sum_of(const LimiterMetrics& limiter, const Get& get) {
  std::uint64_t sum = 0;
  for (const auto& shard : limiter.shards) sum += get(shard).load();
  return sum;
}

void write_decisions(Families& out, const Limiters& limiters) {
  out.begin("sluice_decisions", Type::counter, "Calls that asked a limiter, by what was decided.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    for (std::size_t i = 0; i < source_count; ++i) {
      const std::string_view source = to_string(static_cast<Source>(i));
      const auto count = [i](const auto& counts) -> const Count& { return counts[i]; };
      out.add_if(
          {{"limiter", name}, {"result", "allowed"}, {"source", source}},
          sum_of(limiter, [&](const auto& shard) -> const Count& { return count(shard.allowed); }));
      out.add_if(
          {{"limiter", name}, {"result", "refused"}, {"source", source}},
          sum_of(limiter, [&](const auto& shard) -> const Count& { return count(shard.refused); }));
    }
    out.add_if({{"limiter", name}, {"result", "failed"}, {"source", "none"}},
               sum_of(limiter, [](const auto& shard) -> const Count& { return shard.failed; }));
  });
  out.begin("sluice_near_limit", Type::counter, "Allowed calls that left little of the limit.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    out.add({{"limiter", name}},
            sum_of(limiter, [](const auto& shard) -> const Count& { return shard.near_limit; }));
  });
  out.begin("sluice_shadow_refusals", Type::counter,
            "Calls that a shadow refused and that went ahead.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    out.add_if({{"limiter", name}}, limiter.shadow_refusals.load());
  });
}

void write_waits(Families& out, const Limiters& limiters) {
  out.begin("sluice_wait_seconds", Type::histogram, "Calls that waited, by how it ended.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    for (std::size_t i = 0; i < wait_results; ++i) {
      const std::string_view result = to_string(static_cast<WaitEvent::Result>(i + 1));
      if (limiter.waits[i].is_empty()) continue;
      out.add_times({{"limiter", name}, {"result", result}}, limiter.waits[i]);
    }
  });
  out.begin("sluice_waiting", Type::gauge, "Calls of this process that wait now.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    out.add({{"limiter", name}}, limiter.waiting.load());
  });
}

void write_leases(Families& out, const Limiters& limiters) {
  out.begin("sluice_leases_held", Type::gauge, "Leases that this process holds.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    if (limiter.leases_granted.load() > 0) out.add({{"limiter", name}}, limiter.leases_held.load());
  });
  out.begin("sluice_leases_lost", Type::counter, "Leases that were not renewed in time.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    if (limiter.leases_granted.load() > 0) out.add({{"limiter", name}}, limiter.leases_lost.load());
  });
  out.begin("sluice_lease_renewals_failed", Type::counter,
            "Renewals that the store did not answer.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    out.add_if({{"limiter", name}}, limiter.renewals_failed.load());
  });
}

void write_calls(Families& out, const Limiters& limiters) {
  const auto write = [&](const std::array<Count, 2> LimiterMetrics::*counts) {
    limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
      for (const Reason reason : {Reason::rate_limited, Reason::transient}) {
        out.add_if({{"call", name}, {"reason", to_string(reason)}},
                   (limiter.*counts)[static_cast<std::size_t>(reason)].load());
      }
    });
  };
  out.begin("sluice_call_retries", Type::counter, "Tries of Calls that failed and were repeated.");
  write(&LimiterMetrics::retries);
  out.begin("sluice_calls_given_up", Type::counter, "Calls whose last try failed.");
  write(&LimiterMetrics::given_up);
}

void write_gates(Families& out, const ByName<GateMetrics>& gates, Time now) {
  out.begin("sluice_gate_closed", Type::gauge, "1 while a scope of these gates is closed.");
  gates.for_each([&](std::string_view name, const GateMetrics& gate) {
    out.add({{"gates", name}}, gate.closed.is_any_closed(now) ? 1 : 0);
  });
  out.begin("sluice_gate_closures", Type::counter, "Closures of scopes.");
  gates.for_each([&](std::string_view name, const GateMetrics& gate) {
    out.add({{"gates", name}}, gate.closures.load());
  });
}

void write_requests(Families& out, const Stores& stores) {
  out.begin("sluice_store_request_seconds", Type::histogram,
            "Round trips to stores over a network.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    const std::lock_guard lock(store.mutex);
    for (const auto& [part, times] : store.requests) {
      const std::string number = std::to_string(part);
      out.add_times({{"store", name}, {"part", number}}, times);
    }
  });
  out.begin("sluice_store_failures", Type::counter, "Calls that a store could not decide.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    for (std::size_t code = 0; code < error_count; ++code) {
      const std::string_view error = find_name(static_cast<Errc>(code));
      out.add_if({{"store", name}, {"error", error.empty() ? "other" : error}},
                 store.failures[code].load());
    }
  });
}

void write_connections(Families& out, const Stores& stores) {
  out.begin("sluice_breaker_state", Type::gauge, "0 closed, 1 half open, 2 open.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    const std::lock_guard lock(store.mutex);
    for (const auto& [part, state] : store.breaker) {
      using State = CircuitBreaker::State;
      const std::string number = std::to_string(part);
      out.add({{"store", name}, {"part", number}}, state == State::closed      ? 0
                                                   : state == State::half_open ? 1
                                                                               : 2);
    }
  });
  out.begin("sluice_store_connections", Type::counter, "Connections made, failed and lost.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    constexpr std::string_view changes[] = {"connected", "failed", "lost", "other_server"};
    for (std::size_t i = 0; i < store.connections.size(); ++i) {
      out.add_if({{"store", name}, {"change", changes[i]}}, store.connections[i].load());
    }
  });
}

void write_prefetched(Families& out, std::string_view store, const PrefetchStats& stats) {
  out.add({{"store", store}, {"state", "taken"}}, stats.taken);
  out.add({{"store", store}, {"state", "returned"}}, stats.returned);
  out.add({{"store", store}, {"state", "lapsed"}}, stats.lapsed);
}

}  // namespace
}  // namespace detail

std::span<const Span> MetricFamily::bounds() noexcept {
  static const auto spans = [] {
    std::array<Span, detail::TimeHistogram::bounds.size()> all{};
    std::transform(detail::TimeHistogram::bounds.begin(), detail::TimeHistogram::bounds.end(),
                   all.begin(), [](Word microseconds) { return Span{microseconds}; });
    return all;
  }();
  return spans;
}

std::vector<MetricFamily> Metrics::families() const {
  const Tables& all = *tables_;
  detail::Families out;
  detail::write_decisions(out, all.limiters);
  detail::write_waits(out, all.limiters);
  detail::write_leases(out, all.limiters);
  detail::write_calls(out, all.limiters);
  detail::write_gates(out, all.gates, all.clock.now());
  detail::write_requests(out, all.stores);
  detail::write_connections(out, all.stores);
  out.begin("sluice_prefetched_units", MetricFamily::Type::counter,
            "Units that a process took ahead of need, sent back, and let lapse.");
  const std::lock_guard lock(all.prefetching_mutex);
  for (const auto& [store, stats] : all.prefetching) detail::write_prefetched(out, store, stats());
  return out.take();
}

}  // namespace sluice
