// The model of a PrefetchStore. Random programs of a few processes that share one limit, over wires
// whose calls are decided, answered, lost and reordered at random, with blocks, resets, clocks set
// back, cancellations and ends of processes at every point. The rules below judge all answers; they
// know what was asked, what the store behind told each process and when, and nothing of how a
// PrefetchStore works. Threading: single-threaded.
#include "tests/prefetch/model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/testing/invariants.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace prefetch_model;

namespace {

class World {
 public:
  World(Random& random, const Terms& terms, std::size_t count) : random_(random), terms_(terms) {
    Limit(*server_, terms_).configure();
    for (std::size_t i = 0; i < count; ++i) {
      processes_.push_back(std::make_unique<Process>(*server_, terms_));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      judge_most();
      check();
    }
    conclude();
    check();
  }
  std::map<std::string, std::size_t> seen;

 private:
  Time now() const { return clock_.now(); }
  std::uint64_t tick() { return ++order_; }
  static Word window_of(Time at) { return to_word(at) / window_span.count(); }
  std::size_t draw_process() {
    return static_cast<std::size_t>(random_.between(0, std::ssize(processes_) - 1));
  }
  /// Remembered, because answers come where nothing may throw.
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.empty()) broken_ = what;
  }
  void check() {
    if (broken_.empty()) return;
    CAPTURE(static_cast<int>(terms_.kind), terms_.limit, terms_.per_second, terms_.hold.count(),
            terms_.most, terms_.changes, terms_.faults, processes_.size(), order_);
    FAIL(broken_);
  }

  // What the program does.
  void act() {
    const auto draw = random_.between(0, 99);
    const std::size_t who = draw_process();
    if (draw < 35) return ask(who);
    if (draw < 41) return is_bucket(terms_.kind) ? reserve(who) : ask(who);
    if (draw < 47) return plan(who);
    if (draw < 51) return refund();
    if (draw < 54) return terms_.changes ? change(who) : ask(who);
    if (draw < 80) return serve(who);
    if (draw < 98 || !terms_.faults) return move();
    if (random_.one_in(3)) return end(who);
    set_back();
  }
  Call& begin(Verb verb, std::size_t who, Word cost) {
    calls_.push_back(std::make_unique<Call>(Call{verb, who, cost, tick(), now()}));
    calls_.back()->number = calls_.size() - 1;
    ++processes_[who]->open;
    processes_[who]->wire.mark = static_cast<int>(calls_.size());
    return *calls_.back();
  }
  void send(Call& call, const Plan& plan, std::size_t who) {
    decide_then(*processes_[who]->store, plan,
                [this, &call](const Outcome& outcome) { answered(call, outcome); });
    processes_[who]->wire.mark = 0;  // trips from now on are of no call
    if (random_.one_in(3)) return;
    serve_all(who);
  }
  Word draw_cost() {
    return random_.one_in(4) ? random_.between(1, std::min<Word>(5, terms_.limit)) : 1;
  }
  void ask(std::size_t who) {
    for (auto left = random_.one_in(5) ? random_.between(1, 30) : 1; left > 0; --left) {
      Call& call = begin(Verb::ask, who, draw_cost());
      const Step step = processes_[who]->limit->acquire(call.cost);
      Plan plan(step);
      if (random_.one_in(12)) plan = plan.within(1s);
      if (random_.one_in(40)) plan = plan.idempotent({1, order_});
      if (random_.one_in(40)) plan = plan.cancelled_by(source_.get_token());
      send(call, plan, who);
    }
  }
  void reserve(std::size_t who) {
    Call& call = begin(Verb::reserve, who, draw_cost());
    call.span = random_.one_in(2) ? Span{0} : Span{random_.between(0, 2 * terms_.hold.count())};
    call.step = processes_[who]->limit->reserve(call.cost, call.span);
    const Step step = *call.step;
    send(call, step, who);
  }
  void plan(std::size_t who) {
    Call& call = begin(Verb::plan, who, draw_cost());
    processes_[who]->plans = true;
    const std::array steps{processes_[who]->limit->acquire(call.cost),
                           processes_[who]->log->acquire_step(key, random_.one_in(3) ? 65536 : 0)};
    send(call, steps, who);
  }
  void refund() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i]->refundable) open.push_back(i);
    }
    if (open.empty()) return;
    const std::size_t index =
        open[static_cast<std::size_t>(random_.between(0, std::ssize(open) - 1))];
    Call& of = *calls_[index];
    of.refundable = false;
    Call& call = begin(Verb::refund, of.process, of.cost);
    call.of = index;
    const Step step = processes_[of.process]->limit->refund(*of.step, of.output);
    send(call, step, of.process);
  }
  void change(std::size_t who) {
    if (random_.one_in(3)) plan(who);  // which may be answered after the change
    const auto draw = random_.between(0, 2);
    Call& call = begin(draw == 0   ? Verb::block
                       : draw == 1 ? Verb::reset
                                   : Verb::reward,
                       who, draw == 2 ? random_.between(1, 5) : 0);
    call.span = Span{random_.between(1, 2'000'000)};
    const Limit& limit = *processes_[who]->limit;
    if (call.verb == Verb::reset) added_ += terms_.limit;
    if (call.verb == Verb::reward) added_ += call.cost;
    const Step step = call.verb == Verb::block   ? limit.block(call.span)
                      : call.verb == Verb::reset ? limit.reset()
                                                 : limit.reward(call.cost);
    send(call, step, who);
  }
  void move() {
    const auto draw = random_.between(0, 9);
    Word span = random_.between(0, 20'000);
    if (draw == 0) span = random_.between(0, 2 * terms_.hold.count());
    if (draw == 1) {
      const Word into = to_word(now()) % window_span.count();
      span = std::max<Word>(0, window_span.count() - into - random_.between(0, 1));
    }
    clock_.advance(Span{span});
    if (random_.one_in(2)) serve_all(draw_process());
  }
  void set_back() {
    clock_.advance(-Span{random_.between(1, 3'000'000)});
    set_back_ = true;
    set_back_at_ = tick();
    ++seen["set back"];
    history_.clear();
    for (auto& call : calls_) call->noted = 0;
    for (auto& process : processes_) {
      // Whoever has not looked at the clock in between cannot know: no time is judged.
      for (Granted& one : process->granted) one.until = Time::max();
      process->blocked_from = 0;
    }
  }
  void end(std::size_t who) {
    Process& process = *processes_[who];
    process.limit.reset();
    process.log.reset();
    process.store.reset();
    serve_all(who);  // calls that were passed on, which the store decides all the same
    for (const auto& call : calls_) {
      require(call->process != who || call->answers == 1, "a call is not answered at the end");
      if (call->process == who) call->refundable = false;
    }
    // A new process, whose numbers begin anew.
    old_.push_back(std::exchange(processes_[who], std::make_unique<Process>(*server_, terms_)));
    ++seen["ended"];
  }

  // What the wires do.
  void serve(std::size_t who) {
    Process& process = *processes_[who];
    if (process.wire.pending() == 0) return;
    const auto index =
        static_cast<std::size_t>(random_.between(0, static_cast<Word>(process.wire.pending()) - 1));
    if (terms_.faults && random_.one_in(12)) {
      ++seen["lost"];
      return process.wire.fail(index, random_.one_in(2) ? Errc::unknown : Errc::not_connected);
    }
    if (!process.wire.is_decided(index)) return decide(process, index);
    deliver(process, index);
  }
  void serve_all(std::size_t who) {
    Process& process = *processes_[who];
    const bool latest_first = random_.one_in(3);
    while (process.wire.pending() > 0) {
      const std::size_t index = latest_first ? process.wire.pending() - 1 : 0;
      if (!process.wire.is_decided(index)) decide(process, index);
      deliver(process, index);
    }
  }
  void decide(Process& process, std::size_t index) {
    process.wire.decide(index);
    const auto mark = static_cast<std::size_t>(process.wire.mark_of(index));
    decided_[&process][index_of(process, index)] = tick();
    const Operation* const row = process.wire.plan(index).steps()[0].operation;
    // A block ends with a reservation that was made behind it, whoever gives that back.
    if (row == &token_bucket_refund || row == &shared_token_bucket_refund) end_blocks();
    if (mark == 0) return;
    Call& call = *calls_[mark - 1];
    call.decided = order_;
    // A reward of a bucket brings the end of a block nearer.
    if (call.verb == Verb::reset || call.verb == Verb::reward) end_blocks();
  }
  static const void* index_of(Process& process, std::size_t index) {
    return &process.wire.outcome(index);
  }
  /// The answer arrives at the PrefetchStore; what it tells is noted before.
  void deliver(Process& process, std::size_t index) {
    const Outcome& outcome = process.wire.outcome(index);
    const Step& step = process.wire.plan(index).steps()[0];
    const std::uint64_t decided = decided_[&process][index_of(process, index)];
    const Operation& row = *step.operation;
    const bool asks = row.kind != StateKind::sliding_window &&
                      row.grants != Operation::Grants::nothing && &row != &token_bucket_acquire &&
                      &row != &shared_token_bucket_acquire;  // those are calls passed on
    const Decision& d = outcome.decision;
    if (asks && !outcome.error && !d.allowed) {
      process.refused.push_back({now(), decided, d.remaining});
    }
    if (asks && !outcome.error && d.allowed && decided > process.cleared) {
      const Word units = is_bucket(terms_.kind)
                             ? outcome.output[0]
                             : step.args[row.arguments.find(Argument::Role::cost)->index];
      const Time until = process.wire.asked_at(index) + d.retry_after + terms_.hold;
      std::erase_if(process.granted, [&](const Granted& one) { return one.until < now() - 3s; });
      process.granted.push_back({units, d.at + d.retry_after, until, window_of(d.at), tick()});
      is_told_ = true;
    }
    process.wire.deliver(index);
    is_told_ = false;
  }

  // The rules.
  void answered(Call& call, const Outcome& outcome) {
    ++call.answers;
    require(call.answers == 1, "a call is answered twice");
    Process& process = *processes_[call.process];
    --process.open;
    const Decision& d = outcome.decision;
    if (outcome.error || !d.allowed) process.left = std::max(process.left, call.cost - 1);
    if (outcome.error) {
      ++seen["error"];
      require(outcome.error == Errc::unknown || outcome.error == Errc::not_connected,
              "an error that nothing explains");
      if (call.verb == Verb::plan) process.unsure += call.cost;
      return;
    }
    switch (call.verb) {
      case Verb::ask:
      case Verb::reserve:
        return judge(call, process, d, outcome);
      case Verb::plan:
        return judge(call, process, outcome.steps[0], outcome);
      case Verb::refund:
        return refunded(call, process, outcome);
      default:
        return changed(call, process, d);
    }
  }

  void judge(Call& call, Process& process, Decision d, const Outcome& outcome) {
    if (!outcome.decision.allowed) return judge_refusal(call, process, outcome.decision);
    const bool here = d.source == Source::prefetched;
    ++seen[here ? "allowed here" : "allowed by the store"];
    if (call.verb == Verb::plan) ++seen[here ? "plan here" : "plan passed"];
    require(d.allowed, "an allowed plan has a refused step");
    require(terms_.kind == Kind::shared || d.limit == terms_.limit, "the limit is another");
    require(d.remaining >= 0 && d.remaining <= terms_.limit, "what remains is impossible");
    require(d.at <= now() || set_back_, "a decision lies in the future");
    require(d.retry_after <= call.span, "a grant lies further ahead than was asked for");
    const Time at = (here ? now() : d.at) + d.retry_after;
    const Word window = window_of(here && call.asked_at == now() ? now() : d.at);
    if (here) {
      // A plan spends when it is asked, and counts when it is answered.
      const std::uint64_t order = call.verb == Verb::plan ? call.asked : tick();
      spend(process, {call.number, call.cost, at, window, order});
    } else if (is_told_ && (!is_bucket(terms_.kind) || call.verb == Verb::reserve)) {
      Word& units = process.granted.back().units;  // a call that was passed on
      units = std::max<Word>(0, units - call.cost);
    }
    history_.push_back({at, call.cost, true, at, Span{0}, d.remaining, call.process});
    call.noted = history_.size();
    if (!is_bucket(terms_.kind) && !terms_.changes && !set_back_) {
      by_window_[window] += call.cost;
      require(by_window_[window] <= terms_.limit, "a window has more than its limit");
    }
    judge_block(process, d, at);
    if (call.verb != Verb::reserve) return;
    call.output.assign(outcome.output.begin(), outcome.output.end());
    require(call.output[0] == call.cost, "a reservation is not of what was asked for");
    call.refundable = true;
  }

  /// Each unit that is spent here was granted to this process, less than `hold` before, in the
  /// window in which it counts, and is spent once: all that was spent fits what was granted. Which
  /// unit it was is not known, so that earlier uses move to other units where that makes room.
  void spend(Process& process, Use use) {
    process.spent += use.units;
    while (use.units > 0) {
      const Word placed = place(process.granted, use);
      if (placed == 0) break;
      use.units -= placed;
    }
    require(use.units == 0 || set_back_, "units are spent that were not granted, or not for now");
  }
  [[nodiscard]] bool fits(const Use& use, const Granted& one) const {
    if (one.order > use.order) return false;
    if (set_back_) return true;
    const bool in_time = one.from <= use.at && use.at < one.until;
    return in_time && (is_bucket(terms_.kind) || one.window == use.window);
  }
  /// Moves some of the uses so that a part of this one finds a place; returns how much.
  [[nodiscard]] Word place(std::vector<Granted>& granted, const Use& use) const {
    /// A grant that is reached by moving a use of an earlier one to it.
    struct Reached {
      std::size_t grant, from, use;
    };
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<Reached> reached;
    std::vector<std::size_t> others(granted.size());
    std::iota(others.begin(), others.end(), std::size_t{0});
    const auto reach = [&](const Use& what, std::size_t from, std::size_t index) {
      std::erase_if(others, [&](std::size_t i) {
        if (!fits(what, granted[i])) return false;
        reached.push_back({i, from, index});
        return true;
      });
    };
    reach(use, none, none);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      Granted& last = granted[reached[i].grant];
      if (last.units > 0) {
        Word part = std::min(use.units, last.units);
        for (Reached at = reached[i]; at.from != none; at = reached[at.from]) {
          part = std::min(part, granted[reached[at.from].grant].uses[at.use].units);
        }
        last.units -= part;
        for (Reached at = reached[i];; at = reached[at.from]) {
          const bool is_first = at.from == none;
          Use moved = is_first ? use : granted[reached[at.from].grant].uses[at.use];
          moved.units = part;
          granted[at.grant].uses.push_back(moved);
          if (is_first) return part;
          granted[reached[at.from].grant].uses[at.use].units -= part;
        }
      }
      for (std::size_t index = 0; index < last.uses.size(); ++index) {
        if (last.uses[index].units > 0) reach(last.uses[index], i, index);
      }
    }
    return 0;
  }
  /// What a call spent is granted and not spent again.
  static void unspend(Process& process, std::size_t call) {
    for (Granted& one : process.granted) {
      for (Use& use : one.uses) {
        if (use.call == call) one.units += std::exchange(use.units, 0);
      }
      std::erase_if(one.uses, [](const Use& use) { return use.units == 0; });
    }
  }

  /// After a block, nothing that this process was granted before is spent until its end.
  void judge_block(const Process& process, const Decision& d, Time at) {
    if (process.blocked_from == 0 || now() >= process.blocked_until) return;
    if (at >= process.blocked_until) return;  // reserved for later
    // What the store behind decides is its own affair: there a call may also come before the block.
    require(d.source != Source::prefetched, "units that were held are spent during a block");
  }

  /// Windows know no line: once nobody waits, at most `most` are held, or a part of what was taken
  /// for a caller whose rest the store refused.
  void judge_most() {
    for (const auto& process : processes_) {
      const PrefetchStats stats = process->store->stats();
      const auto kept = static_cast<Word>(stats.taken - stats.returned - stats.lapsed);
      if (is_bucket(terms_.kind) || process->open > 0 || process->plans || set_back_) continue;
      const Word most = std::max(terms_.most, process->left);
      require(kept - process->spent <= most, "more than `most` are held");
    }
  }

  /// The store has refused so much lately, and the limit has not changed since.
  void judge_refusal(const Call& call, Process& process, const Decision& d) {
    const bool here = d.source == Source::prefetched;
    ++seen[here ? "refused here" : "refused by the store"];
    require(d.retry_after > Span{0}, "a refusal has no hint");
    if (!here || is_bucket(terms_.kind) || set_back_ || call.verb == Verb::plan) return;
    const bool known =
        std::any_of(process.refused.begin(), process.refused.end(), [&](const Refused& one) {
          if (one.remaining >= call.cost) return false;
          if (one.told_at == now()) return true;
          const bool news = one.decided > process.changed || call.asked < process.changed_told;
          return news && now() < one.told_at + terms_.recheck;
        });
    require(known, "a call is refused that the store did not refuse");
  }

  void refunded(const Call& call, Process& process, const Outcome& outcome) {
    Call& of = *calls_[call.of];
    const Word amount = outcome.output[0];
    require(amount >= 0 && amount <= of.cost, "a refund is too large");
    // The store judges what it gives back: whole units are told, but a part of one more may be,
    // too.
    if (outcome.decision.source != Source::prefetched) added_ += std::min(amount + 1, of.cost);
    if (amount == 0) return;
    if (outcome.decision.source == Source::prefetched) {
      process.refunded += amount;
      ++seen["refunded here"];
      require(amount == of.cost, "a part of what was spent here is refunded");
      unspend(process, call.of);
    }
    if (of.noted == 0) return;
    Word& cost = history_[of.noted - 1].cost;
    require(cost >= amount, "units are refunded twice");
    cost -= amount;
  }
  void end_blocks() {
    for (auto& process : processes_) process->blocked_from = 0;
    opened_ = order_;
  }

  void changed(const Call& call, Process& process, const Decision& d) {
    ++seen["changed"];
    process.changed = std::max(process.changed, call.decided);
    process.changed_told = tick();
    if (call.verb == Verb::reward) return;
    process.cleared = order_;
    process.granted.clear();
    if (call.verb == Verb::reset) return end_blocks();
    if (call.decided < set_back_at_ || call.decided < opened_) return;  // it has ended already
    const bool longer = process.blocked_from == 0 || d.at + call.span > process.blocked_until;
    process.blocked_from = order_;
    if (longer) process.blocked_until = d.at + call.span;
  }

  void judge_history() {
    if (!is_bucket(terms_.kind)) return;
    const Word rate = std::max<Word>(1, terms_.per_second);
    const Word late = rate * terms_.hold.count() / 1'000'000 + 1;
    testing::History history = history_;
    std::stable_sort(history.begin(), history.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    const auto breach = testing::check_rate(
        history, {.burst = terms_.limit + added_ + late + 1, .units = rate, .period = 1s});
    if (breach) require(set_back_, breach->what);
  }

  /// All calls are answered, callers that follow their hints are served, and the books balance.
  void conclude() {
    for (int round = 0; round < 50; ++round) {
      for (std::size_t i = 0; i < processes_.size(); ++i) serve_all(i);
    }
    for (const auto& call : calls_) require(call->answers == 1, "a call is not answered");
    judge_history();
    clock_.advance(3 * terms_.hold + 1min);
    for (std::size_t i = 0; i < processes_.size(); ++i) serve_all(i);
    for (const auto& process : processes_) {
      const PrefetchStats stats = process->store->stats();
      const auto kept = static_cast<Word>(stats.taken - stats.returned - stats.lapsed);
      const Word used = process->spent - process->refunded;
      require(kept >= used && kept <= used + process->unsure,
              "the books do not balance: " + std::to_string(kept) + " kept, " +
                  std::to_string(used) + " used, perhaps " + std::to_string(process->unsure) +
                  " more; taken " + std::to_string(stats.taken) + ", returned " +
                  std::to_string(stats.returned) + ", lapsed " + std::to_string(stats.lapsed));
    }
    judge_rest();
    for (std::size_t i = 0; i < processes_.size(); ++i) served_by_hints(i);
  }
  /// Where nothing drains, what was neither used nor lapsed is at the store again.
  void judge_rest() {
    if (!is_bucket(terms_.kind) || terms_.per_second > 0 || terms_.changes || terms_.faults) return;
    Word rest = terms_.limit;
    Word unsure = 0;
    for (const auto& grant : history_) rest -= grant.cost;
    for (const auto& process : processes_) {
      rest -= static_cast<Word>(process->store->stats().lapsed);
      unsure += process->unsure;
    }
    const Word left = Limit(*server_, terms_).left();
    require(left >= rest - unsure && left <= rest + added_ + 1, "units are lost, or come twice");
    if (rest < terms_.limit) ++seen["rest"];
  }
  void served_by_hints(std::size_t who) {
    if (terms_.per_second == 0 && is_bucket(terms_.kind)) return;
    for (int tries = 0; tries < 60; ++tries) {
      const Step step = processes_[who]->limit->acquire(1);
      std::optional<Decision> told;
      decide_then(*processes_[who]->store, step,
                  [&](const std::error_code& error, const Decision& d) {
                    require(!error, "a call fails without a fault");
                    told = d;
                  });
      serve_all(who);
      require(told.has_value(), "a call is not answered");
      if (!told || told->allowed) return;
      clock_.advance(told->retry_after);
    }
    require(false, "a caller that follows its hints is never served");
  }

  Random& random_;
  Terms terms_;
  VirtualClock clock_;
  std::unique_ptr<Store> server_ = make_virtual_store(clock_);
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Process>> old_;
  std::vector<std::unique_ptr<Process>> processes_;
  StopSource source_;
  testing::History history_;
  std::map<Word, Word> by_window_;
  std::map<const Process*, std::map<const void*, std::uint64_t>> decided_;
  std::uint64_t order_ = 0;
  Word added_ = 0;
  std::string broken_;
  bool is_told_ = false;  // the answer that arrives grants units
  bool set_back_ = false;
  std::uint64_t set_back_at_ = 0;
  std::uint64_t opened_ = 0;  // when the last block ended
};

