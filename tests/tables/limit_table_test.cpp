// Limiters with a table: every key has its limit, and keeps what it spent when the limit changes.
#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

const std::string long_key(100, 'k');

LimitList<Quota> quotas() {
  LimitList list(Quota::per_second(10).burst(5));
  list.tier("gold", Quota::per_second(100)).assign("alice", "gold");
  list.limit("bob", Quota::per_minute(3)).allow("health").deny("mallory");
  list.limit(long_key, Quota::per_minute(4));
  return list;
}

template <class Limiter>
int admitted(const Limiter& limiter, const Key& key, int most = 2000) {
  int count = 0;
  while (count < most && limiter.try_acquire(key)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a token bucket takes the quota of each key from a table", "[tables]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const auto table = std::make_shared<QuotaTable>(quotas());
    const TokenBucket bucket(store, "api", table);
    CHECK(admitted(bucket, "alice") == 100);
    CHECK(admitted(bucket, "bob") == 3);
    CHECK(admitted(bucket, long_key) == 4);
    CHECK(admitted(bucket, "carol") == 5);
    CHECK(admitted(bucket, "health", 500) == 500);
    CHECK(admitted(bucket, "mallory") == 0);
    CHECK(bucket.try_acquire("mallory").retry_after == Decision::never);
    CHECK(bucket.try_acquire("bob").retry_after == 20s);
    CHECK(bucket.try_acquire("carol").retry_after == 100ms);
    CHECK(bucket.try_acquire("alice").limit == 100);
    clock.advance(100ms);
    CHECK(admitted(bucket, "alice") == 10);
    CHECK(admitted(bucket, "carol") == 1);
    CHECK(bucket.quota() == Quota::per_second(10).burst(5));
    CHECK(bucket.quota("bob") == Quota::per_minute(3));
  });
}

TEST_CASE("what a bucket has spent stays spent under another quota, also while it is denied",
          "[tables]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const auto table = std::make_shared<QuotaTable>(LimitList(Quota::per_second(10).burst(20)));
    const TokenBucket bucket(store, "api", table);
    REQUIRE(bucket.try_acquire("a", 15));
    table->replace(LimitList(Quota::per_second(100).burst(50)));
    CHECK(bucket.peek("a").remaining == 35);
    table->replace(LimitList(Quota::never()));
    CHECK(admitted(bucket, "a") == 0);
    table->replace(LimitList(Quota::per_minute(6).burst(10)));
    const Decision lowered = bucket.try_acquire("a");
    CHECK_FALSE(lowered);
    CHECK(lowered.retry_after == 60s);  // 15 spent; 9 after six tokens of 10 s
    clock.advance(60s);
    CHECK(bucket.try_acquire("a"));
    CHECK_FALSE(bucket.try_acquire("a"));
  });
}

TEST_CASE("a fast quota of a table leaves less room for reservations", "[tables]") {
  for_each_store([](Store& store, VirtualClock&) {
    LimitList list(Quota::per_second(1));
    list.limit("fast", Quota::per_second(1'000'000).burst(1));
    const TokenBucket bucket(store, "api", std::make_shared<QuotaTable>(list), {.longest = 1h});
    std::error_code error;
    CHECK(bucket.reserve("slow", 1, 1h, error));
    CHECK(bucket.reserve("fast", 1, 1min, error));
    CHECK_FALSE(error);
    CHECK_FALSE(bucket.reserve("fast", 1, 2min, error));
    CHECK(error == Errc::invalid_argument);
  });
}

TEST_CASE("a reservation keeps its time under another quota", "[tables]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const auto table = std::make_shared<QuotaTable>(LimitList(Quota::per_second(1).burst(2)));
    const TokenBucket bucket(store, "api", table);
    REQUIRE(bucket.try_acquire("a", 2));
    REQUIRE(bucket.reserve("a", 2, 10s).wait() == 2s);
    table->replace(LimitList(Quota::per_second(10).burst(20)));
    CHECK(bucket.try_acquire("a").retry_after == 2s);
    clock.advance(2s);
    CHECK(bucket.peek("a").remaining == 18);
  });
}

