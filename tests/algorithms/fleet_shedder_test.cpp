// The fleet shedder: what is kept for whom, on every store in virtual time.
// Threading: single-threaded.
#include "sluice/limiters/fleet_shedder.hpp"

#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::for_each_store;

namespace {

std::vector<Tier> three_tiers() {
  return {{"critical", FleetShare::percent(100)},
          {"normal", FleetShare::per_mille(850)},
          {"batch", FleetShare::places(5)}};
}

}  // namespace

TEST_CASE("a share of the fleet is kept for more critical work, and all classes are counted",
          "[fleet_shedder][leases][C-030][C-032]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const FleetShedder fleet(store, "api", 10, three_tiers(), {.ttl = 10s});
    std::vector<Lease> held;
    const auto acquire = [&](std::string_view tier) {
      held.push_back(fleet.try_acquire(tier));
      return static_cast<bool>(held.back());
    };
    for (int i = 0; i < 3; ++i) CHECK(acquire("batch"));
    for (int i = 0; i < 2; ++i) CHECK(acquire("critical"));
    CHECK_FALSE(acquire("batch"));
    CHECK(held.back().decision().limit == 5);
    CHECK(fleet.tier_of(held.back().decision()) == "batch");
    for (int i = 0; i < 3; ++i) CHECK(acquire("normal"));
    CHECK_FALSE(acquire("normal"));
    const Decision refused = held.back().decision();
    CHECK(fleet.tier_of(refused) == "normal");
    CHECK(refused.part == 1);
    CHECK(refused.remaining == 0);
    CHECK(refused.retry_after == 10s);
    CHECK(fleet.peek("critical").remaining == 2);
    std::error_code error;
    CHECK(fleet.peek("critical", 2, error).allowed);
    CHECK_FALSE(fleet.peek("critical", 3, error).allowed);
    CHECK_FALSE(error);
    CHECK_FALSE(fleet.peek("critical", 11, error).allowed);
    CHECK(error == Errc::cost_exceeds_capacity);
    CHECK_FALSE(fleet.peek("nobody", 1, error).allowed);
    CHECK(error == Errc::invalid_argument);
    CHECK(acquire("critical"));
    CHECK(fleet.peek("critical", error).allowed);
    CHECK(acquire("critical"));
    CHECK_FALSE(acquire("critical"));
    CHECK(fleet.tier_of(held.back().decision()) == "critical");
    CHECK(fleet.tier_of(Decision{.part = 7}).empty());

    held.clear();
    CHECK(fleet.peek("batch").remaining == 5);
    Lease dead = fleet.try_acquire("critical", 10);
    CHECK_FALSE(fleet.try_acquire("critical").decision().allowed);
    clock.advance(10s);
    CHECK(fleet.try_acquire("batch", 5).decision().allowed);
    CHECK_FALSE(dead.release());
  });
}

TEST_CASE("capacity may change while leases are held", "[fleet_shedder]") {
  for_each_store([](Store& store, VirtualClock&) {
    const std::vector<Tier> tiers{{"critical", FleetShare::percent(100)},
                                  {"rest", FleetShare::percent(50)}};
    const FleetShedder large(store, "api", 10, tiers);
    const FleetShedder small(store, "api", 4, tiers);
    Lease lease = large.try_acquire("rest", 4);
    CHECK_FALSE(small.try_acquire("critical").decision().allowed);
    CHECK_FALSE(small.try_acquire("rest").decision().allowed);
    CHECK(lease.release());
    CHECK(small.try_acquire("rest", 2).decision().allowed);
    CHECK(large.peek("critical").remaining == 10);
  });
}

