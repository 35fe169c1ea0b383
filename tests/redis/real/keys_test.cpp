// What lies under our keys: hostile names, other people's values, garbage, when it expires, and
// what becomes of a state that somebody meddled with. Threading: the test's thread.
#include <algorithm>
#include <functional>
#include <set>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/support/frozen_redis.hpp"
#include "tests/support/limiters.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

std::string state(char kind, Word first, Word second) {
  std::string bytes(1, kind);
  for (const Word word : {first, second}) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  }
  return bytes;
}

/// One limiter of each kind on a server whose clock is the test's, and calls that write their keys.
class Zoo {
 public:
  using Call = std::function<void(std::error_code&)>;
  struct Animal {
    std::string key;
    Call call;
  };

  Zoo() : admin_(redis_.server().unix_socket()), store_(connect_socket(redis_.server())) {
    redis_.set_time(clock_.now());
    redis_.flush();
    for_each_limiter([this](const std::string& key, auto make, auto ask) {
      const auto limiter = allocate(make, *store_);
      animals_.push_back(
          {key, [limiter, ask](auto& error) { static_cast<void>(ask(*limiter, error)); }});
    });
    const SlidingWindow many(*store_, "many", {{5, 10s}, {50, 100s}, {500, 1000s}});
    animals_.push_back({"{a}:many:10s+100s+1000s,grants",
                        [many](auto& error) { static_cast<void>(many.try_acquire("a", error)); }});
  }
  ~Zoo() { redis_.flush(); }
  Zoo(const Zoo&) = delete;
  Zoo& operator=(const Zoo&) = delete;

  void advance(Span span) {
    clock_.advance(span);
    redis_.set_time(clock_.now());
  }
  RedisReply admin(std::initializer_list<std::string_view> command) { return admin_(command); }
  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] std::vector<std::string> keys() {
    std::vector<std::string> names;
    for (const RedisReply& key : admin({"KEYS", "*"}).elements) names.push_back(key.text);
    return names;
  }
  [[nodiscard]] const std::vector<Animal>& animals() const { return animals_; }

 private:
  FrozenRedis& redis_ = FrozenRedis::instance();
  RedisClient admin_;
  VirtualClock clock_;
  std::unique_ptr<RedisStore> store_;
  std::vector<Animal> animals_;
};

}  // namespace

TEST_CASE_METHOD(SharedStore, "hostile keys are keys like any other, and each is its own",
                 "[redis][C-086]") {
  const TokenBucket bucket(*store, "api", Quota::per_hour(10));
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  const std::vector<std::string> parts{"a",
                                       "a:b",
                                       "{a}",
                                       "}",
                                       "{",
                                       "\r\n",
                                       "\r\nFLUSHALL\r\n",
                                       std::string(1, '\0'),
                                       "%41",
                                       "A",
                                       all_bytes,
                                       "#",
                                       std::string(128, '{'),
                                       std::string(129, '{'),
                                       std::string(1 << 20, 'x'),
                                       std::string(1 << 20, '\n')};
  std::size_t wrong = 0;
  for (const auto& tag : parts) {
    for (const auto& name : parts)
      wrong += bucket.try_acquire(Key{tag, name}).remaining == 9 ? 0U : 1U;
  }
  CHECK(wrong == 0);
  CHECK(admin({"DBSIZE"}).integer == static_cast<std::int64_t>(parts.size() * parts.size()));
  for (const RedisReply& key : admin({"KEYS", "*"}).elements) {
    CHECK(key.text.size() <= 2 * 3 * 128 + 3 + 5);  // "{...}:...:10/h"
    CHECK(key.text.find_first_of("\r\n") == std::string::npos);
    CHECK(key.text.find('{', 1) == std::string::npos);
  }
  std::error_code error;
  static_cast<void>(bucket.try_acquire({std::string((1 << 20) + 1, 'x'), "y"}, error));
  CHECK(error == Errc::invalid_key);
}

