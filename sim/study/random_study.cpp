#include "sim/study/random_study.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <stdexcept>

#include "sluice/sim/random.hpp"

namespace sluice::sim::scenario {
namespace {

// Purposes of stream().
constexpr std::uint64_t worlds = 0x776f726c64;
constexpr std::uint64_t throttles = 0x74776f726c64;

class WorldMaker {
 public:
  explicit WorldMaker(std::uint64_t seed)
      : rng_(stream(seed, 0, worlds)), throttle_rng_(stream(seed, 0, throttles)) {
    study_.name = fmt::format("world-{}", seed);
    study_.question = "Does any judge object?";
    study_.seed = seed;
    study_.replications = 1;
    study_.variants = {Variant{}};
  }

  Study make() {
    set("run.duration", fmt::format("{}s", between(20, 60)));
    set("fleet.workers", std::to_string(between(1, 8)));
    add_arrivals();
    add_limiter();
    add_store();
    add_upstream();
    add_client();
    if (one_in(4)) set("clock.offset", fmt::format("{}ms", between(1, 3000)));
    for (std::uint64_t i = between(0, 6); i > 0; --i) add_fault();
    return study_;
  }

 private:
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + rng_.below(most - least + 1);
  }
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }
  std::string one_of(std::initializer_list<const char*> texts) {
    return *(texts.begin() + rng_.below(texts.size()));
  }
  void set(std::string path, std::string text) {
    study_.settings.push_back({std::move(path), {std::move(text)}});
  }
  void set_if(std::uint64_t n, std::string path, std::string text) {
    if (one_in(n)) set(std::move(path), std::move(text));
  }

