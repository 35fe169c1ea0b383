// The requests of the shared sliding window, waiting ones included: by the remembered rate, and
// again by the stored one if that has changed.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "src/limiters/shared_sliding_window_rates.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

using Rule = SharedSlidingWindowRule;

/// How often a request reads the configuration before it fails: each time another caller has
/// changed it in between.
constexpr int max_attempts = 16;

/// Of a grant: its words 5 and 6 are how far ahead that was and the generation of its log.
bool settles(const Step& asked) noexcept { return asked.operation == &sliding_window_settle; }
bool decides(const Step& asked) noexcept {
  return asked.operation == &sliding_window_acquire || asked.operation == &sliding_window_peek;
}
/// The least rate under which the request can be decided.
Word needed_by(const Step& asked) noexcept { return decides(asked) ? asked.args[1] : 0; }

}  // namespace

std::shared_ptr<const SharedSlidingWindow::Rate> SharedSlidingWindow::Rates::of(
    const Key& key) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = rates_.find(key);
  return found == rates_.end() ? nullptr : *found;
}

std::shared_ptr<const SharedSlidingWindow::Rate> SharedSlidingWindow::Rates::remember(
    const Key& key, std::span<const Word> output, std::error_code& error) const noexcept try {
  const RateConfiguration setting{static_cast<RateType>(output[4]), output[2], Span{output[3]},
                                  output[0]};
  Rate rate{.tag = std::string(key.tag()),
            .name = std::string(key.name()),
            .setting = setting,
            .generation = output[1],
            .first_end = output[5 + 2 * Rule::max_kept],
            .log = log_name(key.name(), output[1], setting.type),
            .table = {setting.rate, setting.interval.count()},
            .longest = setting.interval.count()};
  for (std::size_t i = 5; i < 5 + 2 * Rule::max_kept; i += 2) {
    if (output[i] == 0) continue;
    rate.table.insert(rate.table.end(), {output[i], output[i + 1]});
    rate.longest = std::max(rate.longest, output[i + 1]);
  }
  auto result = std::make_shared<const Rate>(std::move(rate));
  const std::lock_guard lock(mutex_);
  if (const auto before = rates_.find(key); before != rates_.end()) {
    rates_.erase(before);
  } else if (rates_.size() >= max_keys) {
    rates_.erase(rates_.begin());
  }
  rates_.insert(result);
  return result;
} catch (const std::bad_alloc&) {
  error = make_error_code(std::errc::not_enough_memory);
  return nullptr;
}

std::string SharedSlidingWindow::Rates::log_name(std::string_view name, Word generation,
                                                 RateType type) const {
  // Older programs log units under ":log:".
  const std::string log = std::string(name) + ":grants:" + std::to_string(generation);
  return type == RateType::per_client ? log + ":" + options_.client : log;
}

Step SharedSlidingWindow::Rates::read_step(const Key& key) const noexcept {
  return {&shared_sliding_window_config,
          detail::LimiterKey(key, *store_),
          {0, options_.keep_alive.count()}};
}

Step SharedSlidingWindow::Rates::failed_step(const std::error_code& error,
                                             Step asked) const noexcept {
  const auto rate = of(asked.key);
  asked.args[0] = rate ? rate->setting.rate : Rule::max_rate;
  if (error == Errc::wrong_kind) asked.operation = &shared_sliding_window_config;
  return asked;
}

std::array<Step, 2> SharedSlidingWindow::Rates::steps(const Rate& rate,
                                                      const Step& asked) const noexcept {
  const detail::LimiterKey log(Key{rate.tag, rate.log}, *store_);
  Step of_log{asked.operation, log, asked.args, nullptr, rate.table};
  of_log.args[0] = rate.setting.rate;
  // The interval may be longer than that of the request which set the stamp, if that is ahead of
  // the clock: until the log is forgotten.
  const Word kept = rate.longest + SlidingWindowRule::max_ahead;
  if (settles(asked)) {
    of_log.args[5] += kept;
    of_log.args[6] = 0;
  } else {
    of_log.args[decides(asked) ? 3 : 2] = std::min(kept, SlidingWindowRule::max_span);
  }
  const Step expect{&shared_sliding_window_expect,
                    detail::LimiterKey(rate.key(), *store_),
                    {rate.setting.rate, rate.setting.version,
                     detail::is_constant(rate.setting.rate) ? 0 : needed_by(asked),
                     options_.keep_alive.count(), rate.first_end}};
  return {expect, detail::by_limit(of_log)};
}

