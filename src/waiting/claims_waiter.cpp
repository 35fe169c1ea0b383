#include "src/waiting/claims_waiter.hpp"

#include "src/util/uninitialized_array.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {

ClaimsWaiter::ClaimsWaiter(std::shared_ptr<WaiterFor<Claims>> call, std::size_t home,
                           Time asleep_until)
    : Waiter(terms_of(*call, home, asleep_until)),
      call_(std::move(call)),
      home_(home),
      next_home_(home) {}

Waiter::Terms ClaimsWaiter::terms_of(WaiterFor<Claims>& call, std::size_t home, Time asleep_until) {
  const ClaimedLimit& limit = *call.limits_[home];
  return {.queues = limit.queues(),
          .key = call.queue_keys_[home],
          .clock = call.clock_,
          .deadline = call.deadline_,
          .caller = call.caller_,
          .units = limit.units(),
          .freed_early = limit.freed_early(),
          .ticket = call.store_.is_over()
                        ? nullptr
                        : ticket_for(*limit.queues(), call.store_.get(), limit.key()),
          .arrival = call.arrival_,
          .asleep_until = asleep_until,
          .steps = call.limits_.size()};
}

void ClaimsWaiter::ask(const Step* turn, Completion done) noexcept {
  UninitializedArray<Step, Plan::max_steps + 1> steps;
  std::size_t count = 0;
  if (call_->store_.is_over()) return done.fail(Errc::shut_down);
  asked_ = clock().now();
  for (const auto& limit : call_->limits_) {
    steps.make(count++, [&] { return limit->step(); });
  }
  if (turn != nullptr) steps.make(count++, [&] { return *turn; });
  call_->store_.execute(std::span<const Step>(steps.data(), count), std::move(done));
}

void ClaimsWaiter::refund(Completion done) noexcept {
  if (call_->store_.is_over()) return done.fail(Errc::shut_down);
  refund_all(call_->limits_, std::move(done));
}

Decision ClaimsWaiter::read(const Outcome& outcome) {
  call_->granted_ = {};
  if (outcome.decision.allowed) {
    read_grant(outcome);
    call_->granted_ = outcome.decision;
    return outcome.decision;
  }
  const Decision& refusal = decisive(outcome);
  const std::size_t step = refusal.step;
  const bool is_others_turn = step < outcome.steps.size() && outcome.steps[step].allowed;
  next_home_ = is_others_turn ? home_ : step;
  return refusal;
}

void ClaimsWaiter::read_grant(const Outcome& outcome) {
  auto output = outcome.output;
  for (std::size_t i = 0; i < call_->limits_.size(); ++i) {
    const Step step = call_->limits_[i]->step();
    const std::size_t words = output_count(*step.operation, step.table.size());
    Outcome own{{}, outcome.decision, {}, output.first(std::min(words, output.size()))};
    if (i < outcome.steps.size()) {
      own.decision = outcome.steps[i];
      own.steps = outcome.steps.subspan(i, 1);
    }
    output = output.subspan(own.output.size());
    call_->limits_[i]->answered(own, asked_);
  }
}

/// The refusal that says when to ask again: the longest wait, unless a shorter one already passes
/// the deadline and cannot become shorter.
const Decision& ClaimsWaiter::decisive(const Outcome& outcome) const noexcept {
  const Span left = call_->deadline_ - clock().now();
  const Decision* firm = nullptr;
  for (const Decision& step : outcome.steps) {
    const bool is_firm = !step.allowed && !call_->limits_[step.step]->freed_early();
    if (is_firm && (firm == nullptr || step.retry_after > firm->retry_after)) firm = &step;
  }
  return firm != nullptr && firm->retry_after > left ? *firm : outcome.decision;
}

bool ClaimsWaiter::shares_queue(std::size_t limit) const noexcept {
  return call_->limits_[limit]->queues() == call_->limits_[home_]->queues() &&
         call_->queue_keys_[limit] == call_->queue_keys_[home_];
}

Decision ClaimsWaiter::left() const noexcept {
  return unless_prefetched(call_->limits_[home_]->decision());
}

bool ClaimsWaiter::may_be_freed_early() const noexcept {
  return call_->limits_[next_home_]->freed_early();
}

bool ClaimsWaiter::moves_after_refusal(Time until) noexcept {
  if (shares_queue(next_home_)) return false;
  asleep_until_ = until;
  call_->begin_move();
  return true;
}

bool ClaimsWaiter::moves_before_asking() noexcept {
  for (std::size_t i = 0; i < call_->limits_.size(); ++i) {
    if (shares_queue(i)) continue;
    if (!call_->limits_[i]->queues()->has_sleeper_before(call_->queue_keys_[i], *this,
                                                         call_->limits_[i]->units()))
      continue;
    next_home_ = i;
    asleep_until_ = {};
    call_->begin_move();
    return true;
  }
  return false;
}

void ClaimsWaiter::moved() noexcept {
  call_->arrival_ = arrival();
  call_->join(next_home_, asleep_until_);
  call_->end_move();
}

}  // namespace sluice::detail
