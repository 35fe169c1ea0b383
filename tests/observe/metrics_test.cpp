// Metrics: the counts, and the page of OpenMetrics.
#include "sluice/metrics.hpp"

#include <memory>
#include <sstream>
#include <thread>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

struct Counted {
  explicit Counted(MetricsOptions options = {})
      : metrics([&] {
          options.clock = &clock;
          return options;
        }()) {}

  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  Metrics metrics;
  ObservedStore store{*inner, metrics, "main"};

  /// The samples of a family, without those of buckets.
  [[nodiscard]] std::string samples(const std::string& family) const {
    std::istringstream lines(metrics.text());
    std::string found;
    for (std::string line; std::getline(lines, line);) {
      const bool is_its = line.rfind(family, 0) == 0 && line.find("_bucket{") == std::string::npos;
      if (is_its) found += line + "\n";
    }
    return found;
  }
};

}  // namespace

TEST_CASE("decisions are counted by limiter, result and source", "[observe][metrics]") {
  Counted c;
  const TokenBucket bucket(c.store, "api", Quota::per_second(10).burst(5));
  for (int i = 0; i < 8; ++i) (void)bucket.try_acquire("a");
  std::error_code error;
  (void)bucket.try_acquire("a", 6, error);
  CHECK(error);
  CHECK(c.samples("sluice_decisions_total") ==
        "sluice_decisions_total{limiter=\"api\",result=\"allowed\",source=\"virtual\"} 5\n"
        "sluice_decisions_total{limiter=\"api\",result=\"refused\",source=\"virtual\"} 3\n"
        "sluice_decisions_total{limiter=\"api\",result=\"failed\",source=\"none\"} 1\n");
  CHECK(c.samples("sluice_store_failures") ==
        "sluice_store_failures_total{store=\"main\",error=\"cost_exceeds_capacity\"} 1\n");
  const auto counts = c.metrics.counts("api");
  CHECK(counts.allowed == 5);
  CHECK(counts.refused == 3);
  CHECK(counts.failed == 1);
  CHECK(c.metrics.counts("nobody").allowed == 0);
}

TEST_CASE("a grant that leaves a fifth of the limit or less is near it", "[observe][metrics]") {
  Counted c;
  const TokenBucket ten(c.store, "ten", Quota::per_hour(10).burst(10));
  for (int i = 0; i < 7; ++i) (void)ten.try_acquire("a");
  CHECK(c.metrics.counts("ten").near_limit == 0);
  (void)ten.try_acquire("a");
  CHECK(c.metrics.counts("ten").near_limit == 1);
  (void)ten.try_acquire("a", 2);
  (void)ten.try_acquire("a");  // refused
  CHECK(c.metrics.counts("ten").near_limit == 2);
  CHECK(c.samples("sluice_near_limit_total") == "sluice_near_limit_total{limiter=\"ten\"} 2\n");

  Counted exact({.near_limit = 1});
  const TokenBucket other(exact.store, "ten", Quota::per_hour(10).burst(10));
  (void)other.try_acquire("a", 9);
  CHECK(exact.metrics.counts("ten").near_limit == 0);
  (void)other.try_acquire("a");
  CHECK(exact.metrics.counts("ten").near_limit == 1);

  const TokenBucket unlimited(c.store, "unlimited", Quota::unlimited());
  (void)unlimited.try_acquire("a");
  CHECK(c.metrics.counts("unlimited").near_limit == 0);
}

TEST_CASE("what a wait is refused meanwhile is not counted", "[observe][metrics]") {
  Counted c;
  const TokenBucket bucket(c.store, "api", Quota::per_second(10).burst(1));
  CHECK(bucket.acquire("a", 1, 1s));
  CHECK(bucket.acquire("a", 1, 1s));
  CHECK_FALSE(bucket.acquire("a", 1, 50ms));
  const auto counts = c.metrics.counts("api");
  CHECK(counts.allowed == 2);
  CHECK(counts.refused == 0);
  CHECK(c.samples("sluice_wait_seconds") ==
        "sluice_wait_seconds_count{limiter=\"api\",result=\"granted\"} 2\n"
        "sluice_wait_seconds_sum{limiter=\"api\",result=\"granted\"} 0.1\n"
        "sluice_wait_seconds_count{limiter=\"api\",result=\"refused\"} 1\n"
        "sluice_wait_seconds_sum{limiter=\"api\",result=\"refused\"} 0.0\n");
  const std::string text = c.metrics.text();
  const std::string bucket_name =
      "sluice_wait_seconds_bucket{limiter=\"api\",result=\"granted\",le=";
  CHECK(text.find(bucket_name + "\"0.05\"} 1\n") != std::string::npos);
  CHECK(text.find(bucket_name + "\"0.1\"} 2\n") != std::string::npos);  // a bound is inclusive
  CHECK(text.find(bucket_name + "\"+Inf\"} 2\n") != std::string::npos);
}

