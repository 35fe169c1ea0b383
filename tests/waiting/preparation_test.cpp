// Waits for limits of which something must be asked first: shared sliding windows, whose rate is in
// the store and may change meanwhile. Threading: everything on the thread that moves the clock.
#include <array>
#include <functional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/waiting/holding.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

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
}

TEST_CASE("a rate that was read anew is waited for by its own hint", "[waiting][preparation]") {
  Scene scene;
  (void)scene.wait(3);
  const Time start = scene.store.time.now();
  const auto waiting = scene.wait(3);
  scene.configure(3, 10s);
  for (int i = 0; i < 20; ++i) scene.store.time.advance(1s);
  CHECK(scene.end.is_granted);
  CHECK(scene.end.at == start + 10s);
}

TEST_CASE("a claim of a rate and others is granted at one instant", "[waiting][preparation]") {
  const bool rate_first = GENERATE(true, false);
  const bool across = GENERATE(true, false);
  Scene scene;
  const ConcurrencyLimiter jobs(scene.tap, "j", 1, {.ttl = 1h});
  const SlidingWindow window(scene.tap, "w", {{5, 1min}});
  for (const Waitable* limit :
       {static_cast<const Waitable*>(&scene.rate), static_cast<const Waitable*>(&scene.bucket),
        static_cast<const Waitable*>(&jobs), static_cast<const Waitable*>(&window)}) {
    limit->set_wait_queue({.across_processes = across, .client = 1});
  }
  std::vector<Claim> claims{{scene.bucket, "t", 2}, {window, "t", 4}, {jobs, "t"}};
  const std::size_t at = rate_first ? 0 : 3;
  claims.insert(claims.begin() + static_cast<std::ptrdiff_t>(at), Claim(scene.rate, "t", 2));
  const std::size_t first = rate_first ? 1 : 0;
  REQUIRE(scene.elsewhere.try_acquire("t", 2));
  const Time start = scene.store.time.now();
  const auto waiting = scene.wait(claims);
  CHECK(scene.end.times == 0);
  CHECK(scene.bucket.peek("t").remaining == 2);
  scene.store.time.advance(1s);
  REQUIRE(scene.end.is_granted);
  CHECK(scene.end.at == start + 1s);
  CHECK(scene.grants.get<Reservation>(at).limit == 3);
  CHECK(scene.grants.get<Reservation>(at).remaining == 1);
  CHECK(scene.grants.get<Reservation>(first).granted == 2);
  CHECK(scene.grants.decision(first).limit == 2);
  CHECK(scene.grants.get<Reservation>(first + 1).granted == 4);
  CHECK(scene.grants.decision(first + 1).remaining == 1);
  for (std::size_t i = 0; i < 4; ++i) CHECK(scene.grants.decision(i).step == i);
  if (!across) {
    CHECK(scene.end.decision.remaining == 0);  // of the bucket, or the place
    CHECK(scene.end.decision.step != at);
  }
  // Each grant is what the store has: all of it is given back.
  scene.grants.settle(first, 1);
  scene.grants.settle(first + 1, 1);
  CHECK(scene.bucket.peek("t").remaining == 1);
  CHECK(window.peek("t").remaining == 4);
  CHECK_FALSE(jobs.try_acquire("t").decision());
  CHECK(scene.grants.get<Lease>(first + 2).release());
  CHECK(jobs.try_acquire("t").decision());
  CHECK(scene.left() == 1);
  scene.grants.refund();
  CHECK(scene.left() == 3);
  CHECK(window.peek("t").remaining == 5);
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
  Reservation one = scene.grants.get<Reservation>(0);
  CHECK(scene.elsewhere.cancel("t", one) == 2);
  scene.store.time.advance(2s);
  (void)scene.wait(claims);
  scene.configure(4, 1min, RateType::overall, SpentUnits::forgotten);
  CHECK(scene.elsewhere.try_acquire("t", 2));
  scene.grants.settle(0, 1);
  CHECK(scene.left() == 2);
  scene.grants.refund();
  CHECK(scene.left() == 2);
}

