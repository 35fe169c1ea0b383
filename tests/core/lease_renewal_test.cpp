// The model of a LeaseRenewer: random programs of leases on two stores whose answers come when they
// like, in any order, fail or get lost, with clocks set back, leases given back and renewed by
// hand, and calls of renew_due() that come early or late. A few lines a rule say which renewals are
// asked for, when, who is told of a lost lease, and when the next call is due. The same programs
// run while a renewer's own thread is about to sleep: nothing may wait that does not wake it.
// Threading: all on one thread at a time, the test's or the renewer's.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/lease_renewer.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/virtual_clock.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {
namespace {

/// A lease as its holder knows it.
struct Held {
  Lease lease;
  std::size_t store;
  Span ttl;
  Time safe;  // it is held until then
  Time due;   // the next renewal
  bool lost = false;
  bool kept = true;  // by the renewer
  bool pending = false;
  Time asked{};
  Time answered_by{};  // if pending
  int told = 0;
  bool to_tell = false;  // with the next call at the latest
};

/// Shows when a thread is about to sleep.
class SleepClock final : public VirtualClock {
 public:
  bool wait_until(Time when, ManualResetEvent& waker) override {
    return sleeps && sleeps(when, waker) ? waker.is_awake() : VirtualClock::wait_until(when, waker);
  }
  std::function<bool(Time, const ManualResetEvent&)> sleeps;  // true: has slept
};

class World {
 public:
  explicit World(Random& random) : random_(random) {
    for (auto& wire : wires_) wire.emplace(*far_).blocks = false;
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      CAPTURE(broken_, i);
      REQUIRE(broken_.empty());
    }
    end();
  }
  /// Acts whenever the renewer's own thread is about to sleep.
  void run_by_thread(int steps) {
    own_thread_ = true;
    ManualResetEvent over;
    clock_.sleeps = [&](Time until, const ManualResetEvent& waker) {
      judge(until);
      while (steps > 0 && broken_.empty()) {
        --steps;
        act();
        if (waker.is_awake()) break;
        require(until <= latest(), "the thread sleeps over what is due");
        if (now() >= until) break;
      }
      begin();
      if (steps > 0 && broken_.empty()) return true;
      over.wake();
      return false;
    };
    begin();
    renewer_->start();
    over.wait();
    renewer_->stop();
    for (auto& wire : wires_) wire->holds = nullptr;
    CAPTURE(broken_, steps);
    REQUIRE(broken_.empty());
    end();
  }
  std::map<std::string, std::size_t> seen;

 private:
  void end() {
    renewer_.reset();  // answers may come later
    for (auto& wire : wires_) wire->deliver_all();
    held_.clear();
    for (auto& wire : wires_) wire->deliver_all();
  }
  Time now() const { return clock_.now(); }
  /// Remembered, because answers come where nothing may throw.
  void require(bool holds, const char* what) {
    if (!holds && broken_.empty()) broken_ = what;
  }
  /// Calls that block are decided so much later, and answered at once.
  template <class Work>
  auto at_once(std::size_t store, Span late, Work work) {
    WireStore& wire = *wires_[store];
    wire.blocks = true;
    wire.holds = [&](const Plan&) {
      clock_.advance(late);
      return false;
    };
    auto result = work(wire);
    wire.blocks = false;
    wire.holds = nullptr;
    return result;
  }

  void act() {
    ++seen["steps"];
    const auto draw = random_.between(0, 99);
    if (draw < 12 && held_.size() < 12) {
      for (auto left = random_.one_in(200) ? 100 : 1; left > 0; --left) acquire();
      return;
    }
    if (draw < 18) return give_back();
    if (draw < 22) return renew_by_hand();
    if (draw < 50) return answer();
    if (draw < 75 && !own_thread_) return renew();
    move();
  }

