// Calls that wait while the table of their limiter is replaced.
#include <memory>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// A bucket of one a day, all spent, and a caller that waits.
struct Waiting {
  explicit Waiting(const Deadline& deadline = Deadline::never()) {
    REQUIRE(bucket.try_acquire("a"));
    caller = wait_for(bucket, {"a", 1}, deadline,
                      [this](std::error_code failed, const Reservation& grant) {
                        ended = clock.now() - start;
                        error = failed;
                        granted = !failed && grant;
                      });
  }

  VirtualClock clock;
  Time start = clock.now();
  // Which asks no more often than its hints say, unless a limit may change.
  std::unique_ptr<Store> store = make_memory_store({.max_keys = 1024, .clock = &clock});
  std::shared_ptr<QuotaTable> table =
      std::make_shared<QuotaTable>(LimitList(Quota::per_day(1), 24h));
  TokenBucket bucket{*store, "api", table};
  std::optional<Span> ended;
  std::error_code error;
  bool granted = false;
  std::shared_ptr<Probe<TokenBucket>> caller;
};

}  // namespace

TEST_CASE("a caller that waits is granted by a raised quota, within a recheck", "[tables]") {
  Waiting waiting;
  waiting.clock.advance(10s);
  CHECK_FALSE(waiting.ended);
  waiting.table->replace(LimitList(Quota::per_second(1), 24h));
  waiting.clock.advance(1s);
  REQUIRE(waiting.ended);
  CHECK(waiting.granted);
  CHECK(*waiting.ended <= 11s);
}

TEST_CASE("a caller that waits is granted when its key is allowed, and refused when denied",
          "[tables]") {
  const bool allows = GENERATE(true, false);
  Waiting waiting;
  LimitList list = waiting.table->list();
  allows ? list.allow("a") : list.deny("a");
  waiting.table->replace(list);
  waiting.clock.advance(1s);
  REQUIRE(waiting.ended);
  CHECK(waiting.granted == allows);
  CHECK_FALSE(waiting.error);
}

TEST_CASE("a caller that waits is refused by a lowered quota once its deadline is out of reach",
          "[tables]") {
  Waiting waiting(Deadline(25h));
  waiting.clock.advance(1h);
  CHECK_FALSE(waiting.ended);
  waiting.table->replace(LimitList(Quota::per(1, 24h).burst(1), 24h));
  waiting.clock.advance(1s);
  CHECK_FALSE(waiting.ended);
  LimitList list = waiting.table->list();
  list.limit("a", Quota::never());
  waiting.table->replace(list);
  waiting.clock.advance(1s);
  REQUIRE(waiting.ended);
  CHECK_FALSE(waiting.granted);
}

}  // namespace sluice::test
