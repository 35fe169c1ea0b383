// What a PrefetchStore holds and knows of one key: lots of units, the demand, refusals. It decides,
// and does no I/O. Threading: guarded by the lock of its shard.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/stores/prefetch_rules.hpp"

namespace sluice::prefetch {

/// At most this part of what remains is taken ahead of need.
inline constexpr Word fair_part = 4;

/// Units that the store granted together.
struct Lot {
  Taken taken;
  Word granted = 0;
  Word units = 0;            ///< left
  Time from{};               ///< spent from here on: the grant is not before its time
  Time until{};              ///< and before this
  Word at = 0;               ///< the store's time of the grant
  std::uint64_t number = 0;  ///< in the account
  Word refundable = 0;       ///< spent by grants that may still be refunded
  bool is_shared = false;    ///< another grant may have this lot's words, which a refund names

  [[nodiscard]] bool is_of(const RefundAsked& refund) const noexcept {
    return taken.level == refund.level && taken.stamp == refund.stamp &&
           taken.version == refund.version;
  }
};

/// The units that were spent lately: in the last `period`, with the one before weighted by the part
/// of it that is still covered.
class Demand {
 public:
  explicit Demand(Span period) noexcept : period_(period) {}
  void note(Word units, Time now) noexcept;
  [[nodiscard]] Word lately(Time now) noexcept;

 private:
  void turn(Time now) noexcept;

  Span period_;
  Time start_{};
  Word current_ = 0;
  Word previous_ = 0;
};

/// The store's refusal of a cost.
struct Refusal {
  Word cost = 0;
  Time fits_at{};  ///< by this process's clock: granted from then on
  Time until{};    ///< believed until then
  Word remaining = 0;
  Time clear_at{};
};

/// A decision that was made here.
struct Local {
  Verdict verdict;
  const Lot* lot = nullptr;  ///< that it was spent from, the first of them
  Time until = Time::max();  ///< and how long all of it could have been spent
};

class Account {
 public:
  struct Terms {
    Span hold;
    Word most;
    Span recheck;
    bool same_clock;  ///< the store's time is that of this process
  };

  /// Throws std::bad_alloc.
  Account(const Step& step, const Terms& terms);

  /// Another step of this key: it may be decided here if it has the account's limit.
  [[nodiscard]] bool accepts(const Step& step) noexcept;
  /// A step like the last one, which lives as long as the account.
  [[nodiscard]] Step pattern() const noexcept;

  [[nodiscard]] bool is_before(Time now) const noexcept { return now < latest_; }
  /// Drops lots and refusals whose time is over, and everything if the clock was set back. Returns
  /// the number of units dropped.
  Word expire(Time now) noexcept;

  /// Decides by what is held and known; none: the store must be asked.
  [[nodiscard]] std::optional<Local> decide(const Request& request, Time now) noexcept;
  [[nodiscard]] bool can_spend(Word cost, Time now) const noexcept {
    return spendable(now) >= cost;
  }
  /// Spends units that can be spent now; false: there are not so many.
  [[nodiscard]] bool take(Word units, Time now) noexcept;
  /// Counts units that the store was asked for directly.
  void note_demand(Word units, Time now) noexcept { demand_.note(units, now); }
  /// Units of a grant of decide() that was not used go back to the lot of this number, and count
  /// no longer than they did. Returns those that lapse.
  [[nodiscard]] Word restore(std::uint64_t number, const Request& unused, Time until) noexcept;
  /// Takes a refund of a grant that was made here; false: it is not known.
  [[nodiscard]] bool refund(const RefundAsked& refund) noexcept;

  /// A part of what can be spent now, of one lot, which another place spends instead.
  struct Part {
    Word units = 0;
    Time until{};
  };
  [[nodiscard]] Part take_part(Word most, Time now) noexcept;
  /// Units of take_part() that were not spent. Returns those that lapse.
  [[nodiscard]] Word put_back(Word units, Time until, Time now) noexcept;

  /// True if little is left for what was spent lately, so that the store should be asked.
  [[nodiscard]] bool runs_low(Time now) noexcept;
  /// The units that are missing for a request of this cost.
  [[nodiscard]] Word need(Word cost) const noexcept;
  /// What to ask the store for ahead of need: `most`, if callers wait for `least`.
  [[nodiscard]] Ask next_ask(Word least, Time now) noexcept;

