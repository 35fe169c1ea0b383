// The model of the wait line: a list of who waits since when, and until when it is taken to live.
// The clock is not set back: whose life is over comes back to life then if its place was not taken,
// and that the rule leaves open. Threading: single-threaded.
#include "sluice/rules/wait_line.hpp"

#include <algorithm>
#include <map>

#include "sluice/decide.hpp"
#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

class WaitLineModel final : public Model {
 public:
  explicit WaitLineModel(Life& life) : life_(life) {}

  std::vector<Verb> verbs() override {
    return {{"turn", 8, [this] { turn(); }},
            {"enter", 4, [this] { come(draw_client(), draw_arrival()); }},
            {"crowd", 1, [this] { crowd(); }},
            {"leave", 3, [this] { leave(); }},
            {"peek", 2, [this] { peek(); }}};
  }
  Moves moves() const override { return {500ms, 3s}; }
  /// Every answer is predicted; there is nothing to add up.
  void judge(const testing::History&) override {}

 private:
  struct Member {
    Word arrival;
    Word until;
  };
  using Rank = std::pair<Word, Word>;  // (arrival, client): the smaller one stands first

  [[nodiscard]] Word draw_client() const { return life_.random.between(1, 6); }
  [[nodiscard]] Word draw_arrival() const { return life_.tick() - life_.random.between(0, 20); }
  [[nodiscard]] Word draw_ttl() const {
    return life_.random.between(WaitLineRule::min_ttl, 3'000'000);
  }

  /// The others that stand before this rank, in order; by default, all others.
  [[nodiscard]] std::vector<Rank> others(Word client, Rank before = {word_limit, 0}) const {
    std::vector<Rank> found;
    for (const auto& [who, member] : members_) {
      const Rank rank{member.arrival, who};
      if (who != client && rank < before) found.push_back(rank);
    }
    std::ranges::sort(found);
    return found;
  }
  /// From now until all of these have died.
  [[nodiscard]] Word left(const std::vector<Rank>& ranks) const {
    Word until = life_.tick();
    for (const Rank& rank : ranks) until = std::max(until, members_.at(rank.second).until);
    return until - life_.tick();
  }
  [[nodiscard]] static Word count(const std::vector<Rank>& ranks) {
    return static_cast<Word>(ranks.size());
  }

  void bury() {
    const std::size_t dead = std::erase_if(
        members_, [&](const auto& member) { return member.second.until <= life_.tick(); });
    if (dead > 0) life_.saw("died", dead);
  }

  /// When all places are taken, an older one takes that of the youngest.
  void hold(Word client, Word arrival, Word ttl) {
    const std::vector<Rank> all = others(client);
    if (all.size() == WaitLineRule::max_places) {
      if (Rank{arrival, client} > all.back()) return life_.saw("no place left");
      members_.erase(all.back().second);
      life_.saw("took the place of the youngest");
    }
    members_[client] = {arrival, life_.tick() + ttl};
  }

  /// Asks, and compares what is answered: how many stand before, and who stands first of `all`.
  void request(const Operation& operation, Arguments arguments, Predicted predicted, Word before,
               const std::vector<Rank>& all) {
    const Word limit = life_.random.one_in(2) ? word_limit : life_.random.between(0, 100);
    arguments[0] = limit;
    if (predicted.allowed) predicted.remaining = limit;
    std::array<Word, WaitLineRule::output> output{};
    std::error_code error;
    const Decision d = decide(life_.store, Step{&operation, Key{life_.name, "line"}, arguments},
                              error, {}, output);
    REQUIRE_FALSE(error);
    REQUIRE(d.limit == limit);
    life_.require(d, predicted);
    REQUIRE(output[0] == before);
    REQUIRE(output[1] == (all.empty() ? 0 : all.front().second));
  }

  void come(Word client, Word arrival) {
    const Word ttl = draw_ttl();
    life_.tell("client", client);
    life_.tell("arrival", arrival);
    life_.tell("ttl", ttl);
    enter(client, arrival, ttl);
  }
  void enter(Word client, Word arrival, Word ttl) {
    bury();
    const std::vector<Rank> all = others(client);
    const Word before = count(others(client, {arrival, client}));
    Word reset_after = left(all);
    hold(client, arrival, ttl);
    if (members_.contains(client)) reset_after = std::max(reset_after, ttl);
    request(wait_line_enter, {0, client, arrival, ttl}, {.reset_after = reset_after}, before, all);
  }

  /// As many come as there are places, and some more.
  void crowd() {
    if (!life_.random.one_in(60)) return;
    Word client = 10;
    while (members_.size() < WaitLineRule::max_places) {
      enter(client++, draw_arrival(), WaitLineRule::max_ttl);
    }
    for (int more = 0; more < 10; ++more) {
      const Word who = life_.random.one_in(2) ? draw_client() : client++;
      come(who, others(0).back().first + life_.random.between(-1, 1));
    }
  }

  void turn() {
    bury();
    const Word client = draw_client();
    const bool is_member = members_.contains(client);
    const Word arrival =
        is_member && life_.random.one_in(2) ? members_[client].arrival : draw_arrival();
    const Word next = life_.random.one_in(2) ? 0 : draw_arrival();
    const Word ttl = draw_ttl();
    life_.tell("client", client);
    life_.tell("arrival", arrival);
    life_.tell("next", next);
    life_.tell("ttl", ttl);
    const std::vector<Rank> all = others(client);
    const std::vector<Rank> ahead = others(client, {arrival, client});
    Predicted predicted{
        .allowed = ahead.empty(), .retry_after = left(ahead), .reset_after = left(all)};
    Word before = count(ahead);
    if (predicted.allowed) {
      before = next == 0 ? count(all) : count(others(client, {next, client}));
      if (next == 0) {
        members_.erase(client);
        life_.saw(is_member ? "gave its place up" : "left no trace");
      } else {
        hold(client, next, ttl);
        if (members_.contains(client))
          predicted.reset_after = std::max(*predicted.reset_after, ttl);
        life_.saw("to the next caller");
      }
    } else {
      life_.saw("not its turn");
    }
    request(wait_line_turn, {0, client, arrival, ttl, next}, predicted, before, all);
  }

  /// Only the place that has this arrival; 0: whichever.
  void leave() {
    bury();
    const Word client = draw_client();
    const auto mine = members_.find(client);
    const bool knows = mine != members_.end() && life_.random.one_in(2);
    const Word arrival = life_.random.one_in(3) ? 0 : knows ? mine->second.arrival : draw_arrival();
    life_.tell("client", client);
    life_.tell("arrival", arrival);
    if (mine != members_.end()) {
      const bool leaves = arrival == 0 || arrival == mine->second.arrival;
      life_.saw(leaves ? "left" : "had come again");
      if (leaves) members_.erase(mine);
    }
    const std::vector<Rank> all = others(client);
    request(wait_line_leave, {0, client, arrival}, {.reset_after = left(all)}, count(all), all);
  }

  void peek() {
    bury();
    const std::vector<Rank> all = others(0);
    request(wait_line_peek, {0}, {.reset_after = left(all)}, count(all), all);
  }

  Life& life_;
  std::map<Word, Member> members_;
};

}  // namespace

TEST_CASE("it is the turn of who came first of those that live, by a list of all who wait",
          "[model][wait_line]") {
  live<WaitLineModel>(
      "it is the turn of who came first of those that live, by a list of all who wait",
      {.outcomes = {"died", "not its turn", "gave its place up", "left no trace",
                    "to the next caller", "left", "had come again", "no place left",
                    "took the place of the youngest"},
       .patient_in = 0});
}
