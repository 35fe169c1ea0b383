// The kernel of the leases as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/leases.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

using Rule = LeasesRule;

constexpr Word start = 946'684'800'000'000;
constexpr Word ttl = 60'000'000;

struct Told {
  Verdict verdict;
  std::vector<Word> output;
};

/// A state, and calls on it at instants counted from `start`.
class Leases {
 public:
  explicit Leases(Word limit) : limit_(limit) {}

  Told acquire(Span at, Word id, Word weight = 1, Word lasting = ttl, Word seek = 0) {
    return call(leases_acquire, at, {limit_, weight, lasting, 0, seek, id});
  }
  Told release(Span at, Word id, Word slot = 0) {
    return call(leases_release, at, {limit_, slot, id});
  }
  Told renew(Span at, Word id, Word lasting = ttl, Word slot = 0) {
    return call(leases_renew, at, {limit_, lasting, slot, id});
  }
  Told peek(Span at, Word weight = 1) { return call(leases_peek, at, {limit_, weight}); }
  Told block(Span at, Span span) { return call(leases_block, at, {limit_, span.count()}); }
  Told reset(Span at) { return call(leases_reset, at, {limit_}); }
  Told call(const Operation& row, Span at, const Arguments& args) {
    Effects effects;
    const Verdict verdict = run(row, state, {args, {}}, start + at.count(), effects);
    if (verdict.status == Verdict::allowed) {
      if (state.size() < effects.extent()) state.resize(effects.extent());
      effects.make(state);
    } else {
      CHECK_FALSE(effects.changes());
    }
    return {verdict, {effects.output().begin(), effects.output().end()}};
  }
  void limit(Word now) { limit_ = now; }

  std::vector<Word> state = std::vector<Word>(cell_words);

 private:
  Word limit_;
};

Verdict allowed(Word remaining, Span reset_after) {
  return {Verdict::allowed, remaining, 0, reset_after.count()};
}
Verdict refused(Span retry_after, Span reset_after, Word remaining = 0) {
  return {Verdict::refused, remaining, retry_after.count(), reset_after.count()};
}

}  // namespace

TEST_CASE("a place that nobody gives back is free when its lease expires, to the microsecond",
          "[core][leases][C-034]") {
  Leases leases(2);
  CHECK(leases.acquire(0s, 1).verdict == allowed(1, 60s));
  CHECK(leases.acquire(10s, 2).verdict == allowed(0, 60s));
  CHECK(leases.acquire(20s, 3).verdict == refused(40s, 50s));
  CHECK(leases.peek(60s - 1us).verdict == refused(1us, 10s + 1us));
  CHECK(leases.acquire(60s - 1us, 3).verdict == refused(1us, 10s + 1us));
  CHECK(leases.peek(60s).verdict == allowed(1, 10s));
  CHECK(leases.acquire(60s, 3).verdict == allowed(0, 60s));
  CHECK(leases.acquire(60s, 4).verdict == refused(10s, 60s));
}

TEST_CASE("the hint waits for as many leases as a weight needs", "[core][leases]") {
  Leases leases(10);
  leases.acquire(0s, 1, 3);
  leases.acquire(1s, 2, 4);
  leases.acquire(2s, 3, 3);
  CHECK(leases.peek(3s, 3).verdict == refused(57s, 59s));
  CHECK(leases.peek(3s, 4).verdict == refused(58s, 59s));
  CHECK(leases.peek(3s, 8).verdict == refused(59s, 59s));
  CHECK(leases.peek(61s - 1us, 7).verdict == refused(1us, 1s + 1us, 3));
  CHECK(leases.peek(61s, 7).verdict == allowed(7, 1s));
}

