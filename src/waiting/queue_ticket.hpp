// The place of this process in the wait line of all processes. sluice/rules/wait_line.hpp has the
// rule, docs/waiting.md what it promises.
#pragma once

#include <memory>
#include <string>

#include "sluice/detail/store_ref.hpp"
#include "sluice/rules/wait_line.hpp"
#include "src/waiting/wake_up.hpp"

namespace sluice::detail {

class WaitQueues;

/// The ticket of this process for one key: the requests about it, and what the process knows of the
/// wait line. The mutex of WaitQueues guards the data members; any thread may call the functions,
/// none of which waits for an answer.
class QueueTicket : public std::enable_shared_from_this<QueueTicket> {
 public:
  QueueTicket(Store& store, const Key& key, Word client, Span ttl)
      : store_(store), tag_(key.tag()), name_(wait_line_name(key)), client_(client), ttl_(ttl) {}

  /// A caller in the wait line.
  struct Caller {
    Word arrival;  ///< by the store's clock; 0: there is none
    Word units = 1;
  };
  /// Asks whether it is this caller's turn. If so, the ticket passes to the next one, or is given
  /// up. `up_to` is the rule's `enough`.
  [[nodiscard]] Step turn_step(const Caller& caller, const Caller& next,
                               Word up_to) const noexcept {
    return {&wait_line_turn,
            key(),
            {word_limit, client_, caller.arrival, ttl_.count(), caller.units, next.arrival,
             next.units, up_to}};
  }
  [[nodiscard]] Step enter_step(const Caller& caller, Span life) const noexcept {
    return {
        &wait_line_enter, key(), {word_limit, client_, caller.arrival, life.count(), caller.units}};
  }
  /// Gives the ticket up if its arrival in the store is this one, and wakes the process that is
  /// first then.
  void leave(Word at) noexcept;
  void wake(Word client, Woken by) const noexcept { wake_client(store_, tag_, name_, client, by); }
  /// Has the first waiter of the queue woken when other processes wake this one. Called once.
  void listen(const std::shared_ptr<WaitQueues>& queues, const std::string& queue) noexcept;

  [[nodiscard]] bool is_behind() const noexcept { return units_ahead > 0; }
  [[nodiscard]] const StoreRef& store() const noexcept { return store_; }
  [[nodiscard]] Span ttl() const noexcept { return ttl_; }
  /// True after listen() if the store delivers wake-ups.
  [[nodiscard]] bool is_listening() const noexcept {
    return turns_ != nullptr && releases_ != nullptr;
  }

  /// A ticket lives through a hint of the limiter up to this long without being renewed.
  static constexpr Span longest_hint = std::chrono::minutes{9};

  // What is known of the wait line.
  bool is_entered = false;
  Word rank = 0;                   // what it says; see Waiter::rank()
  Word stored_arrival = 0;         // as the store has it
  Time alive_until{};              // a lower bound of its life in the store
  Time renewed_at{};               // when the request was sent that wrote it last
  bool was_contended = false;      // other processes waited for the key lately
  bool found_first = false;        // by a renewal: nobody had woken it
  Span round_trip{0};              // of the last request about the wait line
  Word units_ahead = 0;            // of other processes
  Word granted = 0;                // the wait line's count when it said so
  Time enough_at = Time::max();    // the limiter has units for all ahead and the first waiter here
  Word enough = 0;                 // ... those ahead up to this count
  unsigned in_vain = 0;            // so often the first waiter has asked for that, and was refused
  Word first_other = 0;            // the first of the other processes; 0: there is none
  Time quiet_until = Time::min();  // no request before this, unless woken
  Span poll{0};                    // the next pause while others are ahead; 0: the first one
  bool is_woken = false;           // since the last request was sent
  bool is_released = false;        // something came back, and the limiter has not refused since
  bool loses_wake_ups = false;     // a request that was sent without a wake-up was granted
  bool listen_called = false;
  bool receives_wake_ups = false;

 private:
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }

  StoreRef store_;
  std::string tag_;
  std::string name_;
  Word client_;
  Span ttl_;
  std::unique_ptr<Subscription> turns_;     // written once, before the ticket is entered
  std::unique_ptr<Subscription> releases_;  // likewise
};

}  // namespace sluice::detail
