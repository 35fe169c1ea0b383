// Leases and lost answers: a place that nobody knows of is given back, as long as the process that
// asked for it lives. On the stores that answer at once: only there is it known which call loses
// its answer. Threading: one thread.
#include <array>
#include <memory>
#include <optional>
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
  Holders(Store& inner, VirtualClock& clock, Random& random)
      : inner_(inner), clock_(clock), random_(random), store_(inner) {}

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
    clock_.advance(50ms);
    static_cast<void>(jobs_.try_acquire("b"));  // sends what has failed
    static_cast<void>(fleet_.try_acquire("all"));
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
  void draw_fault() {
    const std::array<Fault, 4> faults{Fault::none(), Fault::answer_lost(), Fault::request_lost(),
                                      Fault::not_executed()};
    store_.fail_call(1, faults[random_.below(faults.size())]);
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
        return draw_fault();
      case 1:
        draw_fault();
        return one.lease.release_later();
      default:
        draw_fault();
        one.lease.release(error);
    }
  }

  Store& inner_;
  VirtualClock& clock_;
  Random& random_;
  FaultyStore store_;
  ConcurrencyLimiter jobs_{store_, "jobs", limit, {.ttl = 24h}};
  FleetShedder fleet_{store_, "fleet", limit, tiers, {.ttl = 24h}};
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
      [&](Store& store, VirtualClock& clock) {
        Holders holders(store, clock, random);
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
  template <class Result>
  void operator()(std::error_code, const Result&) const noexcept {}
};

}  // namespace

TEST_CASE("a release that has failed is sent again when the limiter is next asked", "[leases]") {
  for (const std::string failure : {"timeout", "not_connected", "dropped", "unknown"}) {
    CAPTURE(failure);
    Rig rig;
    Lease lease = rig.jobs.try_acquire("a");
    rig.store.play(FaultScript(failure + "*2"));
    lease = {};  // waits for the store, and then no longer
    CHECK(rig.store.counts().calls == 3);
    rig.clock.advance(50ms - 1us);
    CHECK(rig.jobs.peek("b"));
    CHECK(rig.jobs.try_acquire("b").decision().allowed);
    CHECK(rig.store.counts().calls == 6);  // with the release of b
    rig.clock.advance(1us);
    CHECK(rig.jobs.try_acquire("b").decision().allowed);
    CHECK(rig.store.counts().calls == 9);
    CHECK(rig.is_free());
  }
}

TEST_CASE("a call that waits sends the releases that have failed as well, and no others",
          "[leases]") {
  Rig rig;
  rig.store.play(FaultScript("not_connected"));
  CHECK_FALSE(rig.jobs.acquire("a", 1, 0s, {}, rig.error).decision().allowed);
  CHECK(rig.store.counts().calls == 1);
  Lease lease = rig.jobs.try_acquire("a");
  rig.store.play(FaultScript("timeout"));
  lease.release_later();
  rig.clock.advance(50ms);
  CHECK(rig.jobs.acquire("a", 1, 0s).decision().allowed);
}

TEST_CASE("all releases that have failed follow the first one that succeeds, at once", "[leases]") {
  Rig rig;
  std::array<Lease, 3> leases{rig.jobs.try_acquire("a"), rig.jobs.try_acquire("b"),
                              rig.jobs.try_acquire("c")};
  rig.store.play(FaultScript("timeout*2"));
  for (Lease& lease : leases) lease.release_later();
  for (const char* key : {"a", "b", "c"}) {
    CHECK(ConcurrencyLimiter(*rig.inner, "jobs", 1).peek(key).allowed);
  }
}

TEST_CASE("a release that has failed is not sent again once the lease has expired", "[leases]") {
  for (const Span later : {Span{60s} - 1us, Span{60s}}) {
    CAPTURE(later);
    Rig rig;
    Lease lease = rig.jobs.try_acquire("a");
    rig.store.play(FaultScript("timeout"));
    lease.release_later();
    rig.clock.advance(later);
    CHECK(rig.jobs.try_acquire("b").decision().allowed);
    CHECK(rig.store.counts().calls == (later < 60s ? 5 : 4));
  }
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

TEST_CASE("a lease that is taken anew under its id is not released by what its end has owed",
          "[leases]") {
  Rig rig;
  const LeaseId id{1, 2};
  Lease lease = rig.jobs.try_acquire("a", 1, id);
  rig.store.play(FaultScript("timeout*2"));
  lease = {};
  const Lease again = rig.jobs.try_acquire("a", 1, id);
  REQUIRE(again);
  rig.clock.advance(50ms);
  CHECK(rig.jobs.try_acquire("b").decision().allowed);
  CHECK_FALSE(rig.is_free());
}

TEST_CASE("a lease that ends while its release is pending is over, whatever becomes of that",
          "[leases]") {
  Rig rig;
  LeaseRenewer renewer(rig.clock, Renewing::by_hand);
  const ConcurrencyLimiter jobs(rig.store, "jobs", 1, {.ttl = 60s, .renewer = &renewer});
  Lease lease = jobs.try_acquire("a");
  rig.store.play(FaultScript("delay(1s,timeout)"));
  using Release = decltype(Lease::Verbs::release(lease));
  detail::Running<Release, Forget>::start(Lease::Verbs::release(lease));
  const auto calls = rig.store.counts().calls;
  CHECK_FALSE(lease.release());
  CHECK(rig.store.counts().calls == calls);
  lease = {};
  rig.clock.advance(1s);
  renewer.renew_due();
  CHECK(renewer.size() == 0);
  rig.clock.advance(1min);
  CHECK(rig.is_free());
}

TEST_CASE("a renewal that is answered behind a later one takes nothing of its time", "[leases]") {
  Rig rig;
  Lease lease = rig.jobs.try_acquire("a");
  rig.clock.advance(1s);
  rig.store.play(FaultScript("delay(5s)"));
  detail::Running<detail::RenewVerb, Forget>::start(Lease::Verbs::renew(lease));
  rig.clock.advance(1s);
  CHECK(lease.renew());
  rig.clock.advance(60s - 1us);
  CHECK_FALSE(lease.lost());
  rig.clock.advance(1us);
  CHECK(lease.lost());
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

namespace {

/// A store that hangs once it is told to, and fails what is pending at its end.
class HungStore final : public StoreWrapper {
 public:
  struct Asked {
    int calls = 0;  // while it hung
    Span timeout{0};
  };
  HungStore(Store& inner, std::optional<Asked>& asked) : StoreWrapper(inner), asked_(asked) {}
  ~HungStore() override {
    end();
    for (Completion& each : std::exchange(pending_, {})) each.fail(Errc::unknown);
  }
  void execute(const Plan& plan, Completion done) noexcept override {
    if (!asked_) return StoreWrapper::execute(plan, std::move(done));
    ++asked_->calls;
    asked_->timeout = plan.timeout();
    pending_.push_back(std::move(done));
  }

 private:
  std::optional<Asked>& asked_;  // none: it does not hang
  std::vector<Completion> pending_;
};

/// Passes everything on.
class Through final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
};

}  // namespace

TEST_CASE("a release that is under way when its store ends calls nothing any more", "[leases]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  std::optional<HungStore::Asked> asked;
  auto store = std::make_unique<Through>(std::make_unique<HungStore>(*inner, asked));
  Lease lease = ConcurrencyLimiter(*store, "jobs", 1, {.ttl = 7s}).try_acquire("a");
  REQUIRE(lease);
  asked.emplace();
  lease.release_later();
  CHECK(asked->timeout == 7s);
  store.reset();
  CHECK(asked->calls == 1);
}
