// How a gate is opened, which wakes who waits for it. Apart from the other calls: who opens none
// links nothing of waiting.
#include "sluice/limiters/gates.hpp"

#include "src/limiters/or_throw.hpp"

namespace sluice {

void Gates::open(const Scope& scope, std::error_code& error) const noexcept {
  detail::run(Verbs::open(*this, scope), error);
}

void Gates::open(const Scope& scope) const {
  detail::or_throw(
      {type_name, "open"}, [&] { return open_step(scope); },
      [&](auto& error) { return detail::run(Verbs::open(*this, scope), error); });
}

}  // namespace sluice