TEST_CASE("what was granted without a limit gives nothing back once there is one", "[tables]") {
  for_each_store([](Store& store, VirtualClock&) {
    const auto quotas = std::make_shared<QuotaTable>(LimitList(Quota::unlimited()));
    const auto counts = std::make_shared<LimitTable<Word>>(LimitList(unlimited));
    const TokenBucket bucket(store, "bucket", quotas, {.refund = Refund::in_full});
    const FixedWindow window(store, "window", counts, Calendar::daily());
    const SlidingWindowCounter counter(store, "counter", counts, 24h);
    Reservation of_bucket = bucket.reserve("a", 5, 0s);
    Reservation of_window = window.reserve("a", 5);
    Reservation of_counter = counter.reserve("a", 5);
    quotas->replace(LimitList(Quota::per_minute(5)));
    counts->replace(LimitList(5));
    const auto refunds_nothing = [](const auto& limiter, Reservation& grant) {
      REQUIRE(grant);
      REQUIRE(limiter.try_acquire("a", 5));
      (void)limiter.settle("a", grant, 1);
      (void)limiter.cancel("a", grant);
      CHECK_FALSE(limiter.try_acquire("a"));
    };
    refunds_nothing(bucket, of_bucket);
    refunds_nothing(window, of_window);
    refunds_nothing(counter, of_counter);
  });
}

TEST_CASE("windows, counters and leases take the limit of each key from a table", "[tables]") {
  for_each_store([](Store& store, VirtualClock&) {
    LimitList list(5);
    list.tier("gold", 20).assign("alice", "gold").limit("bob", 2).allow("health").deny("mallory");
    const auto table = std::make_shared<LimitTable<Word>>(list);
    const FixedWindow window(store, "window", table, Calendar::daily());
    const SlidingWindowCounter counter(store, "counter", table, 1h);
    const ConcurrencyLimiter jobs(store, "jobs", table, {.ttl = 1h});
    std::vector<Lease> held;
    const auto hold = [&](const char* key) {
      int count = 0;
      for (; count < 30; ++count) {
        Lease lease = jobs.try_acquire(key);
        if (!lease) break;
        held.push_back(std::move(lease));
      }
      return count;
    };
    const auto each_key = [](const auto& admitted_of) {
      for (const auto& [key, count] :
           {std::pair{"alice", 20}, {"bob", 2}, {"carol", 5}, {"health", 30}, {"mallory", 0}}) {
        CHECK(admitted_of(key) == count);
      }
    };
    each_key([&](const char* key) { return admitted(window, key, 30); });
    each_key([&](const char* key) { return admitted(counter, key, 30); });
    each_key(hold);
    CHECK(jobs.acquire("erin", 5, 0s).decision().allowed);
    CHECK_THROWS_AS(jobs.acquire("erin", 6, 0s), std::system_error);
    LimitList raised(7);
    raised.deny("alice").limit("bob", 1);
    table->replace(raised);
    CHECK(admitted(window, "carol") == 2);
    CHECK(admitted(window, "health") == 7);
    CHECK(admitted(window, "bob") == 0);
    CHECK(admitted(counter, "carol") == 2);
    CHECK(hold("carol") == 2);
    CHECK(hold("alice") == 0);
    // Places of a denied key are given back, and those of a free one were never taken.
    for (Lease& lease : held) lease.release();
    held.clear();
    table->replace(list);
    each_key(hold);
  });
}

