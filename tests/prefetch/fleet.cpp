#include "tests/prefetch/fleet.hpp"

#include <algorithm>
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

/// The connection of one process, with a clock of its own.
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
        remote_(fleet.timeline_, *fleet.store_, fleet.options_.link,
                sim::stream(fleet.options_.seed, stream, 3)) {}
  ~Process() override {
    end();
    remote_.close();
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    remote_.execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return remote_.operations(); }

 private:
  OwnClock clock_;
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
    const Span ahead{static_cast<Word>(jobs_.below(1'000'000'000))};
    process_ = std::make_unique<Process>(fleet_, 100'000 + index_, ahead);
    Store* store = process_.get();
    if (o.prefetch) {
      prefetch_ = std::make_unique<PrefetchStore>(*store, *o.prefetch);
      store = prefetch_.get();
    }
    bucket_.emplace(*store, "upstream", o.quota);
    ask();
    expect();
  }
  [[nodiscard]] std::uint64_t operations() const noexcept { return process_->operations(); }
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
  void on_again(std::uint64_t) {
    asking_ = false;
    ask();
  }
  void ask() {
    if (asking_ || (waiting_.empty() && !saturated_)) return;
    asking_ = true;
    bucket_->store().execute(bucket_->acquire_step("k"), {&Worker::decided, this});
  }
  static void decided(void* context, const Outcome& outcome) noexcept {
    static_cast<Worker*>(context)->on_decided(outcome);
  }
  void on_decided(const Outcome& outcome) {
    if (outcome.error || !outcome.decision.allowed) {
      const Span wait = outcome.error ? back_off : outcome.decision.retry_after;
      fleet_.timeline_.after<&Worker::on_again>(wait, *this);
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
    fleet_.timeline_.after<&Worker::on_again>(Span{1}, *this);
  }

  PrefetchFleet& fleet_;
  std::size_t index_;
  SeededRng jobs_;
  sim::Delay gap_ = sim::Delay::constant(1s);
  bool saturated_ = false;
  std::deque<Time> waiting_;
  bool asking_ = false;
  std::unique_ptr<Process> process_;
  std::unique_ptr<PrefetchStore> prefetch_;
  std::optional<TokenBucket> bucket_;
};

PrefetchFleet::PrefetchFleet(const PrefetchFleetOptions& options) : options_(options) {
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

void PrefetchFleet::call(std::size_t worker, Time wanted) {
  const Time now = timeline_.now();
  calls_.push_back({now, 1, true, now, Span{0}, 0, worker});
  waits_.push_back((now - wanted).count());
}

void PrefetchFleet::run_for(Span span) { timeline_.run_until(timeline_.now() + span); }

/// In any interval of t at most burst + rate * (t + hold).
std::string PrefetchFleet::judge() const {
  const Quota& q = options_.quota;
  const Word hold = options_.prefetch ? options_.prefetch->hold.count() : 0;
  const Word slack = options_.link.from_store.max().count();  // of an answer on its way
  // A reservation may be 1 us late, and the next one that much closer.
  const Word late = ((std::max(hold, slack) + 1) * q.refill() + q.period() - 1) / q.period();
  const auto breach =
      testing::check_rate(calls_, {q.capacity() + late, q.refill(), Span{q.period()}});
  return breach ? breach->what : "";
}

PrefetchFleetResult PrefetchFleet::result() const {
  PrefetchFleetResult result;
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
