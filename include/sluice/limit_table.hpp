// LimitTable: the limits of keys, by tier and by key, replaced as a whole while limiters use it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/window_limit.hpp"

namespace sluice {

/// The limits of one to eight sliding windows.
using WindowLimits = std::vector<WindowLimit>;

/// Who has which limit. A `Limit` is a Quota (TokenBucket), a Word (FixedWindow,
/// SlidingWindowCounter, ConcurrencyLimiter) or WindowLimits (SlidingWindow).
///
///     LimitList list(Quota::per_second(10));         // everyone
///     list.tier("gold", Quota::per_second(100));
///     list.assign("alice", "gold");
///     list.limit("bob", Quota::per_minute(3));
///     list.allow("health");                          // always; costs nothing
///     list.deny("mallory");                          // never
///
/// Keys are compared with Key::tag(). Each key stands once. Every call throws
/// std::invalid_argument, which names the key or the tier, and changes nothing, if the key or tier
/// stands there already, if there is no such tier (with the most similar one), or if the limit is
/// out of range: 0 to 2^40 or `unlimited` of a Word; windows with the spans of everyone's; or if a
/// quota does not fit unit(). A value; each call is O(log n).
template <class Limit>
class LimitList {
 public:
  /// The limit of a key: its own, or that of a tier.
  struct Row {
    std::string tier;  ///< empty: its own
    Limit limit;

    friend bool operator==(const Row&, const Row&) = default;
  };

  explicit LimitList(Limit everyone) : LimitList(std::move(everyone), default_unit) {}
  /// Of quotas, which a table counts in `unit`. It is part of the keys under which the buckets are
  /// stored: another unit is another count.
  LimitList(Limit everyone, SpanArg unit);

  LimitList& tier(detail::TextArg name, Limit limit);
  LimitList& assign(detail::TextArg key, detail::TextArg tier);
  LimitList& limit(detail::TextArg key, Limit limit);
  LimitList& allow(detail::TextArg key);
  LimitList& deny(detail::TextArg key);

  /// The limit of all keys that have no row.
  [[nodiscard]] const Limit& everyone() const noexcept { return everyone_; }
  [[nodiscard]] const std::map<std::string, Limit, std::less<>>& tiers() const noexcept {
    return tiers_;
  }
  [[nodiscard]] const std::map<std::string, Row, std::less<>>& rows() const noexcept {
    return rows_;
  }
  /// Of quotas: their periods divide it, so that one state serves every rate of the table. The
  /// longest burst is about 2^51 us / unit: 37 million for a minute, 26,000 for a day. 0 of others.
  [[nodiscard]] Span unit() const noexcept { return unit_; }

  friend bool operator==(const LimitList&, const LimitList&) = default;

 private:
  static constexpr Span default_unit =
      std::same_as<Limit, Quota> ? Span{std::chrono::minutes{1}} : Span{0};

  void check(const std::string& whose, const Limit& limit) const;
  LimitList& add(detail::TextArg key, Row row);

  Limit everyone_;
  Span unit_{0};
  std::map<std::string, Limit, std::less<>> tiers_;
  std::map<std::string, Row, std::less<>> rows_;
};

LimitList(Quota)->LimitList<Quota>;
LimitList(Quota, SpanArg)->LimitList<Quota>;
LimitList(WindowLimits)->LimitList<WindowLimits>;
template <CountType T>
LimitList(T) -> LimitList<Word>;

/// What changes from one list to another, a line each, for people:
///
///     everyone: 10/s -> 5/s
///     tier "gold": 100/s -> 200/s
///     key "alice": tier "gold" -> 3/min
///     key "bob": 3/min -> as everyone
template <class Limit>
[[nodiscard]] std::vector<std::string> difference(const LimitList<Limit>& from,
                                                  const LimitList<Limit>& to);

/// A list of limits that limiters read at each call, and that is replaced while they do.
///
///     const auto quotas = std::make_shared<QuotaTable>(list);
///     const TokenBucket bucket(store, "api", quotas);
///     ...
///     quotas->replace(new_list);
///
/// A call counts with one list, the one before or the new one. A key keeps what it has spent: its
/// state is the same under every limit of the table, and is read with the limit of the call. Over a
/// change, any interval thus admits at most what the larger of the limits admits in it; of buckets,
/// the larger burst and the larger rate. A call that waits asks with the new limit within
/// WaitQueueOptions::recheck.
///
/// Thread-safe. Reading is wait-free; it is O(1), and locks nothing that replace() holds.
template <class Limit>
class LimitTable {
 public:
  explicit LimitTable(LimitList<Limit> list);
  ~LimitTable();
  LimitTable(const LimitTable&) = delete;
  LimitTable& operator=(const LimitTable&) = delete;

  /// Replaces the whole list. Returns the difference. Throws std::invalid_argument, and keeps the
  /// list, if the new one has another unit or other spans of windows. Blocks until no call reads
  /// the old list any more, some nanoseconds; O(n).
  std::vector<std::string> replace(LimitList<Limit> list);
  /// Throws as replace() does, and replaces nothing.
  void check(const LimitList<Limit>& list) const;
  /// A copy of the list in use.
  [[nodiscard]] LimitList<Limit> list() const;

  /// The limit of a key with this tag.
  [[nodiscard]] Limit limit_of(std::string_view key) const;

  // For limiters.
  [[nodiscard]] detail::Counted<Limit> counted(std::string_view key) const noexcept;
  [[nodiscard]] detail::Counted<Limit> counted_everyone() const noexcept;
  [[nodiscard]] Span unit() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

using QuotaTable = LimitTable<Quota>;

}  // namespace sluice
