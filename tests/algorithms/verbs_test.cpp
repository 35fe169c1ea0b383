// Which limiter has which verb, as the table of docs/composing.md says, and that a refusal has
// nothing to give back. Threading: single-threaded.
#include <array>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "sluice/sluice.hpp"
#include "tests/algorithms/charged.hpp"
#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// What a row of the table says, column by column: its ticks, its footnotes and the names in it.
using Row = std::array<std::set<std::string>, 6>;

std::set<std::string> matches(const std::string& text, const std::regex& what) {
  std::set<std::string> found;
  for (std::sregex_iterator each(text.begin(), text.end(), what), end; each != end; ++each) {
    found.insert((*each)[1]);
  }
  return found;
}

/// The rows by the names of their limiters.
std::map<std::string, Row> table() {
  std::ifstream file(std::filesystem::path(SLUICE_SOURCE) / "docs/composing.md");
  std::string line;
  while (std::getline(file, line) && line != "## The verbs, by algorithm") continue;
  const std::regex cells(R"(\|([^|]*))");
  const std::regex entries(R"(`?(\b\w+(?=`)|✓|¹|²|³|⁴))");
  std::map<std::string, Row> rows;
  while (std::getline(file, line) && !line.starts_with("##")) {
    std::sregex_iterator cell(line.begin(), line.end(), cells);
    if (cell == std::sregex_iterator()) continue;
    const std::set<std::string> limiters = matches((*cell)[1], entries);
    Row row;
    for (auto& entry : row) entry = matches((*++cell)[1], entries);
    for (const std::string& limiter : limiters) rows[limiter] = row;
  }
  return rows;
}

/// What the headers say of a limiter.
template <class L>
Row verbs() {
  Row row;
  auto& [acquire, peek, reserve, change, reset, block] = row;
  constexpr bool leases = requires(const L& l) {
    { l.try_acquire("a") } -> std::same_as<Lease>;
  };
  if constexpr (requires(const L& l) { static_cast<void>(l.try_acquire("a")); })
    acquire.insert("✓");
  if constexpr (requires(const L& l) { static_cast<void>(l.try_acquire()); }) acquire.insert("✓");
  if constexpr (requires(const L& l, Scope s) { static_cast<void>(l.pass(s)); })
    acquire.insert("pass");
  if constexpr (requires(const L& l) { static_cast<void>(l.try_acquire_up_to("a", 2)); })
    acquire.insert("¹");
  if (leases) acquire.insert("Lease");

  if constexpr (requires(const L& l) { static_cast<void>(l.peek("a")); }) peek.insert("✓");
  if constexpr (requires(const L& l) { static_cast<void>(l.peek()); }) peek.insert("✓");
  if constexpr (requires(const L& l, Scope s) { static_cast<void>(l.peek(s)); }) peek.insert("✓");

  if constexpr (requires(const L& l) {
                  l.cancel("a", std::declval<decltype(l.reserve("a", 1))&>());
                })
    reserve.insert("✓");
  if constexpr (requires(const L& l) {
                  l.cancel("a", std::declval<decltype(l.reserve("a", 1s))&>());
                })
    reserve.insert("✓");
  if constexpr (requires(const L& l) { static_cast<void>(l.borrow("a", 1, 1s)); })
    reserve.insert("²");
  if constexpr (
      requires(const L& l, Reservation r) { l.cancel("a", r); } &&
      !requires(const L& l) { static_cast<void>(l.reserve("a", 1, 1s)); })
    reserve.insert("⁴");

  if constexpr (requires(const L& l, Reservation r) { l.settle("a", r, 1); })
    change.insert("settle");
  if constexpr (requires(const L& l, Reservation r) { l.refund("a", r, 1); })
    change.insert("refund");
  if constexpr (requires(const L& l) { l.reward("a", 1); }) change.insert("reward");
  if constexpr (requires(const L& l) { l.reward(1); }) change.insert("reward");
  if constexpr (requires(const L& l) { l.penalize("a", 1); }) change.insert("penalize");
  if constexpr (requires(const L& l) { l.penalize(1); }) change.insert("penalize");
  if (leases) change.insert({"release", "renew"});

  if constexpr (requires(const L& l) { l.reset("a"); }) reset.insert("✓");
  if constexpr (requires(const L& l) { l.reset(); }) reset.insert("✓");
  if constexpr (requires(const L& l, Quota q) { l.configure("a", q); }) reset.insert("configure");
  if constexpr (requires(const L& l, RateType type) { l.configure("a", type, 1, 1s); })
    reset.insert("configure");
  if constexpr (requires(const L& l, RateType type) {
                  l.configure("a", type, 1, 1s, SpentUnits::forgotten);
                })
    reset.insert("³");
  if constexpr (requires(const L& l, Scope s) { l.open(s); }) reset.insert("open");

  if constexpr (requires(const L& l) { l.block("a", 1s); }) block.insert("✓");
  if constexpr (requires(const L& l) { l.block(1s); }) block.insert("✓");
  if constexpr (requires(const L& l, Scope s) { l.close(s, 1s); }) block.insert("close");
  return row;
}

}  // namespace

