// A store at the end of a wire: a call is decided when the test says so, and its answer comes when
// the test says so, each in any order, or is lost. Threading: one thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/store.hpp"

namespace sluice::test {

class WireStore final : public StoreWrapper {
 public:
  /// REQUIRES: `far` answers before execute() returns, and outlives this.
  using StoreWrapper::StoreWrapper;
  ~WireStore() override {
    end();
    while (!pending_.empty()) fail(0, Errc::unknown);
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    ++asked_;
    if (drops && drops(plan)) return done.fail(Errc::not_connected);
    pending_.push_back(std::make_unique<Call>(plan, std::move(done)));
    pending_.back()->mark = mark;
    pending_.back()->asked = clock().now();
    if (!holds || holds(plan)) return;
    answer(pending_.size() - 1);
  }
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    ++batches_;
    Store::execute_batch(plans, done);
  }
  [[nodiscard]] StorePart part_of(const Key& key) const noexcept override {
    return parts ? parts(key) : StoreWrapper::part_of(key);
  }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
  [[nodiscard]] bool may_block() const noexcept override { return blocks; }

  /// The calls without an answer, in their order.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  [[nodiscard]] bool is_decided(std::size_t index) const { return pending_.at(index)->decided; }
  [[nodiscard]] Plan plan(std::size_t index) const { return pending_.at(index)->plan.view(); }
  [[nodiscard]] const Outcome& outcome(std::size_t index) const {
    return pending_.at(index)->outcome;
  }
  [[nodiscard]] Time asked_at(std::size_t index) const { return pending_.at(index)->asked; }
  void set_mark(std::size_t index, int value) { pending_.at(index)->mark = value; }
  [[nodiscard]] int mark_of(std::size_t index) const { return pending_.at(index)->mark; }
  /// The far store decides the call now.
  void decide(std::size_t index) {
    Call& call = *pending_.at(index);
    inner().execute(call.plan.view(), {&Call::receive, &call});
  }
  /// Its answer arrives.
  void deliver(std::size_t index) {
    const auto call = take(index);
    call->done(call->outcome);
  }
  /// Both.
  void answer(std::size_t index) {
    decide(index);
    deliver(index);
  }
  /// Its answer, or the question, is lost.
  void fail(std::size_t index, std::error_code error) { take(index)->done.fail(error); }
  void deliver_all() {
    for (; !pending_.empty(); deliver(0)) {
      if (!is_decided(0)) decide(0);
    }
  }

  [[nodiscard]] std::size_t asked() const noexcept { return asked_; }
  [[nodiscard]] std::size_t batches() const noexcept { return batches_; }

  std::function<bool(const Plan&)> holds;      ///< false: answered at once; unset: true
  std::function<bool(const Plan&)> drops;      ///< true: fails, and is not executed
  std::function<StorePart(const Key&)> parts;  ///< part_of(), if set
  bool blocks = true;                          ///< may_block()
  int mark = 0;                                ///< of the calls from now on

 private:
  struct Call {
    Call(const Plan& what, Completion answer) : plan(what), done(std::move(answer)) {}
    static void receive(void* self, const Outcome& answer) noexcept {
      auto& call = *static_cast<Call*>(self);
      call.steps.assign(answer.steps.begin(), answer.steps.end());
      call.output.assign(answer.output.begin(), answer.output.end());
      call.outcome = {answer.error, answer.decision, call.steps, call.output};
      call.decided = true;
    }
    OwnedPlan plan;
    Completion done;
    int mark = 0;
    Time asked{};
    bool decided = false;
    Outcome outcome{};
    std::vector<Decision> steps{};
    std::vector<Word> output{};
  };

  std::unique_ptr<Call> take(std::size_t index) {
    auto call = std::move(pending_.at(index));
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
    return call;
  }

  std::deque<std::unique_ptr<Call>> pending_;
  std::size_t asked_ = 0;
  std::size_t batches_ = 0;
};

}  // namespace sluice::test
