// Lease, HeldLease and LeaseManager.
#include "sluice/limiters/lease.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "sluice/detail/held_lease.hpp"
#include "sluice/detail/lease_manager.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/detail/lease.hpp"
#include "sluice/limiters/lease_renewer.hpp"
#include "sluice/rules/leases.hpp"
#include "src/limiters/failed_releases.hpp"
#include "src/limiters/or_throw.hpp"

namespace sluice {
namespace {

void put_id(Word* words, const LeaseId& id) noexcept {
  constexpr std::uint64_t low_40 = (std::uint64_t{1} << 40) - 1;
  words[0] = static_cast<Word>(id.high >> 12);
  words[1] = static_cast<Word>((id.high << 40 | id.low >> 24) & (low_40 << 12 | 0xfff));
  words[2] = static_cast<Word>(id.low & 0xffffff);
}

LeaseId id_of(const Word (&words)[3]) noexcept {
  const auto word = [&](int i) { return static_cast<std::uint64_t>(words[i]); };
  return {word(0) << 12 | word(1) >> 40, word(1) << 24 | word(2)};
}

constexpr std::size_t granted_words = 4;

/// No lease has a weight below 1, whatever the limit: the constant rule would grant 0.
Step by_limit_of(Step step, Cost weight) noexcept {
  if (weight.value() >= 1) return detail::by_limit(step);
  if (detail::is_constant(step.args[0])) step.args[0] = word_limit;
  return step;
}

/// Zero: within the store's default timeout.
detail::ReleaseStepVerb release_verb(const detail::HeldLease& held, Span within) noexcept {
  return {detail::WakeUp(held.terms().queues.get()), [&] {
            detail::StepVerb<detail::AsReleased> verb(held.store(), held.release_step(), {});
            return within > Span{0} ? std::move(verb).within(within) : verb;
          }};
}

}  // namespace

LeaseId LeaseId::draw(Rng& rng) {
  const std::uint64_t high = rng.next();
  return {high, rng.next()};
}

namespace detail {

HeldLease::HeldLease(Store& store, const Key& key, const LeaseId& id, const Terms& terms)
    : store_(store), tag_(key.tag()), name_(key.name()), id_(id), terms_(terms) {}

void HeldLease::granted(const Decision& decision, std::span<const Word> output,
                        Time asked_at) noexcept {
  if (decision.limit == unlimited) terms_.limit = unlimited;  // as that of a shadow
  slot_ = output[1];
  fence_ = output[2];
  expires_at_ = output[3];
  // At most a TTL: after a clock was set back, the store's expiry can be further ahead, until the
  // clock is corrected. A plan's outcome may hold any words: see adopt().
  const auto bounded = [](Word word) { return std::clamp(word, -word_limit, word_limit); };
  const Word left =
      std::clamp(bounded(output[3]) - bounded(to_word(decision.at)), Word{0}, terms_.ttl);
  safe_until_ = holds_nothing() ? word_limit : bounded(to_word(asked_at)) + left;
  tell(LeaseEvent::Change::granted);
}

void HeldLease::tell(LeaseEvent::Change change) const noexcept {
  Observer* const observer = is_orphaned() ? nullptr : store().observer();
  if (observer == nullptr) return;
  detail::tell(*observer,
               LeaseEvent{.change = change, .limiter = name_, .key = tag_, .units = terms_.weight});
}

Step HeldLease::renew_step() const noexcept {
  Step step{&leases_renew, key(), {terms_.limit, terms_.ttl, slot_}};
  put_id(&step.args[3], id_);
  return step;
}

Step HeldLease::release_step() const noexcept {
  Step step{&leases_release, key(), {terms_.limit, slot_}};
  put_id(&step.args[2], id_);
  return step;
}

bool HeldLease::renewed(const Decision& decision, std::span<const Word> output,
                        Time asked_at) noexcept {
  if (!decision.allowed) {
    lose();
    return false;
  }
  expires_at_ = output[1];
  safe_until_ = std::max(safe_until_.load(), to_word(asked_at) + terms_.ttl);
  return is_held() && !lost();  // the answer may have taken a TTL
}

std::optional<HeldLease::Releasing> HeldLease::begin_release(std::error_code& error) noexcept {
  error.clear();
  if (is_orphaned()) {
    error = Errc::shut_down;
    return std::nullopt;
  }
  State was = state_.load();
  do {
    if (was == State::returning || was == State::returned) return std::nullopt;
  } while (!state_.compare_exchange_weak(was, State::returning));
  return Releasing{was};
}

void HeldLease::end_release(Releasing releasing, bool released) noexcept {
  State mine = State::returning;
  state_.compare_exchange_strong(mine, released ? State::returned : releasing.was);
  if (released && releasing.was == State::held) tell(LeaseEvent::Change::released);
}

bool HeldLease::release(Span within, std::error_code& error) noexcept {
  const auto releasing = begin_release(error);
  if (!releasing) return false;
  const bool released = holds_nothing() || run(release_verb(*this, within), error);
  end_release(*releasing, !error);
  return released;
}

void HeldLease::release_later(const std::shared_ptr<HeldLease>& held) noexcept {
  const State was = held->state_.exchange(State::returned);
  if (was == State::returning || was == State::returned) return;
  if (was == State::held) held->tell(LeaseEvent::Change::released);
  send_release(held);
}

void HeldLease::release_unknown(const std::shared_ptr<HeldLease>& held) noexcept {
  held->state_ = State::returned;
  send_release(held);
}

void HeldLease::release_unknown(Store& store, const Plan& plan) noexcept try {
  for (const Step& step : plan.steps()) {
    if (step.operation != &leases_acquire) continue;
    const auto asked = unpack<LeasesRule::AcquireArgs>(step.args);
    if (asked.seek != 0) continue;
    const Terms terms{.limit = asked.limit, .weight = asked.weight, .ttl = asked.ttl};
    release_unknown(std::make_shared<HeldLease>(store, step.key, id_of(asked.id), terms));
  }
} catch (const std::bad_alloc&) {
  return;  // the lease expires by its TTL
}

/// What becomes of a release that nobody waits for. It keeps the lease meanwhile.
struct HeldLease::Sent {
  void operator()(std::error_code error, bool /*released*/) noexcept {
    const auto failed = held->terms_.failed.lock();
    if (!failed || held->is_orphaned()) return;
    if (!error) return failed->succeeded();
    failed->add(held, until, held->store().clock().now());
  }
  std::shared_ptr<HeldLease> held;
  Time until;
};

void HeldLease::send_release(const std::shared_ptr<HeldLease>& held, Time until) noexcept try {
  if (held->is_orphaned()) return;
  const Span within = until - held->store().clock().now();
  if (within <= Span{0}) return;
  Running<ReleaseStepVerb, Sent>::start(release_verb(*held, within), held, until);
} catch (const std::bad_alloc&) {
  return;  // the lease expires by its TTL
}

void HeldLease::send_release(const std::shared_ptr<HeldLease>& held) noexcept {
  if (held->is_orphaned() || held->holds_nothing()) return;
  send_release(held, held->store().clock().now() + Span{held->terms_.ttl});
}

bool HeldLease::lost() const noexcept {
  const State state = state_.load();
  // While a release is pending, the lease may be free already.
  if (state != State::held && state != State::returning) return state == State::lost;
  return is_orphaned() || store().clock().now() >= safe_until();
}

bool HeldLease::lose() noexcept {
  State held = State::held;
  return state_.compare_exchange_strong(held, State::lost);
}

void HeldLease::tell_lost() noexcept {
  if (!is_lost()) return;
  if (!told_lost_.exchange(true)) tell(LeaseEvent::Change::lost);
  std::optional<StopSource> told;  // copied, as what runs then may ask for another token
  {
    const std::lock_guard lock(telling_);
    told = lost_;
  }
  if (told) told->request_stop();
}

StopToken HeldLease::lost_token() {
  StopToken token;
  {
    const std::lock_guard lock(telling_);
    if (!lost_) lost_.emplace();
    token = lost_->get_token();
  }
  tell_lost();  // it may have been lost before
  return token;
}

LeaseManager::LeaseManager(const StoreHandle& store, TextArg name, const LeaseOptions& options,
                           std::shared_ptr<WaitQueues> queues)
    : store_(store),
      name_(valid_name(name)),
      options_(options),
      queues_(std::move(queues)),
      failed_(std::make_shared<FailedReleases>()) {
  const Word ttl = options_.ttl.count();
  if (ttl < LeasesRule::min_ttl || ttl > LeasesRule::max_ttl) {
    throw std::invalid_argument("LeaseOptions::ttl must be 1000 us to 1099511627776 us, got " +
                                std::to_string(ttl) + " us");
  }
  if (options_.release_within <= Span{0}) {
    throw std::invalid_argument("LeaseOptions::release_within must be 1 us or more, got " +
                                std::to_string(options_.release_within.count()) + " us");
  }
}

std::shared_ptr<HeldLease> LeaseManager::hold(const Key& key, Share share, Cost weight,
                                              const LeaseId& id, Seek seek) const {
  // Who knows the id may hold it anew before a release of it is sent again.
  const auto failed = seek == fresh_id ? std::weak_ptr(failed_) : std::weak_ptr<FailedReleases>();
  return std::make_shared<HeldLease>(
      *store_, named(key), id,
      HeldLease::Terms{share.limit, weight.value(), options_.ttl.count(), options_.release_within,
                       queues_, failed});
}

LeaseManager::Asking LeaseManager::ask(const Key& key, Share share, Cost weight, const LeaseId& id,
                                       Seek seek) const {
  auto held =
      hold(key, share, weight, id, seek);  // allocates first: after the grant nothing may fail
  failed_->send_again();
  const Step step = seek == known_id ? acquire_step(held->key(), share, weight, id)
                                     : acquire_new_step(held->key(), share, weight, id);
  return {*this, step, std::move(held), seek};
}

void LeaseManager::send_failed_releases() const noexcept { failed_->send_again(); }

void LeaseManager::answer_lost(const Key& key, Share share, Cost weight,
                               const LeaseId& id) const noexcept try {
  HeldLease::release_unknown(hold(key, share, weight, id, fresh_id));
} catch (const std::bad_alloc&) {
  return;  // the lease expires by its TTL
}

Lease LeaseManager::granted(const Decision& decision, std::span<const Word> output,
                            std::shared_ptr<HeldLease> held, Time asked_at) const {
  if (!decision.allowed) return {decision, nullptr};
  held->granted(decision, output, asked_at);
  Lease lease(decision, std::move(held));
  if (options_.renewer == nullptr) return lease;
  try {
    lease.keep_alive(*options_.renewer, options_.on_lost);
  } catch (const std::system_error&) {
    throw std::bad_alloc();  // no thread: what callers know as a shortage
  }
  return lease;
}

std::optional<Plan> LeaseManager::Asking::next() noexcept {
  if (!step_ || held_ == nullptr) return std::nullopt;
  if (!store().stamps_by_clock()) asked_at_ = store().clock().now();
  return Plan(*step_);
}

void LeaseManager::Asking::hear(const Outcome& outcome) noexcept {
  const auto held = std::exchange(held_, nullptr);
  error_ = outcome.error;
  if (error_ == Failure::unknown && seek_ == fresh_id) HeldLease::release_unknown(held);
  const bool stamped = !error_ && store().stamps_by_clock();
  const Time asked_at = stamped ? outcome.decision.at : asked_at_;
  std::error_code failed;
  const auto make = [&] {
    lease_ = leases_->granted(outcome.decision, outcome.output, held, asked_at);
  };
  call_within_memory(make, failed);
  if (failed) error_ = failed;
}

LeaseManager::Asking LeaseManager::asking(const Key& key, Share share, Cost weight) const noexcept
    try {
  return ask(key, share, weight, draw_id(), fresh_id);
} catch (const std::system_error& failure) {
  return {*this, failure.code()};
} catch (...) {  // std::bad_alloc, or an exception of the caller's generator
  return {*this, std::make_error_code(std::errc::not_enough_memory)};
}

LeaseManager::Asking LeaseManager::asking(const Key& key, Share share, Cost weight,
                                          const LeaseId& id) const noexcept try {
  return ask(key, share, weight, id, known_id);
} catch (const std::bad_alloc&) {
  return {*this, std::make_error_code(std::errc::not_enough_memory)};
}

Lease LeaseManager::adopt(const Key& key, Share share, Cost weight, const LeaseId& id,
                          const Decision& decision, std::span<const Word> output, Time asked_at,
                          Seek seek) const {
  if (output.size() != granted_words) {
    throw std::invalid_argument("adopt: a granted lease has 4 output words, got " +
                                std::to_string(output.size()));
  }
  if (!decision.allowed) return {decision, nullptr};
  return granted(decision, output, hold(key, share, weight, id, seek), asked_at);
}

Step LeaseManager::acquire_step(const Key& key, Share share, Cost weight,
                                const LeaseId& id) const noexcept {
  Step step{&leases_acquire,
            named(key),
            {share.limit, weight.value(), options_.ttl.count(), share.tier, known_id}};
  put_id(&step.args[5], id);
  return by_limit_of(step, weight);
}
Step LeaseManager::acquire_new_step(const Key& key, Share share, Cost weight,
                                    const LeaseId& id) const noexcept {
  Step step = acquire_step(key, share, weight, id);
  if (step.operation == &leases_acquire) step.args[4] = fresh_id;
  return step;
}
LeaseId LeaseManager::draw_id() const {
  return LeaseId::draw(options_.rng != nullptr ? *options_.rng
                                               : rng_of(store_->clock(), DrawFor::lease));
}
Step LeaseManager::peek_step(const Key& key, Share share, Cost weight) const noexcept {
  return by_limit_of({&leases_peek, named(key), {share.limit, weight.value(), share.tier}}, weight);
}
Step LeaseManager::release_step(const Key& key, Word limit, const LeaseId& id) const noexcept {
  Step step{&leases_release, named(key), {std::max(limit, Word{1}), 0}};
  put_id(&step.args[2], id);
  return step;
}
Step LeaseManager::renew_step(const Key& key, Word limit, const LeaseId& id) const noexcept {
  Step step{&leases_renew, named(key), {std::max(limit, Word{1}), options_.ttl.count(), 0}};
  put_id(&step.args[3], id);
  return step;
}
Step LeaseManager::reset_step(const Key& key, Word limit) const noexcept {
  return {&leases_reset, named(key), {std::max(limit, Word{1})}};
}
Step LeaseManager::block_step(const Key& key, Word limit, Span span) const noexcept {
  return by_limit({&leases_block, named(key), {limit, span.count()}});
}

}  // namespace detail

Lease::operator bool() const& noexcept { return held_ && held_->is_open(); }
LeaseId Lease::id() const noexcept { return held_ ? held_->id() : LeaseId{}; }
Word Lease::fence() const noexcept { return held_ ? held_->fence() : 0; }
Time Lease::expires_at() const noexcept { return held_ ? held_->expires_at() : Time{}; }
bool Lease::lost() const noexcept { return held_ && held_->lost(); }

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    end();
    decision_ = other.decision_;
    held_ = std::move(other.held_);
  }
  return *this;
}

