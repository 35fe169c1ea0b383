// The token bucket: construction, calls, and how one waits for it.
#include "sluice/limiters/token_bucket.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sluice/extend/binding.hpp"
#include "sluice/extend/operation.hpp"
#include "sluice/limit_table.hpp"
#include "src/core/unit_text.hpp"
#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

/// "10/s", or with refills each minute "10/s@1min".
std::string unit_of(const Quota& quota, const BucketOptions& options) {
  const Span interval = options.refill.interval();
  return detail::rate_text(quota) + (interval > Span{1} ? '@' + detail::span_text(interval) : "");
}

/// What the states of a table's rates are counted in: "table/1min".
std::string unit_of_table(const QuotaTable* quotas) {
  return quotas == nullptr ? "" : "table/" + detail::span_text(quotas->unit());
}

/// The longest reservation that fits this quota: limit + (longest + interval) * refill within 2^52.
Word room(const Quota& quota, Word interval) {
  return (word_limit - quota.capacity() * quota.period()) / quota.refill() - interval;
}

Word valid_interval(const Quota& quota, const BucketOptions& options) {
  const Word interval = options.refill.interval().count();
  const Word most = std::min(TokenBucketReserve::max_interval, room(quota, 0));
  if (interval < 1 || interval > most) {
    reject("the interval of a refill must be 1 us to " + std::to_string(most) +
           " us with this quota, got " + std::to_string(interval) + " us");
  }
  return interval;
}

Word valid_longest(const Quota& quota, const BucketOptions& options, Word interval) {
  const Word most = std::min(TokenBucketReserve::max_longest, room(quota, interval));
  if (!options.longest) return std::min(most, TokenBucketRule::max_ahead);
  const Word longest = options.longest->count();
  if (longest < TokenBucketRule::max_ahead || longest > most) {
    reject("longest must be " + std::to_string(TokenBucketRule::max_ahead) + " to " +
           std::to_string(most) + " us with this quota, got " + std::to_string(longest) + " us");
  }
  return longest;
}

/// The time at which a bucket is full that had the initial tokens at the last refill. Rounded down,
/// so that no token is missing until the next one comes.
Word valid_full_at(Store& store, const Quota& quota, const BucketOptions& options, Word interval) {
  if (!options.initial) return 0;
  if (*options.initial < 0 || *options.initial > quota.capacity()) {
    reject("initial must be 0 to the burst of " + std::to_string(quota.capacity()) + ", got " +
           std::to_string(*options.initial));
  }
  const Word missing = (quota.capacity() - *options.initial) * quota.period();
  const Word now = to_word(store.clock().now());
  const Word full_at = now - now % interval + missing / quota.refill();
  return std::clamp(full_at, Word{0}, word_limit);
}

}  // namespace

TokenBucket::TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota)
    : TokenBucket(store, name, quota, BucketOptions{}) {}

TokenBucket::TokenBucket(const StoreHandle& store, detail::TextArg name, Quota quota,
                         const BucketOptions& options)
    : KeyedLimiter(store, name, unit_of(quota, options)),
      quota_(quota),
      refund_(options.refund),
      plain_(options.refill.interval() == Span{1} && !options.initial && !options.longest &&
             !detail::is_constant(quota.capacity())) {
  detail::pack(args_, TokenBucketRule::args(quota, 1));
  // Options of a limit without a rate are checked, and change nothing.
  const Quota rate = detail::is_constant(quota.capacity()) ? Quota::per_second(1) : quota;
  const Word interval = valid_interval(rate, options);
  shape_ = {quota.capacity(),
            quota.refill(),
            quota.period(),
            interval,
            valid_full_at(*store, quota, options, interval),
            valid_longest(rate, options, interval)};
}

TokenBucket::TokenBucket(const StoreHandle& store, detail::TextArg name,
                         std::shared_ptr<const LimitTable<Quota>> quotas,
                         const BucketOptions& options)
    : KeyedLimiter(store, name, unit_of_table(quotas.get())),
      quota_(std::move(quotas)),
      refund_(options.refund),
      plain_(!options.longest) {
  if (options.refill.interval() != Span{1} || options.initial) {
    reject("a bucket with a table of quotas has no initial units, and no interval of its refill");
  }
  shape_[3] = options.refill.interval().count();
  // Of no key: what shape_of_table() limits to the quota.
  shape_[5] = options.longest ? valid_longest(Quota::per_second(1), options, shape_[3])
                              : TokenBucketRule::max_ahead;
}

void TokenBucket::count_with_table(Step& simple, const Key& key, Cost cost) const noexcept {
  detail::pack(simple.args, TokenBucketRule::args(quota_.of(key), cost));
  if (detail::is_constant(simple.args[0])) simple = detail::constant_step(simple);
}

Arguments TokenBucket::shape_of_table(const Key& key) const noexcept {
  const Quota quota = quota_.of(key);
  const Word longest = std::min(shape_[5], room(quota, shape_[3]));
  return {quota.capacity(), quota.refill(), quota.period(), shape_[3], 0, longest};
}

Reservation TokenBucket::reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                                 std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost, max_wait), error);
}

