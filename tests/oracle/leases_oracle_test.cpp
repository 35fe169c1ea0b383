// Leases against a list of what is held: random calls, crashes, changed limits and TTLs, late,
// double and foreign returns, clocks that step. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

/// The definition, taken literally.
class Oracle {
 public:
  struct Entry {
    LeaseId id;
    Word expiry;
    Word weight;
    Word fence;
  };
  struct Answer {
    bool allowed;
    Word remaining;
    Word retry_after;
    Word reset_after;
  };

  /// Time stands still while the clock is behind the last change; what expired before that is gone.
  void look_at(Word clock) {
    clock_ = clock;
    now_ = std::max(clock, changed_at_);
    std::erase_if(all_, [&](const Entry& e) { return e.expiry <= changed_at_; });
    entries_ = all_;
    std::erase_if(entries_, [&](const Entry& e) { return e.expiry <= now_; });
  }
  [[nodiscard]] const Entry* find(const LeaseId& id) const {
    const auto found = std::ranges::find(entries_, id, &Entry::id);
    return found == entries_.end() ? nullptr : &*found;
  }
  [[nodiscard]] Word held() const {
    Word sum = 0;
    for (const Entry& e : entries_) sum += e.weight;
    return sum;
  }
  [[nodiscard]] Answer ask(Word limit, Word weight) const {
    if (held() + weight <= limit) return {true, limit - held(), 0, last() - clock_};
    std::vector<Entry> by_time = entries_;
    std::ranges::stable_sort(by_time, {}, &Entry::expiry);
    Word left = held();
    Word until = now_;
    for (const Entry& e : by_time) {
      if (left + weight <= limit) break;
      left -= e.weight;
      until = e.expiry;
    }
    return {false, std::max<Word>(0, limit - held()), until - clock_, last() - clock_};
  }
  Answer acquire(const LeaseId& id, Word limit, Word weight, Word ttl) {
    if (find(id) != nullptr) return {true, std::max<Word>(0, limit - held()), 0, last() - clock_};
    Answer answer = ask(limit, weight);
    if (!answer.allowed) return answer;
    fence_ = std::max(fence_ + 1, clock_);
    entries_.push_back({id, now_ + ttl, weight, fence_});
    change();
    return {true, limit - held(), 0, last() - clock_};
  }
  bool release(const LeaseId& id) {
    const bool was_held = std::erase_if(entries_, [&](const Entry& e) { return e.id == id; }) > 0;
    if (was_held) change();
    return was_held;
  }
  bool renew(const LeaseId& id, Word ttl) {
    const auto found = std::ranges::find(entries_, id, &Entry::id);
    if (found == entries_.end()) return false;
    if (now_ + ttl > found->expiry) {
      found->expiry = now_ + ttl;
      change();
    }
    return true;
  }
  /// A lease that nobody holds, as heavy as all limits.
  Answer block(const LeaseId& nobody, Word limit, Word span) {
    if (span > 0 && !renew(nobody, span)) {
      entries_.push_back({nobody, now_ + span, LeasesRule::block_weight, 0});
      change();
    }
    return {true, std::max<Word>(0, limit - held()), 0, last() - clock_};
  }
  void reset() {
    entries_.clear();
    all_.clear();
  }

 private:
  void change() {
    changed_at_ = now_;
    all_ = entries_;
  }
  /// The end of the last lease.
  [[nodiscard]] Word last() const {
    Word end = clock_;
    for (const Entry& e : entries_) end = std::max(end, e.expiry);
    return end;
  }

  std::vector<Entry> all_;
  std::vector<Entry> entries_;  // those that are live
  Word clock_ = 0;
  Word now_ = 0;
  Word changed_at_ = 0;
  Word fence_ = 0;
};