TEST_CASE("who waits now, and what is held, are gauges", "[observe][metrics]") {
  Counted c;
  const ConcurrencyLimiter places(c.store, "jobs", 1);
  Lease lease = places.try_acquire("a");
  CHECK(c.samples("sluice_leases_held") == "sluice_leases_held{limiter=\"jobs\"} 1\n");
  std::string waiting;
  std::thread waits([&] { (void)places.acquire("a", 1, Deadline::never()); });
  while (places.waiting("a") == 0) std::this_thread::yield();
  waiting = c.samples("sluice_waiting");
  lease.release();
  waits.join();
  CHECK(waiting == "sluice_waiting{limiter=\"jobs\"} 1\n");
  CHECK(c.samples("sluice_waiting") == "sluice_waiting{limiter=\"jobs\"} 0\n");
  CHECK(c.samples("sluice_leases_held") == "sluice_leases_held{limiter=\"jobs\"} 0\n");
}

TEST_CASE("a gate is closed until its latest end", "[observe][metrics]") {
  Counted c;
  const Gates gates(c.store, "ads", {"account"});
  gates.close(gates.scope("account", "a"), 5s);
  gates.close(gates.scope("account", "b"), 2s);
  CHECK(c.samples("sluice_gate_") ==
        "sluice_gate_closed{gates=\"ads\"} 1\n"
        "sluice_gate_closures_total{gates=\"ads\"} 2\n");
  c.clock.advance(5s - 1us);
  CHECK(c.samples("sluice_gate_closed") == "sluice_gate_closed{gates=\"ads\"} 1\n");
  c.clock.advance(1us);
  CHECK(c.samples("sluice_gate_closed") == "sluice_gate_closed{gates=\"ads\"} 0\n");
}

TEST_CASE("a gate is closed while another of its scopes is", "[observe][metrics]") {
  Counted c;
  const Gates gates(c.store, "ads", {"account"});
  const std::string closed = "sluice_gate_closed{gates=\"ads\"} 1\n";
  const std::string open = "sluice_gate_closed{gates=\"ads\"} 0\n";
  gates.close(gates.scope("account", "a"), 5s);
  gates.close(gates.scope("account", "b"), 2s);
  gates.close(gates.scope("account", "a"), 1s);  // a stays closed for 5 s
  gates.open(gates.scope("account", "b"));
  CHECK(c.samples("sluice_gate_closed") == closed);
  c.clock.advance(4s);
  CHECK(c.samples("sluice_gate_closed") == closed);
  gates.open(gates.scope("account", "a"));
  CHECK(c.samples("sluice_gate_closed") == open);

  // More scopes than are known apart: those count until their end.
  for (int i = 0; i < 1001; ++i) gates.close(gates.scope("account", i), 3s);
  gates.close(gates.scope("account", 1001), 1s);
  for (int i = 0; i < 1001; ++i) gates.open(gates.scope("account", i));
  c.clock.advance(3s - 1us);
  CHECK(c.samples("sluice_gate_closed") == closed);
  c.clock.advance(1us);
  CHECK(c.samples("sluice_gate_closed") == open);
  for (int i = 2000; i < 3001; ++i) gates.close(gates.scope("account", i), 3s);
  c.clock.advance(3s);
  gates.close(gates.scope("account", "c"), 3s);  // in the place of one that is over
  gates.open(gates.scope("account", "c"));
  CHECK(c.samples("sluice_gate_closed") == open);
}

