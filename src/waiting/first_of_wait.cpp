// Waiting for the first of several alternatives.
#include "sluice/detail/first_of_wait.hpp"

#include <algorithm>
#include <utility>

#include "src/waiting/tell_of_wait.hpp"

namespace sluice::detail {

/// What an alternative asks. It asks one thing at a time.
struct FirstOfWait::Question {
  std::vector<Step> steps{};
  std::optional<Completion> done{};      // until it is sent
  std::optional<Completion> at_store{};  // until it is answered
  std::shared_ptr<FirstOfWait> call{};   // ...
};

void FirstOfWait::Request::reserve(std::size_t count) {
  steps.reserve(count);
  plans.reserve(count);
  done.reserve(count);
}

void FirstOfWait::Request::clear() noexcept {
  steps.clear();
  plans.clear();
  done.clear();
}

/// One of the alternatives, in the queues of its limits.
class FirstOfWait::Alternative final : public Waiter {
 public:
  using Waiter::clock;
  using Waiter::first_limit;
  using Waiter::is_behind;
  using Waiter::reason_for;
  using Waiter::refusal;
  using Waiter::store;
  using Waiter::take;
  using Waiter::Waiter;

  void belong_to(const std::shared_ptr<FirstOfWait>& call, std::size_t index) noexcept {
    call_ = call;
    index_ = index;
    set_may_leave();
  }
  [[nodiscard]] Question& question() noexcept { return question_; }

 private:
  void timer_changed() noexcept override {
    if (const auto call = call_.lock()) call->timer_changed();
  }
  void finished(std::error_code error) noexcept override {
    if (const auto call = call_.lock()) call->ended(index_, error);
  }
  void ask_store(const Plan& plan, Completion done) noexcept override {
    const auto call = call_.lock();
    if (!call) return done.fail(Errc::cancelled);
    call->ask(*this, plan, std::move(done));
  }

  std::weak_ptr<FirstOfWait> call_;
  std::size_t index_ = 0;
  Question question_;
};

FirstOfWait::FirstOfWait(Alternatives alternatives, const Deadline& deadline, const Caller& caller,
                         const std::optional<Arrival>& arrival)
    : order_(std::move(alternatives.order)) {
  const std::size_t count = alternatives.limits.size();
  Clock& clock = alternatives.limits.front().front()->store().clock();
  const Time latest = deadline.on(clock);
  arrival_ = arrival.value_or(new_arrival(clock, count));
  Arrival its = arrival_;
  for (ClaimedLimits& limits : alternatives.limits) {
    alternatives_.push_back(std::make_shared<Alternative>(std::move(limits), latest, caller, its));
    ++its.sequence;  // two of them may be in one queue
  }
  pending_ += count;
  request_.reserve(count);
}

FirstOfWait::~FirstOfWait() = default;

const StoreRef& FirstOfWait::store() const noexcept { return alternatives_.front()->store(); }

Clock& FirstOfWait::clock() const noexcept { return alternatives_.front()->clock(); }

/// What the alternatives ask at their start is asked together.
void FirstOfWait::start() noexcept {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    is_sending_ = true;
  }
  for (const std::size_t index : order_) alternatives_[index]->belong_to(self, index);
  tell_of_begin({store(), this, alternatives_.front()->first_limit()});
  for (const std::size_t index : order_) alternatives_[index]->start();
  {
    const std::lock_guard lock(mutex_);
    is_sending_ = false;
  }
  send();
  release();
}

void FirstOfWait::on_time() noexcept {
  const auto self = shared_from_this();
  const Time now = clock().now();
  bool was_due = false;
  for (const std::size_t index : order_) {
    // One before it may just have asked.
    if (timer_of(*alternatives_[index], is_under_way()) > now) continue;
    was_due = true;
    alternatives_[index]->on_time();
  }
  if (!was_due) timer_changed();  // it was put off
}

void FirstOfWait::cancel() noexcept {
  const auto self = shared_from_this();
  for (const std::size_t index : order_) alternatives_[index]->cancel();
}

Time FirstOfWait::timer() const {
  const bool under_way = is_under_way();
  Time first = Time::max();
  for (const auto& each : alternatives_) first = std::min(first, timer_of(*each, under_way));
  return first;
}

/// While one of them is under way, those that are behind others in their queue wait for its answer,
/// also if their time is over: it may be ahead of them.
Time FirstOfWait::timer_of(const Alternative& alternative, bool under_way) {
  return under_way && alternative.is_behind() ? Time::max() : alternative.timer();
}

