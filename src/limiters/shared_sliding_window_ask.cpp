// The requests of the shared sliding window: by the cached configuration, and again by the stored
// one if that has changed.
#include <algorithm>

#include "src/limiters/shared_sliding_window_known.hpp"

namespace sluice {
namespace {

/// How often a request reads the configuration before it fails: each time another caller has
/// changed it in between.
constexpr int max_attempts = 16;

/// True if the error says that the cached configuration is outdated.
bool is_outdated(const std::error_code& error, bool remembered) noexcept {
  return error == Errc::config_changed || (error == Errc::not_configured && remembered);
}

/// A step of the log. Its interval may be longer than that of the request which set the stamp, if
/// that is ahead of the clock: until the log is forgotten.
Step kept_longer(Step step) noexcept {
  const bool decides =
      step.operation == &sliding_window_acquire || step.operation == &sliding_window_peek;
  Word& longest = step.args[decides ? 3 : 2];
  longest = std::min(longest + SlidingWindowRule::max_ahead, SlidingWindowRule::max_span);
  return step;
}

/// The decision for the caller, of the two in the plan.
Decision of_permits(std::span<const Decision> each) noexcept {
  Decision result = each[1];
  result.step = 0;
  return result;
}

}  // namespace

std::array<Step, 2> SharedSlidingWindow::steps_of(const Known& setting,
                                                  const Question& question) const {
  const Key log{tag_, setting.log_name};
  const auto of_log = [&] {
    switch (question.verb) {
      case Question::Verb::acquire:
        return setting.log.acquire_step(log, question.permits, question.span);
      case Question::Verb::peek:
        return setting.log.peek_step(log, question.permits);
      case Question::Verb::block:
        return setting.log.block_step(log, question.span);
      case Question::Verb::reward:
        break;
    }
    return setting.log.reward_step(log, question.permits);
  };
  return {Step{&shared_sliding_window_expect,
               key(),
               {setting.setting.rate, setting.setting.version, question.needed(),
                options_.keep_alive.count(), to_word(setting.first_end)}},
          kept_longer(of_log())};
}

SharedSlidingWindowSteps SharedSlidingWindow::steps(const Question& question,
                                                    std::error_code& error) const {
  error.clear();
  auto setting = known();
  if (!setting || question.needed() > setting->setting.rate) setting = read(error);
  if (!setting) return {};
  const auto steps = steps_of(*setting, question);
  return {std::move(setting), steps};
}

SharedSlidingWindow::Answered SharedSlidingWindow::ask(const Question& question,
                                                       std::error_code& error) const {
  return detail::run(Asking(*this, question), error);
}

SharedSlidingWindow::Asking::Asking(const SharedSlidingWindow& limiter, const Question& question)
    : limiter_(&limiter),
      store_(&*limiter.store_),
      life_(limiter.life_.view()),
      question_(question),
      setting_(limiter.known()),
      // The stored rate may be larger than the cached one.
      remembered_(setting_ != nullptr && question.needed() <= setting_->setting.rate),
      due_(remembered_ ? Due::request : Due::setting) {}

std::optional<Plan> SharedSlidingWindow::Asking::next() {
  if (due_ == Due::nothing) return std::nullopt;
  if (due_ == Due::setting) {
    const Step read = limiter_->read_step();
    steps_.emplace(std::array<Step, 2>{read, read});
    return Plan(steps_->front());
  }
  steps_.emplace(limiter_->steps_of(*setting_, question_));
  const Plan plan(*steps_);
  return question_.id ? plan.idempotent(*question_.id) : plan;
}

void SharedSlidingWindow::Asking::hear(const Outcome& outcome) noexcept {
  if (due_ == Due::setting) {
    hear_setting(outcome);
  } else {
    hear_answer(outcome);
  }
}

void SharedSlidingWindow::Asking::hear_setting(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  if (!error_ && life_.is_over()) error_ = Errc::shut_down;
  if (!error_) setting_ = limiter_->remember(outcome.output, error_);
  remembered_ = false;
  due_ = error_ ? Due::nothing : Due::request;
}

void SharedSlidingWindow::Asking::hear_answer(const Outcome& outcome) noexcept {
  due_ = Due::nothing;
  error_ = outcome.error;
  const bool outdated = is_outdated(error_, remembered_);
  if (outdated && life_.is_over()) {
    error_ = Errc::shut_down;
  } else if (outdated && ++attempts_ < max_attempts) {
    due_ = Due::setting;
  } else if (!error_) {
    answered_ = {of_permits(outcome.steps), std::move(setting_)};
  } else if (!outdated && outcome.decision.step != 0) {
    answered_.used = std::move(setting_);
  }
}

namespace {

/// Delivers an answer without its configuration, which goes to `*used`, unless that is null.
template <class Setting>
struct Deliver {
  Completion done;
  Setting* used;