Lease::~Lease() { end(); }

void Lease::end() noexcept {
  if (!*this) return;
  if (held_->is_orphaned() || !held_->may_block() || !held_->store().may_block()) {
    return detail::HeldLease::release_later(held_);
  }
  std::error_code error;
  held_->release(held_->terms().release_within, error);
  detail::HeldLease::release_later(held_);  // after an error, or while another release is pending
}

bool Lease::renew() {
  return detail::or_throw(
      {"Lease", "renew"}, [&] { return held_->renew_step(); },
      [&](auto& error) { return renew(error); });
}
bool Lease::renew(std::error_code& error) noexcept {
  error.clear();
  return held_ && detail::run(detail::RenewVerb(*this), error);
}

bool Lease::release() {
  return detail::or_throw(
      {"Lease", "release"}, [&] { return held_->renew_step(); },
      [&](auto& error) { return release(error); });
}
bool Lease::release(std::error_code& error) noexcept {
  error.clear();
  return held_ && held_->release(Span{0}, error);
}

void Lease::release_later() noexcept {
  if (*this) detail::HeldLease::release_later(held_);
}

void Lease::never_block() noexcept {
  if (held_) held_->never_block();
}

void Lease::renew_until(Time end) noexcept {
  if (held_) held_->renew_until(end);
}

StopToken Lease::lost_token() { return held_ ? held_->lost_token() : StopToken{}; }

void Lease::keep_alive(LeaseRenewer& renewer, OnLost on_lost) {
  // At the end of a simulated world the renewer may have been destroyed as well.
  if (held_ && !held_->is_orphaned() && !held_->holds_nothing())
    renewer.keep(held_, std::move(on_lost));
}

}  // namespace sluice