  void add_arrivals() {
    set("arrivals.kind", one_of({"poisson", "poisson", "constant", "on_off", "mmpp", "closed"}));
    set("arrivals.rate", fmt::format("{}/s", between(5, 150)));
    set("arrivals.clients", std::to_string(between(1, 10)));
    set("arrivals.phase", "5s");
    set("arrivals.busy_for", fmt::format("{}ms", between(500, 10'000)));
    set("arrivals.calm_for", fmt::format("{}ms", between(500, 10'000)));
    set("jobs.keys", std::to_string(one_in(2) ? 1 : between(2, 10)));
    set("jobs.pick", one_of({"uniform", "zipf", "hot"}));
    set_if(3, "jobs.critical", "0.2");
    set_if(3, "jobs.cost", std::to_string(between(1, 3)));
    set_if(2, "jobs.patience", fmt::format("{}ms", between(100, 10'000)));
  }

  void add_limiter() {
    const std::string kind =
        one_of({"token_bucket", "token_bucket", "sliding_window", "fixed_window",
                "sliding_window_counter", "slot_lock", "learned_rate", "concurrency", "none"});
    const bool alone = one_in(6);
    const bool in_line = kind == "slot_lock" || one_in(2);
    set("limiter.kind", kind);
    set("limiter.limit", fmt::format("{}/s", between(20, 120)));
    set("limiter.burst", std::to_string(between(24, 60)));
    set("limiter.wait", in_line ? "queue" : one_of({"poll", "skip"}));
    if (alone) set("limiter.scope", "per_process");
    set_if(3, "limiter.by_key", "true");
    if (in_line && !alone) set_if(3, "limiter.gates", "true");
    if (in_line && !alone) set_if(4, "limiter.fleet_order", "false");
    if (!alone) set_if(4, "limiter.hold", fmt::format("{}ms", between(10, 3000)));
  }

  void add_store() {
    set("store.on_failure", one_of({"error", "open", "closed", "local"}));
    set("store.service", fmt::format("{}us", between(1, 500)));
    set_if(6, "store.to", one_of({"phases(250us, 2s, 5ms, 300ms)", "runs(250us, 40, 5ms, 10)"}));
    set("store.lag", fmt::format("{}ms", between(0, 1000)));
    set("store.timeout", fmt::format("{}ms", between(5, 200)));
  }

  void add_upstream() {
    if (one_in(2)) {
      study_.settings.push_back({"upstream.limits", {fmt::format("{}/10s", between(200, 1500))}});
    }
    set_if(4, "upstream.latency",
           one_of({"phases(20ms, 5s, 200ms, 1s)", "runs(20ms, 90, log_normal(200ms, 1s), 10)"}));
    set_if(3, "upstream.servers", std::to_string(between(2, 20)));
    set_if(4, "upstream.failures", "0.05");
    set_if(6, "upstream.doubled", "0.05");
    set("upstream.retry_after", one_of({"exact", "missing", "seconds", "0.5 times", "3 times"}));
  }

  void add_client() {
    set("client.retries",
        one_of({"none", "fixed", "exponential", "full", "equal", "decorrelated"}));
    set("client.pause", fmt::format("{}ms", between(10, 1000)));
    has_timeout_ = one_in(2);
    if (has_timeout_) {
      set("client.timeout", fmt::format("{}ms", between(50, 2000)));
      set_if(6, "upstream.lost", "0.05");
      set_if(6, "upstream.answer_lost", "0.05");
    }
    set_if(3, "client.attempts", std::to_string(between(1, 5)));
    set_if(3, "client.budget", std::to_string(between(1, 50)));
    set_if(3, "client.breaker", "true");
    add_throttle();
    if (throttle_rng_.below(8) == 0) set("client.adaptive", "true");
  }

  void add_throttle() {
    if (throttle_rng_.below(6) != 0) return;
    set("client.throttle",
        fmt::format("{}", 1 + static_cast<double>(throttle_rng_.below(20)) / 10));
    set("client.throttle_window", fmt::format("{}ms", 500 + throttle_rng_.below(20'000)));
  }

  void add_fault() {
    using enum FaultPlan::Kind;
    static constexpr FaultPlan::Kind kinds[] = {
        store_down,     store_silent,    store_paused,          store_slow,
        store_failover, store_lost,      network_cut,           network_loss,
        answers_lost,   network_doubled, upstream_down,         upstream_slow,
        worker_crash,   worker_pause,    rolling_deploy,        clock_step,
        upstream_cut,   upstream_loss,   upstream_answers_lost, upstream_doubled};
    constexpr std::size_t need_timeouts = 4;
    FaultPlan fault;
    fault.kind = kinds[rng_.below(std::size(kinds) - (has_timeout_ ? 0 : need_timeouts))];
    fault.at = Span{static_cast<Word>(between(1'000'000, 15'000'000))};
    // All are drawn, so that a world does not depend on what its faults take.
    const Span length{static_cast<Word>(between(1'000, 4'000'000))};
    const double share = static_cast<double>(between(1, 4)) / 4;
    const FaultInfo& info = info_of(fault.kind);
    const double factor = info.has(FaultInfo::share_of_messages)
                              ? static_cast<double>(between(1, 10)) / 10
                              : static_cast<double>(between(2, 50));
    const Span step{static_cast<Word>(between(0, 4'000'000)) - 2'000'000};
    if (info.has(FaultInfo::takes_length)) fault.length = length;
    if (info.has(FaultInfo::takes_share)) fault.share = share;
    if (info.has(FaultInfo::takes_factor)) fault.factor = factor;
    if (info.has(FaultInfo::takes_step)) fault.step = step;
    study_.faults.push_back(fault);
  }

  SeededRng rng_;
  SeededRng throttle_rng_;  // apart: worlds without a throttle are those of before
  Study study_;
  bool has_timeout_ = false;
};

}  // namespace

Study random_study(std::uint64_t seed) {
  // What contradicts itself is drawn anew.
  for (std::uint64_t attempt = 0;; ++attempt) {
    Study study = WorldMaker(seed + attempt * 0x9e3779b97f4a7c15 % (std::uint64_t{1} << 50)).make();
    try {
      (void)study.scenario(0, 0);
      drop_idle(study);
      return study;
    } catch (const std::invalid_argument&) {
      if (attempt == 100) throw;
    }
  }
}

}  // namespace sluice::sim::scenario
