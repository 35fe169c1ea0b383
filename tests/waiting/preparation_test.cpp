// Waits for limits of which something must be asked first: shared sliding windows, whose rate is in
// the store and may change meanwhile. Threading: everything on the thread that moves the clock.
#include <array>
#include <functional>
#include <vector>

#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/holding.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view reads = "shared_sliding_window.config";
constexpr std::string_view asks = "shared_sliding_window.expect";

/// Calls `sent` with the name of the first step before each request, and keeps all names.
class Tap final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    const std::string_view name = plan.steps().front().operation->name;
    names.push_back(name);
    sizes.push_back(plan.steps().size());
    if (sent) sent(name);
    StoreWrapper::execute(plan, std::move(done));
  }

  std::function<void(std::string_view)> sent;
  std::vector<std::string_view> names;
  std::vector<std::size_t> sizes;
};

/// How a wait ended.
struct End {
  int times = 0;
  bool is_granted = false;
  std::error_code error{};
  Decision decision{};
  Time at{};
};

/// One rate, which another object configures, and a wait for it, alone or among other limits.
struct Scene {
  explicit Scene(RateType type = RateType::overall) {
    elsewhere.set_wait_queue({.across_processes = false});  // its changes wake nobody
    configure(3, 1s, type);
  }
  void configure(Word permits, Span interval, RateType type = RateType::overall,
                 SpentUnits spent = SpentUnits::kept) {
    (void)elsewhere.configure("t", type, permits, interval, spent);
  }
  std::shared_ptr<Probe<SharedSlidingWindow>> wait(Cost permits = 1,
                                                   const Deadline& deadline = Deadline::never()) {
    end = {};
    return wait_for(
        rate, request_of(rate, "t", permits), deadline,
        [this](std::error_code error, const Decision& decision) { note(error, decision); });
  }
  std::shared_ptr<Probe<Several>> wait(const std::vector<Claim>& claims,
                                       const Deadline& deadline = Deadline::never()) {
    end = {};
    return wait_for(Several{}, detail::limits_of(claims), deadline,
                    [this](std::error_code error, Grants granted) {
                      note(error, granted.decision());
                      grants = std::move(granted);
                    });
  }
  void note(std::error_code error, const Decision& decision) {
    end = {end.times + 1, !error && decision.allowed, error, decision, store.time.now()};
  }
  [[nodiscard]] Word left() const { return elsewhere.peek("t").remaining; }
  /// Whether both limits of the process share a line with other processes.
  void set_across(bool across) const {
    rate.set_wait_queue({.across_processes = across, .client = 1});
    bucket.set_wait_queue({.across_processes = across, .client = 1});
  }

  Holding store;
  Tap tap{store};
  SharedSlidingWindow elsewhere{store, "rate"};
  SharedSlidingWindow rate{tap, "rate"};
  TokenBucket bucket{tap, "b", Quota::per_second(1).burst(2)};
  End end;
  Grants grants;
};

using Names = std::vector<std::string_view>;

}  // namespace

TEST_CASE("a rate is read once, and again when it has changed", "[waiting][preparation]") {
  Scene scene;
  (void)scene.wait(3);
  CHECK(scene.end.is_granted);
  CHECK(scene.tap.names == Names{reads, asks});
  const Time start = scene.store.time.now();
  const auto waiting = scene.wait(2);
  CHECK(scene.end.times == 0);
  scene.configure(5, 10s);
  scene.tap.names.clear();
  scene.store.time.advance(1s);
  CHECK(scene.tap.names == Names{asks, reads, asks});
  CHECK(scene.end.times == 1);  // three of five are spent
  CHECK(scene.end.at == start + 1s);
  CHECK(scene.end.decision.limit == 5);
  CHECK(scene.left() == 0);
  scene.configure(6, 1s, RateType::overall, SpentUnits::forgotten);
  (void)scene.wait(6);  // more than there was
  CHECK(scene.end.is_granted);
}

