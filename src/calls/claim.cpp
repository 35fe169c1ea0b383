// The claim of a passage through a gate.
#include "sluice/calls/claim.hpp"

#include <stdexcept>

#include "sluice/limiters/gates.hpp"

namespace sluice {
namespace {

class GateClaim final : public detail::ClaimedLimit {
 public:
  GateClaim(std::shared_ptr<const Gates> gates, Scope scope)
      : gates_(std::move(gates)), scope_(std::move(scope)) {}

  std::unique_ptr<ClaimedLimit> fresh() const override {
    return std::make_unique<GateClaim>(gates_, scope_);
  }
  const std::string& name() const noexcept override { return gates_->name(); }
  Store& store() const noexcept override { return gates_->store(); }
  Key key() const noexcept override { return scope_.key(); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return Gates::Waiting::queues(*gates_);
  }
  Word units() const noexcept override { return 1; }
  bool freed_early() const noexcept override { return false; }
  Step step() const noexcept override { return gates_->pass_step(scope_); }
  Span refill_time(const Decision&) const noexcept override { return Span{0}; }
  Span time_for(Word, Word) const noexcept override { return Span{0}; }

  void answered(const Outcome& own, Time) override { decision_ = own.decision; }
  const Decision& decision() const noexcept override { return decision_; }
  void* grant(const char* tag) noexcept override {
    return tag == &detail::type_tag<Decision> ? &decision_ : nullptr;
  }
  void refund(Completion done) noexcept override { done(Outcome{}); }  // see Gates::Waiting
  std::optional<Step> settle_step(Cost) override {
    throw std::invalid_argument("the gates \"" + name() + "\" have no settle()");
  }
  void settled() noexcept override {}
  std::optional<Step> close_step(Span span) const noexcept override {
    return gates_->close_step(scope_, span);
  }

 private:
  std::shared_ptr<const Gates> gates_;
  Scope scope_;
  Decision decision_;
};

std::shared_ptr<const Gates> borrow(const Gates& gates) {
  auto copy = std::make_shared<Gates>(gates);
  Gates::Waiting::borrow_store(*copy);
  return copy;
}

}  // namespace

Claim::Claim(const Gates& gates, const Scope& scope)
    : limit_(std::make_shared<GateClaim>(borrow(gates), scope)) {}

}  // namespace sluice
