// Whatever changes nothing is refused: random worlds in which each parameter is changed, one at a
// time. Either the run changes, or the parameter is idle. Threading: single-threaded.
#include "sim/scenario/effects.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/scenario/fleet_run.hpp"
#include "sim/scenario/parameters.hpp"
#include "sim/study/reference.hpp"
#include "sim/study/study.hpp"
#include "sluice/sim/random.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;

namespace {

/// Other values of each parameter; the first one that a world does not have is tried.
const std::map<std::string, std::vector<std::string>> others{
    {"run.duration", {"2900ms"}},
    {"run.warm_up", {"700ms"}},
    {"run.events_per_instant", {"1000000"}},
    {"fleet.workers", {"2", "3"}},
    {"fleet.spread", {"equal", "uneven"}},
    {"arrivals.kind", {"poisson", "constant"}},
    {"arrivals.rate", {"53/s"}},
    {"arrivals.load", {"1.3"}},
    {"arrivals.busy", {"130/s"}},
    {"arrivals.calm", {"11/s"}},
    {"arrivals.phase", {"440ms"}},
    {"arrivals.busy_for", {"170ms"}},
    {"arrivals.calm_for", {"270ms"}},
    {"arrivals.swing", {"0.9"}},
    {"arrivals.period", {"1700ms"}},
    {"arrivals.factor", {"7"}},
    {"arrivals.from", {"830ms"}},
    {"arrivals.length", {"570ms"}},
    {"arrivals.clients", {"7"}},
    {"arrivals.think", {"exponential(70ms)"}},
    {"arrivals.bursts", {"33 at 300ms"}},
    {"jobs.keys", {"4", "5"}},
    {"jobs.pick", {"hot", "zipf"}},
    {"jobs.exponent", {"3"}},
    {"jobs.share", {"0.6"}},
    {"jobs.critical", {"0.5"}},
    {"jobs.cost", {"2"}},
    {"jobs.patience", {"150ms"}},
    {"limiter.kind", {"none", "token_bucket"}},
    {"limiter.scope", {"shared", "per_process"}},
    {"limiter.wait", {"queue", "skip", "poll"}},
    {"limiter.limit", {"31/s"}},
    {"limiter.burst", {"9"}},
    {"limiter.by_key", {"true", "false"}},
    {"limiter.gates", {"true", "false"}},
    {"limiter.fleet_order", {"true", "false"}},
    {"limiter.horizon", {"20ms"}},
    {"limiter.hold", {"130ms"}},
    {"limiter.most", {"1"}},
    {"limiter.shadow", {"sliding_window", "none"}},
    {"limiter.good", {"0.2"}},
    {"limiter.bad", {"0.9"}},
    {"limiter.grace", {"20ms"}},
    {"limiter.full_after", {"200ms"}},
    {"limiter.rest_after", {"10s"}},
    {"limiter.period", {"70ms"}},
    {"store.to", {"2ms"}},
    {"store.from", {"2ms"}},
    {"store.service", {"1500us"}},
    {"store.timeout", {"30ms"}},
    {"store.on_failure", {"open", "closed", "local", "error"}},
    {"store.lag", {"400ms"}},
    {"upstream.limits", {"25/s"}},
    {"upstream.servers", {"2"}},
    {"upstream.queue", {"1"}},
    {"upstream.latency", {"37ms"}},
    {"upstream.crowding", {"20"}},
    {"upstream.failures", {"0.3"}},
    {"upstream.conflicts", {"true", "false"}},
    {"upstream.retry_after", {"missing", "exact"}},
    {"upstream.penalty", {"90ms"}},
    {"upstream.to", {"13ms"}},
    {"upstream.from", {"13ms"}},
    {"upstream.lost", {"0.2"}},
    {"upstream.answer_lost", {"0.2"}},
    {"upstream.doubled", {"0.3"}},
    {"client.timeout", {"60ms", "0s"}},
    {"client.retries", {"fixed", "full", "exponential", "none"}},
    {"client.pause", {"29ms"}},
    {"client.cap", {"31ms"}},
    {"client.attempts", {"2", "1"}},
    {"client.budget", {"1"}},
    {"client.breaker", {"true", "false"}},
    {"client.throttle", {"1.2"}},
    {"client.throttle_window", {"200ms"}},
    {"clock.offset", {"900ms"}},
    {"clock.drift", {"90000"}},
};

/// All that a run records.
std::string fingerprint(const Scenario& scenario) {
  FleetRun fleet(scenario, {});
  fleet.run_for(scenario.duration);
  fleet.finish();
  const Recorder& recorder = std::as_const(fleet).recorder();
  std::ostringstream text;
  text << fleet.world().trace() << ' ' << recorder.wait_sum << ' '
       << recorder.others_wait.quantile(1, 2).count() << ' ';
  const Counts& counts = recorder.counts;
  text << std::string(reinterpret_cast<const char*>(&counts), sizeof(counts));
  for (const bool refused : recorder.key_refused) text << refused;
  return text.str();
}

/// A world in which as much as possible happens: nearly every mode of every part, and trouble.
class World {
 public:
  explicit World(std::uint64_t seed) : rng_(stream(seed, 0, 0x65666665)) {
    set("run.duration", "3s");
    set("fleet.workers", one_of({"1", "3", "3", "3"}));
    set("arrivals.kind", one_of({"poisson", "poisson", "constant", "on_off", "mmpp", "diurnal",
                                 "spike", "closed", "bursts"}));
    for (const auto& [path, text] : std::initializer_list<std::pair<const char*, const char*>>{
             {"arrivals.rate", "60/s"},
             {"arrivals.busy", "90/s"},
             {"arrivals.calm", "20/s"},
             {"arrivals.phase", "500ms"},
             {"arrivals.busy_for", "300ms"},
             {"arrivals.calm_for", "300ms"},
             {"arrivals.period", "2s"},
             {"arrivals.factor", "5"},
             {"arrivals.from", "1s"},
             {"arrivals.length", "400ms"},
             {"arrivals.clients", "5"},
             {"arrivals.think", "exponential(100ms)"},
             {"arrivals.bursts", "40 at 200ms"}}) {
      set(path, text);
    }
    set("fleet.spread", one_of({"equal", "uneven"}));
    set("jobs.keys", one_of({"1", "3", "3"}));
    set("jobs.pick", one_of({"uniform", "zipf", "hot"}));
    maybe("jobs.critical", "0.3");
    maybe("jobs.patience", "300ms");
    set("limiter.kind", one_of({"none", "token_bucket", "token_bucket", "sliding_window",
                                "fixed_window", "sliding_window_counter", "slot_lock",
                                "concurrency", "utilization_shedder", "ideal"}));
    set("limiter.wait", one_of({"queue", "poll", "skip"}));
    set("limiter.scope", one_of({"shared", "shared", "per_process"}));
    set("limiter.limit", "45/s");
    set("limiter.burst", one_of({"6", "6", "0"}));
    maybe("limiter.by_key", "true");
    maybe("limiter.gates", "true");
    maybe("limiter.fleet_order", "true");
    maybe("limiter.hold", "300ms");
    maybe("limiter.shadow", one_of({"token_bucket", "fixed_window"}));
    set("limiter.grace", "50ms");
    set("limiter.full_after", "500ms");
    set("limiter.rest_after", "20s");
    set("limiter.period", "100ms");
    set("store.on_failure", one_of({"error", "open", "closed", "local"}));
    if (one_in(3))
      clear("upstream.limits");
    else
      set("upstream.limits", "30/s");
    maybe("upstream.servers", "3");
    set("upstream.queue", one_of({"0", "2"}));
    set("upstream.latency", "log_normal(40ms, 160ms)");
    maybe("upstream.failures", "0.1");
    maybe("upstream.doubled", "0.1");
    maybe("client.timeout", "120ms");
    set("client.retries",
        one_of({"none", "fixed", "exponential", "full", "equal", "decorrelated"}));
    set("client.pause", "20ms");
    set("client.cap", "100ms");
    set("client.attempts", one_of({"1", "4", "1000000"}));
    maybe("client.budget", "10");
    maybe("client.breaker", "true");
    maybe("client.throttle", "1.5");
    set("client.throttle_window", "500ms");
    maybe("clock.offset", "500ms");
    add_faults();
  }