TEST_CASE("a claim of a rate and another is granted at one instant", "[waiting][preparation]") {
  const std::size_t at = GENERATE(0U, 1U);
  const bool across = GENERATE(true, false);
  Scene scene;
  scene.set_across(across);
  std::vector<Claim> claims(2, Claim(scene.bucket, "t", 2));
  claims[at] = Claim(scene.rate, "t", 2);
  REQUIRE(scene.elsewhere.try_acquire("t", 2));
  const Time start = scene.store.time.now();
  const auto waiting = scene.wait(claims);
  CHECK(scene.end.times == 0);
  CHECK(scene.bucket.peek("t").remaining == 2);
  scene.store.time.advance(1s);
  REQUIRE(scene.end.is_granted);
  CHECK(scene.end.at == start + 1s);
  CHECK(scene.grants.decision(at).limit == 3);
  CHECK(scene.grants.decision(at).remaining == 1);
  CHECK(scene.grants.decision(1 - at).limit == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(scene.grants.decision(i).step == i);
  CHECK(scene.end.decision.step == 1 - at);  // of the bucket, which has nothing left
  scene.grants.refund();
  CHECK(scene.left() == 3);
}

TEST_CASE("a claim of a rate is an estimate that is settled, and given back",
          "[waiting][preparation]") {
  Scene scene;
  scene.configure(6, 1min);
  const std::vector<Claim> claims{{scene.rate, "t", Estimate{3}}, {scene.bucket, "t"}};
  (void)scene.wait(claims);
  REQUIRE(scene.end.is_granted);
  CHECK(scene.grants.get<Reservation>(0).granted == 3);
  scene.grants.settle(0, 1);
  CHECK(scene.left() == 5);
  CHECK_THROWS_AS(scene.grants.settle(0, 1), std::invalid_argument);
  scene.grants.refund();
  CHECK(scene.left() == 6);
  scene.store.time.advance(2s);
  (void)scene.wait(claims);
  scene.grants.settle(0, 5);
  CHECK(scene.left() == 1);

  // By the rate of the grant, if that has changed; of a log that is not in use, nobody sees it.
  scene.configure(9, 1min, RateType::overall, SpentUnits::forgotten);
  scene.store.time.advance(2s);
  (void)scene.wait(claims);
  scene.configure(12, 1min);
  scene.grants.settle(0, 2);
  CHECK(scene.left() == 10);
  scene.store.time.advance(2s);
  (void)scene.wait(claims);
  scene.configure(4, 1min, RateType::overall, SpentUnits::forgotten);
  CHECK(scene.elsewhere.try_acquire("t", 2));
  scene.grants.settle(0, 1);
  scene.grants.refund();
  CHECK(scene.left() == 2);
}

TEST_CASE("a refusal names the claim that cannot be granted in time", "[waiting][preparation]") {
  const bool across = GENERATE(true, false);
  Scene scene;
  scene.set_across(across);
  const std::vector<Claim> claims{{scene.rate, "t", 3}, {scene.bucket, "t"}};
  (void)scene.elsewhere.try_acquire("t", 1);
  (void)scene.wait(claims, 999ms);
  CHECK(scene.end.times == 1);
  CHECK_FALSE(scene.end.error);
  CHECK_FALSE(scene.end.is_granted);
  CHECK(scene.end.decision.step == 0);
  CHECK(scene.end.decision.retry_after == 1s);
  scene.store.time.advance(1s);
  (void)scene.bucket.try_acquire("t", 2);
  (void)scene.wait(claims, 999ms);
  CHECK(scene.end.times == 1);
  CHECK(scene.end.decision.step == 1);
  CHECK(scene.left() == 3);
}

TEST_CASE("a failure names the claim at fault", "[waiting][preparation]") {
  Scene scene;
  const SharedSlidingWindow other(scene.tap, "other");
  const auto fails = [&](const std::vector<Claim>& claims) -> std::string {
    try {
      (void)acquire(claims, 1h);
    } catch (const std::system_error& failed) {
      return failed.what();
    }
    return "granted";
  };
  using Catch::Contains;
  CHECK_THAT(fails({{scene.rate, "t", 1}, {scene.bucket, "t", 3}}), Contains("step 1: cost 3"));
  CHECK_THAT(fails({{scene.bucket, "t"}, {scene.rate, "t", 1}, {scene.bucket, "u", 3}}),
             Contains("step 2: cost 3"));
  CHECK_THAT(fails({{scene.bucket, "t"}, {scene.rate, "t", 4}}), Contains("step 1: cost 4"));
  CHECK_THAT(fails({{scene.rate, "t", 1}, {other, "t", 1}}), Contains("step 1"));
  CHECK_THAT(fails({{scene.rate, "t", 1}, {scene.bucket, "t"}, {scene.bucket, "t"}}),
             Contains("step 2"));
  std::error_code error;
  (void)acquire({{scene.bucket, "t"}, {other, "t", 1}}, 1h, {}, error);
  CHECK(error == Errc::not_configured);
  CHECK(scene.left() == 3);
  CHECK(scene.bucket.peek("t").remaining == 2);
}

TEST_CASE("a rate that sinks below what is waited for ends the wait", "[waiting][preparation]") {
  const bool is_alone = GENERATE(true, false);
  Scene scene;
  const std::vector<Claim> claims{{scene.bucket, "t"}, {scene.rate, "t", 3}};
  (void)scene.elsewhere.try_acquire("t", 1);
  std::shared_ptr<detail::Waiter> waiting;
  waiting = is_alone ? std::shared_ptr<detail::Waiter>(scene.wait(3)) : scene.wait(claims);
  CHECK(scene.end.times == 0);
  scene.configure(2, 1s);
  scene.store.time.advance(1s);
  CHECK(scene.end.times == 1);
  CHECK(scene.end.error == Errc::cost_exceeds_capacity);
  CHECK(scene.left() == 2);
  CHECK(scene.bucket.peek("t").remaining == 2);
}

TEST_CASE("a rate that is not there ends the wait, at once or when it has gone",
          "[waiting][preparation]") {
  Scene scene;
  const SharedSlidingWindow none(scene.tap, "none");
  std::error_code error;
  (void)none.acquire("t", 1, 1h, {}, error);
  CHECK(error == Errc::not_configured);
  CHECK(scene.tap.names == Names{reads});

  const SharedSlidingWindowOptions short_life{.client = "c", .keep_alive = 1s};
  const SharedSlidingWindow brief(scene.tap, "brief", short_life);
  brief.configure("t", RateType::overall, 1, 1s);
  CHECK(brief.acquire("t", 1, 0s));
  scene.store.time.advance(1h);
  scene.tap.names.clear();
  (void)acquire({{scene.bucket, "t"}, {brief, "t", 1}}, 1h, {}, error);
  CHECK(error == Errc::not_configured);
  CHECK(scene.tap.names.size() == 2);  // it is read again before it counts as gone
  CHECK(scene.tap.names.back() == reads);
}

TEST_CASE("rates are read at one instant", "[waiting][preparation]") {
  Scene scene;
  const SharedSlidingWindow other(scene.tap, "other");
  (void)SharedSlidingWindow(scene.store, "other").configure("t", RateType::overall, 1, 1h);
  const std::vector<Claim> claims{{scene.rate, "t", 2}, {scene.bucket, "t"}, {other, "t", 1}};
  const auto first = scene.wait(claims);
  REQUIRE(scene.end.is_granted);
  CHECK(scene.grants.decision(0).limit == 3);
  CHECK(scene.grants.decision(2).limit == 1);
  CHECK(scene.tap.names.front() == reads);
  CHECK(scene.tap.sizes == std::vector<std::size_t>{2, 6});
  scene.configure(4, 1s);
  (void)SharedSlidingWindow(scene.store, "other").configure("t", RateType::overall, 2, 1h);
  scene.tap.sizes.clear();
  const auto second = scene.wait(claims);
  REQUIRE(scene.end.is_granted);  // each of the two is noticed apart
  CHECK(scene.tap.sizes == std::vector<std::size_t>{6, 1, 6, 1, 6});
}

TEST_CASE("a rate that changes whenever it is asked for ends the wait, and charges nothing",
          "[waiting][preparation]") {
  Scene scene;
  Word rate = 3;
  scene.tap.sent = [&](std::string_view name) {
    if (name == asks) scene.configure(++rate, 1s);
  };
  const auto waiting = scene.wait(1);
  CHECK(scene.end.times == 1);
  CHECK(scene.end.error == Errc::config_changed);
  CHECK(std::ranges::count(scene.tap.names, reads) == 16);
  scene.tap.sent = {};
  CHECK(scene.left() == rate);
  (void)scene.wait(1);
  CHECK(scene.end.is_granted);
}

TEST_CASE("changes are counted for each request, not for the wait", "[waiting][preparation]") {
  Scene scene;
  Word rate = 3;
  (void)scene.elsewhere.try_acquire("t", 3);
  int changes = 0;
  scene.tap.sent = [&](std::string_view name) {
    if (name != asks || ++changes % 10 == 0) return;
    rate = rate == 3 ? 2 : 3;
    scene.configure(rate, 1s);
  };
  const auto waiting = scene.wait(1);
  CHECK(scene.end.times == 0);
  for (int i = 0; i < 5; ++i) scene.store.time.advance(1s);
  CHECK(changes == 20);
  CHECK(scene.end.is_granted);
}

TEST_CASE("a wait that is cancelled while the rate is read asks nothing more",
          "[waiting][preparation]") {
  const bool is_again = GENERATE(false, true);
  Scene scene;
  if (is_again) {
    (void)scene.rate.configuration("t");
    scene.configure(4, 1s);
  }
  scene.store.holds = true;
  const auto waiting = scene.wait(2);
  if (is_again) scene.store.deliver_until(reads);
  REQUIRE(scene.store.first() == reads);
  waiting->cancel();
  CHECK(scene.end.times == 0);
  CHECK(waiting->is_under_way());
  scene.store.deliver();
  CHECK(scene.end.error == Errc::cancelled);
  CHECK(scene.store.first().empty());
  scene.store.holds = false;
  CHECK(scene.rate.waiting("t") == 0);
}

TEST_CASE("a wait ends at its deadline though the rate has not been read",
          "[waiting][preparation]") {
  for (const bool is_cancelled : {false, true}) {
    for (const bool is_refused : {false, true}) {
      CAPTURE(is_cancelled, is_refused);
      Scene scene;
      if (is_refused) {
        (void)scene.elsewhere.try_acquire("t", 3);
        (void)scene.rate.configuration("t");
      }
      const Time start = scene.store.time.now();
      scene.store.holds = !is_refused;
      const auto waiting = scene.wait(1, 1500ms);
      if (is_refused) {
        scene.configure(1, 1s);
        (void)scene.elsewhere.block("t", 1100ms);
        scene.store.holds = true;
        scene.store.time.advance(1s);
        scene.store.deliver_until(reads);
      }
      REQUIRE(scene.store.first() == reads);
      if (is_cancelled) waiting->cancel();
      scene.store.time.advance(start + 1500ms - 1us - scene.store.time.now());
      CHECK(scene.end.times == 0);
      scene.store.time.advance(1us);
      CHECK(scene.end.times == 1);
      if (is_cancelled) {
        CHECK(scene.end.error == Errc::cancelled);
      } else if (is_refused) {
        CHECK_FALSE(scene.end.error);
        CHECK_FALSE(scene.end.is_granted);
      } else {
        CHECK(scene.end.error == Errc::timed_out);
      }
      const std::size_t sent = scene.tap.names.size();
      scene.store.holds = false;
      scene.store.deliver_all();
      CHECK(waiting->times_over() == 1);
      CHECK(scene.tap.names.size() == sent);  // it is not asked for after that
      CHECK(scene.rate.waiting("t") == 0);
    }
  }
}

TEST_CASE("a call that may not wait reads the rate for as long as the store gives it",
          "[waiting][preparation]") {
  Scene scene;
  scene.store.holds = true;
  const auto waiting = scene.wait(1, 0s);
  scene.store.time.advance(1h);
  scene.store.deliver();
  scene.store.time.advance(1h);
  CHECK(scene.end.times == 0);
  scene.store.deliver();
  CHECK(scene.end.is_granted);
}

TEST_CASE("a request after the rate was read at the end of a wait has its time as well",
          "[waiting][preparation]") {
  const bool is_late = GENERATE(false, true);
  Scene scene;
  scene.configure(3, 1h);
  scene.store.holds = true;
  const auto waiting = scene.wait(1, 1s);
  scene.store.time.advance(950ms);
  scene.store.deliver();
  scene.store.time.advance(150ms - 1us);
  CHECK(scene.end.times == 0);
  if (is_late) scene.store.time.advance(1us);
  scene.store.holds = false;
  CHECK(scene.left() == 2);
  scene.store.deliver_all();
  CHECK(scene.end.is_granted != is_late);
  if (is_late) CHECK(scene.end.error == Errc::unknown);
  CHECK(scene.left() == (is_late ? 3 : 2));
}

TEST_CASE("a rate that has changed is not read after the end of the wait",
          "[waiting][preparation]") {
  Scene scene;
  (void)scene.rate.configuration("t");
  scene.configure(4, 1h);
  scene.store.holds = true;
  const auto waiting = scene.wait(1, 1s);
  REQUIRE(scene.store.first() == asks);
  scene.store.time.advance(1s);
  CHECK(scene.end.error == Errc::unknown);
  const std::size_t sent = scene.tap.names.size();
  scene.store.holds = false;
  scene.store.deliver_all();
  CHECK(scene.tap.names.size() == sent);
  CHECK(waiting->times_over() == 1);
}

TEST_CASE("a wait does not end while its request is handed over to the store",
          "[waiting][preparation]") {
  Scene scene;
  (void)scene.rate.configuration("t");
  scene.store.holds = true;
  bool was_over = true;
  scene.tap.sent = [&](std::string_view) {
    scene.store.time.advance(2s);
    was_over = scene.end.times != 0;
  };
  const auto waiting = scene.wait(1, 1s);
  scene.tap.sent = {};
  CHECK_FALSE(was_over);
  scene.store.time.advance(100ms);
  CHECK(scene.end.error == Errc::unknown);
  scene.store.holds = false;
  scene.store.deliver_all();
  CHECK(waiting->times_over() == 1);
}

TEST_CASE("a lease is safe for as long as it lives after the request that asked for it",
          "[waiting][preparation][leases]") {
  Scene scene;
  const ConcurrencyLimiter jobs(scene.tap, "jobs", 1, {.ttl = 1min});
  scene.store.holds = true;
  const auto waiting = scene.wait(std::vector<Claim>{{scene.rate, "t"}, {jobs, "t"}});
  scene.store.time.advance(300ms);
  scene.store.deliver_until(asks);
  scene.store.time.advance(500ms);
  scene.store.deliver_all();
  scene.store.holds = false;
  REQUIRE(scene.end.is_granted);
  const auto& lease = scene.grants.get<Lease>(1);
  scene.store.time.advance(1min - 500ms - 1us);
  CHECK_FALSE(lease.lost());
  scene.store.time.advance(1us);
  CHECK(lease.lost());
}

TEST_CASE("a store that fails while the rate is read ends the wait in its error",
          "[waiting][preparation]") {
  Scene scene;
  testing::FaultyStore failing(scene.store);
  failing.fail_all(testing::Fault::not_executed(Errc::not_connected));
  const SharedSlidingWindow rate(failing, "rate");
  std::error_code error;
  (void)rate.acquire("t", 1, 1h, {}, error);
  CHECK(error == Errc::not_connected);
  CHECK(rate.waiting("t") == 0);
}

TEST_CASE("claims may have as many steps as a plan", "[waiting][preparation]") {
  Scene scene;
  std::vector<std::unique_ptr<SharedSlidingWindow>> rates;
  std::vector<Claim> claims;
  for (int i = 0; i < 8; ++i) {
    rates.push_back(std::make_unique<SharedSlidingWindow>(scene.tap, "r" + std::to_string(i)));
    rates.back()->configure("t", RateType::overall, 1, 1s);
    claims.emplace_back(*rates.back(), "t");
  }
  CHECK(acquire(claims, 1h).decision());
  claims.emplace_back(scene.bucket, "t");
  CHECK_THROWS_WITH(acquire(claims, 1h), "9 claims of 17 steps, allowed 1 to 16 steps");
  std::error_code error;
  (void)acquire(claims, 1h, {}, error);
  CHECK(error == Errc::invalid_plan);
}

}  // namespace sluice::test
