// What observers are told, and how.
#include "sluice/observer.hpp"

#include <string>

#include "sluice/extend/operation.hpp"

namespace sluice {
namespace {

/// All scopes of Gates have its name as their tag, so that one plan may ask them.
bool is_gate(const Step& step) noexcept { return step.operation->kind == StateKind::gate; }

template <class Function>
void ignoring_exceptions(const Function& function) noexcept {
  try {
    function();
  } catch (...) {  // the program's own
  }
}

}  // namespace

std::string_view DecisionEvent::limiter() const noexcept {
  return is_gate(step) ? step.key.tag() : step.key.name();
}

std::string_view DecisionEvent::key() const noexcept {
  return is_gate(step) ? step.key.name() : step.key.tag();
}

Word DecisionEvent::cost() const noexcept {
  const Operation& row = *step.operation;
  const Argument* const cost = row.arguments.find(Argument::Role::cost);
  return cost != nullptr ? step.args[cost->index] : 1;
}

std::string_view to_string(WaitEvent::Result result) noexcept {
  constexpr std::string_view names[] = {"begun", "granted", "refused", "cancelled", "failed"};
  return names[static_cast<std::size_t>(result)];
}

std::string_view to_string(FailedTryEvent::Reason reason) noexcept {
  return reason == FailedTryEvent::Reason::rate_limited ? "rate_limited" : "transient";
}

CircuitBreaker::OnPartChange observe_breaker(Observer& observer, std::string_view store) {
  return [&observer, name = std::string(store)](unsigned part, CircuitBreaker::State from,
                                                CircuitBreaker::State to) {
    observer.breaker_changed({name, part, from, to});
  };
}

namespace detail {

void tell(Observer& observer, const DecisionEvent& event) noexcept {
  ignoring_exceptions([&] { observer.decided(event); });
}
void tell(Observer& observer, const WaitEvent& event) noexcept {
  ignoring_exceptions([&] { observer.wait_changed(event); });
}
void tell(Observer& observer, const LeaseEvent& event) noexcept {
  ignoring_exceptions([&] { observer.lease_changed(event); });
}
void tell(Observer& observer, const GateEvent& event) noexcept {
  ignoring_exceptions([&] { observer.gate_changed(event); });
}
void tell(Observer& observer, const FailedTryEvent& event) noexcept {
  ignoring_exceptions([&] { observer.try_failed(event); });
}

}  // namespace detail
}  // namespace sluice