TEST_CASE("leases that expire out of turn are kept in order", "[core][leases]") {
  Leases leases(4);
  leases.acquire(0s, 1, 1, 40'000'000);
  leases.acquire(0s, 2, 1, 20'000'000);
  leases.acquire(0s, 3, 1, 10'000'000);
  leases.acquire(0s, 4, 1, 30'000'000);
  CHECK(leases.peek(0s, 1).verdict == refused(10s, 40s));
  CHECK(leases.peek(0s, 2).verdict == refused(20s, 40s));
  CHECK(leases.peek(0s, 3).verdict == refused(30s, 40s));
  CHECK(leases.peek(0s, 4).verdict == refused(40s, 40s));
  CHECK(leases.renew(5s, 3, 30'000'000).verdict == allowed(0, 35s));
  CHECK(leases.peek(5s, 1).verdict == refused(15s, 35s));
  CHECK(leases.peek(5s, 3).verdict == refused(30s, 35s));
}

TEST_CASE("only the lease that is live is given back, once", "[core][leases][C-033]") {
  Leases leases(1);
  const Told grant = leases.acquire(0s, 7);
  const Word slot = grant.output[1];
  CHECK(leases.release(1s, 8, slot).output == std::vector<Word>{0});
  CHECK(leases.release(1s, 7, slot + 1).output == std::vector<Word>{0});
  CHECK(leases.peek(1s).verdict.status == Verdict::refused);
  CHECK(leases.release(1s, 7, slot).output == std::vector<Word>{1});
  CHECK(leases.release(1s, 7, slot).output == std::vector<Word>{0});
  CHECK(leases.acquire(2s, 9).verdict == allowed(0, 60s));
  CHECK(leases.release(2s, 7, slot).output == std::vector<Word>{0});
  CHECK(leases.release(62s, 9, slot).output == std::vector<Word>{0});
  CHECK(leases.release(62s - 1us, 9, slot).output == std::vector<Word>{1});
}

TEST_CASE("a live id that is asked for again is one lease, as it was", "[core][leases][C-030]") {
  Leases leases(2);
  const Told first = leases.acquire(0s, 5, 1, ttl, 1);
  const auto before = leases.state;
  for (int i = 0; i < 5; ++i) {
    const Told again = leases.acquire(1s, 5, 1, ttl, 1);
    CHECK(again.verdict == allowed(1, 59s));
    CHECK(again.output == first.output);
  }
  CHECK(leases.state == before);
  leases.acquire(1s, 6);
  CHECK(leases.acquire(2s, 5, 1, ttl, 1).verdict == allowed(0, 59s));
  const Told later = leases.acquire(60s, 5, 1, ttl, 1);
  CHECK(later.verdict == allowed(0, 60s));
  CHECK(later.output[2] > first.output[2]);
}

