// The place of this process in the wait line of all processes. sluice/rules/wait_line.hpp has the
// rule, docs/waiting.md what it promises.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "sluice/detail/store_ref.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/rules/wait_line.hpp"
#include "src/waiting/wake_up.hpp"

namespace sluice::detail {

class WaitQueues;

/// What a process knows of the others in a wait line, by the answers about it and by wake-ups, and
/// when its first caller asks therefore. Under the mutex of the waits. `recheck` is that of
/// WaitQueueOptions.
class OtherProcesses {
 public:
  /// By an answer. `counts`: it tells the units ahead of this process.
  void hear(std::span<const Word, WaitLineRule::output> told, Span round_trip, bool counts,
            Time now) noexcept;
  /// It is the next caller's turn.
  void forget_those_ahead() noexcept { units_ahead_ = 0; }
  [[nodiscard]] bool are_ahead() const noexcept { return units_ahead_ > 0; }
  [[nodiscard]] Word units_ahead() const noexcept { return units_ahead_; }
  /// When all ahead have expired, unless they live: a look tells whether they do. Time::max(): not
  /// known, as after begin_look().
  [[nodiscard]] Time gone_at() const noexcept { return are_ahead() ? gone_at_ : Time::max(); }
  void begin_look() noexcept { gone_at_ = Time::max(); }
  /// 0: there is none.
  [[nodiscard]] Word first() const noexcept { return first_; }
  [[nodiscard]] Span round_trip() const noexcept { return round_trip_; }
  /// At `at` the limiter has units for all ahead and the first caller here, and `beyond` for
  /// others. After each refusal of an early request the next one waits twice as long.
  void expect_enough(Time at, Word beyond, Time now, Span recheck) noexcept;
  /// It has them now for those ahead up to this count of the rule; 0: it does not.
  [[nodiscard]] Word enough(Time now) const noexcept {
    return are_ahead() && now >= enough_at_ ? enough_ : 0;
  }

  // Wake-ups.

  void set_listening(bool listens) noexcept { is_listening_ = listens; }
  /// They say when it is this process's turn.
  [[nodiscard]] bool wake_ups_arrive() const noexcept { return is_listening_ && !loses_wake_ups_; }
  void woke(Woken by) noexcept;
  void forget_wake_up() noexcept { is_woken_ = false; }
  /// Since the last request was sent.
  [[nodiscard]] bool have_woken() const noexcept { return is_woken_; }
  /// How the first of them is woken: by a release if something came back, and the limiter has not
  /// refused since. It may take what is left of that.
  Woken take_release() noexcept {
    return std::exchange(is_released_, false) ? Woken::by_release : Woken::by_turn;
  }

  // The first caller of this process.

  enum class Asks : std::uint8_t {
    first,    ///< as far as it knows
    woken,    ///< behind another process, after a wake-up
    unwoken,  ///< ... without one
    early,    ///< ... since the limiter has enough for all ahead
  };
  /// It asks now.
  [[nodiscard]] Asks ask(Time now) noexcept;
  /// When it asks that has a hint for `hint`.
  [[nodiscard]] Time ask_at(Time hint) const noexcept {
    return is_woken_ ? hint : std::max(hint, std::min(quiet_until_, enough_at_));
  }
  /// Whether others of this process may ask, while those ask who take so many units.
  [[nodiscard]] bool may_ask_beside(Time now, Word units) const noexcept;
  /// It asks as soon as the limiter may have units.
  void ask_at_once() noexcept { quiet_until_ = Time::min(); }
  void granted(Asks how, Time now, Span recheck) noexcept;
  /// It was refused, since others were ahead, whose tickets have expired at `latest`. `by_turn`:
  /// the limiter alone would have granted it. It asks again at `ask`, or later.
  void refused(Asks how, bool by_turn, Time ask, Time latest, Span longest_poll) noexcept;
  /// An answer to a renewal of the ticket, of a caller that asks at `ask`.
  void renewed(bool was_behind, Time ask, Span recheck) noexcept;

 private:
  [[nodiscard]] Time quiet_until(Time from, Span recheck) noexcept;