TEST_CASE("docs/composing.md says which limiter has which verb", "[verbs]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto rows = table();
  std::size_t limiters = 0;
  for_each_limiter([&](const std::string&, auto make, auto) {
    using L = decltype(make(*store));
    INFO(L::type_name);
    REQUIRE(rows.contains(L::type_name));
    CHECK(rows.at(L::type_name) == verbs<L>());
    ++limiters;
  });
  CHECK(rows.size() == limiters);
}

TEST_CASE("a refusal has nothing to give back or to settle, whoever was granted", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_charged(store, [](const auto& limiter) {
      REQUIRE(limiter.try_acquire("k", 5));
      const Decision before = limiter.peek("k");
      for (Reservation none : {limiter.reserve("k", 2), Reservation()}) {
        REQUIRE_FALSE(none.allowed);
        CHECK(none.granted == 0);
        CHECK(limiter.settle("k", none, 0).refunded == 0);
        CHECK(limiter.settle("k", none, 4).charged == 0);
        CHECK(limiter.cancel("k", none) == 0);
      }
      CHECK(limiter.peek("k") == before);
    });
    const SlotLock lock(store, "lock", 1s);
    REQUIRE(lock.try_acquire("k"));
    const SlotPermit late = lock.try_acquire("k");
    REQUIRE_FALSE(late);
    CHECK_FALSE(lock.cancel("k", late));
    CHECK_FALSE(decide(store, lock.cancel_step("k", late)).allowed);
    CHECK(lock.peek("k").retry_after == 1s);
  });
}

TEST_CASE("a reservation is changed under its own key alone", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    std::size_t limiters = 0;
    const auto check = [&](const auto& limiter, Reservation grant) {
      REQUIRE(grant.granted == 1);
      const Word before = limiter.peek("a", 0).remaining;
      std::error_code error;
      CHECK(limiter.cancel("b", grant, error) == 0);
      CHECK(error == Errc::invalid_argument);
      CHECK(limiter.refund("b", grant, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
      for (const Word actual : {0, 2}) {
        const Settlement none = limiter.settle("b", grant, actual, error);
        CHECK(error == Errc::invalid_argument);
        CHECK(none.refunded == 0);
        CHECK(none.charged == 0);
      }
      const auto text = contains_text("the reservation is of another key or name");
      CHECK_THROWS_WITH(limiter.cancel("b", grant), text);
      CHECK_THROWS_WITH(limiter.settle("b", grant, 2), text);
      CHECK_THROWS_WITH(limiter.settle(Key{"a", "another name"}, grant, 0), text);
      CHECK(grant.granted == 1);
      CHECK(limiter.peek("a", 0).remaining == before);
      CHECK(limiter.cancel("a", grant) == 1);
      CHECK(limiter.peek("a", 0).remaining == before + 1);
    };
    for_each_limiter([&](const std::string&, auto make, auto ask) {
      using L = decltype(make(store));
      if constexpr (requires(const L& l, Reservation& r) { l.settle("a", r, 1); }) {
        const L limiter = make(store);
        INFO(L::type_name);
        std::error_code error;
        REQUIRE(ask(limiter, error));
        if constexpr (requires { limiter.reserve("a", 1, 0s); }) {
          check(limiter, limiter.reserve("a", 1, 0s));
        } else {
          check(limiter, limiter.reserve("a", 1));
        }
        check(limiter, limiter.acquire("a", 1, 0s));
        ++limiters;
      }
    });
    CHECK(limiters == 7);
  });
}