TEST_CASE("round trips are counted by store and by the server that was asked",
          "[observe][metrics]") {
  /// Answers 300 ms later by the clock; alice's key is on another server.
  class Far final : public StoreWrapper {
   public:
    Far(Store& inner, VirtualClock& clock) : StoreWrapper(inner), clock_(clock) {}
    void execute(const Plan& plan, Completion done) noexcept override {
      clock_.advance(300ms);
      StoreWrapper::execute(plan, std::move(done));
    }
    [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
    [[nodiscard]] StorePart part_of(const Key& key) const noexcept override {
      return {.index = key.tag() == "alice" ? 1U : 0U};
    }

   private:
    VirtualClock& clock_;
  };
  Counted c;
  Far far(*c.inner, c.clock);
  ObservedStore store(far, c.metrics, "far");
  const TokenBucket bucket(store, "api", Quota::per_second(10));
  for (const char* const key : {"alice", "bob"}) (void)bucket.try_acquire(key);
  (void)decide(store, {bucket.acquire_step("alice"), bucket.acquire_step("bob")});  // of the first
  CHECK(c.samples("sluice_store_request_seconds") ==
        "sluice_store_request_seconds_count{store=\"far\",part=\"0\"} 1\n"
        "sluice_store_request_seconds_sum{store=\"far\",part=\"0\"} 0.3\n"
        "sluice_store_request_seconds_count{store=\"far\",part=\"1\"} 2\n"
        "sluice_store_request_seconds_sum{store=\"far\",part=\"1\"} 0.6\n");
}

TEST_CASE("leases, tries, breakers, connections and failures have their counters, each its own",
          "[observe][metrics]") {
  Counted c;
  using Lease = LeaseEvent::Change;
  for (const auto& [change, count] : {std::pair(Lease::granted, 9),
                                      {Lease::renewal_failed, 5},
                                      {Lease::released, 1},
                                      {Lease::lost, 2}}) {
    for (int i = 0; i < count; ++i) c.metrics.lease_changed({.change = change, .limiter = "jobs"});
  }
  CHECK(c.samples("sluice_lease") ==
        "sluice_leases_held{limiter=\"jobs\"} 6\n"
        "sluice_leases_lost_total{limiter=\"jobs\"} 2\n"
        "sluice_lease_renewals_failed_total{limiter=\"jobs\"} 5\n");

  using Reason = FailedTryEvent::Reason;
  for (const auto& [reason, is_retried, count] : {std::tuple(Reason::rate_limited, true, 1),
                                                  {Reason::transient, true, 2},
                                                  {Reason::rate_limited, false, 3},
                                                  {Reason::transient, false, 4}}) {
    for (int i = 0; i < count; ++i)
      c.metrics.try_failed({.limiter = "api", .reason = reason, .is_retried = is_retried});
  }
  CHECK(c.samples("sluice_call") ==
        "sluice_call_retries_total{call=\"api\",reason=\"rate_limited\"} 1\n"
        "sluice_call_retries_total{call=\"api\",reason=\"transient\"} 2\n"
        "sluice_calls_given_up_total{call=\"api\",reason=\"rate_limited\"} 3\n"
        "sluice_calls_given_up_total{call=\"api\",reason=\"transient\"} 4\n");

  using State = CircuitBreaker::State;
  c.metrics.breaker_changed({"redis", 3, State::closed, State::open});
  c.metrics.breaker_changed({"redis", 4, State::open, State::half_open});
  c.metrics.breaker_changed({"redis", 5, State::half_open, State::closed});
  CHECK(c.samples("sluice_breaker") ==
        "sluice_breaker_state{store=\"redis\",part=\"3\"} 2\n"
        "sluice_breaker_state{store=\"redis\",part=\"4\"} 1\n"
        "sluice_breaker_state{store=\"redis\",part=\"5\"} 0\n");

  using Connection = ConnectionEvent::Change;
  for (const auto& [change, count] : {std::pair(Connection::connected, 1),
                                      {Connection::failed, 2},
                                      {Connection::lost, 3},
                                      {Connection::other_server, 4}}) {
    for (int i = 0; i < count; ++i)
      c.metrics.connection_changed({.store = "redis", .change = change});
  }
  const std::string connections = "sluice_store_connections_total{store=\"redis\",change=";
  CHECK(c.samples("sluice_store_connections") ==
        connections + "\"connected\"} 1\n" + connections + "\"failed\"} 2\n" + connections +
            "\"lost\"} 3\n" + connections + "\"other_server\"} 4\n");

  const TokenBucket bucket(c.store, "api", Quota::per_second(10));
  const Step step = bucket.acquire_step("a");
  const std::error_code ours = Errc::not_connected;
  const std::error_code foreign(ours.value(), std::generic_category());
  for (const auto& [error, count] : {std::pair(ours, 1), {foreign, 2}}) {
    for (int i = 0; i < count; ++i)
      c.metrics.decided({.step = step, .decision = {}, .error = error, .store = "redis"});
  }
  CHECK(c.samples("sluice_store_failures") ==
        "sluice_store_failures_total{store=\"redis\",error=\"other\"} 2\n"
        "sluice_store_failures_total{store=\"redis\",error=\"not_connected\"} 1\n");
}

TEST_CASE("the units of a watched prefetch store have counters, until its watch ends",
          "[observe][metrics]") {
  Counted c;
  PrefetchStore prefetch(*c.inner, {.hold = 1s});
  CHECK(c.samples("sluice_prefetched_units_total").empty());
  c.metrics.watch("redis", [&] { return prefetch.stats(); });
  c.metrics.watch("a \"name\"",
                  [] { return PrefetchStats{.taken = 7, .returned = 3, .lapsed = 2}; });

  const TokenBucket bucket(prefetch, "api", Quota::per_hour(1000).burst(1000));
  for (int i = 0; i < 20; ++i) (void)bucket.try_acquire("a");
  for (int i = 0; i < 40; ++i) c.clock.advance(50ms);  // what is idle goes back
  const PrefetchStats stats = prefetch.stats();
  CHECK(stats.taken > 20);
  CHECK(stats.taken == 20 + stats.returned + stats.lapsed);
  CHECK(stats.returned > 0);
  const auto sample = [](const std::string& store, const char* state, std::uint64_t value) {
    return "sluice_prefetched_units_total{store=\"" + store + "\",state=\"" + state + "\"} " +
           std::to_string(value) + "\n";
  };
  const std::string other = sample("a %22name%22", "taken", 7) +
                            sample("a %22name%22", "returned", 3) +
                            sample("a %22name%22", "lapsed", 2);
  CHECK(c.samples("sluice_prefetched_units_total") ==
        other + sample("redis", "taken", stats.taken) +
            sample("redis", "returned", stats.returned) + sample("redis", "lapsed", stats.lapsed));

  c.metrics.watch("a \"name\"",
                  [] { return PrefetchStats{.taken = 8, .returned = 3, .lapsed = 2}; });
  CHECK(c.samples("sluice_prefetched_units_total").rfind(sample("a %22name%22", "taken", 8), 0) ==
        0);
  c.metrics.watch("redis", {});
  c.metrics.watch("nobody", {});
  CHECK(c.samples("sluice_prefetched_units_total").find("redis") == std::string::npos);
}

TEST_CASE("the page is OpenMetrics whatever the names contain", "[observe][metrics]") {
  Counted c;
  const TokenBucket bucket(c.store, "a\"b\\c\nd\xff", Quota::per_second(10));
  (void)bucket.try_acquire("k");
  const std::string text = c.metrics.text();
  CHECK(text.find("{limiter=\"a%22b%5Cc%0Ad%FF\",result") != std::string::npos);
  CHECK(text.substr(text.size() - 6) == "# EOF\n");
  CHECK(text.find("# TYPE sluice_decisions counter\n# HELP ") != std::string::npos);
  CHECK(text.find("# TYPE sluice_wait_seconds histogram\n# UNIT sluice_wait_seconds seconds\n") !=
        std::string::npos);
  std::istringstream lines(text);
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
    } else if (line[0] != '#') {
      CHECK(line.rfind(family, 0) == 0);  // samples stand with their family
    }
  }
}