/// One key, asked through limiters of different limits and TTLs, and the oracle beside it.
class Duel {
 public:
  Duel(Random& random, std::size_t limiters) : random_(random) {
    for (std::size_t i = 0; i < limiters; ++i) {
      const Word limit = random.between(1, 1 + static_cast<Word>(random.below(60)));
      const Span ttl{random.one_in(2) ? 1'000'000 : random.between(1'000, 3'000'000)};
      limiters_.emplace_back(*store_, "jobs", limit, LeaseOptions{.ttl = ttl});
    }
  }

  void play() {
    move();
    oracle_.look_at(to_word(clock_.now()));
    const auto& limiter = limiters_[random_.below(limiters_.size())];
    switch (random_.below(16)) {
      case 0:
        return peek(limiter);
      case 1:
      case 2:
        return renew(limiter);
      case 3:
      case 4:
      case 5:
      case 6:
        return release(limiter);
      case 7:
        if (random_.one_in(20)) reset(limiter);
        return;
      case 8:
        if (random_.one_in(4)) block(limiter);
        return;
      default:
        return acquire(limiter);
    }
  }

  std::size_t refusals = 0;
  std::size_t replays = 0;
  std::size_t lapses = 0;
  std::size_t blocks = 0;

 private:
  void move() {
    if (random_.one_in(3)) return;
    Word us = random_.between(0, 100'000);
    if (random_.one_in(30)) us = random_.between(0, 3'000'000);
    if (random_.one_in(30)) us = -random_.between(0, 300'000);
    if (random_.one_in(4) && hint_ > 0) us = hint_ - random_.between(0, 1);
    clock_.advance(Span{us});
    hint_ = 0;
  }
  /// One that is or was in use, also by a holder that crashed, or a stranger's.
  LeaseId some_id() {
    if (ids_.empty() || random_.one_in(10)) return LeaseId::draw(random_);
    const std::size_t recent = std::min<std::size_t>(ids_.size(), 80);
    return ids_[ids_.size() - 1 - random_.below(recent)];
  }
  Word some_weight(Word limit) {
    return random_.one_in(5) ? random_.between(1, limit)
                             : random_.between(1, std::min<Word>(limit, 3));
  }

  void check(const Decision& d, const Oracle::Answer& expected) {
    CHECK(d.allowed == expected.allowed);
    CHECK(d.remaining == expected.remaining);
    CHECK(d.retry_after.count() == expected.retry_after);
    CHECK(d.reset_after.count() == expected.reset_after);
    if (!d.allowed) ++refusals;
    hint_ = d.retry_after.count();
  }
  Decision ask(const Step& step, std::span<Word> told) {
    std::error_code error;
    const Decision d = decide(*store_, step, error, {}, told);
    REQUIRE_FALSE(error);
    return d;
  }

  void acquire(const ConcurrencyLimiter& limiter) {
    const LeaseId id = random_.one_in(4) ? some_id() : LeaseId::draw(random_);
    const Word weight = some_weight(limiter.limit());
    if (oracle_.find(id) != nullptr) ++replays;
    const auto expected =
        oracle_.acquire(id, limiter.limit(), weight, limiter.options().ttl.count());
    std::array<Word, ConcurrencyLimiter::output> told{};
    check(ask(limiter.acquire_step("k", id, weight), told), expected);
    if (!expected.allowed) {
      CHECK(told == std::array<Word, 4>{});
      return;
    }
    const Oracle::Entry& entry = *oracle_.find(id);
    CHECK(told[2] == entry.fence);
    CHECK(told[3] == entry.expiry);
    ids_.push_back(id);
  }
  void release(const ConcurrencyLimiter& limiter) {
    const LeaseId id = some_id();
    const bool expected = oracle_.release(id);
    if (!expected) ++lapses;
    std::array<Word, 1> told{};
    const Decision d = ask(limiter.release_step("k", id), told);
    CHECK(d.allowed);
    CHECK((told[0] == 1) == expected);
    CHECK(d.remaining == std::max<Word>(0, limiter.limit() - oracle_.held()));
  }
  void renew(const ConcurrencyLimiter& limiter) {
    const LeaseId id = some_id();
    const bool expected = oracle_.renew(id, limiter.options().ttl.count());
    std::array<Word, 2> told{};
    const Decision d = ask(limiter.renew_step("k", id), told);
    CHECK(d.allowed == expected);
    CHECK(d.retry_after == 0us);
    if (expected) {
      CHECK(told[0] == oracle_.find(id)->fence);
      CHECK(told[1] == oracle_.find(id)->expiry);
    }
  }
  void peek(const ConcurrencyLimiter& limiter) {
    const Word weight = some_weight(limiter.limit());
    check(limiter.peek("k", weight), oracle_.ask(limiter.limit(), weight));
  }
  void reset(const ConcurrencyLimiter& limiter) {
    limiter.reset("k");
    oracle_.reset();
  }

  void block(const ConcurrencyLimiter& limiter) {
    const Word span = random_.between(0, random_.one_in(3) ? 1'000'000 : 50'000);
    check(limiter.block("k", Span{span}), oracle_.block(nobody_, limiter.limit(), span));
    ++blocks;
  }

  Random& random_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  std::vector<ConcurrencyLimiter> limiters_;
  Oracle oracle_;
  std::vector<LeaseId> ids_;
  LeaseId nobody_ = LeaseId::draw(random_);
  Word hint_ = 0;
};

}  // namespace

TEST_CASE("leases are granted, refused, renewed and given back as a list of them says",
          "[oracle][leases][C-030]") {
  Random random("leases are granted, refused, renewed and given back as a list of them says");
  CAPTURE(random.repeat());
  std::size_t refusals = 0;
  std::size_t replays = 0;
  std::size_t lapses = 0;
  std::size_t blocks = 0;
  const std::size_t rounds = scaled(60);
  for (std::size_t round = 0; round < rounds; ++round) {
    Duel duel(random, round % 3 + 1);
    for (int i = 0; i < 1'000; ++i) duel.play();
    refusals += duel.refusals;
    replays += duel.replays;
    lapses += duel.lapses;
    blocks += duel.blocks;
  }
  CHECK(refusals > rounds * 10);
  CHECK(replays > rounds);
  CHECK(lapses > rounds * 10);
  CHECK(blocks > rounds * 5);
}
