// Metrics as text. Sources: https://prometheus.io/docs/specs/om/open_metrics_spec/ and
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "sluice/metrics.hpp"
#include "src/core/error_names.hpp"
#include "src/observe/metrics_tables.hpp"

namespace sluice {
namespace detail {
namespace {

constexpr char hex_digits[] = "0123456789ABCDEF";

/// A label's value: what a parser could misread, and bytes that may be no UTF-8, are written as
/// %XX.
void append_value(std::string& out, std::string_view value) {
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
}

/// 0.0001 for 100 us, without trailing zeros.
std::string seconds(std::uint64_t microseconds) {
  char text[32];
  const int size = std::snprintf(text, sizeof(text), "%llu.%06llu",
                                 static_cast<unsigned long long>(microseconds / 1'000'000),
                                 static_cast<unsigned long long>(microseconds % 1'000'000));
  std::string result(text, static_cast<std::size_t>(size));
  while (result.back() == '0' && result[result.size() - 2] != '.') result.pop_back();
  return result;
}

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::vector<Label>;

class Page {
 public:
  explicit Page(Metrics::Format format) : format_(format) {}

  /// Of all samples that follow. Families without a sample are written too, so that a dashboard
  /// finds them.
  void begin(std::string_view family, std::string_view type, std::string_view help) {
    family_ = family;
    const bool has_suffix = format_ == Metrics::Format::prometheus && type == "counter";
    const auto line = [&](std::string_view what, std::string_view text) {
      text_.append("# ").append(what).append(" ").append(family).append(has_suffix ? "_total "
                                                                                   : " ");
      text_.append(text).append("\n");
    };
    line("TYPE", type);
    const bool is_time = family.size() > 8 && family.substr(family.size() - 8) == "_seconds";
    if (is_time && format_ == Metrics::Format::openmetrics) line("UNIT", "seconds");
    line("HELP", help);
  }
  void sample(std::string_view suffix, const Labels& labels, std::string_view value) {
    text_.append(family_).append(suffix);
    char before = '{';
    for (const auto& [name, content] : labels) {
      text_ += before;
      text_.append(name).append("=\"");
      append_value(text_, content);
      text_ += '"';
      before = ',';
    }
    if (!labels.empty()) text_ += '}';
    text_.append(" ").append(value).append("\n");
  }
  void total(const Labels& labels, std::uint64_t value) {
    sample("_total", labels, std::to_string(value));
  }
  /// One that was never counted is left out.
  void total_if(const Labels& labels, std::uint64_t value) {
    if (value > 0) total(labels, value);
  }
  void gauge(const Labels& labels, std::int64_t value) {
    sample("", labels, std::to_string(value));
  }
  void histogram(const TimeHistogram& times, const Labels& labels) {
    std::uint64_t sum = 0;
    Labels with_bound = labels;
    with_bound.push_back({"le", {}});
    for (std::size_t i = 0; i <= TimeHistogram::bounds.size(); ++i) {
      sum += times.at(i);
      const bool is_last = i == TimeHistogram::bounds.size();
      const std::string bound =
          is_last ? "+Inf" : seconds(static_cast<std::uint64_t>(TimeHistogram::bounds[i]));
      with_bound.back().value = bound;
      sample("_bucket", with_bound, std::to_string(sum));
    }
    sample("_count", labels, std::to_string(sum));
    sample("_sum", labels, seconds(times.sum()));
  }
  std::string end() {
    if (format_ == Metrics::Format::openmetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  Metrics::Format format_;
  std::string_view family_;
  std::string text_;
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

void write_decisions(Page& page, const Limiters& limiters) {
  page.begin("sluice_decisions", "counter", "Calls that asked a limiter, by what was decided.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    for (std::size_t i = 0; i < source_count; ++i) {
      const std::string_view source = to_string(static_cast<Source>(i));
      const auto count = [i](const auto& counts) -> const Count& { return counts[i]; };
      page.total_if(
          {{"limiter", name}, {"result", "allowed"}, {"source", source}},
          sum_of(limiter, [&](const auto& shard) -> const Count& { return count(shard.allowed); }));
      page.total_if(
          {{"limiter", name}, {"result", "refused"}, {"source", source}},
          sum_of(limiter, [&](const auto& shard) -> const Count& { return count(shard.refused); }));
    }
    page.total_if({{"limiter", name}, {"result", "failed"}, {"source", "none"}},
                  sum_of(limiter, [](const auto& shard) -> const Count& { return shard.failed; }));
  });
  page.begin("sluice_near_limit", "counter", "Allowed calls that left little of the limit.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    page.total({{"limiter", name}},
               sum_of(limiter, [](const auto& shard) -> const Count& { return shard.near_limit; }));
  });
  page.begin("sluice_shadow_refusals", "counter",
             "Calls that a shadow refused and that went ahead.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    page.total_if({{"limiter", name}}, limiter.shadow_refusals.load());
  });
}

void write_waits(Page& page, const Limiters& limiters) {
  page.begin("sluice_wait_seconds", "histogram", "Calls that waited, by how it ended.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    for (std::size_t i = 0; i < wait_results; ++i) {
      const std::string_view result = to_string(static_cast<WaitEvent::Result>(i + 1));
      if (limiter.waits[i].is_empty()) continue;
      page.histogram(limiter.waits[i], {{"limiter", name}, {"result", result}});
    }
  });
  page.begin("sluice_waiting", "gauge", "Calls of this process that wait now.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    page.gauge({{"limiter", name}}, limiter.waiting.load());
  });
}

