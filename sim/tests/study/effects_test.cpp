// What does nothing is refused: in random worlds each parameter is changed, one at a time, and what
// is idle must not change the run. Threading: single-threaded.
#include "sim/scenario/effects.hpp"

#include <sstream>

#include "sim/fleet/fleet_run.hpp"
#include "sim/study/study.hpp"
#include "sim/tests/fleet/trouble.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::contains_text;
using test::is_valid;
using test::texts_of;
using test::told_of_file;
using test::Trouble;

namespace {

/// Other values of each parameter; the first one that a world does not have is tried.
const auto others = texts_of(R"(
run.duration=2900ms; run.warm_up=700ms; run.events_per_instant=1000000; fleet.workers=2|3;
fleet.spread=equal|uneven; arrivals.kind=poisson|constant; arrivals.rate=53/s; arrivals.load=1.3;
arrivals.busy=130/s; arrivals.calm=11/s; arrivals.phase=440ms; arrivals.busy_for=170ms;
arrivals.calm_for=270ms; arrivals.swing=0.9; arrivals.period=1700ms; arrivals.factor=7;
arrivals.from=830ms; arrivals.length=570ms; arrivals.clients=7; arrivals.think=exponential(70ms);
arrivals.bursts=33 at 300ms; jobs.keys=4|5; jobs.pick=hot|zipf; jobs.exponent=3; jobs.share=0.6;
jobs.critical=0.5; jobs.cost=2; jobs.patience=150ms; limiter.kind=none|token_bucket;
limiter.scope=shared|per_process; limiter.wait=queue|skip|poll; limiter.limit=31/s;
limiter.burst=9; limiter.by_key=true|false; limiter.gates=true|false;
limiter.fleet_order=true|false; limiter.hold=130ms; limiter.most=1;
limiter.shadow=sliding_window|none; limiter.good=0.2; limiter.bad=0.9; limiter.grace=20ms;
limiter.full_after=200ms; limiter.rest_after=10s; limiter.period=70ms; store.to=2ms;
store.from=2ms; store.service=1500us; store.timeout=30ms;
store.on_failure=open|closed|local|error; store.lag=400ms; upstream.limits=25/s;
upstream.servers=2; upstream.queue=1; upstream.latency=37ms; upstream.crowding=20;
upstream.failures=0.3; upstream.conflicts=true|false; upstream.retry_after=missing|exact;
upstream.penalty=90ms; upstream.to=13ms; upstream.from=13ms; upstream.lost=0.2;
upstream.answer_lost=0.2; upstream.doubled=0.3; client.timeout=60ms|0s;
client.retries=fixed|full|exponential|none; client.pause=29ms; client.cap=31ms;
client.attempts=2|1; client.budget=1; client.breaker=true|false; client.adaptive=true;
client.throttle=1.2; client.throttle_window=200ms; clock.offset=900ms; clock.drift=90000;)");

/// All that a run records.
std::string fingerprint(const Scenario& scenario) {
  const MakeRehearsedClient none;
  FleetRun fleet(scenario, none);
  fleet.run_for(scenario.duration);
  fleet.finish();
  const Recorder& recorder = std::as_const(fleet).recorder();
  std::ostringstream text;
  text << fleet.world().trace() << ' ' << recorder.wait_sum << ' ' << recorder.others_wait.count();
  const Counts& counts = recorder.counts;
  text << std::string(reinterpret_cast<const char*>(&counts), sizeof(counts));
  for (const bool refused : recorder.key_refused) text << refused;
  return text.str();
}

}  // namespace

TEST_CASE("what is refused because another setting disables it changes nothing") {
  test::Random random("what is refused because another setting disables it changes nothing");
  CAPTURE(random.repeat());
  std::size_t idle_ones = 0;
  for (std::size_t seen = 0; seen < test::scaled(25);) {
    const std::uint64_t seed = random.next();
    Trouble world(seed);
    if (!is_valid(world.scenario)) continue;
    ++seen;
    CAPTURE(seed, world.texts);
    const std::string before = fingerprint(world.scenario);
    for (const auto& [path, texts] : others) {
      CAPTURE(path);
      for (const std::string& text : texts) {
        if (world.texts.contains(path) && world.texts[path] == text) continue;
        Scenario other = world.scenario;
        set(other, path, {text});
        if (!is_valid(other)) continue;
        CAPTURE(text);
        // A value may enable its own parameter, as a swing above 0 does its period: both are asked.
        const bool is_idle = !idle(world.scenario, path).empty() && !idle(other, path).empty();
        const bool is_same = !is_idle || fingerprint(other) == before;
        CHECK(is_same);
        if (is_idle) ++idle_ones;
        break;
      }
    }
  }
  CHECK(idle_ones > 0);
  for (const Parameter& parameter : parameters()) {
    const std::string path(parameter.path);
    CAPTURE(path);
    if (path == "arrivals.file") continue;
    REQUIRE(others.contains(path));
  }
}

