// A token bucket whose quota lives in the store. See sluice/algorithms/shared_bucket.hpp for the
// rule.
#pragma once

#include <optional>
#include <string>

#include "sluice/algorithms/shared_bucket.hpp"
#include "sluice/keyed_limiter.hpp"

namespace sluice {

/// Limits each key to the quota that was set for it in the store: whoever sets another changes it
/// for all processes at once, from the next request on.
///
///     SharedBucket bucket{*store, "plan"};
///     bucket.try_set("alice", Quota::per_second(10));                     // the first one wins
///     bucket.try_acquire("alice");
///     bucket.set("alice", Quota::per_second(20), Inheritance::additive);  // everywhere, at once
///
/// A key without a quota answers Errc::not_configured; a quota is forgotten after `keep_alive`
/// without a grant. Give limiters of the same name the same keep_alive. Decision::limit is the
/// quota's burst in the calls of this class; in plans and the other forms of a call it is 0,
/// because only the store knows it (see the details of shared_bucket_take). Immutable: one object
/// serves any number of threads. REQUIRES: the store outlives the limiter.
class SharedBucket : public KeyedLimiter<SharedBucket> {
 public:
  static constexpr Span default_keep_alive = std::chrono::hours{24 * 30};

  /// Throws std::invalid_argument if `name` is empty or longer than 1 MiB, or `keep_alive` is below
  /// 1 us or above 71 years.
  SharedBucket(Store& store, std::string name, Span keep_alive = default_keep_alive);

  /// A quota as it is in the store.
  struct Setting {
    Quota quota;
    Word version;       ///< one more with each change
    Decision decision;  ///< what remains, and until when
  };
  /// What set() and try_set() ended in.
  struct Change {
    bool changed;  ///< false: there was a quota, and try_set() left it alone
    Word version;  ///< the one in force now
  };

  /// Sets the quota if there is none. Errc::invalid_argument, here and in set(), if keep_alive is
  /// shorter than such a bucket takes to fill.
  Change try_set(const Key& key, const Quota& quota) const;
  Change try_set(const Key& key, const Quota& quota, std::error_code& error) const noexcept;
  /// Sets the quota; what the old one left is taken over as `inheritance` says. No interval ever
  /// admits more than the largest burst and the largest rate in force in it allow.
  Change set(const Key& key, const Quota& quota,
             Inheritance inheritance = Inheritance::as_is) const;
  Change set(const Key& key, const Quota& quota, Inheritance inheritance,
             std::error_code& error) const noexcept;
  /// The quota in force, or none.
  std::optional<Setting> read(const Key& key) const;
  std::optional<Setting> read(const Key& key, std::error_code& error) const noexcept;

  using KeyedLimiter::peek;
  using KeyedLimiter::try_acquire;
  /// As those of KeyedLimiter, with the limit filled in.
  Decision try_acquire(const Key& key, Cost cost = 1) const;
  Decision try_acquire(const Key& key, Cost cost, std::error_code& error) const noexcept {
    return ask(take(key, cost), error);
  }
  Decision peek(const Key& key, Cost cost = 1) const;
  Decision peek(const Key& key, Cost cost, std::error_code& error) const noexcept {
    return ask(look(key, cost), error);
  }

  [[nodiscard]] Step take(const Key& key, Cost cost = 1) const noexcept {
    return {&shared_bucket_take, named(key), {0, cost.value(), keep_alive_.count()}};
  }
  [[nodiscard]] Step look(const Key& key, Cost cost = 1) const noexcept {
    return {&shared_bucket_peek, named(key), {0, cost.value(), keep_alive_.count()}};
  }
  [[nodiscard]] Step set_step(const Key& key, const Quota& quota, Inheritance inheritance,
                              bool if_absent = false) const noexcept {
    return {&shared_bucket_set,
            named(key),
            {quota.capacity(), quota.refill(), quota.period(), keep_alive_.count(),
             static_cast<Word>(inheritance), if_absent ? 1 : 0}};
  }

  [[nodiscard]] Span keep_alive() const noexcept { return keep_alive_; }

 private:
  Decision ask(const Step& step, std::error_code& error) const noexcept;
  Change change(const Step& step, std::error_code& error) const noexcept;

  Span keep_alive_;
};

}  // namespace sluice
