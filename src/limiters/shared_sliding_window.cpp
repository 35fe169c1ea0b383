// The shared sliding window: its configuration, and its calls.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <algorithm>
#include <stdexcept>

#include "sluice/rules/sliding_window.hpp"
#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/shared_sliding_window_rates.hpp"

namespace sluice {
namespace {

using Rule = SharedSlidingWindowRule;

std::string drawn_name(Store& store) {
  SystemRng system;
  Rng* const world = store.clock().rng(DrawFor::shared_sliding_window);
  const auto name = record_name(RequestId::draw(world != nullptr ? *world : system));
  return {name.data(), name.size()};
}

Rule::Mode mode_of(SpentUnits spent) noexcept {
  return spent == SpentUnits::kept ? Rule::Mode::update : Rule::Mode::reset;
}

constexpr Word any = 1;  // length of a window

/// What a verb answers; exceptions are about the step that has failed.
template <class Verb>
typename Verb::Result or_throw(const char* name, Verb verb) {
  std::error_code error;
  auto result = detail::drive(verb, error);
  if (error) {
    throw detail::failed_call({SharedSlidingWindow::type_name, name}, error, *verb.failed_step());
  }
  return result;
}

}  // namespace

SharedSlidingWindow::SharedSlidingWindow(const StoreHandle& store, detail::TextArg name,
                                         SharedSlidingWindowOptions options)
    : KeyedLimiter(store, name, {}) {
  const Word keep_alive = options.keep_alive.count();
  if (keep_alive < 1 || keep_alive > Rule::max_keep_alive) {
    throw std::invalid_argument("keep_alive must be 1 us to " +
                                std::to_string(Rule::max_keep_alive) + " us, got " +
                                std::to_string(keep_alive) + " us");
  }
  if (options.client.empty()) options.client = drawn_name(*store);
  rates_ = std::make_shared<const Rates>(store.address(), std::move(options));
  const std::size_t longest =
      rates_->log_name(this->name(), word_limit, RateType::per_client).size();
  if (longest > Key::max_part_bytes) {
    const std::size_t names = this->name().size() + client().size();
    throw std::invalid_argument("the names of a limiter and its client must have " +
                                std::to_string(Key::max_part_bytes - (longest - names)) +
                                " bytes at most together, got " + std::to_string(names));
  }
}

const std::string& SharedSlidingWindow::client() const noexcept { return rates_->options().client; }

SharedSlidingWindow::Verbs::Configure SharedSlidingWindow::Verbs::configuring(
    const SharedSlidingWindow& limiter, const Step& step) {
  return {detail::WakeUp(limiter),
          [&] { return detail::StepVerb<AsChange>(limiter.store(), step, {}); }};
}

SharedSlidingWindow::Verbs::Configure SharedSlidingWindow::Verbs::configure(
    const SharedSlidingWindow& limiter, const Key& key, RateType type, Word rate, Span interval,
    SpentUnits spent) {
  return configuring(limiter, limiter.configure_step(key, mode_of(spent), type, rate, interval));
}

SharedSlidingWindow::Verbs::Configure SharedSlidingWindow::Verbs::try_configure(
    const SharedSlidingWindow& limiter, const Key& key, RateType type, Word rate, Span interval) {
  const auto mode = Rule::Mode::if_absent;
  return configuring(limiter, limiter.configure_step(key, mode, type, rate, interval));
}

SharedSlidingWindow::Verbs::Read SharedSlidingWindow::Verbs::read(
    const SharedSlidingWindow& limiter, const Key& key) {
  const Key named = limiter.named(key);
  return {limiter.store(), limiter.rates_->read_step(named), {limiter.rates_, named}};
}

std::optional<RateConfiguration> SharedSlidingWindow::Verbs::AsRead::operator()(
    const Outcome& outcome, std::error_code& error) const noexcept {
  const auto rate = error ? nullptr : rates->remember(key, outcome.output, error);
  return rate ? std::optional(rate->setting) : std::nullopt;
}

Step SharedSlidingWindow::configure_step(const Key& key, Rule::Mode mode, RateType type, Word rate,
                                         Span interval) const noexcept {
  return {&shared_sliding_window_configure,
          named(key),
          {rate, interval.count(), static_cast<Word>(type), static_cast<Word>(mode),
           rates_->options().keep_alive.count()}};
}

SharedSlidingWindow::Change SharedSlidingWindow::try_configure(
    const KeyArg& key, RateType type, Word rate, SpanArg interval,
    std::error_code& error) const noexcept {
  return detail::run(Verbs::try_configure(*this, key, type, rate, interval), error);
}

SharedSlidingWindow::Change SharedSlidingWindow::try_configure(const KeyArg& key, RateType type,
                                                               Word rate, SpanArg interval) const {
  return detail::or_throw(
      {type_name, "try_configure"},
      [&] { return configure_step(key, Rule::Mode::if_absent, type, rate, interval); },
      [&](auto& error) { return try_configure(key, type, rate, interval, error); });
}

SharedSlidingWindow::Change SharedSlidingWindow::configure(const KeyArg& key, RateType type,
                                                           Word rate, SpanArg interval,
                                                           SpentUnits spent,
                                                           std::error_code& error) const noexcept {
  return detail::run(Verbs::configure(*this, key, type, rate, interval, spent), error);
}

SharedSlidingWindow::Change SharedSlidingWindow::configure(const KeyArg& key, RateType type,
                                                           Word rate, SpanArg interval,
                                                           SpentUnits spent) const {
  return detail::or_throw(
      {type_name, "configure"},
      [&] { return configure_step(key, mode_of(spent), type, rate, interval); },
      [&](auto& error) { return configure(key, type, rate, interval, spent, error); });
}

std::optional<RateConfiguration> SharedSlidingWindow::configuration(
    const KeyArg& key, std::error_code& error) const noexcept {
  return detail::run(Verbs::configuration(*this, key), error);
}

std::optional<RateConfiguration> SharedSlidingWindow::configuration(const KeyArg& key) const {
  return detail::or_throw(
      {type_name, "configuration"}, [&] { return rates_->read_step(named(key)); },
      [&](auto& error) { return configuration(key, error); });
}

void SharedSlidingWindow::refresh(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::refresh(*this, key), error);
}

