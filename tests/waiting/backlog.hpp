// Many processes whose callers wait for one limit, more of them than it has grants for: a model for
// tests. Threading: everything on the thread that moves the clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "src/waiting/wait_queues.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

struct BacklogOptions {
  std::size_t processes = 20;
  double arrivals = 10;  ///< a second, of all processes
  Span length = std::chrono::hours{1};
  Span slowest{0};  ///< of a Wire
  bool across_processes = true;
  Span patience = Span::max();  ///< until the deadline of each caller
  std::size_t busy = 0;         ///< the first process has so many times the others' arrivals
  std::uint64_t seed = 1;
};

/// What came of it.
struct Backlog {
  std::uint64_t operations = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t grants = 0;
  std::uint64_t refusals = 0;
  double fairness = 0;   ///< Jain's index over the processes' grants
  bool is_fifo = true;   ///< within each process
  Span passed_over{0};   ///< a caller saw one granted that had come so much later, at most
  Span longest_late{0};  ///< a refusal told later than the call, at most
  std::vector<std::uint64_t> of_process{};
  std::vector<Time> granted_at{};

  [[nodiscard]] double operations_per_grant() const {
    return static_cast<double>(operations) / static_cast<double>(grants);
  }
  [[nodiscard]] double operations_per_call() const {
    return static_cast<double>(operations) / static_cast<double>(arrivals);
  }
};

/// Calls come at random to processes that know nothing of each other. `make(store)` makes one
/// process's limiter, `request(limiter)` one caller's request.
template <class L>
class Processes {
 public:
  using Make = std::function<std::unique_ptr<L>(Store&)>;
  using Request = std::function<detail::ClaimedLimits(const L&)>;

  Processes(const BacklogOptions& options, const Make& make, Request request)
      : options_(options), request_(std::move(request)), rng_(options.seed) {
    for (std::size_t i = 0; i < options.processes; ++i) {
      all_.push_back(std::make_unique<Process>(*this, i));
      Process& process = *all_.back();
      process.wire = std::make_unique<Wire>(*store_, time_, options.seed * 1000 + i);
      process.limiter = make(*process.wire);
      WaitQueueOptions queue;
      queue.across_processes = options.across_processes;
      queue.client = static_cast<std::int64_t>(i + 1);
      process.limiter->set_wait_queue(queue);
    }
    for (const auto& process : all_) {
      process->wire->operations = 0;
      process->wire->slowest = options.slowest;
    }
  }
  ~Processes() {
    for (const auto& process : all_) time_.cancel_timer(process->arrival);
  }

  Backlog run() {
    end_ = time_.now() + options_.length;
    for (const auto& process : all_) expect(*process);
    while (time_.now() < end_ && time_.advance_to_next()) {
    }
    result_.operations = 0;
    for (const auto& process : all_) {
      time_.cancel_timer(process->arrival);
      result_.operations += process->wire->operations;
      result_.of_process.push_back(process->grants);
    }
    const Backlog result = result_;
    for (const auto& process : all_) process->limiter->cancel_waits();
    // Requests under way, and what is given back of them.
    for (int i = 0; i < 10; ++i) time_.advance(2 * options_.slowest);
    return judged(result);
  }

 private:
  struct Process {
    Process(Processes& owner, std::size_t number) : model(owner), index(number) {}
    Processes& model;
    std::size_t index;
    std::unique_ptr<Wire> wire{};
    std::unique_ptr<L> limiter{};
    TimerCallback arrival{&Processes::arrived, this};
    Time last_granted{};  // when who was granted last had come
    std::uint64_t grants = 0;
  };

  void expect(Process& process) {
    const std::size_t busy = std::max<std::size_t>(1, options_.busy);
    const double share = (process.index == 0 ? static_cast<double>(busy) : 1.0) /
                         static_cast<double>(options_.processes - 1 + busy);
    const double draw = (static_cast<double>(rng_.below(1'000'000)) + 0.5) / 1e6;
    const double gap = -std::log(draw) / (options_.arrivals * share);
    time_.set_timer(process.arrival, time_.now() + Span{1 + static_cast<Word>(gap * 1e6)});
  }

  static void arrived(void* self) noexcept {
    Process& process = *static_cast<Process*>(self);
    process.model.begin(process);
    process.model.expect(process);
  }

  void begin(Process& process) {
    ++result_.arrivals;
    const Time came = time_.now();
    const Deadline deadline =
        options_.patience == Span::max() ? Deadline::never() : Deadline(came + options_.patience);
    wait_for(*process.limiter, request_(*process.limiter), deadline,
             [this, &process, came](std::error_code error, const auto& grant) {
               if (!error) ended(process, came, bool(grant));
             });
  }

  void ended(Process& process, Time came, bool granted) {
    if (!granted) {
      ++result_.refusals;
      result_.longest_late = std::max(result_.longest_late, time_.now() - came);
      return;
    }
    ++result_.grants;
    ++process.grants;
    result_.granted_at.push_back(time_.now());
    if (came < process.last_granted) result_.is_fifo = false;
    process.last_granted = came;
    result_.passed_over = std::max(result_.passed_over, newest_ - came);
    newest_ = std::max(newest_, came);
  }

  [[nodiscard]] static Backlog judged(Backlog result) {
    double sum = 0;
    double squares = 0;
    for (const std::uint64_t grants : result.of_process) {
      sum += static_cast<double>(grants);
      squares += static_cast<double>(grants) * static_cast<double>(grants);
    }
    result.fairness = sum * sum / (static_cast<double>(result.of_process.size()) * squares);
    return result;
  }

  BacklogOptions options_;
  Request request_;
  SeededRng rng_;
  VirtualClock time_;
  std::unique_ptr<Store> store_ = make_virtual_store(time_);
  std::vector<std::unique_ptr<Process>> all_;
  Time end_{};
  Time newest_{};
  Backlog result_;
};

}  // namespace sluice::test
