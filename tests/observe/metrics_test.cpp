// Metrics: the counts, and the page of OpenMetrics.
#include "sluice/metrics.hpp"

#include <memory>
#include <sstream>
#include <thread>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/wire_store.hpp"

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
  CHECK(c.samples("sluice_lease").empty());  // it has none
}

TEST_CASE("a grant that leaves a fifth of the limit or less is near it", "[observe][metrics]") {
  const auto near_of = [](Counted& c, const Quota& quota, std::initializer_list<Word> costs) {
    const TokenBucket bucket(c.store, "ten", quota);
    for (const Word cost : costs) (void)bucket.try_acquire("a", cost);
    return c.metrics.counts("ten").near_limit;
  };
  const Quota ten = Quota::per_hour(10).burst(10);
  Counted c;
  CHECK(near_of(c, ten, {7}) == 0);
  CHECK(near_of(c, ten, {1}) == 1);
  CHECK(near_of(c, ten, {2, 1}) == 2);  // the last one is refused
  CHECK(c.samples("sluice_near_limit_total") == "sluice_near_limit_total{limiter=\"ten\"} 2\n");
  CHECK(near_of(c, Quota::unlimited(), {1}) == 2);
  Counted exact({.near_limit = 1});
  CHECK(near_of(exact, ten, {9}) == 0);
  CHECK(near_of(exact, ten, {1}) == 1);
  Counted all({.near_limit = 0});
  CHECK(near_of(all, ten, {1}) == 1);
  CHECK(near_of(all, Quota::unlimited(), {1}) == 1);
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

TEST_CASE("a gate is closed while one of its scopes is", "[observe][metrics]") {
  Counted c;
  const Gates gates(c.store, "ads", {"account"});
  const std::string closed = "sluice_gate_closed{gates=\"ads\"} 1\n";
  const std::string open = "sluice_gate_closed{gates=\"ads\"} 0\n";
  const auto close = [&](int id, Span span) { gates.close(gates.scope("account", id), span); };
  const auto reopen = [&](int id) { gates.open(gates.scope("account", id)); };
  close(1, 5s);
  close(2, 2s);
  close(1, 1s);  // stays closed for 5 s
  CHECK(c.samples("sluice_gate_") == closed + "sluice_gate_closures_total{gates=\"ads\"} 3\n");
  reopen(2);
  c.clock.advance(5s - 1us);
  CHECK(c.samples("sluice_gate_closed") == closed);
  c.clock.advance(1us);
  CHECK(c.samples("sluice_gate_closed") == open);
  close(1, 5s);
  reopen(1);
  CHECK(c.samples("sluice_gate_closed") == open);

  // More scopes than are known apart: those count until their end.
  for (int i = 0; i < 1001; ++i) close(i, 3s);
  close(1001, 1s);
  for (int i = 0; i < 1001; ++i) reopen(i);
  c.clock.advance(3s - 1us);
  CHECK(c.samples("sluice_gate_closed") == closed);
  c.clock.advance(1us);
  CHECK(c.samples("sluice_gate_closed") == open);
  for (int i = 2000; i < 3001; ++i) close(i, 3s);
  c.clock.advance(3s);
  close(5000, 3s);  // in the place of one that is over
  reopen(5000);
  CHECK(c.samples("sluice_gate_closed") == open);
}

TEST_CASE("round trips are counted by store and by the server that was asked",
          "[observe][metrics]") {
  Counted c;
  WireStore far(*c.inner);
  far.holds = [&](const Plan&) {  // answers 300 ms later by the clock
    c.clock.advance(300ms);
    return false;
  };
  far.parts = [](const Key& key) { return StorePart{.index = key.tag() == "alice" ? 1U : 0U}; };
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
  const auto times = [](int count, const auto& tell) {
    for (; count > 0; --count) tell();
  };
  int count = 9;
  using Lease = LeaseEvent::Change;
  for (const Lease change : {Lease::granted, Lease::renewal_failed, Lease::lost}) {
    times(count, [&] { c.metrics.lease_changed({.change = change, .limiter = "jobs"}); });
    count -= 3;
  }
  c.metrics.lease_changed({.change = Lease::released, .limiter = "jobs"});
  CHECK(c.samples("sluice_lease") ==
        "sluice_leases_held{limiter=\"jobs\"} 5\n"
        "sluice_leases_lost_total{limiter=\"jobs\"} 3\n"
        "sluice_lease_renewals_failed_total{limiter=\"jobs\"} 6\n");

  count = 0;
  using Reason = FailedTryEvent::Reason;
  for (const bool is_retried : {true, false}) {
    for (const Reason reason : {Reason::rate_limited, Reason::transient}) {
      times(++count, [&] {
        c.metrics.try_failed({.limiter = "api", .reason = reason, .is_retried = is_retried});
      });
    }
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

  count = 0;
  std::string connections;
  using Connection = ConnectionEvent::Change;
  for (const auto& [change, name] : {std::pair(Connection::connected, "connected"),
                                     {Connection::failed, "failed"},
                                     {Connection::lost, "lost"},
                                     {Connection::other_server, "other_server"}}) {
    const ConnectionEvent event{.store = "redis", .change = change};
    times(++count, [&] { c.metrics.connection_changed(event); });
    connections += "sluice_store_connections_total{store=\"redis\",change=\"" + std::string(name) +
                   "\"} " + std::to_string(count) + "\n";
  }
  CHECK(c.samples("sluice_store_connections") == connections);

  const TokenBucket bucket(c.store, "api", Quota::per_second(10));
  const Step step = bucket.acquire_step("a");
  const std::error_code ours = Errc::not_connected;
  const std::error_code foreign(ours.value(), std::generic_category());
  for (const std::error_code error : {ours, foreign, foreign}) {
    c.metrics.decided({.step = step, .decision = {}, .error = error, .store = "redis"});
  }
  CHECK(c.samples("sluice_store_failures") ==
        "sluice_store_failures_total{store=\"redis\",error=\"other\"} 2\n"
        "sluice_store_failures_total{store=\"redis\",error=\"not_connected\"} 1\n");
}

TEST_CASE("the units of a watched prefetch store have counters, until its watch ends",
          "[observe][metrics]") {
  Counted c;
  const char* const family = "sluice_prefetched_units_total";
  CHECK(c.samples(family).empty());
  PrefetchStats stats{.taken = 7, .returned = 3, .lapsed = 2};
  c.metrics.watch("redis", [&] { return stats; });
  c.metrics.watch("a \"name\"", [] { return PrefetchStats{.taken = 1}; });
  const auto samples = [](const std::string& store, int taken, int returned, int lapsed) {
    const std::string begin = "sluice_prefetched_units_total{store=\"" + store + "\",state=\"";
    return begin + "taken\"} " + std::to_string(taken) + "\n" + begin + "returned\"} " +
           std::to_string(returned) + "\n" + begin + "lapsed\"} " + std::to_string(lapsed) + "\n";
  };
  CHECK(c.samples(family) == samples("a %22name%22", 1, 0, 0) + samples("redis", 7, 3, 2));
  stats.taken = 8;
  c.metrics.watch("a \"name\"", [] { return PrefetchStats{.taken = 2}; });
  CHECK(c.samples(family) == samples("a %22name%22", 2, 0, 0) + samples("redis", 8, 3, 2));
  c.metrics.watch("redis", {});
  c.metrics.watch("nobody", {});
  CHECK(c.samples(family) == samples("a %22name%22", 2, 0, 0));
}

TEST_CASE("the page is OpenMetrics whatever the names contain", "[observe][metrics]") {
  Counted c;
  const TokenBucket bucket(c.store, "a\"b\\c\nd\xff\x7f", Quota::per_second(10));
  (void)bucket.try_acquire("k");
  const std::string text = c.metrics.text();
  CHECK(text.find("{limiter=\"a%22b%5Cc%0Ad%FF%7F\",result") != std::string::npos);
  CHECK(text.substr(text.size() - 6) == "# EOF\n");
  CHECK(text.find("# TYPE sluice_decisions counter\n# HELP ") != std::string::npos);
  CHECK(text.find("# TYPE sluice_wait_seconds histogram\n# UNIT sluice_wait_seconds seconds\n") !=
        std::string::npos);
  const std::string older = c.metrics.text(Metrics::Format::prometheus);
  CHECK(older.find("# TYPE sluice_decisions_total counter\n# HELP ") != std::string::npos);
  CHECK(older.find("# UNIT") == std::string::npos);
  CHECK(older.find("# EOF") == std::string::npos);
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

TEST_CASE("options of metrics out of range are refused with the range", "[observe][metrics]") {
  for (const auto& [options, allowed] :
       {std::pair{MetricsOptions{.near_limit = 1.5}, "near_limit must be 0 to 1, got 1.5"},
        {MetricsOptions{.keys = 10'001}, "0 to 10000, got 10001"},
        {MetricsOptions{.sample = 0}, "1 to 1048576, got 0"},
        {MetricsOptions{.names = 0}, "1 to 1000000, got 0"}}) {
    CHECK_THROWS_WITH(Metrics(options), contains_text(allowed));
  }
}

}  // namespace sluice::test