TEST_CASE_METHOD(SharedStore, "every key expires, within a second of when it means nothing",
                 "[redis][C-032]") {
  Random random("every key expires, within a second of when it means nothing");
  CAPTURE(random.repeat());
  for (int i = 0; i < 200; ++i) {
    const Quota quota = Quota::per(random.between(1, 1000), Span{random.between(1, 3'600'000'000)})
                            .burst(random.between(1, 1000));
    const TokenBucket bucket(*store, "api", quota);
    const std::string one = "one" + std::to_string(i);
    const std::string two = "two" + std::to_string(i);
    const std::string third = one + "x";
    REQUIRE(bucket.try_acquire(one));
    REQUIRE(decide(*store, {bucket.acquire_step(third), bucket.acquire_step(two)}));
    const Step step = bucket.acquire_step(one);
    const Word longest = step.operation->ttl(step.args) / 1'000 + 1'001;
    for (const std::string& tag : {one, one + "x", two}) {
      const Word ttl = admin({"PTTL", render(bucket.acquire_step(tag).key)}).integer;
      CHECK(ttl > 0);
      CHECK(ttl <= longest);
    }
  }
}

TEST_CASE_METHOD(SharedStore, "a blocked key lives as long as its block", "[redis][C-032]") {
  const SlidingWindow windows(*store, "api", {{5, std::chrono::seconds(1)}});
  const auto hour = std::chrono::hours(1);
  const auto ttl = [&](const char* key) { return admin({"PTTL", key}).integer; };
  windows.block("fresh", hour);
  static_cast<void>(windows.try_acquire("spent"));
  windows.block("spent", hour);
  windows.block("spent", std::chrono::seconds(1));
  static_cast<void>(windows.reserve("spent", 1, 2 * hour));
  windows.reward("fresh", 1);
  CHECK(ttl("{fresh}:api:1s,grants") > 3'600'000);
  CHECK(ttl("{fresh}:api:1s,grants") <= 3'600'000 + 121'001);
  CHECK(ttl("{spent}:api:1s,grants") > 3'600'000);
  admin({"PERSIST", "{spent}:api:1s,grants"});
  windows.reward("spent", 1);
  CHECK(ttl("{spent}:api:1s,grants") > 0);
  CHECK_FALSE(windows.try_acquire("spent").allowed);
}

TEST_CASE_METHOD(SharedStore, "a state that may be is used, however odd, and gets a time to live",
                 "[redis]") {
  const TokenBucket bucket(*store, "api", Quota::per_second(10));
  for (const auto& odd : {state(18, 0, 0), state(18, 2'000'001, 0),
                          state(18, word_limit, word_limit), state(18, 0, word_limit)}) {
    // Behind the words stands when the key expires, or nothing.
    for (const char filler : {'\0', '\x7f', '\xff'}) {
      for (const std::size_t more : {0U, 8U}) {
        const std::string raw = odd + std::string(more, filler);
        admin({"SET", "{a}:api:10/s", raw});
        CHECK(bucket.try_acquire("a"));
        CHECK(admin({"PTTL", "{a}:api:10/s"}).integer > 0);
        for (const char* key : {"{b}:api:10/s", "{c}:api:10/s"}) admin({"SET", key, raw});
        CHECK(decide(*store, {bucket.acquire_step("b"), bucket.acquire_step("c")}));
        for (const char* key : {"{b}:api:10/s", "{c}:api:10/s"}) {
          CHECK(admin({"PTTL", key}).integer > 0);
        }
      }
    }
  }
}

TEST_CASE_METHOD(SharedStore,
                 "a key that is written often gets its time to live anew twice a second",
                 "[redis][C-032]") {
  const TokenBucket bucket(*store, "api", Quota::per_second(1'000'000));
  const SlotLock lock(*store, "lock", Span{1});
  for (const Step& step : {bucket.acquire_step("a"), lock.acquire_step("a", Span{0})}) {
    const Word least = step.operation->ttl(step.args) / 1'000;
    for (const bool in_plan : {false, true}) {
      std::set<Word> expiries;
      int kept = 0;
      while (expiries.size() < 3 || kept == 0) {
        const RedisReply time = admin({"TIME"});
        const Word before = std::stoll(time.elements.at(0).text) * 1'000;
        const Decision decision =
            in_plan ? decide(*store, {step, bucket.acquire_step("b")}) : decide(*store, {step});
        if (!decision) continue;
        const Word expiry = admin({"PEXPIRETIME", render(step.key)}).integer;
        REQUIRE(expiry >= before + least);
        if (!expiries.insert(expiry).second) ++kept;
      }
      CHECK(*expiries.rbegin() - *expiries.begin() >= 500);
    }
  }
}

TEST_CASE("a key whose time to live was taken away gets one again", "[redis][C-032][C-072]") {
  Zoo zoo;
  std::error_code error;
  for (const auto& [key, call] : zoo.animals()) call(error);
  REQUIRE_FALSE(error);
  REQUIRE(zoo.keys().size() == zoo.animals().size() + 1);  // a shared sliding window has two keys
  for (const std::string& key : zoo.keys()) REQUIRE(zoo.admin({"PERSIST", key}).integer == 1);
  for (int i = 0; i < 20; ++i) {
    zoo.advance(61s);
    for (const auto& [key, call] : zoo.animals()) {
      call(error);
      REQUIRE_FALSE(error);
    }
  }
  for (const std::string& key : zoo.keys()) {
    INFO(key);
    CHECK(zoo.admin({"PTTL", key}).integer > 0);
  }
}

TEST_CASE("a key that the server evicted costs what it held once, and nothing later",
          "[redis][C-027][C-052][C-053]") {
  Zoo zoo;
  const TokenBucket bucket(zoo.store(), "api", listed_quota);
  CHECK(bucket.try_acquire("b", 5).allowed);
  CHECK(zoo.admin({"DEL", "{b}:api:10/s"}).integer == 1);
  CHECK(bucket.try_acquire("b", 5).allowed);
  CHECK(bucket.try_acquire("b").retry_after == 100ms);

  const SharedSlidingWindow limiter(zoo.store(), "rate");
  limiter.configure("partner", RateType::overall, 3, 1min, SpentUnits::forgotten);
  CHECK(limiter.try_acquire("partner", 3).allowed);
  for (const std::string& key : zoo.keys()) {
    if (key.starts_with("{partner}:rate%3agrants")) zoo.admin({"DEL", key});
  }
  for (int window = 0; window < 3; ++window) {
    CHECK(limiter.peek("partner").remaining == 3);  // not 6, now or ever after
    CHECK(limiter.try_acquire("partner", 3).allowed);
    CHECK(limiter.try_acquire("partner").retry_after == 1min);
    zoo.advance(1min);
  }
  CHECK(zoo.admin({"DEL", "{partner}:rate"}).integer == 1);
  std::error_code error;
  static_cast<void>(limiter.try_acquire("partner", 1, error));
  CHECK(error == Errc::not_configured);
  CHECK(limiter.try_configure("partner", RateType::overall, 3, 1min).changed);
  CHECK(limiter.try_acquire("partner", 3).allowed);
  CHECK_FALSE(limiter.try_acquire("partner").allowed);
}

TEST_CASE("each key of a limiter is one state, and what is lost with it is one burst",
          "[redis][C-027]") {
  Zoo zoo;
  std::error_code error;
  zoo.admin({"FLUSHALL"});
  for (const auto& [key, call] : zoo.animals()) {
    INFO(key);
    for (int i = 0; i < 8; ++i) call(error);  // grants and refusals
    REQUIRE_FALSE(error);
    // A shared sliding window has its configuration and its log, in one slot.
    CHECK(zoo.keys().size() == (key == "{a}:rate" ? 2 : 1));
    for (const std::string& kept : zoo.keys()) CHECK(kept.starts_with(key));
    zoo.admin({"FLUSHALL"});
  }
}

TEST_CASE("a refusal writes nothing, also where old entries could be cleared away",
          "[redis][C-016]") {
  Zoo zoo;
  const auto dirty = [&] {
    const std::string info = zoo.admin({"INFO", "persistence"}).text;
    const auto at = info.find("rdb_changes_since_last_save:");
    REQUIRE(at != std::string::npos);
    return std::stoll(info.substr(at + 28));
  };
  const SlidingWindow windows(zoo.store(), "w", {{4, 5s}, {6, 60s}});
  const SlidingWindowCounter counter(zoo.store(), "c", {3, 20s});
  const FixedWindow fixed(zoo.store(), "f", 3, Calendar::every(1h));
  const TokenBucket bucket(zoo.store(), "b", Quota::per(1, 10min).burst(3));
  const ConcurrencyLimiter jobs(zoo.store(), "j", 2, {.ttl = 1h});
  const SlotLock slots(zoo.store(), "s", 1h);
  const Gates gates(zoo.store(), "g", {"account"});
  const Scope scope = gates.scope("account", "1");
  const Lease brief = ConcurrencyLimiter(zoo.store(), "j", 2, {.ttl = 1s}).try_acquire("a");
  const Lease first = jobs.try_acquire("a");
  REQUIRE(windows.try_acquire("a", 4));
  zoo.advance(6s);  // what was taken so far left the short window, and one lease has lapsed
  REQUIRE(windows.try_acquire("a", 2));
  REQUIRE(counter.try_acquire("a", 3));
  REQUIRE(fixed.try_acquire("a", 3));
  REQUIRE(bucket.try_acquire("a", 3));
  REQUIRE(slots.try_acquire("a"));
  REQUIRE(gates.close(scope, 1h));
  const Lease second = jobs.try_acquire("a");
  REQUIRE(second);
  zoo.advance(6s);
  const auto before = dirty();
  std::vector<std::string> dumps;
  for (const std::string& key : zoo.keys()) dumps.push_back(zoo.admin({"DUMP", key}).text);
  for (int i = 0; i < 5; ++i) {
    zoo.advance(Span{i * 100'000});
    CHECK_FALSE(windows.try_acquire("a"));
    CHECK_FALSE(counter.try_acquire("a"));
    CHECK_FALSE(fixed.try_acquire("a"));
    CHECK_FALSE(bucket.try_acquire("a"));
    CHECK(bucket.try_acquire("a", 0));
    static_cast<void>(bucket.peek("c"));
    CHECK_FALSE(jobs.try_acquire("a").decision().allowed);
    CHECK_FALSE(slots.try_acquire("a"));
    CHECK_FALSE(gates.pass(scope));
    CHECK_FALSE(decide(zoo.store(), {bucket.acquire_step("b"), bucket.acquire_step("a")}));
    CHECK_FALSE(
        decide(zoo.store(), {windows.acquire_step(Key{"a", "new"}), windows.acquire_step("a")}));
  }
  CHECK(dirty() == before);  // nothing is saved, and nothing goes to a replica
  std::size_t i = 0;
  for (const std::string& key : zoo.keys()) CHECK(zoo.admin({"DUMP", key}).text == dumps.at(i++));
}

TEST_CASE(
    "a window of any length leaves a key that lives as long, and one that cannot be leaves none",
    "[redis][C-006]") {
  Zoo zoo;
  int count = 0;
  for (const Span span : std::initializer_list<Span>{1us, 999us, 1ms, 1'001us, 500ms, 999'999us,
                                                     1'500'001us, 366 * 24h}) {
    CAPTURE(span.count());
    const std::string name = "w" + std::to_string(++count);
    const SlidingWindow windows(zoo.store(), name, {{2, span}});
    const std::string key = render(windows.acquire_step("k").key);
    for (int call = 0; call < 3; ++call) {  // two grants and a refusal
      CHECK(windows.try_acquire("k").allowed == (call < 2));
      // To the end of what it means, never a part of a millisecond short of it.
      const Step step = windows.acquire_step("k");
      const Word kept = (step.operation->ttl(step.args) + 999) / 1000;
      CHECK(kept >= (span.count() + 999) / 1000);
      const Word ttl = zoo.admin({"PTTL", key}).integer;
      CHECK(ttl >= kept);
      CHECK(ttl <= kept + 1000);
    }
  }
  zoo.admin({"FLUSHALL"});
  // Past the check of the constructor, as another client would ask.
  for (const Word span : {Word{0}, Word{-1}, Word{-500'000}, SlidingWindowRule::max_span + 1}) {
    const std::array<Word, 4> table{5, 1'000'000, 5, span};
    const Step step{
        &sliding_window_acquire, {"k", "bad"}, {5, 1, 0, std::max(span, table[1])}, nullptr, table};
    std::error_code error;
    (void)decide(zoo.store(), step, error);
    CHECK(error == Errc::invalid_argument);
    CHECK(error == Failure::not_executed);
    CHECK(zoo.keys().empty());
  }
}

TEST_CASE("what is no state of its kind under the key of any limiter is a typed error, and stays",
          "[redis][C-014][C-028]") {
  Zoo zoo;
  std::error_code error;
  const TokenBucket other(zoo.store(), "other", Quota::per_hour(10));
  for (const Zoo::Animal& animal : zoo.animals()) {
    const std::string& key = animal.key;
    INFO(key);
    animal.call(error);
    REQUIRE_FALSE(error);
    const std::string sound = zoo.admin({"GET", key}).text;
    const auto check_kept = [&](Errc code) {
      const std::string before = zoo.admin({"DUMP", key}).text;
      const Word expiry = zoo.admin({"PEXPIRETIME", key}).integer;
      animal.call(error);
      INFO(error.message());
      CHECK(error == code);
      CHECK(error == Failure::not_executed);
      CHECK(zoo.admin({"DUMP", key}).text == before);
      CHECK(zoo.admin({"PEXPIRETIME", key}).integer == expiry);
    };
    const auto check = [&](const std::string& garbage, Errc code) {
      REQUIRE(zoo.admin({"SET", key, garbage, "KEEPTTL"}).text == "OK");
      check_kept(code);
    };
    // Infinity, not-a-number, what no word is, and the bounds, as another client would write them.
    for (const std::uint64_t word :
         {std::uint64_t{0x7ff0'0000'0000'0000}, std::uint64_t{0x7ff8'0000'0000'0000},
          std::uint64_t{0xfff0'0000'0000'0000}, ~std::uint64_t{0},
          static_cast<std::uint64_t>(word_limit) + 1, std::uint64_t{1} << 63,
          ~std::uint64_t{0} >> 1}) {
      for (const std::size_t at : {1U, 9U}) {
        std::string garbage = sound;
        for (std::size_t i = 0; i < 8; ++i) garbage[at + i] = static_cast<char>(word >> 8 * i);
        check(garbage, Errc::corrupt_state);
      }
    }
    for (const int kind : {0, 2, 4, 11, 14, 15, 16, 17, 19, 25, 31}) {  // of none, or older ones
      check(static_cast<char>(kind) + sound.substr(1), Errc::wrong_kind);
    }
    for (const std::string& garbage :
         {std::string("17"), std::string("nan"), std::string("garbage"), '2' + sound.substr(1)}) {
      check(garbage, Errc::wrong_type);
    }
    if (is_cell(static_cast<StateKind>(sound[0]))) {
      for (const std::size_t size : {0U, 16U, 18U, 24U, 26U, 100'000U}) {
        check(std::string(size, sound[0]), Errc::wrong_type);
      }
    }
    zoo.admin({"DEL", key});
    zoo.admin({"LPUSH", key, "x"});
    check_kept(Errc::wrong_type);
    zoo.admin({"DEL", key});
    zoo.admin({"HSET", key, "x", "y"});
    check_kept(Errc::wrong_type);
    zoo.admin({"DEL", key});
    REQUIRE(zoo.admin({"SET", key, sound}).text == "OK");
    animal.call(error);
    CHECK_FALSE(error);
  }
  const TokenBucket bucket(zoo.store(), "api", Quota::per_hour(10));
  zoo.admin({"SET", "{a}:api:10/h", "17"});
  Asked plan;
  zoo.store().execute({other.acquire_step("a"), bucket.acquire_step("a")}, plan.completion());
  CHECK(plan.wait().error == Errc::wrong_type);
  CHECK(plan.decision.step == 1);
  CHECK(zoo.admin({"EXISTS", "{a}:other:10/h"}).integer == 0);
}

TEST_CASE("a state of many words that was cut off is a typed error, or ends in zeros", "[redis]") {
  Zoo zoo;
  std::error_code error;
  for (const auto& [key, call] : zoo.animals()) {
    INFO(key);
    call(error);
    REQUIRE_FALSE(error);
    const std::string state = zoo.admin({"GET", key}).text;
    if (is_cell(static_cast<StateKind>(state[0]))) continue;
    for (std::size_t size = 1; size < state.size(); ++size) {
      const std::string_view cut = std::string_view(state).substr(0, size);
      REQUIRE(zoo.admin({"SET", key, cut}).text == "OK");
      call(error);
      const bool is_torn = size % 8 != 1;
      const bool is_in_front = size <= 4 * 8;
      INFO("cut to " << size << " of " << state.size() << " bytes: " << error.message());
      if (is_torn && is_in_front) CHECK(error == Errc::wrong_type);
      if (error)
        CHECK((error == Errc::wrong_type || error == Errc::corrupt_state ||
               error == Errc::not_configured));
      if (error) CHECK(zoo.admin({"GET", key}).text == cut);
    }
  }
}
