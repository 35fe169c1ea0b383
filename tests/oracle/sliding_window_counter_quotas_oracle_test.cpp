// The sliding window counter under limiters of several limits and spans: each answer against a list
// of admissions, and every interval against the largest limit and the fastest rate. How near to
// them it comes. Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using test::Random;

namespace {

__extension__ typedef __int128 Wide;

struct Admission {
  Word at;
  Word units;
};

/// All that was admitted since the span of who was admitted changed; what came before it is one
/// admission then.
class Oracle {
 public:
  /// What counts at an instant for a quota.
  [[nodiscard]] Word counts(const WindowLimit& quota, Word at) const {
    if (list_.empty()) return 0;
    const Word now = weight(at);
    const Word since = latest();
    if (quota.span.count() == span_ || at <= since) return now;
    const Wide gone = Wide{at - since} * quota.limit / quota.span.count();
    return static_cast<Word>(std::min<Wide>(now, std::max<Wide>(0, weight(since) - gone)));
  }
  [[nodiscard]] bool fits(const WindowLimit& quota, Word at, Word cost) const {
    return counts(quota, at) + cost <= quota.limit;
  }
  void admit(const WindowLimit& quota, Word at, Word units) {
    if (quota.span.count() != span_) {
      const Word spent = counts(quota, at);
      list_.clear();
      if (spent > 0) list_.push_back({at, spent});
      span_ = quota.span.count();
    }
    list_.push_back({at, units});
    std::erase_if(list_, [&](const Admission& a) { return a.at < at - 3 * span_; });
  }

 private:
  /// Of the window that `at` lies in all, of the one before the part that is still covered.
  [[nodiscard]] Word weight(Word at) const {
    const Word window = at / span_;
    Wide parts = 0;  // of a unit, `span_` in each
    for (const auto& [when, units] : list_) {
      if (when / span_ >= window) parts += Wide{units} * span_;
      if (when / span_ == window - 1) parts += Wide{units} * (span_ - at % span_);
    }
    return static_cast<Word>((parts + span_ - 1) / span_);
  }
  /// When the last unit came, as far as it is known: what is left of its window is measured in
  /// 2048ths that are full.
  [[nodiscard]] Word latest() const {
    const Word end = (list_.back().at / span_ + 1) * span_;
    Wide full = 0;
    while ((full + 1) * span_ <= Wide{end - list_.back().at - 1} * 2048) ++full;
    return end - static_cast<Word>(full * span_ / 2048);
  }