TEST_CASE("sliding windows take the limits of each key from a table", "[tables]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    LimitList list(WindowLimits{{5, 1s}, {8, 1min}});
    list.limit("alice", {{20, 1s}, {unlimited, 1min}}).allow("health").deny("mallory");
    const auto table = std::make_shared<LimitTable<WindowLimits>>(list);
    const SlidingWindow limit(store, "partner", table);
    CHECK(admitted(limit, "alice") == 20);
    CHECK(admitted(limit, "carol") == 5);
    CHECK(admitted(limit, "health", 50) == 50);
    CHECK(admitted(limit, "mallory") == 0);
    CHECK(limit.remaining("alice") == std::vector<Word>{0, unlimited});
    CHECK(limit.remaining("carol") == std::vector<Word>{0, 3});
    CHECK(limit.remaining("mallory") == std::vector<Word>{0, 0});
    clock.advance(1s);
    table->replace(LimitList(WindowLimits{{6, 1s}, {10, 1min}}));
    CHECK(admitted(limit, "carol") == 5);
    Reservation held = limit.reserve("dave", 6);
    CHECK(limit.settle("dave", held, 4).refunded == 2);
    table->replace(LimitList(WindowLimits{{3, 1s}, {10, 1min}}));
    CHECK_FALSE(limit.try_acquire("dave"));
    clock.advance(1s);
    CHECK(admitted(limit, "dave") == 3);
    CHECK(limit.block("dave", 1min));
    limit.reset("dave");
    CHECK(limit.windows()[0].limit == 3);
  });
}

TEST_CASE("a step views the windows of its table after another list has replaced them",
          "[tables]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto table =
      std::make_shared<LimitTable<WindowLimits>>(LimitList(WindowLimits{{5, 1s}, {8, 1min}}));
  const SlidingWindow limit(*store, "partner", table);
  const Step step = limit.acquire_step("a", 5);
  const LimitList former = table->list();
  table->replace(LimitList(WindowLimits{{1, 1s}, {1, 1min}}));
  table->replace(former);
  table->replace(LimitList(WindowLimits{{1, 1s}, {1, 1min}}));
  std::error_code error;
  CHECK(decide(*store, step, error));
  CHECK_FALSE(error);
}

TEST_CASE("a table that is missing, or an option that it cannot have, is rejected", "[tables]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const std::shared_ptr<const LimitTable<Word>> none;
  const std::shared_ptr<const LimitTable<WindowLimits>> no_windows;
  const auto table = std::make_shared<QuotaTable>(quotas());
  for (const std::function<void()>& make : std::vector<std::function<void()>>{
           [&] { TokenBucket(*store, "api", std::shared_ptr<const QuotaTable>()); },
           [&] { FixedWindow(*store, "api", none, Calendar::daily()); },
           [&] { SlidingWindowCounter(*store, "api", none, 1s); },
           [&] { ConcurrencyLimiter(*store, "api", none); },
           [&] { SlidingWindow(*store, "api", no_windows); },
           [&] { TokenBucket(*store, "api", table, {.refill = Refill::per_interval(1s)}); },
           [&] { TokenBucket(*store, "api", table, {.initial = 0}); },
           [&] { TokenBucket(*store, "api", table, {.longest = 2h}); }}) {
    CHECK_THROWS_AS(make(), std::invalid_argument);
  }
  CHECK_THROWS_AS(TokenBucket(*store, "api", table).at("alice"), std::system_error);
}

TEST_CASE("with a table, the name and the unit name the bucket, whatever the rate", "[tables]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const auto by_minute = std::make_shared<QuotaTable>(LimitList(Quota::per_second(10)));
  const auto by_hour = std::make_shared<QuotaTable>(LimitList(Quota::per_second(10), 1h));
  CHECK(to_string(TokenBucket(*store, "api", by_minute).acquire_step("a").key) ==
        "{a}:api:table/1min");
  CHECK(to_string(TokenBucket(*store, "api", by_hour).acquire_step("a").key) == "{a}:api:table/1h");
}

/// A host a delay, as docs/crawler.md counts them.
TEST_CASE("a table whose unit is 42 min has hosts of every usual delay, each exactly its own",
          "[tables]") {
  const auto one_each = [](Span delay) { return Quota::per(1, delay).burst(1); };
  LimitList list(one_each(1s), 42min);
  const std::vector delays{1s,  2s,  3s,  4s,  5s,  6s,  7s,  8s,  9s,
                           10s, 12s, 14s, 15s, 18s, 20s, 30s, 60s, 120s};
  for (const auto delay : delays) list.limit(std::to_string(delay.count()), one_each(delay));
  for (const auto delay : {11s, 13s, 16s, 17s, 19s}) {
    CHECK_THROWS_AS(list.limit(std::to_string(delay.count()), one_each(delay)),
                    std::invalid_argument);
  }
  const auto table = std::make_shared<QuotaTable>(list);
  for_each_store([&](Store& store, VirtualClock& clock) {
    const TokenBucket slots(store, "requests", table);
    for (const auto delay : delays) {
      CAPTURE(delay.count());
      REQUIRE(slots.try_acquire(delay.count()));
      CHECK(slots.try_acquire(delay.count()).retry_after == delay);
      clock.advance(delay);
      CHECK(slots.try_acquire(delay.count()));
    }
  });
}

