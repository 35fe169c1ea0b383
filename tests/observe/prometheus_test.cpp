// Metrics through prometheus-cpp: its own text has the samples of ours.
#include "sluice/adapters/prometheus.hpp"

#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <sstream>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

using Samples = std::map<std::string, std::string>;

/// Each sample's value, by its name and labels; "TYPE name" has the type.
Samples samples_of(const std::string& page) {
  Samples all;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.rfind("# TYPE ", 0) == 0) all[line.substr(2, space - 2)] = line.substr(space + 1);
    if (line[0] == '#') continue;
    std::ostringstream value;
    value << std::stod(line.substr(space + 1));
    std::string name = line.substr(0, space);
    const std::size_t whole = name.find(".0\"}");  // the bound 1.0 of OpenMetrics is 1 there
    if (whole != std::string::npos) name.erase(whole, 2);
    all[name] = value.str();
  }
  return all;
}

}  // namespace

TEST_CASE("prometheus-cpp tells the same samples", "[observe][prometheus]") {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  const auto metrics = std::make_shared<Metrics>(MetricsOptions{.clock = &clock});
  ObservedStore store(make_virtual_store(clock), *metrics, "main");
  const TokenBucket bucket(store, "a \"b\"", Quota::per_second(10).burst(5));
  const Gates gates(store, "gates", {"account"});
  for (int i = 0; i < 8; ++i) (void)bucket.try_acquire("a");
  (void)bucket.acquire("a", 3, 1s);
  gates.close(gates.scope("account", "acme"), 1min);

  const PrometheusMetrics collected(metrics);
  const auto told = samples_of(prometheus::TextSerializer().Serialize(collected.Collect()));
  const auto own = samples_of(metrics->text(Metrics::Format::prometheus));
  CHECK(told == own);
  CHECK(told.at("sluice_wait_seconds_sum{limiter=\"a %22b%22\",result=\"granted\"}") == "0.3");
  CHECK(told.at("TYPE sluice_decisions_total") == "counter");
}

}  // namespace sluice::test
