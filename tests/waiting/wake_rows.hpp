// The table of calls that give something back, for each limiter that can be waited for. Threading:
// none of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/waiting/probe.hpp"

namespace sluice::test {

/// The forms of a call.
enum class Form { throwing, error_code, asio };
std::vector<Form> forms();

/// A limit of 5 whose units come back after an hour, or likewise, as its limiters see it: one holds
/// what there is and gives it back, and this or another one waits.
class Limit {
 public:
  Limit() = default;
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  virtual ~Limit() = default;

  virtual const Waitable& limiter() const = 0;
  /// How many callers wait.
  virtual std::size_t waiting() const = 0;
  /// Takes all that there is.
  virtual void fill() = 0;
  /// So much that a caller can be granted.
  virtual void give_back(Form form) = 0;
  /// Waits for ever, blocking or on an io_context.
  virtual Decision acquire(Form form) = 0;
  using Granted = std::function<void(const Decision&)>;
  virtual std::shared_ptr<void> wait(Granted granted) = 0;
};

inline detail::ClaimedLimits claims_of(const Gates& gates) {
  const std::array scopes{gates.scope("account", "1")};
  return Gates::Verbs::claims(gates, scopes);
}
template <class L>
detail::ClaimedLimits claims_of(const L& limiter) {
  return request_of(limiter, "a", 1);
}

struct WakeRow {
  std::string limiter;
  std::string call;
  Span later;  ///< so much time passes before the call
  std::function<std::unique_ptr<Limit>(Store&)> make;
};

std::vector<WakeRow> wake_rows();

}  // namespace sluice::test