Reservation TokenBucket::reserve(const KeyArg& key, Cost cost, SpanArg max_wait) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return reserve_step(key, cost, max_wait); },
      [&](auto& error) { return reserve(key, cost, max_wait, error); });
}

Reservation TokenBucket::borrow(const KeyArg& key, Cost cost, SpanArg max_debt) const {
  return detail::or_throw(
      {type_name, "borrow"}, [&] { return reserve_step(key, cost, max_debt); },
      [&](auto& error) { return borrow(key, cost, max_debt, error); });
}

Reservation TokenBucket::try_acquire_up_to(const KeyArg& key, Cost most, Cost least,
                                           std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire_up_to(*this, key, most, least), error);
}

Reservation TokenBucket::try_acquire_up_to(const KeyArg& key, Cost most, Cost least) const {
  return detail::or_throw(
      {type_name, "try_acquire_up_to"}, [&] { return up_to_step(key, most, least); },
      [&](auto& error) { return try_acquire_up_to(key, most, least, error); });
}

/// The words of a Reservation's state: the level and the stamp before the grant.
Step TokenBucket::refund_step(const Key& key, const Reservation& grant,
                              Cost amount) const noexcept {
  const Arguments shape = has_table() ? shape_of_table(key) : shape_;
  return detail::by_limit(
      {refund_ == Refund::in_full ? &token_bucket_refund_in_full : &token_bucket_refund,
       named(key),
       {shape[0], shape[1], shape[2], shape[3], grant.granted, amount.value(), grant.state[0],
        grant.state[1]}});
}

BoundTokenBucket TokenBucket::at(const KeyArg& key) const {
  const Step bound = acquire_step(key);
  if (has_table()) {
    throw detail::failed_with({type_name, "at"}, Errc::invalid_argument,
                              ": a bucket with a table of quotas is not bound to a key");
  }
  if (!is_valid(bound.key)) throw detail::failed_call({type_name, "at"}, Errc::invalid_key, bound);
  return {store_handle(), bound};
}

BoundTokenBucket::BoundTokenBucket(const StoreHandle& store, const Step& step)
    : store_(store),
      step_(step),
      bytes_(std::make_unique<char[]>(step.key.tag().size() + step.key.name().size() +
                                      step.key.unit().size())) {
  char* to = bytes_.get();
  const auto keep = [&to](std::string_view part) {
    char* const begin = to;
    to = std::copy(part.begin(), part.end(), begin);
    return std::string_view(begin, part.size());
  };
  const std::string_view tag = keep(step.key.tag());
  const std::string_view name = keep(step.key.name());
  step_.key = Key{tag, name}.with_unit(keep(step.key.unit()));
  step_.binding = &binding_;
  store_->bind(step_.key, binding_);
}

BoundTokenBucket::BoundTokenBucket(BoundTokenBucket&& other) noexcept
    : store_(other.store_),
      binding_(std::exchange(other.binding_, Binding())),
      step_(other.step_),
      bytes_(std::move(other.bytes_)) {
  step_.binding = &binding_;
  other.step_.key = Key{"", ""};
}

BoundTokenBucket& BoundTokenBucket::operator=(BoundTokenBucket&& other) noexcept {
  store_ = other.store_;
  binding_ = std::exchange(other.binding_, Binding());
  const Key key = std::exchange(other.step_.key, Key{"", ""});
  step_ = other.step_;
  step_.key = key;
  step_.binding = &binding_;
  bytes_ = std::move(other.bytes_);
  return *this;
}

void TokenBucket::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void TokenBucket::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

Decision TokenBucket::reward(const KeyArg& key, Cost amount,
                             std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision TokenBucket::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

struct TokenBucket::Verbs::Claimed final : detail::ClaimOf<TokenBucket, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().reserve_step(own_key(), cost(), Span{0}); }
  /// To the microsecond, from the time until the bucket is full.
  Span refill_time(const Decision& left) const noexcept override {
    const Quota quota = limiter().quota_.of(own_key());
    const Word units = cost().value();  // perhaps out of range: the rule says so
    if (limiter().shape_[3] != 1 || units < 0 || units > quota.capacity()) return Span{0};
    // In the units of the rule: see sluice/rules/token_bucket.hpp.
    const Word spent =
        std::min(left.reset_after.count(), word_limit / quota.refill()) * quota.refill();
    const Word over = spent + (units - quota.capacity()) * quota.period();
    return Span{std::max<Word>(0, (over + quota.refill() - 1) / quota.refill())};
  }
  /// The bucket is empty after a grant that had to wait.
  Span time_for(Word /*first*/, Word further) const noexcept override {
    const Quota quota = limiter().quota_.of(own_key());
    if (cost().value() > quota.capacity() || quota.is_unlimited()) return Span{0};
    const Word tokens = std::min(further, word_limit / quota.period()) * quota.period();
    const Word interval = limiter().shape_[3];
    return Span{tokens / quota.refill() / interval * interval};
  }
};

std::unique_ptr<detail::ClaimedLimit> TokenBucket::Verbs::claim(const TokenBucket& bucket,
                                                                const Key& key, Cost cost) {
  return std::make_unique<Claimed>(bucket, key, cost);
}

template class KeyedLimiter<TokenBucket>;

}  // namespace sluice