TEST_CASE("an unknown tier and tiers out of order are errors", "[fleet_shedder]") {
  for_each_store([](Store& store, VirtualClock&) {
    const FleetShedder fleet(store, "api", 10, three_tiers());
    CHECK_THROWS_AS(fleet.try_acquire("nightly"), std::invalid_argument);
    CHECK_THROWS_AS(fleet.peek("nightly"), std::invalid_argument);
    CHECK_THROWS_AS(fleet.peek_step("nightly", fleet.key()), std::invalid_argument);
    std::error_code error;
    CHECK_FALSE(fleet.try_acquire("nightly", error).decision().allowed);
    CHECK(error == Errc::invalid_argument);
    CHECK_FALSE(fleet.try_acquire("batch", 6, error).decision().allowed);
    CHECK(error == Errc::cost_exceeds_capacity);
    CHECK_FALSE(decide(store, fleet.peek_step("batch", fleet.key(), 6), error).allowed);
    CHECK(error == Errc::cost_exceeds_capacity);
    CHECK(fleet.share_of("normal") == 8);
    CHECK(fleet.peek("critical").remaining == 10);

    const auto make = [&](Word capacity, std::vector<Tier> tiers) {
      return FleetShedder(store, "api", capacity, std::move(tiers));
    };
    const FleetShare all = FleetShare::percent(100);
    const FleetShare half = FleetShare::percent(50);
    CHECK_THROWS_AS(make(10, {}), std::invalid_argument);
    CHECK_THROWS_AS(make(0, {{"a", all}}), std::invalid_argument);
    CHECK_THROWS_AS(make(10, {{"", all}}), std::invalid_argument);
    CHECK_THROWS_AS(make(10, {{"a", all}, {"a", half}}), std::invalid_argument);
    CHECK_THROWS_AS(make(10, {{"a", half}, {"b", all}}), std::invalid_argument);
    CHECK_THROWS_AS(make(1, {{"a", all}, {"b", half}}), std::invalid_argument);
    CHECK_THROWS_WITH(make(10, {{"a", half}, {"b", all}}),
                      "FleetShedder: the share of \"b\" must be 1 to 5 places, which is the share "
                      "before it, got 10");
    CHECK_THROWS_WITH(make(10, {{"a", FleetShare::places(11)}}),
                      "FleetShedder: the share of \"a\" must be 1 to 10 places, which is the "
                      "capacity, got 11");
    CHECK_THROWS_AS(make(10, std::vector<Tier>(17, {"a", all})), std::invalid_argument);
    CHECK_THROWS_AS(FleetShare::percent(0), std::invalid_argument);
    CHECK_THROWS_AS(FleetShare::percent(101), std::invalid_argument);
    CHECK_THROWS_AS(FleetShare::per_mille(-1), std::invalid_argument);
    CHECK_THROWS_AS(FleetShare::places(0), std::invalid_argument);
  });
}

TEST_CASE("shares are whole places, rounded down, without overflow", "[fleet_shedder]") {
  CHECK(FleetShare::percent(80).of(400) == 320);
  CHECK(FleetShare::per_mille(333).of(10) == 3);
  CHECK(FleetShare::per_mille(999).of(word_limit) == 4'499'096'027'743'125);
  CHECK(FleetShare::percent(100).of(word_limit) == word_limit);
  CHECK(FleetShare::places(7).of(400) == 7);
}

TEST_CASE("a blocked fleet admits no tier until its time", "[leases][fleet]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const FleetShedder fleet(
        store, "api", 10,
        {{"critical", FleetShare::percent(100)}, {"sheddable", FleetShare::percent(50)}});
    const Lease held = fleet.try_acquire("critical");
    REQUIRE(held);
    CHECK(fleet.block(10s).remaining == 0);
    CHECK(fleet.peek("critical").retry_after == 10s);
    CHECK(fleet.peek("sheddable").retry_after == 10s);
    clock.advance(10s);
    CHECK(fleet.try_acquire("sheddable").decision().allowed);
    std::error_code error;
    CHECK_FALSE(fleet.block(Span{-1}, error).allowed);
    CHECK(error == Errc::invalid_argument);
  });
}
