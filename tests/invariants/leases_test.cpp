// Histories of leases: holders that work, renew, die, come back late. Threading: single-threaded.
#include <array>
#include <deque>
#include <queue>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

/// How places are asked for: by a class of work, of which the first may use the whole limit.
struct Places {
  std::function<Lease(std::size_t tier, Word weight)> acquire;
  std::function<Decision()> peek;
  std::vector<Word> shares;
  Span ttl;
  std::function<Decision(Span)> block;
};

/// One life of holders; each event of a lease is also one of the history of requests, where it
/// ends what refusals were promised.
class Holders {
 public:
  Holders(VirtualClock& clock, Random& random, const Places& places)
      : clock_(clock), random_(random), places_(places) {}

  void live(std::size_t callers, std::size_t wakings) {
    std::vector<std::optional<Held>> held(callers);
    std::priority_queue<std::pair<Time, std::size_t>, std::vector<std::pair<Time, std::size_t>>,
                        std::greater<>>
        agenda;
    for (std::size_t i = 0; i < callers; ++i) agenda.push({clock_.now(), i});
    for (std::size_t i = 0; i < wakings; ++i) {
      const auto [at, caller] = agenda.top();
      agenda.pop();
      clock_.set(at);
      if (random_.one_in(40)) block();
      agenda.push({held[caller] ? go_on(held[caller]) : ask(held[caller]), caller});
    }
  }

  [[nodiscard]] const std::vector<LeaseEvent>& leases() const { return leases_; }
  [[nodiscard]] const Life& requests() const { return life_; }

 private:
  struct Held {
    Lease lease;
    std::uint64_t number;
  };

  /// Nobody is granted a place meanwhile, and what is held stays held.
  void block() {
    const Span span{random_.between(1, places_.ttl.count())};
    blocked_until_ = std::max(blocked_until_, clock_.now() + span);
    CHECK(places_.block(span).allowed);
    CHECK(places_.peek().retry_after >= blocked_until_ - clock_.now());
    life_.history.push_back({.at = clock_.now(), .cost = 0, .allowed = true});
  }

  /// Asks for a place; returns when to wake up.
  Time ask(std::optional<Held>& held) {
    const auto tier = random_.below(places_.shares.size());
    const Word share = places_.shares[tier];
    const Word weight = random_.one_in(3) ? random_.between(1, share) : 1;
    Looked looked;
    looked.before = places_.peek();
    Lease lease = places_.acquire(tier, weight);
    looked.answer = lease.decision();
    looked.after = places_.peek();
    // Requests of one weight in one tier are the same request.
    life_.history.push_back(note(looked.answer, weight * 16 + static_cast<Word>(tier)));
    if (!lease) {
      life_.refusals.push_back(looked);
      const Span hint = looked.answer.retry_after;
      return clock_.now() + (random_.one_in(4)   ? hint - Span{1}
                             : random_.one_in(3) ? Span{random_.between(0, hint.count())}
                                                 : hint);
    }
    CHECK(clock_.now() >= blocked_until_);
    leases_.push_back({clock_.now(), LeaseEvent::Act::acquired, ++serial_, weight,
                       lease.expires_at(), lease.fence(), share});
    held.emplace(Held{std::move(lease), serial_});
    return clock_.now() + work();
  }

  /// Gives back, renews, or dies: then the lease is kept, to come back late.
  Time go_on(std::optional<Held>& held) {
    const auto note_act = [&](LeaseEvent::Act act) {
      leases_.push_back({clock_.now(), act, held->number, 0, held->lease.expires_at()});
      life_.history.push_back({.at = clock_.now(), .cost = 0, .allowed = true});
    };
    if (random_.one_in(3)) {
      if (held->lease.renew()) {
        note_act(LeaseEvent::Act::renewed);
        return clock_.now() + work();
      }
    } else if (random_.one_in(3)) {
      dead_.push_back(std::move(*held));
    } else {
      held->lease.release();
      note_act(LeaseEvent::Act::released);
    }
    held.reset();
    if (!dead_.empty() && random_.one_in(3)) {
      Held late = std::move(dead_.front());
      dead_.pop_front();
      late.lease.release();
      held.emplace(std::move(late));
      note_act(LeaseEvent::Act::released);
      held.reset();
    }
    return clock_.now();
  }

