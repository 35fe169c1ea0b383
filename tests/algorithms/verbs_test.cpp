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
#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"
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
  const std::regex entries(R"(`?(\b\w+(?=`)|✓|¹|²|³))");
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
  using Rate = RateReservation;
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
                  l.cancel("a", std::declval<decltype(l.reserve("a", 1, 1s))&>());
                })
    reserve.insert("✓");
  if constexpr (requires(const L& l) {
                  l.cancel("a", std::declval<decltype(l.reserve("a", 1s))&>());
                })
    reserve.insert("✓");
  if constexpr (requires(const L& l) { l.cancel(std::declval<decltype(l.reserve(1, 1s))&>()); })
    reserve.insert("✓");
  if constexpr (requires(const L& l) { static_cast<void>(l.borrow("a", 1, 1s)); })
    reserve.insert("²");

  if constexpr (requires(const L& l, Reservation r) { l.settle("a", r, 1); })
    change.insert("settle");
  if constexpr (requires(const L& l, Decision d, SettledCost c) { l.settle("a", d, c); })
    change.insert("settle");
  if constexpr (requires(const L& l, Rate r) { l.settle(r, 1); }) change.insert("settle");
  if constexpr (requires(const L& l, Reservation r) { l.refund("a", r, 1); })
    change.insert("refund");
  if constexpr (requires(const L& l, Decision d) { l.refund("a", d, 1); }) change.insert("refund");
  if constexpr (requires(const L& l, Rate r) { l.refund(r, 1); }) change.insert("refund");
  if constexpr (requires(const L& l) { l.reward("a", 1); }) change.insert("reward");
  if constexpr (requires(const L& l) { l.reward(1); }) change.insert("reward");
  if constexpr (requires(const L& l) { l.penalize("a", 1); }) change.insert("penalize");
  if constexpr (requires(const L& l) { l.penalize(1); }) change.insert("penalize");
  if (leases) change.insert({"release", "renew"});

  if constexpr (requires(const L& l) { l.reset("a"); }) reset.insert("✓");
  if constexpr (requires(const L& l) { l.reset(); }) reset.insert("✓");
  if constexpr (requires(const L& l, Quota q) { l.configure("a", q); }) reset.insert("configure");
  if constexpr (requires(const L& l, RateType type) { l.configure(type, 1, 1s); })
    reset.insert("configure");
  if constexpr (requires(const L& l, RateType type) {
                  l.configure(type, 1, 1s, SpentPermits::forgotten);
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
    const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
    REQUIRE(bucket.try_acquire("k", 5));
    Reservation refused = bucket.reserve("k", 1, 0s);
    REQUIRE_FALSE(refused);
    CHECK(bucket.cancel("k", refused) == 0);
    CHECK(bucket.settle("k", refused, 0).given_back == 0);
    CHECK(bucket.settle("k", refused, 3).charged == 0);
    CHECK(bucket.peek("k").retry_after == 12min);

    const SharedTokenBucket shared(store, "shared");
    shared.configure("k", Quota::per_hour(5));
    REQUIRE(shared.try_acquire("k", 5));
    refused = shared.reserve("k", 1, 0s);
    CHECK(shared.cancel("k", refused) == 0);
    CHECK(shared.settle("k", refused, 3).charged == 0);
    CHECK(shared.peek("k").retry_after == 12min);

    const auto check = [&](const auto& limiter) {
      REQUIRE(limiter.try_acquire("k", 5));
      const Decision none = limiter.try_acquire("k", 2);
      REQUIRE_FALSE(none.allowed);
      CHECK(limiter.settle("k", none, {.estimated = 2, .actual = 0}).given_back == 0);
      CHECK(limiter.settle("k", none, {.estimated = 2, .actual = 4}).charged == 0);
      CHECK(limiter.settle("k", Decision{}, {.estimated = 2, .actual = 0}).given_back == 0);
      CHECK(limiter.peek("k").remaining == 0);
      limiter.reset("k");
      CHECK(limiter.peek("k").remaining == 5);
      return none;
    };
    const SlidingWindow windows(store, "windows", {{5, 1h}});
    Decision none = check(windows);
    REQUIRE(windows.try_acquire("k", 5));
    CHECK(windows.refund("k", none, 2) == 0);
    static_cast<void>(decide(store, windows.refund_step("k", none, 2)));
    CHECK(windows.peek("k").remaining == 0);
    const SlidingWindowCounter counter(store, "counter", {5, 1h});
    none = check(counter);
    REQUIRE(counter.try_acquire("k", 5));
    CHECK(counter.refund("k", none, 2) == 0);
    CHECK(counter.peek("k").remaining == 0);
    const FixedWindow window(store, "window", 5, Calendar::every(1h));
    none = check(window);
    REQUIRE(window.try_acquire("k", 5));
    window.refund("k", none, 2);
    CHECK(window.peek("k").remaining == 0);

    const SlotLock lock(store, "lock", 1s);
    REQUIRE(lock.try_acquire("k"));
    const SlotPermit late = lock.try_acquire("k");
    REQUIRE_FALSE(late);
    CHECK_FALSE(lock.cancel("k", late));
    CHECK_FALSE(decide(store, lock.cancel_step("k", late)).allowed);
    CHECK(lock.peek("k").retry_after == 1s);
  });
}

