// Callers that come at random to processes that wait for one limit, and may give up: a model for
// tests. Threading: everything on the thread that moves the clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/waiting/wait_queues.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

/// How a caller that has waited for its patience leaves.
enum class Leaving : std::uint8_t { never, cancels, deadline, dropped };

struct CrowdOptions {
  std::size_t processes = 1;
  double arrivals = 10;  ///< a second, of all processes
  Word rate = 5;         ///< units of the limit a second
  Span length = std::chrono::minutes{10};
  Span slowest{0};  ///< of a Wire
  bool across_processes = true;
  bool loses_wake_ups = false;
  std::size_t busy = 1;  ///< the first process has so many times the others' arrivals
  Leaving leaving = Leaving::never;
  double patience = 2;  ///< seconds, the mean of an exponential distribution
  Word most = 1;        ///< units of a caller: 1 to this
  std::uint64_t seed = 1;
};

/// A caller as a planner knows it.
struct Plans {
  Time came;
  Time leaves;
  Word units;
};

/// What came of it.
struct Crowded {
  std::uint64_t operations = 0;
  std::uint64_t entries = 0;  ///< of them, those that enter or renew a ticket
  std::uint64_t units = 0;
  std::uint64_t refusals = 0;
  bool is_fifo = true;        ///< within each process
  Span passed_over{0};        ///< a caller saw one granted that had come so much later, at most
  Span longest_refusal{0};    ///< a refusal was told so long after the call, at most
  bool is_told_late = false;  ///< ... or behind its deadline
  std::vector<Plans> callers{};
  std::vector<Time> granted_at{};
  std::vector<double> of_process{};  ///< grants

  [[nodiscard]] double grants() const { return static_cast<double>(granted_at.size()); }
  [[nodiscard]] double operations_per_grant() const {
    return static_cast<double>(operations) / grants();
  }
  /// Jain's index over the processes' grants.
  [[nodiscard]] double fairness() const {
    double squares = 0;
    for (const double each : of_process) squares += each * each;
    return grants() * grants() / (static_cast<double>(of_process.size()) * squares);
  }
};

/// The processes know nothing of each other. `make(store)` makes one's limiter.
template <class L>
class Crowd {
 public:
  using Make = std::function<L(Store&)>;

  Crowd(const CrowdOptions& options, const Make& make) : options_(options), rng_(options.seed) {
    for (std::size_t i = 0; i < options.processes; ++i) {
      Process& process = processes_.emplace_back(*this, i);
      process.wire = std::make_unique<Wire>(*store_, time_, options.seed * 1000 + i);
      process.wire->loses_wake_ups = options.loses_wake_ups;
      process.limiter = std::make_unique<L>(make(*process.wire));
      WaitQueueOptions queue{.across_processes = options.across_processes,
                             .client = static_cast<std::int64_t>(i + 1)};
      if (options.leaving == Leaving::dropped) {
        queue.max_waiters = 5;
        queue.overflow = Overflow::drop_oldest;
      }
      process.limiter->set_wait_queue(queue);
    }
    for (Process& process : processes_) {
      process.wire->operations = process.wire->entries = 0;
      process.wire->slowest = options.slowest;
    }
    result_.of_process.resize(options.processes);
  }
  ~Crowd() {
    for (Process& process : processes_) {
      process.limiter->cancel_waits();
      process.wire->slowest = Span{0};  // leases are released at once
    }
    for (Caller& caller : callers_) time_.cancel_timer(caller.timer);
    // Requests under way, and what is given back of them.
    for (int i = 0; i < 10; ++i) {
      time_.advance(2 * options_.slowest + std::chrono::seconds{1});
    }
  }

  Crowded run() {
    const Time end = time_.now() + options_.length;
    for (Process& process : processes_) expect(process);
    while (time_.now() < end && time_.advance_to_next()) {
    }
    for (Process& process : processes_) {
      time_.cancel_timer(process.arrival);
      result_.operations += process.wire->operations;
      result_.entries += process.wire->entries;
    }
    return result_;  // others are granted when those wait no longer
  }

 private:
  struct Process {
    Process(Crowd& owner, std::size_t number) : crowd(owner), index(number) {}
    static void arrived(void* self) noexcept {
      Process& process = *static_cast<Process*>(self);
      process.crowd.begin(process);
      process.crowd.expect(process);
    }

    Crowd& crowd;
    std::size_t index;
    std::unique_ptr<Wire> wire{};
    std::unique_ptr<L> limiter{};
    TimerCallback arrival{&Process::arrived, this};
    Time last_granted{};  // when who was granted last had come
  };
  struct Caller {
    Caller(Crowd& owner, Process& its, const Plans& has) : crowd(owner), process(its), plans(has) {}
    static void on_time(void* self) noexcept {
      Caller& caller = *static_cast<Caller*>(self);
      if (!caller.lease) return caller.probe->cancel();
      caller.lease->release_later();  // nobody can wait for it on this thread
      caller.lease.reset();
      caller.crowd.leave(caller);
    }

    Crowd& crowd;
    Process& process;
    Plans plans;
    typename std::list<Caller>::iterator place{};
    std::shared_ptr<Probe<L>> probe{};
    std::optional<Lease> lease{};                 // held
    TimerCallback timer{&Caller::on_time, this};  // of the patience, then of the lease
    bool is_over = false;
  };

