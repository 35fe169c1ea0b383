// The asynchronous form of a limiter's call: a function object, made of the function that makes the
// verb of the call (see sluice/detail/verb.hpp), or of the one that makes its only step.
#pragma once

#include <boost/asio/deferred.hpp>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/asio/detail/kept.hpp"
#include "sluice/asio/detail/pending_call.hpp"

namespace sluice::asio::detail {

template <class... Args>
struct Types {};

/// The limiter and the arguments of the function that makes a verb or a step.
template <class Make>
struct MakerOf;
template <class R, class L, class... Args>
struct MakerOf<R (*)(L&, Args...)> {
  using Limiter = L;
  using Arguments = Types<Args...>;
};
template <class R, class L, class... Args>
struct MakerOf<R (*)(L&, Args...) noexcept> : MakerOf<R (*)(L&, Args...)> {};
template <class R, class L, class... Args>
struct MakerOf<R (L::*)(Args...) const> : MakerOf<R (*)(const L&, Args...)> {};
template <class R, class L, class... Args>
struct MakerOf<R (L::*)(Args...) const noexcept> : MakerOf<R (*)(const L&, Args...)> {};

/// A step becomes the verb whose result is the decision on it.
template <class Make, class L, class... Args>
[[nodiscard]] auto make_verb(Make make, L& limiter, Args&&... args) {
  using Made = std::invoke_result_t<Make, L&, Args...>;
  if constexpr (std::is_same_v<Made, Step>) {
    const Step step = std::invoke(make, limiter, std::forward<Args>(args)...);
    return sluice::detail::verb_of(limiter.store(), step);
  } else {
    return std::invoke(make, limiter, std::forward<Args>(args)...);
  }
}

/// What a call asks for, with copies of its arguments.
template <class Make, class L, class... Args>
struct Asked {
  Make make;
  L* limiter;
  std::tuple<Kept<Args>...> kept;

  [[nodiscard]] auto verb() {
    const auto with = [this](auto&... each) { return make_verb(make, *limiter, each.get()...); };
    return std::apply(with, kept);
  }
};
/// The same under a request id.
template <class Inner>
struct AskedOnce {
  Inner inner;
  RequestId id;

  [[nodiscard]] auto verb() { return inner.verb().idempotent(id); }
};
/// The same without a result.
template <class Inner>
struct AskedSilently {
  Inner inner;

  [[nodiscard]] auto verb() {
    using sluice::detail::Done;
    const auto nothing = [](const auto&, std::error_code&) { return Done{}; };
    return sluice::detail::MappedVerb(inner.verb(), nothing);
  }
};

template <class Request>
using ResultOf = typename decltype(std::declval<Request&>().verb())::Result;
template <class Request>
using CallSignature = typename SignatureOf<ResultOf<Request>>::Type;

template <auto make, class L, class Arguments>
struct OverloadFor;

/// One overload of an asynchronous call.
template <auto make, class L, class... Args>
struct OverloadFor<make, L, Types<Args...>> {
  using Request = Asked<decltype(make), L, Args...>;

  template <boost::asio::completion_token_for<CallSignature<Request>> CompletionToken =
                boost::asio::deferred_t>
  [[nodiscard]] auto operator()(L& limiter, Args... args, CompletionToken&& token = {}) const {
    return initiate(Request{make, &limiter, {Kept<Args>(args)...}},
                    std::forward<CompletionToken>(token));
  }
};
template <auto make, class L, class Arguments>
struct OverloadOnceFor;
template <auto make, class L, class... Args>
struct OverloadOnceFor<make, L, Types<Args...>> {
  using Request = AskedOnce<Asked<decltype(make), L, Args...>>;

  template <boost::asio::completion_token_for<CallSignature<Request>> CompletionToken =
                boost::asio::deferred_t>
  [[nodiscard]] auto operator()(L& limiter, Args... args, const RequestId& id,
                                CompletionToken&& token = {}) const {
    return initiate(Request{{make, &limiter, {Kept<Args>(args)...}}, id},
                    std::forward<CompletionToken>(token));
  }
};
template <auto make, class L, class Arguments>
struct OverloadSilentFor;
template <auto make, class L, class... Args>
struct OverloadSilentFor<make, L, Types<Args...>> {
  using Request = AskedSilently<Asked<decltype(make), L, Args...>>;

  template <boost::asio::completion_token_for<CallSignature<Request>> CompletionToken =
                boost::asio::deferred_t>
  [[nodiscard]] auto operator()(L& limiter, Args... args, CompletionToken&& token = {}) const {
    return initiate(Request{{make, &limiter, {Kept<Args>(args)...}}},
                    std::forward<CompletionToken>(token));
  }
};

/// The call of which `make` makes the verb or the step: its result is that of the verb.
template <auto make>
struct Call : OverloadFor<make, typename MakerOf<decltype(make)>::Limiter,
                          typename MakerOf<decltype(make)>::Arguments> {};
/// The same with a RequestId as the last argument.
template <auto make>
struct CallOnce : OverloadOnceFor<make, typename MakerOf<decltype(make)>::Limiter,
                                  typename MakerOf<decltype(make)>::Arguments> {};
/// The same without a result.
template <auto make>
struct SilentCall : OverloadSilentFor<make, typename MakerOf<decltype(make)>::Limiter,
                                      typename MakerOf<decltype(make)>::Arguments> {};

/// An asynchronous call with an overload for each limiter that has it.
template <class... Calls>
struct AsyncVerb : Calls... {
  using Calls::operator()...;
};

}  // namespace sluice::asio::detail