  /// Does not ask ahead for a while, since the store could not decide.
  void pause(Time now) noexcept { quiet_until_ = now + terms_.hold / 8; }
  /// Adds units that were asked for at `sent` and granted as `decision` says, unless `hold` is
  /// over. If their window is, they are for the callers of this trip alone, as without prefetching:
  /// then drop_last(), which returns what is left of them.
  enum class Added : std::uint8_t { held, for_callers, late };
  [[nodiscard]] Added add(const Taken& taken, const Decision& decision, Time sent,
                          Time now) noexcept;
  [[nodiscard]] Word drop_last() noexcept;
  /// Notes that the store refused this.
  void refuse(const Request& request, const Decision& decision, Time now) noexcept;
  /// A change of the limit: what was refused may be granted now.
  void forget_refusals() noexcept {
    refusals_.clear();
    ++changes_;
  }
  /// How often the limit has changed.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  /// Drops what is held, and ignores what the store grants by an earlier question.
  Word drop() noexcept;

  [[nodiscard]] Time clear_at() const noexcept { return clear_at_; }
  [[nodiscard]] Word held() const noexcept;
  [[nodiscard]] bool has_lots() const noexcept { return !lots_.empty(); }
  [[nodiscard]] bool is_refused() const noexcept { return !refusals_.empty(); }
  /// Nobody has asked for half of `hold`, nor was told to come back since.
  [[nodiscard]] bool is_idle(Time now) const noexcept;
  void forget_lots() noexcept { lots_.clear(); }
  [[nodiscard]] std::vector<Lot>& lots() noexcept { return lots_; }
  [[nodiscard]] Word remaining(Time now) const noexcept;
  [[nodiscard]] Word capacity() const noexcept;
  /// The store has another capacity than it told. False if it has told none.
  bool forget_capacity() noexcept { return std::exchange(capacity_, 0) > 0; }
  /// False for a cost that the store never grants at once, whatever is held.
  [[nodiscard]] bool may_grant(Word cost) const noexcept {
    return capacity() == 0 || cost <= capacity();
  }
  /// The store's time at `now`, as far as it is known: never ahead of it.
  [[nodiscard]] Time store_time(Time now) const noexcept { return now + ahead_; }
  /// How often everything was dropped.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// The store cannot grant now, so that units are reserved ahead.
  [[nodiscard]] bool is_scarce() const noexcept { return scarce_; }
  /// ... and so many wait that a lot more or less makes no difference.
  [[nodiscard]] bool is_crowded() const noexcept { return scarce_ && line_ > terms_.hold / 8; }

 private:
  [[nodiscard]] std::optional<Time> ready_at(Word cost, Time now) const noexcept;
  [[nodiscard]] Local spend(const Request& request, Time ready, Time now) noexcept;
  [[nodiscard]] Local refused(Word remaining, Word wait, Time clear_at, Time now) const noexcept;
  [[nodiscard]] Word spendable(Time now) const noexcept;
  [[nodiscard]] Word next_share() noexcept;
  void note_line(Span wait) noexcept;
  [[nodiscard]] Time instant_of(const Decision& decision, Time now) const noexcept;
  void note_store(const Decision& decision, Time now) noexcept;

  Terms terms_;
  std::string bytes_;
  std::size_t tag_size_, name_size_;
  const Operation* operation_;
  Arguments args_;
  Word limit_;

  std::vector<Lot> lots_;  // in the order of their times
  Demand demand_;
  Word unmet_ = 0;  // units refused since the last trip
  std::vector<Refusal> refusals_;
  Word target_ = word_limit;  // what was last to be taken ahead of need
  Word remaining_ = 0;        // at the store, when it was last told
  Word capacity_ = 0;         // of the store, if it has told
  bool scarce_ = false;
  Span line_{0};  // the length of the line, as the last grant told
  // Where units are scarce: the mean size of lots, and what the last ones lack of it.
  double share_ = 1;
  double carry_ = 0;
  Time clear_at_{};
  Time quiet_until_{};
  Time latest_{};
  Time last_use_{};
  Span ahead_{0};
  std::uint64_t epoch_ = 0;
  std::uint64_t changes_ = 0;
  std::uint64_t lots_made_ = 0;
  Word last_stamp_ = -1;     // of all lots
  Word dropped_stamp_ = -1;  // when everything was dropped
};

}  // namespace sluice::prefetch
