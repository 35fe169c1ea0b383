// A call that waits for one limiter, whichever way it waits. For those who write ways of waiting.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "sluice/decide.hpp"
#include "sluice/detail/copy_on_move_ptr.hpp"
#include "sluice/detail/store_ref.hpp"
#include "sluice/detail/wait_queues.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// What limiters that can be waited for have in common: the lines of those who wait, in this
/// process. Copies of a limiter share them. Thread-safe.
class Waitable {
 public:
  /// How callers wait from now on. Throws std::invalid_argument if an option is out of range.
  void set_wait_queue(const WaitQueueOptions& options) const { lines_->set(options); }
  [[nodiscard]] WaitQueueOptions line() const { return lines_->options(); }
  /// Ends all waits with Errc::cancelled.
  void cancel_waits() const noexcept { lines_->cancel_all(); }

 protected:
  Waitable() : lines_(std::make_shared<detail::WaitQueues>()) {}
  Waitable(const Waitable&) noexcept = default;
  Waitable(Waitable&&) noexcept = default;
  Waitable& operator=(const Waitable&) noexcept = default;
  Waitable& operator=(Waitable&&) noexcept = default;
  ~Waitable() = default;

  [[nodiscard]] const std::shared_ptr<detail::WaitQueues>& lines() const noexcept { return lines_; }

 private:
  detail::CopyOnMovePtr<detail::WaitQueues> lines_;
};

namespace detail {

/// What a waiter asks of a limiter over keys. It keeps the key's bytes.
struct KeyedRequest {
  std::string tag;
  std::string name;
  Cost cost = 1;

  KeyedRequest(const Key& key, Cost units) : tag(key.tag()), name(key.name()), cost(units) {}
  [[nodiscard]] Key key() const noexcept { return {tag, name}; }
};

/// Whose line a key has, among the keys of one limiter, which have one unit.
[[nodiscard]] inline std::string line_of(const Key& key) {
  std::string line = std::to_string(key.tag().size());
  line += ':';
  line += key.tag();
  line += key.name();
  return line;
}

/// `L::Waiting` says how `L` is waited for:
///
///     using Grant = ...;      what a caller gets, true if granted; also made of a refusal
///     using Request = ...;    what is asked for, with its own bytes
///     static Key key(const L&, const Request&);                     whose line it is
///     static const std::shared_ptr<Lines>& lines(const L&);
///     static void borrow_store(L&);                                 StoreHandle::borrow()
///     static Span reach(const L&);                                  how far ahead it can reserve
///     static constexpr bool freed_early;                            Waiter::Terms
///     static void ask(const L&, const Request&, Span max_wait, Completion);
///     static Step acquire_step(const L&, const Request&);   optional: its question, if it cannot
///     reserve static std::system_error failed(const CallName&, const std::error_code&, const L&,
///                                     const Request&);   optional, without acquire_step(): what it
///                                     throws
///     static Grant grant(const L&, const Request&, const Outcome&, Time asked);
///     static void refund(const L&, const Request&, Grant&, Completion);
///
/// It keeps a copy of the limiter that does not own the store: the last reference to a waiter may
/// end on a thread of the store, or inside of one of its answers, where not every store can be
/// destroyed. If the store has gone, asking ends in Errc::shut_down and nothing is given back.
template <class L>
class WaiterFor : public Waiter {
 public:
  using Waiting = typename L::Waiting;
  using Grant = typename Waiting::Grant;
  using Request = typename Waiting::Request;

  WaiterFor(const L& limiter, Request request, const Deadline& deadline, int priority)
      : Waiter({.lines = Waiting::lines(limiter),
                .key = line_of(Waiting::key(limiter, request)),
                .clock = limiter.store().clock(),
                .deadline = deadline.on(limiter.store().clock()),
                .priority = priority,
                .reach = Waiting::reach(limiter),
                .freed_early = Waiting::freed_early,
                .place = place_of(limiter, request)}),
        limiter_(limiter),
        store_(limiter.store()),
        request_(std::move(request)) {
    Waiting::borrow_store(limiter_);
  }

  /// What the call throws after finished() with this error.
  [[nodiscard]] std::system_error failed(const CallName& call, const std::error_code& error) const {
    if constexpr (has_step) {
      return failed_call(call, error, Waiting::acquire_step(limiter_, request_));
    } else if constexpr (requires { Waiting::failed(call, error, limiter_, request_); }) {
      return Waiting::failed(call, error, limiter_, request_);
    } else {
      return {error, call.text()};
    }
  }

 protected:
  /// More about why it ended with `error`. REQUIRES: the call is made by finished().
  [[nodiscard]] std::shared_ptr<const std::string> reason_for(
      const std::error_code& error) const noexcept {
    return store_.is_over() ? nullptr : reason_of(limiter_.store(), error);
  }
  /// After finished() without an error.
  [[nodiscard]] Grant take_grant() {
    if (grant_ && *grant_) return std::move(*grant_);
    return Waiting::grant(limiter_, request_, Outcome{{}, refusal(), {}, {}}, asked_);
  }

 private:
  static constexpr bool has_step = requires(const L& limiter, const Request& request) {
    Waiting::acquire_step(limiter, request);
  };
  static std::shared_ptr<QueueTicket> place_of(const L& limiter, const Request& request) {
    if (!has_step || Waiting::reach(limiter) > Span{0}) return nullptr;  // the store has an order
    const Key key = Waiting::key(limiter, request);
    return Waiting::lines(limiter)->place(limiter.store(), key, line_of(key));
  }

  void ask(Span max_wait, const Step* turn, Completion done) noexcept override {
    if (store_.is_over()) return done.fail(Errc::shut_down);
    asked_ = clock().now();
    if constexpr (has_step) {
      if (turn != nullptr) {
        const std::array steps{Waiting::acquire_step(limiter_, request_), *turn};
        return store_.execute(steps, std::move(done));
      }
    }
    Waiting::ask(limiter_, request_, max_wait, std::move(done));
  }
  Decision read(const Outcome& outcome) override {
    grant_.reset();
    if (outcome.decision.allowed) {
      grant_.emplace(Waiting::grant(limiter_, request_, outcome, asked_));
    }
    return outcome.decision;
  }
  void refund(Completion done) noexcept override {
    if (store_.is_over()) return done.fail(Errc::shut_down);
    Waiting::refund(limiter_, request_, *grant_, std::move(done));
  }

  L limiter_;
  StoreRef store_;
  Request request_;
  std::optional<Grant> grant_;
  Time asked_{};
};

}  // namespace detail
}  // namespace sluice
