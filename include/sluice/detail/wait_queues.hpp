// The lines of callers that wait for a limiter in this process. For those who write ways of
// waiting: limiters have acquire(), and sluice::asio::async_acquire().
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "sluice/detail/queue_ticket.hpp"
#include "sluice/store.hpp"
#include "sluice/wait_options.hpp"

namespace sluice::detail {

class Waiter;

/// Of one limiter: a line for each key. First come, first served: who comes asks the store when all
/// before it have been answered, or are being answered favourably; who is refused and can still
/// make its deadline stands first in line, and only the first asks again. Thread-safe.
class WaitQueues : public std::enable_shared_from_this<WaitQueues> {
 public:
  /// Throws std::invalid_argument if an option is out of range. Applies to who comes from now on.
  void set(const WaitQueueOptions& options);
  [[nodiscard]] WaitQueueOptions options() const;

  /// Something came back, or somebody thinks that it is our turn: the first in line for the key
  /// asks again at once.
  void freed(std::string_view key) noexcept;
  /// The place of this process in the line of all that wait for the key, as long as somebody waits
  /// here; null without WaitQueueOptions::across_processes.
  [[nodiscard]] std::shared_ptr<QueueTicket> place(Store& store, const Key& key,
                                                   const std::string& line);
  /// Who we are in lines across processes; 0: nobody.
  [[nodiscard]] Word client() const noexcept;
  /// Ends all waits, as their own cancellation would.
  void cancel_all() noexcept;
  /// Who waits for the key, those that have reserved included.
  [[nodiscard]] std::size_t waiting(std::string_view key) const;

 private:
  friend class Waiter;

  struct Before {
    bool operator()(const std::shared_ptr<Waiter>& a,
                    const std::shared_ptr<Waiter>& b) const noexcept;
  };
  using Set = std::set<std::shared_ptr<Waiter>, Before>;
  // So many may be on the way to the store at once while it grants: then a line moves faster than
  // one place a round trip, and who is refused is overtaken by so many at most.
  static constexpr std::size_t most_asking = 16;

  struct Line {
    Set queue;     // to ask, asking, or refused
    Set reserved;  // have a time
    std::size_t asking = 0;
    std::size_t at_once = most_asking;  // so many may ask, as far as the last answer tells
    Time last{};                        // the time of the last grant
    bool pumping = false;
    bool again = false;
    std::uint64_t freed = 0;  // how often something came back
    std::weak_ptr<QueueTicket> place{};
  };
  using Map = std::unordered_map<std::string, Line>;

  /// Somebody has given back what it had reserved.
  void shorten(const std::string& key) noexcept;
  void pump(const std::string& key) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> next_to_ask(Line& line) noexcept;

