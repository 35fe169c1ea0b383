// The driver of the models. Verbs are drawn by weight; patient callers keep an agenda, a heap of
// instants, on which those at the same instant come in the order in which they were put down.
#include "tests/models/driver.hpp"
#include "sluice/extend/operation.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <sstream>

namespace sluice::test {
namespace {

constexpr std::size_t events_told = 25;
constexpr std::size_t dues_kept = 4;

struct Appointment {
  Time at;
  std::size_t serial;
  std::size_t caller;
  friend bool operator>(const Appointment& a, const Appointment& b) {
    return a.at != b.at ? a.at > b.at : a.serial > b.serial;
  }
};

/// Short thoughts as often as long ones.
Span think(Random& random, Span most) {
  return most <= Span{0} || random.one_in(3) ? Span{0} : Span{random.between(0, most.count())};
}

/// When a refused caller asks again: at its hint, or 1 us before it, or at any time before.
Time next_try(Random& random, const Decision& refusal) {
  const Time due = refusal.at + refusal.retry_after;
  if (random.one_in(4)) return due - Span{1};
  if (random.one_in(8)) return refusal.at + Span{random.between(0, refusal.retry_after.count())};
  return due;
}

const Verb& draw(Random& random, const std::vector<Verb>& verbs) {
  const auto add = [](std::uint64_t sum, const Verb& verb) { return sum + verb.weight; };
  std::uint64_t left = random.below(std::accumulate(verbs.begin(), verbs.end(), 0ULL, add));
  auto verb = verbs.begin();
  for (; left >= verb->weight; ++verb) left -= verb->weight;
  return *verb;
}

}  // namespace

Decision Model::ask(Word) {
  FAIL("the model has no patient callers");
  return {};
}

Life::Life(Store& store_, VirtualClock& clock_, Random& random_, std::string name_, bool patient_)
    : store(store_), clock(clock_), random(random_), name(std::move(name_)), patient(patient_) {}

void Life::tell(const char* what, Word value) { events_.back().values.emplace_back(what, value); }

void Life::require(const Decision& decision, const Predicted& predicted) {
  events_.back().answer = decision;
  const bool same =
      decision.allowed == predicted.allowed && decision.remaining == predicted.remaining &&
      decision.retry_after.count() == predicted.retry_after &&
      decision.reset_after.count() == predicted.reset_after.value_or(decision.reset_after.count());
  if (!same) {
    FAIL("predicted: " << (predicted.allowed ? "allowed" : "refused") << ", remaining "
                       << predicted.remaining << ", retry_after " << predicted.retry_after
                       << " us, reset_after "
                       << (predicted.reset_after ? std::to_string(*predicted.reset_after) : "any")
                       << " us; answered: " << to_string(decision));
  }
  REQUIRE(decision.at == now());
  if (decision.retry_after > Span{0}) due(decision.at + decision.retry_after);
  if (decision.reset_after > Span{0} && random.one_in(4)) due(decision.at + decision.reset_after);
}

Span Life::farthest_back() const {
  constexpr Span slack{Operation::clock_slack};
  return high_ < wrote_ + slack ? 3 * slack : std::max(Span{0}, slack - (high_ - now()));
}

Span Life::draw_back(Span near) const {
  return random.one_in(2) ? farthest_back() : std::min(farthest_back(), near);
}

void Life::correct_clock(Time edge) {
  const Time to = edge - Span{random.one_in(2) ? 1 : 0};
  if (to >= now() || to < now() - farthest_back()) return;
  begin("the clock is corrected to the edge");
  begin_history();
  clock.set(to);
  saw("corrected to the edge");
}

void Life::due(Time at) {
  if (due_.size() == dues_kept) due_.pop_front();
  due_.push_back(at);
}

void Life::saw(std::string_view outcome, std::size_t times) {
  const auto found = seen_->find(outcome);
  (found != seen_->end() ? found->second : (*seen_)[std::string(outcome)]) += times;
}

void Life::keep(const testing::Checked& checked) const {
  if (checked) FAIL(checked->what);
}

void Life::note(const Decision& decision, Word cost) {
  history_.push_back(testing::note(decision, cost, caller_));
  saw(!decision.allowed ? "refused" : decision.retry_after > Span{0} ? "reserved" : "admitted");
}

void Life::changed() { history_.push_back({.at = now(), .cost = 0, .allowed = true}); }

void Life::begin_history() {
  if (patient) {
    std::size_t proven = 0;
    keep(testing::check_hints(history_, &proven));
    if (proven > 0) saw("hint proven", proven);
  }
  model_->judge(history_);
  history_.clear();
}

void Life::begin(const char* verb) {
  high_ = std::max(high_, now());
  if (events_.size() == events_told) events_.pop_front();
  events_.push_back({tick(), verb, {}, {}});
}

/// Instants that were hinted at, to the tick, as often as any others. A clock that was set back
/// lingers there.
void Life::move(const Moves& moves) {
  if (random.one_in(3)) return;
  if (lingers_ > 0) {
    --lingers_;
    clock.advance(Span{random.between(0, set_back_by_.count() / 8)});
  } else if (!due_.empty() && random.one_in(2)) {
    const Time at = due_[random.below(due_.size())] - Span{random.one_in(2) ? 1 : 0};
    if (at > now()) clock.set(at);
  } else if (random.one_in(20)) {
    clock.advance(Span{random.between(0, moves.pause.count())});
  } else if (random.one_in(40)) {  // stores may drop what means nothing any more
    clock.advance(Span{random.between(Operation::clock_slack, 2 * Operation::clock_slack) +
                       random.between(0, 2 * moves.pause.count())});
    saw("time for keys to expire");
  } else if (moves.back > Span{0} && random.one_in(moves.back_in)) {
    set_back_by_ = Span{random.between(1, moves.back.count())};
    lingers_ = random.below(10);
    clock.advance(-set_back_by_);
    begin("the clock is set back");
    begin_history();
    saw("set back");
  } else {
    clock.advance(Span{random.between(0, moves.step.count())});
  }
}

std::string Life::last_events() const {
  std::ostringstream text;
  text << "the last events of " << name << (patient ? ", patient callers" : "") << ":\n";
  Word before = events_.empty() ? 0 : events_.front().at;
  for (const Noted& event : events_) {
    text << "  " << (event.at < before ? "" : "+") << event.at - before << " us  " << event.verb;
    for (const auto& [what, value] : event.values) text << ", " << what << ' ' << value;
    if (event.answer) text << " -> " << to_string(*event.answer);
    text << '\n';
    before = event.at;
  }
  return text.str();
}

/// One test: its lives on one store after the other.
class Driver {
 public:
  Driver(const Course& course, const MakeModel& make)
      : random_(Catch::getResultCapture().getCurrentTestName()), course_(course), make_(make) {}

