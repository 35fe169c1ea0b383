// Callers that give up, of several processes that wait for one limit: a model for tests. Threading:
// everything on the thread that moves the clock.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "src/waiting/wait_queues.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

/// How a caller that has waited for its patience leaves.
enum class Leaving : std::uint8_t { cancels, deadline, dropped };

struct GivingUpOptions {
  std::size_t processes = 1;
  double arrivals = 10;  ///< a second, of all processes
  double patience = 2;   ///< seconds, the mean of an exponential distribution
  Leaving leaving = Leaving::cancels;
  Word most = 1;  ///< units of a caller: 1 to this
  Span length = std::chrono::minutes{10};
  Span slowest{0};                            ///< of a Wire
  Span hold{std::chrono::milliseconds{200}};  ///< a lease, for each unit
  std::uint64_t seed = 1;
};

/// A caller as a planner knows it.
struct Plans {
  Time came;
  Time leaves;
  Word units;
};

struct GivingUp {
  std::uint64_t operations = 0;
  std::uint64_t entries = 0;  ///< of them, those that enter or renew a ticket
  std::uint64_t grants = 0;
  std::uint64_t units = 0;
  std::vector<Plans> callers{};
};

/// `make(store)` makes one process's limiter, `request(limiter, cost)` one caller's request.
template <class L>
class GivingUpModel {
 public:
  using Make = std::function<std::unique_ptr<L>(Store&)>;
  using Request = std::function<detail::ClaimedLimits(const L&, Cost)>;

  GivingUpModel(const GivingUpOptions& options, const Make& make, Request request)
      : options_(options), request_(std::move(request)), rng_(options.seed) {
    for (std::size_t i = 0; i < options.processes; ++i) {
      Process& process = processes_.emplace_back(*this);
      process.wire = std::make_unique<Wire>(*store_, time_, options.seed * 1000 + i);
      process.limiter = make(*process.wire);
      WaitQueueOptions queue;
      queue.client = static_cast<std::int64_t>(i + 1);
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
  }
  ~GivingUpModel() {
    for (Process& process : processes_) time_.cancel_timer(process.arrival);
  }

  GivingUp run() {
    end_ = time_.now() + options_.length;
    for (Process& process : processes_) expect(process);
    while (time_.now() < end_ && time_.advance_to_next()) {
    }
    for (Process& process : processes_) {
      time_.cancel_timer(process.arrival);
      result_.operations += process.wire->operations;
      result_.entries += process.wire->entries;
    }
    const GivingUp result = std::move(result_);
    for (Process& process : processes_) {
      process.limiter->cancel_waits();
      process.wire->slowest = Span{0};  // leases are released at once
      for (Caller& caller : process.callers) time_.cancel_timer(caller.timer);
    }
    for (int i = 0; i < 10; ++i) time_.advance(2 * options_.slowest + std::chrono::seconds{1});
    return result;
  }

 private:
  struct Process;
  struct Caller {
    Caller(GivingUpModel& owner, Process& its, Word asked)
        : model(owner), process(its), units(asked) {}
    static void on_time(void* self) noexcept {
      auto& caller = *static_cast<Caller*>(self);
      if (!caller.is_over) return caller.probe->cancel();
      if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
        caller.grant->release_later();  // nobody can wait for it on this thread
      }
      caller.grant.reset();
    }
    [[nodiscard]] bool may_go() const noexcept { return is_over && !grant; }

    GivingUpModel& model;
    Process& process;
    Word units;
    bool is_over = false;
    std::shared_ptr<Probe<L>> probe{};
    std::optional<typename L::Grant> grant{};     // held, if it is a lease
    TimerCallback timer{&Caller::on_time, this};  // of the patience, then of the lease
  };
  struct Process {
    explicit Process(GivingUpModel& owner) : model(owner) {}
    static void arrived(void* self) noexcept {
      Process& process = *static_cast<Process*>(self);
      process.model.begin(process);
      process.model.expect(process);
    }

    GivingUpModel& model;
    std::unique_ptr<Wire> wire{};
    std::unique_ptr<L> limiter{};
    std::list<Caller> callers{};
    TimerCallback arrival{&Process::arrived, this};
  };

  Span drawn(double mean_seconds) {
    const double draw = (static_cast<double>(rng_.below(1'000'000)) + 0.5) / 1e6;
    return Span{1 + static_cast<Word>(-std::log(draw) * mean_seconds * 1e6)};
  }
  void expect(Process& process) {
    const double mean = static_cast<double>(options_.processes) / options_.arrivals;
    time_.set_timer(process.arrival, time_.now() + drawn(mean));
  }
  void begin(Process& process) {
    std::erase_if(process.callers, [](const Caller& caller) { return caller.may_go(); });
    const auto drawn_units = rng_.below(static_cast<std::uint64_t>(options_.most));
    Caller& caller =
        process.callers.emplace_back(*this, process, 1 + static_cast<Word>(drawn_units));
    const Time leaves = time_.now() + drawn(options_.patience);
    result_.callers.push_back({time_.now(), leaves, caller.units});
    const Deadline deadline =
        options_.leaving == Leaving::deadline ? Deadline(leaves) : Deadline::never();
    caller.probe = std::make_shared<Probe<L>>(request_(*process.limiter, caller.units), deadline,
                                              detail::Caller{});
    caller.probe->start([this, &caller](std::error_code error, auto grant) {
      caller.is_over = true;
      time_.cancel_timer(caller.timer);
      if (error || !grant) return;
      ++result_.grants;
      result_.units += static_cast<std::uint64_t>(caller.units);
      if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
        caller.grant.emplace(std::move(grant));
        time_.set_timer(caller.timer, time_.now() + options_.hold * caller.units);
      }
    });
    if (options_.leaving == Leaving::cancels && !caller.is_over) {
      time_.set_timer(caller.timer, leaves);
    }
  }

  GivingUpOptions options_;
  Request request_;
  SeededRng rng_;
  VirtualClock time_;
  std::unique_ptr<Store> store_ = make_virtual_store(time_);
  std::list<Process> processes_;
  Time end_{};
  GivingUp result_;
};

}  // namespace sluice::test
