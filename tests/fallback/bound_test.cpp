// How much is admitted over outages when every client decides alone meanwhile (S7): random
// histories of a fleet in virtual time.
#include <memory>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/testing/invariants.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

struct Client {
  Client(VirtualClock& clock, Store& server, Word clients, const Quota& quota, Rng& rng)
      : primary(server),
        local(make_virtual_store(clock)),
        breaker(clock, {.failures = 2, .longest_pause = 2s, .rng = &rng},
                [this, &clock](State, State to) {
                  if (to == State::closed) alone += clock.now() - alone_since;
                  if (to == State::open && !is_alone) alone_since = clock.now();
                  is_alone = to != State::closed;
                }),
        store(primary, breaker, FailurePolicy::local(*local, clients)),
        bucket(store, "api", quota) {}

  FaultyStore primary;
  std::unique_ptr<Store> local;
  Time alone_since{};
  Span alone{0};
  bool is_alone = false;
  CircuitBreaker breaker;
  FallbackStore store;
  TokenBucket bucket;
};

}  // namespace

TEST_CASE("a store that loses its state adds its capacity and what it had granted ahead",
          "[fallback][invariants]") {
  VirtualClock clock;
  const Quota quota = Quota::per_second(10).burst(5);
  testing::History history;
  const auto live = [&](const StoreHandle& store, Span time) {
    const TokenBucket bucket(store, "api", quota);
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(50ms)) {
      for (;;) {
        const Reservation grant = bucket.reserve("all", 1, 20s);
        if (!grant) break;
        history.push_back(testing::note(grant));
      }
    }
  };
  live(make_virtual_store(clock), 30s);
  const Time crash = clock.now();
  live(make_virtual_store(clock), 30s);
  std::erase_if(history, [&](const auto& call) { return call.effective > crash + 30s; });
  const auto calls = static_cast<Word>(history.size());
  CHECK(calls <= 5 + 10 * 60 + 5 + 10 * 20 + 1);
  CHECK(calls > 5 + 10 * 60 + 5 + 10 * 19);
  CHECK_FALSE(check_rate(history, {5 + 5 + 10 * 20 + 1, 10, 1s}));
}

TEST_CASE("clients that decide alone for a while add their shares and no more (S7)",
          "[fallback][invariants][C-036]") {
  Random random("clients that decide alone for a while add their shares and no more (S7)");
  CAPTURE(random.repeat());
  std::size_t degraded = 0;
  for (std::size_t round = 0; round < scaled(60, 6); ++round) {
    const Word clients = random.between(1, 8);
    const Word capacity = random.between(clients, 60);
    const Word rate = random.between(1, 40);
    const Word outages = random.between(1, 4);
    VirtualClock clock;
    const auto server = make_virtual_store(clock);
    const auto quota = Quota::per_second(rate).burst(capacity);
    std::vector<std::unique_ptr<Client>> fleet;
    for (Word i = 0; i < clients; ++i) {
      fleet.push_back(std::make_unique<Client>(clock, *server, clients, quota, random));
    }
    const Time start = clock.now();
    Word admitted = 0;
    Word alone = 0;  // decided locally
    const auto live = [&](Span time) {
      for (const Time end = clock.now() + time; clock.now() < end;) {
        clock.advance(Span{random.between(0, 20'000)});
        Client& client = *fleet[random.below(fleet.size())];
        const Decision decision = client.bucket.try_acquire("all");
        admitted += decision.allowed ? 1 : 0;
        alone += decision.allowed && decision.source == Source::fallback ? 1 : 0;
      }
    };
    live(2s);
    for (Word i = 0; i < outages; ++i) {
      for (const auto& client : fleet) client->primary.fail_all(dead);
      live(Span{random.between(0, 5'000'000)});
      for (const auto& client : fleet) client->primary.heal();
      live(5s);
    }
    // Seconds that clients were alone; a failure before a trip counts as a moment.
    Word alone_us = 0;
    Word failures = 0;
    for (const auto& client : fleet) {
      alone_us += client->alone.count();
      if (client->is_alone) alone_us += (clock.now() - client->alone_since).count();
      failures += static_cast<Word>(client->store.stats().failures);
    }
    const Word elapsed_us = (clock.now() - start).count();
    const Word shares = clients * (capacity / clients);
    const Word whole = capacity + elapsed_us * rate / 1'000'000 + 1;
    const Word extra = outages * shares + alone_us * rate / clients / 1'000'000 + failures;
    CAPTURE(clients, capacity, rate, outages, alone);
    CHECK(admitted <= whole + extra);
    CHECK(alone <= extra);
    degraded += static_cast<std::size_t>(alone);
  }
  CHECK(degraded > 0);
}

}  // namespace sluice::test
