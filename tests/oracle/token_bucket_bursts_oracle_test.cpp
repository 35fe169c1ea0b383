// Token buckets under limiters of one rate and several bursts against exact numbers: what is spent
// is a number of tokens, whoever reads it. Limiters of another rate count apart.
// Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/testing/detail/generators.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using sluice::testing::detail::random_quota;
using sluice::testing::detail::Wide;

namespace {

/// One key, its limiters, and what they should answer. Beside it a second key that hears nothing
/// but what was granted.
class World {
 public:
  World(Random& random, const Quota& rate) : random_(random) {
    for (int i = 0; i < 3; ++i) {
      const Quota quota = rate.burst(random.between(1, rate.capacity()));
      limiters_.emplace_back(*store_, "b", quota);
    }
  }

  void live(int commands) {
    for (int i = 0; i < commands; ++i) {
      const TokenBucket& bucket = limiters_[random_.below(limiters_.size())];
      const Word burst = bucket.quota().capacity();
      ask(bucket, random_.between(0, random_.one_in(3) ? burst : std::min<Word>(4, burst)));
      const Word full = bucket.quota().full_after().count();
      if (random_.one_in(2)) pass(random_.between(0, std::min(longest, full / 40 + 2)));
      if (random_.one_in(20)) pass(random_.between(0, std::min(longest, full)));
    }
  }

  std::size_t granted = 0;
  std::size_t crossed = 0;  // by another limiter than the last
  std::size_t hints = 0;

 private:
  static constexpr Word longest = Word{1} << 43;  // a step of time, so that a life ends in time

  void pass(Word us) {
    clock_.advance(Span{us});
    spent_ = std::max<Wide>(0, spent_ - Wide{us} * limiters_.front().quota().refill());
  }

  void ask(const TokenBucket& bucket, Word cost) {
    check(bucket, bucket.peek("noisy", cost), cost, false);
    const Decision d = bucket.try_acquire("noisy", cost);
    check(bucket, d, cost, true);
    if (!d && d.retry_after.count() <= longest && random_.one_in(2))
      wait(bucket, cost, d.retry_after.count());
  }

  /// Alone, whoever looks meanwhile.
  void wait(const TokenBucket& bucket, Word cost, Word hint) {
    pass(hint / 2);
    for (const TokenBucket& other : limiters_) {
      const Word whole = other.quota().capacity();
      if (!other.peek("noisy", whole)) check(other, other.try_acquire("noisy", whole), whole, true);
    }
    pass(hint - hint / 2 - 1);
    const Decision early = bucket.try_acquire("noisy", cost);
    CHECK_FALSE(early);
    CHECK(early.retry_after == 1us);
    pass(1);
    check(bucket, bucket.try_acquire("noisy", cost), cost, true);
    ++hints;
  }

  /// The answer is that of the definition. A grant is charged here and on the quiet key.
  void check(const TokenBucket& bucket, const Decision& d, Word cost, bool spends) {
    const Quota& quota = bucket.quota();
    const Wide limit = Wide{quota.capacity()} * quota.period();
    const Wide over = spent_ + Wide{cost} * quota.period() - limit;
    CAPTURE(to_string(quota), cost, d);
    REQUIRE(d.allowed == (over <= 0));
    CHECK(d.retry_after.count() ==
          (over <= 0 ? 0 : Word((over + quota.refill() - 1) / quota.refill())));
    if (spends && d.allowed) spent_ += Wide{cost} * quota.period();
    CHECK(d.remaining == Word(std::max<Wide>(0, limit - spent_) / quota.period()));
    CHECK(d.reset_after.count() == Word((spent_ + quota.refill() - 1) / quota.refill()));
    if (!spends || !d.allowed) return;
    const Decision quiet = bucket.try_acquire("quiet", cost);
    CHECK(to_string(quiet) == to_string(d));
    if (cost == 0) return;
    ++granted;
    if (last_ != &bucket) ++crossed;
    last_ = &bucket;
  }

  Random& random_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  std::vector<TokenBucket> limiters_;
  Wide spent_ = 0;  // in units of the rate's period
  const TokenBucket* last_ = nullptr;
};

}  // namespace

TEST_CASE("limiters of one rate read each other's tokens exactly, of any burst",
          "[oracle][token_bucket][S1][L1]") {
  Random random("limiters of one rate read each other's tokens exactly, of any burst");
  CAPTURE(random.repeat());
  std::size_t granted = 0;
  std::size_t crossed = 0;
  std::size_t hints = 0;
  for (std::size_t i = scaled(400); i > 0; --i) {
    World world(random, random_quota(random));
    world.live(120);
    granted += world.granted;
    crossed += world.crossed;
    hints += world.hints;
  }
  CHECK(granted > 0);
  CHECK(crossed > 0);
  CHECK(hints > 0);
}

TEST_CASE("a raised burst has the difference at once, and a lowered one keeps what is spent",
          "[oracle][token_bucket]") {
  for_each_store([](Store& store, VirtualClock&) {
    const Quota quota = Quota::per_second(10);
    const TokenBucket before(store, "b", quota.burst(20));
    const TokenBucket raised(store, "b", quota.burst(30));
    const TokenBucket lowered(store, "b", quota.burst(12));
    REQUIRE(before.try_acquire("k", 15));
    CHECK(raised.peek("k").remaining == 15);
    CHECK(before.peek("k").remaining == 5);
    const Decision refused = lowered.try_acquire("k");
    CHECK_FALSE(refused);
    CHECK(refused.retry_after == 400ms);
    CHECK(raised.try_acquire("k", 15));
    CHECK_FALSE(raised.try_acquire("k"));
    CHECK_FALSE(before.try_acquire("k"));
  });
}

TEST_CASE("another rate is another count, and the bound of both is their sum",
          "[oracle][token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket slow(store, "b", Quota::per_second(10).burst(5));
    const TokenBucket fast(store, "b", Quota::per_second(20).burst(8));
    CHECK(slow.try_acquire("k", 5));
    CHECK(fast.peek("k").remaining == 8);
    CHECK(fast.try_acquire("k", 8));
    CHECK_FALSE(slow.try_acquire("k"));
    CHECK_FALSE(fast.try_acquire("k"));
    Word granted = 13;
    for (int i = 0; i < 100; ++i) {
      clock.advance(100ms);
      for (int ask = 0; ask < 2; ++ask) granted += slow.try_acquire("k") ? 1 : 0;
      for (int ask = 0; ask < 3; ++ask) granted += fast.try_acquire("k") ? 1 : 0;
    }
    CHECK(granted == 5 + 100 + 8 + 200);
    // An id that one has used is not another's.
    const RequestId id{1, 2};
    CHECK(slow.try_acquire("i", 1, id));
    std::error_code error;
    CHECK_FALSE(fast.try_acquire("i", 1, id, error));
    CHECK(error == Errc::id_reused);
    // A bound bucket is that of its rate.
    CHECK(fast.at("bound").try_acquire(8));
    CHECK(slow.at("bound").try_acquire(5));
    CHECK_FALSE(fast.at("bound").try_acquire());
    // The same rate in other words is the same count.
    const TokenBucket same(store, "b", Quota::per_minute(600).burst(5));
    CHECK_FALSE(same.try_acquire("k", 5));
    clock.advance(500ms);
    CHECK(same.try_acquire("k", 5));
    CHECK_FALSE(slow.try_acquire("k"));
  });
}
