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
template <auto make, class L, class Arguments>
struct Asked;
template <auto make, class L, class... Args>
struct Asked<make, L, Types<Args...>> {
  using Limiter = L;
  using Arguments = Types<Args...>;

  explicit Asked(L& of, Args... args) : limiter(of), kept(Kept<Args>(args)...) {}
  [[nodiscard]] auto verb() {
    const auto with = [this](auto&... each) {
      return make_verb(make, limiter.get(), each.get()...);
    };
    return std::apply(with, kept);
  }

  KeptLimiter<L> limiter;
  std::tuple<Kept<Args>...> kept;
};
/// The same under a request id, the last argument.
template <class Inner, class Arguments = typename Inner::Arguments>
struct AskedOnce;
template <class Inner, class... Args>
struct AskedOnce<Inner, Types<Args...>> {
  using Limiter = typename Inner::Limiter;
  using Arguments = Types<Args..., const RequestId&>;

  AskedOnce(Limiter& of, Args... args, const RequestId& once) : inner(of, args...), id(once) {}
  [[nodiscard]] auto verb() { return inner.verb().idempotent(id); }

  Inner inner;
  RequestId id;
};
/// The same without a result.
template <class Inner>
struct AskedSilently : Inner {
  using Inner::Inner;
  [[nodiscard]] auto verb() {
    using sluice::detail::Done;
    const auto nothing = [](const auto&, std::error_code&) { return Done{}; };
    return sluice::detail::MappedVerb(Inner::verb(), nothing);
  }
};

template <class Request>
using CallSignature =
    typename SignatureOf<typename decltype(std::declval<Request&>().verb())::Result>::Type;

/// One overload of an asynchronous call.
template <class Request, class L = typename Request::Limiter,
          class Arguments = typename Request::Arguments>
struct Overload;
template <class Request, class L, class... Args>
struct Overload<Request, L, Types<Args...>> {
  template <boost::asio::completion_token_for<CallSignature<Request>> CompletionToken =
                boost::asio::deferred_t>
  [[nodiscard]] auto operator()(L& limiter, typename GivenAs<Args>::Type... args,
                                CompletionToken&& token = {}) const {
    return initiate(Request(limiter, args...), std::forward<CompletionToken>(token));
  }
};

template <auto make>
using AskedBy = Asked<make, typename MakerOf<decltype(make)>::Limiter,
                      typename MakerOf<decltype(make)>::Arguments>;

/// The call of which `make` makes the verb or the step: its result is that of the verb.
template <auto make>
using Form = Overload<AskedBy<make>>;
/// The same with a RequestId as the last argument.
template <auto make>
using FormOnce = Overload<AskedOnce<AskedBy<make>>>;
/// The same without a result.
template <auto make>
using SilentCall = Overload<AskedSilently<AskedBy<make>>>;

/// An asynchronous call with an overload for each limiter that has it.
template <class... Calls>
struct AsyncVerb : Calls... {
  using Calls::operator()...;
};

}  // namespace sluice::asio::detail