TEST_CASE("a setting that another one disables is refused by name, with its line and the remedy") {
  const std::string fast = "[run]\nduration = \"2s\"\n";
  const struct {
    std::string text;
    std::string path;
    std::string needs;
  } table[] = {
      {"[fleet]\nworkers = 1\nspread = \"uneven\"", "fleet.spread", "two of fleet.workers"},
      {"[arrivals]\nkind = \"closed\"\nrate = \"5/s\"", "arrivals.rate", "\"poisson\""},
      {"[arrivals]\nkind = \"closed\"\nload = 2", "arrivals.load", "other than \"closed\""},
      {"[arrivals]\nbusy = \"5/s\"", "arrivals.busy", "\"on_off\" or \"mmpp\""},
      {"[arrivals]\nkind = \"on_off\"\ncalm = \"5/s\"", "arrivals.calm", "arrivals.phase"},
      {"[arrivals]\nkind = \"mmpp\"\nphase = \"1s\"", "arrivals.phase", "\"on_off\""},
      {"[arrivals]\nkind = \"on_off\"\nphase = \"1s\"\nbusy_for = \"1s\"", "arrivals.busy_for",
       "\"mmpp\""},
      {"[arrivals]\ncalm_for = \"1s\"", "arrivals.calm_for", "\"mmpp\""},
      {"[arrivals]\nswing = 0.2", "arrivals.swing", "\"diurnal\""},
      {"[arrivals]\nkind = \"diurnal\"\nperiod = \"1h\"\nswing = 0", "arrivals.period", "above 0"},
      {"[arrivals]\nfactor = 3", "arrivals.factor", "\"spike\""},
      {"[arrivals]\nkind = \"spike\"\nfrom = \"1s\"\nfactor = 1", "arrivals.from", "other than 1"},
      {"[arrivals]\nlength = \"3s\"", "arrivals.length", "\"spike\""},
      {"[arrivals]\nclients = 3", "arrivals.clients", "\"closed\""},
      {"[arrivals]\nthink = \"3s\"", "arrivals.think", "\"closed\""},
      {"[arrivals]\nbursts = [\"5 at 1s\"]", "arrivals.bursts", "\"bursts\""},
      {"[arrivals]\nfile = \"x.csv\"", "arrivals.file", "\"trace\""},
      {"[jobs]\npick = \"zipf\"", "jobs.pick", "two of jobs.keys"},
      {"[jobs]\nkeys = 3\npick = \"hot\"\nexponent = 2", "jobs.exponent", "\"zipf\""},
      {"[jobs]\nkeys = 3\nshare = 0.5", "jobs.share", "\"hot\""},
      {"[jobs]\ncost = 2\n[limiter]\nkind = \"slot_lock\"", "jobs.cost", "counts units"},
      {"[jobs]\npatience = \"2s\"\n[limiter]\nkind = \"none\"\n[client]\nretries = \"none\"",
       "jobs.patience", "jobs that wait"},
      {"[limiter]\nscope = \"per_process\"\nkind = \"none\"", "limiter.scope",
       "other than \"none\""},
      {"[limiter]\nwait = \"poll\"\nkind = \"none\"", "limiter.wait", "other than \"none\""},
      {"[limiter]\nlimit = \"5/s\"\nkind = \"none\"", "limiter.limit", "with a rate"},
      {"[limiter]\nlimit = \"5/s\"\nkind = \"concurrency\"\nburst = 2", "limiter.limit",
       "are limiter.burst"},
      {"[limiter]\nburst = 5\nkind = \"sliding_window\"", "limiter.burst", "\"token_bucket\""},
      {"[limiter]\nby_key = true", "limiter.by_key", "two of jobs.keys"},
      {"[limiter]\nfleet_order = true\nwait = \"poll\"", "limiter.fleet_order", "is waited for"},
      {"[limiter]\nhold = \"1s\"\nkind = \"sliding_window\"", "limiter.hold", "are prefetched"},
      {"[limiter]\nmost = 5", "limiter.most", "limiter.hold"},
      {"[limiter]\ngood = 0.5", "limiter.good", "\"utilization_shedder\""},
      {"[limiter]\nperiod = \"5s\"", "limiter.period", "\"utilization_shedder\""},
      {"[store]\nto = \"1ms\"\n[limiter]\nscope = \"per_process\"", "store.to", "\"shared\""},
      {"[store]\non_failure = \"open\"\n[limiter]\nkind = \"ideal\"\n[upstream]\nlimits = "
       "[\"5/s\"]",
       "store.on_failure", "a limiter or gates in the store"},
      {"[store]\nlag = \"1s\"", "store.lag", "store_failover"},
      {"[upstream]\nqueue = 5", "upstream.queue", "upstream.servers"},
      {"[upstream]\ncrowding = 5\nlatency = \"0s\"", "upstream.crowding", "upstream.latency"},
      {"[upstream]\nretry_after = \"missing\"", "upstream.retry_after", "upstream.limits"},
      {"[upstream]\npenalty = \"1s\"", "upstream.penalty", "upstream.limits"},
      {"[client]\ncap = \"9s\"\nretries = \"fixed\"", "client.cap", "\"exponential\""},
      {"[client]\nattempts = 3\nretries = \"none\"", "client.attempts", "client.retries"},
      {"[client]\nbudget = 3\nretries = \"none\"", "client.budget", "client.retries"},
      {"[client]\npause = \"2s\"\nretries = \"none\"\n[limiter]\nkind = \"none\"", "client.pause",
       "client.retries"},
      {"[client]\nbreaker = true", "client.breaker", "upstream.failures"},
      {"[client]\nthrottle_window = \"9s\"", "client.throttle_window", "client.throttle"},
      {"[clock]\noffset = \"1s\"\n[limiter]\nscope = \"per_process\"", "clock.offset", "shared"},
      {"[clock]\ndrift = 5\n[limiter]\nkind = \"none\"", "clock.drift", "shared"},
  };
  for (const auto& [text, path, needs] : table) {
    CAPTURE(text);
    const std::string what = told_of_file(text + "\n" + fast);
    CHECK_THAT(what, contains_text(path + " does nothing here: it needs "));
    CHECK_THAT(what, contains_text(needs));
    // Its own line, of the lines behind "schema = 1".
    std::size_t line = 1;
    std::istringstream lines(text);
    const std::string key = path.substr(path.find('.') + 1);
    for (std::string each; std::getline(lines, each);) {
      ++line;
      if (each.starts_with(key + " =")) break;
    }
    CHECK_THAT(what, contains_text("s.toml:" + std::to_string(line) + ": "));
  }
}