  Scenario scenario;
  std::set<std::string> modes;

  void set(const std::string& path, const std::string& text) {
    sim::scenario::set(scenario, path, {text});
    modes.insert(path + "=" + text);
    texts[path] = text;
  }
  std::map<std::string, std::string> texts;

 private:
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }
  const char* one_of(std::initializer_list<const char*> of) {
    return *(of.begin() + rng_.below(of.size()));
  }
  void maybe(const std::string& path, const std::string& text) {
    if (one_in(2)) set(path, text);
  }
  void clear(const std::string& path) {
    sim::scenario::set(scenario, path, {});
    modes.insert(path + "=");
  }
  void add_faults() {
    using Kind = FaultPlan::Kind;
    const FaultPlan all[] = {
        {.kind = Kind::store_down, .at = 700ms, .length = 300ms},
        {.kind = Kind::network_loss, .at = 1200ms, .length = 200ms, .factor = 0.5},
        {.kind = Kind::store_failover, .at = 1500ms, .length = 50ms},
        {.kind = Kind::worker_pause, .at = 1700ms, .length = 200ms},
        {.kind = Kind::upstream_down, .at = 2000ms, .length = 200ms},
        {.kind = Kind::upstream_second, .at = 1s, .limit = {8, 500ms}},
    };
    for (const FaultPlan& fault : all) {
      if (one_in(2)) continue;
      scenario.faults.push_back(fault);
      modes.insert("fault " + std::string(info_of(fault.kind).name));
    }
  }