TEST_CASE("units below zero are an invalid cost in every verb, and change nothing",
          "[verbs][C-024]") {
  for_each_store([](Store& store, VirtualClock&) {
    const auto check = [](const auto& call) {
      std::error_code error;
      static_cast<void>(call(error));
      CHECK(error == Errc::invalid_cost);
    };
    const SettledCost no_estimate{.estimated = -1, .actual = 1};
    const SettledCost no_actual{.estimated = 1, .actual = -1};
    for (const Word units : {Word{-1}, -word_limit - 1, std::numeric_limits<Word>::min()}) {
      CAPTURE(units);
      const auto asks = [&](const auto& limiter) {
        check([&](auto& e) { return limiter.try_acquire("k", units, e); });
        check([&](auto& e) { return limiter.try_acquire("k", units, RequestId{1, 2}, e); });
        check([&](auto& e) { return limiter.peek("k", units, e); });
        check([&](auto& e) { limiter.reward("k", units, e); });
      };
      const auto settles = [&](const auto& limiter) {
        const Decision taken = limiter.try_acquire("k", 2);
        const Decision refused = limiter.try_acquire("k", 5);
        for (const Decision& of : {taken, refused}) {
          check([&](auto& e) { limiter.refund("k", of, units, e); });
          check([&](auto& e) { limiter.settle("k", of, no_estimate, e); });
          check([&](auto& e) { limiter.settle("k", of, no_actual, e); });
        }
        CHECK(limiter.peek("k").remaining == 3);
        limiter.reset("k");
      };
      const auto reserves = [&](const auto& limiter) {
        Reservation taken = limiter.reserve("k", 2, 0s);
        Reservation refused = limiter.reserve("k", 5, 0s);
        asks(limiter);
        check([&](auto& e) { return limiter.reserve("k", units, 0s, e); });
        check([&](auto& e) { limiter.penalize("k", units, e); });
        for (Reservation* of : {&taken, &refused}) {
          check([&](auto& e) { limiter.refund("k", *of, units, e); });
          check([&](auto& e) { limiter.settle("k", *of, units, e); });
        }
        CHECK(limiter.peek("k").remaining == 3);
        limiter.reset("k");
      };
      const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
      reserves(bucket);
      check([&](auto& e) { return bucket.try_acquire_up_to("k", units, 0, e); });
      check([&](auto& e) { return bucket.try_acquire_up_to("k", 1, units, e); });
      const SharedTokenBucket shared(store, "shared");
      shared.configure("k", Quota::per_hour(5));
      reserves(shared);

      const SlidingWindow windows(store, "windows", {{5, 1h}});
      asks(windows);
      check([&](auto& e) { return windows.reserve("k", units, 0s, e); });
      settles(windows);
      const SlidingWindowCounter counter(store, "counter", {5, 1h});
      asks(counter);
      check([&](auto& e) { counter.penalize("k", units, e); });
      settles(counter);
      const FixedWindow window(store, "window", 5, Calendar::every(1h));
      asks(window);
      check([&](auto& e) { window.penalize("k", units, e); });
      settles(window);

      const SharedSlidingWindow rate(store, "rate", "rate");
      rate.configure(RateType::overall, 5, 1h, SpentPermits::forgotten);
      RateReservation taken = rate.reserve(2, 0s);
      RateReservation refused = rate.reserve(5, 0s);
      check([&](auto& e) { return rate.try_acquire(units, e); });
      check([&](auto& e) { return rate.peek(units, e); });
      check([&](auto& e) { rate.reward(units, e); });
      for (RateReservation* of : {&taken, &refused}) {
        check([&](auto& e) { rate.refund(*of, units, e); });
        check([&](auto& e) { rate.settle(*of, units, e); });
      }
      CHECK(rate.available_permits() == 3);

      const ConcurrencyLimiter jobs(store, "jobs", 5);
      for (const Word weight : {Word{0}, units}) {  // a lease of nothing is none
        check([&](auto& e) { CHECK_FALSE(jobs.try_acquire("k", weight, e).decision().allowed); });
        check([&](auto& e) { return jobs.peek("k", weight, e); });
      }
      CHECK(jobs.peek("k").remaining == 5);
    }
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
      forged.decision.allowed = true;
      forged.granted = units;
      bucket.settle("k", forged, 3, error);
      CHECK(error == (units < 0 ? Errc::invalid_cost : Errc::cost_exceeds_capacity));
    }
    const SlidingWindow windows(store, "windows", {{5, 1h}});
    for (const Word word : {least, Word{-1}, word_limit + 1, most}) {
      Decision forged;
      forged.allowed = true;
      forged.at = to_time(word);
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
      forged.retry_after = Span{most};
      CHECK(windows.refund("k", forged, 1, error) == 0);
      CHECK(error == Errc::invalid_argument);
    }
  });
}