TEST_CASE("a fault that does nothing, and a value that its kind does not take, are refused") {
  const struct {
    std::string text;
    std::string what;
  } table[] = {
      {"kind = \"store_down\"\nshare = 0.5",
       ":4: share does nothing to a fault of kind store_down"},
      {"kind = \"upstream_slow\"\nfactor = 2\nshare = 1", ":5: share does nothing"},
      {"kind = \"store_down\"\nfactor = 2", ":4: factor does nothing"},
      {"kind = \"worker_crash\"\nstep = \"1s\"", ":4: step does nothing"},
      {"kind = \"upstream_limit\"\nlimit = \"5/s\"", ":4: limit does nothing"},
      {"kind = \"upstream_second\"\nlimit = \"5/s\"\nfor = \"1s\"", ":5: for does nothing"},
      {"kind = \"clock_step\"\nstep = \"1s\"\nfor = \"1s\"", ":5: for does nothing"},
      {"kind = \"upstream_slow\"", "needs a factor other than 1"},
      {"kind = \"store_slow\"\nfactor = 1", "needs a factor other than 1"},
      {"kind = \"network_loss\"\nfactor = 0", "needs a factor above 0"},
      {"kind = \"network_cut\"\nshare = 0", "needs a share above 0"},
      {"kind = \"scale\"\nshare = 0.99", "needs a share that leaves out a worker"},
      {"kind = \"clock_step\"\nstep = \"1s\"", "needs clock.offset or clock.drift"},
      {"kind = \"clock_step\"\n[clock]\noffset = \"1s\"", "needs a step"},
      {"kind = \"store_down\"\n[limiter]\nkind = \"none\"",
       "needs a limiter or gates in the store"},
      {"kind = \"network_cut\"\n[limiter]\nscope = \"per_process\"", "needs a limiter or gates"},
      {"kind = \"store_failover\"\n[store]\nlag = \"0s\"", "needs a length"},
      {"kind = \"store_slow\"\nfactor = 2\n[store]\nservice = \"0s\"", "needs a store.service"},
      {"kind = \"upstream_slow\"\nfactor = 2\n[upstream]\nlatency = \"0s\"", "an upstream.latency"},
      {"kind = \"upstream_servers\"\nfactor = 1.1\n[upstream]\nservers = 2", "a whole one more"},
      {"kind = \"upstream_limit\"\nfactor = 0.9\n[upstream]\nlimits = [\"2/s\"]",
       "a whole one more"},
  };
  for (const auto& [text, what] : table) {
    CAPTURE(text);
    const std::string all = told_of_file("[[fault]]\n" + text);
    CHECK_THAT(all, contains_text(what));
  }
  CHECK_THAT(told_of_file("[judges]\nrecovery = \"1s\""),
             contains_text("does nothing without a fault"));
  CHECK_THAT(told_of_file("[limiter]\ngates = true"),
             contains_text("limiter.gates need upstream.limits"));
  CHECK_THAT(told_of_file("[[expect]]\nmetric = \"goodput\"\nleast = 1\nwithin = 2"),
             contains_text("within does nothing without equals"));
  Scenario s;
  s.limiter.most = 5;
  CHECK_THROWS_WITH(validate(s), contains_text("limiter.most does nothing here"));
  s = {};
  s.faults = {{.kind = FaultPlan::Kind::store_down, .length = 1s, .share = 0.5}};
  CHECK_THROWS_WITH(validate(s), contains_text("its \"share\" does nothing"));
}