bool FirstOfWait::is_under_way() const {
  return std::any_of(alternatives_.begin(), alternatives_.end(),
                     [](const auto& each) { return each->is_under_way(); });
}

std::system_error FirstOfWait::failed(const CallName& call, const std::error_code& error) const {
  return alternatives_[failed_]->failed(call, error);
}

void FirstOfWait::ask(Alternative& asks, const Plan& plan, Completion done) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    Question& question = asks.question();
    question.steps.assign(plan.steps().begin(), plan.steps().end());
    question.done.emplace(std::move(done));
  } catch (const std::bad_alloc&) {
    return done.fail(std::make_error_code(std::errc::not_enough_memory));
  }
  send();
}

/// One thread sends at a time, in a loop: with a store that answers before it returns, this would
/// otherwise recurse.
void FirstOfWait::send() noexcept {
  {
    const std::lock_guard lock(mutex_);
    send_again_ = true;
    if (is_sending_) return;
    is_sending_ = true;
  }
  const auto self = shared_from_this();
  while (send_some()) {
  }
}

/// Sends all that is asked, unless something is at the store. False: there is no more to send.
bool FirstOfWait::send_some() noexcept {
  bool is_granted = false;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(send_again_, false)) {
      is_sending_ = false;
      return false;
    }
    if (at_store_ > 0) return true;
    is_granted = is_granted_;
    request_.clear();
    for (const std::size_t index : order_) {
      Question& question = alternatives_[index]->question();
      if (!question.done) continue;
      question.at_store = std::exchange(question.done, std::nullopt);
      question.call = shared_from_this();
      request_.steps.push_back(std::move(question.steps));
      request_.plans.push_back(Plan(request_.steps.back()).of_wait());
      request_.done.emplace_back(&FirstOfWait::answered, &question);
    }
    at_store_ = request_.plans.size();
  }
  if (is_granted) {
    for (Completion& done : request_.done) done.fail(Errc::cancelled);
  } else if (request_.plans.size() == 1) {
    store().execute(request_.plans.front(), std::move(request_.done.front()));
  } else if (!request_.plans.empty()) {
    store().execute_first(request_.plans, request_.done);
  }
  return true;
}

void FirstOfWait::answered(void* question, const Outcome& outcome) noexcept {
  Question& asked = *static_cast<Question*>(question);
  const std::shared_ptr<FirstOfWait> call = std::move(asked.call);
  Completion done = std::move(*asked.at_store);
  asked.at_store.reset();
  done(outcome);          // it may ask again
  call->timer_changed();  // those that waited for the answer have a time again
  {
    const std::lock_guard lock(call->mutex_);
    if (--call->at_store_ > 0) return;
  }
  call->send();
}

/// Under the mutex, here and below.
void FirstOfWait::keep_failure(std::size_t index, std::error_code error,
                               std::shared_ptr<const std::string> reason) noexcept {
  if (error_ || is_granted_) return;
  error_ = error;
  failed_ = index;
  reason_ = std::move(reason);
  failure_ = alternatives_[index]->refusal();
}

void FirstOfWait::keep_answer(std::size_t index, Grants answer) noexcept {
  const bool is_grant = answer.decision().allowed;
  const Span wait = answer.decision().retry_after;
  if (is_grant || !is_refused_ || wait < grants_.decision().retry_after) {
    grants_ = std::move(answer).of_alternative(index, arrival_);
  }
  is_refused_ = true;
  is_granted_ = is_grant;
}

void FirstOfWait::ended(std::size_t index, std::error_code error) noexcept {
  Alternative& alternative = *alternatives_[index];
  auto reason = alternative.reason_for(error);
  bool is_granted = false;
  {
    const std::lock_guard lock(mutex_);
    if (error) {
      keep_failure(index, error, std::move(reason));
    } else if (!is_granted_) {
      keep_answer(index, alternative.take<Grants>());
      is_granted = is_granted_;
    }
  }
  if (is_granted) cancel();
  release();
}

/// One that had to end before the call has ended.
void FirstOfWait::release() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (--pending_ > 0) return;
  }
  const std::error_code error = is_granted_ ? std::error_code{} : error_;
  const bool has_first = is_granted_ && grants_.alternative() == 0;
  const ClaimedLimit& first =
      has_first ? *grants_.limits().front() : alternatives_.front()->first_limit();
  tell_of_end({store(), this, first}, arrival_, error, !is_granted_ && !error, nullptr);
  finished(error);
}

}  // namespace sluice::detail