SharedSlidingWindow::Asking::Asking(std::shared_ptr<const Rates> rates, const Step& asked,
                                    const std::optional<RequestId>& id) noexcept
    : rates_(std::move(rates)), rate_(rates_->of(asked.key)), asked_(asked), id_(id) {
  // The stored rate may be larger than the remembered one.
  remembered_ = rate_ != nullptr && rate_->decides(needed_by(asked));
  if (rate_ == nullptr) {
    const auto of_key = [&] {
      rate_ = std::make_shared<const Rate>(
          Rate{.tag = std::string(asked.key.tag()), .name = std::string(asked.key.name())});
    };
    detail::call_within_memory(of_key, error_);
    if (error_) return;
  }
  asked_.key = rate_->key();
  due_ = remembered_ ? Due::request : Due::rate;
}

std::optional<Plan> SharedSlidingWindow::Asking::next() noexcept {
  if (due_ == Due::request && settles(asked_) && asked_.args[6] != rate_->generation) {
    // A log that nobody asks any more is not changed.
    if (remembered_) {
      due_ = Due::rate;
    } else {
      find_nothing();
    }
  }
  if (due_ == Due::nothing) return std::nullopt;
  if (due_ == Due::rate) {
    const Step read = rates_->read_step(asked_.key);
    steps_.emplace(std::array<Step, 2>{read, read});
    return Plan(steps_->front());
  }
  steps_.emplace(rates_->steps(*rate_, asked_));
  const Plan plan(*steps_);
  return id_ ? plan.idempotent(*id_) : plan;
}

void SharedSlidingWindow::Asking::find_nothing() noexcept {
  due_ = Due::nothing;
  error_.clear();
}

void SharedSlidingWindow::Asking::hear(const Outcome& outcome) noexcept {
  error_ = outcome.error;
  if (due_ == Due::rate) {
    hear_rate(outcome);
  } else {
    hear_answer(outcome);
  }
  if (error_ == Errc::not_configured && due_ == Due::nothing && settles(asked_)) find_nothing();
}

void SharedSlidingWindow::Asking::hear_rate(const Outcome& outcome) noexcept {
  due_ = Due::nothing;
  remembered_ = false;
  if (error_) return;
  auto read = rates_->remember(asked_.key, outcome.output, error_);
  if (error_) return;
  asked_.key = read->key();
  rate_ = std::move(read);
  due_ = Due::request;
}

void SharedSlidingWindow::Asking::hear_answer(const Outcome& outcome) noexcept {
  due_ = Due::nothing;
  const bool outdated =
      error_ == Errc::config_changed || (error_ == Errc::not_configured && remembered_);
  if (outdated) {
    if (++attempts_ < max_attempts) due_ = Due::rate;
  } else if (error_) {
    of_log_ = outcome.decision.step != 0;
  } else {
    decision_ = outcome.steps[1];
    decision_.step = 0;
    words_ = {detail::word_of(outcome, 0), rate_->generation, detail::word_of(outcome, 1),
              detail::word_of(outcome, 2)};
  }
}

Step SharedSlidingWindow::Asking::failed_step() const noexcept {
  return of_log_ ? steps_->back() : rates_->failed_step(error_, asked_);
}

void SharedSlidingWindow::ask_then(const Key& key, Cost cost, Completion done) const {
  struct Deliver {
    Completion done;
    void operator()(const std::error_code& error, const Decision& decision) noexcept {
      done({error, decision, {}, {}});
    }
  };
  detail::Running<Verbs::Decide, Deliver>::start(Verbs::try_acquire(*this, key, cost),
                                                 std::move(done));
}

std::future<Decision> SharedSlidingWindow::future_try_acquire(const KeyArg& key, Cost cost) const {
  SharedSlidingWindow mine = *this;
  mine.borrow_store();
  auto failure = [limiter = std::move(mine), tag = std::string(key.tag()),
                  name = std::string(key.name()),
                  cost](const std::error_code& error, const Decision& decision) {
    detail::note_reason(error, detail::reason_of(limiter.store(), error), decision);
    const Step asked = Verbs::acquire_step(limiter, Key{tag, name}, cost, Span{0});
    return limiter.failed({type_name, "future_try_acquire"}, error, asked);
  };
  auto [done, future] = detail::promised(std::move(failure));
  ask_then(key, cost, std::move(done));
  return std::move(future);
}

std::system_error SharedSlidingWindow::failed(const detail::CallName& call,
                                              const std::error_code& error,
                                              const Step& asked) const {
  const bool of_key = error == Errc::wrong_kind || error == Errc::wrong_type ||
                      error == Errc::corrupt_state || error == Errc::store_full;
  if (of_key) return detail::failed_with(call, error, "");  // which of the two is not known
  return detail::failed_call(call, error, rates_->failed_step(error, asked));
}