void write_leases(Page& page, const Limiters& limiters) {
  page.begin("sluice_leases_held", "gauge", "Leases that this process holds.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    if (limiter.leases_granted.load() > 0)
      page.gauge({{"limiter", name}}, limiter.leases_held.load());
  });
  page.begin("sluice_leases_lost", "counter", "Leases that were not renewed in time.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    if (limiter.leases_granted.load() > 0)
      page.total({{"limiter", name}}, limiter.leases_lost.load());
  });
  page.begin("sluice_lease_renewals_failed", "counter", "Renewals that the store did not answer.");
  limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
    page.total_if({{"limiter", name}}, limiter.renewals_failed.load());
  });
}

void write_calls(Page& page, const Limiters& limiters) {
  const auto write = [&](const std::array<Count, 2> LimiterMetrics::*counts) {
    limiters.for_each([&](std::string_view name, const LimiterMetrics& limiter) {
      for (const Reason reason : {Reason::rate_limited, Reason::transient}) {
        page.total_if({{"call", name}, {"reason", to_string(reason)}},
                      (limiter.*counts)[static_cast<std::size_t>(reason)].load());
      }
    });
  };
  page.begin("sluice_call_retries", "counter", "Tries of Calls that failed and were repeated.");
  write(&LimiterMetrics::retries);
  page.begin("sluice_calls_given_up", "counter", "Calls whose last try failed.");
  write(&LimiterMetrics::given_up);
}

void write_gates(Page& page, const ByName<GateMetrics>& gates, Time now) {
  page.begin("sluice_gate_closed", "gauge", "1 while a scope of these gates is closed.");
  gates.for_each([&](std::string_view name, const GateMetrics& gate) {
    page.gauge({{"gates", name}}, gate.closed_until.load() > to_word(now) ? 1 : 0);
  });
  page.begin("sluice_gate_closures", "counter", "Closures of scopes.");
  gates.for_each([&](std::string_view name, const GateMetrics& gate) {
    page.total({{"gates", name}}, gate.closures.load());
  });
}

void write_requests(Page& page, const Stores& stores) {
  page.begin("sluice_store_request_seconds", "histogram", "Round trips to stores over a network.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    if (!store.requests.is_empty()) page.histogram(store.requests, {{"store", name}});
  });
  page.begin("sluice_store_failures", "counter", "Calls that a store could not decide.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    for (std::size_t code = 0; code < error_count; ++code) {
      const std::string_view error = find_name(static_cast<Errc>(code));
      page.total_if({{"store", name}, {"error", error.empty() ? "other" : error}},
                    store.failures[code].load());
    }
  });
}

void write_connections(Page& page, const Stores& stores) {
  page.begin("sluice_breaker_state", "gauge", "0 closed, 1 half open, 2 open.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    const std::lock_guard lock(store.mutex);
    for (const auto& [part, state] : store.breaker) {
      using State = CircuitBreaker::State;
      const std::string number = std::to_string(part);
      page.gauge({{"store", name}, {"part", number}}, state == State::closed      ? 0
                                                      : state == State::half_open ? 1
                                                                                  : 2);
    }
  });
  page.begin("sluice_store_connections", "counter", "Connections made, failed and lost.");
  stores.for_each([&](std::string_view name, const StoreMetrics& store) {
    constexpr std::string_view changes[] = {"connected", "failed", "lost", "other_server"};
    for (std::size_t i = 0; i < store.connections.size(); ++i) {
      page.total_if({{"store", name}, {"change", changes[i]}}, store.connections[i].load());
    }
  });
}

}  // namespace
}  // namespace detail

const char* Metrics::content_type(Format format) noexcept {
  return format == Format::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string Metrics::text(Format format) const {
  const Tables& all = *tables_;
  detail::Page page(format);
  detail::write_decisions(page, all.limiters);
  detail::write_waits(page, all.limiters);
  detail::write_leases(page, all.limiters);
  detail::write_calls(page, all.limiters);
  detail::write_gates(page, all.gates, all.clock.now());
  detail::write_requests(page, all.stores);
  detail::write_connections(page, all.stores);
  return page.end();
}

}  // namespace sluice
