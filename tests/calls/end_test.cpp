// How a call ends before its function does: by BackoffOptions::end_by, by the loss of a lease, and
// by its caller. Threading: as the cases say; by default everything on the test's thread.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// Fails the calls that it is told to.
class FailingStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    if (failure) return done.fail(failure);
    StoreWrapper::execute(plan, std::move(done));
  }
  std::error_code failure;
};

struct Rig {
  VirtualClock clock;
  std::unique_ptr<Store> behind = make_virtual_store(clock);
  FailingStore store{*behind};
  LeaseRenewer renewer{clock, Renewing::by_hand};
  ConcurrencyLimiter jobs{store, "jobs", 1, {.ttl = 12s, .renewer = &renewer}};
  ConcurrencyLimiter short_jobs{store, "short", 1, {.ttl = 12s}};
  TokenBucket bucket{store, "b", Quota::per_second(1).burst(10)};

  /// Moves the clock by this much, and renews in time.
  void pass(Span span) {
    const Time end = clock.now() + span;
    for (Time next = renewer.renew_due(); next <= end; next = renewer.renew_due()) clock.set(next);
    clock.set(end);
    renewer.renew_due();
  }
};

struct ApiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

TEST_CASE("a function is told when its time ends, at that microsecond", "[calls][ends]") {
  Rig rig;
  const Call call({{rig.bucket, "a"}}, {.end_by = 30s});
  const std::string text = call([&](const StopToken& stop) {
    rig.clock.advance(30s - 1us);
    CHECK_FALSE(stop.stop_requested());
    rig.clock.advance(1us);
    CHECK(stop.stop_requested());
    return "late, and not lost";
  });
  CHECK(text == "late, and not lost");
  CHECK(rig.clock.timers() == 0);
  call([&](Grants& granted, StopToken stop) {
    CHECK(granted.size() == 1);
    CHECK_FALSE(stop.stop_requested());
  });
  CHECK(rig.clock.timers() == 0);
}

TEST_CASE("a caller's stop request reaches the function", "[calls][ends]") {
  Rig rig;
  StopSource source;
  const Call call({{rig.bucket, "a"}}, {});
  call(
      [&](const StopToken& stop) {
        CHECK_FALSE(stop.stop_requested());
        source.request_stop();
        CHECK(stop.stop_requested());
      },
      source.get_token());
}

TEST_CASE("a call waits no longer than its end, and does not begin there", "[calls][ends]") {
  Rig rig;
  REQUIRE(rig.bucket.try_acquire("a", 10));
  int called = 0;
  const auto function = [&] { ++called; };
  CHECK_THROWS_AS(Call({{rig.bucket, "a", 2}}, {.end_by = 2s - 1us})(function), NotGranted);
  CHECK_THROWS_AS(Call({{rig.bucket, "a", 2}}, {.deadline = 1s, .end_by = 9s})(function),
                  NotGranted);
  rig.clock.advance(5s);
  for (const Deadline past : {Deadline(0s), Deadline(rig.clock.now() - 1us)}) {
    try {
      Call({{rig.bucket, "a"}}, {.end_by = past})(function);
      FAIL("called");
    } catch (const NotGranted& late) {
      CHECK(late.what() ==
            std::string("\"b\" was not asked: the call would begin at BackoffOptions::end_by or "
                        "later"));
    }
  }
  CHECK(called == 0);
  CHECK(rig.bucket.peek("a").remaining == 5);
  Call({{rig.bucket, "a"}}, {.end_by = 1us})(function);
  CHECK(called == 1);
}

