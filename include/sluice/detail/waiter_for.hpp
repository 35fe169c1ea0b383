// A call that waits for a limiter of a given type. For those who write ways of waiting.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "sluice/decide.hpp"
#include "sluice/detail/store_ref.hpp"
#include "sluice/detail/waiter.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/quota.hpp"

namespace sluice::detail {

/// What a waiter asks of a limiter over keys. It owns the bytes of the key.
struct KeyedRequest {
  std::string tag;
  std::string name;
  Cost cost = 1;

  KeyedRequest(const Key& key, Cost units) : tag(key.tag()), name(key.name()), cost(units) {}
  [[nodiscard]] Key key() const noexcept { return {tag, name}; }
};

/// What a grant has left. What a process has prefetched comes back earlier than the limit refills.
[[nodiscard]] inline Decision unless_prefetched(const Decision& left) noexcept {
  return left.source == Source::prefetched ? Decision{} : left;
}

/// `L::Waiting` says how `L` is waited for:
///
///     using Grant = ...;      what a caller receives, true if granted; also made of a refusal
///     using Request = ...;    what is asked for; it owns its bytes
///     static Key key(const L&, const Request&);                     the key of the queue
///     static const std::shared_ptr<WaitQueues>& queues(const L&);
///     static void borrow_store(L&);                                 StoreHandle::borrow()
///     static constexpr bool freed_early;                            Waiter::Terms
///     static Step step(const L&, const Request&);                   what is asked of the store;
///                                                                   or, if that is not one step:
///     static void ask(const L&, const Request&, Completion);
///     static std::system_error failed(const CallName&, const std::error_code&, const L&,
///                                     const Request&);              ... and the exception
///     static Grant grant(const L&, const Request&, const Outcome&, Time asked);
///     static void refund(const L&, const Request&, Grant&, Completion);
///     static Span refill_time(const L&, const Request&, const Decision& left);
///     static Span time_for(const L&, const Request&, Word first, Word further);
///
/// The last two, of class Waiter, may be left out.
///
/// It keeps a copy of the limiter that does not own the store: the last reference to a waiter may
/// end on a thread of the store, or inside one of its completions, where some stores cannot be
/// destroyed. Once the store has gone, asking fails with Errc::shut_down and nothing is refunded.
template <class L>
class WaiterFor : public Waiter {
 public:
  using Waiting = typename L::Waiting;
  using Grant = typename Waiting::Grant;
  using Request = typename Waiting::Request;

  WaiterFor(const L& limiter, Request request, const Deadline& deadline, Caller caller)
      : Waiter({.queues = Waiting::queues(limiter),
                .key = queue_key(Waiting::key(limiter, request)),
                .clock = limiter.store().clock(),
                .deadline = deadline.on(limiter.store().clock()),
                .caller = std::move(caller),
                .units = units_of(request),
                .freed_early = Waiting::freed_early,
                .ticket = ticket_of(limiter, request)}),
        limiter_(limiter),
        store_(limiter.store()),
        request_(std::move(request)) {
    Waiting::borrow_store(limiter_);
  }

  /// The exception of a call that finished() with this error.
  [[nodiscard]] std::system_error failed(const CallName& call, const std::error_code& error) const {
    if constexpr (has_step) {
      return failed_call(call, error, Waiting::step(limiter_, request_));
    } else {
      return Waiting::failed(call, error, limiter_, request_);
    }
  }

 protected:
  /// Store::reason_of() this error. REQUIRES: called by finished().
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
    Waiting::step(limiter, request);
  };
  static Word units_of(const Request& request) noexcept {
    if constexpr (requires { request.cost; }) return request.cost.value();
    return 1;
  }
  static std::shared_ptr<QueueTicket> ticket_of(const L& limiter, const Request& request) {
    if (!has_step) return nullptr;
    return ticket_for(*Waiting::queues(limiter), limiter.store(), Waiting::key(limiter, request));
  }

  void ask(const Step* turn, Completion done) noexcept override {
    if (store_.is_over()) return done.fail(Errc::shut_down);
    asked_ = clock().now();
    if constexpr (has_step) {
      const Step own = Waiting::step(limiter_, request_);
      if (turn == nullptr) return store_.execute(own, std::move(done));
      store_.execute(std::array{own, *turn}, std::move(done));
    } else {
      Waiting::ask(limiter_, request_, std::move(done));
    }
  }
  Decision read(const Outcome& outcome) override {
    grant_.reset();
    left_ = outcome.decision;
    if (outcome.decision.allowed) {
      grant_.emplace(Waiting::grant(limiter_, request_, outcome, asked_));
    }
    return outcome.decision;
  }
  void refund(Completion done) noexcept override {
    if (store_.is_over()) return done.fail(Errc::shut_down);
    Waiting::refund(limiter_, request_, *grant_, std::move(done));
  }

  Decision left() const noexcept override { return unless_prefetched(left_); }
  Span refill_time(const Decision& left) const noexcept override {
    if constexpr (requires { Waiting::refill_time(limiter_, request_, left); }) {
      return Waiting::refill_time(limiter_, request_, left);
    }
    return Span{0};
  }
  Span time_for(Word first, Word further) const noexcept override {
    if constexpr (requires { Waiting::time_for(limiter_, request_, first, further); }) {
      return Waiting::time_for(limiter_, request_, first, further);
    }
    return Span{0};
  }

  L limiter_;
  StoreRef store_;
  Request request_;
  std::optional<Grant> grant_;
  Decision left_{};
  Time asked_{};
};

}  // namespace sluice::detail
