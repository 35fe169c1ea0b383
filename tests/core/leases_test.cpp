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
  Told peek(Span at, Word weight = 1) { return call(leases_peek, at, {limit_, weight}); }
  Told block(Span at, Span span) { return call(leases_block, at, {limit_, span.count()}); }
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
  // The id of a block can be no holder's.
  const Word nobody = Rule::block_id[2];
  CHECK(leases.call(leases_release, 1s, {2, 0, 0, 0, nobody}).verdict == wrong);
  CHECK(leases.call(leases_renew, 1s, {2, ttl, 1, 0, 0, nobody}).verdict == wrong);
  CHECK(leases.call(leases_acquire, 1s, {2, 1, ttl, 0, 1, 0, 0, nobody}).verdict == wrong);
}
