// The kernel of the leases as tables of moments: at this instant, this request, this answer.
// Threading: single-threaded.
#include "sluice/rules/leases.hpp"

#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

using Rule = LeasesRule;

constexpr Word ttl = 60'000'000;

/// A state, and calls on it at instants counted from `start`.
class Leases : public Kernel {
 public:
  explicit Leases(Word limit) : limit_(limit) {}

  Verdict acquire(Span at, Word id) {
    return ask(at, {&leases_acquire, {limit_, 1, ttl, 0, 0, id}});
  }
  Verdict release(Span at, Word id) { return ask(at, {&leases_release, {limit_, 0, id}}); }
  Verdict peek(Span at, Word weight = 1) { return ask(at, {&leases_peek, {limit_, weight}}); }
  Verdict block(Span at, Span span) { return ask(at, {&leases_block, {limit_, span.count()}}); }

 private:
  Word limit_;
};

}  // namespace

TEST_CASE("a place that nobody gives back is free when its lease expires, to the microsecond",
          "[core][leases][C-034]") {
  Leases leases(2);
  CHECK(leases.acquire(0s, 1) == admitted(1, 60s));
  CHECK(leases.acquire(10s, 2) == admitted(0, 60s));
  CHECK(leases.acquire(20s, 3) == turned_away(40s, 50s));
  CHECK(leases.peek(60s - 1us) == turned_away(1us, 10s + 1us));
  CHECK(leases.acquire(60s - 1us, 3) == turned_away(1us, 10s + 1us));
  CHECK(leases.peek(60s) == admitted(1, 10s));
  CHECK(leases.acquire(60s, 3) == admitted(0, 60s));
  CHECK(leases.acquire(60s, 4) == turned_away(10s, 60s));
}

TEST_CASE("no more than max_holders leases are held, whatever the limit", "[core][leases]") {
  Leases leases(word_limit);
  for (Word id = 1; id < Rule::max_holders; ++id) leases.acquire(0s, id);
  CHECK(leases.peek(1s).remaining == word_limit - Rule::max_holders + 1);
  CHECK(leases.acquire(1s, 5000) == admitted(0, 60s));
  CHECK(leases.acquire(2s, 5001) == turned_away(58s, 59s));
  CHECK(leases.state.size() == std::size_t(Rule::slot_at(Rule::max_holders + 1)));
  leases.release(2s, 77);
  CHECK(leases.acquire(2s, 5001) == admitted(0, 60s));
  CHECK(leases.acquire(62s, 5002).status == Verdict::allowed);
}

TEST_CASE("words that contradict each other are an error, not a grant", "[core][leases]") {
  Leases leases(3);
  for (Word id = 1; id <= 3; ++id) leases.acquire(id * 1s, id);
  const auto at = [](Word slot, Word word) { return std::size_t(Rule::slot_at(slot) + word); };
  check_corrupt(leases, 62s,
                {{4, Rule::max_holders + 1}, {5, 9}, {6, 0}, {0, 1}, {at(1, Rule::weight), 0}},
                {{&leases_peek, {3, 1}}});
  check_corrupt(leases, 10s,
                {{at(1, Rule::next), 1}, {at(1, Rule::next), 4}, {at(3, Rule::weight), 2}},
                {{&leases_peek, {3, 3}}});
}

TEST_CASE("a block takes a place like a lease, and is refused where none is left",
          "[core][leases]") {
  Leases leases(Rule::max_holders + 1);
  for (Word id = 1; id < Rule::max_holders; ++id) {
    REQUIRE(leases.acquire(0s, id).status == Verdict::allowed);
  }
  Leases last = leases;
  CHECK(leases.block(1s, 1s) == admitted(0, 59s));
  CHECK(leases.acquire(1s, 1 + Rule::max_holders) == turned_away(1s, 59s));
  CHECK(leases.acquire(2s, 1 + Rule::max_holders).status == Verdict::allowed);
  CHECK(last.acquire(0s, Rule::max_holders).status == Verdict::allowed);
  CHECK(last.block(1s, 1s) == turned_away(0s, 59s));
  CHECK(last.block(60s, 1s) == admitted(0, 1s));  // all have lapsed
}
