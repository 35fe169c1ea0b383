// What a grant leaves that is given back: two keys are asked the same, but that one of them is
// asked for more beside, all of which is given back; afterwards both answer alike. On every store.
// Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

const Key asked{"asked", ""};
const Key spared{"spared", ""};

/// What a history is made of: the most that one request costs, the longest wait, the longest gap.
struct Scale {
  Word burst;
  Span wait;
  Span gap;
};

/// A bucket's two keys.
template <class Bucket>
class Pair {
 public:
  Pair(const Bucket& bucket, VirtualClock& clock, Random& random, const Scale& scale)
      : bucket_(bucket), clock_(clock), random_(random), scale_(scale) {}

  void live(int commands) {
    for (int i = 0; i < commands; ++i) {
      INFO("command " << i);
      switch (random_.below(6)) {
        case 0:
        case 1:
          ask_both();
          break;
        case 2:
          refund_both();
          break;
        default:
          ask_in_vain(static_cast<int>(random_.between(1, 3)));
      }
      compare();
      if (random_.one_in(2)) clock_.advance(up_to(scale_.gap));
    }
  }

  std::size_t waited = 0;

 private:
  Span up_to(Span most) { return Span{random_.between(0, most.count())}; }
  Word cost() { return random_.between(1, scale_.burst); }

  void ask_both() {
    const Word units = cost();
    const Span wait = random_.one_in(2) ? 0s : up_to(scale_.wait);
    Reservation a = bucket_.reserve(asked, units, wait);
    Reservation b = bucket_.reserve(spared, units, wait);
    REQUIRE(static_cast<const Decision&>(a) == b);
    if (a) held_.emplace_back(a, b);
  }

  void refund_both() {
    if (held_.empty()) return;
    const std::size_t index = random_.one_in(2) ? held_.size() - 1 : random_.below(held_.size());
    auto& [a, b] = held_[index];
    const Word amount = random_.one_in(2) ? a.granted : random_.between(0, a.granted);
    REQUIRE(bucket_.refund(asked, a, amount) == bucket_.refund(spared, b, amount));
    REQUIRE(a.retry_after == b.retry_after);
    if (a.granted == 0) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// Reserves of one key alone, one behind the other, and gives all back, the last first, before
  /// any of them has its time.
  void ask_in_vain(int depth, Time until = Time::max()) {
    const Word units = cost();
    Reservation r = bucket_.reserve(asked, units, random_.one_in(3) ? 0s : up_to(scale_.wait));
    if (!r) return;
    held_.clear();  // of earlier grants less comes back, as documented
    if (r.wait() > 0s) ++waited;
    static_cast<void>(bucket_.peek(asked, cost()));
    until = std::min(until, r.ready_at());
    if (depth > 1) ask_in_vain(depth - 1, until);
    const Span rest = until - clock_.now();
    if (rest > 0s && random_.one_in(2)) clock_.advance(up_to(rest - 1us));
    const auto in_time = [&] { return r.ready_at() > clock_.now() || r.at == clock_.now(); };
    if (random_.one_in(3) && r.at == clock_.now()) {  // in two parts
      const Word part = random_.between(0, r.granted);
      const bool all = in_time();
      const Word given = bucket_.refund(asked, r, part);
      if (all) REQUIRE(given == part);
    }
    const Word left = r.granted;
    const bool all = in_time();
    const Word given = bucket_.cancel(asked, r);
    if (all) REQUIRE(given == left);
  }

  void compare() {
    for (const Word units : {Word{0}, Word{1}, scale_.burst}) {
      REQUIRE(bucket_.peek(asked, units) == bucket_.peek(spared, units));
    }
  }

  const Bucket& bucket_;
  VirtualClock& clock_;
  Random& random_;
  Scale scale_;
  std::vector<std::pair<Reservation, Reservation>> held_;
};

/// Everyday rates, and those of many tokens a microsecond, at which a whole bucket drains in one.
std::pair<Quota, Scale> draw_quota(Random& random) {
  const Word burst = random.between(1, 12);
  if (random.one_in(3)) {
    const Quota quota = Quota::per(random.between(1, 40), Span{random.between(1, 4)}).burst(burst);
    return {quota, {burst, 9us, 3us}};
  }
  const Quota quota =
      Quota::per(random.between(1, 30), Span{random.between(1'000, 3'000'000)}).burst(burst);
  return {quota, {burst, std::min<Span>(quota.full_after() * 2, 55s), quota.full_after() / 3}};
}

}  // namespace

TEST_CASE("a token bucket whose reservation is given back is as if nobody had asked for it",
          "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random(
        "a token bucket whose reservation is given back is as if nobody had asked for it");
    CAPTURE(random.repeat());
    const std::size_t histories = scaled(60);
    std::size_t waited = 0;
    for (std::size_t i = 0; i < histories; ++i) {
      const auto [quota, scale] = draw_quota(random);
      BucketOptions options;
      if (random.one_in(2)) {
        options.refill = Refill::per_interval(Span{random.between(1, scale.wait.count() + 2)});
      }
      if (random.one_in(4)) options.initial = random.between(0, scale.burst);
      const TokenBucket bucket(store, "b" + std::to_string(i), quota, options);
      INFO("capacity " << quota.capacity() << ", refill " << quota.refill() << ", period "
                       << quota.period() << ", interval " << options.refill.interval().count());
      Pair pair(bucket, clock, random, scale);
      pair.live(30);
      waited += pair.waited;
    }
    CHECK(waited > histories / 2);
  });
}

