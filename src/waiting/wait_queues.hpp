// The queues of the callers that wait for a limiter in this process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sluice/detail/waiter.hpp"
#include "sluice/wait_options.hpp"
#include "src/waiting/line.hpp"
#include "src/waiting/queue_ticket.hpp"

namespace sluice::detail {

/// The callers that wait for one key. Guarded by the mutex of its WaitQueues.
struct WaitQueue {
  /// The most requests of one queue that are at the store at once. With several, a queue that is
  /// granted moves faster than one waiter a round trip; a refused waiter is overtaken by at most
  /// this many.
  static constexpr std::size_t max_in_flight = 16;

  /// May throw std::bad_alloc.
  void insert(const std::shared_ptr<Waiter>& waiter);
  void erase(Waiter& waiter) noexcept;
  /// The first of those that are neither asking nor entering; null: there is none.
  [[nodiscard]] Waiter* first() const noexcept;
  /// The first is asking.
  Waiter& take_first() noexcept;
  /// It is neither asking nor entering any more.
  void put_back(const Waiter& waiter) noexcept;
  void grant(Waiter& waiter) noexcept;
  [[nodiscard]] static Line::Place place_of(const Waiter& waiter) noexcept;

  std::map<std::uint64_t, std::shared_ptr<Waiter>> waiters;  // by arrival
  Line line;
  enum class Unjudged : std::uint8_t { none, one, all };
  Unjudged unjudged = Unjudged::none;  // whose deadlines may be too early: see end_one_too_late()
  std::uint64_t unjudged_one = 0;
  std::size_t in_flight = 0;                    // asking or entering
  std::size_t in_flight_limit = max_in_flight;  // as the last answer suggests
  Time last_grant{};                            // the time of the latest grant
  Decision left{};                              // what that has left; see Waiter::left()
  bool is_pumping = false;
  bool pump_again = false;
  std::uint64_t releases = 0;  // how often wake_first() was called
  std::weak_ptr<QueueTicket> ticket{};
};

/// The queues of one limiter, one for each key. A new caller queries the store once all earlier
/// callers have been answered, or at once while recent answers were grants. A caller that is
/// refused and can still meet its deadline becomes the first of its queue; only the first asks
/// again. Thread-safe.
class WaitQueues : public std::enable_shared_from_this<WaitQueues> {
 public:
  /// Throws std::invalid_argument if an option is out of range. Applies to callers that come later.
  void set(const WaitQueueOptions& options);
  [[nodiscard]] WaitQueueOptions options() const;

  enum class Woken : std::uint8_t {
    by_release,  ///< something came back in this process: the limiter may grant before its hint
    by_turn,     ///< another process says that it is this one's turn
  };
  /// Has the first waiter for the key ask again at once, or at the limiter's hint if it is woken by
  /// its turn alone. A release of another process comes as a turn.
  void wake_first(std::string_view key, Woken by = Woken::by_release) noexcept;
  /// The ticket of this process for the key, shared by all that wait for it here; null without
  /// WaitQueueOptions::across_processes.
  [[nodiscard]] std::shared_ptr<QueueTicket> ticket(Store& store, const Key& key);
  /// Whether who waits there may hold tickets.
  [[nodiscard]] bool has_tickets_at(const Store& store) const {
    return options().across_processes && store.keeps_order();
  }
  /// The number of this process in wait lines; 0: it has none.
  [[nodiscard]] Word client() const noexcept;
  /// Cancels all waits.
  void cancel_all() noexcept;
  /// True if the first waiter for the key sleeps, and a call like this one that asks for so many
  /// units would be behind it.
  [[nodiscard]] bool has_sleeper_before(const std::string& key, const Waiter& call,
                                        Word units) noexcept;
  /// How many callers wait for the key.
  [[nodiscard]] std::size_t waiting(std::string_view key) const;

 private:
  friend class Waiter;

  /// Other processes wait for the key, for which nobody waits here any more.
  void note_contended(const std::string& key, Time now) noexcept;
  void pump(const std::string& key) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> next_to_ask(WaitQueue& queue) noexcept;
  [[nodiscard]] static bool is_too_late(const WaitQueue& queue, const Line::Place& place,
                                        Word ahead, Span& wait) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> end_one_too_late(
      WaitQueue& queue, Waiter::PendingActions& actions) noexcept;

  mutable std::mutex mutex_;  // guards all members, and the state of every waiter
  WaitQueueOptions options_;
  std::unordered_map<std::string, WaitQueue> queues_;
  // Keys for which other processes waited lately, and until when that is taken for true. A caller
  // joins them before it asks, which saves a request.
  std::unordered_map<std::string, Time> contended_;
  Word client_ = 0;  // drawn when it is first needed
  // How far the store's clock is ahead of the clock that waits are measured on, by the answers.
  std::optional<Span> store_clock_lead_{};
};

}  // namespace sluice::detail
