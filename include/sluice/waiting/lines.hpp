// The lines of callers that wait for a limiter in this process. For those who write ways of
// waiting: limiters have acquire(), and sluice::asio::async_acquire().
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "sluice/store.hpp"
#include "sluice/waiting/options.hpp"

namespace sluice::detail {

class Waiter;

/// Of one limiter: a line for each key. First come, first served: who comes asks the store when all
/// before it have been answered, or are being answered favourably; who is refused and can still
/// make its deadline stands first in line, and only the first asks again. Thread-safe.
class Lines : public std::enable_shared_from_this<Lines> {
 public:
  /// Throws std::invalid_argument if an option is out of range. Applies to who comes from now on.
  void set(const LineOptions& options);
  [[nodiscard]] LineOptions options() const;

  /// Something came back: the first in line for the key asks again at once.
  void freed(std::string_view key) noexcept;
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
  struct Line {
    Set queue;     // to ask, asking, or refused
    Set reserved;  // have a time
    std::size_t asking = 0;
    bool open = true;  // the last that was answered was granted: some may ask at once
    bool pumping = false;
    bool again = false;
  };
  using Map = std::unordered_map<std::string, Line>;

  void pump(const std::string& key) noexcept;
  [[nodiscard]] static std::shared_ptr<Waiter> next_to_ask(Line& line) noexcept;

  mutable std::mutex mutex_;  // guards all, and the state of every waiter
  LineOptions options_;
  Map lines_;
  std::uint64_t arrivals_ = 0;
};

/// One call that waits. The same steps for every way of waiting; how a thread or an executor waits
/// for a time is the derived class's. Every public member may be called from any thread.
///
///     queued --> asking --> resting (refused; first in line) --> asking ...
///                       --> reserved --> done
///
/// It is done exactly once, whatever comes together.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  struct Terms {
    std::shared_ptr<Lines> lines;
    std::string key;  // whose line
    Clock& clock;
    Time deadline;
    int priority = 0;
    Span reach{0};             // how far ahead the limiter can reserve; zero: it cannot
    bool freed_early = false;  // what it has granted may come back before the hint says so
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
  /// Asks the store, with a grant up to `max_wait` ahead.
  virtual void ask(Span max_wait, Completion done) noexcept = 0;
  /// Notes the answer, and returns its decision.
  /// May throw what allocating throws.
  virtual Decision read(const Outcome& outcome) = 0;
  /// Gives back what read() noted, if it can be.
  virtual void give_back(Completion done) noexcept = 0;
  /// timer() has changed. May be called on any thread, more often than needed, and after
  /// finished().
  virtual void timer_changed() noexcept = 0;
  /// It is over: granted, refused if there is no error and refusal() is not allowed, or failed.
  virtual void finished(std::error_code error) noexcept = 0;

  /// The refusal that ended it, with the wait until the grant would have been, as far as is known.
  [[nodiscard]] const Decision& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Clock& clock() const noexcept { return terms_.clock; }

 private:
  friend class Lines;

  enum class Stage : std::uint8_t { idle, queued, asking, resting, reserved, returning, done };
  /// What is left to be done once the lock is free.
  struct Turn {
    bool timer = false;
    bool finish = false;
    bool give_back = false;
    std::error_code error{};
  };

  static void answered(void* self, const Outcome& outcome) noexcept;
  static void returned(void* self, const Outcome& outcome) noexcept;
  void send() noexcept;
  [[nodiscard]] Turn settle(std::error_code error, const Decision& decision) noexcept;
  [[nodiscard]] Turn refuse(const Decision& decision) noexcept;
  [[nodiscard]] Turn end(std::error_code error) noexcept;
  [[nodiscard]] Turn end_refused(Span wait) noexcept;
  [[nodiscard]] Turn take_back() noexcept;
  void run(const Turn& turn) noexcept;
  void leave() noexcept;
  [[nodiscard]] std::shared_ptr<Waiter> victim() noexcept;
  [[nodiscard]] Span rest_before() const noexcept;

  Terms terms_;
  Lines::Line* line_ = nullptr;
  Stage stage_ = Stage::idle;
  bool cancelled_ = false;
  Word rank_ = 0;  // its arrival, less what its priority is worth
  std::uint64_t arrival_ = 0;
  Span asked_for_{0};         // max_wait of the request under way
  Time until_ = Time::max();  // resting or reserved
  Decision refusal_;
  std::shared_ptr<Waiter> self_;  // while the store has a pointer to it
};

}  // namespace sluice::detail
