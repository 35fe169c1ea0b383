// Metrics as text. Sources: https://prometheus.io/docs/specs/om/open_metrics_spec/ and
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "sluice/metrics.hpp"

namespace sluice {
namespace {

using Type = MetricFamily::Type;

std::string_view name_of(Type type) noexcept {
  constexpr std::array<std::string_view, 3> names{"counter", "gauge", "histogram"};
  return names[static_cast<std::size_t>(type)];
}

/// 0.0001 for 100 us, without trailing zeros.
std::string seconds(Span span) {
  char text[32];
  const Word microseconds = span.count();
  const int size = std::snprintf(text, sizeof(text), "%lld.%06lld",
                                 static_cast<long long>(microseconds / 1'000'000),
                                 static_cast<long long>(microseconds % 1'000'000));
  std::string result(text, static_cast<std::size_t>(size));
  while (result.back() == '0' && result[result.size() - 2] != '.') result.pop_back();
  return result;
}

void write_head(std::string& out, const MetricFamily& family, Metrics::Format format) {
  const bool is_open = format == Metrics::Format::openmetrics;
  const bool has_suffix = !is_open && family.type == Type::counter;
  const auto line = [&](std::string_view what, std::string_view text) {
    out.append("# ").append(what).append(" ").append(family.name);
    out.append(has_suffix ? "_total " : " ").append(text).append("\n");
  };
  line("TYPE", name_of(family.type));
  if (family.type == Type::histogram && is_open) line("UNIT", "seconds");
  line("HELP", family.help);
}

struct Line {
  std::string_view suffix;
  std::string_view bound{};  // label `le`
};

void write_sample(std::string& out, const MetricFamily& family, const MetricFamily::Sample& sample,
                  const Line& line, std::string_view value) {
  out.append(family.name).append(line.suffix);
  char before = '{';
  const auto label = [&](std::string_view name, std::string_view content) {
    out += before;
    out.append(name).append("=\"").append(content).append("\"");
    before = ',';
  };
  for (const auto& [name, content] : sample.labels) label(name, content);
  if (!line.bound.empty()) label("le", line.bound);
  if (before == ',') out += '}';
  out.append(" ").append(value).append("\n");
}

void write_histogram(std::string& out, const MetricFamily& family,
                     const MetricFamily::Sample& sample) {
  const auto bounds = MetricFamily::bounds();
  for (std::size_t i = 0; i < sample.cumulative.size(); ++i) {
    const std::string bound = i < bounds.size() ? seconds(bounds[i]) : "+Inf";
    write_sample(out, family, sample, {"_bucket", bound}, std::to_string(sample.cumulative[i]));
  }
  write_sample(out, family, sample, {"_count"}, std::to_string(sample.value));
  write_sample(out, family, sample, {"_sum"}, seconds(sample.sum));
}

}  // namespace

const char* Metrics::content_type(Format format) noexcept {
  return format == Format::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string Metrics::text(Format format) const {
  std::string out;
  for (const MetricFamily& family : families()) {
    write_head(out, family, format);
    for (const MetricFamily::Sample& sample : family.samples) {
      if (family.type == Type::histogram) {
        write_histogram(out, family, sample);
      } else {
        const Line line{family.type == Type::counter ? "_total" : ""};
        write_sample(out, family, sample, line, std::to_string(sample.value));
      }
    }
  }
  if (format == Format::openmetrics) out += "# EOF\n";
  return out;
}

}  // namespace sluice