namespace {

Word larger(Word a, Word b) { return std::max(a, b); }
/// Both count per second.
Quota larger(const Quota& a, const Quota& b) {
  const Word rate =
      std::max(a.refill() * (1'000'000 / a.period()), b.refill() * (1'000'000 / b.period()));
  return Quota::per_second(rate).burst(std::max(a.capacity(), b.capacity()));
}
WindowLimits larger(WindowLimits a, const WindowLimits& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i].limit = std::max(a[i].limit, b[i].limit);
  return a;
}

/// A list that gives "a" the limit: as everyone, by a tier or by its own row.
template <class Limit>
LimitList<Limit> list_for_a(Random& random, const Limit& limit, const Limit& of_others) {
  if (random.one_in(3)) return LimitList<Limit>(limit);
  LimitList<Limit> list(of_others);
  if (random.one_in(2)) return list.tier("t", limit).assign("a", "t");
  return list.limit("a", limit);
}

template <class Limiter>
auto ask(const Limiter& limiter, Cost cost) {
  std::error_code error;
  if constexpr (std::same_as<Limiter, ConcurrencyLimiter>) {
    return limiter.try_acquire("a", cost, error);
  } else if constexpr (std::same_as<Limiter, SlidingWindow> || std::same_as<Limiter, TokenBucket>) {
    return limiter.reserve("a", cost, 0s, error);
  } else {
    return limiter.reserve("a", cost, error);
  }
}

template <class Limiter, class Grants>
void give_back_both(const Limiter& limiter, const Limiter& reference, Grants& both) {
  if constexpr (std::same_as<Limiter, ConcurrencyLimiter>) {
    REQUIRE(both[0].release() == both[1].release());
  } else if constexpr (!std::same_as<Limiter, TokenBucket>) {  // of which less has drained
    // A key that is denied now uses no state, and so gets nothing back.
    const Word back = limiter.cancel("a", both[0]);
    const Word expected = reference.cancel("a", both[1]);
    REQUIRE((back == expected || back == 0));
  }
}

