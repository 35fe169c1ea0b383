// LateAnswers: the timers that deliver.
#include "src/testing/late_answers.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"

#include <exception>
#include <new>
#include <utility>

namespace sluice::testing::detail {

struct LateAnswers::Late {
  Late(LateAnswers& all, const Outcome& answer)
      : owner(all), outcome(answer), timer(&LateAnswers::ring, this, &LateAnswers::lose) {}
  LateAnswers& owner;
  Completion done{nullptr, nullptr};
  KeptOutcome outcome;
  TimerCallback timer;
};

LateAnswers::~LateAnswers() {
  std::unordered_map<Late*, std::shared_ptr<Late>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(late_);
  }
  for (auto& [key, late] : left) {
    late->done.fail(Errc::unknown);
    clock_.cancel_timer(late->timer);
  }
}

void LateAnswers::deliver(Completion done, const Outcome& outcome, Span delay) noexcept {
  const Time when = clock_.now() + delay;
  try {
    if (!KnownThread::is_here(clock_) && rings(done, outcome, when)) return;
    ManualResetEvent nobody;
    clock_.wait_until(when, nobody);
  } catch (const std::exception&) {  // no memory for the answer
    return done.fail(Errc::unknown);
  }
  done(outcome);
}

std::size_t LateAnswers::size() const {
  const std::lock_guard lock(mutex_);
  return late_.size();
}

bool LateAnswers::rings(Completion& done, const Outcome& outcome, Time when) {
  const auto late = std::make_shared<Late>(*this, outcome);
  {
    const std::lock_guard lock(mutex_);
    late_.emplace(late.get(), late);
    late->done = std::move(done);
  }
  try {
    if (clock_.set_timer(late->timer, when) == TimerState::set) return true;
  } catch (const std::bad_alloc&) {
  }
  const std::lock_guard lock(mutex_);
  late_.erase(late.get());
  done = std::move(late->done);
  return false;
}

void LateAnswers::ring(void* context) noexcept {
  if (const auto late = take(*static_cast<Late*>(context))) late->done(late->outcome.view());
}

void LateAnswers::lose(void* context) noexcept {
  if (const auto late = take(*static_cast<Late*>(context))) late->done.fail(Errc::unknown);
}

std::shared_ptr<LateAnswers::Late> LateAnswers::take(Late& late) noexcept {
  const std::lock_guard lock(late.owner.mutex_);
  const auto found = late.owner.late_.find(&late);
  if (found == late.owner.late_.end()) return nullptr;
  const std::shared_ptr<Late> taken = std::move(found->second);
  late.owner.late_.erase(found);
  return taken;
}

}  // namespace sluice::testing::detail
