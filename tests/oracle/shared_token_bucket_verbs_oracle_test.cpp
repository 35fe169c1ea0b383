// The shared token bucket's other verbs: beside a token bucket of the same quota, command by
// command; and while the quota changes, every interval judged by the times that were promised.
// Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

struct Rate {
  Word since;
  Word per_second;
  Word burst;
};
struct Grant {
  Word decided;
  Word at;
  Word units;  // millionths of what was not given back
};

/// Units in the worst interval beyond what it may hold, in millionths; 0 or less: none. The largest
/// burst and rate count that were in force from when the first grant in it was decided. Times are
/// whole: a grant may be up to a microsecond late.
Word worst_excess(std::vector<Grant> grants, const std::vector<Rate>& rates) {
  std::ranges::stable_sort(grants, {}, &Grant::at);
  Word worst = -word_limit;
  for (std::size_t from = 0; from < grants.size(); ++from) {
    Word decided = grants[from].at;
    Word sum = 0;
    for (std::size_t to = from; to < grants.size(); ++to) {
      decided = std::min(decided, grants[to].decided);
      sum += grants[to].units;
      Rate most{0, 0, 0};
      for (std::size_t i = 0; i < rates.size(); ++i) {
        const bool over = i + 1 < rates.size() && rates[i + 1].since < decided;
        if (over || rates[i].since > grants[to].at) continue;
        most.per_second = std::max(most.per_second, rates[i].per_second);
        most.burst = std::max(most.burst, rates[i].burst);
      }
      const Word length = grants[to].at - grants[from].at + 1;
      worst = std::max(worst, sum - most.burst * 1'000'000 - length * most.per_second);
    }
  }
  return worst;
}

/// A life of one key under quotas that change, in which everything is asked that keeps the bound.
class Life {
 public:
  explicit Life(Random& random) : random_(random) { set(); }