  Word first_ = 0;
  Word units_ahead_ = 0;
  Word granted_ = 0;  // the wait line's count when it said so
  Time gone_at_ = Time::max();
  Span round_trip_{0};
  Time enough_at_ = Time::max();    // see expect_enough()
  Word enough_ = 0;                 // ...
  unsigned in_vain_ = 0;            // so often that was wrong
  Time quiet_until_ = Time::min();  // no request before this, unless woken
  Span poll_{0};                    // the next pause while others are ahead; 0: the first one
  bool found_first_ = false;        // this process, by a renewal: nobody had woken it
  bool is_woken_ = false;
  bool is_released_ = false;
  bool loses_wake_ups_ = false;  // a request that was sent without a wake-up was granted
  bool is_listening_ = false;
};

/// The ticket of this process for one key: the requests about it, and what the store has. All but
/// leave(), wake() and listen() run under the mutex of the waits; none waits for an answer.
class QueueTicket : public std::enable_shared_from_this<QueueTicket> {
 public:
  /// `was_contended`: other processes waited for the key lately.
  QueueTicket(Store& store, const Key& key, Word client, Span ttl, bool was_contended)
      : store_(store),
        tag_(key.tag()),
        name_(wait_line_name(key)),
        client_(client),
        ttl_(ttl),
        was_contended_(was_contended) {}

  [[nodiscard]] OtherProcesses& others() noexcept { return others_; }
  [[nodiscard]] Span ttl() const noexcept { return ttl_; }
  /// A ticket lives through a hint of the limiter up to this long without being renewed.
  static constexpr Span longest_hint = std::chrono::minutes{9};

  /// A caller in the wait line.
  struct Caller {
    Word arrival;  ///< by the store's clock; 0: there is none
    Word units = 1;
  };
  /// Asks whether it is this caller's turn. If so, the ticket passes to the next one, or is given
  /// up.
  [[nodiscard]] Step turn_step(const Caller& caller, const Caller& next, Time now) const noexcept;
  [[nodiscard]] Step enter_step(const Caller& caller, Span life) const noexcept;
  /// Gives the ticket up if its arrival in the store is this one, and wakes the process that is
  /// first then.
  void leave(Word at) noexcept;
  void wake(const NextProcess& next) const noexcept {
    wake_client(store_, tag_, name_, next.client, next.by);
  }
  /// True once: listen() must follow.
  [[nodiscard]] bool begin_listening() noexcept { return !std::exchange(listen_called_, true); }
  /// Has the first waiter of the queue woken when other processes wake this one.
  void listen(const std::shared_ptr<WaitQueues>& queues, const std::string& queue) noexcept;

  /// A request that was sent at `sent` has entered it, or failed to: then it is sent again when the
  /// ticket is to be renewed. A rank orders processes, see TurnInLine::rank().
  void entered(Word arrival, Word rank, Time sent, Span life) noexcept;
  /// ... has passed it on to the next caller here, if there is one.
  void passed_on(const Caller& next, Word rank, Time sent, Span life) noexcept;
  /// It is no longer needed. Returns the arrival to leave(), or 0.
  [[nodiscard]] Word give_up() noexcept {
    return std::exchange(is_entered_, false) ? stored_arrival_ : 0;
  }
  [[nodiscard]] bool is_before(Word rank) const noexcept { return is_entered_ && rank_ < rank; }
  /// The waiters of this process have this rank, and the ticket a later one; or an earlier one, for
  /// which other processes wait.
  [[nodiscard]] bool is_misplaced(Word rank) const noexcept {
    return is_entered_ && (rank < rank_ || (rank > rank_ && others_.first() != 0));
  }
  /// A caller of this rank must enter before it asks.
  [[nodiscard]] bool must_enter(Word rank) const noexcept;
  /// When a caller of this rank, who asks at `ask`, must enter or renew it.
  [[nodiscard]] Time renew_at(Word rank, Time ask, Time now) const noexcept;

 private:
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }

  StoreRef store_;
  std::string tag_;
  std::string name_;
  Word client_;
  Span ttl_;
  std::unique_ptr<Subscription> turns_;     // written once, before the ticket is entered
  std::unique_ptr<Subscription> releases_;  // likewise
  bool listen_called_ = false;
  OtherProcesses others_;
  bool was_contended_;
  bool is_entered_ = false;
  Word rank_ = 0;
  Word stored_arrival_ = 0;
  Time alive_until_{};  // a lower bound of its life in the store
};

}  // namespace sluice::detail