  mutable std::mutex mutex_;  // guards all, and the state of every waiter
  WaitQueueOptions options_;
  Map lines_;
  std::uint64_t arrivals_ = 0;
  Word client_ = 0;              // drawn when it is first needed
  std::optional<Span> ahead_{};  // what the store's clock is ahead of ours, as far as answers tell
};

/// One call that waits. The same steps for every way of waiting; how a thread or an executor waits
/// for a time is the derived class's. Every public member may be called from any thread.
///
///     queued --> asking --> resting (refused; first in line) --> asking ...
///                       --> reserved --> done
///
/// In a line across processes it is refused before it rests, if it is not there already: entering.
/// It is done exactly once, whatever comes together.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  struct Terms {
    std::shared_ptr<WaitQueues> lines;
    std::string key;  // whose line
    Clock& clock;
    Time deadline;
    int priority = 0;
    Span reach{0};             // how far ahead the limiter can reserve; zero: it cannot
    bool freed_early = false;  // what it has granted may come back before the hint says so
    std::shared_ptr<QueueTicket> place{};  // in the line across processes; null: there is none
  };

  explicit Waiter(Terms terms) : terms_(std::move(terms)) {}
  virtual ~Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Joins the line; once.
  void start() noexcept;
  /// The time that was asked for may have come.
  void on_time() noexcept;
  /// Ends the wait with Errc::cancelled; what is granted meanwhile is given back first.
  void cancel() noexcept;
  /// When on_time() is to be called; Time::max(): not.
  [[nodiscard]] Time timer() const;
  /// The store has it: what comes next does not depend on time.
  [[nodiscard]] bool is_under_way() const;

 protected:
  /// Asks the store, with a grant up to `max_wait` ahead; or, in one plan, for a grant at once and
  /// for the `turn`.
  virtual void ask(Span max_wait, const Step* turn, Completion done) noexcept = 0;
  /// Notes the answer, and returns its decision.
  /// May throw what allocating throws.
  virtual Decision read(const Outcome& outcome) = 0;
  /// Gives back what read() noted, if it can be.
  virtual void refund(Completion done) noexcept = 0;
  /// timer() has changed. May be called on any thread, more often than needed, and after
  /// finished().
  virtual void timer_changed() noexcept = 0;
  /// It is over: granted, refused if there is no error and refusal() is not allowed, or failed.
  virtual void finished(std::error_code error) noexcept = 0;

  /// The refusal that ended it, with the wait until the grant would have been, as far as is known;
  /// or what came with the error that did.
  [[nodiscard]] const Decision& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Clock& clock() const noexcept { return terms_.clock; }

 private:
  friend class WaitQueues;

  enum class Stage : std::uint8_t {
    idle,
    queued,
    asking,
    entering,
    resting,
    reserved,
    returning,
    done
  };
  /// What is left to be done once the lock is free.
  struct PendingActions {
    bool timer = false;
    bool finish = false;
    bool refund = false;
    Word leave = 0;  // the line across processes: since when the place is held; 0: it is not left
    Word wake = 0;   // whom to wake there
    std::error_code error{};
  };
  /// What the next request of the first in a line across processes is.
  enum class Next : std::uint8_t { ask, enter, nothing };

  static void answered(void* self, const Outcome& outcome) noexcept;
  static void entered(void* self, const Outcome& outcome) noexcept;
  static void returned(void* self, const Outcome& outcome) noexcept;
  void send() noexcept;

  // turn.cpp: in a line across processes
  [[nodiscard]] static Outcome without_turn(const Outcome& outcome) noexcept;
  [[nodiscard]] bool is_about_to_ask() const noexcept;
  [[nodiscard]] bool may_join() const noexcept;
  [[nodiscard]] Next choose(Time now, std::optional<Step>& step, bool& listen) noexcept;
  [[nodiscard]] Step ask_for_turn() noexcept;
  [[nodiscard]] Step enter(Time now) noexcept;
  [[nodiscard]] bool is_misplaced() const noexcept;
  [[nodiscard]] Time refresh_at(Time now) const noexcept;
  [[nodiscard]] Span first_poll() const noexcept;
  void rest(Time now) noexcept;
  [[nodiscard]] Word arrival_of(const Waiter& waiter) const noexcept;
  [[nodiscard]] const Waiter* successor() noexcept;
  void learn_clock(Time at) noexcept;
  void learn(const Outcome& outcome) noexcept;
  [[nodiscard]] Word pass_on(const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse_in_place(Span hint, Time now) noexcept;

  [[nodiscard]] PendingActions settle(std::error_code error, const Decision& decision) noexcept;
  [[nodiscard]] PendingActions refuse(const Decision& decision) noexcept;
  [[nodiscard]] Span rest_after(Span rest) const noexcept;
  [[nodiscard]] PendingActions end(std::error_code error, Word wake = 0) noexcept;
  [[nodiscard]] PendingActions end_refused(Span wait) noexcept;
  [[nodiscard]] PendingActions take_back(Word wake = 0) noexcept;
  void run(const PendingActions& turn) noexcept;
  Word leave() noexcept;
  [[nodiscard]] std::shared_ptr<Waiter> victim() noexcept;
  [[nodiscard]] Span rest_before() const noexcept;
  void learn_room(const Decision& decision) noexcept;
  [[nodiscard]] Span horizon() const noexcept;
  [[nodiscard]] Span near() const noexcept;
  [[nodiscard]] Time pause_end(Time now) const noexcept;
  void pause(Time now) noexcept;

  Terms terms_;
  WaitQueues::Line* line_ = nullptr;
  Stage stage_ = Stage::idle;
  bool cancelled_ = false;
  Word rank_ = 0;  // its arrival, less what its priority is worth
  std::uint64_t arrival_ = 0;
  Span asked_for_{0};         // max_wait of the request under way
  Time until_ = Time::max();  // resting or reserved
  Time earliest_{};           // resting: no grant before, as far as the last answer tells
  Time sent_{};               // the request under way
  std::uint64_t freed_ = 0;   // Line::freed when it was sent

  // In a line across processes.
  bool goes_on_ = false;       // it was answered, and pump() has it go on
  Time ask_at_ = Time::min();  // not before, as the limiter said
  Span life_{0};               // that the request under way gives the place
  Word next_rank_ = 0;         // of whom it leaves the place to
  Word next_arrival_ = 0;      // ... 0: of nobody
  bool polls_ = false;         // it asks although others stood before it, and nobody has called
  bool called_ = false;        // ... and somebody has
  bool open_ = false;          // the limiter would have granted it
  Span clear_in_{0};           // when all have died that stand before
  Decision refusal_;
  std::shared_ptr<Waiter> self_;  // while the store has a pointer to it
};

}  // namespace sluice::detail
