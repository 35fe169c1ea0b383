// The model of a FallbackStore and its CircuitBreaker: random programs in front of a primary whose
// answers come when they like, in any order, fail in every way, or get lost, with clocks set back,
// deadlines, stop tokens, batches and ends of a store at every point. Two stores share a breaker
// with several parts. A few lines a rule say what each caller and each listener is told, which
// calls the primary sees, and what the local store is asked. Threading: single-threaded.
#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/token_bucket.hpp"
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
  std::array<FailurePolicy::Kind, 2> policies;  // of two stores with one breaker
  Word clients;
  BreakerOptions breaker;
  Span within;
};

constexpr Word burst = 13;
constexpr Word rate = 59;
constexpr std::array<Word, 2> limits{6, 30};  // of leases

/// What a caller is told.
struct Told {
  std::error_code error{};
  Decision decision{};
  std::vector<Word> output{};

  Told() = default;
  explicit Told(const Outcome& outcome)
      : error(outcome.error),
        decision(outcome.decision),
        output(outcome.output.begin(), outcome.output.end()) {}
  friend bool operator==(const Told& a, const Told& b) {
    return a.error == b.error && (a.error || (a.decision == b.decision && a.output == b.output));
  }
};
Told ask(Store& store, Step step) {
  Told told;
  step.store = nullptr;  // any
  step.binding = nullptr;
  decide_then(store, step, [&](const Outcome& outcome) { told = Told(outcome); });
  return told;
}

enum class Kind { take, reset, lease, renew, release };

struct Call {
  std::size_t number = 0;
  std::size_t store = 0;
  Kind kind = Kind::take;
  Word cost = 1;
  Word tier = 0;
  LeaseId lease{};
  std::size_t limit = 0;  // of the leases
  std::size_t key = 0;
  Errc fault{};  // of the plan, whatever any store says
  std::optional<RequestId> id{};
  Span timeout{0};
  std::shared_ptr<StopSource> stop{};
  bool sent = false;
  bool is_probe = false;
  bool ended = false;  // with its store
  std::uint64_t era = 0;
  std::uint64_t comebacks = 0;
  Span hint{0};  // if the primary does not decide it
  bool answered = false;
  Told told{};

  [[nodiscard]] bool is_of_lease() const { return kind == Kind::renew || kind == Kind::release; }
  /// Nobody else knows the id of its lease.
  [[nodiscard]] bool is_fresh() const { return kind == Kind::lease && lease.high == 2; }
  /// Whether the store that answered has the lease.
  [[nodiscard]] bool is_held(const Told& told_so) const {
    if (told_so.error || !told_so.decision.allowed) return false;
    return kind == Kind::renew || told_so.output[0] == 1;
  }
};

/// A local store, and how it was asked.
class Local final : public StoreWrapper {
 public:
  struct Asked {
    Span timeout;
    bool can_stop;
    bool has_id;
  };
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    asked.push_back({plan.timeout(), plan.stop().stop_possible(), plan.id().has_value()});
    StoreWrapper::execute(plan, std::move(done));
  }
  std::deque<Asked> asked;
};

/// A part of the primary.
struct Part {
  unsigned number = 0;
  State state = State::closed;
  std::uint64_t era = 0;
  std::uint32_t failed = 0;
  int pauses = 0;           // since it was closed
  std::uint64_t tried = 0;  // the most comebacks of a call that failed
  Time opened{};
  Time until{};
};

