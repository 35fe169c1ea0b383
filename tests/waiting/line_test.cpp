// The order of a queue against a naive list with fractions.
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "src/waiting/line.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

namespace {

using detail::Line;
using Place = Line::Place;

/// A fraction of 64 bits. The model draws weights that keep its denominators small.
struct Fraction {
  Word above = 0;
  Word below = 1;
  static Fraction of(Word above, Word below) {
    const Word common = std::gcd(above, below);
    return {above / common, below / common};
  }
  friend Fraction operator+(const Fraction& a, const Fraction& b) {
    return of(a.above * b.below + b.above * a.below, a.below * b.below);
  }
  friend Fraction operator-(const Fraction& a, const Fraction& b) {
    return a + Fraction{-b.above, b.below};
  }
  friend bool operator==(const Fraction&, const Fraction&) = default;
  friend bool operator<(const Fraction& a, const Fraction& b) {
    return a.above * b.below < b.above * a.below;
  }
};

/// All requests in one list, and each question answered by going through it.
class NaiveLine {
 public:
  struct Member {
    Place place;
    std::string flow;
    Word units = 1;
    Word certain = 1;
    bool is_taken = false;
    Fraction charge{};                // taken: to its flow
    Fraction end{};                   // ... in the time of its class
    std::vector<int> waited_above{};  // ... classes
    bool any_below = false;           // ... waited
  };

  void set_lower_share(int percent) { share_ = {percent, 100}; }
  void insert(const Line::Request& request) {
    const auto name = std::pair(request.place.priority, std::string(request.flow));
    const bool is_known = std::ranges::any_of(members, [&](const Member& member) {
      return member.place.priority == name.first && member.flow == name.second;
    });
    Fraction& begin = begins_[name];
    if (!is_known) begin = nows_[request.place.priority];
    if (!head_of(name)) begin = std::max(begin, nows_[request.place.priority]);
    weights_[name] = request.weight;
    members.push_back(
        {request.place, name.second, std::max<Word>(request.units, 1), request.certain});
  }
  void erase(const Place& place) {
    if (get(place).is_taken) put_back(place);
    std::erase_if(members, [&](const Member& member) { return member.place == place; });
    forget_unearned();
  }
  [[nodiscard]] std::optional<Place> first() {
    std::optional<Place> first;
    for (int priority = WaitOptions::lowest_priority; priority <= WaitOptions::highest_priority;
         ++priority) {
      const Member* const head = head_of_class(priority);
      if (head == nullptr) continue;
      if (first && !(earned_[priority] < price(get(*first).units))) continue;
      first = head->place;
    }
    return first;
  }
  void take_first() {
    Member& taken = get(*first());
    const auto name = std::pair(taken.place.priority, taken.flow);
    taken.any_below = waits_below(taken.place.priority);
    if (taken.any_below) {
      last_[name.first] = times(share_, taken.units);
      earned_[name.first] = earned_[name.first] + last_[name.first];
    }
    for (int above = name.first + 1; above <= WaitOptions::highest_priority; ++above) {
      if (head_of_class(above) == nullptr) continue;
      taken.waited_above.push_back(above);
      earned_[above] = std::min(earned_[above] - price(taken.units), last_[above]);
    }
    taken.charge = length(taken, name);
    taken.end = begins_[name] + taken.charge;
    begins_[name] = taken.end;
    taken.is_taken = true;
    forget_unearned();
  }
  void put_back(const Place& place) {
    Member& refused = get(place);
    const auto name = std::pair(refused.place.priority, refused.flow);
    begins_[name] = begins_[name] - refused.charge;
    if (refused.any_below) {
      earned_[name.first] =
          std::max(Fraction{}, earned_[name.first] - times(share_, refused.units));
    }
    for (const int above : std::exchange(refused.waited_above, {})) {
      earned_[above] = earned_[above] + price(refused.units);
    }
    refused.is_taken = false;
  }
  void grant(const Place& place) {
    const Member granted = get(place);
    Fraction& now = nows_[place.priority];
    now = std::max(now, granted.end);
    for (int above = place.priority + 1; above <= WaitOptions::highest_priority; ++above) {
      if (std::ranges::count(granted.waited_above, above) != 0) continue;
      earned_[above] = std::max(Fraction{}, earned_[above] - price(granted.units));
    }
    std::erase_if(members, [&](const Member& member) { return member.place == place; });
  }
  [[nodiscard]] std::optional<Place> oldest() const {
    std::optional<Place> best;
    for (const Member& member : members) {
      if (!member.is_taken && (!best || Line::is_behind(*best, member.place))) best = member.place;
    }
    return best;
  }
  /// In its flow.
  [[nodiscard]] Word units_before(const Place& place) {
    Word sum = 0;
    for (const Member& member : members) {
      if (is_of_flow(member, get(place)) && member.place.number < place.number) {
        sum += member.certain;
      }
    }
    return sum;
  }
  [[nodiscard]] bool is_last(const Place& place) {
    return std::ranges::none_of(members, [&](const Member& member) {
      return is_of_flow(member, get(place)) && member.place.number > place.number;
    });
  }
  [[nodiscard]] Member& get(const Place& place) {
    return *std::ranges::find(members, place, &Member::place);
  }

