// The arguments of a call: how each is given, and how it outlives the call, until the operation
// starts and while it runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/key.hpp"
#include "sluice/time.hpp"

namespace sluice {
class Gates;
class Scope;
}  // namespace sluice

namespace sluice::asio::detail {

/// A copy of a value, and a reference to what is passed by a mutable reference.
template <class Arg>
struct Kept {
  explicit Kept(const Arg& given) : value(given) {}
  [[nodiscard]] const Arg& get() const noexcept { return value; }
  Arg value;
};
template <class T>
struct Kept<const T&> : Kept<T> {
  using Kept<T>::Kept;
};
template <class T>
struct Kept<T&> {
  explicit Kept(T& given) noexcept : value(given) {}
  [[nodiscard]] T& get() const noexcept { return value; }
  std::reference_wrapper<T> value;
};

/// The limiter of a call. A copy where one can be made, which does not own the store: the last
/// owner may not end inside a completion of the store. Once the store has ended, the call fails
/// with Errc::shut_down.
template <class L>
class KeptLimiter {
 public:
  explicit KeptLimiter(L& limiter) noexcept : limiter_(&limiter) {}
  [[nodiscard]] L& get() const noexcept { return *limiter_; }

 private:
  L* limiter_;
};
template <class L>
requires std::is_copy_constructible_v<L> && requires(L& copy) { copy.borrow_store(); }
class KeptLimiter<const L> {
 public:
  explicit KeptLimiter(const L& limiter) : limiter_(limiter) { limiter_.borrow_store(); }
  [[nodiscard]] const L& get() const noexcept { return limiter_; }

 private:
  L limiter_;
};

/// How the blocking form takes an argument that is kept as an `Arg`.
template <class Arg>
struct GivenFor {
  using Type = Arg;
};
template <>
struct GivenFor<const Key&> {
  using Type = const KeyArg&;
};
template <>
struct GivenFor<Span> {
  using Type = SpanArg;
};
template <class Arg>
using GivenAs = typename GivenFor<Arg>::Type;

/// The bytes of a view.
template <>
struct Kept<const Key&> {
  explicit Kept(const Key& key) : tag(key.tag()), name(key.name()), unit(key.unit()) {}
  [[nodiscard]] Key get() const noexcept { return Key{tag, name}.with_unit(unit); }
  std::string tag;
  std::string name;
  std::string unit;
};
template <>
struct Kept<sluice::detail::TextArg> {
  explicit Kept(sluice::detail::TextArg given) : text(given.view()) {}
  [[nodiscard]] sluice::detail::TextArg get() const noexcept { return text; }
  std::string text;
};
template <class T>
struct Kept<std::span<const T>> {
  explicit Kept(std::span<const T> given) : values(given.begin(), given.end()) {}
  [[nodiscard]] std::span<const T> get() const noexcept { return values; }
  std::vector<T> values;
};

/// The tier of a UtilizationShedder, and the scopes of Gates: arguments whose types belong to the
/// limiter, so that this header needs none.
struct ItsTier {};
struct ItsScopes {};
template <class Arg, class L>
struct ArgFor {
  using Type = Arg;
};
template <class L>
struct ArgFor<ItsTier, L> {};
template <class L>
requires requires { typename L::Tier; }
struct ArgFor<ItsTier, L> {
  using Type = typename L::Tier;
};
template <class L>
struct ArgFor<ItsScopes, L> {};
template <>
struct ArgFor<ItsScopes, Gates> {
  using Type = std::span<const Scope>;
};
template <class Arg, class L>
using ArgOf = typename ArgFor<Arg, std::remove_cvref_t<L>>::Type;

}  // namespace sluice::asio::detail
