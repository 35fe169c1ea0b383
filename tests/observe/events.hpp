// An observer that writes down what it is told, a line an event. Threading: thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice::test {

class Events final : public Observer {
 public:
  void decided(const DecisionEvent& e) override {
    const Decision& d = e.decision;
    std::string line = "decided " + std::string(e.limiter()) + " " + std::string(e.key()) + " " +
                       std::to_string(e.cost()) + " ";
    line += e.error ? e.error.message() : d.allowed ? "allowed" : "refused";
    if (e.is_of_wait) line += " (wait)";
    if (e.is_shadow) line += " (shadow)";
    add(line);
  }
  void wait_changed(const WaitEvent& e) override {
    std::string line = "wait " + std::string(e.limiter) + " " + std::string(e.key) + " " +
                       std::string(to_string(e.result));
    if (!e.waited_for.empty()) line += " for " + std::string(e.waited_for);
    if (e.result != WaitEvent::Result::begun) {
      line += " after " + std::to_string(e.waited.count()) + " us";
    }
    add(line);
  }
  void lease_changed(const LeaseEvent& e) override {
    constexpr const char* changes[] = {"granted", "renewal failed", "released", "lost"};
    add("lease " + std::string(e.limiter) + " " + std::string(e.key) + " " +
        std::to_string(e.units) + " " + changes[static_cast<std::size_t>(e.change)]);
  }
  void gate_changed(const GateEvent& e) override {
    add("gate " + std::string(e.gates) + " " + std::string(e.scope) +
        (e.is_closed ? " closed until " + std::to_string(to_word(e.until)) : " open"));
  }
  void try_failed(const FailedTryEvent& e) override {
    add("call " + std::string(e.limiter) + " " + std::string(to_string(e.reason)) + " try " +
        std::to_string(e.tries) + (e.is_retried ? ", again" : ", given up"));
  }
  void breaker_changed(const BreakerEvent& e) override {
    add("breaker " + std::string(e.store) + " part " + std::to_string(e.part) + " " +
        std::to_string(static_cast<int>(e.from)) + " to " + std::to_string(static_cast<int>(e.to)));
  }

  /// What was told since the last call.
  [[nodiscard]] std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

/// A virtual store that is observed; time moves by itself.
struct Observed {
  VirtualClock clock;
  VirtualClock::AutoAdvance moving{clock};
  std::unique_ptr<Store> inner = make_virtual_store(clock);
  Events events;
  ObservedStore store{*inner, events, "inner"};

  /// What was told, without decisions.
  [[nodiscard]] Lines others() {
    Lines lines = events.take();
    std::erase_if(lines, [](const std::string& line) { return line.rfind("decided", 0) == 0; });
    return lines;
  }
};

}  // namespace sluice::test