TEST_CASE("a refusal names the claim that cannot be granted in time", "[waiting][preparation]") {
  const bool across = GENERATE(true, false);
  Scene scene;
  for (const Waitable* limit :
       {static_cast<const Waitable*>(&scene.rate), static_cast<const Waitable*>(&scene.bucket)}) {
    limit->set_wait_queue({.across_processes = across, .client = 1});
  }
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

TEST_CASE("a rate that rises lets pass what was too much", "[waiting][preparation]") {
  Scene scene;
  (void)scene.wait(1);
  scene.configure(5, 1s);
  (void)scene.wait(4);
  CHECK(scene.end.is_granted);
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

namespace {

/// A wait that reads, asks, finds another rate, reads and asks again, all with held answers.
struct Changing : Scene {
  explicit Changing(bool alone, bool across) {
    for (const Waitable* limit :
         {static_cast<const Waitable*>(&rate), static_cast<const Waitable*>(&bucket)}) {
      limit->set_wait_queue({.across_processes = across, .client = 1});
    }
    (void)elsewhere.try_acquire("t", 3);
    store.holds = true;
    if (alone) {
      waiting = wait(2, 10s);
    } else {
      waiting = wait(std::vector<Claim>{{bucket, "t", 2}, {rate, "t", 2}}, 10s);
    }
  }
  /// The next answer, or the time of the next request.
  void go_on() {
    if (store.first().empty()) return (void)store.time.advance(1s);
    // Every second request finds another rate than it has read.
    if (store.first() == reads && ++times_read % 2 == 1) {
      store.holds = false;
      configure(times_read == 1 ? 4 : 3, 1s);
      store.holds = true;
    }
    store.deliver();
  }
  void settle() {
    store.holds = false;
    store.deliver_all();
    store.time.advance(1h);
    store.deliver_all();
  }
  int times_read = 0;
  std::shared_ptr<detail::Waiter> waiting;
};

}  // namespace

TEST_CASE("a wait that is cancelled at any instant ends once, and nothing stays charged",
          "[waiting][preparation]") {
  const bool alone = GENERATE(true, false);
  const bool across = GENERATE(true, false);
  int granted = 0;
  int preparing = 0;
  for (int steps = 0; steps < 16; ++steps) {
    CAPTURE(alone, across, steps);
    Changing scene(alone, across);
    for (int i = 0; i < steps; ++i) scene.go_on();
    const bool was_over = scene.end.times > 0;
    if (was_over) ++granted;
    scene.waiting->cancel();
    if (!was_over && scene.store.first() == reads) {
      ++preparing;
      CHECK(scene.end.times == 0);
      CHECK(scene.waiting->is_under_way());
      scene.store.deliver();
      CHECK(scene.end.times == 1);  // without a request
      CHECK(scene.store.first().empty());
    }
    scene.store.deliver_all();
    CHECK(scene.end.times == 1);
    if (!was_over) CHECK(scene.end.error == Errc::cancelled);
    scene.settle();
    CHECK(scene.rate.waiting("t") == 0);
    const auto next = scene.wait(1, 0s);
    CHECK(scene.end.is_granted);
  }
  CHECK(granted > 0);
  CHECK(granted < 12);
  CHECK(preparing >= 2);
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
  Scene scene;
  scene.store.holds = true;
  const auto waiting = scene.wait(1, 1s);
  scene.store.time.advance(950ms);
  scene.store.deliver();
  scene.store.time.advance(99ms);
  CHECK(scene.end.times == 0);
  scene.store.deliver();
  CHECK(scene.end.is_granted);
}

TEST_CASE("a late answer of a rate that was asked for comes back", "[waiting][preparation]") {
  Scene scene;
  scene.configure(3, 1h);
  scene.store.holds = true;
  const auto waiting =
      scene.wait(std::vector<Claim>{{scene.rate, "t", 2}, {scene.bucket, "t"}}, 1s);
  scene.store.deliver();
  scene.store.time.advance(1s);
  CHECK(scene.end.error == Errc::unknown);
  scene.store.holds = false;
  CHECK(scene.left() == 1);
  scene.store.deliver_all();
  CHECK(scene.left() == 3);
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
  /// Fails what reads a rate.
  struct Failing final : StoreWrapper {
    using StoreWrapper::StoreWrapper;
    void execute(const Plan& plan, Completion done) noexcept override {
      if (plan.steps().front().operation->name == reads) return done.fail(Errc::not_connected);
      StoreWrapper::execute(plan, std::move(done));
    }
  };
  Scene scene;
  Failing failing(scene.store);
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

TEST_CASE("a plan that is full is waited for without a ticket, beside calls that have one",
          "[waiting][preparation]") {
  Scene scene;
  std::vector<Claim> claims;
  for (int i = 0; i < 16; ++i) claims.emplace_back(scene.bucket, std::to_string(i), 2);
  int over = 0;
  std::vector<std::shared_ptr<Probe<Several>>> waiting;
  const auto start_one = [&](const std::vector<Claim>& of) {
    waiting.push_back(wait_for(Several{}, detail::limits_of(of), Deadline::never(),
                               [&](std::error_code error, const Grants& granted) {
                                 CHECK_FALSE(error);
                                 if (granted) ++over;
                               }));
  };
  for (int i = 0; i < 12; ++i) {
    start_one(claims);
    start_one({claims.front()});
    start_one({claims.front(), claims.back()});
  }
  for (int i = 0; i < 36 * 2; ++i) scene.store.time.advance(1s);
  CHECK(over == 36);
}

namespace {

/// Two processes that wait for one rate, each behind a wire of its own.
struct TwoProcesses {
  explicit TwoProcesses(RateType type) {
    (void)elsewhere.configure("t", type, 1, 1s);
    for (std::size_t i = 0; i < 2; ++i) {
      rates[i].set_wait_queue({.across_processes = true, .client = static_cast<Word>(i + 1)});
    }
  }
  ~TwoProcesses() {
    for (const auto& rate : rates) rate.cancel_waits();
    for (Wire& wire : wires) wire.slowest = 0s;
    time.advance(1min);
  }
  void wait(std::size_t process, int name) {
    probes.push_back(wait_for(rates.at(process), request_of(rates.at(process), "t", 1),
                              Deadline::never(), [this, name](std::error_code error, Decision d) {
                                if (!error && d) granted.emplace_back(name, time.now() - start);
                              }));
  }
  [[nodiscard]] std::vector<int> order() const {
    std::vector<int> names;
    for (const auto& [name, at] : granted) names.push_back(name);
    return names;
  }

  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  SharedSlidingWindow elsewhere{*store, "rate", {.client = "z"}};
  std::array<Wire, 2> wires{Wire(*store, time, 1), Wire(*store, time, 2)};
  std::array<SharedSlidingWindow, 2> rates{SharedSlidingWindow(wires[0], "rate", {.client = "a"}),
                                           SharedSlidingWindow(wires[1], "rate", {.client = "b"})};
  std::vector<std::shared_ptr<Probe<SharedSlidingWindow>>> probes;
  std::vector<std::pair<int, Span>> granted;
  Time start = time.now();
};

}  // namespace

TEST_CASE("processes are served in the order of their callers, though the rate changes",
          "[waiting][preparation][processes]") {
  const bool changes = GENERATE(false, true);
  const Span slowest = GENERATE(Span{0}, Span{1ms});
  TwoProcesses two(RateType::overall);
  for (Wire& wire : two.wires) wire.slowest = slowest;
  std::vector<int> names;
  for (int i = 0; i < 20; ++i) {
    two.wait(static_cast<std::size_t>(i * 5 / 3 % 2), i);
    names.push_back(i);
    two.time.advance(20ms);
  }
  for (int i = 0; i < 400; ++i) {
    if (changes && i % 7 == 0) (void)two.elsewhere.configure("t", RateType::overall, 1 + i % 2, 1s);
    two.time.advance(100ms);
  }
  CHECK(two.order() == names);
  CHECK(two.wires[0].entries > 0);
  CHECK(two.wires[1].entries > 0);
}

TEST_CASE("clients with rates of their own do not wait for each other",
          "[waiting][preparation][processes]") {
  const bool was_overall = GENERATE(false, true);
  TwoProcesses two(was_overall ? RateType::overall : RateType::per_client);
  if (was_overall) {
    two.wait(0, -1);
    two.wait(0, -2);
    two.wait(1, -3);
    two.time.advance(10ms);
    (void)two.elsewhere.configure("t", RateType::per_client, 1, 1s);
    two.time.advance(10s);
    REQUIRE(two.granted.size() == 3);
    two.granted.clear();
  }
  for (int i = 0; i < 10; ++i) two.wait(0, i);
  two.time.advance(500ms);
  const Span before = two.time.now() - two.start;
  two.wait(1, 100);
  two.wait(1, 101);
  two.time.advance(20s);
  const auto at = [&](int name) {
    return std::ranges::find(two.granted, name, &std::pair<int, Span>::first)->second;
  };
  REQUIRE(two.granted.size() == 12);
  CHECK(at(100) == before);
  CHECK(at(101) == before + 1s);
  CHECK(at(9) <= before + 9s);
}

}  // namespace sluice::test