TEST_CASE("a refused call is not retried at its end or later", "[calls][ends]") {
  Rig rig;
  const Gates gates(rig.store, "api", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope account = gates.scope("account", 1);
  const VirtualClock::AutoAdvance moving(rig.clock);
  for (const Span late : {Span{10s - 2us}, Span{10s}}) {
    for (const bool gated : {true, false}) {
      int tries = 0;
      std::vector<Claim> claims{{rig.bucket, "a"}};
      if (gated) claims.emplace_back(gates, account);
      const Call call(claims, {.end_by = 10s});
      const auto refuse = [&] {
        if (++tries == 2) return;
        rig.clock.advance(late);
        throw RateLimited(Span{1});
      };
      if (late < Span{10s}) {
        call(refuse);
        CHECK(tries == 2);
      } else {
        CHECK_THROWS_AS(call(refuse), RateLimited);
        CHECK(tries == 1);
      }
      CHECK(rig.bucket.peek("a").remaining >= 9);
    }
  }
}

TEST_CASE("a lease is renewed until the end of its call, and no longer", "[calls][ends]") {
  Rig rig;
  const Call call({{rig.jobs, "a"}}, {.end_by = 60s});
  try {
    call([&](const StopToken& stop) {
      rig.pass(60s - 1us);
      CHECK_FALSE(stop.stop_requested());
      CHECK_FALSE(rig.jobs.try_acquire("a").decision().allowed);
      rig.pass(1us);
      CHECK(stop.stop_requested());
      rig.pass(12s);  // it does not listen
      const Lease other = rig.jobs.try_acquire("a");
      CHECK(other.decision().allowed);
      return std::string("done");
    });
    FAIL("the loss is not told");
  } catch (LeaseLostWith<std::string>& lost) {
    CHECK(lost.result() == "done");
    CHECK(lost.what() == std::string("\"jobs\": the lease was lost during the call"));
    CHECK_FALSE(lost.not_settled());
  }
  CHECK(rig.renewer.size() == 0);
  call([&] { rig.pass(59s); });  // as the time counts from the call
}

TEST_CASE("a renewer that stops at a lease's end tells of the loss at its expiry",
          "[leases][ends]") {
  Rig rig;
  std::vector<LeaseId> told;
  Lease lease = rig.short_jobs.try_acquire("a");
  lease.keep_alive(rig.renewer, [&](const LeaseId& id) { told.push_back(id); });
  lease.renew_until(rig.clock.now() + 4s);
  const StopToken token = lease.lost_token();
  rig.pass(12s - 1us);  // due at 4 s, which is not before the end
  CHECK_FALSE(token.stop_requested());
  CHECK(told.empty());
  rig.pass(1us);
  CHECK(token.stop_requested());
  CHECK(told == std::vector{lease.id()});
  CHECK(lease.lost_token().stop_requested());
  Lease next = rig.short_jobs.try_acquire("a");
  next.keep_alive(rig.renewer);
  next.renew_until(rig.clock.now() + 4s + 1us);
  rig.pass(15s);
  CHECK_FALSE(next.lost());
  rig.pass(1s);
  CHECK(next.lost());
}

TEST_CASE("a lease that the store no longer has is told to the function and in the result",
          "[calls][ends]") {
  Rig rig;
  const Call call({{rig.jobs, "a"}, {rig.bucket, "a", Estimate{3}}}, {});
  const auto lose = [&](Grants& granted, const StopToken& stop) {
    rig.pass(20s);
    CHECK_FALSE(granted.lost());
    rig.jobs.reset("a");
    CHECK_FALSE(stop.stop_requested());
    rig.pass(4s);
    CHECK(stop.stop_requested());
    CHECK(granted.lost());
    CHECK(granted.get<Lease>(0).lost());
  };
  try {
    call([&](Grants& granted, const StopToken& stop) {
      lose(granted, stop);
      return Costed<int>{7, 5};
    });
    FAIL("the loss is not told");
  } catch (LeaseLostWith<int>& lost) {
    CHECK(lost.result() == 7);
    CHECK_FALSE(lost.not_settled());
  }
  CHECK(rig.bucket.peek("a").remaining ==
        8);  // what it cost beyond the estimate; the rest has drained
  try {
    call([&](Grants& granted, const StopToken& stop) {
      lose(granted, stop);
      rig.store.failure = Errc::not_connected;
      return Costed<int>{8, 5};
    });
    FAIL("the loss is not told");
  } catch (LeaseLostWith<int>& lost) {
    CHECK(lost.result() == 8);
    CHECK(lost.not_settled() == Errc::not_connected);
  }
  rig.store.failure = {};
  CHECK_THROWS_AS(call([&](Grants& granted, const StopToken& stop) -> Costed<int> {
                    lose(granted, stop);
                    throw ApiError("its own");
                  }),
                  ApiError);
}

TEST_CASE("a lease that nobody renews is lost at its expiry", "[calls][ends]") {
  Rig rig;
  const auto outlive = [&](Lease& lease, const StopToken& stop) {
    rig.clock.advance(12s - 1us);
    CHECK_FALSE(stop.stop_requested());
    rig.clock.advance(1us);
    CHECK(stop.stop_requested());
    CHECK(lease.lost());
  };
  CHECK_THROWS_AS(guarded(rig.short_jobs, "a", 1, 0s, outlive), LeaseLost);
  const auto renew = [&](Lease& lease, const StopToken& stop) {
    for (int i = 0; i < 5; ++i) {
      rig.clock.advance(11s);
      CHECK(lease.renew());
    }
    CHECK_FALSE(stop.stop_requested());
  };
  guarded(rig.short_jobs, "a", 1, 0s, renew);
  const auto release = [&](Lease& lease) {
    CHECK(lease.release());
    rig.clock.advance(1h);
    return 3;
  };
  CHECK(guarded(rig.short_jobs, "a", 1, 0s, release) == 3);
  const auto by_hand = [&](Lease& lease, const StopToken& stop) {
    rig.short_jobs.reset("a");
    CHECK_FALSE(lease.renew());
    CHECK(stop.stop_requested());
  };
  CHECK_THROWS_AS(guarded(rig.short_jobs, "a", 1, 0s, by_hand), LeaseLost);
  CHECK(rig.clock.timers() == 0);
}

TEST_CASE("on a real clock, a thread tells the function of its end", "[calls][ends][realtime]") {
  const auto store = make_memory_store();
  LeaseRenewer renewer(store->clock());
  const ConcurrencyLimiter jobs(*store, "jobs", 1, {.ttl = 60s, .renewer = &renewer});
  const ConcurrencyLimiter brief(*store, "brief", 1, {.ttl = 5ms});
  const Call call({{jobs, "a"}}, {.end_by = 5ms});
  const auto listen = [](const StopToken& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  };
  call(listen);
  CHECK_THROWS_AS(Call({{brief, "a"}}, {})(listen), LeaseLost);
  Call({{jobs, "a"}}, {.end_by = 1h})([](const StopToken&) {});  // does not wait for the hour
}

}  // namespace sluice::test
