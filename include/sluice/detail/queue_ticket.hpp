// The place of this process in the line of all processes that wait for one key. See
// sluice/rules/wait_line.hpp for the rule and docs/waiting.md for what it promises.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "sluice/detail/store_ref.hpp"
#include "sluice/rules/wait_line.hpp"

namespace sluice::detail {

class WaitQueues;

/// The name of the line of those who wait for `key`, under the same tag.
[[nodiscard]] std::string wait_line_name(const Key& key);
/// Wakes that process, if it watches its place.
void wake_client(const StoreRef& store, std::string_view tag, std::string_view line_name,
                 Word client) noexcept;

/// What is known of the line, and the requests about it. Its members are guarded by the mutex of
/// Lines; its functions ask nobody and may be called from any thread.
class QueueTicket : public std::enable_shared_from_this<QueueTicket> {
 public:
  QueueTicket(Store& store, const Key& key, Word client, Span ttl)
      : store_(store), tag_(key.tag()), name_(wait_line_name(key)), client_(client), ttl_(ttl) {}

  /// May the caller of this arrival be granted? Then the place is `next`'s; 0: nobody's.
  [[nodiscard]] Step turn(Word arrival, Word next) const noexcept {
    return {&wait_line_turn, key(), {word_limit, client_, arrival, ttl_.count(), next}};
  }
  [[nodiscard]] Step enter(Word arrival, Span life) const noexcept {
    return {&wait_line_enter, key(), {word_limit, client_, arrival, life.count()}};
  }
  /// Gives the place up that began at `arrival`, and wakes who is first then. Does not wait.
  void leave(Word arrival) noexcept;
  void wake(Word client) const noexcept { wake_client(store_, tag_, name_, client); }
  /// From now on the first in `line` is woken when others wake this process. Once.
  void listen(const std::shared_ptr<WaitQueues>& lines, const std::string& line) noexcept;

  [[nodiscard]] const StoreRef& store() const noexcept { return store_; }
  [[nodiscard]] Span ttl() const noexcept { return ttl_; }
  /// After listen(): wake-ups may come.
  [[nodiscard]] bool is_watching() const noexcept { return watch_ != nullptr; }

  /// The longest hint of a limiter that a place lives through without being renewed.
  static constexpr Span longest_hint = std::chrono::minutes{9};

  // What is known, guarded by the mutex of Lines.
  bool entered = false;
  Word rank = 0;                  // of the caller that it stands for
  Word since = 0;                 // the arrival that was sent
  Time alive_until{};             // by the clock that waiting is measured on; no later than it is
  bool behind = false;            // another process stands before
  Word first = 0;                 // of the others; 0: there is none
  Time rest_until = Time::min();  // nobody asks before, unless woken
  Span poll{0};                   // the next pause while others stand before; 0: the first
  bool woken = false;             // since the last request was sent
  bool loses_wake_ups = false;    // one that asked without having been woken was granted
  bool listens = false;           // or is just about to
  bool hears = false;             // wake-ups may come

 private:
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }

  StoreRef store_;
  std::string tag_;
  std::string name_;
  Word client_;
  Span ttl_;
  std::unique_ptr<Subscription> watch_;  // written once, before the place is entered
};

/// What gives something back, in one plan with the question who waits for it in which process.
class Release {
 public:
  Release(const Step& refund, std::shared_ptr<WaitQueues> lines) noexcept;
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

  [[nodiscard]] std::span<const Step> steps() const noexcept { return {steps_.data(), count_}; }
  /// Words of detail that the plan tells, those of the step that gives back first.
  [[nodiscard]] std::size_t output() const noexcept {
    return output_ + (count_ == 2 ? WaitLineRule::output : 0);
  }
  /// Wakes who is next, here or elsewhere. `told` are the output words of the whole plan.
  void wake(Store& store, std::span<const Word> told) const noexcept;

 private:
  std::array<Step, 2> steps_;
  std::size_t count_ = 1;
  std::size_t output_;
  std::string tag_;
  std::string line_;
  std::string wait_line_;
  std::shared_ptr<WaitQueues> lines_;
};

}  // namespace sluice::detail
