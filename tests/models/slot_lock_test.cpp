// The model of the slot lock: the list of all slots that were granted; locks of two intervals share
// the key. Threading: single-threaded.
#include "sluice/limiters/slot_lock.hpp"

#include <algorithm>

#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

class SlotLockModel final : public Model {
 public:
  explicit SlotLockModel(Life& life)
      : life_(life), interval_(draw_interval(life.random)), is_disturbed_(life.random.one_in(2)) {
    locks_.emplace_back(life.store, life.name, interval_);
    if (!life.patient && life.random.one_in(2)) {
      const Span most = life.random.one_in(2) ? 3 * interval_ : interval_ / 4 + 1us;
      const Span other{life.random.between(1, most.count())};
      locks_.emplace_back(life.store, life.name, other);
    }
    if (life.random.one_in(2)) patient_wait_ = draw_wait();
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 6, [this] { ask(0us, true); }},
            {"reserve", 10, [this] { ask(draw_wait(), true); }},
            {"peek", 3, [this] { ask(life_.patient ? patient_wait_ : draw_wait(), false); }, true},
            {"cancel", 5, [this] { cancel(); }, is_disturbed_},
            {"block", 1, [this] { block(); }, is_disturbed_},
            {"reset", 1, [this] { reset(); }, is_disturbed_}};
  }
  Moves moves() const override {
    return {interval_, 4 * interval_, life_.draw_back(2 * interval_)};
  }
  std::optional<Time> edge() const override { return written_ - Span{SlotLockRule::max_ahead}; }
  Callers callers() const override { return {1, 6 * interval_}; }
  Decision ask(Word) override { return ask(patient_wait_, true); }

  /// Slots that were kept lie an interval apart, in the order of asking.
  void judge(const History& history) override {
    History kept;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      kept.push_back(note(slots_[i].permit));
      if (i > 0) REQUIRE(slots_[i].permit.ready_at() >= slots_[i - 1].end());
    }
    life_.keep(check_gaps(kept, std::ranges::min(locks_, {}, &SlotLock::interval).interval()));
    if (!life_.patient) return;
    life_.keep(check_remaining(history, 1));
    if (is_disturbed_) return;
    life_.keep(check_gaps(history, interval_));
    life_.keep(check_work_conserving(history, {.burst = 1, .units = 1, .period = interval_}));
  }

 private:
  struct Slot {
    SlotPermit permit;
    const SlotLock* lock;
    [[nodiscard]] Time end() const { return permit.ready_at() + lock->interval(); }
  };

  static Span draw_interval(Random& random) {
    if (random.one_in(4)) return Span{random.between(1, 3)};
    return random.one_in(6) ? Span{72h} / random.between(1, 3)
                            : Span{random.between(1, 40'000'000)};
  }
  [[nodiscard]] Span draw_wait() const {
    const Word most = std::min(5 * interval_, SlotLock::max_horizon).count();
    return Span{life_.random.between(0, most)};
  }
  const SlotLock& draw_lock() { return life_.draw("lock", locks_); }

  /// No slot may begin before it.
  [[nodiscard]] Time next() const {
    Time at = free_from_;
    for (const Slot& slot : slots_) at = std::max(at, slot.end());
    return at;
  }
  /// Set back by more than max_ahead, the clock makes what is reserved count from now, as it did
  /// when it was written; a request is let in after at most the longest wait that it allows.
  [[nodiscard]] bool is_given_up() const {
    return written_ > life_.now() + Span{SlotLockRule::max_ahead};
  }
  [[nodiscard]] Time slot_for(Span max_wait) const {
    return is_given_up() ? life_.now() + std::min(next() - written_, max_wait)
                         : std::max(next(), life_.now());
  }
  void write() {
    if (is_given_up()) {
      forget();
      life_.saw("slots given up");
    }
    written_ = life_.now();
    life_.wrote();
  }
  void forget() {
    slots_.clear();
    free_from_ = written_ = {};
  }

  Decision ask(Span max_wait, bool reserves) {
    const SlotLock& lock = draw_lock();
    life_.tell("max_wait", max_wait.count());
    const Time slot = slot_for(max_wait);
    const Span wait = slot - life_.now();
    const SlotPermit permit = !reserves         ? SlotPermit{lock.peek("k", max_wait)}
                              : max_wait == 0us ? lock.try_acquire("k")
                                                : lock.reserve("k", max_wait);
    const Decision& d = permit;
    if (reserves) life_.note(d, 1);
    const bool allowed = wait <= max_wait;
    const bool grants = reserves && allowed;
    life_.require(d, {.allowed = allowed,
                      .remaining = !reserves && wait == 0us ? 1 : 0,
                      .retry_after = (allowed ? wait : wait - max_wait).count(),
                      .reset_after = (grants ? wait + lock.interval() : wait).count()});
    if (!grants) return d;
    REQUIRE(permit.ready_at() == slot);
    write();
    slots_.push_back({permit, &lock});
    return d;
  }

  /// Only the last slot comes back, once, until the next one may begin.
  void cancel() {
    if (slots_.empty()) return;
    const std::size_t last = slots_.size() - 1;
    const std::size_t which = life_.random.one_in(2) ? last : life_.random.below(slots_.size());
    const Slot slot = slots_[which];
    const bool lasts = which == last && life_.now() < slot.end() && !is_given_up();
    const bool comes_back = lasts && slot.end() == next();
    life_.tell("slot", to_word(slot.permit.ready_at()) - life_.tick());
    REQUIRE(slot.lock->cancel("k", slot.permit) == (comes_back ? 1 : 0));
    life_.saw(comes_back ? "given back" : lasts ? "blocked since" : "not given back");
    if (!comes_back) return;
    slots_.pop_back();
    free_from_ = slot.permit.ready_at();
    written_ = std::min(written_, free_from_);
    life_.wrote();
    life_.changed();
    if (life_.random.one_in(4)) REQUIRE(slot.lock->cancel("k", slot.permit) == 0);
  }

  void block() {
    const SlotLock& lock = draw_lock();
    const bool none = life_.random.one_in(5);
    const Span span{none ? 0 : life_.random.between(1, 4 * interval_.count())};
    life_.tell("span", span.count());
    const Span reach =
        std::max(span, SlotLock::max_horizon + lock.interval() + Span{SlotLockRule::max_ahead});
    const Time now = life_.now();
    Time free = slot_for(reach);
    const bool beyond = free > now + reach;
    const bool writes = span > 0us && !beyond;
    if (writes) {
      life_.saw(free < now + span ? "blocked" : "blocked behind what is reserved");
      free = free < now + span ? now + span : free + 1us;
    } else if (beyond) {
      life_.saw("reserved too far ahead to be blocked");
    }
    life_.require(lock.block("k", span),
                  {.remaining = free == now ? 1 : 0, .reset_after = (free - now).count()});
    if (!writes) return;
    write();
    free_from_ = free;
    life_.changed();
  }

  void reset() {
    if (!life_.random.one_in(3)) return;
    life_.begin_history();
    locks_[0].reset("k");
    forget();
  }

  Life& life_;
  const Span interval_;      // of the first lock
  const bool is_disturbed_;  // in a patient life, what is reserved is given back and blocked
  Span patient_wait_{0};
  std::vector<SlotLock> locks_;
  std::vector<Slot> slots_;  // all that were granted, but for those given back
  Time free_from_{};         // by a block, or since a slot was given back
  Time written_{};           // when the key's state was
};

}  // namespace

TEST_CASE("slots are those that the list of all slots leaves free, and lie an interval apart",
          "[model][slot_lock][S4][S5][L1][L2][C-073][C-076]") {
  live<SlotLockModel>(
      {.outcomes = {"admitted", "reserved", "refused", "given back", "not given back",
                    "blocked since", "blocked", "blocked behind what is reserved",
                    "reserved too far ahead to be blocked", "slots given up"}});
}
