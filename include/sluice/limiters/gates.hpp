// Gates, on any store: an API's "retry after" for an account or a token closes that scope for
// the whole fleet. See sluice/rules/gate.hpp for the rule.
#pragma once

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/limiters/waitable.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/store_handle.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

struct GateOptions {
  /// The longest time that a gate stays closed, whatever close() requests. Range: 1 us to 365 days.
  Span cap = std::chrono::hours{24};
  /// How long calls pass one at a time after a gate has opened; then it is free. Zero: it is free
  /// at once. Range: up to 24 hours.
  Span ramp = std::chrono::seconds{10};
  /// The time between two calls in the ramp. Range: 0 to `ramp`.
  Span spacing = std::chrono::milliseconds{100};
  /// Kinds of scope whose ids are secret, such as API tokens: the keys contain 128-bit keyed hashes
  /// of them, so that listing the store's keys does not reveal the ids.
  std::vector<std::string> hashed_kinds{};
  /// The secret of those hashes; the same in every process that shares the store.
  HashKey secret{};
};

class Gates;

/// What one gate closes: one account, one developer token. Made by Gates::scope(); a value that
/// owns its bytes. ("account", "1") and ("developer", "1") are different scopes.
class Scope {
 public:
  [[nodiscard]] std::string_view kind() const noexcept {
    return std::string_view(name_).substr(0, kind_bytes_);
  }
  /// The key of its state in the store.
  [[nodiscard]] Key key() const noexcept { return {tag_, name_}; }

 private:
  friend class Gates;
  Scope(std::string tag, std::string name, std::size_t kind_bytes)
      : tag_(std::move(tag)), name_(std::move(name)), kind_bytes_(kind_bytes) {}

  std::string tag_;
  std::string name_;
  std::size_t kind_bytes_;
};

/// The gates of one API. A closed gate refuses calls until it opens, in all processes that
/// share the store.
///
///     const Gates gates{*store, "adwords", {"account", "developer"}};
///     const std::array scopes{gates.scope("account", id), gates.scope("developer", token)};
///     for (;;) {
///       if (const Decision d = gates.pass(scopes); !d) { wait(d.retry_after); continue; }
///       const auto answer = call();
///       if (!answer.rate_exceeded) break;
///       // For all clients; a Call does all of this.
///       gates.close(scopes[answer.scope], answer.feedback.wait().value_or(backoff.next(rng)));
///     }
///
/// Call pass() again after every wait, as above: the gate may have been closed again meanwhile. All
/// scopes of one Gates are under one tag, its name, so that one round trip reads them together.
/// Gates of the same name on one store share their state; give them the same options. Immutable:
/// one object serves any number of threads. Each call is one store operation, O(scopes); an open
/// gate has no state, and passing it writes nothing. Borrows or owns its store: see StoreHandle.
class Gates : public Waitable {
 public:
  using Grant = Decision;                            ///< what acquire() returns
  static constexpr const char* type_name = "Gates";  ///< in messages of exceptions

  /// `kinds` are the kinds of scope of this API. Throws std::invalid_argument if there is
  /// none, if one is empty, occurs twice, is longer than 64 bytes or contains '=', if a hashed kind
  /// is not among them, if an option is out of range, or if `name` is empty or longer than 1 MiB.
  Gates(const StoreHandle& store, detail::TextArg name, std::vector<std::string> kinds,
        GateOptions options = {});
  Gates(const StoreHandle& store, detail::TextArg name,
        std::initializer_list<detail::TextArg> kinds, GateOptions options = {})
      : Gates(store, name, std::vector<std::string>(kinds.begin(), kinds.end()),
              std::move(options)) {}

  /// Makes a scope. Throws std::invalid_argument if the kind is unknown, or if the id is empty or
  /// longer than 1 MiB minus the kind: an answer of the API without an id does not close an
  /// unrelated gate.
  [[nodiscard]] Scope scope(detail::TextArg kind, detail::TextArg id) const;
  /// The id is the number in decimal digits, as in a Key.
  template <CountType T>
  [[nodiscard]] Scope scope(detail::TextArg kind, T id) const {
    return scope(kind, Key(id).tag());
  }

