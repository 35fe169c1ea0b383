// The queues of the callers that wait for a limiter in this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/waiter.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/wait_options.hpp"
#include "src/waiting/line.hpp"
#include "src/waiting/queue_ticket.hpp"

namespace sluice {
struct WaitingCall;
}

namespace sluice::detail {

/// What remains to be done after the mutex is unlocked.
struct PendingActions {
  bool timer = false;                     ///< call timer_changed()
  bool finish = false;                    ///< call finished(error)
  bool refund = false;                    ///< what was granted
  Word leave = 0;                         ///< leave the wait line, where `ticket` has this arrival
  NextProcess wake{};                     ///< wake this process of the wait line
  std::shared_ptr<QueueTicket> ticket{};  ///< for these two, or one that is no longer needed
  std::shared_ptr<Waiter> dropped{};      ///< from a full queue
  Word dropped_leaves = 0;
  std::shared_ptr<Waiter> overtaken{};  ///< it is no longer the first
  std::error_code error{};
  bool is_refused = false;               ///< it ends so, and not with a grant
  std::optional<std::size_t> refuser{};  ///< its limit that has refused it last
};

/// One mutex for all waits on a store, since a call may wait for several limits: it guards all
/// queues of its limiters, and the state of every waiter. (A few stores may share one.) A forked
/// child has them unlocked.
[[nodiscard]] std::mutex& wait_mutex(const Store& store);

/// The callers that wait for one key: those whose home it is, and those that keep their turn in it.
///
/// A call that was first here, asked, and was refused by another of its limits goes to the queue of
/// that. It keeps its turn here while it is first there, and if it will wait there no longer than
/// it has waited here: then nobody takes the units that it was first for, and each limit stands
/// still for a call at most as long as the call has waited for it. When it returns, it is before
/// all who were never first here. So calls whose turn has come are served in order of arrival.
///
/// Threading: under the wait_mutex(), as all classes of waiting whose members say nothing else.
struct WaitQueue {
  /// The most requests of one queue that are at the store at once. With several, a queue that is
  /// granted moves faster than one waiter a round trip; a refused waiter is overtaken by at most
  /// this many.
  static constexpr std::size_t max_in_flight = 16;

  /// At its home. May throw std::bad_alloc.
  void insert(const std::shared_ptr<Waiter>& waiter);
  void erase(const QueuedCall& call, Place& place) noexcept;
  /// The first of those that are neither asking nor entering; null: there is none.
  [[nodiscard]] Waiter* first() const noexcept;
  /// The same, which may keep its turn here while it waits elsewhere.
  [[nodiscard]] Waiter* first_in_turn() noexcept;
  [[nodiscard]] bool is_waited_for_before(const QueuedCall& call, const Place& place) noexcept;
  /// The first is asking.
  Waiter& take_first() noexcept;
  /// It is neither asking nor entering any more.
  void put_back(const QueuedCall& call) noexcept;
  void grant(QueuedCall& call) noexcept;
  void widen(Word remaining) noexcept;
  /// What the limit has left after a grant, `now`; none: not known.
  void note_left(const Decision& after, Time now) noexcept;
  /// ... after something came back. It may be heard behind what was decided later: what leaves more
  /// counts.
  void note_returned(const Decision& after, Time now) noexcept;
  /// The waiter that a full queue gives up for the newest one, perhaps that itself.
  [[nodiscard]] std::shared_ptr<Waiter> victim_of(const std::shared_ptr<Waiter>& newest,
                                                  Overflow overflow) const noexcept;
  /// How long the first still sleeps; zero if it does not, or is this one.
  [[nodiscard]] Span sleep_before(const QueuedCall& call) const noexcept;
  [[nodiscard]] static Line::Place place_of(const QueuedCall& call) noexcept;
  [[nodiscard]] static Line::Request request_of(const QueuedCall& call,
                                                const Place& place) noexcept;