TEST_CASE("units below zero or above the limit are an error in every verb, and change nothing",
          "[verbs][C-024][C-025][C-057][C-058][C-059][C-060]") {
  static_assert(!std::is_constructible_v<Cost, double>);  // no unit and a half
  constexpr auto least = std::numeric_limits<Word>::min();
  constexpr auto most = std::numeric_limits<Word>::max();
  for_each_store([&](Store& store, VirtualClock&) {
    const auto fails = [](Errc code, const auto& call) { CHECK(error_of(call) == code); };
    const auto asks = [&](const auto& limiter, Word units, Errc code) {
      fails(code, [&](auto& e) { return limiter.try_acquire("k", units, e); });
      fails(code, [&](auto& e) { return limiter.try_acquire("k", units, RequestId{1, 2}, e); });
      fails(code, [&](auto& e) { return limiter.peek("k", units, e); });
      fails(code, [&](auto& e) { return limiter.acquire("k", units, 0s, {}, e); });
      CHECK_THROWS_AS(limiter.try_acquire("k", units), std::system_error);
      CHECK_THROWS_AS(limiter.reserve("k", units), std::system_error);
      if constexpr (requires { limiter.reserve("k", 1, 0s); }) {
        fails(code, [&](auto& e) { return limiter.reserve("k", units, 0s, e); });
      } else {
        fails(code, [&](auto& e) { return limiter.reserve("k", units, e); });
      }
      if constexpr (requires { limiter.try_acquire_up_to("k", 1); }) {
        fails(code, [&](auto& e) { return limiter.try_acquire_up_to("k", units, 0, e); });
      }
    };
    for_each_charged(store, [&](const auto& limiter) {
      Reservation taken = limiter.reserve("k", 2);
      Reservation refused = limiter.reserve("k", 5);
      for (const Word units : {Word{6}, (Word{1} << 32) + 1, most}) {
        asks(limiter, units, Errc::cost_exceeds_capacity);
      }
      for (const Word units : {Word{-1}, -word_limit - 1, least}) {
        asks(limiter, units, Errc::invalid_cost);
        fails(Errc::invalid_cost, [&](auto& e) { return limiter.reward("k", units, e); });
        if constexpr (requires { limiter.penalize("k", 1); }) {
          fails(Errc::invalid_cost, [&](auto& e) { return limiter.penalize("k", units, e); });
        }
        for (Reservation* of : {&taken, &refused}) {
          fails(Errc::invalid_cost, [&](auto& e) { return limiter.refund("k", *of, units, e); });
          fails(Errc::invalid_cost, [&](auto& e) { return limiter.settle("k", *of, units, e); });
        }
      }
      CHECK(limiter.try_acquire("k", 0).remaining == 3);
    });
    const TokenBucket bucket(store, "up to", Quota::per_hour(5));
    fails(Errc::invalid_cost, [&](auto& e) { return bucket.try_acquire_up_to("k", 1, -1, e); });
    const ConcurrencyLimiter jobs(store, "jobs", 5);
    for (const auto& [weight, code] : {std::pair(Word{6}, Errc::cost_exceeds_capacity),
                                       {0, Errc::invalid_cost},  // a lease of nothing is none
                                       {-1, Errc::invalid_cost},
                                       {least, Errc::invalid_cost}}) {
      fails(code, [&, units = weight](auto& e) { return jobs.try_acquire("k", units, e).id(); });
      fails(code, [&, units = weight](auto& e) { return jobs.peek("k", units, e); });
    }
    CHECK(jobs.peek("k").remaining == 5);
  });
}

