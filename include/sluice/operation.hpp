// The table of operations. An operation is one row: a pure rule in C++ (its kernel), the name of
// its Lua twin, and what a store must know to keep its state. Rows are constants.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "sluice/error.hpp"
#include "sluice/time.hpp"

namespace sluice {

/// What a rule answers, in integers. All zero but the status when the status is negative.
struct Verdict {
  Word status = 0;       ///< allowed (1), refused (0), or -Errc: nothing could be decided
  Word remaining = 0;    ///< whole units of cost
  Word retry_after = 0;  ///< microseconds; 0 when allowed
  Word reset_after = 0;  ///< microseconds

  static constexpr Word allowed = 1;
  static constexpr Word refused = 0;
  static constexpr Word unsettled = 2;  ///< from Operation::apply_lagging only
  [[nodiscard]] static constexpr Verdict failed(Errc code) noexcept {
    return {-static_cast<Word>(code), 0, 0, 0};
  }
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

inline constexpr std::size_t max_arguments = 6;
inline constexpr std::size_t max_state_words = 2;

/// The arguments of one operation, in the order of its Args struct; unused words are zero.
using Arguments = std::array<Word, max_arguments>;
/// The state under one key, in the order of its State struct. All zero means absent.
using StateWords = std::array<Word, max_state_words>;

/// What kind of state a key holds. It is the first byte of the state in Redis; a change of layout
/// is a new kind.
enum class StateKind : std::uint8_t { token_bucket = 1 };

/// One row of the table.
struct Operation {
  std::string_view name;  ///< "token_bucket.take"; the Lua script of one step has the same stem
  std::uint8_t id;        ///< the row's number, the first byte of a step towards the plan script
  StateKind kind;
  bool writes;  ///< false: never changes the state (a peek)
  /// Words of `args` in use. The last is the cost; those before it are the quota.
  std::uint8_t argument_count;
  /// The kernel. Pure: it may run again, and sees nothing but its arguments. It changes the state
  /// only when it allows. Argument 0 is the limit that a Decision reports.
  Verdict (*apply)(StateWords& state, const Arguments& args, Word now) noexcept;
  /// Why these arguments can never be admitted, or allowed (1): what the kernel would answer
  /// without looking at the state.
  Word (*check)(const Arguments& args) noexcept;
  /// Microseconds after which a state written now means the same as an absent one.
  Word (*keep)(const Arguments& args) noexcept;
  /// The kernel by a clock that is up to `lag` microseconds behind. Answers as apply() does if a
  /// store that decided so cannot be told apart by what it admits: at every instant up to
  /// `now + lag` the request ends alike, and if allowed, the state written at any of them means the
  /// same from `now + lag` on. Else answers Verdict::unsettled and changes nothing. Null: always.
  Verdict (*apply_lagging)(StateWords& state, const Arguments& args, Word now,
                           Word lag) noexcept = nullptr;
};

/// Every row, by id: operations()[i]->id == i.
[[nodiscard]] std::span<const Operation* const> operations() noexcept;

namespace detail {

template <class T>
concept WordStruct = std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(Word) == 0;

template <WordStruct T, std::size_t N>
[[nodiscard]] T unpack(const std::array<Word, N>& words) noexcept {
  static_assert(sizeof(T) <= sizeof(words));
  T value;
  std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
  return value;
}

template <WordStruct T, std::size_t N>
void pack(std::array<Word, N>& words, const T& value) noexcept {
  static_assert(sizeof(T) <= sizeof(words));
  std::memcpy(words.data(), &value, sizeof(T));
}

}  // namespace detail
}  // namespace sluice
