// What the holder of a lease believes, while answers are on their way and the server's clock is
// another one: lost() is true before anybody else may hold the place. On every store.
// Threading: one thread, but where a renewer has its own.
#include <array>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/distant_store.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::DistantStore;
using sluice::test::for_each_store;
using sluice::test::Stores;
using sluice::test::Trip;

namespace {

/// A client whose clock is not the server's. Times count from its start.
struct Client {
  Client(Store& server, VirtualClock& server_clock) : store(here, server, server_clock) {}

  VirtualClock here;
  DistantStore store;
  const Time start = here.now();

  [[nodiscard]] Span now() const { return here.now() - start; }
  void at(Span instant) { here.set(start + instant); }
  /// The lease is lost from this instant on, and not before.
  void check_lost_from(const Lease& lease, Span instant) {
    REQUIRE(now() < instant);
    at(instant - 1us);
    CHECK_FALSE(lease.lost());
    at(instant);
    CHECK(lease.lost());
  }
  /// The server grants the place to somebody else from this instant on, and not before.
  void check_free_from(const ConcurrencyLimiter& jobs, Span instant) {
    REQUIRE(now() < instant);
    store.next = {};
    at(instant - 1us);
    CHECK_FALSE(jobs.peek("a"));
    at(instant);
    CHECK(jobs.peek("a"));
  }
};

/// Each store, with a server's clock that agrees with the client's, or does not.
void for_each_server(const std::function<void(Client& client)>& body, Stores stores = Stores::all) {
  for (const Span ahead :
       {Span{0}, Span{1us}, Span{-3s}, Span{61s}, Span{-61s}, Span{1h}, Span{-1h}}) {
    for_each_store(
        [&](Store& server, VirtualClock& server_clock) {
          CAPTURE(ahead);
          Client client(server, server_clock);
          client.store.step_server(ahead);
          body(client);
        },
        stores);
  }
}

}  // namespace

TEST_CASE("a holder counts its TTL from when it asked, however long the trip was",
          "[leases][C-031][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    client.store.next = {.there = 2s, .back = 3s};
    const Lease lease = jobs.try_acquire("a");
    REQUIRE(lease);
    CHECK(client.now() == 5s);
    CHECK(lease.expires_at() == lease.decision().at + 10s);
    client.check_lost_from(lease, 10s);
    client.check_free_from(jobs, 12s);
  });
}

TEST_CASE("a grant whose answer took a whole TTL is a lease that is lost", "[leases][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    client.store.next = {.there = 0s, .back = 10s};
    const Lease lease = jobs.try_acquire("a");
    CHECK(lease);
    CHECK(lease.lost());
    client.store.next = {};
    CHECK(jobs.try_acquire("a").decision().allowed);
  });
}

TEST_CASE("a renewal counts from when it was asked for, also if the answer comes late",
          "[leases][C-034]") {
  for_each_server([](Client& client) {
    for (const Trip trip : {Trip{0s, 3s}, Trip{3s, 0s}, Trip{1s, 2s}}) {
      const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
      const Span from = client.now();
      Lease lease = jobs.try_acquire("a");
      client.at(from + 5s);
      client.store.next = trip;
      CHECK(lease.renew());
      CHECK(client.now() == from + 8s);
      CHECK(lease.expires_at() == client.store.server_now() - trip.back + 10s);
      client.check_lost_from(lease, from + 15s);
      if (trip.there > 0s) {
        client.check_free_from(jobs, from + 15s + trip.there);
      } else {
        client.store.next = {};
        CHECK(jobs.peek("a"));
      }
      client.store.next = {};
    }
  });
}