TEST_CASE("a record whose numbers cannot be is a typed error", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    const Word least = std::numeric_limits<Word>::min();
    const Word most = std::numeric_limits<Word>::max();
    std::error_code error;
    const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
    for (const Word units : {least, Word{-1}, most}) {
      Reservation forged;
      forged.allowed = true;
      forged.granted = units;
      bucket.settle("k", forged, 3, error);
      CHECK(error == (units < 0 ? Errc::invalid_cost : Errc::cost_exceeds_capacity));
    }
    const SlidingWindow windows(store, "windows", {{5, 1h}});
    for (const Word word : {least, Word{-1}, word_limit + 1, most}) {
      Reservation forged;
      forged.allowed = true;
      forged.granted = 1;
      forged.state = {1, word};
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
      forged.state = {word, 1};
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
    }
  });
}

TEST_CASE("no more comes back than was granted, and nothing twice", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    for_each_charged(store, [](const auto& limiter) {
      REQUIRE(limiter.try_acquire("k", 1));  // of another
      Reservation taken = limiter.reserve("k", 2);
      for (const Word units : {Word{3}, Word{6}, word_limit}) {
        CHECK(error_of([&](auto& e) { return limiter.refund("k", taken, units, e); }) ==
              Errc::invalid_argument);
        CHECK(taken.granted == 2);
      }
      CHECK(limiter.refund("k", taken, 1) == 1);
      CHECK(taken.granted == 1);
      CHECK(limiter.settle("k", taken, 3).charged == 2);
      CHECK(taken.settled == 2);
      CHECK(limiter.settle("k", taken, 3).charged == 0);
      CHECK(limiter.peek("k").remaining == 1);
      // Of a settlement upwards nothing comes back, only of the grant.
      CHECK(limiter.settle("k", taken, 0).refunded <= 1);
      CHECK(taken.granted == 0);
      CHECK(limiter.cancel("k", taken) == 0);
      const Decision before = limiter.peek("k");
      Reservation all = limiter.reserve("k", 1);
      CHECK(limiter.cancel("k", all) == 1);
      CHECK(all.granted == 0);
      CHECK(limiter.cancel("k", all) == 0);
      CHECK(limiter.peek("k") == before);
    });
  });
}

TEST_CASE("limiters of one name that count in other units count for themselves", "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    const auto check = [](const auto& one, const auto& other) {
      CAPTURE(to_string(one.peek_step("k").key), to_string(other.peek_step("k").key));
      REQUIRE(one.try_acquire("k", 3));
      CHECK_FALSE(one.peek("k"));
      REQUIRE(other.try_acquire("k", 3));
      one.reset("k");
      CHECK(one.peek("k").remaining == 3);
      CHECK_FALSE(other.peek("k"));
      other.reset("k");
      CHECK(one.block("k", 1s).allowed);
      CHECK(other.peek("k").remaining == 3);
      one.reset("k");
    };
    const Quota quota = Quota::per_second(10).burst(3);
    const TokenBucket bucket(store, "bucket", quota);
    check(bucket, TokenBucket(store, "bucket", Quota::per_second(5).burst(3)));
    check(bucket, TokenBucket(store, "bucket", quota, {.refill = Refill::per_interval(500ms)}));
    check(SlidingWindow(store, "windows", {{3, 55s}}), SlidingWindow(store, "windows", {{3, 33s}}));
    check(SlidingWindowCounter(store, "counter", {3, 1min}),
          SlidingWindowCounter(store, "counter", {3, 1h}));
    const TimeZone zone("Summer", {{Time{}, 1h}});
    const FixedWindow days(store, "fixed", 3, Calendar::daily());
    for (const Calendar& calendar :
         {Calendar::every(1min), Calendar::every(1min, Time{30s}), Calendar::every(1h),
          Calendar::daily(zone), Calendar::weekly(), Calendar::monthly()}) {
      check(days, FixedWindow(store, "fixed", 3, calendar));
    }
    check(FixedWindow(store, "fixed", 3, Calendar::every(1min)),
          FixedWindow(store, "fixed", 3, Calendar::every(1min, Time{30s})));
  });
}
