#include "tests/prefetch/fleet.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/extend/operation.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/testing/invariants.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

constexpr Span back_off = 50ms;

}  // namespace

double PrefetchFleetResult::jain() const {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t each : calls_of) {
    sum += static_cast<double>(each);
    squares += static_cast<double>(each) * static_cast<double>(each);
  }
  return squares == 0 ? 0 : sum * sum / (squares * static_cast<double>(calls_of.size()));
}

Word PrefetchFleetResult::wait_at(double quantile) const {
  if (waits.empty()) return 0;
  std::vector<Word> sorted = waits;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
}

/// The connection of one process, with a clock of its own. A frozen process receives nothing until
/// it continues; behind a partition questions or answers are lost.
class PrefetchFleet::Process final : public Store {
 public:
  class OwnClock final : public Clock {
   public:
    OwnClock(VirtualClock& world, Span ahead) : world_(world), ahead_(ahead) {}
    [[nodiscard]] Time now() const noexcept override { return world_.now() + ahead_; }
    TimerState set_timer(TimerCallback& timer, Time when) override {
      return world_.set_timer(timer, when - ahead_);
    }
    bool cancel_timer(TimerCallback& timer) noexcept override { return world_.cancel_timer(timer); }

   private:
    VirtualClock& world_;
    Span ahead_;
  };

  Process(PrefetchFleet& fleet, std::uint64_t stream, Span ahead)
      : clock_(fleet.clock_, ahead),
        remote_(fleet.timeline_, fleet.store_, fleet.options_.link,
                sim::stream(fleet.options_.seed, stream, 3)) {}
  ~Process() override {
    end();
    remote_.close();
    resume();
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    if (dead) return done.fail(Errc::not_connected);
    if (partition == Partition::questions) return done.fail(Errc::not_connected);
    auto call = std::make_unique<Late>(Late{this, std::move(done), {}, {}, {}, {}});
    remote_.execute(plan, {&Process::answered, call.release()});
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return remote_.operations(); }

  void resume() {
    frozen = false;
    for (auto late = std::exchange(late_, {}); auto& one : late) one->deliver();
  }

  enum class Partition { none, questions, answers };
  Partition partition = Partition::none;
  bool frozen = false;
  bool dead = false;  // killed: what it holds is not returned

 private:
  struct Late {
    Process* process;
    Completion done;
    std::error_code error;
    Decision decision;
    std::vector<Decision> steps;
    std::vector<Word> output;
    void deliver() { done({error, decision, steps, output}); }
  };
  static void answered(void* context, const Outcome& outcome) noexcept {
    std::unique_ptr<Late> late(static_cast<Late*>(context));
    late->error = outcome.error;
    late->decision = outcome.decision;
    late->steps.assign(outcome.steps.begin(), outcome.steps.end());
    late->output.assign(outcome.output.begin(), outcome.output.end());
    Process& process = *late->process;
    if (process.partition == Partition::answers) late->error = Errc::unknown;
    if (process.frozen) return process.late_.push_back(std::move(late));
    late->deliver();
  }

  OwnClock clock_;
  std::vector<std::unique_ptr<Late>> late_;
  sim::RemoteStore remote_;
};