  template <class Answered>
  void operator()(const std::error_code& error, Answered answered) noexcept {
    if (!error && used != nullptr) *used = std::move(answered.used);
    done({error, answered.decision, {}, {}});
  }
};

}  // namespace

void SharedSlidingWindow::ask_then(Cost permits, Completion done) const {
  using Setting = std::shared_ptr<const Known>;
  Setting* const unwanted = nullptr;
  detail::Running<Asking, Deliver<Setting>>::start(Asking(*this, {.permits = permits}),
                                                   std::move(done), unwanted);
}

void SharedSlidingWindow::acquire_then(Cost permits, std::shared_ptr<const Known>& used,
                                       Completion done) const noexcept try {
  using Setting = std::shared_ptr<const Known>;
  detail::Running<Asking, Deliver<Setting>>::start(Asking(*this, {.permits = permits}),
                                                   std::move(done), &used);
} catch (const std::bad_alloc&) {
  if (done) done.fail(std::make_error_code(std::errc::not_enough_memory));
}

SharedSlidingWindow::Changing::Changing(const SharedSlidingWindow& limiter,
                                        RateReservation& reservation, std::error_code error)
    : store_(&*limiter.store_), reservation_(&reservation), error_(error) {}

SharedSlidingWindow::Changing SharedSlidingWindow::Changing::refund(
    const SharedSlidingWindow& limiter, RateReservation& reservation, Cost units) {
  // Of a reservation that no limiter has made nothing can be given back.
  const Word charged = reservation.setting_ != nullptr ? reservation.granted : 0;
  if (units.value() < 0) return {limiter, reservation, Errc::invalid_cost};
  if (units.value() > charged) return {limiter, reservation, Errc::invalid_argument};
  Changing result(limiter, reservation);
  if (charged == 0 || !reservation.allowed) return result;
  result.setting_ = reservation.setting_;
  const auto& used = *static_cast<const Known*>(result.setting_.get());
  result.refund_ = used.log.refund_step({limiter.tag_, used.log_name}, reservation, units);
  return result;
}

SharedSlidingWindow::Changing SharedSlidingWindow::Changing::settle(
    const SharedSlidingWindow& limiter, RateReservation& reservation, Cost true_cost) {
  if (true_cost.value() < 0 || reservation.granted < 0) {
    return {limiter, reservation, Errc::invalid_cost};
  }
  if (detail::charged_nothing(reservation)) return {limiter, reservation};
  const Word more = true_cost.value() - reservation.granted - reservation.settled_;
  if (more <= 0) return refund(limiter, reservation, std::min(-more, reservation.granted));
  Changing result(limiter, reservation);
  const Span longest{SlidingWindowRule::max_ahead_of_time};
  result.charge_.emplace(limiter, Question{.permits = more, .span = longest});
  result.more_ = more;
  return result;
}

std::optional<Plan> SharedSlidingWindow::Changing::next() {
  if (refund_) return asked_ ? std::nullopt : std::optional(Plan(*refund_));
  if (!charge_) return std::nullopt;
  auto plan = charge_->next();
  if (plan) return plan;
  const Decision charged = charge_->take(error_).decision;
  // What another store decided is not charged where the reservation is.
  if (!error_ && is_degraded(charged.source)) error_ = Errc::circuit_open;
  if (!error_ && charged.allowed) settlement_ = {0, more_};
  return std::nullopt;
}

void SharedSlidingWindow::Changing::hear(const Outcome& outcome) noexcept {
  if (charge_) return charge_->hear(outcome);
  asked_ = true;
  error_ = outcome.error;
  settlement_ = {detail::word_of(outcome, 0), 0};
}

void SharedSlidingWindow::Changing::commit() noexcept {
  reservation_->granted -= settlement_.given_back;
  reservation_->settled_ += settlement_.charged;
}

void SharedSlidingWindow::refund_then(const Known& used, Cost permits, const Decision& grant,
                                      Completion done) const noexcept {
  store_->execute(used.log.refund_step({tag_, used.log_name}, grant, permits), std::move(done));
}

/// It refers to the limiter; waits end with Errc::shut_down when that is destroyed.
class SharedSlidingWindow::Verbs::Claimed final : public detail::ClaimedLimit {
 public:
  Claimed(const SharedSlidingWindow& limiter, Cost permits)
      : limiter_(&limiter),
        life_(limiter.life_.view()),
        queues_(limiter.queues()),
        permits_(permits) {}

