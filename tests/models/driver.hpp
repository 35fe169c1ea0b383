// The random driver of the models. A model states one rule by brute force; the driver lives many
// lives of it on every store in virtual time: it draws verbs, moves the clock, records what
// callers saw, and requires that every outcome that the model names occurs.
// Threading: one thread.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/store.hpp"
#include "sluice/testing/invariants.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

namespace sluice::test {

/// One way in which a model acts on its key.
struct Verb {
  const char* name;
  unsigned weight;
  std::function<void()> run;
  /// Also in patient lives: refused callers keep what they were promised, or the verb says that
  /// they do not by Life::changed().
  bool patient = false;
};

/// How far the clock moves between two verbs.
struct Moves {
  Span step;                   ///< usually up to so much
  Span pause;                  ///< now and then up to so much
  Span back{0};                ///< now and then set back by up to so much; 0: never
  std::uint64_t back_in = 25;  ///< one in so many moves, about
};

/// The callers of a patient life: each asks, waits as it is advised, sometimes asks 1 us too early,
/// and after a grant thinks for up to `most_thought` before it asks again.
struct Callers {
  Word most_cost = 1;
  Span most_thought{0};
  std::size_t count = 6;
};

/// What a model predicts of an answer; times in microseconds.
struct Predicted {
  bool allowed = true;
  Word remaining = 0;
  Word retry_after = 0;
  std::optional<Word> reset_after{};  ///< unless it is left open
};

class Life;

/// One rule: limiters of one key that are drawn at random, and the definition beside them. Derived
/// classes are made with a Life, which they keep.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Read once a life.
  [[nodiscard]] virtual std::vector<Verb> verbs() = 0;
  [[nodiscard]] virtual Moves moves() const = 0;
  /// The earliest instant at which the rule lets the key's state stand, if the clock is set back
  /// there.
  [[nodiscard]] virtual std::optional<Time> edge() const { return {}; }
  /// What no history may break: asserts by Life::keep(). Called before a history ends by
  /// Life::begin_history(), and at the end of the life.
  virtual void judge(const testing::History& history) = 0;

  /// For models with patient lives.
  [[nodiscard]] virtual Callers callers() const { return {}; }
  /// One request of a patient caller, predicted and noted as any other.
  virtual Decision ask(Word cost);
};

/// The world of one life, and what is recorded of it.
class Life {
 public:
  Life(Store& store, VirtualClock& clock, Random& random, std::string name, bool patient);

  Store& store;
  VirtualClock& clock;
  Random& random;
  const std::string name;  ///< of the limiters: no other life has it
  const bool patient;      ///< callers wait as advised; models then draw one limiter

  [[nodiscard]] Time now() const { return clock.now(); }
  [[nodiscard]] Word tick() const { return to_word(clock.now()); }

  /// Adds to the text of the present event, for the report of a failure.
  void tell(const char* what, Word value);
  /// Draws one of them, and tells which.
  template <class T>
  [[nodiscard]] T& draw(const char* what, std::vector<T>& all) {
    const std::size_t which = random.below(all.size());
    tell(what, static_cast<Word>(which));
    return all[which];
  }
  /// Draws one of the last six; null if there is none.
  template <class T>
  [[nodiscard]] T* draw_recent(std::vector<T>& all) {
    if (all.empty()) return nullptr;
    return &all[all.size() - 1 - random.below(std::min<std::size_t>(all.size(), 6))];
  }
  /// Requires that the decision is the one predicted, made now. Its hints become instants that the
  /// clock is moved to.
  void require(const Decision& decision, const Predicted& predicted);
  /// The clock is to be moved to this instant, or to 1 us before it.
  void due(Time at);
  /// The key's state was written now.
  void wrote() { wrote_ = now(); }
  /// So was a part of it. Some store may have let the rest expire before.
  void wrote_part() {
    if (high_ < wrote_ + Span{Operation::clock_slack}) wrote();
  }
  /// How far the clock may be set back without meeting a state that some store has let expire: to
  /// Operation::clock_slack before its latest time, and further soon after a state was written.
  [[nodiscard]] Span farthest_back() const;
  /// The same, in half of the draws no further than `near`.
  [[nodiscard]] Span draw_back(Span near) const;
  /// An outcome occurred; see Course::outcomes.
  void saw(std::string_view outcome, std::size_t times = 1);
  /// Requires that an invariant was kept.
  void keep(const testing::Checked& checked) const;

  /// Notes a request for the checkers. Counts "admitted", "reserved" (a grant that lies ahead) or
  /// "refused".
  void note(const Decision& decision, Word cost);
  /// Something else changed what refused callers were promised.
  void changed();
  /// Grants and refusals so far are judged, and forgotten: the key was reset, or the clock set
  /// back.
  void begin_history();

 private:
  friend class Driver;

  struct Noted {
    Word at;
    const char* verb;
    std::vector<std::pair<const char*, Word>> values;
    std::optional<Decision> answer;
  };

  void begin(const char* verb);
  void move(const Moves& moves);
  /// Sets the clock back to the edge of what the rule lets stand, or to 1 us before it, if that is
  /// not too far.
  void correct_clock(Time edge);
  [[nodiscard]] std::string last_events() const;

  Model* model_ = nullptr;
  std::map<std::string, std::size_t, std::less<>>* seen_ = nullptr;
  std::deque<Noted> events_;
  std::deque<Time> due_;
  Time high_{};  // the latest time at which anything was done
  Time wrote_{};
  Span set_back_by_{0};
  std::uint64_t lingers_ = 0;  // moves that are small, since the clock was set back
  testing::History history_;
  std::size_t caller_ = 0;
};

/// How much a test lives.
struct Course {
  /// Each must occur on every store: names that the model passes to Life::saw() (Life::note() does
  /// as well). Besides, a patient caller must prove a hint by coming 1 us before it or at it, and
  /// the clock be set back as the model's moves() and edge() say.
  std::vector<const char*> outcomes;
  std::size_t lives = 100;       ///< on a store in this process, times SLUICE_TEST_SCALE
  std::size_t redis_lives = 12;  ///< on Redis, likewise
  std::size_t steps = 150;       ///< verbs in a life
  std::uint64_t patient_in = 4;  ///< one in so many lives is of patient callers; 0: none
};

using MakeModel = std::function<std::unique_ptr<Model>(Life&)>;

/// Lives, as the test case that runs. A store on which some outcome or verb did not occur is given
/// up to 100 times as many lives, then the test fails.
void live(const Course& course, const MakeModel& make);

template <class M>
void live(const Course& course) {
  live(course, [](Life& life) { return std::make_unique<M>(life); });
}

}  // namespace sluice::test
