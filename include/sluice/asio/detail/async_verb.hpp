// The asynchronous form of a limiter's call: a function object that looks up what makes the verb of
// the call (see sluice/detail/verb.hpp), for any limiter that has it.
#pragma once

#include <array>
#include <boost/asio/deferred.hpp>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/kept.hpp"
#include "sluice/asio/detail/pending_call.hpp"

namespace sluice::asio::detail {

/// `L::Verbs`: functions that make the verbs of a limiter, each with the name of its call.
struct NoVerbs {};
template <class L>
struct VerbsIn {
  using Type = NoVerbs;
};
template <class L>
requires requires { typename L::Verbs; }
struct VerbsIn<L> {
  using Type = typename L::Verbs;
};
template <class L>
using VerbsOf = typename VerbsIn<std::remove_const_t<L>>::Type;

// Macros, since no template has a name as its argument. SLUICE_ASYNC_CALL declares a class that
// looks up `Verbs::name(limiter, args...)`; SLUICE_ASYNC_STEP one that, without such a verb, also
// looks up `limiter.step_name(args...)`: the result of the call is then the decision on this step.
#define SLUICE_ASYNC_CALL(Call, name)                                                              \
  struct Call {                                                                                    \
    template <class L, class... Args>                                                              \
    static auto verb(L& limiter, Args&&... args) -> decltype(VerbsOf<L>::name(limiter, args...)) { \
      return VerbsOf<L>::name(limiter, args...);                                                   \
    }                                                                                              \
  }
#define SLUICE_ASYNC_STEP(Call, name, step_name)                                           \
  SLUICE_ASYNC_CALL(Call##Verb, name);                                                     \
  struct Call : Call##Verb {                                                               \
    template <class L, class... Args>                                                      \
    static auto step(L& limiter, Args&&... args) -> decltype(limiter.step_name(args...)) { \
      return limiter.step_name(args...);                                                   \
    }                                                                                      \
  }

template <class Call, class L, class... Args>
concept HasVerb = requires(L& limiter, Args&&... args) {
  Call::verb(limiter, std::forward<Args>(args)...);
};
template <class Call, class L, class... Args>
concept HasStep = requires(L& limiter, Args&&... args) {
  { Call::step(limiter, std::forward<Args>(args)...) } -> std::same_as<Step>;
  { limiter.store() } -> std::convertible_to<Store&>;
};

/// The verb of a call. A step becomes the verb whose result is the decision on it.
template <class Call, class L, class... Args>
[[nodiscard]] auto make_verb(L& limiter, Args&&... args) {
  if constexpr (!HasVerb<Call, L, Args...>) {
    return sluice::detail::verb_of(limiter.store(), Call::step(limiter, args...));
  } else if constexpr (std::is_same_v<decltype(Call::verb(limiter, args...)), Step>) {
    return sluice::detail::verb_of(limiter.store(), Call::verb(limiter, args...));
  } else {
    return Call::verb(limiter, args...);
  }
}

template <class Call, class L, class... Args>
concept HasCall = HasVerb<Call, L, Args...> || HasStep<Call, L, Args...>;

/// A limiter that has the call with these arguments: any expression, or a variable for a call that
/// changes the object.
template <class L, class Call, class... Args>
concept Calls = HasCall<Call, const std::remove_reference_t<L>, Args...> ||
    (std::is_lvalue_reference_v<L>&& HasVerb<Call, std::remove_reference_t<L>, Args...>);

/// The same with a verb that can be asked under an id.
template <class L, class Call, class... Args>
concept CallsOnce = HasCall<Call, const std::remove_reference_t<L>, Args...> &&
    requires(const std::remove_reference_t<L>& limiter, Args&&... args, const RequestId& id) {
  make_verb<Call>(limiter, args...).idempotent(id);
};

/// What a call asks for, with copies of its arguments.
template <class Call, class L, class... Args>
struct Asked {
  explicit Asked(L& of, Args... args) : limiter(of), kept(Kept<Args>(args)...) {}
  [[nodiscard]] auto verb() {
    const auto with = [this](auto&... each) {
      return make_verb<Call>(limiter.get(), each.get()...);
    };
    return std::apply(with, kept);
  }

