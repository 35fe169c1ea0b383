// The model of a FallbackStore and its CircuitBreaker: random programs in front of a primary whose
// answers come when they like, in any order, fail in every way, or get lost, with clocks set back,
// deadlines, stop tokens, batches and ends of the store at every point. A few lines a rule say what
// each caller is told, and which calls the primary sees. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test {
namespace {

/// What the pages say of an error of the primary.
enum class Sense {
  away,        ///< the policy answers, and the breaker counts a failure
  unreadable,  ///< the policy answers; the primary works
  works,       ///< the caller is told; the primary has read its key
  nothing,     ///< the caller is told, and it says nothing of the primary
};
const std::array<std::pair<Errc, Sense>, 16> errors{{
    {Errc::not_connected, Sense::away},
    {Errc::timed_out, Sense::away},
    {Errc::unknown, Sense::away},
    {Errc::loading, Sense::away},
    {Errc::no_permission, Sense::away},
    {Errc::server_error, Sense::away},
    {Errc::wrong_type, Sense::unreadable},
    {Errc::corrupt_state, Sense::unreadable},
    {Errc::wrong_kind, Sense::works},
    {Errc::id_reused, Sense::works},
    {Errc::store_full, Sense::nothing},
    {Errc::cancelled, Sense::nothing},
    {Errc::shut_down, Sense::nothing},
    {Errc::forked, Sense::nothing},
    {Errc::too_many_waiters, Sense::nothing},
    {Errc::cross_slot, Sense::nothing},
}};
Sense sense_of(const std::error_code& error) {
  for (const auto& [code, sense] : errors) {
    if (error == code) return sense;
  }
  return Sense::away;
}

struct Terms {
  FailurePolicy::Kind policy;
  Word clients;
  BreakerOptions breaker;
  Span within;
};

constexpr Word burst = 12;
constexpr Word rate = 60;

struct Call {
  bool changes = false;  // a reset, which has no answer without the primary
  Word cost = 1;
  std::size_t key = 0;
  Span timeout{0};
  std::shared_ptr<StopSource> stop{};
  bool sent = false;
  bool is_probe = false;
  std::uint64_t era = 0;
  std::optional<Outcome> primary{};  // what the primary answered
  bool answered = false;
  std::error_code error{};
  Decision decision{};
};

class World {
 public:
  World(Random& random, const Terms& terms)
      : random_(random), terms_(terms), breaker_(clock_, drawing(terms.breaker)) {
    make();
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      check();
    }
    while (wire_.pending() > 0) answer(0);
    for (const auto& call : calls_) require(call->answered, "a call is not answered");
    require(breaker_.stats().trips == trips_ && breaker_.stats().probes == probes_ &&
                breaker_.stats().denied == denied_,
            "the statistics are others");
    check();
  }
  std::map<std::string, std::size_t> seen;