TEST_CASE("what one variant, one value or one layer disables, another may use") {
  const std::string both =
      "[limiter]\nburst = 5\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n"
      "limiter.kind = \"none\"\n";
  CHECK(told_of_file(both) == "");
  CHECK(told_of_file(both, {"limiter.limit=50/s"}) == "");
  CHECK(told_of_file(both, {"limiter.kind=none"}) == "");  // --set may disable a part of the file
  CHECK_THAT(told_of_file(both, {"limiter.most=5"}),
             contains_text("--set: limiter.most does nothing"));
  CHECK_THAT(told_of_file(both + "limiter.limit = \"5/s\"\n"),
             contains_text(":9: limiter.limit does"));
  CHECK(told_of_file("[[sweep]]\nparameter = \"limiter.hold\"\nvalues = [\"0s\", \"1s\"]\n"
                     "[limiter]\nmost = 5\n") == "");
  CHECK_THAT(told_of_file("[[sweep]]\nparameter = \"limiter.most\"\nvalues = [1, 2]\n"),
             contains_text(":2: limiter.most does nothing"));
  CHECK(told_of_file("[[fault]]\nkind = \"store_down\"\nfor = \"1s\"\n[[variant]]\nname = \"a\"\n"
                     "limiter.kind = \"none\"\n[[variant]]\nname = \"b\"\n") == "");
  // What is dropped from a row is its default there, and so is what needs it.
  Study study;
  study.settings = {{"limiter.burst", {"5"}}, {"limiter.most", {"7"}}};
  study.variants = {{"a", {}}, {"b", {{"limiter.kind", {"none"}}}}};
  CHECK(study.scenario(0, 0).limiter.burst == 5);
  CHECK(study.scenario(0, 0).limiter.most == 100);
  CHECK(study.scenario(1, 0).limiter.burst == 0);
  study.variants[1].settings = {{"limiter.kind", {"sliding_window"}}, {"limiter.hold", {"1s"}}};
  CHECK(study.scenario(1, 0).limiter.most == 100);
}