  Word span_ = 0;
  std::vector<Admission> list_;
};

std::vector<WindowLimit> draw_quotas(Random& random) {
  const Word unit = random.one_in(2) ? 1 : 997;
  std::vector<WindowLimit> quotas;
  for (Word i = random.between(2, 3); i > 0; --i) {
    const Word longest = random.one_in(2) ? 12 : 150;
    quotas.push_back({random.between(1, random.one_in(2) ? 8 : 60),
                      Span{unit * random.between(1, longest) + random.between(0, unit / 2)}});
  }
  return quotas;
}

/// By how many units the fullest interval exceeds the largest limit and what passes at the fastest
/// rate; less than zero if all hold less.
Word excess(const std::vector<Admission>& all, const std::vector<WindowLimit>& quotas) {
  Word limit = 0;
  WindowLimit fastest = quotas.front();
  for (const WindowLimit& quota : quotas) {
    limit = std::max(limit, quota.limit);
    if (Wide{quota.limit} * fastest.span.count() > Wide{fastest.limit} * quota.span.count()) {
      fastest = quota;
    }
  }
  Word most = -limit;
  for (std::size_t first = 0; first < all.size(); ++first) {
    Word sum = 0;
    for (std::size_t last = first; last < all.size(); ++last) {
      sum += all[last].units;
      const Wide flow = Wide{all[last].at - all[first].at} * fastest.limit / fastest.span.count();
      most = std::max(most, sum - limit - static_cast<Word>(flow));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("under several quotas every answer is what the list of admissions says",
          "[oracle][sliding_window_counter]") {
  Random random("under several quotas every answer is what the list of admissions says");
  CAPTURE(random.repeat());
  std::size_t refused = 0;
  const std::size_t lives = test::scaled(400, 40);
  for (std::size_t life = 0; life < lives; ++life) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const std::vector<WindowLimit> quotas = draw_quotas(random);
    std::vector<SlidingWindowCounter> callers;
    for (const WindowLimit& quota : quotas) callers.emplace_back(*store, "v", quota);
    Oracle oracle;
    std::size_t who = 0;
    for (int step = 0; step < 100; ++step) {
      if (random.one_in(4)) who = random.below(quotas.size());
      const WindowLimit& quota = quotas[who];
      const Word cost = random.between(0, random.one_in(3) ? quota.limit : (quota.limit + 3) / 4);
      const Word now = to_word(clock.now());
      INFO(quota.limit << "/" << quota.span.count() << ", cost " << cost << ", step " << step);
      const bool fits = oracle.fits(quota, now, cost);
      const bool asks = random.one_in(4);
      const Decision d = asks ? callers[who].peek("k", cost) : callers[who].try_acquire("k", cost);
      REQUIRE(d.allowed == fits);
      if (fits && !asks && cost > 0) oracle.admit(quota, now, cost);
      REQUIRE(d.remaining == std::max<Word>(0, quota.limit - oracle.counts(quota, now)));
      Word ahead = random.one_in(3) ? 0 : random.between(0, quota.span.count() / 4 + 1);
      if (random.one_in(15)) ahead = 3 * quota.span.count();
      if (!fits) {
        ++refused;
        const Word hint = d.retry_after.count();
        REQUIRE(hint > 0);
        REQUIRE_FALSE(oracle.fits(quota, now + hint - 1, cost));
        REQUIRE(oracle.fits(quota, now + hint, cost));
        if (random.one_in(2)) ahead = hint - random.between(0, 1);
      }
      if (oracle.counts(quota, now) > 0) {
        const Word empty = now + d.reset_after.count();
        REQUIRE(oracle.counts(quota, empty) == 0);
      }
      clock.advance(Span{ahead});
    }
  }
  CHECK(refused > lives);
}

TEST_CASE("no change of a limit or a span lifts the largest limit and the fastest rate",
          "[oracle][sliding_window_counter]") {
  Random random("no change of a limit or a span lifts the largest limit and the fastest rate");
  CAPTURE(random.repeat());
  std::size_t changed = 0;
  std::size_t met = 0;
  const std::size_t lives = test::scaled(6000, 300);
  for (std::size_t life = 0; life < lives; ++life) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    const std::vector<WindowLimit> quotas = draw_quotas(random);
    std::vector<SlidingWindowCounter> callers;
    for (const WindowLimit& quota : quotas) callers.emplace_back(*store, "v", quota);
    const std::uint64_t greed = 1 + random.below(4);
    const std::uint64_t pace = random.one_in(2) ? 1 : 12;
    std::size_t who = 0;
    std::size_t last = 0;
    std::vector<Admission> taken;
    for (int step = 0; step < 60; ++step) {
      if (random.one_in(pace)) who = random.below(quotas.size());
      const Word cost = random.one_in(greed) ? callers[who].peek("k", 0).remaining : 1;
      if (cost > 0 && callers[who].try_acquire("k", cost)) {
        taken.push_back({to_word(clock.now()), cost});
        if (who != last) ++changed;
        last = who;
      }
      const Word span = quotas[random.below(quotas.size())].span.count();
      clock.advance(Span{random.one_in(8) ? random.between(0, 2 * span) : random.between(0, 1)});
    }
    const Word over = excess(taken, quotas);
    INFO(quotas[0].limit << "/" << quotas[0].span.count() << ", " << quotas[1].limit << "/"
                         << quotas[1].span.count());
    REQUIRE(over <= 0);
    if (over == 0) ++met;
  }
  CHECK(changed > lives);
  CHECK(met > lives / 4);  // the bound is no larger than it need be
}