  std::size_t callers = 0;  // that claim of the key, wherever they wait
  std::size_t homes = 0;    // those that wait here
  std::map<std::uint64_t, std::shared_ptr<Waiter>> waiters;  // by arrival
  Line line;
  enum class Unjudged : std::uint8_t { none, one, all };
  Unjudged unjudged = Unjudged::none;  // whose deadlines may be too early: see end_one_too_late()
  std::uint64_t unjudged_one = 0;
  std::size_t in_flight = 0;                    // asking or entering
  std::size_t in_flight_limit = max_in_flight;  // as the last answer suggests
  Time last_answer{};                           // the time of the latest, of this limit
  Decision left{};                              // what the limit has left; none: not known
  Time left_at{};                               // when that was heard
  bool is_pumping = false;
  bool pump_again = false;
  std::uint64_t wakes = 0;     // how often wake_first() was called
  std::uint64_t releases = 0;  // ... since something came back
  std::weak_ptr<QueueTicket> ticket{};
};

/// The queues of one limiter, one for each key. A new caller queries the store once all earlier
/// callers have been answered, or at once while recent answers were grants. A caller that is
/// refused and can still meet its deadline becomes the first of its queue; only the first asks
/// again. A forked child begins with empty queues. Thread-safe.
class WaitQueues : public WhoWaits, public std::enable_shared_from_this<WaitQueues> {
 public:
  explicit WaitQueues(std::mutex& mutex) : mutex_(mutex) {}
  [[nodiscard]] std::mutex& mutex() const noexcept { return mutex_; }

  /// Throws std::invalid_argument if an option is out of range. Applies to callers that come later.
  void set(const WaitQueueOptions& options);
  [[nodiscard]] WaitQueueOptions options() const;

  /// Has the first waiter for the key ask again once its units are there: at once, if what the
  /// limit has left does not say when. Woken by its turn alone, it asks at the limiter's hint.
  void wake_first(std::string_view key, Woken by, const Decision& left = {}) noexcept;

  /// The number of this process in wait lines; 0: it has none.
  [[nodiscard]] Word client() const noexcept { return client_; }

  /// Cancels all waits.
  void cancel_all() noexcept;
  /// How many callers wait for the key.
  [[nodiscard]] std::size_t waiting(std::string_view key) const;
  /// Adds those that wait, by key; all, or those of one queue. May throw std::bad_alloc.
  void add_waiting(std::vector<WaitingCall>& calls) const;
  void add_waiting(std::vector<WaitingCall>& calls, const std::string& key) const;

 private:
  friend class QueuedCall;
  friend class TurnInLine;
  friend class WaitCourse;
  friend class Waiter;

  static void wake_waiting(WhoWaits& queues, const Key& key, const Decision& left) noexcept;
  /// In a forked child, leaves what its parent had. Under the mutex, before anything else there.
  void begin_here() noexcept;
  /// A queue of the key, for a caller that will wait. Under the mutex. May throw std::bad_alloc.
  [[nodiscard]] WaitQueue& take_queue(const std::string& key);
  /// The ticket of this process for the key, shared by all that wait for it here; null without
  /// WaitQueueOptions::across_processes. Under the mutex.
  [[nodiscard]] std::shared_ptr<QueueTicket> ticket(Store& store, const Key& key,
                                                    const std::string& queue);
  /// Other processes wait for the key, for which nobody waits here any more.
  void note_contended(const std::string& key, Time now) noexcept;
  void pump(const std::string& key) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> next_to_ask(WaitQueue& queue) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> move_one_behind(WaitQueue& queue,
                                                               PendingActions& actions) noexcept;
  [[nodiscard]] static Span wait_behind(const Waiter& first, const Waiter& call,
                                        Word ahead) noexcept;
  static void add_waiting(std::vector<WaitingCall>& calls, const WaitQueue& queue);
  [[nodiscard]] static std::optional<Span> known_wait(const WaitQueue& queue,
                                                      const Line::Turn& turn, Time now);
  [[nodiscard]] static bool first_sleeps(const WaitQueue& queue) noexcept;
  [[nodiscard]] static std::optional<Span> least_wait(const WaitQueue& queue,
                                                      const Line::Place& place,
                                                      Word ahead) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> end_one_too_late(WaitQueue& queue,
                                                                PendingActions& actions) noexcept;

  std::mutex& mutex_;  // guards what follows
  WaitQueueOptions options_;
  HomeProcess home_;  // of all that follows
  std::unordered_map<std::string, WaitQueue> queues_;
  // Keys for which other processes waited lately, and until when that is taken for true. A caller
  // joins them before it asks, which saves a request.
  std::unordered_map<std::string, Time> contended_;
  std::atomic<Word> client_{0};  // drawn when it is first needed
  // How far the store's clock is ahead of the clock that waits are measured on, by the answers.
  std::optional<Span> store_clock_lead_{};
};

}  // namespace sluice::detail