void SharedSlidingWindow::refresh(const KeyArg& key) const {
  std::error_code error;
  refresh(key, error);
  if (error)
    throw detail::failed_call({type_name, "refresh"}, error, rates_->read_step(named(key)));
}

Decision SharedSlidingWindow::try_acquire(const KeyArg& key, Cost cost,
                                          std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost), error);
}

Decision SharedSlidingWindow::try_acquire(const KeyArg& key, Cost cost) const {
  return or_throw("try_acquire", Verbs::try_acquire(*this, key, cost));
}

Decision SharedSlidingWindow::try_acquire(const KeyArg& key, Cost cost, const RequestId& id,
                                          std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, key, cost).idempotent(id), error);
}

Decision SharedSlidingWindow::try_acquire(const KeyArg& key, Cost cost, const RequestId& id) const {
  return or_throw("try_acquire", Verbs::try_acquire(*this, key, cost).idempotent(id));
}

Decision SharedSlidingWindow::peek(const KeyArg& key, Cost cost,
                                   std::error_code& error) const noexcept {
  return detail::run(Verbs::peek(*this, key, cost), error);
}

Decision SharedSlidingWindow::peek(const KeyArg& key, Cost cost) const {
  return or_throw("peek", Verbs::peek(*this, key, cost));
}

Reservation SharedSlidingWindow::reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                                         std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost, max_wait), error);
}

Reservation SharedSlidingWindow::reserve(const KeyArg& key, Cost cost, SpanArg max_wait) const {
  return or_throw("reserve", Verbs::reserve(*this, key, cost, max_wait));
}