  void acquire() {
    const auto store = static_cast<std::size_t>(random_.between(0, 1));
    const Span ttl{random_.between(1'200, 120'000)};
    auto one = std::make_unique<Held>();
    Held& held = *one;
    const ConcurrencyLimiter jobs(*wires_[store], "jobs", 100, {.ttl = ttl});
    const std::string name = "k" + std::to_string(ttl.count());  // one TTL for each key
    const Time asked = now();
    const Span late{random_.one_in(4) ? random_.between(0, 2 * ttl.count()) : 0};
    held.lease = at_once(store, late, [&](WireStore&) { return jobs.try_acquire(name); });
    require(static_cast<bool>(held.lease), "a lease is refused");
    held.store = store;
    held.ttl = ttl;
    held.safe = asked + ttl;
    if (random_.one_in(4)) clock_.advance(Span{random_.between(0, 2 * ttl.count())});
    held.due = held.safe - ttl + ttl / 3;
    instants_.insert({held.due, held.safe});
    held.lease.keep_alive(*renewer_, [this, &held](const LeaseId& id) {
      ++held.told;
      require(id == held.lease.id(), "another lease is named");
    });
    held_.push_back(std::move(one));
  }
  Held* draw_held() {
    if (held_.empty()) return nullptr;
    return held_[static_cast<std::size_t>(random_.between(0, std::ssize(held_) - 1))].get();
  }
  /// Answers about it that come later count for nothing, and nobody is told.
  void give_back() {
    Held* const held = draw_held();
    if (held == nullptr) return;
    const int told = held->told;
    { const Lease ended = std::move(held->lease); }
    require(held->told == told, "who gives back is told");
    gone_.push_back(std::move(*std::find_if(held_.begin(), held_.end(),
                                            [&](const auto& one) { return one.get() == held; })));
    std::erase(held_, nullptr);
    ++seen["given back"];
  }
  void renew_by_hand() {
    Held* const held = draw_held();
    if (held == nullptr) return;
    const bool is_held = !held->lost && now() < held->safe;
    const Time asked = now();
    const Span late{
        is_held && random_.one_in(2) ? random_.between(0, (held->safe - asked).count() - 1) : 0};
    const bool renewed =
        at_once(held->store, late, [&](WireStore&) { return held->lease.renew(); });
    if (renewed) {
      require(!held->lost, "a lost lease is renewed");
      held->safe = std::max(held->safe, asked + held->ttl);
      instants_.insert(held->safe);
      ++seen["by hand"];
    } else {
      require(!is_held || set_back_, "a lease that is held is not renewed");
      held->lost = true;
    }
  }
  void lose(Held& held) {
    if (held.told == 0) held.to_tell = true;
    held.lost = true;
  }

  // The answers.
  Held* asked_by(const Plan& plan) {
    const Step& step = plan.steps()[0];
    if (step.operation != &leases_renew) return nullptr;
    for (const auto& one : held_) {
      if (names(step, one->lease.id())) return one.get();
    }
    return nullptr;
  }
  static bool names(const Step& step, const LeaseId& id) {
    return step.args[3] == static_cast<Word>(id.high >> 12) &&
           step.args[5] == static_cast<Word>(id.low & 0xffffff);
  }
  void answer() {
    WireStore& wire = *wires_[static_cast<std::size_t>(random_.between(0, 1))];
    if (wire.pending() == 0) return;
    const auto index =
        static_cast<std::size_t>(random_.between(0, static_cast<Word>(wire.pending()) - 1));
    if (!wire.is_decided(index) && random_.one_in(2)) return wire.decide(index);
    Held* const held = asked_by(wire.plan(index));
    const bool decided = wire.is_decided(index);
    const bool live = decided && !wire.outcome(index).error && wire.outcome(index).decision.allowed;
    const bool gone = decided && !wire.outcome(index).error && !live;
    if (decided) {
      wire.deliver(index);
    } else {
      wire.fail(index, Errc::timed_out);
      ++seen["failed"];
    }
    if (held == nullptr) return;
    held->pending = false;
    held->due = held->asked + std::max(Span{1}, held->ttl / (live || gone ? 3 : 12));
    if (live && !held->lost) held->safe = std::max(held->safe, held->asked + held->ttl);
    if (gone || now() >= held->safe) lose(*held);
    held->due = std::min(held->due, held->safe);
    instants_.insert({held->due, held->safe});
    ++seen[live ? "renewed" : gone ? "gone" : "unanswered"];
  }