SharedSlidingWindowSteps SharedSlidingWindow::steps(const Step& asked,
                                                    std::error_code& error) const noexcept {
  SharedSlidingWindowSteps result;
  error.clear();
  auto rate = rates_->of(asked.key);
  if (!rate || !rate->decides(needed_by(asked))) {
    std::array<Word, Rule::read_output> output{};
    static_cast<void>(detail::decide_own(store(), rates_->read_step(asked.key), error, {}, output));
    if (!error) rate = rates_->remember(asked.key, output, error);
    if (error) return result;
  }
  result.steps_.emplace(rates_->steps(*rate, asked));
  result.generation_ = rate->generation;
  result.rate_ = std::move(rate);
  return result;
}

struct SharedSlidingWindow::Verbs::Claimed final : detail::ClaimOf<SharedSlidingWindow, Claimed> {
  Claimed(const SharedSlidingWindow& limiter, const Key& key, Cost cost)
      : ClaimOf(limiter, key, cost), rate_(rates().of(Claimed::key())) {}

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  /// As far as it is known.
  bool is_shared() const noexcept override {
    return !rate_ || rate_->setting.type == RateType::overall;
  }

  Step step() const noexcept override { return steps()[1]; }
  std::optional<Step> condition() const noexcept override { return steps()[0]; }
  std::optional<Step> preparation(std::error_code& /*error*/) noexcept override {
    rate_ = std::exchange(is_outdated_, false) ? nullptr : rates().of(key());
    // The stored rate may be larger than the remembered one.
    is_remembered_ = rate_ && rate_->decides(cost().value());
    if (is_remembered_) return {};
    return rates().read_step(key());
  }
  std::error_code prepared(const Outcome& own) noexcept override {
    std::error_code error;
    auto read = rates().remember(key(), own.output, error);
    if (!error) rate_ = std::move(read);
    return error;
  }
  bool is_outdated(const std::error_code& error) noexcept override {
    is_outdated_ =
        error == Errc::config_changed || (error == Errc::not_configured && is_remembered_);
    return is_outdated_;
  }

  Reservation grant_of(const Outcome& own, Time /*asked*/) const noexcept {
    const std::array words{rate_ ? rate_->generation : 0, detail::word_of(own, 1),
                           detail::word_of(own, 2)};
    return {own.decision, cost().value(), words};
  }
  // Later ones of the grant, by its rate. Of a log that nobody asks any more they concern nobody.
  Step refund_step(const Reservation& grant, Word units) const noexcept {
    return rates().steps(*rate_, Log{limiter()}.refund_step(own_key(), grant, units))[1];
  }
  Step charge_step(const Reservation& grant, Word units) const noexcept {
    return rates().steps(*rate_, Log{limiter()}.charge_step(own_key(), grant, units))[1];
  }
  std::system_error failed(const detail::CallName& call,
                           const std::error_code& error) const override {
    return limiter().failed(call, error, asked());
  }

 private:
  [[nodiscard]] const Rates& rates() const noexcept { return *limiter().rates_; }
  [[nodiscard]] Step asked() const noexcept {
    return acquire_step(limiter(), own_key(), cost(), Span{0});
  }
  /// Until the rate is known, steps that stand for those.
  [[nodiscard]] std::array<Step, 2> steps() const noexcept {
    if (rate_) return rates().steps(*rate_, asked());
    const Step read = rates().read_step(key());
    return {read, read};
  }

  std::shared_ptr<const Rate> rate_;  // of the request
  bool is_remembered_ = false;        // ... and it was not read for it
  bool is_outdated_ = false;
};

std::unique_ptr<detail::ClaimedLimit> SharedSlidingWindow::Verbs::claim(
    const SharedSlidingWindow& limiter, const Key& key, Cost cost) {
  return std::make_unique<Claimed>(limiter, key, cost);
}

template Reservation KeyedLimiter<SharedSlidingWindow>::acquire(const KeyArg&, Cost,
                                                                const Deadline&,
                                                                const WaitOptions&) const;
template Reservation KeyedLimiter<SharedSlidingWindow>::acquire(const KeyArg&, Cost,
                                                                const Deadline&, const WaitOptions&,
                                                                std::error_code&) const noexcept;
template std::size_t KeyedLimiter<SharedSlidingWindow>::waiting(const KeyArg&) const;

}  // namespace sluice