 private:
  BreakerOptions drawing(BreakerOptions options) {
    options.rng = &rng_;
    return options;
  }
  void make() {
    const auto policy = terms_.policy == FailurePolicy::Kind::open ? FailurePolicy::open()
                        : terms_.policy == FailurePolicy::Kind::closed
                            ? FailurePolicy::closed()
                            : FailurePolicy::local(*local_, terms_.clients);
    store_.emplace(wire_, breaker_, policy, terms_.within);
  }
  /// Remembered, because answers come where nothing may throw.
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.empty()) broken_ = what;
  }
  void check() {
    CAPTURE(broken_, static_cast<int>(terms_.policy), terms_.clients, calls_.size());
    REQUIRE(broken_.empty());
  }
  Time now() const { return clock_.now(); }

  void act() {
    const auto draw = random_.between(0, 99);
    if (draw < 45) return call();
    if (draw < 52) return batch();
    if (draw < 85) {
      if (wire_.pending() == 0) return call();
      return answer(
          static_cast<std::size_t>(random_.between(0, static_cast<Word>(wire_.pending()) - 1)));
    }
    if (draw < 87) {
      mostly_fails_ = random_.one_in(2);
      return;
    }
    if (draw < 88) return end();
    move();
  }
  Call& draw_call() {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.changes = random_.one_in(10);
    call.cost = random_.one_in(8) ? random_.between(2, burst) : 1;
    call.key = static_cast<std::size_t>(random_.between(0, 2));
    if (random_.one_in(4)) call.timeout = Span{random_.between(1, 2 * terms_.within.count())};
    if (random_.one_in(12)) call.timeout = Span{-1};
    if (random_.one_in(6)) call.stop = std::make_shared<StopSource>();
    if (call.stop && random_.one_in(4)) call.stop->request_stop();
    return call;
  }
  Step step_of(const Call& call) const {
    return call.changes ? bucket_.reset_step(names_[call.key])
                        : bucket_.acquire_step(names_[call.key], call.cost);
  }
  static Plan plan_of(const Call& call, const Step& step) {
    Plan plan(step);
    if (call.timeout != Span{0}) plan = plan.within(call.timeout);
    return call.stop ? plan.cancelled_by(call.stop->get_token()) : plan;
  }
  void call() {
    Call& one = draw_call();
    const Step step = step_of(one);
    expect(one);
    const std::size_t before = wire_.pending();
    wire_.mark = static_cast<int>(calls_.size());
    store_->execute(plan_of(one, step), {&World::keep, slot_of(one)});
    sent(one, before);
    require(wire_.pending() <= before + 1, "a call is sent twice");
  }
  /// Calls of a closed breaker go together; else the first may be a probe, and the others wait.
  void batch() {
    std::vector<Call*> all;
    std::vector<Step> steps;
    std::vector<Plan> plans;
    std::vector<Completion> done;
    for (auto left = random_.between(1, 5); left > 0; --left) all.push_back(&draw_call());
    for (Call* one : all) steps.push_back(step_of(*one));
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect(*all[i]);
      plans.push_back(plan_of(*all[i], steps[i]));
      done.push_back({&World::keep, slot_of(*all[i])});
    }
    std::size_t place = wire_.pending();
    store_->execute_batch(plans, done);
    for (const Call* one : all) {
      if (one->sent && place < wire_.pending()) wire_.set_mark(place, index_of(*one));
      sent(*one, place);
      if (one->sent) ++place;
    }
    require(wire_.pending() == place, "more than a batch is sent");
    ++seen["batch"];
  }

  // The breaker of the model.
  using Result = CircuitBreaker::Result;
  void expect(Call& one) {
    one.era = era_;
    if (state_ == State::closed) {
      one.sent = true;
    } else if (state_ == State::open && (now() >= until_ || now() < opened_)) {
      one.sent = one.is_probe = true;
      state_ = State::half_open;
      ++probes_;
      ++seen["probe"];
    } else {
      ++denied_;
    }
  }
  void open(Span most) {
    state_ = State::open;
    ++era_;
    opened_ = now();
    // Drawn uniformly from [0, most], and so perhaps over at once, where wait() still says 1 us.
    const auto draws = static_cast<std::uint64_t>(most.count()) + 1;
    const Span pause{most == Span{0} ? 0 : static_cast<Word>(same_rng_.below(draws))};
    until_ = now() + pause;
    require(breaker_.wait() == std::max(Span{1}, pause), "a pause is another");
    if (most > Span{0} && pause == Span{0}) ++seen["no pause"];
  }
  void note_result(const Call& one, Result result) {
    if (one.era != era_ || one.is_probe != (state_ == State::half_open)) return;
    if (one.is_probe) {
      if (result == Result::success) {
        state_ = State::closed;
        ++era_;
        failed_ = 0;
        probes_failed_ = 0;
        return;
      }
      open(result == Result::failure ? next_pause() : Span{0});
    } else if (result == Result::success) {
      failed_ = 0;
    } else if (result == Result::failure && ++failed_ >= terms_.breaker.failures) {
      ++trips_;
      open(next_pause());
    }
  }
  /// When to come back: after the pause, or soon if none is known.
  [[nodiscard]] Span hint() const {
    if (state_ != State::open) return terms_.breaker.first_pause;
    return now() < opened_ ? Span{1} : std::max(Span{1}, until_ - now());
  }
  Span next_pause() {
    Span pause = terms_.breaker.first_pause;
    for (int i = 0; i < probes_failed_ && pause < terms_.breaker.longest_pause; ++i) pause *= 2;
    ++probes_failed_;
    return std::min(pause, terms_.breaker.longest_pause);
  }

  // What the primary is asked.
  /// It is at this place of those that are under way, or answered.
  void sent(const Call& one, std::size_t before) {
    require(!one.sent || wire_.pending() > before, "a call is not sent");
    require(one.sent || one.answered, "a call is sent");
    if (!broken_.empty()) return;
    if (!one.sent) return without_primary(one, {});
    const Span timeout = wire_.plan(before).timeout();
    const bool none = one.timeout == Span{0};
    require(timeout == (none || (one.is_probe && one.timeout > terms_.within) ? terms_.within
                                                                              : one.timeout),
            "the deadline of the primary is another");
    require(!one.answered, "a call is answered too early");
  }
  void answer(std::size_t index) {
    Call& one = *calls_[static_cast<std::size_t>(wire_.mark_of(index)) - 1];
    std::error_code error;
    if (mostly_fails_ ? !random_.one_in(6) : random_.one_in(8)) {
      error = mostly_fails_ && !random_.one_in(4)
                  ? std::error_code(Errc::not_connected)
                  : std::error_code(errors[random_.below(16)].first);
      if (random_.one_in(20)) error = std::make_error_code(std::errc::io_error);
    }
    if (one.stop && random_.one_in(3)) one.stop->request_stop();
    if (!error) wire_.decide(index);
    one.primary = error ? Outcome{error, {}, {}, {}} : wire_.outcome(index);
    if (!error) error = one.primary->error;
    const bool by_caller = (error == Errc::unknown && one.stop && one.stop->stop_requested()) ||
                           (error == Errc::timed_out && one.timeout < Span{0});
    const bool hurried = one.timeout != Span{0} && one.timeout < terms_.within &&
                         (error == Errc::timed_out || error == Errc::unknown);
    const Sense sense = !error ? Sense::works : by_caller ? Sense::nothing : sense_of(error);
    const Result result = sense == Sense::away && !hurried     ? Result::failure
                          : sense == Sense::nothing || hurried ? Result::unclear
                                                               : Result::success;
    if (one.primary->error) {
      wire_.fail(index, error);
    } else {
      wire_.deliver(index);
    }
    note_result(one, result);
    require(breaker_.state() == state_, "the state of the breaker is another");
    require(one.answered, "a call is not answered");
    if (!error) {
      require(!one.error && one.decision == one.primary->decision, "the answer is another's");
      ++seen["primary"];
    } else if (sense == Sense::works || sense == Sense::nothing) {
      require(one.error == error, "an error is not passed on");
      ++seen["passed"];
    } else {
      without_primary(one, error);
    }
  }

  // What the caller is told without the primary.
  void without_primary(const Call& one, std::error_code error) {
    require(one.answered, "a call waits for no one");
    ++seen["without"];
    if (!error && one.timeout < Span{0}) {
      return require(one.error == Errc::timed_out, "who had no time is let in");
    }
    if (!error && one.stop && one.stop->stop_requested()) {
      return require(one.error == Errc::cancelled, "who had left is let in");
    }
    if (one.changes) {
      ++seen["no answer"];
      return require(one.error == (error ? error : std::error_code(Errc::circuit_open)),
                     "a change has an answer without the primary");
    }
    require(!one.error, "a call has no answer");
    const Decision& d = one.decision;
    switch (terms_.policy) {
      case FailurePolicy::Kind::open:
        require(d.allowed && d.source == Source::policy && d.retry_after == Span{0},
                "an open door is not open");
        return;
      case FailurePolicy::Kind::closed:
        require(!d.allowed && d.source == Source::policy, "a closed door is open");
        return require(d.retry_after == hint(), "the hint is another");
      case FailurePolicy::Kind::local:
        return local(one);
    }
  }
  /// The same request of a bucket with a share of the limit, in a store of the model's own.
  void local(const Call& one) {
    const Decision& d = one.decision;
    if (one.cost > burst / terms_.clients) {
      return require(!d.allowed && d.source == Source::policy && d.retry_after == hint(),
                     "more than a share is granted");
    }
    const TokenBucket share(*twin_, "b",
                            Quota::per_second(rate / terms_.clients).burst(burst / terms_.clients));
    Decision expected = share.try_acquire(names_[one.key], one.cost);
    expected.source = Source::fallback;
    require(d == expected, "a share is decided in another way: " + to_string(d) + " instead of " +
                               to_string(expected));
    ++seen[d.allowed ? "share allowed" : "share refused"];
  }

  void end() {
    const bool probing = state_ == State::half_open;
    std::vector<Call*> open;
    for (const auto& one : calls_) {
      if (one->sent && !one->answered) open.push_back(one.get());
    }
    store_.reset();
    for (Call* one : open) {
      require(one->answered && one->error == Errc::unknown, "a call outlives its store");
    }
    while (wire_.pending() > 0) {
      wire_.fail(0, Errc::not_connected);  // which nobody hears
    }
    if (probing) {  // the probe is left to others, at once
      state_ = State::open;
      ++era_;
      opened_ = until_ = now();
    } else if (state_ == State::closed) {
      // What was sent before says nothing.
    }
    require(breaker_.state() == state_, "a probe ends with its store");
    make();
    ++seen["ended"];
  }
  void move() {
    if (random_.one_in(15)) {
      clock_.advance(-Span{random_.between(1, 200'000)});
      ++seen["set back"];
      return;
    }
    if (state_ == State::open && until_ > now() && random_.one_in(2)) {
      clock_.set(until_ - Span{random_.between(0, 1)});
      return;
    }
    clock_.advance(Span{random_.between(0, 60'000)});
  }

  struct Slot {
    World* world;
    Call* call;
  };
  Slot* slot_of(Call& one) {
    slots_.push_back(std::make_unique<Slot>(Slot{this, &one}));
    return slots_.back().get();
  }
  static void keep(void* context, const Outcome& outcome) noexcept {
    const Slot& slot = *static_cast<Slot*>(context);
    slot.world->require(!slot.call->answered, "a call is answered twice");
    slot.call->answered = true;
    slot.call->error = outcome.error;
    slot.call->decision = outcome.decision;
  }
  int index_of(const Call& one) const {
    const auto at = std::find_if(calls_.begin(), calls_.end(),
                                 [&](const auto& each) { return each.get() == &one; });
    return static_cast<int>(at - calls_.begin()) + 1;
  }

  Random& random_;
  Terms terms_;
  SeededRng rng_{5};
  SeededRng same_rng_{5};  // the model's own, of the same draws
  VirtualClock clock_;
  std::unique_ptr<Store> far_ = make_virtual_store(clock_);
  std::unique_ptr<Store> local_ = make_virtual_store(clock_);
  std::unique_ptr<Store> twin_ = make_virtual_store(clock_);
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Slot>> slots_;
  WireStore wire_{*far_};
  CircuitBreaker breaker_;
  std::optional<FallbackStore> store_;
  TokenBucket bucket_{*local_, "b", Quota::per_second(rate).burst(burst)};
  std::array<std::string, 3> names_{"a", "b", "c"};

  State state_ = State::closed;
  std::uint64_t era_ = 0;
  std::uint32_t failed_ = 0;
  int probes_failed_ = 0;
  Time opened_{};
  Time until_{};
  bool mostly_fails_ = false;
  std::string broken_;
  std::uint64_t trips_ = 0, probes_ = 0, denied_ = 0;
};

}  // namespace

TEST_CASE("every caller is told what the pages say, and the primary is asked when it may be",
          "[fallback][model]") {
  Random random("every caller is told what the pages say, and the primary is asked when it may be");
  CAPTURE(random.repeat());
  std::map<std::string, std::size_t> seen;
  for (std::size_t life = 0; life < scaled(300, 30); ++life) {
    const Span first{random.between(1, random.one_in(4) ? 3 : 100'000)};
    World world(random,
                {.policy = static_cast<FailurePolicy::Kind>(random.between(0, 2)),
                 .clients = std::array<Word, 6>{1, 2, 3, 4, burst, burst + 1}[random.below(6)],
                 .breaker = {.failures = static_cast<std::uint32_t>(random.between(1, 4)),
                             .first_pause = first,
                             .longest_pause = first * random.between(1, 10)},
                 .within = Span{random.between(1, 100'000)}});
    world.run(300);
    for (const auto& [what, times] : world.seen) seen[what] += times;
  }
  for (const char* what : {"primary", "passed", "without", "no answer", "probe", "no pause",
                           "batch", "ended", "set back", "share allowed", "share refused"}) {
    CAPTURE(what);
    CHECK(seen[what] > 0);
  }
}

TEST_CASE("request ids do not fill the local store of an outage", "[fallback]") {
  VirtualClock clock;
  const auto whole = make_virtual_store(clock);
  WireStore primary(*whole);
  primary.drops = [](const Plan&) { return true; };
  const auto local = make_memory_store({.max_keys = 64, .max_bytes = 1 << 17, .clock = &clock});
  SeededRng rng(1);
  CircuitBreaker breaker(clock, {.rng = &rng});
  FallbackStore store(primary, breaker, FailurePolicy::local(*local, 1));
  const SlidingWindow window(store, "w", {{60'000, 1h}});
  for (std::uint64_t id = 1; id <= 5'000; ++id) {
    std::error_code error;
    const Decision decision = window.try_acquire(id % 8, 1, RequestId{1, id}, error);
    REQUIRE_FALSE(error);
    REQUIRE(decision.allowed);
  }
  CHECK(window.try_acquire("new").allowed);
  // What is repeated is decided anew.
  const Word before = window.try_acquire("new", 1, RequestId{1, 1}).remaining;
  CHECK(window.try_acquire("new", 1, RequestId{1, 1}).remaining == before - 1);
}

}  // namespace sluice::test