/// Programs on one key, in eras between which all is forgotten. The reference of an era has the
/// largest limit that is in force in it, and admits all that the table admits.
template <class Limit, class Make, class Any>
void admits_as_the_largest(Random& random, Make make, Any any) {
  std::size_t refusals = 0;
  for (std::size_t program = 0; program < scaled(100, 20); ++program) {
    for_each_store(
        [&](Store& store, VirtualClock& clock) {
          const auto table = std::make_shared<LimitTable<Limit>>(LimitList<Limit>(any()));
          const auto largest = std::make_shared<LimitTable<Limit>>(LimitList<Limit>(any()));
          const auto limiter = make(store, "limited", table);
          const auto reference = make(store, "reference", largest);
          for (int era = 0; era < 3; ++era) {
            clock.advance(1min);
            const std::array limits{any(), any(), any()};
            largest->replace(LimitList<Limit>(larger(larger(limits[0], limits[1]), limits[2])));
            std::vector<std::array<decltype(ask(limiter, 1)), 2>> grants;
            for (int i = 0; i < 40; ++i) {
              if (i == 0 || random.one_in(5)) {
                table->replace(list_for_a(random, limits[random.below(3)], any()));
              }
              clock.advance(Span{random.between(0, random.one_in(10) ? 3'000'000 : 200'000)});
              const auto cost = random.between(1, 6);
              if (auto grant = ask(limiter, cost)) {
                grants.push_back({std::move(grant), ask(reference, cost)});
                REQUIRE(grants.back()[1]);
              } else {
                ++refusals;
              }
              if (!grants.empty() && random.one_in(4)) {
                give_back_both(limiter, reference, grants.back());
                grants.pop_back();
              }
            }
          }
        },
        Stores::local);
  }
  CHECK(refusals > 0);
}

}  // namespace

TEST_CASE("over changes, no limiter admits more than under the largest limit", "[tables]") {
  Random random("over changes, no limiter admits more than under the largest limit");
  CAPTURE(random.repeat());
  const auto count = [&] { return random.between(0, 20); };
  using Counts = std::shared_ptr<const LimitTable<Word>>;
  using Windows = std::shared_ptr<const LimitTable<WindowLimits>>;
  SECTION("buckets") {
    admits_as_the_largest<Quota>(
        random,
        [](Store& store, const char* name, const std::shared_ptr<const QuotaTable>& quotas) {
          return TokenBucket(store, name, quotas);
        },
        [&] { return Quota::per_second(random.between(1, 20)).burst(random.between(1, 40)); });
  }
  SECTION("fixed windows") {
    admits_as_the_largest<Word>(
        random,
        [](Store& store, const char* name, const Counts& counts) {
          return FixedWindow(store, name, counts, Calendar::every(2s));
        },
        count);
  }
  SECTION("sliding windows") {
    admits_as_the_largest<WindowLimits>(
        random,
        [](Store& store, const char* name, const Windows& windows) {
          return SlidingWindow(store, name, windows);
        },
        [&] {
          return WindowLimits{{count(), 1s}, {count() + 10, 10s}};
        });
  }
  SECTION("counters") {
    admits_as_the_largest<Word>(
        random,
        [](Store& store, const char* name, const Counts& counts) {
          return SlidingWindowCounter(store, name, counts, 2s);
        },
        count);
  }
  SECTION("leases") {
    admits_as_the_largest<Word>(
        random,
        [](Store& store, const char* name, const Counts& counts) {
          return ConcurrencyLimiter(store, name, counts, {.ttl = 2s});
        },
        count);
  }
}

namespace {

/// What a call answers, as a text; `held` is what was reserved last.
std::string answer_of(const TokenBucket& bucket, Reservation& held, Word verb, Word cost) {
  switch (verb) {
    case 0:
      held = bucket.reserve("a", cost, 1s);
      return to_string(held) + std::to_string(held.granted);
    case 1:
      held = bucket.try_acquire_up_to("a", std::max<Word>(1, cost));
      return to_string(held) + std::to_string(held.granted);
    case 2:
      return held && held.granted > 0 ? std::to_string(bucket.cancel("a", held)) : "";
    case 3:
      if (!held || held.granted == 0) return "";
      return std::to_string(bucket.settle("a", held, cost).refunded);
    case 4:
      return to_string(bucket.penalize("a", cost));
    case 5:
      return to_string(bucket.reward("a", cost));
    case 6:
      return to_string(bucket.block("a", Span{cost}));
    case 7:
      bucket.reset("a");
      return "";
    default:
      return to_string(bucket.try_acquire("a", cost));
  }
}

}  // namespace

TEST_CASE("a bucket with a table of one quota answers each call as one with the quota",
          "[tables]") {
  Random random("a bucket with a table of one quota answers each call as one with the quota");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(200, 20); ++program) {
    for_each_store(
        [&](Store& store, VirtualClock& clock) {
          const Quota quota = Quota::per_second(random.between(1, 50)).burst(random.between(1, 30));
          const TokenBucket plain(store, "plain", quota);
          const TokenBucket tabled(store, "tabled", std::make_shared<QuotaTable>(LimitList(quota)));
          std::array<Reservation, 2> held;
          for (int i = 0; i < 50; ++i) {
            clock.advance(Span{random.between(0, 200'000)});
            const Word cost = random.between(0, quota.capacity());
            const Word verb = random.between(0, 10);
            CAPTURE(verb, cost);
            REQUIRE(answer_of(plain, held[0], verb, cost) ==
                    answer_of(tabled, held[1], verb, cost));
          }
        },
        Stores::local);
  }
}

}  // namespace sluice::test