  /// Mostly shorter than the TTL, sometimes as long to the tick, or longer.
  Span work() {
    if (random_.one_in(8)) return places_.ttl + Span{random_.between(-1, 1)};
    return Span{random_.between(0, places_.ttl.count() * 5 / 4)};
  }

  VirtualClock& clock_;
  Random& random_;
  const Places& places_;
  std::vector<LeaseEvent> leases_;
  Life life_;
  std::deque<Held> dead_;
  Time blocked_until_{};
  std::uint64_t serial_ = 0;
};

/// Lives, and what must hold then; afterwards the places of the dead are back within the TTL.
std::size_t check_holders(VirtualClock& clock, Random& random, const Places& places) {
  Holders holders(clock, random, places);
  holders.live(6, 300);
  const Word limit = places.shares.front();
  check_kept(check_leases(holders.leases(), limit));
  const std::size_t proven = check_life(holders.requests(), limit);
  clock.advance(places.ttl);
  const Decision d = places.peek();
  CHECK(d.allowed);
  CHECK(d.remaining == limit);
  return proven;
}

/// Holders of two limiters who do the same, and somebody who keeps asking the second one in vain.
class Polled {
 public:
  /// Asks for a lease, or what it would be, of limiter 0 or 1.
  using Acquire = std::function<Lease(std::size_t which, std::size_t tier, Word weight)>;
  using Look = std::function<Decision(std::size_t which, std::size_t tier, Word weight)>;

  Polled(VirtualClock& clock, Random& random, Acquire acquire, Look peek, std::vector<Word> shares)
      : clock_(clock),
        random_(random),
        acquire_(std::move(acquire)),
        look_(std::move(peek)),
        shares_(std::move(shares)) {}

  /// Returns how often somebody asked in vain.
  std::size_t live(std::size_t requests, Span ttl) {
    for (std::size_t i = 0; i < requests; ++i) {
      clock_.advance(Span{random_.between(0, ttl.count() / 3)});
      poll();
      if (!held_.empty() && random_.one_in(2)) {
        go_on();
      } else {
        ask();
      }
      poll();
    }
    return in_vain_;
  }

 private:
  void poll() {
    for (Word times = random_.between(0, 2); times > 0; --times) {
      const auto [tier, weight] = request();
      if (look_(1, tier, weight).allowed) continue;
      CHECK_FALSE(acquire_(1, tier, weight));
      ++in_vain_;
    }
  }

  void ask() {
    const auto [tier, weight] = request();
    std::array<Lease, 2> both{acquire_(0, tier, weight), acquire_(1, tier, weight)};
    REQUIRE(both[0].decision() == both[1].decision());
    if (!both[0]) return;
    CHECK(both[0].fence() == both[1].fence());
    held_.push_back(std::move(both));
  }

  void go_on() {
    const std::size_t which = random_.below(held_.size());
    auto& both = held_[which];
    const bool renews = random_.one_in(2);
    if (renews) CHECK(both[0].renew() == both[1].renew());
    if (renews && both[0]) return;
    CHECK(both[0].release() == both[1].release());
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::pair<std::size_t, Word> request() {
    const auto tier = random_.below(shares_.size());
    return {tier, random_.between(1, shares_[tier])};
  }

  VirtualClock& clock_;
  Random& random_;
  Acquire acquire_;
  Look look_;
  std::vector<Word> shares_;
  std::vector<std::array<Lease, 2>> held_;
  std::size_t in_vain_ = 0;
};

}  // namespace