Terms draw_terms(Random& random) {
  const auto kind = static_cast<Kind>(random.between(0, 3));
  const Word limit = random.one_in(3) ? random.between(5, 20) : random.between(20, 400);
  return {.kind = kind,
          .limit = limit,
          .per_second = random.one_in(3) ? 0 : random.between(1, 400),
          .hold = Span{random.one_in(2) ? random.between(300'000, 900'000)
                                        : random.between(1'000, 3'000'000)},
          .most = random.one_in(3) ? random.between(1, 10) : random.between(10, 200),
          .recheck = Span{random.between(1'000, 5'000'000)},
          .changes = random.one_in(3),
          .faults = random.one_in(3)};
}

}  // namespace

TEST_CASE(
    "whatever happens at whatever point, prefetched units are spent once, in time and in their "
    "window",
    "[prefetch][model]") {
  Random random(
      "whatever happens at whatever point, prefetched units are spent once, in time and in their "
      "window");
  CAPTURE(random.repeat());
  std::map<std::string, std::size_t> seen;
  for (std::size_t life = 0; life < scaled(400, 40); ++life) {
    World world(random, draw_terms(random), static_cast<std::size_t>(random.between(1, 3)));
    world.run(400);
    for (const auto& [what, times] : world.seen) seen[what] += times;
  }
  for (const char* what :
       {"allowed here", "refused here", "allowed by the store", "refused by the store", "plan here",
        "plan passed", "refunded here", "changed", "set back", "ended", "lost", "error", "rest"}) {
    CAPTURE(what);
    CHECK(seen[what] > 0);
  }
}

}  // namespace sluice::test
