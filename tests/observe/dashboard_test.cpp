// The dashboard asks for metrics that there are.
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

}  // namespace

TEST_CASE("each metric that the dashboard names is one of Metrics", "[observe][metrics]") {
  std::ifstream file(SLUICE_DASHBOARD);
  const std::string dashboard{std::istreambuf_iterator<char>(file), {}};
  const Names asked = names_in(dashboard);
  const Names known = names_of(Metrics().families());
  CHECK(asked.size() >= 12);
  Names unknown;
  std::set_difference(asked.begin(), asked.end(), known.begin(), known.end(),
                      std::inserter(unknown, unknown.end()));
  CHECK(unknown == Names{});
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