/// One process: its jobs, in the order of their arrival, and the request for the first of them.
class PrefetchFleet::Worker {
 public:
  Worker(PrefetchFleet& fleet, std::size_t index, double share)
      : fleet_(fleet), index_(index), jobs_(sim::stream(fleet.options_.seed, index, 1)) {
    const PrefetchFleetOptions& o = fleet.options_;
    const double rate = static_cast<double>(o.quota.refill()) /
                        static_cast<double>(o.quota.period()) * share *
                        static_cast<double>(o.load) / 100;
    gap_ = sim::Delay::exponential(
        Span{std::clamp(static_cast<Word>(1 / rate), Word{1}, Word{86'400'000'000})});
    saturated_ = o.load > 100 && o.spread == Spread::equal;
    start();
    expect();
  }

  void start() {
    const Span ahead{static_cast<Word>(jobs_.below(1'000'000'000))};
    process_ = std::make_unique<Process>(fleet_, ++made_ * 100'000 + index_, ahead);
    Store* store = process_.get();
    if (fleet_.options_.prefetch) {
      prefetch_ = std::make_unique<PrefetchStore>(*store, *fleet_.options_.prefetch);
      store = prefetch_.get();
    }
    bucket_.emplace(*store, "upstream", fleet_.options_.quota);
    ask();
  }

  void crash() {
    process_->dead = true;
    ++life_;
    operations_ += process_->operations();
    bucket_.reset();
    prefetch_.reset();
    process_.reset();
    asking_ = false;
    fleet_.timeline_.after<&Worker::on_restart>(200ms, *this);
  }
  void freeze(Span span) {
    if (process_ == nullptr || process_->frozen) return;
    process_->frozen = true;
    fleet_.timeline_.after<&Worker::on_resume>(span, *this, life_);
  }
  void part(bool questions, Span span) {
    if (process_ == nullptr) return;
    process_->partition = questions ? Process::Partition::questions : Process::Partition::answers;
    fleet_.timeline_.after<&Worker::on_heal>(span, *this, life_);
  }

  [[nodiscard]] bool is_alive() const noexcept { return process_ != nullptr; }
  [[nodiscard]] std::uint64_t operations() const noexcept {
    return operations_ + (process_ ? process_->operations() : 0);
  }
  std::uint64_t calls = 0;

 private:
  void expect() {
    if (!saturated_) fleet_.timeline_.after<&Worker::on_job>(gap_.sample(jobs_), *this);
  }
  void on_job(std::uint64_t) {
    waiting_.push_back(fleet_.timeline_.now());
    expect();
    ask();
  }
  void on_restart(std::uint64_t) { start(); }
  void on_resume(std::uint64_t life) {
    if (life != life_) return;
    process_->resume();
    ask();
  }
  void on_heal(std::uint64_t life) {
    if (life == life_) process_->partition = Process::Partition::none;
  }
  void on_again(std::uint64_t life) {
    if (life != life_) return;
    asking_ = false;
    ask();
  }

  void ask() {
    if (asking_ || process_ == nullptr || process_->frozen) return;
    if (waiting_.empty() && !saturated_) return;
    asking_ = true;
    auto call = std::make_unique<Call>(Call{this, life_});
    bucket_->store().execute(bucket_->acquire_step("k"), {&Worker::decided, call.release()});
  }
  struct Call {
    Worker* worker;
    std::uint64_t life;
  };
  static void decided(void* context, const Outcome& outcome) noexcept {
    const std::unique_ptr<Call> call(static_cast<Call*>(context));
    if (call->life == call->worker->life_) call->worker->on_decided(outcome);
  }
  void on_decided(const Outcome& outcome) {
    if (outcome.error || !outcome.decision.allowed) {
      const Span wait = outcome.error ? back_off : outcome.decision.retry_after;
      fleet_.timeline_.after<&Worker::on_again>(wait, *this, life_);
      return;
    }
    ++calls;
    Time wanted = fleet_.timeline_.now();
    if (!waiting_.empty()) {
      wanted = waiting_.front();
      waiting_.pop_front();
    }
    fleet_.call(index_, wanted);
    // The next job is another event, so that no chain of local decisions recurses.
    fleet_.timeline_.after<&Worker::on_again>(Span{1}, *this, life_);
  }

  PrefetchFleet& fleet_;
  std::size_t index_;
  SeededRng jobs_;
  sim::Delay gap_ = sim::Delay::constant(1s);
  bool saturated_ = false;
  std::deque<Time> waiting_;
  bool asking_ = false;
  std::uint64_t life_ = 0;
  std::uint64_t made_ = 0;
  std::uint64_t operations_ = 0;
  std::unique_ptr<Process> process_;
  std::unique_ptr<PrefetchStore> prefetch_;
  std::optional<TokenBucket> bucket_;
};

PrefetchFleet::PrefetchFleet(const PrefetchFleetOptions& options)
    : options_(options), faults_(sim::stream(options.seed, 0, 2)) {
  double weights = 0;
  const auto weight_of = [&](std::size_t i) {
    return options.spread == Spread::equal ? 1.0 : 1.0 / static_cast<double>(i + 1);
  };
  for (std::size_t i = 0; i < options.workers; ++i) weights += weight_of(i);
  for (std::size_t i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(*this, i, weight_of(i) / weights));
  }
}

PrefetchFleet::~PrefetchFleet() = default;

void PrefetchFleet::plan_faults(Span span) {
  if (!options_.faults) return;
  const std::uint64_t count = 1 + faults_.below(2 * options_.workers);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Span when{static_cast<Word>(faults_.below(static_cast<std::uint64_t>(span.count())))};
    timeline_.after<&PrefetchFleet::on_fault>(when, *this, faults_.next());
  }
}

void PrefetchFleet::on_fault(std::uint64_t value) {
  Worker& worker = *workers_[value / 16 % workers_.size()];
  const Word hold = options_.prefetch ? options_.prefetch->hold.count() : 1'000'000;
  // From a tenth of `hold` to three times that.
  const Span span{hold / 10 + static_cast<Word>(value / 4096) % (3 * hold)};
  switch (value % 8) {
    case 0:
      store_.forget();
      failovers_.push_back(timeline_.now());
      ++counts_.failovers;
      return;
    case 1:
    case 2:
      if (worker.is_alive()) worker.crash();
      ++counts_.crashes;
      return;
    case 3:
    case 4:
      worker.part(value % 8 == 3, span);
      ++counts_.partitions;
      return;
    default:
      worker.freeze(span);
      ++counts_.pauses;
  }
}

void PrefetchFleet::call(std::size_t worker, Time wanted) {
  const Time now = timeline_.now();
  calls_.push_back({now, 1, true, now, Span{0}, 0, worker});
  waits_.push_back((now - wanted).count());
}

void PrefetchFleet::run_for(Span span) {
  plan_faults(span);
  timeline_.run_until(timeline_.now() + span);
}

/// In any interval of t at most burst + rate * (t + hold). Each time that the store forgets what it
/// granted, from `hold` before the interval on, adds a burst, and the units that were reserved
/// ahead.
std::string PrefetchFleet::judge() const {
  const Quota& q = options_.quota;
  const Word hold = options_.prefetch ? options_.prefetch->hold.count() : 0;
  const Word slack = options_.link.from_store.max().count();  // of an answer on its way
  // A reservation may be 1 us late, and the next one that much closer.
  const Word late = ((std::max(hold, slack) + 1) * q.refill() + q.period() - 1) / q.period();
  const std::size_t n = failovers_.size();
  for (std::size_t i = 0; i <= n; ++i) {
    for (std::size_t j = i; j <= n; ++j) {
      // Calls whose grants come from the time after the failover i-1 and before the failover j.
      const Time from = i == 0 ? Time{} : failovers_[i - 1] + Span{hold};
      const Time until = j == n ? Time::max() : failovers_[j];
      testing::History some;
      std::copy_if(calls_.begin(), calls_.end(), std::back_inserter(some),
                   [&](const auto& one) { return one.at >= from && one.at < until; });
      const Word stores = static_cast<Word>(j - i) + 1;
      const testing::RateBound bound{stores * (q.capacity() + late), q.refill(), Span{q.period()}};
      if (const auto breach = testing::check_rate(some, bound)) return breach->what;
    }
  }
  return {};
}

PrefetchFleetResult run_with_faults(std::uint64_t seed) {
  SeededRng draw = sim::stream(seed, 0, 0);
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[draw.below(all.size())];
  };
  PrefetchFleetOptions options;
  options.seed = seed;
  options.workers = 1 + draw.below(8);
  options.quota = Quota::per_second(one_of(5, 40, 300)).burst(one_of(3, 20, 200));
  options.prefetch = PrefetchStoreOptions{.hold = one_of(Span{50ms}, Span{500ms}, Span{3s}),
                                          .most = one_of(Word{5}, Word{50}, Word{1000})};
  options.load = one_of(60, 100, 200);
  options.spread = one_of(Spread::equal, Spread::zipf);
  options.faults = true;
  PrefetchFleet fleet(options);
  fleet.run_for(20s);
  return fleet.result();
}

PrefetchFleetResult PrefetchFleet::result() const {
  PrefetchFleetResult result = counts_;
  result.calls = calls_.size();
  result.waits = waits_;
  for (const auto& worker : workers_) {
    result.calls_of.push_back(worker->calls);
    result.operations += worker->operations();
  }
  result.breach = judge();
  return result;
}

}  // namespace sluice::test