  Span drawn(double mean_seconds) {
    const double draw = (static_cast<double>(rng_.below(1'000'000)) + 0.5) / 1e6;
    return Span{1 + static_cast<Word>(-std::log(draw) * mean_seconds * 1e6)};
  }
  void expect(Process& process) {
    const auto parts = static_cast<double>(options_.processes - 1 + options_.busy);
    const double own = process.index == 0 ? static_cast<double>(options_.busy) : 1;
    time_.set_timer(process.arrival, time_.now() + drawn(parts / own / options_.arrivals));
  }
  void begin(Process& process) {
    gone_.clear();
    Plans plans{time_.now(), Time::max(), 1};
    plans.units += static_cast<Word>(rng_.below(static_cast<std::uint64_t>(options_.most)));
    if (options_.leaving != Leaving::never) plans.leaves = plans.came + drawn(options_.patience);
    result_.callers.push_back(plans);
    Caller& caller = callers_.emplace_back(*this, process, plans);
    caller.place = std::prev(callers_.end());
    const bool has_deadline = options_.leaving == Leaving::deadline;
    caller.probe = std::make_shared<Probe<L>>(
        request_of(*process.limiter, "a", plans.units),
        has_deadline ? Deadline(plans.leaves) : Deadline::never(), detail::Caller{});
    caller.probe->start([this, &caller](std::error_code error, auto grant) {
      time_.cancel_timer(caller.timer);
      caller.is_over = true;
      if (!error) grant ? granted(caller) : refused(caller);
      if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
        if (!error && grant) return hold(caller, std::move(grant));
      }
      leave(caller);
    });
    if (options_.leaving == Leaving::cancels && !caller.is_over) {
      time_.set_timer(caller.timer, plans.leaves);
    }
  }

  void granted(Caller& caller) {
    const Time came = caller.plans.came;
    Process& process = caller.process;
    result_.granted_at.push_back(time_.now());
    result_.units += static_cast<std::uint64_t>(caller.plans.units);
    ++result_.of_process[process.index];
    if (came < process.last_granted) result_.is_fifo = false;
    process.last_granted = came;
    result_.passed_over = std::max(result_.passed_over, newest_ - came);
    newest_ = std::max(newest_, came);
  }
  void refused(const Caller& caller) {
    ++result_.refusals;
    result_.longest_refusal = std::max(result_.longest_refusal, time_.now() - caller.plans.came);
    if (time_.now() > caller.plans.leaves) result_.is_told_late = true;
  }
  void hold(Caller& caller, Lease lease) {
    caller.lease.emplace(std::move(lease));
    const Span hold = Span{std::chrono::seconds{1}} / options_.rate * caller.plans.units;
    time_.set_timer(caller.timer, time_.now() + hold);
  }
  /// It is destroyed when the next one comes, since its own wait may be calling.
  void leave(Caller& caller) { gone_.splice(gone_.end(), callers_, caller.place); }

  CrowdOptions options_;
  SeededRng rng_;
  VirtualClock time_;
  std::unique_ptr<Store> store_ = make_virtual_store(time_);
  std::list<Process> processes_;
  std::list<Caller> callers_;
  std::list<Caller> gone_;
  Time newest_{};
  Crowded result_;
};

/// A limit that a crowd waits for.
struct CrowdedLimit {
  template <class Make>
  CrowdedLimit(std::string its_name, Make make, bool even, bool costs)
      : name(std::move(its_name)),
        run([make](const CrowdOptions& options) {
          using L = std::remove_cvref_t<decltype(make(std::declval<Store&>(), options))>;
          return Crowd<L>(options, [&](Store& store) { return make(store, options); }).run();
        }),
        is_even(even),
        has_costs(costs) {}

  std::string name;
  std::function<Crowded(const CrowdOptions&)> run;
  bool is_even;  ///< a unit as soon as it is there
  bool has_costs;
};

/// All of CrowdOptions::rate in the long run.
inline std::vector<CrowdedLimit> crowded_limits() {
  using namespace std::chrono_literals;
  using Options = const CrowdOptions&;
  const auto quota = [](Options o) { return Quota::per_second(o.rate).burst(o.most); };
  std::vector<CrowdedLimit> all;
  const auto add = [&](auto make, bool is_even = false, bool has_costs = true) {
    using L = std::remove_cvref_t<decltype(make(std::declval<Store&>(), CrowdOptions{}))>;
    all.emplace_back(L::type_name, make, is_even, has_costs);
  };
  add([=](Store& store, Options o) { return TokenBucket(store, "b", quota(o)); }, true);
  add(
      [=](Store& store, Options o) {
        SharedTokenBucket bucket(store, "b");
        bucket.configure("a", quota(o));
        return bucket;
      },
      true);
  add([](Store& store, Options o) {
    return SlidingWindow(store, "w", std::vector<WindowLimit>{{2 * o.rate, 2s}});
  });
  add([](Store& store, Options o) {
    SharedSlidingWindow limiter(store, "rate");
    limiter.configure("a", RateType::overall, 2 * o.rate, 2s);
    return limiter;
  });
  add([](Store& store, Options o) {
    return FixedWindow(store, "f", 2 * o.rate, Calendar::every(2s));
  });
  add([](Store& store, Options o) {
    return SlidingWindowCounter(store, "c", WindowLimit{2 * o.rate, 2s});
  });
  add([](Store& store, Options o) { return SlotLock(store, "s", Span{1s} / o.rate); }, true, false);
  add([](Store& store, Options) { return ConcurrencyLimiter(store, "j", 1, {.ttl = 1min}); }, true,
      false);
  return all;
}

}  // namespace sluice::test
