// How the calls of Gates are made.
#pragma once

#include "sluice/detail/gives_back.hpp"
#include "sluice/limiters/gates.hpp"

namespace sluice {

/// Verbs of the calls; see sluice/detail/verb.hpp.
struct Gates::Verbs {
  struct Claimed;
  static std::unique_ptr<detail::ClaimedLimit> claim(const Gates& gates, const Scope& scope);
  static detail::ClaimedLimits claims(const Gates& gates, std::span<const Scope> scopes);

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
  static auto open(const Gates& gates, const Scope& scope) noexcept {
    return detail::give_back(detail::WakeUp(gates), gates.store(), gates.open_step(scope));
  }
};

}  // namespace sluice