Decision SharedSlidingWindow::block(const KeyArg& key, SpanArg span,
                                    std::error_code& error) const noexcept {
  return detail::run(Verbs::block(*this, key, span), error);
}

Decision SharedSlidingWindow::block(const KeyArg& key, SpanArg span) const {
  return or_throw("block", Verbs::block(*this, key, span));
}

Decision SharedSlidingWindow::reward(const KeyArg& key, Cost amount,
                                     std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SharedSlidingWindow::reward(const KeyArg& key, Cost amount) const {
  return or_throw("reward", Verbs::reward(*this, key, amount));
}

// What changes a reservation.

Step SharedSlidingWindow::Verbs::Log::settle_step(const Key& key, const Reservation& grant,
                                                  Cost units, Word change) const noexcept {
  // Clamped, so that the rule rejects a decision that no store has made.
  const Word ahead = std::clamp(grant.retry_after.count(), Word{-1}, word_limit + 1);
  const auto& [generation, entry, time, unused] = grant.state;
  return {&sliding_window_settle,
          limiter.named(key),
          {0, units.value(), entry, time, change, ahead, generation}};
}

Step SharedSlidingWindow::Verbs::Log::refund_step(const Key& key, const Reservation& grant,
                                                  Cost amount) const noexcept {
  return settle_step(key, grant, amount, static_cast<Word>(SlidingWindowRule::Change::refund));
}

Step SharedSlidingWindow::Verbs::Log::charge_step(const Key& key, const Reservation& grant,
                                                  Cost units) const noexcept {
  return settle_step(key, grant, units, static_cast<Word>(SlidingWindowRule::Change::charge));
}

Step SharedSlidingWindow::Verbs::Log::unasked(const Key& key) const noexcept {
  return limiter.rates_->failed_step({}, charge_step(key, {}, 1));
}

namespace {

/// The exception of refund() or cancel().
std::system_error failed_refund(const char* verb, const std::error_code& error, const Key& key,
                                const Reservation& grant, Cost amount,
                                const std::optional<Step>& asked) {
  const detail::CallName call{SharedSlidingWindow::type_name, verb};
  if (detail::is_of_another_key(grant, key)) {
    return detail::failed_with(call, error, detail::of_another_key);
  }
  if (asked && error != Errc::invalid_cost && error != Errc::invalid_argument) {
    return detail::failed_call(call, error, *asked);
  }
  const Word most = std::max<Word>(0, grant.granted);
  return detail::failed_with(call, error, detail::not_allowed("amount", amount.value(), 0, most));
}

}  // namespace

template <>
Word KeyedLimiter<SharedSlidingWindow>::refund(const KeyArg& key, Reservation& grant,
                                               Cost amount) const {
  std::error_code error;
  auto verb = SharedSlidingWindow::Verbs::refund(self(), key, grant, amount);
  const Word units = detail::drive(verb, error);
  if (error) throw failed_refund("refund", error, named(key), grant, amount, verb.failed_step());
  return units;
}

template <>
Word KeyedLimiter<SharedSlidingWindow>::cancel(const KeyArg& key, Reservation& grant) const {
  std::error_code error;
  auto verb = SharedSlidingWindow::Verbs::cancel(self(), key, grant);
  const Word units = detail::drive(verb, error);
  if (!error) return units;
  throw failed_refund("cancel", error, named(key), grant, grant.granted, verb.failed_step());
}

template <>
Settlement KeyedLimiter<SharedSlidingWindow>::settle(const KeyArg& key, Reservation& grant,
                                                     Cost actual) const {
  std::error_code error;
  auto verb = SharedSlidingWindow::Verbs::settle(self(), key, grant, actual);
  const Settlement result = detail::drive(verb, error);
  if (!error) return result;
  const SharedSlidingWindow::Verbs::Log log{self()};
  Step asked = verb.failed_step().value_or(log.unasked(key));
  asked.key = named(key);  // it may be that of the log
  throw detail::failed_settle({SharedSlidingWindow::type_name, "settle"}, error, asked, grant,
                              actual);
}

template Word KeyedLimiter<SharedSlidingWindow>::refund(const KeyArg&, Reservation&, Cost,
                                                        std::error_code&) const noexcept;
template Word KeyedLimiter<SharedSlidingWindow>::cancel(const KeyArg&, Reservation&,
                                                        std::error_code&) const noexcept;
template Settlement KeyedLimiter<SharedSlidingWindow>::settle(const KeyArg&, Reservation&, Cost,
                                                              std::error_code&) const noexcept;

// The steps of the log, and those of a request for a plan.

Step SharedSlidingWindow::Verbs::acquire_step(const SharedSlidingWindow& limiter, const Key& key,
                                              Cost cost, Span max_wait) noexcept {
  return {&sliding_window_acquire, limiter.named(key), {0, cost.value(), max_wait.count(), any}};
}

Step SharedSlidingWindow::Verbs::peek_step(const SharedSlidingWindow& limiter, const Key& key,
                                           Cost cost) noexcept {
  return {&sliding_window_peek, limiter.named(key), {0, cost.value(), 0, any}};
}

Step SharedSlidingWindow::Verbs::block_step(const SharedSlidingWindow& limiter, const Key& key,
                                            Span span) noexcept {
  return {&sliding_window_block, limiter.named(key), {0, span.count(), any}};
}

Step SharedSlidingWindow::Verbs::reward_step(const SharedSlidingWindow& limiter, const Key& key,
                                             Cost amount) noexcept {
  return {&sliding_window_reward, limiter.named(key), {0, amount.value(), any}};
}

SharedSlidingWindowSteps SharedSlidingWindow::steps_as(const char* verb, const Step& asked) const {
  std::error_code error;
  auto result = steps(asked, error);
  if (error) throw detail::failed_call({type_name, verb}, error, rates_->failed_step(error, asked));
  return result;
}

SharedSlidingWindowSteps SharedSlidingWindow::acquire_steps(const KeyArg& key, Cost cost,
                                                            std::error_code& error) const noexcept {
  return steps(Verbs::acquire_step(*this, key, cost, Span{0}), error);
}

SharedSlidingWindowSteps SharedSlidingWindow::acquire_steps(const KeyArg& key, Cost cost) const {
  return steps_as("acquire_steps", Verbs::acquire_step(*this, key, cost, Span{0}));
}

SharedSlidingWindowSteps SharedSlidingWindow::peek_steps(const KeyArg& key, Cost cost,
                                                         std::error_code& error) const noexcept {
  return steps(Verbs::peek_step(*this, key, cost), error);
}

SharedSlidingWindowSteps SharedSlidingWindow::peek_steps(const KeyArg& key, Cost cost) const {
  return steps_as("peek_steps", Verbs::peek_step(*this, key, cost));
}

SharedSlidingWindowSteps SharedSlidingWindow::block_steps(const KeyArg& key, SpanArg span,
                                                          std::error_code& error) const noexcept {
  return steps(Verbs::block_step(*this, key, span), error);
}

SharedSlidingWindowSteps SharedSlidingWindow::block_steps(const KeyArg& key, SpanArg span) const {
  return steps_as("block_steps", Verbs::block_step(*this, key, span));
}

SharedSlidingWindowSteps SharedSlidingWindow::reward_steps(const KeyArg& key, Cost amount,
                                                           std::error_code& error) const noexcept {
  return steps(Verbs::reward_step(*this, key, amount), error);
}

SharedSlidingWindowSteps SharedSlidingWindow::reward_steps(const KeyArg& key, Cost amount) const {
  return steps_as("reward_steps", Verbs::reward_step(*this, key, amount));
}

}  // namespace sluice
