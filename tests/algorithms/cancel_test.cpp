// What a grant leaves that is given back: two keys are asked the same, but that one of them is
// asked for more beside, all of which is given back; afterwards both answer alike. On every store.
// Threading: single-threaded.
#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/slot_lock.hpp"
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

TEST_CASE("what came in lumps is there again after a reservation beyond it is cancelled",
          "[token_bucket]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(3),
                             BucketOptions{.refill = Refill::per_interval(1s)});
    REQUIRE(bucket.try_acquire("a", 2));
    const Decision before = bucket.peek("a");
    CHECK(before.allowed);
    Reservation r = bucket.reserve("a", 2, 5s);
    CHECK(r.wait() == 1s);
    CHECK(bucket.peek("a").retry_after == 1s);
    CHECK(bucket.cancel("a", r) == 2);
    CHECK(bucket.peek("a") == before);
    CHECK(bucket.try_acquire("a").remaining == 0);

    Reservation first = bucket.reserve("a", 2, 5s);
    Reservation second = bucket.reserve("a", 3, 5s);
    CHECK(second.wait() == 1s);
    clock.advance(999'999us);
    CHECK(bucket.cancel("a", second) == 3);
    CHECK(bucket.refund("a", first, 1) == 1);
    CHECK(first.wait() == 1s);
    CHECK(bucket.cancel("a", first) == 1);
    CHECK(bucket.peek("a").retry_after == 1us);
    clock.advance(1us);
    CHECK(bucket.peek("a").remaining == 3);
  });
}

TEST_CASE("what is given back after the clock was set back is there at once",
          "[token_bucket][shared_token_bucket][C-022]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random("what is given back after the clock was set back is there at once");
    CAPTURE(random.repeat());
    for (std::size_t i = 0; i < scaled(60); ++i) {
      const auto [quota, scale] = draw_quota(random);
      const auto check = [&, &most = scale](const auto& bucket) {
        REQUIRE(bucket.try_acquire("k", random.between(1, most.burst)));
        clock.advance(Span{random.between(0, most.gap.count())});
        const Decision one = bucket.peek("k", 1);
        const Decision all = bucket.peek("k", most.burst);
        const Word cost = random.between(1, most.burst);
        Reservation r = bucket.reserve("k", cost, Span{random.between(0, most.wait.count())});
        // Its time may lie a minute ahead: beyond that it is given up.
        const Word ahead = r ? r.retry_after.count() : 0;
        const Span step{random.between(0, 60'000'000 - ahead)};
        clock.advance(-step);
        if (r) REQUIRE(bucket.cancel("k", r) == cost);
        // As it was then; time stands still until the clock has caught up.
        const auto same = [&](const Decision& now, const Decision& then) {
          REQUIRE(now.allowed == then.allowed);
          REQUIRE(now.remaining == then.remaining);
          if (!now.allowed) REQUIRE(now.retry_after == then.retry_after + step);
        };
        if (r || step == 0s) same(bucket.peek("k", 1), one);
        if (r || step == 0s) same(bucket.peek("k", most.burst), all);
        clock.advance(step + 1h);
      };
      INFO("capacity " << quota.capacity() << ", refill " << quota.refill() << ", period "
                       << quota.period());
      const std::string name = "b" + std::to_string(i);
      check(TokenBucket(store, name, quota));
      const Span lump{random.between(1, scale.wait.count() + 2)};
      check(TokenBucket(store, "l" + name, quota, {.refill = Refill::per_interval(lump)}));
      const SharedTokenBucket shared(store, "s" + name);
      shared.configure("k", quota);
      check(shared);
    }
  });
}

TEST_CASE("what others have not used is given back after the clock was set back",
          "[token_bucket][shared_token_bucket][C-022]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const auto check = [&](const auto& bucket) {
      Reservation r = bucket.reserve("k", 3, 0s);
      clock.advance(100ms);
      REQUIRE(bucket.try_acquire("k", 2));
      clock.advance(-10s);
      CHECK(bucket.cancel("k", r) == 2);  // one has drained
      CHECK(bucket.peek("k").remaining == 3);
      CHECK(bucket.peek("k", 5).retry_after == 10s + 200ms);
      clock.advance(1h);
    };
    const Quota quota = Quota::per_second(10).burst(5);
    check(TokenBucket(store, "t", quota));
    const SharedTokenBucket shared(store, "s");
    shared.configure("k", quota);
    check(shared);
  });
}

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