TEST_CASE("more names than are allowed count as one", "[observe][metrics]") {
  Counted c({.names = 2});
  for (const char* name : {"a", "b", "c", "d", "a"}) {
    (void)TokenBucket(c.store, name, Quota::per_second(10)).try_acquire("k");
  }
  CHECK(c.metrics.counts("a").allowed == 2);
  CHECK(c.metrics.counts("b").allowed == 1);
  CHECK(c.metrics.counts("c").allowed == 0);
  CHECK(c.metrics.counts("other").allowed == 2);
}

TEST_CASE("long names and keys are cut", "[observe][metrics]") {
  Counted c({.sample = 1});
  const std::string name(10'000, 'n');
  const std::string key(10'000, 'k');
  const TokenBucket bucket(c.store, name, Quota::per_hour(1).burst(1));
  for (int i = 0; i < 3; ++i) (void)bucket.try_acquire(key + std::to_string(i / 2));
  CHECK(c.metrics.counts(name.substr(0, 128)).allowed == 2);
  CHECK(c.metrics.text().size() < 10'000);
  const auto admitted = c.metrics.busiest(Metrics::Busy::admitted);
  REQUIRE(admitted.size() == 1);
  CHECK(admitted[0].limiter == name.substr(0, 128));
  CHECK(admitted[0].key == key.substr(0, 128));
  CHECK(admitted[0].count == 2);
}

TEST_CASE("the busiest keys are told with their limiter", "[observe][metrics]") {
  Counted c({.keys = 8, .sample = 1});
  const TokenBucket one(c.store, "one", Quota::per_hour(3).burst(3));
  const TokenBucket two(c.store, "two", Quota::per_hour(5).burst(5));
  for (int i = 0; i < 10; ++i) {
    (void)one.try_acquire("alice");
    (void)two.try_acquire("alice");
  }
  (void)one.try_acquire("bob");
  using Busy = Metrics::Busy;
  const auto refused = c.metrics.busiest(Busy::refused);
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].limiter == "one");
  CHECK(refused[0].key == "alice");
  CHECK(refused[0].count == 7);
  CHECK(refused[0].error == 0);
  CHECK(refused[1].count == 5);
  const auto admitted = c.metrics.busiest(Busy::admitted, 1);
  REQUIRE(admitted.size() == 1);
  CHECK(admitted[0].limiter == "two");
  CHECK(admitted[0].count == 5);

  Counted none({.keys = 0});
  const TokenBucket other(none.store, "one", Quota::per_hour(1));
  (void)other.try_acquire("a");
  CHECK(none.metrics.busiest(Busy::admitted).empty());
}

TEST_CASE("admitted keys are sampled without a bias", "[observe][metrics]") {
  Counted c({.sample = 16});
  const TokenBucket bucket(c.store, "api", Quota::unlimited());
  for (int i = 0; i < 40'000; ++i) (void)bucket.try_acquire(i % 4 == 0 ? "often" : "more often");
  const auto admitted = c.metrics.busiest(Metrics::Busy::admitted);
  REQUIRE(admitted.size() == 2);
  // A caller whose rhythm divides the distance of the samples is not overlooked. Six deviations.
  CHECK(admitted[0].key == "more often");
  CHECK(static_cast<double>(admitted[0].count) == Approx(30'000).margin(6 * 700));
  CHECK(static_cast<double>(admitted[1].count) == Approx(10'000).margin(6 * 400));
  // What is refused is counted each time.
  const TokenBucket closed(c.store, "closed", Quota::never());
  for (int i = 0; i < 3; ++i) (void)closed.try_acquire("k");
  CHECK(c.metrics.busiest(Metrics::Busy::refused).at(0).count == 3);
}

TEST_CASE("options out of range are refused with the range", "[observe][metrics]") {
  CHECK_THROWS_WITH(Metrics({.near_limit = 1.5}),
                    contains_text("near_limit must be 0 to 1, got 1.5"));
  CHECK_THROWS_WITH(Metrics({.keys = 10'001}), contains_text("0 to 10000, got 10001"));
  CHECK_THROWS_WITH(Metrics({.sample = 0}), contains_text("1 to 1048576, got 0"));
  CHECK_THROWS_WITH(Metrics({.names = 0}), contains_text("1 to 1000000, got 0"));
}

}  // namespace sluice::test
