// Gates, on any store: scopes that an upstream closes for a while, and that the fleet keeps to. See
// sluice/rules/gate.hpp for the rule.
#pragma once

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/detail/acquire.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

struct GateOptions {
  /// The longest that a gate stays closed, whatever the upstream says. Range: 1 us to 365 days.
  Span cap = std::chrono::hours{24};
  /// After a gate has opened, calls pass one by one for this long; then it is free. Zero: free at
  /// once. Range: up to 24 hours.
  Span ramp = std::chrono::seconds{10};
  /// From one call of the ramp to the next. Range: 0 to `ramp`.
  Span spacing = std::chrono::milliseconds{100};
  /// Scopes whose id must not be read by whoever can list the store's keys, such as an API token:
  /// their ids are stored as 128-bit keyed hashes.
  std::vector<std::string> hashed_kinds{};
  /// Of those hashes; the same in every process that shares the store.
  HashKey secret{};
};

class Gates;

/// What is closed together: one account, one developer token. Made by Gates::scope(); a value that
/// keeps its own bytes. ("account", "1") and ("developer", "1") are different scopes.
class Scope {
 public:
  [[nodiscard]] std::string_view kind() const noexcept {
    return std::string_view(name_).substr(0, kind_bytes_);
  }
  /// Where its state lies in the store.
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }

 private:
  friend class Gates;
  Scope(std::string tag, std::string name, std::size_t kind_bytes)
      : tag_(std::move(tag)), name_(std::move(name)), kind_bytes_(kind_bytes) {}

  std::string tag_;
  std::string name_;
  std::size_t kind_bytes_;
};

/// The gates of one upstream.
///
///     const Gates gates{*store, "adwords", {"account", "developer"}};
///     const std::array scopes{gates.scope("account", id), gates.scope("developer", token)};
///     for (;;) {
///       if (const Decision d = gates.pass(scopes); !d) { wait(d.retry_after); continue; }
///       const auto answer = call();
///       if (!answer.rate_exceeded) break;
///       gates.close(scopes[answer.scope], answer.retry_after);   // and for everybody else
///     }
///
/// Ask again after every wait, as above: the gate may have been closed anew meanwhile. All scopes
/// of one Gates live under one tag, its name, so that they are read together in one trip.
/// Limiters of the same name on one store share their gates; give them the same options.
/// Immutable: one object serves any number of threads. Each call is one store operation, O(scopes);
/// an open gate has no state, and passing it writes nothing. Borrows or owns its store: see
/// StoreHandle.
class Gates : public Waitable {
 public:
  static constexpr const char* type_name = "Gates";  ///< in texts of exceptions

  /// `kinds` are the kinds of scope that this upstream knows. Throws std::invalid_argument if there
  /// is none, if one is empty, occurs twice, is longer than 64 bytes or contains '=', if a hashed
  /// kind is none of them, if an option is out of range, or if `name` is empty or longer than 1
  /// MiB.
  Gates(const StoreHandle& store, std::string name, std::vector<std::string> kinds,
        GateOptions options = {});

  /// Throws std::invalid_argument if the kind is unknown, or the id empty or longer than 1 MiB less
  /// the kind: an upstream's answer that names no scope closes nothing by accident.
  [[nodiscard]] Scope scope(std::string_view kind, std::string_view id) const;

  /// One call through the gates of all these scopes, at most Plan::max_steps, or through none. If
  /// refused, `step` is the scope that must be waited for longest, counted from 0. Throws
  /// std::system_error if the store could not decide.
  [[nodiscard]] Decision pass(std::span<const Scope> scopes) const;
  [[nodiscard]] Decision pass(std::span<const Scope> scopes, std::error_code& error) const noexcept;
  [[nodiscard]] Decision pass(const Scope& scope) const { return pass(std::span(&scope, 1)); }
  [[nodiscard]] Decision pass(const Scope& scope, std::error_code& error) const noexcept {
    return pass(std::span(&scope, 1), error);
  }

