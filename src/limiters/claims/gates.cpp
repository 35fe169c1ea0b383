// How one waits for gates. Apart from their other calls: who never waits links no waiting.
#include "sluice/limiters/gates.hpp"

#include <stdexcept>

#include "sluice/calls/grants.hpp"
#include "src/waiting/acquire.hpp"

namespace sluice {

struct Gates::Verbs::Claimed final : detail::ClaimedLimit {
  Claimed(const Gates& gates, Scope scope, bool is_plan = true)
      : gates_(gates), scope_(std::move(scope)), is_plan_(is_plan) {
    gates_.borrow_store();
  }

  std::unique_ptr<ClaimedLimit> fresh(Word /*units*/) const override {
    return std::make_unique<Claimed>(gates_, scope_, is_plan_);
  }
  const std::string& name() const noexcept override { return gates_.name(); }
  Store& store() const noexcept override { return gates_.store(); }
  Key key() const noexcept override { return scope_.key(); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return gates_.queues();
  }
  Step step() const noexcept override { return gates_.pass_step(scope_); }
  std::optional<Step> preparation(std::error_code& error) noexcept override {
    if (!is_plan_) error = Errc::invalid_plan;
    return {};
  }

  void answered(const Outcome& own, Time) override { decision_ = own.decision; }
  const Decision& decision() const noexcept override { return decision_; }
  void* grant(const char* tag) noexcept override {
    return tag == &detail::type_tag<Decision> ? &decision_ : nullptr;
  }
  /// A passage cannot be undone; the next call of the ramp passes later.
  void refund(Completion done) noexcept override { done(Outcome{}); }
  std::optional<Step> settle_step(Cost) override {
    throw std::invalid_argument("the gates \"" + name() + "\" have no settle()");
  }
  std::optional<Step> close_step(Span span) const noexcept override {
    return gates_.close_step(scope_, span);
  }

 private:
  Gates gates_;
  Scope scope_;
  bool is_plan_;
  Decision decision_;
};

std::unique_ptr<detail::ClaimedLimit> Gates::Verbs::claim(const Gates& gates, const Scope& scope) {
  return std::make_unique<Claimed>(gates, scope);
}

/// One that fails with Errc::invalid_plan if there are too many scopes, or none.
detail::ClaimedLimits Gates::Verbs::claims(const Gates& gates, std::span<const Scope> scopes) {
  detail::ClaimedLimits claims;
  if (scopes.empty() || scopes.size() > Plan::max_steps) {
    claims.push_back(
        std::make_unique<Claimed>(gates, gates.scope(gates.kinds_.front(), "-"), false));
    return claims;
  }
  for (const Scope& scope : scopes) claims.push_back(claim(gates, scope));
  return claims;
}

Decision Gates::acquire(std::span<const Scope> scopes, const Deadline& deadline,
                        const WaitOptions& options) const {
  if (scopes.empty() || scopes.size() > Plan::max_steps) {
    throw failed("acquire", Errc::invalid_plan, scopes);
  }
  return detail::block({type_name, "acquire"}, Verbs::claims(*this, scopes), deadline, options)
      .decision();
}
Decision Gates::acquire(std::span<const Scope> scopes, const Deadline& deadline,
                        const WaitOptions& options, std::error_code& error) const {
  return detail::block(Verbs::claims(*this, scopes), deadline, options, error).decision();
}

}  // namespace sluice