TEST_CASE("a lease that runs out while it is renewed is lost until the answer says otherwise",
          "[leases][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    Lease lease = jobs.try_acquire("a");
    std::vector<std::pair<Span, bool>> seen;
    struct Look {
      Client& client;
      const Lease& lease;
      std::vector<std::pair<Span, bool>>& seen;
      TimerCallback timer{[](void* self) noexcept {
                            auto& look = *static_cast<Look*>(self);
                            look.seen.emplace_back(look.client.now(), look.lease.lost());
                          },
                          this};
    };
    Look before{client, lease, seen};
    Look then{client, lease, seen};
    client.here.set_timer(before.timer, client.start + 10s - 1us);
    client.here.set_timer(then.timer, client.start + 10s);
    client.at(9s);
    client.store.next = {.there = 0s, .back = 4s};
    CHECK(lease.renew());
    CHECK(seen == std::vector<std::pair<Span, bool>>{{10s - 1us, false}, {10s, true}});
    client.check_lost_from(lease, 19s);
    client.store.next = {};
    CHECK(jobs.peek("a"));
  });
}

TEST_CASE("a renewal whose answer took a whole TTL is none", "[leases][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    Lease lease = jobs.try_acquire("a");
    client.at(5s);
    client.store.next = {.there = 0s, .back = 10s};
    CHECK_FALSE(lease.renew());
    CHECK(lease.lost());
    client.store.next = {};
    CHECK(jobs.try_acquire("a").decision().allowed);
  });
}

TEST_CASE("a renewal whose answer is lost puts nothing off for the holder", "[leases][C-034]") {
  for_each_server([](Client& client) {
    client.store.patience = 1s;
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    Lease lease = jobs.try_acquire("a");
    client.at(5s);
    for (const auto lost : {Trip::Lost::question, Trip::Lost::answer}) {
      client.store.next = {.lost = lost};
      std::error_code error;
      CHECK_FALSE(lease.renew(error));
      CHECK(error == Errc::unknown);
    }
    client.check_lost_from(lease, 10s);
    client.check_free_from(jobs, 16s);  // the second question arrived at 6 s
  });
}

TEST_CASE("asking again under a live id prolongs nothing that the holder believes",
          "[leases][C-030][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    const LeaseId id{7, 7};
    std::vector<Lease> leases;
    const auto ask_at = [&](Span instant, const Trip& trip) -> const Lease& {
      client.at(instant);
      client.store.next = trip;
      leases.push_back(jobs.try_acquire("a", 1, id));
      return leases.back();
    };
    leases.reserve(4);
    const Lease& first = ask_at(0s, {});
    const Lease& again = ask_at(4s, {.there = 0s, .back = 2s});
    const Lease& slowly = ask_at(6s, {.there = 1s, .back = 1s});
    CHECK(again.expires_at() == first.expires_at());
    CHECK(slowly.expires_at() == first.expires_at());
    CHECK(slowly.fence() == first.fence());
    client.check_lost_from(slowly, 9s);  // 3 s were left, counted from before it asked
    CHECK_FALSE(again.lost());
    client.at(10s - 1us);
    CHECK_FALSE(first.lost());
    CHECK_FALSE(again.lost());
    client.at(10s);
    CHECK(first.lost());
    CHECK(again.lost());
    client.store.next = {};
    CHECK(jobs.peek("a"));
  });
}

TEST_CASE("a plan that is asked again under its id is adopted from when it was first asked",
          "[leases][C-034]") {
  for_each_server([](Client& client) {
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    const LeaseId id{7, 7};
    const Step step = jobs.acquire_step("a", id);
    std::array<Word, ConcurrencyLimiter::output> told{};
    const Time asked_at = client.here.now();
    Decision granted;
    std::error_code error;
    client.store.patience = 4s;
    for (const auto lost : {Trip::Lost::answer, Trip::Lost::nothing}) {
      client.store.next = {.lost = lost};
      granted = decide(client.store, Plan(step).idempotent({1, 2}), error, {}, told);
    }
    REQUIRE_FALSE(error);
    const Lease lease = jobs.adopt("a", id, 1, granted, told, asked_at);
    client.check_lost_from(lease, 10s);
    CHECK(jobs.peek("a"));
  });
}