  std::vector<Member> members;

 private:
  using Name = std::pair<int, std::string>;

  static Fraction times(const Fraction& a, Word b) { return Fraction::of(a.above * b, a.below); }
  static bool is_of_flow(const Member& a, const Member& b) {
    return a.place.priority == b.place.priority && a.flow == b.flow;
  }
  [[nodiscard]] Fraction price(Word units) const { return times(Fraction{1, 1} - share_, units); }
  [[nodiscard]] Fraction length(const Member& member, const Name& name) {
    return Fraction::of(member.units, weights_[name]);
  }
  [[nodiscard]] const Member* head_of(const Name& name) const {
    const Member* head = nullptr;
    for (const Member& member : members) {
      if (member.is_taken || member.place.priority != name.first || member.flow != name.second) {
        continue;
      }
      if (head == nullptr || member.place.number < head->place.number) head = &member;
    }
    return head;
  }
  [[nodiscard]] const Member* head_of_class(int priority) {
    const Member* best = nullptr;
    Fraction best_end;
    for (const Member& member : members) {
      const Name name(member.place.priority, member.flow);
      if (name.first != priority || head_of(name) != &member) continue;
      const Fraction end = begins_[name] + length(member, name);
      const bool is_earlier = best == nullptr || end < best_end ||
                              (end == best_end && member.place.number < best->place.number);
      if (!is_earlier) continue;
      best = &member;
      best_end = end;
    }
    return best;
  }
  [[nodiscard]] bool waits_below(int priority) const {
    return std::ranges::any_of(members, [&](const Member& member) {
      return !member.is_taken && member.place.priority < priority;
    });
  }
  void forget_unearned() {
    for (auto& [priority, earned] : earned_) {
      if (!waits_below(priority)) earned = {};
    }
  }

  Fraction share_{};
  std::map<Name, Fraction> begins_;
  std::map<Name, Word> weights_;
  std::map<int, Fraction> nows_;
  std::map<int, Fraction> earned_;
  std::map<int, Fraction> last_;
};

/// A random program on both.
class Program {
 public:
  explicit Program(Random& random)
      : random_(random),
        classes_(random.between(1, 6)),
        flows_(random.between(1, 6)),
        most_units_(random.between(1, 9)) {
    const int share = static_cast<int>(random.between(0, 50));
    line_.set_lower_share(share);
    naive_.set_lower_share(share);
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      step();
      compare();
    }
    compare_order();
  }

 private:
  void step() {
    const auto choice = random_.below(10);
    const bool is_full = naive_.members.size() > 40;
    if (choice < 4 && !is_full) {
      insert();
    } else if (choice < 7 && taken_.size() < 16 && line_.first()) {
      const Place place = line_.take_first();
      CHECK(place == naive_.first());
      naive_.take_first();
      taken_.push_back(place);
    } else if (choice < 9 && !taken_.empty()) {
      end_one();
    } else if (!naive_.members.empty() && random_.one_in(3)) {
      const Place place = naive_.members[random_.below(naive_.members.size())].place;
      std::erase(taken_, place);
      line_.erase(place);
      naive_.erase(place);
    }
  }

  /// Calls that come from another queue are older than some that wait.
  void insert() {
    static constexpr std::array<Word, 4> weights{1, 2, 4, 8};
    number_ += 3;
    const std::uint64_t number = random_.one_in(5) && number_ > 30 ? number_ - 28 : number_;
    const int priority = static_cast<int>(random_.between(-3, classes_ - 4));
    if (!used_.insert(number).second) return;
    const std::string flow(1, static_cast<char>('a' + random_.between(0, flows_ - 1)));
    const Line::Request request{{priority, number},
                                flow,
                                weights[random_.below(weights.size())],
                                random_.between(0, most_units_),
                                random_.between(0, 3)};
    const bool would_be = line_.would_be_first(request);
    line_.insert(request);
    naive_.insert(request);
    CHECK(would_be == (naive_.first() == request.place));
  }

