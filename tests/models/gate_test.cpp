// The model of gates: the list of all closures of each scope, and of all calls that passed since it
// closed last; calls ask for several scopes at once. Threading: single-threaded.
#include "sluice/limiters/gates.hpp"

#include <algorithm>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

/// One scope by definition.
class Gate {
 public:
  explicit Gate(const GateOptions& options) : options_(&options) {}

  [[nodiscard]] Time until() const {
    return closed_until_.empty() ? Time{} : *std::ranges::max_element(closed_until_);
  }
  /// When it was closed; of a gate that reopens that is no longer known.
  [[nodiscard]] Time decided() const { return passed_.empty() ? written_ : until(); }
  /// The clock was set back by so much that a closure counts from now, as it did when it was
  /// written, and one call passes.
  [[nodiscard]] bool is_given_up(Time now) const {
    return decided() > now + Span{GateRule::max_ahead};
  }
  /// From here on it is as if it had never been closed.
  [[nodiscard]] Time free_at(Time now) const {
    if (closed_until_.empty()) return now;
    return std::max(now, (is_given_up(now) ? renewed(now) : until()) + options_->ramp);
  }
  /// The first instant from `now` on at which a call may pass: it is where a condition changes.
  [[nodiscard]] Time first_pass(Time now) const {
    if (is_given_up(now)) return now;
    std::vector<Time> candidates{now, until(), free_at(now)};
    for (const Time before : passed_) candidates.push_back(before + options_->spacing);
    std::ranges::sort(candidates);
    return *std::ranges::find_if(candidates,
                                 [&](Time at) { return at >= now && lets_pass(at, now); });
  }

  /// Whether that changed anything.
  bool close(Time now, Span span) {
    const Time end = now + std::min(span, options_->cap);
    if (span <= 0us || (end <= until() && !is_given_up(now))) return false;
    renew(now);
    closed_until_.push_back(end);
    passed_.clear();  // another ramp will come
    written_ = now;
    return true;
  }
  /// Only what passes within a ramp counts. Whether it did.
  bool pass(Time now) {
    if (free_at(now) == now) return false;
    renew(now);
    if (now >= until()) passed_.push_back(now);
    return true;
  }

 private:
  [[nodiscard]] bool lets_pass(Time at, Time now) const {
    if (at >= free_at(now)) return true;
    return at >= until() && std::ranges::none_of(passed_, [&](Time before) {
             return before + options_->spacing > at;
           });
  }
  [[nodiscard]] Time renewed(Time now) const {
    return now + std::min(until() - decided(), options_->cap);
  }
  void renew(Time now) {
    if (!is_given_up(now)) return;
    closed_until_ = {renewed(now)};
    passed_.clear();
    written_ = now;
  }

  const GateOptions* options_;
  std::vector<Time> closed_until_;
  std::vector<Time> passed_;  // behind the last closure
  Time written_{};
};

class GateModel final : public Model {
 public:
  explicit GateModel(Life& life)
      : life_(life),
        options_(draw_options(life.random)),
        gates_(life.store, life.name, {"a", "b"}, options_) {
    scopes_.push_back(gates_.scope("a", "1"));
    if (!life.patient && life.random.one_in(2)) {
      scopes_.push_back(gates_.scope("a", "2"));
      scopes_.push_back(gates_.scope("b", "1"));
    }
    models_.assign(scopes_.size(), Gate(options_));
  }

  std::vector<Verb> verbs() override {
    return {{"pass", 12, [this] { ask(true); }},
            {"peek", 4, [this] { ask(false); }, true},
            {"close", 3, [this] { close(); }, true},
            {"open", 1, [this] { open(); }, true}};
  }
  Moves moves() const override {
    return {options_.ramp / 4, options_.cap, life_.draw_back(options_.ramp)};
  }
  std::optional<Time> edge() const override {
    return models_[0].decided() - Span{GateRule::max_ahead};
  }
  Callers callers() const override { return {1, 2 * options_.spacing + options_.ramp / 10}; }
  Decision ask(Word) override { return ask(true); }

  /// Nothing passes a closed gate; within the ramp calls pass one by one.
  void judge(const History& history) override {
    if (!life_.patient) return;
    life_.keep(check_remaining(history, 1));
    const Time until = models_[0].until();
    if (until == Time{}) return;
    History early;
    std::ranges::copy_if(history, std::back_inserter(early),
                         [&](const Event& e) { return e.at < until + options_.ramp; });
    life_.keep(check_aligned(early, std::vector<Time>{until, until + options_.ramp}, word_limit));
    life_.keep(check_gaps(early, options_.spacing));
  }

 private:
  static GateOptions draw_options(Random& random) {
    const Word most = random.one_in(2) ? 1'000 : 100'000'000;
    GateOptions options;
    options.cap = Span{random.between(1, most)};
    options.ramp = Span{random.one_in(5) ? 0 : random.between(0, most / 5)};
    options.spacing = options.ramp / random.between(1, random.one_in(3) ? 2 : 30);
    if (random.one_in(6)) options.spacing = 0us;
    return options;
  }

