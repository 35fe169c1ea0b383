// The utilization shedder as a user meets it, on every store: thresholds, grace, tiers, keys, bad
// input, and the defects of the design that it follows.
// Threading: as each test says; most are single-threaded.
#include "sluice/limiters/utilization_shedder.hpp"

#include <limits>
#include <thread>

#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t full_us = 120'000'000;

/// Always the same draw: 0 sheds whatever can be shed, the largest admits whatever can be admitted.
class FixedRng final : public Rng {
 public:
  explicit FixedRng(std::uint64_t value) : value_(1000 * full_us + value) {}
  std::uint64_t next() override { return value_; }

 private:
  std::uint64_t value_;
};

const UtilizationOptions three_tiers{.most_critical_first = {"payments", "analytics", "test"}};

/// Samples `utilization` every 8 s for `span`, and at its end.
void hold(const UtilizationShedder& shedder, VirtualClock& clock, double utilization, Span span) {
  const Time end = clock.now() + span;
  while (end - clock.now() > 8s) {
    clock.advance(8s);
    shedder.sample(utilization);
  }
  clock.set(end);
  shedder.sample(utilization);
}

}  // namespace

TEST_CASE("samples taken by several threads at once count once", "[utilization][C-043]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const UtilizationShedder shedder(store, "api");
    shedder.sample(1.0);
    for (int round = 1; round <= 30; ++round) {
      clock.advance(1s);
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&shedder, i] {
          for (int n = 0; n < 10; ++n) {
            if (i < 2 || n % 3 == 0) shedder.sample(1.0);
            (void)shedder.try_acquire("critical");
            static_cast<void>(shedder.peek("sheddable"));
          }
        });
      }
      threads.clear();
      // A second of samples, however many there were, and no call's time.
      CHECK(shedder.report().amount == Approx((round - 28.0) / 120).margin(1e-9));
    }
  });
}

TEST_CASE("the part that is shed is the probability that was drawn for", "[utilization]") {
  Random random("the part that is shed is the probability that was drawn for");
  CAPTURE(random.repeat());
  for_each_store(
      [&](Store& store, VirtualClock& clock) {
        const UtilizationShedder shedder(store, "api", {}, random);
        shedder.sample(1.0);
        hold(shedder, clock, 1.0, 28s + 36s);  // three tenths
        int shed = 0;
        constexpr int calls = 20'000;
        for (int call = 0; call < calls; ++call) shed += !shedder.try_acquire("sheddable");
        // Six standard deviations.
        CHECK(shed == Approx(calls * 0.3).margin(6 * 65));
      },
      Stores::virtual_time);
}

TEST_CASE("any number of tiers is shed in order, the first one never", "[utilization]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    FixedRng lowest(0);
    UtilizationOptions options;
    options.most_critical_first.clear();
    for (int i = 0; i <= 1000; ++i)
      options.most_critical_first.push_back("tier " + std::to_string(i));
    const UtilizationShedder shedder(store, "api", options, lowest);
    shedder.sample(1.0);
    hold(shedder, clock, 1.0, 28s + 60s);  // half of the thousand
    CHECK_FALSE(shedder.try_acquire("tier 501"));
    CHECK(shedder.try_acquire("tier 500"));
    hold(shedder, clock, 1.0, 60s);
    const Decision second = shedder.try_acquire("tier 1");
    CHECK_FALSE(second);
    CHECK(second.part == 1);
    CHECK(shedder.try_acquire("tier 0"));
  });
}

TEST_CASE("a shedder says what it sheds of which tier", "[utilization]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    FixedRng lowest(0);
    const UtilizationShedder shedder(store, "api", three_tiers, lowest);
    shedder.sample(1.0);
    hold(shedder, clock, 1.0, 28s + 90s);
    const Decision refused = shedder.try_acquire("analytics");
    CHECK_FALSE(refused);
    CHECK(refused.part == 1);
    CHECK(refused.limit == 1'000'000);
    CHECK(refused.remaining == 500'000);
    CHECK(refused.retry_after == 0us);
    CHECK(refused.reset_after > 8min);
    CHECK(shedder.peek("analytics"));
    CHECK_FALSE(shedder.peek("test"));
    const UtilizationReport report = shedder.report();
    CHECK(report.amount == 0.75);
    CHECK(report.probabilities == std::vector<double>{0, 0.5, 1});
    CHECK(report.rests_after == refused.reset_after);

    shedder.reset();
    CHECK(shedder.try_acquire("test"));
    CHECK_FALSE(shedder.report().last_sample);
    shedder.reset();
  });
}