  std::unique_ptr<ClaimedLimit> fresh() const override {
    return std::make_unique<Claimed>(*limiter_, permits_);
  }
  const std::string& name() const noexcept override { return limiter_->name_; }
  Store& store() const noexcept override { return *limiter_->store_; }
  Key key() const noexcept override { return limiter_->key(); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override { return queues_; }
  Step step() const noexcept override { return limiter_->read_step(); }
  bool asks_by_itself() const noexcept override { return true; }
  void ask(Completion done) noexcept override {
    if (life_.is_over()) return done.fail(Errc::shut_down);
    limiter_->acquire_then(permits_, used_, std::move(done));
  }

  void answered(const Outcome& own, Time) override { decision_ = own.decision; }
  const Decision& decision() const noexcept override { return decision_; }
  void* grant(const char* tag) noexcept override {
    return tag == &detail::type_tag<Decision> ? &decision_ : nullptr;
  }
  void refund(Completion done) noexcept override {
    if (life_.is_over()) return done.fail(Errc::shut_down);
    limiter_->refund_then(*used_, permits_, decision_, std::move(done));
  }
  std::optional<Step> settle_step(Cost) override {
    throw std::invalid_argument("\"" + name() + "\" has no settle()");
  }
  std::system_error failed(const detail::CallName& call,
                           const std::error_code& error) const override {
    return limiter_->failed(call.verb, error, {permits_});
  }

 private:
  const SharedSlidingWindow* limiter_;
  detail::Life::View life_;
  std::shared_ptr<detail::WaitQueues> queues_;
  Cost permits_;
  std::shared_ptr<const Known> used_;  // the configuration of the decision
  Decision decision_;
};

std::unique_ptr<detail::ClaimedLimit> SharedSlidingWindow::Verbs::claim(
    const SharedSlidingWindow& limiter, Cost permits) {
  return std::make_unique<Claimed>(limiter, permits);
}

Decision SharedSlidingWindow::acquire(Cost permits, const Deadline& deadline,
                                      const WaitOptions& options) const {
  return detail::block({type_name, "acquire"}, Verbs::claim(*this, permits), deadline, options)
      ->decision();
}
Decision SharedSlidingWindow::acquire(Cost permits, const Deadline& deadline,
                                      const WaitOptions& options,
                                      std::error_code& error) const noexcept try {
  const auto claim = detail::block(Verbs::claim(*this, permits), deadline, options, error);
  return claim ? claim->decision() : Decision{};
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return {};
}

std::size_t SharedSlidingWindow::waiting() const { return waiters_of(key()); }

std::future<Decision> SharedSlidingWindow::future_try_acquire(Cost permits) const {
  auto [done, future] =
      detail::promised([this, permits](const std::error_code& error, const Decision& decision) {
        detail::note_reason(error, detail::reason_of(*store_, error), decision);
        return failed("future_try_acquire", error, {permits});
      });
  ask_then(permits, std::move(done));
  return std::move(future);
}

Step SharedSlidingWindow::asked_step(const Question& question) const {
  const auto setting = known();
  const Word rate = setting ? setting->setting.rate : SharedSlidingWindowRule::max_rate;
  const Word permits = question.permits.value();
  constexpr Word any = 1;  // length of a window
  switch (question.verb) {
    case Question::Verb::block:
      return {&sliding_window_block, key(), {rate, question.span.count(), any}};
    case Question::Verb::reward:
      return {&sliding_window_reward, key(), {rate, permits, any}};
    case Question::Verb::acquire:
    case Question::Verb::peek:
      break;
  }
  return {&sliding_window_acquire, key(), {rate, permits, question.span.count(), any}};
}

namespace {

/// A request that failed at the configuration, where a key of another kind may be.
Step on_setting(Step asked, const std::error_code& error) noexcept {
  if (error == Errc::wrong_kind) asked.operation = &shared_sliding_window_config;
  return asked;
}

}  // namespace

SharedSlidingWindow::Answered SharedSlidingWindow::ask_as(const char* verb,
                                                          const Question& question) const {
  std::error_code error;
  auto answered = ask(question, error);
  if (!error) return answered;
  Step asked = asked_step(question);
  if (!answered.used) throw detail::failed_call({type_name, verb}, error, on_setting(asked, error));
  asked.key = {tag_, answered.used->log_name};
  throw detail::failed_call({type_name, verb}, error, asked);
}

SharedSlidingWindowSteps SharedSlidingWindow::steps_as(const char* verb,
                                                       const Question& question) const {
  std::error_code error;
  auto result = steps(question, error);
  if (error)
    throw detail::failed_call({type_name, verb}, error, on_setting(asked_step(question), error));
  return result;
}

std::system_error SharedSlidingWindow::failed(const char* verb, const std::error_code& error,
                                              const Question& question) const {
  const detail::CallName call{type_name, verb};
  if (error == Errc::not_configured) return detail::failed_call(call, error, asked_step(question));
  const bool of_arguments = error == Errc::invalid_cost || error == Errc::invalid_argument ||
                            error == Errc::cost_exceeds_capacity;
  if (!of_arguments) return detail::failed_with(call, error, "");
  return detail::failed_call(call, error, detail::AskedPlan(asked_step(question)));
}

std::system_error SharedSlidingWindow::failed_to_refund(const char* verb,
                                                        const std::error_code& error,
                                                        const RateReservation& reservation,
                                                        Cost amount) const {
  const detail::CallName call{type_name, verb};
  if (error == Errc::invalid_cost || error == Errc::invalid_argument) {
    const Word most = reservation.setting_ != nullptr ? std::max(Word{0}, reservation.granted) : 0;
    return detail::failed_with(call, error, detail::not_allowed("amount", amount.value(), 0, most));
  }
  if (reservation.setting_ == nullptr) return detail::failed_with(call, error, "");
  const auto& used = *static_cast<const Known*>(reservation.setting_.get());
  return detail::failed_call(call, error,
                             used.log.refund_step({tag_, used.log_name}, reservation, amount));
}

Decision SharedSlidingWindow::try_acquire(Cost permits, std::error_code& error) const {
  return detail::run(Verbs::try_acquire(*this, permits), error);
}
Decision SharedSlidingWindow::try_acquire(Cost permits) const {
  return ask_as("try_acquire", {permits}).decision;
}
Decision SharedSlidingWindow::try_acquire(Cost permits, const RequestId& id,
                                          std::error_code& error) const {
  return detail::run(Verbs::try_acquire(*this, permits, id), error);
}
Decision SharedSlidingWindow::try_acquire(Cost permits, const RequestId& id) const {
  return ask_as("try_acquire", {.permits = permits, .id = id}).decision;
}

RateReservation SharedSlidingWindow::reservation(Answered answered, Cost permits) {
  RateReservation result;
  static_cast<Decision&>(result) = answered.decision;
  if (answered.decision.allowed) {
    result.granted = permits.value();
    result.setting_ = std::move(answered.used);
  }
  return result;
}
RateReservation SharedSlidingWindow::reserve(Cost permits, SpanArg max_wait,
                                             std::error_code& error) const {
  return detail::run(Verbs::reserve(*this, permits, max_wait), error);
}
RateReservation SharedSlidingWindow::reserve(Cost permits, SpanArg max_wait) const {
  return reservation(ask_as("reserve", {.permits = permits, .span = max_wait}), permits);
}
Word SharedSlidingWindow::refund(RateReservation& reservation, Cost amount,
                                 std::error_code& error) const {
  return detail::run(Verbs::refund(*this, reservation, amount), error);
}
Word SharedSlidingWindow::refund(RateReservation& reservation, Cost amount) const {
  std::error_code error;
  const Word units = refund(reservation, amount, error);
  if (error) throw failed_to_refund("refund", error, reservation, amount);
  return units;
}
Word SharedSlidingWindow::cancel(RateReservation& reservation, std::error_code& error) const {
  return detail::run(Verbs::cancel(*this, reservation), error);
}
Word SharedSlidingWindow::cancel(RateReservation& reservation) const {
  std::error_code error;
  const Word units = cancel(reservation, error);
  if (error) throw failed_to_refund("cancel", error, reservation, reservation.granted);
  return units;
}
Settlement SharedSlidingWindow::settle(RateReservation& reservation, Cost true_cost,
                                       std::error_code& error) const {
  return detail::run(Verbs::settle(*this, reservation, true_cost), error);
}
Settlement SharedSlidingWindow::settle(RateReservation& reservation, Cost true_cost) const {
  std::error_code error;
  const Settlement result = settle(reservation, true_cost, error);
  if (!error) return result;
  if (error != Errc::invalid_cost && error != Errc::cost_exceeds_capacity) {
    throw failed("settle", error, {0});
  }
  const auto setting = known();
  const Word rate = setting ? setting->setting.rate : 0;
  const Word most = reservation.granted + reservation.settled_ + rate;
  throw detail::failed_with({type_name, "settle"}, error,
                            detail::not_allowed("amount", true_cost.value(), 0, most));
}

Decision SharedSlidingWindow::block(SpanArg span, std::error_code& error) const {
  return detail::run(Verbs::block(*this, span), error);
}
Decision SharedSlidingWindow::block(SpanArg span) const {
  return ask_as("block", {.permits = 0, .verb = Question::Verb::block, .span = span}).decision;
}
Decision SharedSlidingWindow::reward(Cost permits, std::error_code& error) const {
  return detail::run(Verbs::reward(*this, permits), error);
}
Decision SharedSlidingWindow::reward(Cost permits) const {
  return ask_as("reward", {.permits = permits, .verb = Question::Verb::reward}).decision;
}

Decision SharedSlidingWindow::peek(Cost permits, std::error_code& error) const {
  return detail::run(Verbs::peek(*this, permits), error);
}
Decision SharedSlidingWindow::peek(Cost permits) const {
  return ask_as("peek", {.permits = permits, .verb = Question::Verb::peek}).decision;
}
Word SharedSlidingWindow::available_permits(std::error_code& error) const {
  return detail::run(Verbs::available_permits(*this), error);
}
Word SharedSlidingWindow::available_permits() const {
  return ask_as("available_permits", {.permits = 0, .verb = Question::Verb::peek})
      .decision.remaining;
}

SharedSlidingWindowSteps SharedSlidingWindow::acquire_steps(Cost permits,
                                                            std::error_code& error) const {
  return steps({.permits = permits}, error);
}
SharedSlidingWindowSteps SharedSlidingWindow::acquire_steps(Cost permits) const {
  return steps_as("acquire_steps", {permits});
}
SharedSlidingWindowSteps SharedSlidingWindow::peek_steps(Cost permits,
                                                         std::error_code& error) const {
  return steps({.permits = permits, .verb = Question::Verb::peek}, error);
}
SharedSlidingWindowSteps SharedSlidingWindow::peek_steps(Cost permits) const {
  return steps_as("peek_steps", {.permits = permits, .verb = Question::Verb::peek});
}
SharedSlidingWindowSteps SharedSlidingWindow::block_steps(SpanArg span,
                                                          std::error_code& error) const {
  return steps({.permits = 0, .verb = Question::Verb::block, .span = span}, error);
}
SharedSlidingWindowSteps SharedSlidingWindow::block_steps(SpanArg span) const {
  return steps_as("block_steps", {.permits = 0, .verb = Question::Verb::block, .span = span});
}
SharedSlidingWindowSteps SharedSlidingWindow::reward_steps(Cost permits,
                                                           std::error_code& error) const {
  return steps({.permits = permits, .verb = Question::Verb::reward}, error);
}
SharedSlidingWindowSteps SharedSlidingWindow::reward_steps(Cost permits) const {
  return steps_as("reward_steps", {.permits = permits, .verb = Question::Verb::reward});
}

}  // namespace sluice