TEST_CASE("while the server sits out a clock that was set back, a holder counts a TTL and no more",
          "[leases][C-034][C-035]") {
  for (const Span step : {Span{30s}, Span{60s}}) {
    for_each_store([&](Store& server, VirtualClock& server_clock) {
      CAPTURE(step);
      Client client(server, server_clock);
      LeaseRenewer renewer(client.here, Renewing::by_hand);
      const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
      CHECK(jobs.try_acquire("a").release());  // the state's last change
      client.store.step_server(-step);
      Lease lease = jobs.try_acquire("a");
      CHECK(lease.expires_at() == client.store.server_now() + step + 10s);
      lease.keep_alive(renewer);
      CHECK(renewer.renew_due() == client.start + Span{10s} / 3);
      client.at(1s);
      client.store.step_server(step);  // the clock is right again
      client.check_lost_from(lease, 10s);
      CHECK(jobs.peek("a"));
    });
  }
}

TEST_CASE("a server's clock that is set far back keeps the lease, and tells when it ends anew",
          "[leases][C-034][C-035]") {
  for_each_store([&](Store& server, VirtualClock& server_clock) {
    Client client(server, server_clock);
    LeaseRenewer renewer(client.here, Renewing::by_hand);
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s});
    Lease lease = jobs.try_acquire("a");
    client.at(2s);
    client.store.step_server(-90s);
    CHECK(lease.renew());
    // The lease's time goes on from where it stood, at 0 s.
    CHECK(lease.expires_at() == client.store.server_now() + 10s);
    lease.keep_alive(renewer);
    client.at(2s + 4s);
    CHECK(renewer.renew_due() == client.here.now() + Span{10s} / 3);
    CHECK(lease.expires_at() == client.store.server_now() + 10s);
    client.check_lost_from(lease, 16s);
    CHECK(jobs.peek("a"));
  });
}

TEST_CASE("who has run out is told before a renewer waits for the answers about others",
          "[leases][C-034]") {
  for_each_server([](Client& client) {
    LeaseRenewer renewer(client.here, Renewing::by_hand);
    std::vector<Span> told;
    const auto note = [&](const LeaseId&) { told.push_back(client.now()); };
    const ConcurrencyLimiter brief(client.store, "brief", 1,
                                   {.ttl = 3s, .renewer = &renewer, .on_lost = note});
    const ConcurrencyLimiter jobs(client.store, "jobs", 1,
                                  {.ttl = 12s, .renewer = &renewer, .on_lost = note});
    const Lease first = brief.try_acquire("a");
    const Lease second = jobs.try_acquire("a");
    client.store.next = {.back = 2s};
    client.at(5s);
    CHECK(renewer.renew_due() == client.start + 9s);  // it blocks until the answer is there
    CHECK(client.now() == 7s);
    CHECK(told == std::vector<Span>{5s});
    CHECK_FALSE(second.lost());
  });
}

TEST_CASE("who waited for a place counts the TTL from the last time it asked", "[leases][C-034]") {
  for_each_server([](Client& client) {
    const VirtualClock::AutoAdvance moving(client.here);
    LeaseRenewer renewer(client.here, Renewing::by_hand);
    const ConcurrencyLimiter jobs(client.store, "jobs", 1, {.ttl = 10s, .renewer = &renewer});
    const ConcurrencyLimiter others(client.store, "jobs", 1, {.ttl = 3s});
    const Lease dead = others.try_acquire("a");
    client.store.next = {.there = 1s, .back = 1s};
    const Lease lease = jobs.acquire("a", 1, client.here.now() + 1min);
    REQUIRE(lease);
    CHECK(dead.lost());
    CHECK(renewer.size() == 1);
    const Time granted_at = lease.decision().at - (client.store.server_now() - client.here.now());
    CHECK(client.store.last_asked() == granted_at - 1s);
    client.check_lost_from(lease, granted_at - client.start + 9s);
    client.check_free_from(jobs, granted_at - client.start + 10s);
  });
}
