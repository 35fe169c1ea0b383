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
using tool::Given;

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

  auto d = book.describe(key);
  CHECK(d.kind == "a token bucket");
  CHECK(d.summary == "3 used");
  CHECK(d.used == 3);
  CHECK_FALSE(d.limit);
  CHECK_FALSE(d.verdict);
  CHECK(moment_of(d, "unused_at") == book.now + 300'000);

  book.now += 100'000;
  d = book.describe(key, {.quota = Quota::parse("10/s:5")});
  CHECK(d.summary == "2 of 5 used");
  CHECK(d.limit == 5);
  CHECK(field<Word>(d.fields, "remaining") == 3);
  CHECK(d.verdict->status == Verdict::allowed);
  d = book.describe(key, {.limits = {2}});
  CHECK(d.verdict->status == Verdict::refused);
  CHECK(moment_of(d, "next_at") == book.now + 100'000);
  d = book.describe(key, {.limits = {2}, .cost = 3});
  CHECK(d.verdict->status == -static_cast<Word>(Errc::cost_exceeds_capacity));

  CHECK_THROWS_WITH(book.describe(key, {.quota = Quota::parse("11/s:5")}),
                    "the key is counted in 10/s, which is not the rate of 11/s:5");
  CHECK_THROWS_WITH(book.describe(key, {.limits = {2, 3}}), "the key has one limit, got 2");
}

TEST_CASE("a token bucket tells until when a reservation or a block closes it", "[describe]") {
  Book book;
  const TokenBucket bucket(store(), "api", Quota::per_second(1).burst(2),
                           {.longest = std::chrono::minutes{50}});
  CHECK(book.decide(bucket.block_step("a", 40min)).status == 1);
  const auto d = book.describe("{a}:api:1/s");
  CHECK(moment_of(d, "closed_until") == book.now + 2'400 * second);
  CHECK(d.summary == "closed for 40m");
  CHECK_FALSE(d.used);
}

TEST_CASE("a token bucket with refills each minute is counted at their times", "[describe]") {
  Book book;
  book.now -= book.now % (60 * second);
  const TokenBucket bucket(store(), "api", Quota::per_minute(6).burst(6),
                           {.refill = Refill::per_interval(1min)});
  CHECK(book.decide(bucket.acquire_step("a", 6)).status == 1);
  const std::string key = "{a}:api:6/min@1min";
  book.now += 59 * second;
  CHECK(book.describe(key).used == 6);
  book.now += second;
  CHECK(book.describe(key).used == 0);
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
    std::string key;
    for (int i = 0; i < 10; ++i) {
      const Word cost = random.between(1, burst);
      book.decide(bucket.acquire_step("a", cost));
      key = render(bucket.acquire_step("a").key);
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
  book.decide(bucket.configure_step("a", Quota::per_second(10).burst(5), Inheritance::as_is));
  book.decide(bucket.acquire_step("a", 4));
  const auto d = book.describe("{a}:shared");
  CHECK(d.summary == "4 of 5 used");
  CHECK(field<std::string>(d.fields, "quota") == "10/s:5");
  CHECK(field<Word>(d.fields, "version") == 1);
  CHECK(field<Word>(d.fields, "remaining") == 1);

  book.decide(bucket.configure_step("n", Quota::never(), Inheritance::as_is));
  const auto never = book.describe("{n}:shared");
  CHECK(never.summary == "never");
  REQUIRE(never.verdict);
  CHECK(never.verdict->status == Verdict::refused);
  book.decide(bucket.configure_step("u", Quota::unlimited(), Inheritance::as_is));
  const auto always = book.describe("{u}:shared");
  CHECK(always.summary == "unlimited");
  REQUIRE(always.verdict);
  CHECK(always.verdict->status == Verdict::allowed);
}

TEST_CASE("a sliding window tells each of its windows", "[describe]") {
  Book book;
  const SlidingWindow windows(store(), "w", {{5, 1s}, {7, 1min}});
  const std::string key = "{a}:w:1s+1min,grants";
  book.decide(windows.acquire_step("a", 4));
  book.now += 1 * second;
  book.decide(windows.acquire_step("a", 2));

  auto d = book.describe(key);
  CHECK(d.used == 6);
  CHECK_FALSE(d.limit);
  REQUIRE(d.rows.size() == 2);
  CHECK(field<Word>(d.rows[0], "used") == 2);
  CHECK(field<Word>(d.rows[1], "used") == 6);
  CHECK(moment_of(d, "unused_at") == book.now + 60 * second);

  d = book.describe(key, {.limits = {5, 7}});
  CHECK(d.summary == "6 of 7 used");
  CHECK(d.verdict->status == Verdict::allowed);
  d = book.describe(key, {.limits = {2, 100}});  // fuller, with fewer units
  CHECK(d.summary == "2 of 2 used");
  CHECK(d.verdict->status == Verdict::refused);
  CHECK_THROWS_WITH(book.describe(key, {.limits = {5}}),
                    "the key has 2 windows and 1 limit is given");

  book.decide(windows.block_step("a", 30s));
  CHECK(moment_of(book.describe(key), "closed_until") == book.now + 30 * second);
}

TEST_CASE("a sliding window of one span has its limit in the state", "[describe]") {
  Book book;
  const SlidingWindow windows(store(), "w", {{5, 10s}});
  book.decide(windows.acquire_step("a", 4));
  CHECK(book.describe("{a}:w:10s,grants").summary == "4 of 5 used");
  CHECK(book.describe("{a}:w:10s,grants", {.quota = Quota::parse("2/s")}).summary ==
        "4 of 20 used");
  CHECK_THROWS_WITH(book.describe("{a}:w:10s,grants", {.quota = Quota::parse("1/min")}),
                    "1/min is no whole number of units in 10.0 s");
}

TEST_CASE("a sliding window counter needs its limit", "[describe]") {
  Book book;
  book.now -= book.now % (60 * second);
  const SlidingWindowCounter counter(store(), "c", {10, 1min});
  book.decide(counter.acquire_step("a", 8));
  const std::string key = "{a}:c:1min";
  CHECK(book.describe(key).summary == "8 used");
  book.now += 90 * second;  // half of them count
  CHECK(book.describe(key, {.limits = {10}}).summary == "4 of 10 used");
  book.decide(counter.block_step("a", 20s));
  CHECK(moment_of(book.describe(key), "closed_until") == book.now + 20 * second);
}

TEST_CASE("a fixed window ends where its calendar says", "[describe]") {
  Book book;
  const Word day = 86'400 * second;
  book.now -= book.now % day;
  book.now += 3'600 * second;
  clock_of_store().set(to_time(book.now));
  const auto used_of = [&](Calendar calendar) {
    const std::string unit = calendar.to_string();
    const FixedWindow window(store(), "f", 5, std::move(calendar));
    book.decide(window.acquire_step("a", 3));
    return std::pair(render(window.acquire_step("a").key), unit);
  };
  auto [key, unit] = used_of(Calendar::every(1min, Time{10s}));
  auto d = book.describe(key, {.limits = {5}});
  CHECK(d.summary == "3 of 5 used");
  CHECK(moment_of(d, "unused_at") == book.now + 10 * second);
  CHECK(field<std::string>(d.fields, "calendar") == unit);

  key = used_of(Calendar::daily()).first;
  CHECK(moment_of(book.describe(key), "unused_at") == book.now + day - 3'600 * second);
  for (auto calendar :
       {Calendar::weekly(), Calendar::monthly(), Calendar::quarterly(), Calendar::yearly()}) {
    const Word end = to_word(calendar.window(to_time(book.now)).end);
    key = used_of(std::move(calendar)).first;
    CHECK(moment_of(book.describe(key), "unused_at") == end);
  }
  // One that the tool does not know: what is used is told, and no end.
  key = used_of(Calendar::daily(TimeZone("Mars", {{Time{}, Span{1'800 * second}}}))).first;
  d = book.describe(key, {.limits = {5}});
  CHECK(d.summary == "3 of 5 used");
  CHECK_FALSE(has_field(d, "unused_at"));
  const FixedWindow window(store(), "f", 5, Calendar::every(1min));
  book.decide(window.block_step("b", 100s));
  CHECK(moment_of(book.describe("{b}:f:1min"), "closed_until") == book.now + 100 * second);
}

TEST_CASE("a shared sliding window tells its rate", "[describe]") {
  Book book;
  book.decide({&shared_sliding_window_configure,
               Key{"a", "rate"},
               {5, 10 * second, 1, static_cast<Word>(SharedSlidingWindowRule::Mode::reset),
                3'600 * second}});
  const auto d = book.describe("{a}:rate");
  CHECK(d.summary == "5 in 10.0 s for each client");
  CHECK(field<Word>(d.fields, "rate") == 5);
  CHECK(field<Span>(d.fields, "window") == 10s);
}

TEST_CASE("leases tell their holders", "[describe]") {
  Book book;
  const auto acquire = [&](Word weight, Word ttl, Word id) {
    return book.decide({&leases_acquire, Key{"a", "jobs"}, {10, weight, ttl, 0, 0, id, 2, 3}})
        .status;
  };
  CHECK(acquire(2, 60 * second, 0xabc) == 1);
  CHECK(acquire(3, 30 * second, 1) == 1);
  CHECK(acquire(1, 1 * second, 7) == 1);
  book.now += 2 * second;
  auto d = book.describe("{a}:jobs");
  CHECK(d.summary == "5 held");
  CHECK(d.used == 5);
  REQUIRE(d.rows.size() == 2);
  CHECK(field<Word>(d.rows[0], "weight") == 3);
  CHECK(field<tool::Moment>(d.rows[0], "until").us == book.now + 28 * second);
  CHECK(field<std::string>(d.rows[1], "id") == "0000000000abc0000000000002000003");
  CHECK(field<tool::Moment>(d.rows[1], "until").us == book.now + 58 * second);

  const ConcurrencyLimiter jobs(store(), "jobs", 10);
  book.decide(jobs.block_step("a", 20s));
  d = book.describe("{a}:jobs", {.limits = {10}});
  CHECK(d.summary == "5 of 10 held, closed for 20.0 s");
  CHECK(d.rows.size() == 2);
  CHECK(d.verdict->status == Verdict::refused);
  book.now += 60 * second;
  CHECK(book.describe("{a}:jobs").summary == "0 held");
}

TEST_CASE("leases end by the clock also after it was set far back", "[describe]") {
  Book book;
  const auto acquire = [&](Word id) {
    return book.decide({&leases_acquire, Key{"a", "jobs"}, {10, 1, 60 * second, 0, 0, id, 2, 3}})
        .status;
  };
  CHECK(acquire(1) == 1);
  book.now -= 3'600 * second;
  CHECK(acquire(2) == 1);
  const auto d = book.describe("{a}:jobs");
  REQUIRE(d.rows.size() == 2);
  CHECK(field<tool::Moment>(d.rows[1], "until").us == book.now + 60 * second);
}

TEST_CASE("a slot lock tells when the next slot is free", "[describe]") {
  Book book;
  const SlotLock lock(store(), "slots", 10s);
  book.decide(lock.acquire_step("a", 60s));
  book.decide(lock.acquire_step("a", 60s));
  const auto d = book.describe("{a}:slots");
  CHECK(d.summary == "next slot in 20.0 s");
  CHECK(moment_of(d, "next_at") == book.now + 20 * second);
  book.now += 20 * second;
  CHECK(book.describe("{a}:slots").summary == "a slot is free");
}

TEST_CASE("a gate tells until when it is closed, and that it reopens", "[describe]") {
  Book book;
  const Gates gates(store(), "gates", {"account"}, {.ramp = 10s, .spacing = 1s});
  const Scope scope = gates.scope("account", "1");
  book.decide(gates.close_step(scope, 30s));
  const Word closed_at = book.now;
  book.now += 10 * second;
  const std::string rendered = render(scope.key());
  auto d = book.describe(rendered);
  CHECK(d.summary == "closed for 20.0 s");
  CHECK(moment_of(d, "closed_until") == closed_at + 30 * second);
  CHECK(moment_of(d, "closed_at") == closed_at);
  book.now += 20 * second;
  book.decide(gates.pass_step(scope));
  d = book.describe(rendered);
  CHECK(d.summary == "reopening");
  CHECK(moment_of(d, "next_at") == book.now + 1 * second);
  book.now += 10 * second;
  CHECK(book.describe(rendered).summary == "open");
}

TEST_CASE("a utilization tells its level", "[describe]") {
  Book book;
  const UtilizationShedder shedder(store(), "shedder");
  book.decide(shedder.sample_step("shedder", 1.0));
  book.now += 3 * second;
  book.decide(shedder.sample_step("shedder", 1.0));
  const auto d = book.describe("{shedder}:shedder");
  CHECK(d.summary == "level 3.00 s");
  CHECK(moment_of(d, "sampled_at") == book.now);
}

TEST_CASE("a line of waiters tells who waits, the first first", "[describe]") {
  Book book;
  const auto enter = [&](Word client, Word arrival, Word ttl, Word units) {
    book.decide({&wait_line_enter, Key{"a", "l"}, {word_limit, client, arrival, ttl, units}});
  };
  enter(7, book.now, 10 * second, 2);
  enter(9, book.now - 5 * second, 20 * second, 1);
  enter(11, book.now - 9 * second, 1 * second, 1);
  book.now += 1 * second;
  auto d = book.describe("{a}:l");
  CHECK(d.summary == "2 processes waiting, the first for 6.00 s");
  REQUIRE(d.rows.size() == 2);
  CHECK(field<Word>(d.rows[0], "process") == 9);
  CHECK(field<Word>(d.rows[1], "first_wants") == 2);
  book.now += 60 * second;
  CHECK(book.describe("{a}:l").summary == "0 processes waiting");
}

TEST_CASE("a learned rate tells what it has learned", "[describe]") {
  Book book;
  const LearnedRate rate(store(), "learned");
  book.decide(rate.acquire_step("a", 1));
  auto d = book.describe("{a}:learned");
  CHECK(d.summary == "10/s");
  CHECK(field<double>(d.fields, "rate_per_second") == 10);
  CHECK_FALSE(has_field(d, "fell_at"));
  book.now += 1 * second;
  Step fall = rate.acquire_step("a", 1);
  fall.operation = &learned_rate_limited;
  fall.args[5] = 1;
  fall.args[6] = book.now;
  CHECK(book.decide(fall).status == 1);
  d = book.describe("{a}:learned");
  CHECK(d.summary == "9.5/s");
  CHECK(moment_of(d, "fell_at") == book.now);
  CHECK(field<double>(d.fields, "peak_per_second") > 0);
  book.decide(rate.block_step("a", 5s));
  d = book.describe("{a}:learned");
  CHECK(d.summary == "closed for 5.00 s");
  CHECK(d.verdict->status == Verdict::refused);
}

TEST_CASE("the answer to a request id tells until when it is repeated", "[describe]") {
  Book book;
  tool::StoredState state{StateKind::idempotency_record, {book.now, 5, 1, 2, 0, 0}};
  const auto name = *tool::KeyName::parse("{a}:id");
  auto d = tool::describe(name, state, {}, book.now);
  CHECK(d.is_sound);
  CHECK(moment_of(d, "answered_at") == book.now);
  CHECK(moment_of(d, "repeated_until") == book.now + 600 * second);
  state.words.resize(5);
  CHECK_FALSE(tool::describe(name, state, {}, book.now).is_sound);
}

}  // namespace
}  // namespace sluice::test
