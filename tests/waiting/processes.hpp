// Processes that share one store and one limit. Threading: everything on the thread that moves the
// clock.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/waiting/wake_up.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

/// Each process has a wire of its own, and a limiter "x", whose key "a" is waited for.
template <class L>
class Processes {
 public:
  using Grant = typename L::Grant;

  /// `args`: of the limiter, after its name.
  template <class... Args>
  Processes(std::size_t count, WaitQueueOptions queue, const Args&... args) {
    for (std::size_t i = 0; i < count; ++i) {
      wires.push_back(std::make_unique<Wire>(*store, time, i + 1));
      limiters.push_back(std::make_unique<const L>(*wires.back(), "x", args...));
      queue.client = static_cast<std::int64_t>(i + 1);
      limiters.back()->set_wait_queue(queue);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const auto& limiter : limiters) limiter->cancel_waits();
    for (const auto& wire : wires) wire->is_cut = false;
    time.advance(std::chrono::minutes{1});                   // for what is under way
    for (const auto& wire : wires) wire->slowest = Span{0};  // leases go back at once
  }

  [[nodiscard]] const L& limiter(int process) const {
    return *limiters.at(static_cast<std::size_t>(process));
  }
  [[nodiscard]] Wire& wire(int process) const {
    return *wires.at(static_cast<std::size_t>(process));
  }
  /// Starts to wait; a grant is written down under `name`, and kept.
  std::shared_ptr<Probe<L>> wait(int process, int name, Cost cost = 1,
                                 const Deadline& deadline = Deadline::never(), int priority = 0,
                                 std::string flow = {}) {
    probes.push_back(wait_for(limiter(process), request_of(limiter(process), "a", cost), deadline,
                              [this, name](std::error_code error, Grant grant) {
                                if (error || !grant) return over.push_back(name);
                                grants.emplace_back(name, time.now() - start);
                                held[name] = std::make_unique<Grant>(std::move(grant));
                              },
                              {.priority = priority, .flow = std::move(flow)}));
    return probes.back();
  }
  /// Not by erase(): who is granted meanwhile is put into the map.
  void give_back(int name) { held.extract(name); }
  /// What the process sends does not arrive, and it hears nothing.
  void kill(int process) {
    wire(process).is_cut = true;
    limiter(process).cancel_waits();
  }
  void lose_wake_ups() {
    for (const auto& wire : wires) wire->loses_wake_ups = true;
  }
  void slow_down(Span slowest) {
    for (const auto& wire : wires) wire->slowest = slowest;
  }

  /// In the order of the grants.
  [[nodiscard]] std::vector<int> order() const {
    std::vector<int> names;
    for (const auto& [name, at] : grants) names.push_back(name);
    return names;
  }
  [[nodiscard]] std::uint64_t operations() const {
    std::uint64_t sum = 0;
    for (const auto& wire : wires) sum += wire->operations;
    return sum;
  }
  [[nodiscard]] std::uint64_t notices() const {
    std::uint64_t sum = 0;
    for (const auto& wire : wires) sum += wire->notices;
    return sum;
  }
  [[nodiscard]] Key line() const {
    line_ = detail::wait_line_name(request_of(*limiters.front(), "a").front()->key());
    return {"a", line_};
  }
  /// Whose turn it is in the store; 0: nobody waits there.
  [[nodiscard]] Word first() const {
    Word client = 0;
    decide_then(*store, Step{&wait_line_peek, line(), {word_limit}},
                [&](const Outcome& outcome) noexcept {
                  if (!outcome.error) client = outcome.output[1];
                });
    return client;
  }

  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::unique_ptr<const L>> limiters;
  const Time start = time.now();
  std::vector<std::pair<int, Span>> grants;
  std::vector<int> over;  // without a grant
  std::map<int, std::unique_ptr<Grant>> held;
  std::vector<std::shared_ptr<Probe<L>>> probes;

 private:
  mutable std::string line_;
};

using Granted = std::vector<std::pair<int, Span>>;

}  // namespace sluice::test
