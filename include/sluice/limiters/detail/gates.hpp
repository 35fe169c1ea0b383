// How the calls of Gates are made, and how acquire() waits.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/gates.hpp"

namespace sluice {

/// Verbs of the calls; see sluice/detail/verb.hpp.
struct Gates::Verbs {
  /// Asks one step for each scope.
  class Ask {
   public:
    using Result = Decision;

    Ask(const Gates& gates, std::span<const Scope> scopes,
        Step (Gates::*step_of)(const Scope&) const noexcept)
        : store_(&gates.store()) {
      for (const Scope& scope : scopes) steps_.push_back((gates.*step_of)(scope));
    }

    [[nodiscard]] Store& store() const noexcept { return *store_; }
    [[nodiscard]] std::optional<Plan> next() noexcept {
      if (std::exchange(asked_, true)) return std::nullopt;
      return Plan(steps_);
    }
    void hear(const Outcome& outcome) noexcept {
      error_ = outcome.error;
      decision_ = outcome.decision;
    }
    [[nodiscard]] Decision take(std::error_code& error) const noexcept {
      error = error_;
      return decision_;
    }

   private:
    Store* store_;
    std::vector<Step> steps_;
    bool asked_ = false;
    std::error_code error_{};
    Decision decision_{};
  };

  static Ask pass(const Gates& gates, std::span<const Scope> scopes) {
    return {gates, scopes, &Gates::pass_step};
  }
  static Ask peek(const Gates& gates, std::span<const Scope> scopes) {
    return {gates, scopes, &Gates::peek_step};
  }
};

/// How acquire() waits; see detail::WaiterFor.
struct Gates::Waiting {
  using Grant = Decision;
  using Request = std::vector<Scope>;
  static constexpr bool freed_early = false;
  static Key key(const Gates& gates, const Request& scopes) noexcept {
    return scopes.empty() ? Key{gates.name(), gates.name()} : scopes.front().key();
  }
  static const std::shared_ptr<detail::WaitQueues>& queues(const Gates& gates) noexcept {
    return gates.queues();
  }
  static void borrow_store(Gates& gates) noexcept { gates.store_.borrow(); }
  static void ask(const Gates& gates, const Request& scopes, Completion done) noexcept;
  static std::system_error failed(const detail::CallName& call, const std::error_code& error,
                                  const Gates& gates, const Request& scopes) {
    return gates.failed(call.verb, error, scopes);
  }
  static Grant grant(const Gates&, const Request&, const Outcome& outcome, Time) noexcept {
    return outcome.decision;
  }
  static void refund(const Gates&, const Request&, Grant&, Completion done) noexcept {
    done(Outcome{});  // a passage cannot be undone; the next call of the ramp passes later
  }
};

}  // namespace sluice
