// The dashboard asks for metrics that there are, and for nearly all of them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/observe/full_metrics.hpp"

namespace sluice::test {
namespace {

using Names = std::set<std::string>;

/// The names of the samples that these families have on a page.
Names names_of(const std::vector<MetricFamily>& families) {
  Names names;
  for (const MetricFamily& family : families) {
    switch (family.type) {
      case MetricFamily::Type::counter:
        names.insert(family.name + "_total");
        break;
      case MetricFamily::Type::gauge:
        names.insert(family.name);
        break;
      case MetricFamily::Type::histogram:
        for (const char* const end : {"_bucket", "_count", "_sum"}) names.insert(family.name + end);
    }
  }
  return names;
}

/// What begins as the name of a metric.
Names names_in(const std::string& text) {
  const std::regex name("sluice_\\w+");
  const std::sregex_token_iterator begin(text.begin(), text.end(), name);
  return {begin, std::sregex_token_iterator()};
}

std::string text_of_dashboard() {
  std::ifstream file(SLUICE_DASHBOARD);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("each metric that the dashboard names is one of Metrics", "[observe][metrics]") {
  const Names asked = names_in(text_of_dashboard());
  const Names known = names_of(Metrics().families());
  CHECK(asked.size() >= 12);
  Names unknown;
  std::set_difference(asked.begin(), asked.end(), known.begin(), known.end(),
                      std::inserter(unknown, unknown.end()));
  CHECK(unknown == Names{});
}

TEST_CASE("the dashboard shows each family, but for three that explain others",
          "[observe][metrics]") {
  const std::string dashboard = text_of_dashboard();
  Names left_out;
  for (const MetricFamily& family : Metrics().families()) {
    if (dashboard.find(family.name) == std::string::npos) left_out.insert(family.name);
  }
  CHECK(left_out ==
        Names{"sluice_gate_closures", "sluice_lease_renewals_failed", "sluice_store_connections"});
}

TEST_CASE("the page that promtool is given has samples of every family", "[observe][metrics]") {
  Metrics metrics;
  fill(metrics);
  for (const MetricFamily& family : metrics.families()) {
    INFO(family.name);
    CHECK_FALSE(family.samples.empty());
  }
  const std::string page = metrics.text(Metrics::Format::prometheus);
  for (const std::string& name : names_of(metrics.families())) {
    INFO(name);
    CHECK(page.find('\n' + name + '{') != std::string::npos);
  }
}

}  // namespace sluice::test