TEST_CASE("of a grant that knows what it was granted no more comes back, of others what is there",
          "[verbs]") {
  for_each_store([](Store& store, VirtualClock&) {
    std::error_code error;
    for (const Word units : {Word{3}, Word{6}, word_limit}) {  // granted were two, of five
      const TokenBucket bucket(store, "bucket", Quota::per_hour(5));
      Reservation taken = bucket.reserve("k", 2, 0s);
      CHECK(bucket.refund("k", taken, units, error) == 0);
      CHECK(error == Errc::invalid_argument);
      CHECK(bucket.cancel("k", taken) == 2);

      const SharedTokenBucket shared(store, "shared");
      shared.configure("k", Quota::per_hour(5), Inheritance::reset);
      Reservation part = shared.reserve("k", 2, 0s);
      CHECK(shared.refund("k", part, units, error) == 0);
      CHECK(error == Errc::invalid_argument);

      const SharedSlidingWindow rate(store, "k", "rate");
      rate.configure(RateType::overall, 5, 1h, SpentPermits::forgotten);
      RateReservation permits = rate.reserve(2, 0s);
      CHECK(rate.refund(permits, units, error) == 0);
      CHECK(error == Errc::invalid_argument);

      const SlidingWindow windows(store, "windows", {{5, 1h}});
      CHECK(windows.refund("k", windows.try_acquire("k", 2), units) == 2);
      CHECK(windows.peek("k").remaining == 5);

      const SlidingWindowCounter counter(store, "counter", {5, 1h});
      CHECK(counter.refund("k", counter.try_acquire("k", 2), units) == 2);
      CHECK(counter.peek("k").remaining == 5);

      const FixedWindow window(store, "window", 5, Calendar::every(1h));
      CHECK(window.refund("k", window.try_acquire("k", 2), units) == 2);
      CHECK(window.peek("k").remaining == 5);

      const SettledCost unspent{.estimated = units, .actual = 0};
      CHECK(counter.settle("k", counter.try_acquire("k", 2), unspent).given_back == 2);
      CHECK(window.settle("k", window.try_acquire("k", 2), unspent).given_back == 2);
      CHECK(window.peek("k").remaining == 5);

      windows.refund("k", windows.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      counter.refund("k", counter.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      window.refund("k", window.try_acquire("k", 2), word_limit + 1, error);
      CHECK(error == Errc::invalid_cost);
      windows.reset("k");
      counter.reset("k");
      window.reset("k");
    }
  });
}