TEST_CASE("a shared token bucket whose reservation is given back is as if nobody had asked for it",
          "[shared_token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random(
        "a shared token bucket whose reservation is given back is as if nobody had asked for it");
    CAPTURE(random.repeat());
    const std::size_t histories = scaled(40);
    std::size_t waited = 0;
    for (std::size_t i = 0; i < histories; ++i) {
      const auto [quota, scale] = draw_quota(random);
      const SharedTokenBucket bucket(store, "b" + std::to_string(i));
      bucket.configure(asked, quota);
      bucket.configure(spared, quota);
      INFO("capacity " << quota.capacity() << ", refill " << quota.refill() << ", period "
                       << quota.period());
      Pair pair(bucket, clock, random, scale);
      pair.live(30);
      waited += pair.waited;
      // What is truly spent is as before, too.
      const Quota other = Quota::per_second(1).burst(2 * scale.burst);
      bucket.configure(asked, other, Inheritance::reset);
      bucket.configure(spared, other, Inheritance::reset);
      REQUIRE(bucket.peek(asked) == bucket.peek(spared));
    }
    CHECK(waited > histories / 2);
  });
}

TEST_CASE("what a plan has reserved is given back in a plan, as if nobody had asked for it",
          "[composing][token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket lumps(store, "lumps", Quota::per_second(10).burst(3),
                            {.refill = Refill::per_interval(1s)});
    const TokenBucket steady(store, "steady", Quota::per_second(10).burst(5));
    REQUIRE(lumps.try_acquire("k", 2));
    REQUIRE(steady.try_acquire("k", 4));
    clock.advance(50ms);
    const Decision lump = lumps.peek("k");
    const Decision drop = steady.peek("k");
    std::array<Word, 6> told{};
    std::error_code error;
    const std::array asks{lumps.reserve_step("k", 2, 5s), steady.reserve_step("k", 3, 5s)};
    std::array<Decision, 2> answers;
    REQUIRE(decide(store, asks, error, answers, told).retry_after == 950ms);
    const Reservation of_lumps = TokenBucket::reservation(answers[0], std::span(told).first(3));
    const Reservation of_steady = TokenBucket::reservation(answers[1], std::span(told).last(3));
    CHECK(of_steady.wait() == 150ms);
    const std::array backs{lumps.refund_step("k", of_lumps, of_lumps.granted),
                           steady.refund_step("k", of_steady, of_steady.granted)};
    REQUIRE(decide(store, backs).allowed);
    CHECK(lumps.peek("k") == lump);
    CHECK(steady.peek("k") == drop);
  });
}
