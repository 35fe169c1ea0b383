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
    Word units;
  };
  using Rank = std::pair<Word, Word>;  // (arrival, client): the smaller one stands first

  [[nodiscard]] Word draw_client() const { return life_.random.between(1, 6); }
  [[nodiscard]] Word draw_units() const { return life_.random.between(1, 3); }
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
  /// From now until the limit has enough for those who then live.
  [[nodiscard]] Word until_few(const std::vector<Rank>& ahead, Word enough) const {
    std::vector<Word> ends;
    for (const Rank& rank : ahead) ends.push_back(members_.at(rank.second).until);
    std::ranges::sort(ends);
    for (const Word end : ends) {
      std::vector<Rank> live;
      std::ranges::copy_if(ahead, std::back_inserter(live),
                           [&](const Rank& rank) { return members_.at(rank.second).until > end; });
      if (live.empty() || granted_ + units(live) <= enough) return end - life_.tick();
    }
    return 0;
  }
  [[nodiscard]] Word units(const std::vector<Rank>& ranks) const {
    Word sum = 0;
    for (const Rank& rank : ranks) sum += members_.at(rank.second).units;
    return sum;
  }

  void bury() {
    const std::size_t dead = std::erase_if(
        members_, [&](const auto& member) { return member.second.until <= life_.tick(); });
    if (dead > 0) life_.saw("died", dead);
    if (members_.empty()) granted_ = 0;
  }

  /// When all places are taken, an older one takes that of the youngest.
  void hold(Word client, Word arrival, Word ttl, Word units) {
    const std::vector<Rank> all = others(client);
    if (all.size() == WaitLineRule::max_places) {
      if (Rank{arrival, client} > all.back()) return life_.saw("no place left");
      members_.erase(all.back().second);
      life_.saw("took the place of the youngest");
    }
    members_[client] = {arrival, life_.tick() + ttl, units};
  }

  /// Asks, and compares what is answered: how many units stand ahead and until when these live, and
  /// who stands first of `all`.
  void request(const Operation& operation, Arguments arguments, Predicted predicted,
               const std::vector<Rank>& ahead, const std::vector<Rank>& all) {
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
    REQUIRE(output[0] == units(ahead));
    REQUIRE(output[1] == (all.empty() ? 0 : all.front().second));
    REQUIRE(output[2] == granted_);
    REQUIRE(output[3] == left(ahead));
  }

  void come(Word client, Word arrival) {
    const Word ttl = draw_ttl();
    life_.tell("client", client);
    life_.tell("arrival", arrival);
    life_.tell("ttl", ttl);
    enter(client, arrival, ttl, draw_units());
  }
  void enter(Word client, Word arrival, Word ttl, Word its) {
    bury();
    const std::vector<Rank> all = others(client);
    const std::vector<Rank> ahead = others(client, {arrival, client});
    Word reset_after = left(all);
    hold(client, arrival, ttl, its);
    if (members_.contains(client)) reset_after = std::max(reset_after, ttl);
    request(wait_line_enter, {0, client, arrival, ttl, its}, {.reset_after = reset_after}, ahead,
            all);
  }

  /// As many come as there are places, and some more.
  void crowd() {
    if (!life_.random.one_in(60)) return;
    Word client = 10;
    while (members_.size() < WaitLineRule::max_places) {
      enter(client++, draw_arrival(), WaitLineRule::max_ttl, draw_units());
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
    std::vector<Rank> ahead = others(client, {arrival, client});
    const Word enough = life_.random.one_in(2) ? 0 : granted_ + life_.random.between(0, 8);
    life_.tell("enough", enough);
    const Word own = draw_units();
    const Word its = draw_units();  // of the next caller
    const bool is_early = !ahead.empty() && granted_ + units(ahead) <= enough;
    if (is_early) life_.saw("enough for all");
    Predicted predicted{.allowed = ahead.empty() || is_early,
                        .retry_after = until_few(ahead, enough),
                        .reset_after = left(all)};
    if (predicted.allowed) {
      predicted.retry_after = 0;
      if (is_member || next != 0 || !all.empty()) granted_ += own;
      ahead = next == 0 ? all : others(client, {next, client});
      if (next == 0) {
        members_.erase(client);
        life_.saw(is_member ? "gave its place up" : "left no trace");
      } else {
        hold(client, next, ttl, its);
        if (members_.contains(client))
          predicted.reset_after = std::max(*predicted.reset_after, ttl);
        life_.saw("to the next caller");
      }
    } else {
      life_.saw("not its turn");
    }
    request(wait_line_turn, {0, client, arrival, ttl, own, next, its, enough}, predicted, ahead,
            all);
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
    request(wait_line_leave, {0, client, arrival}, {.reset_after = left(all)}, all, all);
  }

  void peek() {
    bury();
    const std::vector<Rank> all = others(0);
    request(wait_line_peek, {0}, {.reset_after = left(all)}, all, all);
  }

  Life& life_;
  std::map<Word, Member> members_;
  Word granted_ = 0;
};

}  // namespace

TEST_CASE("it is the turn of who came first of those that live, by a list of all who wait",
          "[model][wait_line]") {
  live<WaitLineModel>({.outcomes = {"died", "not its turn", "enough for all", "gave its place up",
                                    "left no trace", "to the next caller", "left", "had come again",
                                    "no place left", "took the place of the youngest"},
                       .patient_in = 0});
}
