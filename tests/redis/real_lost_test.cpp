// What becomes of a state that somebody meddled with: a key without its time to live, a state that
// an older version wrote, keys that the server evicted. Threading: the test's thread.
#include <functional>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real.hpp"
#include "tests/support/frozen_redis.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

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
    rate_.set_rate(RateType::overall, 5, 1s);
    plan_.set("a", quota);
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

  static inline const Quota quota = Quota::per_second(10).burst(5);

 private:
  FrozenRedis& redis_ = FrozenRedis::instance();
  RedisClient admin_;
  VirtualClock clock_;
  std::unique_ptr<RedisStore> store_;
  TokenBucket bucket_{*store_, "bucket", quota};
  SlidingWindows windows_{*store_, "windows", {{5, 10s}}};
  SlidingWindows many_{*store_, "many", {{5, 10s}, {50, 100s}, {500, 1000s}}};
  SlidingCounter counter_{*store_, "counter", {5, 1s}};
  FixedWindow window_{*store_, "window", 5, Calendar::every(1s)};
  SharedBucket plan_{*store_, "plan"};
  SharedRateLimiter rate_{*store_, "api", "rate", {.keep_alive = 1h}};
  ConcurrencyLimiter jobs_{*store_, "jobs", 5, {.ttl = 2s}};
  SlotLock slots_{*store_, "slots", 1s};
  UtilizationShedder shedder_{*store_, "shedder"};
  Gates gates_{*store_, "gates", {"account"}};
  std::vector<Animal> animals_{
      {"{a}:bucket", [&](auto& e) { bucket_.try_acquire("a", e); }},
      {"{a}:windows", [&](auto& e) { windows_.try_acquire("a", e); }},
      {"{a}:many", [&](auto& e) { many_.try_acquire("a", e); }},
      {"{a}:counter", [&](auto& e) { counter_.try_acquire("a", e); }},
      {"{a}:window", [&](auto& e) { window_.try_acquire("a", e); }},
      {"{a}:plan", [&](auto& e) { plan_.try_acquire("a", 1, e); }},
      {"{api}:rate", [&](auto& e) { rate_.try_acquire(1, e); }},
      {"{a}:jobs", [&](auto& e) { jobs_.try_acquire("a", e).release_later(); }},
      {"{a}:slots", [&](auto& e) { slots_.try_acquire("a", e); }},
      {"{shedder}:utilization", [&](auto& e) { shedder_.sample(0.95, e); }},
      {"{gates}:account=1", [&](auto& e) { gates_.close(gates_.scope("account", "1"), 30s, e); }},
  };
};

}  // namespace

TEST_CASE("a key whose time to live was taken away gets one again", "[redis][C-032][C-072]") {
  if (redis_left_out()) return;
  Zoo zoo;
  std::error_code error;
  for (const auto& [key, call] : zoo.animals()) call(error);
  REQUIRE_FALSE(error);
  REQUIRE(zoo.keys().size() == zoo.animals().size() + 1);  // a shared rate has two keys
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

TEST_CASE("a state that an older version wrote is a typed error, and stays as it was",
          "[redis][C-014]") {
  if (redis_left_out()) return;
  Zoo zoo;
  std::error_code error;
  for (const auto& [key, call] : zoo.animals()) {
    INFO(key);
    call(error);
    REQUIRE_FALSE(error);
    std::string state = zoo.admin({"GET", key}).text;
    REQUIRE(state.size() >= 17);
    for (const char retired :
         {'\2', '\4', '\13', '\16', '\17'}) {  // kinds of layouts that are used no more
      state[0] = retired;
      zoo.admin({"SET", key, state, "KEEPTTL"});
      const std::string before = zoo.admin({"DUMP", key}).text;
      const Word ttl = zoo.admin({"PEXPIRETIME", key}).integer;
      call(error);
      CHECK(error == Errc::wrong_kind);
      CHECK(error == Failure::not_executed);
      CHECK(zoo.admin({"DUMP", key}).text == before);
      CHECK(zoo.admin({"PEXPIRETIME", key}).integer == ttl);
    }
  }
}

TEST_CASE("a key that the server evicted costs what it held once, and nothing later",
          "[redis][C-027][C-052][C-053]") {
  if (redis_left_out()) return;
  Zoo zoo;
  const TokenBucket bucket(zoo.store(), "api", Zoo::quota);
  CHECK(bucket.try_acquire("b", 5).allowed);
  CHECK(zoo.admin({"DEL", "{b}:api"}).integer == 1);
  CHECK(bucket.try_acquire("b", 5).allowed);
  CHECK(bucket.try_acquire("b").retry_after == 100ms);

  const SharedRateLimiter limiter(zoo.store(), "partner", "rate");
  limiter.set_rate(RateType::overall, 3, 1min);
  CHECK(limiter.try_acquire(3).allowed);
  for (const std::string& key : zoo.keys()) {
    if (key.starts_with("{partner}:rate%3alog")) zoo.admin({"DEL", key});
  }
  for (int window = 0; window < 3; ++window) {
    CHECK(limiter.available_permits() == 3);  // not 6, now or ever after
    CHECK(limiter.try_acquire(3).allowed);
    CHECK(limiter.try_acquire().retry_after == 1min);
    zoo.advance(1min);
  }
  CHECK(zoo.admin({"DEL", "{partner}:rate"}).integer == 1);
  std::error_code error;
  limiter.try_acquire(1, error);
  CHECK(error == Errc::not_configured);
  CHECK(limiter.try_set_rate(RateType::overall, 3, 1min).changed);
  CHECK(limiter.try_acquire(3).allowed);
  CHECK_FALSE(limiter.try_acquire().allowed);
}

TEST_CASE("a state of many words that was cut off is a typed error, or ends in zeros", "[redis]") {
  if (redis_left_out()) return;
  Zoo zoo;
  std::error_code error;
  for (const auto& [key, call] : zoo.animals()) {
    INFO(key);
    call(error);
    REQUIRE_FALSE(error);
    const std::string state = zoo.admin({"GET", key}).text;
    if (state.size() == 25) continue;  // a cell
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