  void run() {
    CAPTURE(random_.repeat());
    // Where Redis is chosen, the other stores live in an entry of their own.
    if (chosen_stores() != Stores::redis_and_virtual) live_on(Stores::local, course_.lives);
    live_on(Stores::redis, course_.redis_lives);
  }

 private:
  /// Each store has room for so many keys.
  static constexpr std::size_t most_lives = 4'000;

  void live_on(Stores stores, std::size_t count) {
    std::size_t left = scaled(count, 4);
    while (left > 0) {
      const std::size_t lives = std::min(left, most_lives);
      for_each_store([&](Store& store, VirtualClock& clock) { live_all(store, clock, lives); },
                     stores);
      left -= lives;
    }
  }
  void live_all(Store& store, VirtualClock& clock, std::size_t lives) {
    seen_.clear();
    for (std::size_t i = 0; i < lives || (!missing().empty() && i < 100 * lives); ++i) {
      clock.set(VirtualClock::default_start + Span{random_.between(0, 1'000'000'000)});
      const bool patient = course_.patient_in > 0 && random_.one_in(course_.patient_in);
      Life life(store, clock, random_, "life" + std::to_string(i), patient);
      life.seen_ = &seen_;
      try {
        life.begin("begins");
        const std::unique_ptr<Model> model = make_(life);
        life.model_ = model.get();
        for (const Verb& verb : model->verbs()) must_see(verb.name);
        if (patient) must_see("hint proven");
        patient ? live_patiently(life, *model) : live_at_will(life, *model);
        life.begin_history();
      } catch (...) {
        WARN(life.last_events());
        throw;
      }
    }
    INFO("never seen: " << missing());
    CHECK(missing().empty());
  }

  void must_see(const char* what) { seen_.try_emplace(what, 0); }

  void act(Life& life, const Verb& verb) {
    life.begin(verb.name);
    verb.run();
    life.saw(verb.name);
  }

  void live_at_will(Life& life, Model& model) {
    const std::vector<Verb> verbs = model.verbs();
    for (std::size_t step = 0; step < course_.steps; ++step) {
      act(life, draw(random_, verbs));
      const Moves moves = model.moves();
      if (moves.back > Span{0}) must_see("set back");
      life.move(moves);
      const std::optional<Time> edge = random_.one_in(25) ? model.edge() : std::nullopt;
      if (!edge) continue;
      must_see("corrected to the edge");
      life.correct_clock(*edge);
    }
  }

  void live_patiently(Life& life, Model& model) {
    std::vector<Verb> verbs = model.verbs();
    std::erase_if(verbs, [](const Verb& verb) { return !verb.patient; });
    const Callers callers = model.callers();
    std::priority_queue<Appointment, std::vector<Appointment>, std::greater<>> agenda;
    std::vector<Word> costs;
    std::size_t serial = 0;
    const auto think_now = [&] { return life.now() + think(random_, callers.most_thought); };
    for (std::size_t caller = 0; caller < callers.count; ++caller) {
      agenda.push({think_now(), serial++, caller});
      costs.push_back(random_.between(1, callers.most_cost));
    }
    for (std::size_t step = 0; step < course_.steps; ++step) {
      const Appointment next = agenda.top();
      agenda.pop();
      life.clock.set(next.at);
      if (!verbs.empty() && random_.one_in(4)) act(life, draw(random_, verbs));
      life.begin("a patient caller asks");
      life.caller_ = next.caller;
      Word& cost = costs[next.caller];
      const Decision decision = model.ask(cost);
      if (decision.allowed) cost = random_.between(1, callers.most_cost);
      agenda.push(
          {decision.allowed ? think_now() : next_try(random_, decision), serial++, next.caller});
    }
  }

  /// Outcomes and verbs that have not occurred yet.
  [[nodiscard]] std::string missing() const {
    std::string names;
    for (const auto& [name, count] : seen_) names += count > 0 ? "" : " \"" + name + '"';
    for (const char* name : course_.outcomes) {
      if (!seen_.contains(name)) names += " \"" + std::string(name) + '"';
    }
    return names;
  }

  Random random_;
  const Course& course_;
  const MakeModel& make_;
  std::map<std::string, std::size_t, std::less<>> seen_;
};

void live(const Course& course, const MakeModel& make) { Driver(course, make).run(); }

}  // namespace sluice::test
