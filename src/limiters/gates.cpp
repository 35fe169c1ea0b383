// The gates limiter: construction, scopes, plans over several of them, and waiting.
#include "sluice/limiters/gates.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sluice/calls/grants.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/util/quoted.hpp"
#include "src/util/siphash.hpp"
#include "src/waiting/acquire.hpp"

namespace sluice {
namespace {

using detail::quoted;

constexpr std::size_t max_kind_bytes = 64;

void check_range(const char* what, Span least, Span most, Span given) {
  if (given >= least && given <= most) return;
  throw std::invalid_argument(
      "a gate's " + std::string(what) + " must be " + std::to_string(least.count()) + " to " +
      std::to_string(most.count()) + " us, got " + std::to_string(given.count()) + " us");
}

bool contains(const std::vector<std::string>& kinds, std::string_view kind) noexcept {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::string list(const std::vector<std::string>& kinds) {
  std::string out;
  for (const std::string& kind : kinds) out += (out.empty() ? "" : ", ") + quoted(kind);
  return out;
}

std::string hex(const std::array<std::uint64_t, 2>& words) {
  std::string out;
  for (const std::uint64_t word : words) {
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  }
  return out;
}

template <std::size_t... i>
std::array<Step, sizeof...(i)> empty_steps(std::index_sequence<i...> /*places*/) noexcept {
  return {((void)i, Step{nullptr, Key{""}, {}})...};
}

/// The steps of one plan, without an allocation.
struct Steps {
  std::array<Step, Plan::max_steps> steps =
      empty_steps(std::make_index_sequence<Plan::max_steps>{});
  std::size_t count = 0;
  [[nodiscard]] std::span<const Step> span() const noexcept { return {steps.data(), count}; }
};

/// More scopes than a plan may have become no steps, which is an invalid plan as well.
template <class Make>
Steps steps_of(std::span<const Scope> scopes, Make make) noexcept {
  Steps all;
  if (scopes.size() > Plan::max_steps) return all;
  for (const Scope& scope : scopes) all.steps[all.count++] = make(scope);
  return all;
}

}  // namespace

Gates::Gates(const StoreHandle& store, detail::TextArg name, std::vector<std::string> kinds,
             GateOptions options)
    : Waitable(store.address()),
      store_(store),
      name_(detail::valid_name(name)),
      kinds_(std::move(kinds)),
      options_(std::move(options)) {
  if (kinds_.empty()) throw std::invalid_argument("gates need at least one kind of scope");
  for (const std::string& kind : kinds_) {
    if (kind.empty() || kind.size() > max_kind_bytes || kind.find('=') != std::string::npos) {
      throw std::invalid_argument("a kind of scope must have 1 to 64 bytes and no '=', got " +
                                  quoted(kind));
    }
    if (std::count(kinds_.begin(), kinds_.end(), kind) > 1) {
      throw std::invalid_argument("the kind of scope " + quoted(kind) + " occurs twice");
    }
  }
  for (const std::string& kind : options_.hashed_kinds) {
    if (!contains(kinds_, kind)) {
      throw std::invalid_argument("the hashed kind " + quoted(kind) + " is none of " +
                                  list(kinds_));
    }
  }
  check_range("cap", Span{1}, Span{GateRule::max_cap}, options_.cap);
  check_range("ramp", Span{0}, Span{GateRule::max_ramp}, options_.ramp);
  check_range("spacing", Span{0}, options_.ramp, options_.spacing);
}

Scope Gates::scope(detail::TextArg kind_text, detail::TextArg id_text) const {
  const std::string_view kind = kind_text;
  const std::string_view id = id_text;
  if (!contains(kinds_, kind)) {
    throw std::invalid_argument("unknown kind of scope " + quoted(kind) + "; there are " +
                                list(kinds_));
  }
  if (id.empty() || id.size() > Key::max_part_bytes - kind.size() - 1) {
    throw std::invalid_argument("the id of a scope must have 1 byte to 1 MiB, got " +
                                std::to_string(id.size()) + " bytes for " + quoted(kind));
  }
  std::string name(kind);
  name += '=';
  if (contains(options_.hashed_kinds, kind)) {
    name += hex(detail::SipHash24(options_.secret)(id));
  } else {
    name += id;
  }
  return {name_, std::move(name), kind.size()};
}

std::system_error Gates::failed(const char* verb, const std::error_code& error,
                                std::span<const Scope> scopes) const {
  const detail::CallName call{type_name, verb};
  if (error == Errc::invalid_plan) {
    return detail::failed_with(
        call, error,
        std::to_string(scopes.size()) + " scopes, allowed 1 to " + std::to_string(Plan::max_steps));
  }
  if (scopes.size() == 1) return detail::failed_call(call, error, pass_step(scopes.front()));
  return detail::failed_with(call, error, "");
}

Decision Gates::decide_all(const char* verb, std::span<const Scope> scopes,
                           std::span<const Step> steps) const {
  std::error_code error;
  const Decision decision = decide(*store_, steps, error);
  if (error == Errc::invalid_plan) throw failed(verb, error, scopes);
  if (error) throw detail::failed_call({type_name, verb}, error, steps, decision.step);
  return decision;
}

Decision Gates::pass(std::span<const Scope> scopes) const {
  const Steps all = steps_of(scopes, [this](const Scope& s) { return pass_step(s); });
  return decide_all("pass", scopes, all.span());
}

Decision Gates::pass(std::span<const Scope> scopes, std::error_code& error) const noexcept {
  const Steps all = steps_of(scopes, [this](const Scope& s) { return pass_step(s); });
  return decide(*store_, all.span(), error);
}

Decision Gates::peek(std::span<const Scope> scopes) const {
  const Steps all = steps_of(scopes, [this](const Scope& s) { return peek_step(s); });
  return decide_all("peek", scopes, all.span());
}

Decision Gates::peek(std::span<const Scope> scopes, std::error_code& error) const noexcept {
  const Steps all = steps_of(scopes, [this](const Scope& s) { return peek_step(s); });
  return decide(*store_, all.span(), error);
}

Step Gates::close_step(const Scope& scope, SpanArg span) const noexcept {
  Step result = step(gate_close, scope);
  result.args[4] = std::clamp<Span>(span, Span{0}, options_.cap).count();
  return result;
}

void Gates::open(const Scope& scope, std::error_code& error) const noexcept {
  detail::run(Verbs::open(*this, scope), error);
}

void Gates::open(const Scope& scope) const {
  detail::or_throw(
      {type_name, "open"}, [&] { return open_step(scope); },
      [&](auto& error) { return detail::run(Verbs::open(*this, scope), error); });
}

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