  /// Waits until one call may pass the gates of all these scopes, or until the deadline; blocks
  /// this thread meanwhile. Callers with the same first scope wait in one line. See
  /// KeyedLimiter::acquire().
  [[nodiscard]] Decision acquire(std::span<const Scope> scopes, const Deadline& deadline,
                                 const WaitOptions& options = {}) const;
  [[nodiscard]] Decision acquire(std::span<const Scope> scopes, const Deadline& deadline,
                                 const WaitOptions& options, std::error_code& error) const;

  /// What pass() would answer; changes nothing.
  [[nodiscard]] Decision peek(std::span<const Scope> scopes) const;
  [[nodiscard]] Decision peek(std::span<const Scope> scopes, std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(const Scope& scope) const { return peek(std::span(&scope, 1)); }
  [[nodiscard]] Decision peek(const Scope& scope, std::error_code& error) const noexcept {
    return peek(std::span(&scope, 1), error);
  }

  /// Closes a scope for `span` from now, at most the cap; what is closed for longer stays so. Zero
  /// or less closes nothing. Never fails silently: it is an answer or an error. `reset_after` tells
  /// when the gate will be free again.
  Decision close(const Scope& scope, Span span) const {
    return decide_as("close", close_step(scope, span));
  }
  Decision close(const Scope& scope, Span span, std::error_code& error) const noexcept {
    return decide(*store_, close_step(scope, span), error);
  }

  /// Opens a scope at once, and without a ramp.
  void open(const Scope& scope) const { (void)decide_as("open", open_step(scope)); }
  void open(const Scope& scope, std::error_code& error) const noexcept {
    (void)decide(*store_, open_step(scope), error);
  }

  /// The steps of these calls, for plans with other limits and for the forms of decide.hpp.
  [[nodiscard]] Step pass_step(const Scope& scope) const noexcept { return step(gate_pass, scope); }
  [[nodiscard]] Step peek_step(const Scope& scope) const noexcept { return step(gate_peek, scope); }
  [[nodiscard]] Step close_step(const Scope& scope, Span span) const noexcept;
  [[nodiscard]] Step open_step(const Scope& scope) const noexcept {
    return {&gate_open, scope.key(), {1}};
  }

  [[nodiscard]] const GateOptions& options() const noexcept { return options_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  struct Waiting;  ///< how acquire() waits: for detail::WaiterFor

 private:
  /// What a call of several scopes throws, if it is not known which of them was at fault.
  [[nodiscard]] std::system_error failed(const char* verb, const std::error_code& error,
                                         std::span<const Scope> scopes) const;
  Decision decide_all(const char* verb, std::span<const Scope> scopes,
                      std::span<const Step> steps) const;
  Decision decide_as(const char* verb, const Plan& plan) const {
    return detail::decide_as({type_name, verb}, *store_, plan);
  }
  [[nodiscard]] Step step(const Operation& operation, const Scope& scope) const noexcept {
    return {&operation,
            scope.key(),
            {1, options_.cap.count(), options_.ramp.count(), options_.spacing.count()}};
  }

  StoreHandle store_;
  std::string name_;
  std::vector<std::string> kinds_;
  GateOptions options_;
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
  static Span reach(const Gates&) noexcept { return Span{0}; }
  static void ask(const Gates& gates, const Request& scopes, Span, Completion done) noexcept;
  static std::system_error failed(const detail::CallName& call, const std::error_code& error,
                                  const Gates& gates, const Request& scopes) {
    return gates.failed(call.verb, error, scopes);
  }
  static Grant grant(const Gates&, const Request&, const Outcome& outcome, Time) noexcept {
    return outcome.decision;
  }
  static void refund(const Gates&, const Request&, Grant&, Completion done) noexcept {
    done(Outcome{});  // the next one of the ramp comes a little later
  }
};

inline Decision Gates::acquire(std::span<const Scope> scopes, const Deadline& deadline,
                               const WaitOptions& options) const {
  return detail::block(*this, {scopes.begin(), scopes.end()}, deadline, options);
}
inline Decision Gates::acquire(std::span<const Scope> scopes, const Deadline& deadline,
                               const WaitOptions& options, std::error_code& error) const {
  return detail::block(*this, {scopes.begin(), scopes.end()}, deadline, options, error);
}

}  // namespace sluice