  KeptLimiter<L> limiter;
  std::tuple<Kept<Args>...> kept;
};
/// The same under a request id.
template <class Inner>
struct AskedOnce {
  [[nodiscard]] auto verb() { return inner.verb().idempotent(id); }
  Inner inner;
  RequestId id;
};
/// The same without a result.
template <class Inner>
struct AskedSilently {
  [[nodiscard]] auto verb() {
    using sluice::detail::Done;
    const auto nothing = [](const auto&, std::error_code&) { return Done{}; };
    return sluice::detail::MappedVerb(inner.verb(), nothing);
  }
  Inner inner;
};

/// What a form asks for: of a const limiter, but for a call that changes the object.
template <class Call, class L, class... Args>
using AskedOf =
    Asked<Call,
          std::conditional_t<HasCall<Call, const std::remove_reference_t<L>, Args...>,
                             const std::remove_reference_t<L>, std::remove_reference_t<L>>,
          Args...>;

/// `Token` completes the call of `Request`.
template <class Token, class Request>
concept Completes = boost::asio::completion_token_for<
    Token, typename SignatureOf<typename decltype(std::declval<Request&>().verb())::Result>::Type>;

/// The arguments of a form.
template <class... Args>
struct With {};
/// The same, and a RequestId.
template <class... Args>
struct WithId {};
/// Those of a form without a result.
template <class... Args>
struct Silently {};

/// One form of a call, for all limiters that have it.
template <class Call, class Arguments>
struct Form;
template <class Call, class... Args>
struct Form<Call, With<Args...>> {
  template <class L>
  using Request = AskedOf<Call, L, ArgOf<Args, L>...>;
  template <class L, class CompletionToken = boost::asio::deferred_t>
  requires Calls<L, Call, ArgOf<Args, L>...> && Completes<CompletionToken, Request<L>>
  [[nodiscard]] auto operator()(L&& limiter, GivenAs<ArgOf<Args, L>>... args,
                                CompletionToken&& token = {}) const {
    return initiate(Request<L>(limiter, args...), std::forward<CompletionToken>(token));
  }
};
template <class Call, class... Args>
struct Form<Call, WithId<Args...>> {
  template <class L>
  using Inner = AskedOf<Call, L, ArgOf<Args, L>...>;
  template <class L>
  using Request = AskedOnce<Inner<L>>;
  template <class L, class CompletionToken = boost::asio::deferred_t>
  requires CallsOnce<L, Call, ArgOf<Args, L>...> && Completes<CompletionToken, Request<L>>
  [[nodiscard]] auto operator()(L&& limiter, GivenAs<ArgOf<Args, L>>... args, const RequestId& id,
                                CompletionToken&& token = {}) const {
    return initiate(Request<L>{Inner<L>(limiter, args...), id},
                    std::forward<CompletionToken>(token));
  }
};
template <class Call, class... Args>
struct Form<Call, Silently<Args...>> {
  template <class L>
  using Inner = AskedOf<Call, L, ArgOf<Args, L>...>;
  template <class L>
  using Request = AskedSilently<Inner<L>>;
  template <class L, class CompletionToken = boost::asio::deferred_t>
  requires Calls<L, Call, ArgOf<Args, L>...> && Completes<CompletionToken, Request<L>>
  [[nodiscard]] auto operator()(L&& limiter, GivenAs<ArgOf<Args, L>>... args,
                                CompletionToken&& token = {}) const {
    return initiate(Request<L>{Inner<L>(limiter, args...)}, std::forward<CompletionToken>(token));
  }
};

/// Scopes that are made inside the call do not compile: g++ 12 would destroy them twice in a
/// co_await.
struct NoScopesInside {};
template <class Call>
struct Form<Call, NoScopesInside> {
  template <std::size_t n, class... Rest>
  void operator()(const Gates&, std::array<Scope, n>&&, Rest&&...) const = delete;
  template <std::size_t n, class... Rest>
  void operator()(const Gates&, const std::array<Scope, n>&&, Rest&&...) const = delete;
};

/// An asynchronous call in each of its forms.
template <class Call, class... Forms>
struct AsyncVerb : Form<Call, Forms>... {
  using Form<Call, Forms>::operator()...;
};

}  // namespace sluice::asio::detail
