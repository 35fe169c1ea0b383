// What states say, kind by kind, without a server.
#include <chrono>

#include "sluice/rules/wait_line.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/tool/book.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

constexpr Word second = 1'000'000;

VirtualClock& clock_of_store() {
  static VirtualClock clock;
  return clock;
}

/// Stands for the store of limiters whose steps a Book decides.
Store& store() {
  static const auto store = make_virtual_store(clock_of_store());
  return *store;
}

TEST_CASE("a token bucket tells what is used, and with its quota what remains", "[describe]") {
  Book book;
  const TokenBucket bucket(store(), "api", Quota::per_second(10).burst(5));
  for (int i = 0; i < 3; ++i) CHECK(book.decide(bucket.acquire_step("alice")).status == 1);
  const std::string key = "{alice}:api:10/s";
  CHECK(book.told(key) == "3 used; rate 10/s, used 3, unused at in 300 ms");
  book.now += 100'000;
  CHECK(book.told(key, {.quota = Quota::parse("10/s:5")}) ==
        "2 of 5 used; rate 10/s, used 2, unused at in 200 ms, limit 5, remaining 3; granted");
  CHECK(book.told(key, {.limits = {2}}) ==
        "2 of 2 used; rate 10/s, used 2, unused at in 200 ms, limit 2, remaining 0, next at in 100 "
        "ms; refused");
  CHECK(book.told(key, {.limits = {2}, .cost = 3}) ==
        "2 of 2 used; rate 10/s, used 2, unused at in 200 ms, limit 2; the cost exceeds the "
        "capacity: it can never be admitted");
  CHECK_THROWS_WITH(book.describe(key, {.quota = Quota::parse("11/s:5")}),
                    "the key is counted in 10/s, which is not the rate of 11/s:5");
  CHECK_THROWS_WITH(book.describe(key, {.limits = {2, 3}}), "the key has one limit, got 2");
}

TEST_CASE("a token bucket tells until when a reservation or a block closes it", "[describe]") {
  Book book;
  const TokenBucket bucket(store(), "api", Quota::per_second(1).burst(2), {.longest = 50min});
  CHECK(book.decide(bucket.block_step("a", 9min)).status == 1);
  CHECK(book.told("{a}:api:1/s") ==
        "closed for 9m; rate 1/s, closed until in 9m, unused at in 9m 1s");
}

TEST_CASE("a token bucket with refills each minute is counted at their times", "[describe]") {
  Book book;
  book.now -= book.now % (60 * second);
  const TokenBucket bucket(store(), "api", Quota::per_minute(6).burst(6),
                           {.refill = Refill::per_interval(1min)});
  CHECK(book.decide(bucket.acquire_step("a", 6)).status == 1);
  book.now += 59 * second;
  CHECK(book.told("{a}:api:6/min@1min") == "6 used; rate 6/min@1min, used 6, unused at in 1.00 s");
  book.now += second;
  CHECK(book.told("{a}:api:6/min@1min") == "0 used; rate 6/min@1min, used 0");
}