  // What renew_due() does, or the thread between two sleeps.
  void renew() {
    begin();
    judge(renewer_->renew_due());
  }
  void begin() {
    before_ = {wires_[0]->pending(), wires_[1]->pending()};
    batches_ = {wires_[0]->batches(), wires_[1]->batches()};
    for (auto& wire : wires_) {
      wire->holds = [this](const Plan&) {
        for (const auto& one : held_) {
          require(!one->to_tell || one->told > 0, "others are asked about before a holder is told");
        }
        return true;
      };
    }
    told_.clear();
    for (const auto& one : held_) told_[one.get()] = one->told;
    for (const auto& one : held_) {
      if (now() >= one->safe) lose(*one);
      if (one->lost || !one->pending || now() < one->answered_by) continue;
      // A late answer is looked for when a renewal that failed would be due.
      one->answered_by = now() + std::max(Span{1}, one->ttl / 12);
      instants_.insert(one->answered_by);
    }
  }
  void judge(Time next) {
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      wires_[i]->holds = nullptr;
      require(wires_[i]->batches() <= batches_[i] + 1, "a store is asked twice");
    }
    for (const auto& one : held_) {
      const bool is_told = one->told > told_[one.get()];
      require(one->told <= 1, "a holder is told twice");
      require(is_told || !one->to_tell, "a holder is told too late");
      require(!is_told || one->lost, "a holder is told too early");
      if (is_told) ++seen["told"];
      one->to_tell = false;
      if (!one->lost && !one->pending && one->due <= now()) {
        const Span within =
            std::min(std::max(Span{1}, one->ttl / 3), std::max(Span{1}, one->safe - now()));
        const Plan plan = asked_for(*one, before_[one->store]);
        require(plan.timeout() == within, "a renewal has another deadline");
        one->pending = true;
        one->asked = now();
        one->answered_by = now() + within;
        instants_.insert(one->answered_by);
      }
    }
    judge_next(next);
    const auto held =
        std::count_if(held_.begin(), held_.end(), [](const auto& one) { return !one->lost; });
    require(renewer_->size() == static_cast<std::size_t>(held), "the size is another");
  }
  Plan asked_for(const Held& held, std::size_t before) {
    WireStore& wire = *wires_[held.store];
    for (std::size_t i = before; i < wire.pending(); ++i) {
      const Step& step = wire.plan(i).steps()[0];
      if (step.operation == &leases_renew && names(step, held.lease.id())) return wire.plan(i);
    }
    require(false, "a renewal that is due is not asked for");
    return wire.plan(0);
  }
  /// The next call is due with the first renewal, end, or deadline of an answer.
  void judge_next(Time next) {
    require(next > now(), "the next call is due already");
    require(next <= latest(), "the next call comes too late");
    require(next == Time::max() || instants_.count(next) > 0, "a call for nothing is due");
    next_ = next;
  }
  [[nodiscard]] Time latest() const {
    Time latest = Time::max();
    for (const auto& one : held_) {
      if (one->to_tell) latest = std::min(latest, now());
      if (one->lost) continue;
      if (!one->pending) latest = std::min(latest, one->due);
      if (one->pending) latest = std::min(latest, one->safe);
      if (one->pending) latest = std::min(latest, one->answered_by);
    }
    return latest;
  }

  void move() {
    if (random_.one_in(20)) {
      clock_.advance(-Span{random_.between(1, 50'000)});
      set_back_ = true;
      ++seen["set back"];
      return;
    }
    if (random_.one_in(2) && next_ != Time::max() && next_ > now()) {
      clock_.set(next_ - Span{random_.between(0, 1)});
      return;
    }
    clock_.advance(Span{random_.between(0, 20'000)});
  }

  Random& random_;
  SleepClock clock_;
  std::unique_ptr<Store> far_ = make_virtual_store(clock_);
  std::array<std::optional<WireStore>, 2> wires_;
  std::optional<LeaseRenewer> renewer_{std::in_place, clock_, Renewing::by_hand};
  std::vector<std::unique_ptr<Held>> held_;
  std::vector<std::unique_ptr<Held>> gone_;  // their handlers are not called any more
  std::array<std::size_t, 2> before_{};      // the pending calls, and who was told
  std::array<std::size_t, 2> batches_{};
  std::map<Held*, int> told_;
  bool own_thread_ = false;
  Time next_ = Time::max();
  std::string broken_;
  std::set<Time> instants_;  // at which something was due
  bool set_back_ = false;
};

/// Lives in many worlds, and requires that everything has occurred.
void live(void (World::*run)(int)) {
  Random random(Catch::getResultCapture().getCurrentTestName());
  CAPTURE(random.repeat());
  std::map<std::string, std::size_t> seen;
  for (std::size_t life = 0; life < scaled(300, 30); ++life) {
    World world(random);
    (world.*run)(300);
    for (const auto& [what, times] : world.seen) seen[what] += times;
  }
  for (const char* what :
       {"renewed", "gone", "unanswered", "told", "given back", "by hand", "failed", "set back"}) {
    CAPTURE(what);
    CHECK(seen[what] > 0);
  }
}

}  // namespace

TEST_CASE("leases are renewed when they are due, and who has lost one is told at its end, once",
          "[core][leases][model]") {
  live(&World::run);
}

TEST_CASE("a renewer's thread sleeps no longer than until the next lease is due, or is lost",
          "[core][leases][model]") {
  live(&World::run_by_thread);
}

}  // namespace sluice::test