  void live(int commands) {
    for (int i = 0; i < commands; ++i) {
      switch (random_.below(10)) {
        case 0:
          set();
          break;
        case 1:
        case 2:
          refund();
          break;
        case 3:
          if (random_.one_in(4)) block();
          break;
        default:
          ask();
      }
      if (random_.one_in(2)) clock_.advance(Span{random_.between(0, 400'000)});
    }
    REQUIRE(worst_excess(grants_, rates_) <= 0);
  }

  std::size_t ahead = 0;
  std::size_t changed = 0;
  std::size_t given = 0;

 private:
  [[nodiscard]] Word now() const { return to_word(clock_.now()); }

  void set() {
    const Rate rate{now(), random_.between(1, 50),
                    random_.between(1, random_.one_in(2) ? 10 : 100)};
    bucket_.configure("k", Quota::per_second(rate.per_second).burst(rate.burst),
                      static_cast<Inheritance>(random_.between(0, 3)));
    rates_.push_back(rate);
    ++changed;
  }

  void ask() {
    const Word burst = rates_.back().burst;
    const Word cost = random_.between(1, random_.one_in(3) ? burst : std::min<Word>(burst, 3));
    const Span wait{random_.one_in(3) ? 0 : random_.between(0, 5'000'000)};
    const Reservation r = bucket_.reserve("k", cost, wait);
    REQUIRE(r.decision.limit == burst);
    if (r) {
      REQUIRE(r.wait() <= wait);
      REQUIRE(to_word(r.at()) >= closed_until_);
      REQUIRE((order_.empty() || to_word(r.at()) >= order_.back()));
      order_.push_back(to_word(r.at()));
      grants_.push_back({now(), to_word(r.at()), cost * 1'000'000});
      held_.push_back({r, grants_.size() - 1});
      if (r.wait() > Span{0}) ++ahead;
    } else if (random_.one_in(3)) {  // the hint is exact
      clock_.advance(r.decision.retry_after - Span{1});
      REQUIRE(bucket_.reserve("k", cost, wait).decision.retry_after == Span{1});
      clock_.advance(Span{1});
      REQUIRE(bucket_.peek("k", cost).retry_after == wait);
    }
  }

  void refund() {
    if (held_.empty()) return;
    const std::size_t index = random_.one_in(2) ? held_.size() - 1 : random_.below(held_.size());
    auto& [reservation, grant] = held_[index];
    const bool all = random_.one_in(2);
    const Word amount = all ? reservation.granted : random_.between(0, reservation.granted);
    const Span full_before = bucket_.peek("k", 0).reset_after;
    const Word back =
        all ? bucket_.cancel("k", reservation) : bucket_.refund("k", reservation, amount);
    // Not counted is what came back, with the part of a unit that the answer leaves out.
    const Word per_second = rates_.back().per_second;
    const Span sooner = full_before - bucket_.peek("k", 0).reset_after;
    REQUIRE(std::abs(sooner.count() * per_second / 1'000'000 - back) <= 1);
    if (sooner > Span{0}) {
      grants_[grant].units -= std::min(amount * 1'000'000, (sooner.count() + 1) * per_second);
    }
    grants_[grant].at = to_word(reservation.at());  // what is left of it comes earlier
    REQUIRE(grants_[grant].units >= 0);
    REQUIRE(bucket_.peek("k", 0).remaining <= rates_.back().burst);
    if (back > 0) {
      ++given;
      order_.clear();
    }
    if (all) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void block() {
    const Span span{random_.between(0, 3'000'000)};
    bucket_.block("k", span);
    closed_until_ = std::max(closed_until_, now() + span.count());
  }

  Random& random_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  SharedTokenBucket bucket_{*store_, "b"};
  std::vector<Rate> rates_;
  std::vector<Grant> grants_;
  std::vector<Word> order_;  // times, since something was given back
  std::vector<std::pair<Reservation, std::size_t>> held_;
  Word closed_until_ = 0;
};

}  // namespace

TEST_CASE("whatever is promised, given back and blocked, no interval holds more than the largest",
          "[oracle][shared_token_bucket][S1]") {
  Random random(
      "whatever is promised, given back and blocked, no interval holds more than the largest");
  CAPTURE(random.repeat());
  std::size_t ahead = 0;
  std::size_t changed = 0;
  std::size_t given = 0;
  const std::size_t histories = scaled(600);
  for (std::size_t history = 0; history < histories; ++history) {
    Life life(random);
    life.live(80);
    ahead += life.ahead;
    changed += life.changed;
    given += life.given;
  }
  CHECK(ahead > histories * 5);
  CHECK(changed > histories * 4);
  CHECK(given > histories);
}

TEST_CASE("a promise that is kept twice is found by the judge of times",
          "[oracle][shared_token_bucket]") {
  constexpr Word unit = 1'000'000;
  const std::vector<Rate> rates{{0, 10, 5}, {50, 20, 7}};
  CHECK(worst_excess({{0, 0, 5 * unit}, {0, 100'000, unit}}, {rates[0]}) <= 0);
  CHECK(worst_excess({{0, 0, 5 * unit}, {0, 99'990, unit}}, {rates[0]}) > 0);
  CHECK(worst_excess({{100, 100, 7 * unit}, {100, 50'100, unit}}, rates) <= 0);
  CHECK(worst_excess({{100, 100, 7 * unit}, {100, 50'000, unit}}, rates) > 0);
  CHECK(worst_excess({{60, 100, 8 * unit}}, {{0, 10, 9}, {50, 20, 7}}) > 0);
  CHECK(worst_excess({{40, 100, 8 * unit}}, {{0, 10, 9}, {50, 20, 7}}) <= 0);
}

TEST_CASE("while its quota stays, a shared token bucket is a token bucket in every verb",
          "[oracle][shared_token_bucket]") {
  Random random("while its quota stays, a shared token bucket is a token bucket in every verb");
  CAPTURE(random.repeat());
  for (std::size_t history = scaled(300, 20); history > 0; --history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const Quota quota = Quota::per(random.between(1, 1000), Span{random.between(1000, 10'000'000)})
                            .burst(random.between(1, 20));
    const TokenBucket own(*store, "own", quota);
    const SharedTokenBucket shared(*store, "shared");
    shared.configure("k", quota);
    std::vector<std::pair<Reservation, Reservation>> held;
    const Word burst = quota.capacity();
    for (int i = 0; i < 100; ++i) {
      INFO("command " << i);
      const Word cost = random.between(0, burst - 1);
      const Span span{random.one_in(2) ? 0 : random.between(0, 60'000'000)};
      switch (random.below(8)) {
        case 0:
          // Nothing may be asked in the last microsecond of a block here.
          REQUIRE(shared.try_acquire("k", cost + 1) == own.try_acquire("k", cost + 1));
          break;
        case 1:
          // What is promised beyond a block cannot be given back here, and there ends the block.
          if (random.one_in(3) && own.peek("k").retry_after < span - Span{1}) {
            REQUIRE(shared.block("k", span) == own.block("k", span));
          }
          break;
        case 2:
          REQUIRE(shared.reward("k", cost) == own.reward("k", cost));
          break;
        case 3:
          if (random.one_in(3))
            REQUIRE(shared.penalize("k", 3 * cost) == own.penalize("k", 3 * cost));
          break;
        case 4:
          if (random.one_in(10)) {
            own.reset("k");
            shared.reset("k");
            held.clear();
          }
          break;
        case 5:
          if (!held.empty()) {
            auto& [a, b] = held[random.one_in(2) ? held.size() - 1 : random.below(held.size())];
            const Word amount = random.between(0, a.granted + 3);
            const Settlement here = shared.settle("k", a, amount);
            const Settlement there = own.settle("k", b, amount);
            REQUIRE(here.given_back == there.given_back);
            REQUIRE(here.charged == there.charged);
            REQUIRE(a.granted == b.granted);
            if (a.granted > 0) REQUIRE(a.at() == b.at());
          }
          break;
        default: {
          // Of nothing a shared token bucket's grant is now, as that of try_acquire() is.
          const Reservation a = shared.reserve("k", cost + 1, span);
          const Reservation b = own.reserve("k", cost + 1, span);
          REQUIRE(a.decision == b.decision);
          REQUIRE(a.granted == b.granted);
          if (a) held.emplace_back(a, b);
        }
      }
      REQUIRE(shared.peek("k") == own.peek("k"));
      if (random.one_in(2))
        clock.advance(Span{random.between(0, random.one_in(9) ? 5'000'000 : 9'000)});
    }
  }
}