class World {
 public:
  World(Random& random, const Terms& terms)
      : random_(random),
        terms_(terms),
        breaker_(clock_, drawing(terms.breaker), [this](unsigned part, State from, State to) {
          changed({part, from, to});
        }) {
    wire_.parts = [this](const Key& key) { return part_of(key); };
    make(0);
    make(1);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      check();
    }
    while (wire_.pending() > 0) answer(0);
    for (const auto& call : calls_) require(call->answered, "a call is not answered");
    check();
  }
  std::map<std::string, std::size_t> seen;

 private:
  using Change = std::tuple<unsigned, State, State>;

  /// A listener may call a store, also about the answer that is being noted.
  void changed(const Change& change) {
    changes_.push_back(change);
    if (!noting_) return;
    note_result();
    if (random_.one_in(3)) call();
  }
  BreakerOptions drawing(BreakerOptions options) {
    options.rng = &rng_;
    return options;
  }
  void make(std::size_t store) {
    const auto policy = policy_of(terms_.policies[store], local_, terms_.clients);
    stores_[store].emplace(wire_, breaker_, policy, terms_.within);
    stats_[store] = {};
    has_leased_[store] = false;
  }
  /// Remembered, because answers come where nothing may throw.
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.empty()) broken_ = what;
  }
  void check() {
    for (const Part& part : parts_) {
      require(breaker_.state(part.number) == part.state, "the state of a part is another");
    }
    require(changes_ == expected_changes_, "other changes are told");
    require(breaker_.stats().trips == trips_ && breaker_.stats().probes == probes_ &&
                breaker_.stats().denied == denied_,
            "the statistics of the breaker are others");
    for (std::size_t i = 0; i < 2; ++i) {
      const FallbackStats is = stores_[i]->stats();
      const FallbackStats& model = stats_[i];
      require(is.primary == model.primary && is.failures == model.failures &&
                  is.degraded_grants == model.degraded_grants &&
                  is.degraded_refusals == model.degraded_refusals &&
                  is.degraded_errors == model.degraded_errors && is.unreadable == model.unreadable,
              "the statistics of a store are others");
    }
    require(local_.asked.empty(), "the local store is asked in vain");
    CAPTURE(broken_, static_cast<int>(terms_.policies[0]), static_cast<int>(terms_.policies[1]),
            terms_.clients, calls_.size());
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
    if (draw < 89) {
      ++comebacks_[random_.below(comebacks_.size())];
      return;
    }
    move();
  }
  Call& draw_call(std::size_t store) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.number = calls_.size();
    call.store = store;
    call.kind = random_.one_in(2) ? Kind::take : static_cast<Kind>(random_.below(5));
    call.cost = random_.one_in(8) ? random_.between(2, burst) : 1;
    call.tier = random_.between(0, 3);
    call.lease = {1, random_.below(3)};
    if (random_.one_in(2)) call.lease = {2, call.number};
    call.limit = random_.below(limits.size());
    call.key = random_.below(4);
    if (call.kind == Kind::take && random_.one_in(12)) {
      call.fault = Errc::cost_exceeds_capacity;
      call.cost = burst + 1;
    }
    if (random_.one_in(20)) {
      call.fault = Errc::invalid_key;
      call.key = 4;
    }
    if (random_.one_in(8)) call.id = RequestId{1, call.number};
    if (random_.one_in(3)) {
      const Word within = terms_.within.count();
      const Word about = random_.between(std::max(Word{1}, within - 1), within + 1);
      call.timeout = Span{random_.one_in(3) ? about : random_.between(1, 2 * within)};
    }
    if (random_.one_in(12)) call.timeout = Span{-1};
    if (random_.one_in(6)) call.stop = std::make_shared<StopSource>();
    if (call.stop && random_.one_in(4)) call.stop->request_stop();
    return call;
  }
  Step step_of(const Call& call, std::string_view tag) const {
    if (call.kind == Kind::take) return bucket_.acquire_step(tag, call.cost);
    if (call.kind == Kind::reset) return bucket_.reset_step(tag);
    const ConcurrencyLimiter& jobs = jobs_[call.limit];
    const Key key{tag, call.limit == 0 ? "few" : "many"};
    if (call.kind == Kind::renew) return jobs.renew_step(key, call.lease);
    if (call.kind == Kind::release) return jobs.release_step(key, call.lease);
    Step step = jobs.acquire_step(key, call.lease);
    step.args[3] = call.tier;
    if (call.is_fresh()) step.args[4] = 0;
    return step;
  }
  Step step_of(const Call& call) const { return step_of(call, names_[call.key]); }
  static Plan plan_of(const Call& call, const Step& step) {
    Plan plan(step);
    if (call.timeout != Span{0}) plan = plan.within(call.timeout);
    if (call.id) plan = plan.idempotent(*call.id);
    return call.stop ? plan.cancelled_by(call.stop->get_token()) : plan;
  }
  void call() {
    Call& one = draw_call(random_.below(2));
    const Step step = step_of(one);
    expect(one);
    const std::size_t before = wire_.pending();
    wire_.mark = static_cast<int>(one.number);
    stores_[one.store]->execute(plan_of(one, step), {&World::keep, slot_of(one)});
    sent(one, before);
    require(wire_.pending() == before + (one.sent ? 1 : 0), "a call is sent twice");
  }
  /// Calls of closed parts go together, before the others, which may be probes, one by one.
  void batch() {
    const std::size_t store = random_.below(2);
    std::vector<Call*> all;
    std::vector<Step> steps;
    std::vector<Plan> plans;
    std::vector<Completion> done;
    for (auto left = random_.between(1, 5); left > 0; --left) all.push_back(&draw_call(store));
    for (Call* one : all) steps.push_back(step_of(*one));
    std::vector<Call*> order;
    for (const bool together : {true, false}) {
      for (Call* one : all) {
        const bool is_closed = parts_[part_at(one->key)].state == State::closed;
        if (together == is_closed) order.push_back(one);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      plans.push_back(plan_of(*all[i], steps[i]));
      done.push_back({&World::keep, slot_of(*all[i])});
    }
    bool is_any_together = false;
    for (Call* one : order) {
      expect(*one);
      is_any_together = is_any_together || (one->sent && !one->is_probe);
    }
    std::size_t place = wire_.pending();
    const std::size_t batches = wire_.batches();
    stores_[store]->execute_batch(plans, done);
    require(wire_.batches() == batches + (is_any_together ? 1 : 0), "a batch is torn");
    for (const Call* one : order) {
      if (one->sent && place < wire_.pending()) {
        wire_.set_mark(place, static_cast<int>(one->number));
      }
      sent(*one, place);
      if (one->sent) ++place;
    }
    require(wire_.pending() == place, "more than a batch is sent");
    ++seen["batch"];
  }

  // The breaker of the model: a state for each part, of which the last has two numbers.
  using Result = CircuitBreaker::Result;
  static std::size_t part_at(std::size_t key) {
    return key == 4 ? 0 : std::min<std::size_t>(key, 2);
  }
  StorePart part_of(const Key& key) const {
    constexpr unsigned last = CircuitBreaker::max_parts - 1;
    constexpr unsigned most = std::numeric_limits<unsigned>::max();
    const std::array<unsigned, 5> numbers{0, 2, last, terms_.clients == 1 ? most : last + 1, 0};
    const auto at = static_cast<std::size_t>(
        std::find(names_.begin(), names_.end() - 1, key.tag()) - names_.begin());
    return {numbers[at], at < 4 ? comebacks_[at] : 0};
  }
  void change(Part& part, State to) {
    expected_changes_.emplace_back(part.number, part.state, to);
    part.state = to;
  }
  void expect(Call& one) {
    if (one.fault != Errc{}) return;  // before it could be a probe
    Part& part = parts_[part_at(one.key)];
    one.era = part.era;
    one.comebacks = comebacks_[one.key];
    const bool is_back = one.comebacks > part.tried;
    if (part.state == State::closed) {
      one.sent = true;
    } else if (part.state == State::open &&
               (is_back || now() >= part.until || now() < part.opened)) {
      if (is_back && now() < part.until && now() >= part.opened) ++seen["comeback"];
      one.sent = one.is_probe = true;
      change(part, State::half_open);
      ++probes_;
      ++seen["probe"];
    } else {
      ++denied_;
      one.hint = hint(part);
    }
    if (one.sent) ++stats_[one.store].primary;
  }
  void open(Part& part, Span most) {
    change(part, State::open);
    ++part.era;
    part.opened = now();
    // Drawn uniformly from [0, most], and so perhaps over at once, where wait() still says 1 us.
    const auto draws = static_cast<std::uint64_t>(most.count()) + 1;
    const Span pause{most == Span{0} ? 0 : static_cast<Word>(same_rng_.below(draws))};
    part.until = now() + pause;
    require(breaker_.wait(part.number) == std::max(Span{1}, pause), "a pause is another");
    if (most > Span{0} && pause == Span{0}) ++seen["no pause"];
  }
  void note_result() {
    if (!noting_) return;
    const auto [call, result] = *std::exchange(noting_, std::nullopt);
    const Call& one = *call;
    Part& part = parts_[part_at(one.key)];
    if (result == Result::failure) part.tried = std::max(part.tried, one.comebacks);
    if (one.era != part.era || one.is_probe != (part.state == State::half_open)) return;
    if (one.is_probe) {
      if (result == Result::success) {
        change(part, State::closed);
        ++part.era;
        part.failed = 0;
        part.pauses = 0;
        return;
      }
      open(part, result == Result::failure ? next_pause(part) : Span{0});
    } else if (result == Result::success) {
      part.failed = 0;
    } else if (result == Result::failure && ++part.failed >= terms_.breaker.failures) {
      ++trips_;
      open(part, next_pause(part));
    }
  }
  /// When to come back: after the pause, or soon if none is known.
  [[nodiscard]] Span hint(const Part& part) const {
    if (part.state != State::open) return terms_.breaker.first_pause;
    return now() < part.opened ? Span{1} : std::max(Span{1}, part.until - now());
  }
  Span next_pause(Part& part) {
    Span pause = terms_.breaker.first_pause;
    for (int i = 0; i < part.pauses && pause < terms_.breaker.longest_pause; ++i) pause *= 2;
    ++part.pauses;
    return std::min(pause, terms_.breaker.longest_pause);
  }

  // What the primary is asked.
  /// It is at this place of those that are under way, or answered.
  void sent(const Call& one, std::size_t before) {
    require(!one.sent || wire_.pending() > before, "a call is not sent");
    if (one.sent) ++under_way_;
    require(one.sent || one.answered, "a call is sent");
    if (!broken_.empty()) return;
    if (one.fault != Errc{}) {
      ++seen["fault"];
      return require(one.told.error == one.fault, "a plan at fault is told something else");
    }
    if (!one.sent) return without_primary(one, {});
    const Plan plan = wire_.plan(before);
    const bool none = one.timeout == Span{0};
    require(plan.timeout() == (none || (one.is_probe && one.timeout > terms_.within) ? terms_.within
                                                                                     : one.timeout),
            "the deadline of the primary is another");
    require(plan.stop().stop_possible() == (one.stop != nullptr) && plan.id() == one.id,
            "the primary is asked in another way");
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
    Told primary;
    primary.error = error;
    if (!error) {
      wire_.decide(index);
      primary = Told(wire_.outcome(index));
      error = primary.error;
    }
    const bool by_caller = (error == Errc::unknown && one.stop && one.stop->stop_requested()) ||
                           (error == Errc::timed_out && one.timeout < Span{0});
    const bool hurried = one.timeout != Span{0} && one.timeout < terms_.within &&
                         (error == Errc::timed_out || error == Errc::unknown);
    const Sense sense = !error ? Sense::works : by_caller ? Sense::nothing : sense_of(error);
    if (!one.ended) {
      noting_.emplace(&one, sense == Sense::away && !hurried     ? Result::failure
                            : sense == Sense::nothing || hurried ? Result::unclear
                                                                 : Result::success);
    }
    --under_way_;
    wire_.is_decided(index) ? wire_.deliver(index) : wire_.fail(index, error);
    if (!one.ended && one.is_fresh() && error == Failure::unknown) given_back(one);
    require(wire_.pending() == under_way_, "the primary is asked for nothing");
    if (one.ended) return;  // nobody hears
    note_result();
    one.hint = hint(parts_[part_at(one.key)]);
    require(one.answered, "a call is not answered");
    if (sense == Sense::away) ++stats_[one.store].failures;
    if (sense == Sense::unreadable) ++stats_[one.store].unreadable;
    if (sense == Sense::away || sense == Sense::unreadable) return without_primary(one, error);
    if (!error && one.is_of_lease() && !one.is_held(primary) && has_leased_[one.store]) {
      return by_holder(one, primary);
    }
    require(one.told == primary, "the answer is another's");
    ++seen[error ? "passed" : "primary"];
  }
  /// What the primary may have granted without an answer.
  void given_back(const Call& one) {
    const Key key{names_[one.key], one.limit == 0 ? "few" : "many"};
    const Step release = jobs_[one.limit].release_step(key, one.lease);
    if (wire_.pending() == 0) return require(false, "a lease is not given back");
    const std::size_t last = wire_.pending() - 1;
    const Plan plan = wire_.plan(last);
    const Step& step = plan.steps()[0];
    require(step.operation == release.operation && step.key == key && step.args == release.args,
            "another lease is given back");
    require(plan.timeout() == 1s, "a lease is given back after its end");
    wire_.answer(last);
    ++seen["given back"];
  }

  // What the caller is told without the primary.
  void without_primary(const Call& one, std::error_code error) {
    require(one.answered, "a call waits for no one");
    ++seen["without"];
    if (!error && one.timeout < Span{0}) {
      return require(one.told.error == Errc::timed_out, "who had no time is let in");
    }
    if (!error && one.stop && one.stop->stop_requested()) {
      return require(one.told.error == Errc::cancelled, "who had left is let in");
    }
    Told none;
    none.error = error ? error : std::error_code(Errc::circuit_open);
    const FailurePolicy::Kind policy = terms_.policies[one.store];
    const bool is_local = policy == FailurePolicy::Kind::local;
    if (is_local && one.is_of_lease()) return by_holder(one, none);
    if (one.kind == Kind::reset || one.is_of_lease()) {
      ++seen["no answer"];
      ++stats_[one.store].degraded_errors;
      return require(one.told == none, "a change has an answer without the primary");
    }
    if (is_local && share_of(one) >= (one.kind == Kind::take ? one.cost : 1)) return by_share(one);
    // As for a key without state, but that the policy admits or refuses.
    const std::string fresh = std::to_string(one.number);
    Told expected = ask(*blank_, step_of(one, fresh));
    Decision& decision = expected.decision;
    decision.source = Source::policy;
    decision.allowed = policy == FailurePolicy::Kind::open;
    if (decision.allowed) {
      if (one.kind == Kind::lease) expected.output[2] = 0;  // the fence
      ++stats_[one.store].degraded_grants;
    } else {
      decision.remaining = 0;
      decision.reset_after = Span{0};
      decision.retry_after = one.hint;
      for (std::size_t i = 1; i < expected.output.size(); ++i) expected.output[i] = 0;
      ++stats_[one.store].degraded_refusals;
    }
    require(one.told == expected,
            "the policy decides in another way: " + to_string(one.told.decision) + " instead of " +
                to_string(decision));
  }
  [[nodiscard]] Word share_of(const Call& one) const {
    return (one.kind == Kind::take ? burst : limits[one.limit]) / terms_.clients;
  }
  /// The same request with a share of the limit, in a store of the model's own.
  Told twin_of(const Call& one) {
    if (local_.asked.empty()) {
      require(false, "the local store is not asked");
      return {};
    }
    const Local::Asked asked = local_.asked.front();
    local_.asked.pop_front();
    require(
        asked.timeout == one.timeout && asked.can_stop == (one.stop != nullptr) && !asked.has_id,
        "the local store is asked in another way");
    Told told;
    if (one.kind == Kind::take) {
      const TokenBucket share(*twin_, "b",
                              Quota::per(rate, 1s * terms_.clients).burst(share_of(one)));
      told = ask(*twin_, share.acquire_step(names_[one.key], one.cost));
    } else {
      Step step = step_of(one);
      step.args[0] = share_of(one);
      told = ask(*twin_, step);
    }
    if (one.kind == Kind::lease) told.output[2] = 0;  // the fence
    told.decision.source = Source::fallback;
    return told;
  }
  void by_share(const Call& one) {
    const Told expected = twin_of(one);
    if (one.kind == Kind::lease) has_leased_[one.store] = true;
    const bool allowed = expected.decision.allowed;
    ++(allowed ? stats_[one.store].degraded_grants : stats_[one.store].degraded_refusals);
    require(one.told == expected,
            "a share is decided in another way: " + to_string(one.told.decision) + " instead of " +
                to_string(expected.decision));
    ++seen[allowed ? "share allowed" : "share refused"];
  }
  /// A lease that the primary does not have: perhaps the local store has granted it.
  void by_holder(const Call& one, const Told& primary) {
    Told expected = primary;
    if (const Told twin = share_of(one) > 0 ? twin_of(one) : Told(); one.is_held(twin)) {
      expected = twin;
      ++stats_[one.store].degraded_grants;
      ++seen[primary.error ? "holder" : "holder after the outage"];
    } else if (primary.error) {
      ++stats_[one.store].degraded_errors;
    }
    require(one.told == expected, "a lease is another's");
  }

  void end() {
    const std::size_t store = random_.below(2);
    std::vector<Call*> open;
    for (const auto& one : calls_) {
      if (one->store == store && one->sent && !one->answered) open.push_back(one.get());
    }
    stores_[store].reset();
    for (Call* one : open) {
      require(one->answered && one->told.error == Errc::unknown, "a call outlives its store");
      one->ended = true;
      if (!one->is_probe) continue;                    // what was sent before says nothing
      this->open(parts_[part_at(one->key)], Span{0});  // it is left to others, at once
      ++seen["probe ended"];
    }
    make(store);
    ++seen["ended"];
  }
  void move() {
    const Part& part = parts_[random_.below(parts_.size())];
    far_clock_.advance(Span{random_.between(0, 60'000)});
    if (random_.one_in(15)) {
      clock_.advance(-Span{random_.between(1, 200'000)});
      ++seen["set back"];
      return;
    }
    if (part.state == State::open && part.until > now() && random_.one_in(2)) {
      clock_.set(part.until - Span{random_.between(0, 1)});
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
    slot.call->told = Told(outcome);
    slot.world->require(
        outcome.error || (outcome.steps.size() == 1 && outcome.steps[0] == outcome.decision),
        "the step is told something else than the caller");
  }

  Random& random_;
  Terms terms_;
  SeededRng rng_{5};
  SeededRng same_rng_{5};  // the model's own, of the same draws
  VirtualClock clock_;
  VirtualClock far_clock_;  // the primary's
  std::unique_ptr<Store> far_ = make_virtual_store(far_clock_);
  std::unique_ptr<Store> blank_ = make_virtual_store(far_clock_);
  std::unique_ptr<Store> near_ = make_virtual_store(clock_);
  std::unique_ptr<Store> twin_ = make_virtual_store(clock_);
  Local local_{*near_};
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Change> changes_;
  WireStore wire_{*far_};
  CircuitBreaker breaker_;
  std::array<std::optional<FallbackStore>, 2> stores_;
  TokenBucket bucket_{*near_, "b", Quota::per_second(rate).burst(burst)};
  std::array<ConcurrencyLimiter, 2> jobs_{
      ConcurrencyLimiter(*near_, "few", limits[0], {.ttl = 1s}),
      ConcurrencyLimiter(*near_, "many", limits[1], {.ttl = 1s})};
  std::array<std::string, 5> names_{"a", "b", "c", "d", ""};

  std::array<Part, 3> parts_{
      {{.number = 0}, {.number = 2}, {.number = CircuitBreaker::max_parts - 1}}};
  std::array<std::uint64_t, 4> comebacks_{};
  std::array<FallbackStats, 2> stats_;
  std::array<bool, 2> has_leased_{};
  std::vector<Change> expected_changes_;
  std::optional<std::pair<Call*, Result>> noting_;  // the answer that is on its way
  bool mostly_fails_ = false;
  std::string broken_;
  std::size_t under_way_ = 0;  // to the primary
  std::uint64_t trips_ = 0, probes_ = 0, denied_ = 0;
};

}  // namespace

TEST_CASE("every caller is told what the pages say, and the primary is asked when it may be",
          "[fallback][model]") {
  Random random("every caller is told what the pages say, and the primary is asked when it may be");
  CAPTURE(random.repeat());
  std::map<std::string, std::size_t> seen;
  for (std::size_t life = 0; life < scaled(300, 60); ++life) {
    const Span first{random.between(1, random.one_in(4) ? 3 : 100'000)};
    World world(random,
                {.policies = {static_cast<FailurePolicy::Kind>(random.between(0, 2)),
                              static_cast<FailurePolicy::Kind>(random.between(0, 2))},
                 .clients = std::array<Word, 6>{1, 2, 3, 4, burst, burst + 1}[random.below(6)],
                 .breaker = {.failures = static_cast<std::uint32_t>(random.between(1, 4)),
                             .first_pause = first,
                             .longest_pause = first * random.between(1, 10)},
                 .within = Span{random.between(1, 100'000)}});
    world.run(300);
    for (const auto& [what, times] : world.seen) seen[what] += times;
  }
  for (const char* what :
       {"primary", "passed", "without", "no answer", "fault", "probe", "probe ended", "comeback",
        "no pause", "batch", "ended", "set back", "share allowed", "share refused", "holder",
        "holder after the outage", "given back"}) {
    CAPTURE(what);
    CHECK(seen[what] > 0);
  }
}

}  // namespace sluice::test
