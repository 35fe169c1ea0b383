// The way from one process to a store that many share, in virtual time: it counts, and takes time.
// Threading: everything on the thread that moves the clock.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/rng.hpp"
#include "sluice/rules/wait_line.hpp"
#include "sluice/sluice.hpp"

namespace sluice::test {

/// Requests and answers travel for 1 us to `slowest` each, in order; zero: for no time. What
/// travels when it is destroyed is not answered.
class Wire final : public StoreWrapper {
 public:
  Wire(Store& inner, VirtualClock& time, std::uint64_t seed)
      : StoreWrapper(inner), time_(time), rng_(seed) {}
  ~Wire() override {
    for (const auto& call : calls_) time_.cancel_timer(call->timer);
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    if (plan.steps().front().operation == &wait_line_enter) ++entries;
    if (asked_at != nullptr) asked_at->push_back(time_.now());
    if (is_cut) return done.fail(Errc::not_connected);
    if (slowest == Span{0}) return inner().execute(plan, std::move(done));
    calls_.push_back(std::make_unique<Call>(*this, plan, std::move(done)));
    there_ = std::max(there_, time_.now() + travel());
    time_.set_timer(calls_.back()->timer, there_);
  }
  Clock& clock() noexcept override { return time_; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
  void notify(const Key& key) noexcept override {
    ++notices;
    if (!loses_wake_ups && !is_cut) StoreWrapper::notify(key);
  }
  std::unique_ptr<Subscription> subscribe(const Key& key,
                                          std::function<void()> seen) noexcept override {
    return is_deaf ? nullptr : StoreWrapper::subscribe(key, std::move(seen));
  }

  std::uint64_t operations = 0;
  std::uint64_t entries = 0;  // of them, those that enter or renew a ticket
  std::uint64_t notices = 0;
  std::vector<Time>* asked_at = nullptr;  // when each request was sent
  bool loses_wake_ups = false;            // that are sent here
  bool is_deaf = false;                   // cannot watch
  bool is_cut = false;                    // nothing arrives
  Span slowest{0};

 private:
  struct Call {
    Call(Wire& its, const Plan& asked, Completion waits)
        : wire(its), plan(asked), done(std::move(waits)) {}

    static void ring(void* self) noexcept {
      Call& call = *static_cast<Call*>(self);
      if (call.is_decided) return call.arrive();
      call.is_decided = true;
      call.wire.inner().execute(call.plan.view(), Completion(&Call::decided, self));
    }
    static void decided(void* self, const Outcome& outcome) noexcept {
      Call& call = *static_cast<Call*>(self);
      call.error = outcome.error;
      call.decision = outcome.decision;
      call.steps.assign(outcome.steps.begin(), outcome.steps.end());
      call.output.assign(outcome.output.begin(), outcome.output.end());
      Wire& wire = call.wire;
      wire.back_ = std::max(wire.back_, wire.time_.now() + wire.travel());
      wire.time_.set_timer(call.timer, wire.back_);
    }
    void arrive() {
      const auto place = std::ranges::find(wire.calls_, this, &std::unique_ptr<Call>::get);
      std::swap(*place, wire.calls_.back());
      const auto alive = std::move(wire.calls_.back());
      wire.calls_.pop_back();
      done({error, decision, steps, output});
    }

    Wire& wire;
    OwnedPlan plan;
    Completion done;
    TimerCallback timer{&Call::ring, this};
    bool is_decided = false;
    std::error_code error{};
    Decision decision{};
    std::vector<Decision> steps{};
    std::vector<Word> output{};
  };

  Span travel() {
    return Span{1 + static_cast<Word>(rng_.below(static_cast<std::uint64_t>(slowest.count())))};
  }

  VirtualClock& time_;
  SeededRng rng_;
  Time there_{};  // nothing overtakes
  Time back_{};
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace sluice::test