TEST_CASE("histories of leases never weigh more than the limit, on every store",
          "[invariants][leases][S3][S5][L1]") {
  Random random("histories of leases never weigh more than the limit, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives() || (proven == 0 && i < 50); ++i) {
      const Word limit = random.between(1, 6);
      const Span ttl{random.between(1'000, 100'000)};
      const ConcurrencyLimiter jobs(store, "jobs" + std::to_string(i), limit,
                                    {.ttl = ttl, .rng = &random});
      const Places places{[&](std::size_t, Word weight) { return jobs.try_acquire("k", weight); },
                          [&] { return jobs.peek("k", 1); },
                          {limit},
                          ttl,
                          [&](Span span) { return jobs.block("k", span); }};
      proven += check_holders(clock, random, places);
    }
    CHECK(proven > 0);
  });
}

TEST_CASE("histories of a fleet keep each tier within its share, on every store",
          "[invariants][leases][fleet_shedder][S3][S5][L1]") {
  Random random("histories of a fleet keep each tier within its share, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t proven = 0;
    for (std::size_t i = 0; i < lives() || (proven == 0 && i < 50); ++i) {
      const Word capacity = random.between(3, 9);
      const std::vector<Word> shares{capacity, capacity - 1, random.between(1, capacity - 1)};
      std::vector<Tier> tiers;
      for (const Word share : shares) {
        tiers.push_back({"tier" + std::to_string(tiers.size()), FleetShare::places(share)});
      }
      const Span ttl{random.between(1'000, 100'000)};
      const FleetShedder fleet(store, "fleet" + std::to_string(i), capacity, tiers,
                               {.ttl = ttl, .rng = &random});
      const Places places{[&](std::size_t tier, Word weight) {
                            return fleet.try_acquire(tiers[tier].name, weight);
                          },
                          [&] { return fleet.peek(tiers[0].name, 1); }, shares, ttl,
                          [&](Span span) { return fleet.block(span); }};
      proven += check_holders(clock, random, places);
    }
    CHECK(proven > 0);
  });
}

TEST_CASE("how often one asks for leases in vain changes no later answer, on every store",
          "[invariants][leases][S5]") {
  Random random("how often one asks for leases in vain changes no later answer, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t in_vain = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const Word limit = random.between(1, 6);
      const Span ttl{random.between(1'000, 100'000)};
      const ConcurrencyLimiter jobs(store, "jobs" + std::to_string(i), limit,
                                    {.ttl = ttl, .rng = &random});
      const std::array<std::string, 2> keys{"plain", "polled"};
      Polled polled(
          clock, random,
          [&](std::size_t which, std::size_t, Word weight) {
            return jobs.try_acquire(keys[which], weight);
          },
          [&](std::size_t which, std::size_t, Word weight) {
            return jobs.peek(keys[which], weight);
          },
          {limit});
      in_vain += polled.live(100, ttl);
    }
    CHECK(in_vain > 0);
  });
}

TEST_CASE("how often one asks a fleet in vain changes no later answer, on every store",
          "[invariants][leases][fleet_shedder][S5]") {
  Random random("how often one asks a fleet in vain changes no later answer, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t in_vain = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      const Word capacity = random.between(3, 9);
      const std::vector<Word> shares{capacity, random.between(1, capacity)};
      const std::vector<Tier> tiers{{"critical", FleetShare::places(shares[0])},
                                    {"batch", FleetShare::places(shares[1])}};
      const LeaseOptions options{.ttl = Span{random.between(1'000, 100'000)}, .rng = &random};
      const std::array<FleetShedder, 2> fleets{
          FleetShedder(store, "plain" + std::to_string(i), capacity, tiers, options),
          FleetShedder(store, "polled" + std::to_string(i), capacity, tiers, options)};
      Polled polled(
          clock, random,
          [&](std::size_t which, std::size_t tier, Word weight) {
            return fleets[which].try_acquire(tiers[tier].name, weight);
          },
          [&](std::size_t which, std::size_t tier, Word weight) {
            return fleets[which].peek(tiers[tier].name, weight);
          },
          shares);
      in_vain += polled.live(100, options.ttl);
    }
    CHECK(in_vain > 0);
  });
}