  SeededRng rng_;
};

bool is_valid(const Scenario& scenario) {
  try {
    validate_values(scenario);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// Of these, no run shows a change: a bound that none of them reaches, what only the figures count,
// and the file of a trace, which runs do not read.
const std::set<std::string> not_in_the_trace{"run.events_per_instant", "arrivals.file"};

}  // namespace

TEST_CASE("whatever changes nothing is refused, and what is refused changes nothing") {
  test::Random random("whatever changes nothing is refused, and what is refused changes nothing");
  CAPTURE(random.repeat());
  std::map<std::string, int> changing;
  std::map<std::string, int> refused;
  std::map<std::string, std::map<std::string, std::pair<int, int>>> by_mode;  // for exploration
  for (std::size_t seen = 0; seen < test::scaled(25);) {
    const std::uint64_t seed = random.next();
    World world(seed);
    if (!is_valid(world.scenario)) continue;
    ++seen;
    CAPTURE(seed, world.modes);
    const std::string before = fingerprint(world.scenario);
    for (const auto& [path, texts] : others) {
      CAPTURE(path);
      for (const std::string& text : texts) {
        if (world.texts.contains(path) && world.texts[path] == text) continue;
        Scenario other = world.scenario;
        set(other, path, {text});
        if (!is_valid(other)) continue;
        CAPTURE(text);
        const bool is_changed = fingerprint(other) != before;
        // A mode may enable its own parameter, as arrivals.kind does; what matters is both sides.
        const bool is_idle = !idle(world.scenario, path).empty() && !idle(other, path).empty();
        if (is_idle) CHECK_FALSE(is_changed);
        ++(is_idle ? refused : changing)[path];
        if (!is_idle) {
          for (const std::string& mode : world.modes) {
            auto& [all, same] = by_mode[path][mode];
            ++all;
            if (!is_changed) ++same;
          }
        }
        break;
      }
    }
  }
  if (std::getenv("EXPLORE") != nullptr) {
    for (const auto& [path, modes] : by_mode) {
      for (const auto& [mode, counts] : modes) {
        if (counts.first >= 5 && counts.second == counts.first) {
          WARN(path << " never changed under " << mode << " of " << counts.first);
        }
      }
    }
  }
  for (const Parameter& parameter : parameters()) {
    const std::string path(parameter.path);
    CAPTURE(path);
    if (path == "arrivals.file") continue;
    REQUIRE(others.contains(path));
  }
}
