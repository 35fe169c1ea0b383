// The wait line against a plain list of who said what: random comers, turns, deaths and leavings.
// Threading: single-threaded.
#include "sluice/rules/wait_line.hpp"

#include <algorithm>
#include <map>
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
struct Oracle {
  struct Member {
    Word arrival;
    Time until;
  };
  std::map<Word, Member> members;

  void bury(Time now) {
    std::erase_if(members, [now](const auto& m) { return m.second.until <= now; });
  }
  /// Others that stand before a client of this arrival; all of them, if it is 0.
  [[nodiscard]] std::vector<Word> before(Word client, Word arrival) const {
    std::vector<std::pair<Word, Word>> found;
    for (const auto& [who, member] : members) {
      if (who == client) continue;
      const std::pair mine{arrival, client};
      if (arrival == 0 || std::pair{member.arrival, who} < mine) {
        found.emplace_back(member.arrival, who);
      }
    }
    std::ranges::sort(found);
    std::vector<Word> ids;
    for (const auto& [since, who] : found) ids.push_back(who);
    return ids;
  }
};

}  // namespace

TEST_CASE("every turn is what a list of those who wait says", "[oracle][wait_line]") {
  Random random("every turn is what a list of those who wait says");
  CAPTURE(random.repeat());
  std::size_t granted = 0;
  std::size_t refused = 0;
  std::size_t died = 0;
  for (std::size_t history = 0; history < scaled(200); ++history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    Oracle oracle;
    Span hint{0};
    const Key key{"tag", "line"};
    for (int i = 0; i < 150; ++i) {
      if (random.one_in(3)) clock.advance(Span{random.between(0, 500'000)});
      if (hint > 0us && random.one_in(2)) clock.advance(hint - Span{random.between(0, 1)});
      const Time now = clock.now();
      const std::size_t alive = oracle.members.size();
      oracle.bury(now);
      died += alive - oracle.members.size();
      const Word client = random.between(1, 6);
      const Word arrival = to_word(now) - random.between(0, 20);
      const Word next = random.one_in(2) ? 0 : to_word(now) - random.between(0, 20);
      const Word ttl = random.between(1'000, 3'000'000);
      const auto kind = random.below(4);
      const Step step = kind == 0 ? Step{&wait_line_enter, key, {word_limit, client, arrival, ttl}}
                        : kind == 1
                            ? Step{&wait_line_leave, key, {word_limit, client, arrival}}
                            : Step{&wait_line_turn, key, {word_limit, client, arrival, ttl, next}};
      std::array<Word, WaitLineRule::output> told{};
      std::error_code error;
      const Decision d = decide(*store, step, error, {}, told);
      INFO("history " << history << ", call " << i);
      REQUIRE(!error);

      const std::vector<Word> others = oracle.before(client, 0);
      const std::vector<Word> ahead = oracle.before(client, arrival);
      REQUIRE(told[1] == (others.empty() ? 0 : others.front()));
      if (kind >= 2) {
        REQUIRE(d.allowed == ahead.empty());
        ++(d.allowed ? granted : refused);
        if (!d.allowed) {
          Time clear = now;
          for (const Word who : ahead) clear = std::max(clear, oracle.members.at(who).until);
          REQUIRE(d.retry_after == clear - now);
          REQUIRE(told[0] == static_cast<Word>(ahead.size()));
        } else if (next == 0) {
          oracle.members.erase(client);
          REQUIRE(told[0] == static_cast<Word>(others.size()));
        } else {
          oracle.members[client] = {next, now + Span{ttl}};
          REQUIRE(told[0] == static_cast<Word>(oracle.before(client, next).size()));
        }
        hint = d.retry_after;
        continue;
      }
      REQUIRE(d.allowed);
      if (kind == 0) {
        oracle.members[client] = {arrival, now + Span{ttl}};
        REQUIRE(told[0] == static_cast<Word>(ahead.size()));
      } else if (const auto mine = oracle.members.find(client);
                 mine != oracle.members.end() && mine->second.arrival == arrival) {
        oracle.members.erase(mine);
      }
    }
  }
  CHECK(granted > scaled(1000));
  CHECK(refused > scaled(1000));
  CHECK(died > scaled(500));
}