  void end_one() {
    const std::size_t index = random_.below(taken_.size());
    const Place place = taken_[index];
    taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(index));
    if (random_.one_in(2)) {
      line_.grant(place);
      naive_.grant(place);
    } else {
      line_.put_back(place);
      naive_.put_back(place);
    }
  }

  void compare() {
    REQUIRE(line_.first() == naive_.first());
    REQUIRE(line_.oldest() == naive_.oldest());
    std::size_t seen = 0;
    line_.find_in_flows([&](const Place& place, Word before) {
      ++seen;
      REQUIRE(before == naive_.units_before(place));
      const auto last = line_.units_before_last(place);
      REQUIRE(last.has_value() == naive_.is_last(place));
      if (last) REQUIRE(*last == before);
      return false;
    });
    REQUIRE(seen == naive_.members.size());
  }

  /// order() tells how each class is served until the line is empty.
  void compare_order() {
    const std::vector<Line::Turn> told = line_.order();
    REQUIRE(told.size() == naive_.members.size());
    std::map<int, std::vector<Place>> by_class;
    for (std::size_t i = 0; i < told.size(); ++i) {
      CHECK(told[i].before == naive_.units_before(told[i].place));
      const bool is_taken = naive_.get(told[i].place).is_taken;
      CHECK(is_taken == (i < taken_.size()));
      if (!is_taken) by_class[told[i].place.priority].push_back(told[i].place);
      const bool is_behind =
          i > taken_.size() && told[i - 1].place.priority < told[i].place.priority;
      CHECK_FALSE(is_behind);
    }
    std::map<int, std::vector<Place>> served;
    while (line_.first()) {
      const Place place = line_.take_first();
      line_.grant(place);
      served[place.priority].push_back(place);
    }
    CHECK(by_class == served);
  }

  Random& random_;
  Word classes_;
  Word flows_;
  Word most_units_;
  Line line_;
  NaiveLine naive_;
  std::vector<Place> taken_;
  std::set<std::uint64_t> used_;
  std::uint64_t number_ = 0;
};

/// Grants `count` requests of a line whose classes and flows always wait, and counts the units.
struct Busy {
  Line line;
  std::map<std::pair<int, std::string>, Word> units;
  std::uint64_t number = 0;

  void add(int priority, const std::string& flow, Word cost = 1, Word weight = 1) {
    line.insert({{priority, ++number}, flow, weight, cost});
    waiting[number] = {priority, flow, cost, weight};
  }
  void serve(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Place place = line.take_first();
      line.grant(place);
      const auto [priority, flow, cost, weight] = waiting.extract(place.number).mapped();
      units[{priority, flow}] += cost;
      add(priority, flow, cost, weight);
    }
  }
  std::map<std::uint64_t, std::tuple<int, std::string, Word, Word>> waiting;
};

}  // namespace

TEST_CASE("random programs: a line orders as a naive list with fractions", "[waiting][line]") {
  Random random("random programs: a line orders as a naive list with fractions");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(300); ++program) {
    INFO("program " << program);
    Program(random).run(200);
  }
}

TEST_CASE("random lines: order() tells how they are served, turns and wrapped times included",
          "[waiting][line]") {
  Random random(
      "random lines: order() tells how they are served, turns and wrapped times included");
  CAPTURE(random.repeat());
  constexpr Word most = Word{1} << 32;
  for (std::size_t program = 0; program < scaled(300); ++program) {
    INFO("program " << program);
    Line line;  // without a share of lower classes, the order is exact
    std::uint64_t number = 0;
    const auto insert = [&] {
      const Word units = random.one_in(2) ? most : static_cast<Word>(random.between(1, 9));
      line.insert({.place = {static_cast<int>(random.between(0, 2)), ++number},
                   .flow = std::string(1, static_cast<char>('a' + random.below(3))),
                   .weight = random.between(1, 3),
                   .units = units,
                   .keeps_turns = true,
                   .has_turn = random.one_in(4)});
    };
    for (int i = 0; i < 6; ++i) insert();
    for (std::uint64_t served = random.below(9'000); served > 0; --served) {
      line.grant(line.take_first());
      insert();
    }
    for (int i = 0; i < 8; ++i) insert();
    std::vector<Place> told;
    for (const Line::Turn& turn : line.order()) told.push_back(turn.place);
    std::vector<Place> served;
    while (line.first()) {
      served.push_back(line.take_first());
      line.grant(served.back());
    }
    CHECK(told == served);
  }
}

TEST_CASE("flows share in proportion to their weights, by units", "[waiting][line]") {
  Busy busy;
  busy.add(0, "small", 1);
  busy.add(0, "large", 50);
  busy.add(0, "heavy", 5, 3);
  busy.serve(10'000);
  const auto small = static_cast<double>(busy.units[{0, "small"}]);
  CHECK(static_cast<double>(busy.units[{0, "large"}]) / small == Approx(1).epsilon(0.02));
  CHECK(static_cast<double>(busy.units[{0, "heavy"}]) / small == Approx(3).epsilon(0.02));
}

TEST_CASE("each class leaves its share to all lower ones", "[waiting][line]") {
  Busy busy;
  busy.line.set_lower_share(20);
  busy.add(2, "", 5);
  busy.add(1, "", 1);
  busy.add(-3, "", 7);
  busy.serve(20'000);
  const Word all = busy.units[{2, ""}] + busy.units[{1, ""}] + busy.units[{-3, ""}];
  const auto share = [&](int priority) {
    return static_cast<double>(busy.units[{priority, ""}]) / static_cast<double>(all);
  };
  CHECK(share(2) == Approx(0.8).epsilon(0.02));
  CHECK(share(1) == Approx(0.16).epsilon(0.02));
  CHECK(share(-3) == Approx(0.04).epsilon(0.02));
}

}  // namespace sluice::test
