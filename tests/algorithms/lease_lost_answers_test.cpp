// Leases and lost answers: a place that nobody knows of is given back, as long as the process that
// asked for it lives. On the stores that answer at once: only there is it known which call loses
// its answer. Threading: one thread.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"
#include "tests/waiting/probe.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::for_each_store;
using sluice::test::Random;
using sluice::test::Stores;
using sluice::testing::Fault;
using sluice::testing::FaultScript;
using sluice::testing::FaultyStore;

namespace {

constexpr Word limit = 4;

/// Random holders of places, each of whose calls may lose its request or its answer.
class Holders {
 public:
  Holders(Store& inner, Random& random) : inner_(inner), random_(random), store_(inner) {}

  void act() {
    std::vector<Held>& held = held_[random_.below(2)];
    if (held.empty() || random_.one_in(2)) {
      acquire(held, &held == &held_[1]);
    } else {
      const auto which = held.begin() + static_cast<std::ptrdiff_t>(random_.below(held.size()));
      Held ends = std::move(*which);
      held.erase(which);
      end(ends);
    }
    store_.heal();
  }
  /// The store counts what these hold, and no other place.
  void judge() const {
    CHECK(ConcurrencyLimiter(inner_, "jobs", limit).peek("a").remaining == limit - sum(held_[0]));
    CHECK(FleetShedder(inner_, "fleet", limit, tiers).peek("all").remaining ==
          limit - sum(held_[1]));
  }
  void end_all() {
    for (auto& held : held_) held.clear();
  }

 private:
  struct Held {
    Grants grants;  // of it, or of the lease
    Lease lease;
    Word weight;
  };
  static inline const std::vector<Tier> tiers{{"all", FleetShare::percent(100)}};

  static Word sum(const std::vector<Held>& held) {
    Word sum = 0;
    for (const Held& each : held) sum += each.weight;
    return sum;
  }
  /// Of the next call.
  void draw_fault(std::size_t kinds = 4) {
    const std::array<Fault, 4> faults{Fault::none(), Fault::answer_lost(), Fault::request_lost(),
                                      Fault::not_executed()};
    store_.fail_call(1, faults[random_.below(kinds)]);
  }

  void acquire(std::vector<Held>& held, bool of_fleet) {
    const Word weight = random_.between(1, 2);
    Held one{{}, {}, weight};
    std::error_code error;
    draw_fault();
    if (of_fleet) {
      one.lease = fleet_.try_acquire("all", weight, error);
    } else {
      acquire_job(one, error);
    }
    const bool is_granted = one.grants || one.lease;
    CHECK((!error || !is_granted));
    if (is_granted) held.push_back(std::move(one));
  }
  void acquire_job(Held& one, std::error_code& error) {
    const Claim job(jobs_, "a", one.weight);
    switch (random_.below(4)) {
      case 0:
        one.lease = jobs_.try_acquire("a", one.weight, error);
        break;
      case 1:
        one.lease = jobs_.acquire("a", one.weight, 0s, {}, error);
        break;
      case 2:
        one.grants = sluice::acquire({{bucket_, "a"}, job}, 0s, {}, error);
        break;
      default:
        one.grants = sluice::acquire(first_of({{Claim(never_, "a")}, {job}}), 0s, {}, error);
    }
  }

  void end(Held& one) {
    std::error_code error;
    switch (random_.below(3)) {
      case 0:
        return draw_fault(one.lease ? 4 : 3);
      case 1:
        draw_fault(3);  // if it cannot be sent, the place becomes free by the TTL
        return one.lease.release_later();
      default:
        draw_fault();
        one.lease.release(error);
    }
  }

  Store& inner_;
  Random& random_;
  FaultyStore store_;
  ConcurrencyLimiter jobs_{store_, "jobs", limit};
  FleetShedder fleet_{store_, "fleet", limit, tiers};
  TokenBucket bucket_{store_, "bucket", Quota::per_second(1'000'000)};
  ConcurrencyLimiter never_{store_, "never", 0};
  std::array<std::vector<Held>, 2> held_;  // jobs, and places of the fleet
};

}  // namespace