TEST_CASE("a plan of a shed call charges nobody, and names the tier", "[utilization]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    FixedRng lowest(0);
    const UtilizationShedder shedder(store, "api", three_tiers, lowest);
    const TokenBucket bucket(store, "bucket", Quota::per_second(1).burst(3));
    shedder.sample({"a"}, 1.0);
    for (int n = 0; n < 10; ++n) {
      clock.advance(10s);
      shedder.sample({"a"}, 1.0);
    }
    const Decision refused =
        decide(store, {bucket.acquire_step("a"), shedder.acquire_step("a", shedder.tier("test"))});
    CHECK_FALSE(refused);
    CHECK(refused.step == 1);
    CHECK(refused.part == 2);
    CHECK(bucket.peek("a").remaining == 3);
    CHECK(decide(store,
                 {bucket.acquire_step("a"), shedder.acquire_step("a", shedder.tier("payments"))}));
    CHECK(bucket.peek("a").remaining == 2);
    // Another key, and the service as a whole, have levels of their own.
    CHECK(shedder.try_acquire({"b"}, "test"));
    CHECK(shedder.try_acquire("test"));
  });
}

TEST_CASE("what is no utilization, and no tier, is an error that changes nothing",
          "[utilization]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const UtilizationShedder shedder(store, "api", three_tiers);
    shedder.sample(1.0);
    clock.advance(10s);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double wrong : {-0.1, 1.01, 80.0, nan, infinity, -infinity}) {
      std::error_code error;
      shedder.sample(wrong, error);
      CHECK(error == Errc::invalid_argument);
      CHECK_THROWS_AS(shedder.sample(wrong), std::system_error);
    }
    CHECK(shedder.report().last_sample == clock.now() - 10s);
    std::error_code error;
    CHECK_FALSE(shedder.try_acquire("Payments", error));
    CHECK(error == Errc::invalid_argument);
    CHECK_FALSE(shedder.peek("", error));
    CHECK(error == Errc::invalid_argument);
    CHECK_THROWS_WITH(
        shedder.try_acquire("Payments"),
        sluice::test::contains_text("no tier \"Payments\"; the tiers are \"payments\" "
                                    "\"analytics\" \"test\""));
    CHECK_THROWS_AS(shedder.tier("other"), std::invalid_argument);
  });
}

TEST_CASE("a key that holds another algorithm's state is left alone", "[utilization][C-014]") {
  for_each_store([](Store& store, VirtualClock&) {
    const SlotLock lock(store, "same", 1s);
    const UtilizationShedder shedder(store, "same");
    REQUIRE(lock.try_acquire("a"));
    std::error_code error;
    shedder.sample({"a"}, 1.0, error);
    CHECK(error == Errc::wrong_kind);
    shedder.reset({"a"}, error);
    CHECK(error == Errc::wrong_kind);
  });
}

TEST_CASE("options out of range are refused with the value and what is allowed", "[utilization]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto rejects = [&](UtilizationOptions options, const std::string& message) {
    CHECK_THROWS_AS(UtilizationShedder(*store, "api", options), std::invalid_argument);
    CHECK_THROWS_WITH(UtilizationShedder(*store, "api", options),
                      sluice::test::contains_text(message));
  };
  rejects({.good = 0.0}, "`good` must lie between 0 and 1, got 0.0");
  rejects({.bad = 1.0}, "`bad` must lie between 0 and 1, got 1.0");
  rejects({.bad = 80}, "`bad` must lie between 0 and 1, got 80");
  rejects({.good = 0.9}, "`good` must not exceed `bad`, got 0.9");
  rejects({.grace = -1us}, "grace must be 0 to 1 h, got -1 us");
  rejects({.full_after = 0us}, "full_after must be 1 us to 1 h, got 0 us");
  rejects({.grace = 30min, .full_after = 31min}, "together must be at most 1 h");
  rejects({.rest_after = 148s - 1us}, "rest_after must be at least grace + full_after (148000000");
  rejects({.rest_after = 24h * 31}, "at most 30 days");
  rejects({.max_gap = 0us}, "max_gap must be 1 us to 1 h, got 0 us");
  rejects({.most_critical_first = {"only"}},
          "2 to 65536 tiers, the first of which is never shed, got 1");
  rejects({.most_critical_first = std::vector<std::string>(65'537, "x")}, "got 65537");
  rejects({.most_critical_first = {"a", "b", "a"}}, "two tiers have the same name, \"a\"");
  rejects({.most_critical_first = {"a", ""}}, "must not be empty");
  CHECK_THROWS_AS(UtilizationShedder(*store, ""), std::invalid_argument);
  CHECK_NOTHROW(UtilizationShedder(*store, "api", {.good = 0.5, .bad = 0.5, .grace = 0us}));
}