  /// Passes one call through the gates of all these scopes, at most Plan::max_steps, or through
  /// none of them. If refused, Decision::step is the scope with the longest wait, counted from 0.
  /// Throws std::system_error if the store could not decide.
  [[nodiscard]] Decision pass(std::span<const Scope> scopes) const;
  [[nodiscard]] Decision pass(std::span<const Scope> scopes, std::error_code& error) const noexcept;
  [[nodiscard]] Decision pass(const Scope& scope) const { return pass(std::span(&scope, 1)); }
  [[nodiscard]] Decision pass(const Scope& scope, std::error_code& error) const noexcept {
    return pass(std::span(&scope, 1), error);
  }

  /// Waits until one call may pass the gates of all these scopes, or until the deadline; blocks
  /// this thread meanwhile. Callers with the same first scope share one wait queue. See
  /// KeyedLimiter::acquire().
  [[nodiscard]] Decision acquire(std::span<const Scope> scopes, const Deadline& deadline,
                                 const WaitOptions& options = {}) const;
  [[nodiscard]] Decision acquire(std::span<const Scope> scopes, const Deadline& deadline,
                                 const WaitOptions& options, std::error_code& error) const;
  [[nodiscard]] Decision acquire(const Scope& scope, const Deadline& deadline,
                                 const WaitOptions& options = {}) const {
    return acquire(std::span(&scope, 1), deadline, options);
  }
  [[nodiscard]] Decision acquire(const Scope& scope, const Deadline& deadline,
                                 const WaitOptions& options, std::error_code& error) const {
    return acquire(std::span(&scope, 1), deadline, options, error);
  }

  /// The decision that pass() would make; changes nothing.
  [[nodiscard]] Decision peek(std::span<const Scope> scopes) const;
  [[nodiscard]] Decision peek(std::span<const Scope> scopes, std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(const Scope& scope) const { return peek(std::span(&scope, 1)); }
  [[nodiscard]] Decision peek(const Scope& scope, std::error_code& error) const noexcept {
    return peek(std::span(&scope, 1), error);
  }

  /// Closes a scope for `span` from now, at most the cap; an earlier closure that ends later stays
  /// in force. Zero or less closes nothing. Returns a decision or reports an error; `reset_after`
  /// is when the gate will be free again.
  Decision close(const Scope& scope, SpanArg span) const {
    return decide_as("close", close_step(scope, span));
  }
  Decision close(const Scope& scope, SpanArg span, std::error_code& error) const noexcept {
    return decide(*store_, close_step(scope, span), error);
  }

  /// Opens a scope at once, without a ramp.
  void open(const Scope& scope) const;
  void open(const Scope& scope, std::error_code& error) const noexcept;

  /// The steps of these calls, for plans with other limits and for the forms of decide.hpp. They
  /// view the scope: one that is made inside the call does not compile.
  [[nodiscard]] Step pass_step(const Scope& scope) const noexcept { return step(gate_pass, scope); }
  [[nodiscard]] Step peek_step(const Scope& scope) const noexcept { return step(gate_peek, scope); }
  [[nodiscard]] Step close_step(const Scope& scope, SpanArg span) const noexcept;
  [[nodiscard]] Step open_step(const Scope& scope) const noexcept {
    return {&gate_open, named(scope), {1}};
  }
  Step pass_step(const Scope&&) const = delete;  // keep the scope in a variable
  Step peek_step(const Scope&&) const = delete;
  Step close_step(const Scope&&, SpanArg) const = delete;
  Step open_step(const Scope&&) const = delete;

  [[nodiscard]] const GateOptions& options() const noexcept { return options_; }
  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // For the library; see sluice/limiters/detail/gates.hpp.
  struct Verbs;
  void borrow_store() noexcept { store_.borrow(); }

 private:
  /// The exception of a call with several scopes where the scope at fault is unknown.
  [[nodiscard]] std::system_error failed(const char* verb, const std::error_code& error,
                                         std::span<const Scope> scopes) const;
  Decision decide_all(const char* verb, std::span<const Scope> scopes,
                      std::span<const Step> steps) const;
  Decision decide_as(const char* verb, const Plan& plan) const {
    return detail::decide_as({type_name, verb}, *store_, plan);
  }
  [[nodiscard]] Step step(const Operation& operation, const Scope& scope) const noexcept {
    return {&operation,
            named(scope),
            {1, options_.cap.count(), options_.ramp.count(), options_.spacing.count()}};
  }

  [[nodiscard]] detail::LimiterKey named(const Scope& scope) const noexcept {
    return {scope.key(), store_.address()};
  }

  StoreHandle store_;
  std::string name_;
  std::vector<std::string> kinds_;
  GateOptions options_;
};

}  // namespace sluice

#include "sluice/limiters/detail/gates.hpp"