TEST_CASE("whichever request or answer is lost, the places that are taken are those that are held",
          "[leases][model]") {
  Random random(
      "whichever request or answer is lost, the places that are taken are those that are "
      "held");
  CAPTURE(random.repeat());
  for_each_store(
      [&](Store& store, VirtualClock&) {
        Holders holders(store, random);
        for (std::size_t i = 0; i < test::scaled(300); ++i) {
          holders.act();
          holders.judge();
        }
        holders.end_all();
        holders.judge();
      },
      Stores::local);
}

namespace {

/// One place, behind a store that is told which answers to lose.
struct Rig {
  VirtualClock clock;
  NewStore<Store> inner = make_virtual_store(clock);
  FaultyStore store{*inner};
  ConcurrencyLimiter jobs{store, "jobs", 1, {.ttl = 60s}};
  std::error_code error;

  [[nodiscard]] bool is_free() const {
    return ConcurrencyLimiter(*inner, "jobs", 1).peek("a").allowed;
  }
};

struct Forget {
  void operator()(std::error_code, const Lease&) const noexcept {}
};

}  // namespace

TEST_CASE("a release that nobody waits for is sent four times", "[leases]") {
  for (const int lost : {3, 4}) {
    CAPTURE(lost);
    Rig rig;
    rig.store.play(FaultScript("unknown dropped*" + std::to_string(lost)));
    CHECK_FALSE(rig.jobs.try_acquire("a", rig.error).decision().allowed);
    CHECK(rig.error == Errc::unknown);
    CHECK(rig.store.counts().calls == 5);
    CHECK(rig.is_free() == (lost == 3));
  }
}

TEST_CASE("the end of a lease sends its release again after any error, without waiting",
          "[leases]") {
  for (const char* const script : {"timeout", "not_connected", "dropped", "unknown"}) {
    CAPTURE(script);
    Rig rig;
    Lease lease = rig.jobs.try_acquire("a");
    rig.store.play(FaultScript(script));
    lease = {};
    CHECK(rig.store.counts().calls == 3);
    CHECK(rig.is_free());
  }
}

TEST_CASE("a release that nobody waits for is not sent once the lease has expired", "[leases]") {
  Rig rig;
  Lease lease = rig.jobs.try_acquire("a");
  rig.store.play(FaultScript("delay(30s,dropped)*4"));
  lease.release_later();
  rig.clock.advance(30s - 1us);
  CHECK(rig.store.counts().calls == 2);
  rig.clock.advance(1us);
  CHECK(rig.store.counts().calls == 3);
  rig.clock.advance(2min);
  CHECK(rig.store.counts().calls == 3);
}

TEST_CASE("under an id of the caller's, a lease whose answer is lost can be asked for again",
          "[leases]") {
  Rig rig;
  const LeaseId id{1, 2};
  rig.store.play(FaultScript("unknown"));
  CHECK_FALSE(rig.jobs.try_acquire("a", 1, id, rig.error).decision().allowed);
  CHECK(rig.store.counts().calls == 1);
  CHECK_FALSE(rig.is_free());
  CHECK(rig.jobs.try_acquire("a", 1, id, rig.error).decision().allowed);
}

TEST_CASE("a place whose grant was lost goes to who waits for it", "[leases]") {
  Rig rig;
  rig.store.play(FaultScript("delay(5s,unknown)"));
  detail::Running<detail::LeaseManager::Asking, Forget>::start(
      ConcurrencyLimiter::Verbs::try_acquire(rig.jobs, "a", 1));
  CHECK_FALSE(rig.is_free());
  Lease granted;
  const auto waits =
      test::wait_for(rig.jobs, test::Wanted{"a", 1}, 30s,
                     [&](std::error_code, Lease lease) { granted = std::move(lease); });
  rig.clock.advance(5s - 1us);
  CHECK_FALSE(granted);
  rig.clock.advance(1us);
  CHECK(granted);
}

TEST_CASE("a call that has given up gives back what it was granted, also if that answer is lost",
          "[leases]") {
  for (const char* const late : {"delay(5s)", "delay(5s,unknown)"}) {
    CAPTURE(late);
    Rig rig;
    rig.store.play(FaultScript(late));
    const auto waits =
        test::wait_for(rig.jobs, test::Wanted{"a", 1}, 1s,
                       [&](std::error_code error, const Lease&) { rig.error = error; });
    rig.clock.advance(5s - 1us);
    CHECK(rig.error == Errc::unknown);
    CHECK_FALSE(rig.is_free());
    rig.clock.advance(1us);
    CHECK(rig.is_free());
  }
}