TEST_CASE("what a random token bucket has used is what its peek says", "[describe]") {
  Random random("what a random token bucket has used is what its peek says");
  CAPTURE(random.repeat());
  for (std::size_t life = 0; life < scaled(300); ++life) {
    Book book;
    const Word count = random.between(1, 1'000);
    const Word burst = random.between(1, 1'000);
    const Quota quota = Quota::per(count, Span{random.between(1, 100'000'000)}).burst(burst);
    const TokenBucket bucket(store(), "b", quota);
    const std::string key = render(bucket.acquire_step("a").key);
    for (int i = 0; i < 10; ++i) {
      const Word cost = random.between(1, burst);
      book.decide(bucket.acquire_step("a", cost));
      book.now += random.between(0, 10'000'000);
      const Verdict peeked = book.decide(bucket.peek_step("a", cost));
      const auto d = book.describe(key, {.quota = quota, .cost = cost});
      INFO(key << " " << to_string(quota));
      CHECK(*d.used == burst - peeked.remaining);
      CHECK(d.verdict->status == peeked.status);
      CHECK(d.verdict->retry_after == peeked.retry_after);
    }
  }
}

TEST_CASE("a shared token bucket knows its quota", "[describe]") {
  Book book;
  const SharedTokenBucket bucket(store(), "shared");
  const auto configure = [&](const char* tag, const Quota& quota) {
    book.decide(bucket.configure_step(tag, quota, Inheritance::as_is));
  };
  configure("a", Quota::per_second(10).burst(5));
  configure("n", Quota::never());
  configure("u", Quota::unlimited());
  book.decide(bucket.acquire_step("a", 4));
  CHECK(book.told("{a}:shared") ==
        "4 of 5 used; version 1, quota 10/s:5, used 4, unused at in 400 ms, limit 5, remaining 1; "
        "granted");
  CHECK(book.told("{n}:shared") == "never; version 1, limit 0, quota never; refused");
  CHECK(book.told("{u}:shared") ==
        "unlimited; version 1, limit unlimited, quota unlimited; granted");
}

TEST_CASE("a sliding window tells each of its windows", "[describe]") {
  Book book;
  const SlidingWindow windows(store(), "w", {{5, 1s}, {7, 1min}});
  const std::string key = "{a}:w:1s+1min,grants";
  book.decide(windows.acquire_step("a", 4));
  book.now += second;
  book.decide(windows.acquire_step("a", 2));
  CHECK(book.told(key) ==
        "6 used; used 6, unused at in 1m\n"
        "window 1.00 s, used 2\n"
        "window 1m, used 6");
  CHECK(book.told(key, {.limits = {5, 7}}) ==
        "6 of 7 used; used 6, unused at in 1m, limit 7, remaining 1; granted\n"
        "window 1.00 s, used 2, limit 5\n"
        "window 1m, used 6, limit 7");
  CHECK(book.told(key, {.limits = {2, 100}}) ==
        "2 of 2 used; used 2, unused at in 1m, limit 2, remaining 0, next at in 1.00 s; refused\n"
        "window 1.00 s, used 2, limit 2\n"
        "window 1m, used 6, limit 100");  // fuller, with fewer units
  CHECK_THROWS_WITH(book.describe(key, {.limits = {5}}),
                    "the key has 2 windows and 1 limit is given");
  book.decide(windows.block_step("a", 30s));
  CHECK(book.told(key) ==
        "closed for 30.0 s; closed until in 30.0 s, used 6, unused at in 1m\n"
        "window 1.00 s, used 2\n"
        "window 1m, used 6");
}

TEST_CASE("a sliding window of one span has its limit in the state", "[describe]") {
  Book book;
  const SlidingWindow windows(store(), "w", {{5, 10s}});
  book.decide(windows.acquire_step("a", 4));
  CHECK(book.told("{a}:w:10s,grants") ==
        "4 of 5 used; used 4, unused at in 10.0 s, limit 5, remaining 1; granted\n"
        "window 10.0 s, used 4, limit 5");
  CHECK(book.told("{a}:w:10s,grants", {.quota = Quota::parse("2/s")}) ==
        "4 of 20 used; used 4, unused at in 10.0 s, limit 20, remaining 16; granted\n"
        "window 10.0 s, used 4, limit 20");
  CHECK_THROWS_WITH(book.describe("{a}:w:10s,grants", {.quota = Quota::parse("1/min")}),
                    "1/min is no whole number of units in 10.0 s");
}

TEST_CASE("a sliding window counter needs its limit", "[describe]") {
  Book book;
  book.now -= book.now % (60 * second);
  const SlidingWindowCounter counter(store(), "c", {10, 1min});
  book.decide(counter.acquire_step("a", 8));
  CHECK(book.told("{a}:c:1min") == "8 used; window 1m, used 8, unused at in 2m");
  book.now += 90 * second;  // half of them count
  CHECK(book.told("{a}:c:1min", {.limits = {10}}) ==
        "4 of 10 used; window 1m, used 4, unused at in 30.0 s, limit 10, remaining 6; granted");
  book.decide(counter.block_step("a", 20s));
  CHECK(book.told("{a}:c:1min") ==
        "closed for 20.0 s; window 1m, closed until in 20.0 s, unused at in 30.0 s");
}

TEST_CASE("a fixed window ends where its calendar says", "[describe]") {
  Book book;
  const Word day = 86'400 * second;
  book.now += day - book.now % day - 300 * second;
  clock_of_store().set(to_time(book.now));
  const auto used = [&](Calendar calendar) {
    const FixedWindow window(store(), "f", 5, std::move(calendar));
    book.decide(window.acquire_step("a", 3));
    return book.told(render(window.acquire_step("a").key), {.limits = {5}});
  };
  CHECK(
      used(Calendar::every(1min, Time{10s})) ==
      "3 of 5 used; calendar 1min+10s, used 3, unused at in 10.0 s, limit 5, remaining 2; granted");
  CHECK(used(Calendar::daily()) ==
        "3 of 5 used; calendar daily@UTC, used 3, unused at in 5m, limit 5, remaining 2; granted");
  CHECK(used(Calendar::weekly()) ==
        "3 of 5 used; calendar weekly@UTC, used 3, unused at 18 Jan 2027 00:00:00 UTC, limit 5, "
        "remaining 2; granted");
  CHECK(used(Calendar::monthly()) ==
        "3 of 5 used; calendar monthly@UTC, used 3, unused at 1 Feb 2027 00:00:00 UTC, limit 5, "
        "remaining 2; granted");
  CHECK(used(Calendar::quarterly()) ==
        "3 of 5 used; calendar quarterly@UTC, used 3, unused at 1 Apr 2027 00:00:00 UTC, limit 5, "
        "remaining 2; granted");
  CHECK(used(Calendar::yearly()) ==
        "3 of 5 used; calendar yearly@UTC, used 3, unused at 1 Jan 2028 00:00:00 UTC, limit 5, "
        "remaining 2; granted");
  // One that the tool does not know: what is used is told, and no end.
  CHECK(used(Calendar::daily(TimeZone("Mars", {{Time{}, Span{1'800 * second}}}))) ==
        "3 of 5 used; calendar daily@Mars, used 3, limit 5, remaining 2; granted");
  book.decide(FixedWindow(store(), "f", 5, Calendar::every(1min)).block_step("b", 100s));
  CHECK(book.told("{b}:f:1min") ==
        "closed for 1m 40s; calendar 1min, closed until in 1m 40s, unused at in 1m 40s");
}

TEST_CASE("a shared sliding window tells its rate", "[describe]") {
  Book book;
  book.decide({&shared_sliding_window_configure,
               Key{"a", "rate"},
               {5, 10 * second, 1, static_cast<Word>(SharedSlidingWindowRule::Mode::reset),
                3'600 * second}});
  CHECK(book.told("{a}:rate") ==
        "5 in 10.0 s for each client; version 1,800,000,000,000,000, log 1,800,000,000,000,000, "
        "rate 5, window 10.0 s, counted for each client");
}

/// Acquires a lease of ten of the key {a}:jobs.
bool lease(Book& book, Word weight, Word ttl, Word id) {
  return book.decide({&leases_acquire, Key{"a", "jobs"}, {10, weight, ttl, 0, 0, id, 2, 3}})
             .status == Verdict::allowed;
}

TEST_CASE("leases tell their holders", "[describe]") {
  Book book;
  CHECK(lease(book, 2, 60 * second, 0xabc));
  CHECK(lease(book, 3, 30 * second, 1));
  CHECK(lease(book, 1, 1 * second, 7));
  book.now += 2 * second;
  CHECK(book.told("{a}:jobs") ==
        "5 held; held 5, holders 2\n"
        "id 00000000000010000000000002000003, weight 3, fence 1,800,000,000,000,001, until in 28.0 "
        "s\n"
        "id 0000000000abc0000000000002000003, weight 2, fence 1,800,000,000,000,000, until in 58.0 "
        "s");
  book.decide(ConcurrencyLimiter(store(), "jobs", 10).block_step("a", 20s));
  CHECK(book.told("{a}:jobs", {.limits = {10}}) ==
        "5 of 10 held, closed for 20.0 s; held 5, holders 2, limit 10, remaining 0, next at in "
        "20.0 s, closed until in 20.0 s; refused\n"
        "id 00000000000010000000000002000003, weight 3, fence 1,800,000,000,000,001, until in 28.0 "
        "s\n"
        "id 0000000000abc0000000000002000003, weight 2, fence 1,800,000,000,000,000, until in 58.0 "
        "s");
  book.now += 60 * second;
  CHECK(book.told("{a}:jobs") == "0 held; held 0, holders 0");
}

TEST_CASE("leases end by the clock also after it was set far back", "[describe]") {
  Book book;
  CHECK(lease(book, 1, 60 * second, 1));
  book.now -= 3'600 * second;
  CHECK(lease(book, 1, 60 * second, 2));
  CHECK(book.told("{a}:jobs") ==
        "2 held; held 2, holders 2\n"
        "id 00000000000010000000000002000003, weight 1, fence 1,800,000,000,000,000, until in 1m\n"
        "id 00000000000020000000000002000003, weight 1, fence 1,800,000,000,000,001, until in 1m");
}

TEST_CASE("a slot lock tells when the next slot is free", "[describe]") {
  Book book;
  const SlotLock lock(store(), "slots", 10s);
  book.decide(lock.acquire_step("a", 60s));
  book.decide(lock.acquire_step("a", 60s));
  CHECK(book.describe("{a}:slots").used == 1);
  CHECK(book.describe("{a}:slots").limit == 1);
  CHECK(book.told("{a}:slots") == "next slot in 20.0 s; next at in 20.0 s; refused");
  book.now += 20 * second;
  CHECK(book.describe("{a}:slots").used == 0);
  CHECK(book.told("{a}:slots") == "a slot is free; granted");
}

TEST_CASE("a gate tells until when it is closed, and that it reopens", "[describe]") {
  Book book;
  const Gates gates(store(), "gates", {"account"}, {.ramp = 10s, .spacing = 1s});
  const Scope scope = gates.scope("account", "1");
  const std::string key = render(scope.key());
  book.decide(gates.close_step(scope, 30s));
  book.now += 10 * second;
  CHECK(book.told(key) ==
        "closed for 20.0 s; closed until in 20.0 s, closed at 10.0 s ago; refused");
  book.now += 20 * second;
  book.decide(gates.pass_step(scope));
  CHECK(book.told(key) == "reopening; next at in 1.00 s; granted");
  book.now += 10 * second;
  CHECK(book.told(key) == "open; granted");
}

TEST_CASE("a utilization tells its level", "[describe]") {
  Book book;
  const UtilizationShedder shedder(store(), "shedder");
  book.decide(shedder.sample_step("shedder", 1.0));
  book.now += 3 * second;
  book.decide(shedder.sample_step("shedder", 1.0));
  CHECK(book.told("{shedder}:shedder") == "level 3.00 s; level 3.00 s, sampled at in 0 us");
}

TEST_CASE("a line of waiters tells who waits, the first first", "[describe]") {
  Book book;
  const auto enter = [&](Word client, Word arrival, Word ttl, Word units) {
    book.decide({&wait_line_enter, Key{"a", "l"}, {word_limit, client, arrival, ttl, units}});
  };
  enter(7, book.now, 10 * second, 2);
  enter(9, book.now - 5 * second, 20 * second, 1);
  enter(11, book.now - 9 * second, 1 * second, 1);
  book.now += second;
  CHECK(book.told("{a}:l") ==
        "2 processes waiting, the first for 6.00 s; processes 2, units wanted first 3, granted 0\n"
        "process 9, since 6.00 s ago, first wants 1, alive until in 19.0 s\n"
        "process 7, since 1.00 s ago, first wants 2, alive until in 9.00 s");
  book.now += 60 * second;
  CHECK(book.told("{a}:l") == "0 processes waiting; processes 0, units wanted first 0, granted 0");
}

TEST_CASE("a learned rate tells what it has learned", "[describe]") {
  Book book;
  const LearnedRate rate(store(), "learned");
  book.decide(rate.acquire_step("a", 1));
  CHECK(book.told("{a}:learned") == "10/s; rate per second 10, remaining 1; granted");
  book.now += second;
  Step fall = rate.acquire_step("a", 1);
  fall.operation = &learned_rate_limited;
  fall.args[5] = 1;
  fall.args[6] = book.now;
  CHECK(book.decide(fall).status == 1);
  CHECK(book.told("{a}:learned") ==
        "9.5/s; rate per second 9.5, peak per second 10, remaining 0, fell at in 0 us, next at in "
        "105 ms; refused");
  book.decide(rate.block_step("a", 5s));
  CHECK(book.told("{a}:learned") ==
        "closed for 5.00 s; rate per second 9.5, peak per second 10, remaining 0, fell at in 0 us, "
        "closed until in 5.00 s; refused");
}

TEST_CASE("the answer to a request id tells until when it is repeated", "[describe]") {
  tool::StoredState state{StateKind::idempotency_record, {Book().now, 5, 1, 2, 0, 0}};
  const auto name = *tool::KeyName::parse("{a}:id");
  CHECK(told(tool::describe(name, state, {}, Book().now), Book().now) ==
        "answered; answered at in 0 us, repeated until 15 Jan 2027 08:10:00 UTC");
  state.words.resize(5);
  CHECK_FALSE(tool::describe(name, state, {}, Book().now).is_sound);
}

}  // namespace
}  // namespace sluice::test