TEST_CASE(
    "from a cancelled reservation's time on sliding windows are as if nobody had asked for it",
    "[sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random(
        "from a cancelled reservation's time on sliding windows are as if nobody had asked for it");
    CAPTURE(random.repeat());
    std::size_t waited = 0;
    std::size_t early = 0;
    const std::size_t histories = scaled(60);
    for (std::size_t i = 0; i < histories; ++i) {
      const Word limit = random.between(1, 6);
      std::vector<WindowLimit> windows{{limit, Span{random.between(1, 60)}}};
      if (random.one_in(2)) {
        windows.push_back(
            {limit + random.between(0, 6), windows[0].span + Span{random.between(1, 90)}});
      }
      const SlidingWindow log(store, "w" + std::to_string(i), windows);
      for (int step = 0; step < 30; ++step) {
        INFO("history " << i << ", step " << step);
        const Word cost = random.between(1, limit);
        const Span wait{random.one_in(2) ? 0 : random.between(0, 100)};
        if (random.one_in(2)) {
          REQUIRE(log.reserve(asked, cost, wait).allowed ==
                  log.reserve(spared, cost, wait).allowed);
        } else {
          Reservation r = log.reserve(asked, cost, wait);
          if (!r.allowed) continue;
          Reservation behind = log.reserve(asked, random.between(1, limit), wait);
          const Word behind_it = behind.granted;
          REQUIRE(log.cancel(asked, behind) == behind_it);
          clock.advance(Span{random.between(0, (r.ready_at() - clock.now()).count())});
          REQUIRE(log.cancel(asked, r) == cost);
          const Time due =
              std::max(r.ready_at(), behind.allowed ? behind.ready_at() : r.ready_at());
          if (due > clock.now()) ++waited;
          for (const Word units : {Word{1}, limit}) {
            const Decision with = log.peek(asked, units);
            const Decision without = log.peek(spared, units);
            REQUIRE(with.retry_after >= without.retry_after);
            REQUIRE(with.retry_after <= std::max(without.retry_after, due - clock.now()));
            if (with.retry_after != without.retry_after) ++early;
          }
          clock.advance(due - clock.now());
        }
        for (const Word units : {Word{0}, Word{1}, limit}) {
          const Decision with = log.peek(asked, units);
          const Decision without = log.peek(spared, units);
          REQUIRE(with.retry_after == without.retry_after);
          REQUIRE(with.remaining == without.remaining);
        }
        if (random.one_in(2)) clock.advance(Span{random.between(0, 40)});
      }
    }
    CHECK(waited > histories);
    CHECK(early < waited);  // it is the exception
  });
}

TEST_CASE(
    "one unit that is cancelled leaves one window as it was, a shared sliding window's as well",
    "[sliding_window][shared_sliding_window]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const SlidingWindow log(store, "w", {{3, 1s}});
    const SharedSlidingWindow rate(store, "rate");
    rate.configure("r", RateType::overall, 3, 1s, SpentUnits::forgotten);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(log.try_acquire("k"));
      REQUIRE(rate.try_acquire("r"));
      clock.advance(100ms);
    }
    const Decision before = log.peek("k");
    const Decision rated = rate.peek("r");
    Reservation r = log.reserve("k", 1, 5s);
    Reservation permit = rate.reserve("r", 1, 5s);
    CHECK(r.retry_after == 700ms);
    CHECK(permit.retry_after == 700ms);
    CHECK(log.cancel("k", r) == 1);
    CHECK(rate.cancel("r", permit) == 1);
    CHECK(log.peek("k") == before);
    CHECK(rate.peek("r") == rated);
    // Of two that wait for the second of two units as well.
    Reservation two = log.reserve("k", 2, 5s);
    CHECK(two.retry_after == 800ms);
    CHECK(log.cancel("k", two) == 2);
    CHECK(log.peek("k") == before);
    CHECK(log.peek("k", 2).retry_after == 800ms);
  });
}

TEST_CASE("a slot that is given back is as if nobody had asked for it", "[slot_lock]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    Random random("a slot that is given back is as if nobody had asked for it");
    CAPTURE(random.repeat());
    for (std::size_t i = 0; i < scaled(40); ++i) {
      const SlotLock lock(store, "l" + std::to_string(i), Span{random.between(1, 1'000'000)});
      const Span most{5'000'000};
      for (int step = 0; step < 30; ++step) {
        if (random.one_in(3)) {
          REQUIRE(bool(lock.reserve(asked, most)) == bool(lock.reserve(spared, most)));
        } else if (const SlotPermit first = lock.reserve(asked, most)) {
          const SlotPermit second = lock.reserve(asked, most);
          if (second) REQUIRE(lock.cancel(asked, second));
          const Span rest = std::max(first.ready_at() - clock.now(), Span{0});
          clock.advance(Span{random.between(0, rest.count())});
          REQUIRE(lock.cancel(asked, first));
        }
        REQUIRE(lock.peek(asked) == lock.peek(spared));
        REQUIRE(lock.peek(asked, most) == lock.peek(spared, most));
        if (random.one_in(2)) clock.advance(Span{random.between(0, 1'500'000)});
      }
    }
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