TEST_CASE("fences rise, also while the clock stands or is set back", "[core][leases][C-034]") {
  Leases leases(100);
  Word last = 0;
  Word id = 0;
  for (const Span at : {0s, 0s, 0s, 30s, 10s, 10s, -300s, -300s, 3'000s}) {
    const Told grant = leases.acquire(at, ++id);
    REQUIRE(grant.verdict.status == Verdict::allowed);
    CHECK(grant.output[2] > last);
    last = grant.output[2];
    if (id % 3 == 0) leases.release(at, id);
    if (id == 6) leases.reset(at);
  }
}

TEST_CASE("a lower limit grants nothing until enough is given back", "[core][leases]") {
  Leases leases(4);
  for (Word id = 1; id <= 4; ++id) leases.acquire(id * 1s, id);
  leases.limit(2);
  CHECK(leases.peek(5s).verdict == refused(58s, 59s));
  leases.release(5s, 4);
  leases.release(5s, 3);
  CHECK(leases.peek(5s).verdict == refused(56s, 57s));
  leases.release(5s, 1);
  CHECK(leases.peek(5s).verdict == allowed(1, 57s));
}

TEST_CASE("a clock set far back admits one request and locks nobody out", "[core][leases]") {
  Leases leases(2);
  leases.acquire(1000s, 1);
  leases.acquire(1010s, 2);
  CHECK(leases.peek(950s).verdict == refused(110s, 120s));  // still 60 s behind: time stands
  CHECK(leases.peek(949s).verdict.status == Verdict::allowed);
  CHECK(leases.acquire(0s, 3).verdict.status == Verdict::allowed);
  CHECK(leases.acquire(0s, 4).verdict.status == Verdict::refused);
  CHECK(leases.acquire(50s - 1us, 4).verdict == refused(10s + 1us, 10s + 1us, 0));
  CHECK(leases.acquire(60s, 4).verdict == allowed(1, 60s));
}

TEST_CASE("a crowd that died at once is free at once, and taken off bit by bit", "[core][leases]") {
  Leases leases(1000);
  for (Word id = 1; id <= 1000; ++id) leases.acquire(id <= 500 ? 0s : 30s, id);
  CHECK(leases.peek(60s, 500).verdict == allowed(500, 30s));
  const std::size_t words = leases.state.size();
  for (Word i = 0; i < 500; ++i) {
    REQUIRE(leases.acquire(60s, 2000 + i).verdict == allowed(499 - i, 60s));
  }
  CHECK(leases.state.size() == words);
  CHECK(leases.acquire(60s, 3000).verdict == refused(30s, 60s));
}

TEST_CASE("no more than max_holders leases are held, whatever the limit", "[core][leases]") {
  Leases leases(word_limit);
  for (Word id = 1; id < Rule::max_holders; ++id) leases.acquire(0s, id);
  CHECK(leases.peek(1s).verdict.remaining == word_limit - Rule::max_holders + 1);
  CHECK(leases.acquire(1s, 5000).verdict == allowed(0, 60s));
  CHECK(leases.acquire(2s, 5001).verdict == refused(58s, 59s));
  CHECK(leases.state.size() == std::size_t(Rule::slot_at(Rule::max_holders + 1)));
  leases.release(2s, 77);
  CHECK(leases.acquire(2s, 5001).verdict == allowed(0, 60s));
  CHECK(leases.acquire(62s, 5002).verdict.status == Verdict::allowed);
}

TEST_CASE("words that contradict each other are an error, not a grant", "[core][leases]") {
  Leases leases(3);
  for (Word id = 1; id <= 3; ++id) leases.acquire(id * 1s, id);
  const auto sound = leases.state;
  const auto spoiled = [&](Word index, Word value, auto&& ask) {
    leases.state = sound;
    leases.state[static_cast<std::size_t>(index)] = value;
    const Told told = ask();
    CHECK(told.verdict == Verdict::failed(Errc::corrupt_state));
    CHECK(leases.state[static_cast<std::size_t>(index)] == value);
  };
  const auto late_peek = [&] { return leases.peek(62s); };
  const auto full_peek = [&] { return leases.peek(10s, 3); };
  spoiled(4, Rule::max_holders + 1, late_peek);
  spoiled(5, 9, late_peek);
  spoiled(6, 0, late_peek);
  spoiled(0, 1, late_peek);
  spoiled(Rule::slot_at(1) + Rule::weight, 0, late_peek);
  spoiled(Rule::slot_at(1) + Rule::next, 1, full_peek);
  spoiled(Rule::slot_at(1) + Rule::next, 4, full_peek);
  spoiled(Rule::slot_at(3) + Rule::weight, 2, full_peek);
}

TEST_CASE("a block grants nothing until its end, and leases go on", "[core][leases]") {
  Leases leases(3);
  CHECK(leases.acquire(0s, 1).verdict == allowed(2, 60s));
  CHECK(leases.acquire(0s, 2).verdict == allowed(1, 60s));
  CHECK(leases.block(10s, 20s).verdict == allowed(0, 50s));
  CHECK(leases.peek(10s).verdict == refused(20s, 50s));
  CHECK(leases.acquire(10s, 3, 2).verdict == refused(50s, 50s));  // beside those that are held
  CHECK(leases.block(15s, 10s).verdict == allowed(0, 45s));       // a later one stands
  CHECK(leases.block(15s, 0s).verdict == allowed(0, 45s));
  CHECK(leases.acquire(15s, 1, 1, ttl, 1).verdict == allowed(0, 45s));  // it is held already
  CHECK(leases.renew(20s, 1).verdict == allowed(0, 60s));
  CHECK(leases.release(20s, 2).output == std::vector<Word>{1});
  CHECK(leases.acquire(30s - 1us, 3).verdict == refused(1us, 50s + 1us));
  CHECK(leases.acquire(30s, 3, 2).verdict == allowed(0, 60s));
  CHECK(leases.acquire(30s, 4).verdict == refused(50s, 60s));
}

TEST_CASE("a block is put off, outlasts every lease, and is nobody's to give back",
          "[core][leases]") {
  Leases leases(2);
  CHECK(leases.block(0s, 10s).verdict == allowed(0, 10s));
  CHECK(leases.block(1s, 10min).verdict == allowed(0, 10min));
  CHECK(leases.block(1s, 20min).verdict == allowed(0, 20min));
  CHECK(leases.peek(1s, 2).verdict == refused(20min, 20min));
  // Its id can be no holder's.
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Word nobody = Rule::block_id[2];
  CHECK(leases.call(leases_release, 1s, {2, 0, 0, 0, nobody}).verdict == wrong);
  CHECK(leases.call(leases_renew, 1s, {2, ttl, 1, 0, 0, nobody}).verdict == wrong);
  CHECK(leases.call(leases_acquire, 1s, {2, 1, ttl, 0, 1, 0, 0, nobody}).verdict == wrong);
  CHECK(leases.acquire(20min + 1s - 1us, 1).verdict == refused(1us, 1us));
  CHECK(leases.acquire(20min + 1s, 1).verdict == allowed(1, 60s));
  CHECK(leases.block(20min + 1s, 1h).verdict == allowed(0, 1h));
  CHECK(leases.reset(20min + 1s).verdict == allowed(2, 0s));
  CHECK(leases.acquire(20min + 1s, 2, 2).verdict == allowed(0, 60s));
}

TEST_CASE("a block takes a place like a lease, and is refused where none is left",
          "[core][leases]") {
  Leases leases(Rule::max_holders + 1);
  for (Word id = 1; id < Rule::max_holders; ++id) {
    REQUIRE(leases.acquire(0s, id).verdict.status == Verdict::allowed);
  }
  Leases last = leases;
  CHECK(leases.block(1s, 1s).verdict == allowed(0, 59s));
  CHECK(leases.acquire(1s, 1 + Rule::max_holders).verdict == refused(1s, 59s));
  CHECK(leases.acquire(2s, 1 + Rule::max_holders).verdict.status == Verdict::allowed);
  CHECK(last.acquire(0s, Rule::max_holders).verdict.status == Verdict::allowed);
  CHECK(last.block(1s, 1s).verdict == refused(0s, 59s));
  CHECK(last.block(60s, 1s).verdict == allowed(0, 1s));  // all have lapsed
}

TEST_CASE("blocks that cannot be are errors of the leases", "[core][leases][C-006]") {
  const Verdict wrong = Verdict::failed(Errc::invalid_argument);
  const Span longest{Rule::max_block};
  Leases leases(2);
  CHECK(leases.block(0s, -1us).verdict == wrong);
  CHECK(leases.block(0s, longest + 1us).verdict == wrong);
  CHECK(leases.call(leases_block, 0s, {0, 1}).verdict == wrong);
  CHECK(leases.call(leases_block, 0s, {Rule::block_weight + 1, 1}).verdict == wrong);
  CHECK(leases.block(0s, 0s).verdict == allowed(2, 0s));
  CHECK(leases.call(leases_block, 0s, {Rule::block_weight, longest.count()}).verdict ==
        allowed(0, longest));
  CHECK(leases.call(leases_peek, longest - 1us, {Rule::block_weight, 1}).verdict ==
        refused(1us, 1us));
  CHECK(Span{leases_block.ttl({2, longest.count()})} >= longest + 60s);
}

TEST_CASE("a clock corrected lengthens a block, and one set back far ends it with one request",
          "[core][leases]") {
  Leases leases(2);
  CHECK(leases.acquire(60s, 1).verdict == allowed(1, 60s));
  CHECK(leases.block(60s, 10s).verdict == allowed(0, 60s));
  CHECK(leases.peek(10s).verdict == refused(60s, 110s));
  CHECK(leases.peek(-1h).verdict == allowed(1, 60s));
}