  /// What one scope alone answers, and what becomes of it.
  Predicted answer(Gate& gate, bool passes) const {
    const Time now = life_.now();
    const Time due = gate.first_pass(now);
    Predicted predicted{.allowed = due == now,
                        .remaining = due == now ? 1 : 0,
                        .retry_after = (due - now).count(),
                        .reset_after = (gate.free_at(now) - now).count()};
    if (!predicted.allowed || !passes) return predicted;
    gate.pass(now);
    if (gate.first_pass(now) > now) predicted.remaining = 0;
    return predicted;
  }

  /// All or none: one refusal refuses the call, and the longest of the waits counts.
  Decision ask(bool passes) {
    const std::size_t first = life_.random.below(scopes_.size());
    const std::size_t count = 1 + life_.random.below(scopes_.size() - first);
    life_.tell("first scope", static_cast<Word>(first));
    life_.tell("scopes", static_cast<Word>(count));
    std::vector<Gate> after(models_.begin() + static_cast<std::ptrdiff_t>(first),
                            models_.begin() + static_cast<std::ptrdiff_t>(first + count));
    std::vector<Predicted> answers;
    for (Gate& gate : after) answers.push_back(answer(gate, passes));

    const std::span<const Scope> asked(&scopes_[first], count);
    const Decision d = passes ? gates_.pass(asked) : gates_.peek(asked);
    if (passes) life_.note(d, 1);
    const Word longest = std::ranges::max(answers, {}, &Predicted::retry_after).retry_after;
    const Word least = std::ranges::min(answers, {}, &Predicted::remaining).remaining;
    REQUIRE(d.step < count);
    const Predicted decisive = answers[d.step];
    life_.require(d, decisive);
    REQUIRE(decisive.retry_after == longest);
    if (longest == 0) REQUIRE(decisive.remaining == least);
    saw(decisive, first + d.step, count);
    if (!d.allowed || !passes) return d;
    for (std::size_t i = 0; i < count; ++i) {
      Gate& gate = models_[first + i];
      const bool given_up = gate.is_given_up(life_.now());
      if (!gate.pass(life_.now())) continue;
      wrote();
      life_.saw(given_up ? "passed, clock set back" : "passed in the ramp");
    }
    return d;
  }

  void saw(const Predicted& decisive, std::size_t scope, std::size_t count) const {
    if (decisive.allowed) return;
    life_.saw(life_.now() < models_[scope].until() ? "refused while closed"
                                                   : "refused in the ramp");
    if (count > 1) life_.saw("refused as one of several");
  }

  std::size_t draw_scope() {
    const std::size_t scope = life_.random.below(scopes_.size());
    life_.tell("scope", static_cast<Word>(scope));
    return scope;
  }

  void close() {
    const std::size_t scope = draw_scope();
    const Word most = options_.cap.count();
    Span span{life_.random.between(-5, life_.random.one_in(2) ? most / 10 : 2 * most)};
    if (life_.random.one_in(6)) span = std::max(span, models_[scope].until() - life_.now());
    life_.tell("span", span.count());
    if (life_.patient) life_.begin_history();
    Decision d;
    if (span > options_.cap && life_.random.one_in(2)) {  // the rule caps it as well
      Step step = gates_.close_step(scopes_[scope], span);
      step.args[4] = span.count();
      d = decide(life_.store, step);
    } else {
      d = gates_.close(scopes_[scope], span);
    }
    const Time before = models_[scope].free_at(life_.now());
    const bool closed = models_[scope].close(life_.now(), span);
    if (closed) wrote();
    const bool longer = models_[scope].free_at(life_.now()) > before;
    life_.saw(!closed ? "not closed" : longer ? "closed" : "closed anew, for no longer");
    life_.require(d, answer_to_close(models_[scope]));
  }
  [[nodiscard]] Predicted answer_to_close(Gate gate) const {
    Predicted predicted = answer(gate, false);
    predicted.allowed = true;
    predicted.retry_after = 0;
    return predicted;
  }

  void open() {
    const std::size_t scope = draw_scope();
    if (!life_.random.one_in(5)) return;
    if (life_.patient) life_.begin_history();
    gates_.open(scopes_[scope]);
    models_[scope] = Gate(options_);
  }

  /// Of several scopes some would have expired in some store when the clock is set back far.
  void wrote() {
    if (scopes_.size() == 1) life_.wrote();
  }

  Life& life_;
  const GateOptions options_;
  const Gates gates_;
  std::vector<Scope> scopes_;
  std::vector<Gate> models_;
};

}  // namespace

TEST_CASE("a call passes if the lists of closures and passes of all its scopes let it",
          "[model][gate][S4][S5][L1][C-080][C-089]") {
  live<GateModel>(
      {.outcomes = {"admitted", "refused", "refused while closed", "refused in the ramp",
                    "refused as one of several", "passed in the ramp", "passed, clock set back",
                    "closed", "not closed", "closed anew, for no longer"}});
}
