// The table of operations. An operation is one row: a pure rule in C++ (its kernel), the name of
// its Lua twin, and what a store needs to keep its state. Rows are constants.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "sluice/extend/effects.hpp"
#include "sluice/extend/verdict.hpp"

namespace sluice {

inline constexpr std::size_t quota_words = 3;
inline constexpr std::size_t max_table_words = 16;
/// The most words of one state.
inline constexpr std::size_t max_state_words = std::size_t{1} << 18;

/// The kind of state under a key. It is the first byte of the state in Redis; a change of layout
/// gets a new kind. Numbers are below 32, and each has a row in state_descriptions.
enum class StateKind : std::uint8_t {
  shared_sliding_window = 5,
  shared_token_bucket = 6,
  leases = 7,
  slot_lock = 8,
  utilization = 9,
  gate = 10,
  idempotency_record = 12,  // 1 to 4, 11, 14 to 17, 19, 21 and 25 had other layouts
  wait_line = 13,
  token_bucket = 18,
  fixed_window = 22,
  sliding_window_counter = 23,
  sliding_window = 26,
  constant = 27,
  learned_rate = 28,
};

/// The properties of all states of one kind.
struct StateDescription {
  StateKind kind;
  /// Two words, which a store may keep and swap as one cell; else any number of words.
  bool is_cell;
  const char* name;  ///< in messages of exceptions
  /// Keys of one quota may share a state where a store has no room for each: the first quota_words
  /// arguments of every row of this kind name the quota. A row with Operation::apply is of such a
  /// kind.
  bool is_shareable = false;
};

inline constexpr StateDescription state_descriptions[] = {
    {StateKind::shared_sliding_window, false, "a shared sliding window"},
    {StateKind::shared_token_bucket, false, "a shared token bucket"},
    {StateKind::leases, false, "leases"},
    {StateKind::slot_lock, true, "a slot lock"},
    {StateKind::utilization, true, "a utilization"},
    {StateKind::gate, true, "a gate"},
    {StateKind::idempotency_record, false, "the answer to a request id"},
    {StateKind::wait_line, false, "a line of waiters"},
    {StateKind::fixed_window, true, "a fixed window"},
    {StateKind::sliding_window, false, "a sliding window"},
    {StateKind::token_bucket, true, "a token bucket", true},
    {StateKind::constant, true, "a constant"},
    {StateKind::sliding_window_counter, false, "a sliding window counter"},
    {StateKind::learned_rate, false, "a learned rate"},
};

namespace detail {
inline constexpr std::uint32_t cell_kinds = [] {
  std::uint32_t kinds = 0;
  for (const StateDescription& each : state_descriptions) {
    if (each.is_cell) kinds |= std::uint32_t{1} << static_cast<unsigned>(each.kind);
  }
  return kinds;
}();
}  // namespace detail

/// StateDescription::is_cell of this kind; false if the kind has no description.
[[nodiscard]] constexpr bool is_cell(StateKind kind) noexcept {
  const auto number = static_cast<unsigned>(kind);
  return number < 32 && (detail::cell_kinds >> number & 1) != 0;
}

/// StateDescription::is_shareable of this kind; false of a kind that has no description.
[[nodiscard]] constexpr bool is_shareable(StateKind kind) noexcept {
  for (const StateDescription& each : state_descriptions) {
    if (each.kind == kind) return each.is_shareable;
  }
  return false;
}

/// The arguments of one step, and the table of its limiter.
struct RuleRequest {
  const Arguments& args;
  std::span<const Word> table;
};

/// An argument that the caller of a limiter chooses. (The limiter checks all others in its
/// constructor.)
struct Argument {
  enum class Role : std::uint8_t {
    other,
    cost,  ///< the number of units requested
    wait,  ///< how far ahead a grant may be, in microseconds
  };
  std::uint8_t index;           ///< into Arguments
  const char* name;             ///< in messages of exceptions
  const char* unit = "";        ///< "us", or "" for a number
  const char* range = nullptr;  ///< the allowed range as text, if it is not that of the word
  Role role = Role::other;
};

/// The arguments of one row, in the order in which exceptions name them.
class ArgumentList {
 public:
  constexpr ArgumentList() noexcept = default;
  /// REQUIRES: list.size() <= capacity.
  constexpr ArgumentList(std::initializer_list<Argument> list) noexcept {
    for (const Argument& each : list) arguments_[count_++] = each;
  }
  [[nodiscard]] constexpr const Argument* begin() const noexcept { return arguments_; }
  [[nodiscard]] constexpr const Argument* end() const noexcept { return arguments_ + count_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
  /// The argument of this role, or null.
  [[nodiscard]] constexpr const Argument* find(Argument::Role role) const noexcept {
    for (const Argument& each : *this) {
      if (each.role == role) return &each;
    }
    return nullptr;
  }

  static constexpr std::size_t capacity = 2;

 private:
  Argument arguments_[capacity]{};
  std::size_t count_ = 0;
};

/// One row of the table: the complete description of one operation. Stores read the first members
/// at every decision; the last ones describe the operation to others.
struct Operation {
  /// The number of units that an allowed step grants.
  enum class Grants : std::uint8_t {
    nothing,     ///< a peek, a refund or a change
    one,         ///< an operation without a cost
    cost,        ///< the argument with the role `cost`
    up_to_cost,  ///< the first output word
  };
  /// How a FallbackStore may answer without its primary store.
  enum class WithoutStore : std::uint8_t {
    error,        ///< not at all: the operation is about the state in the primary
    fresh_state,  ///< as for a key without state, or as the local store decides
    no_state,     ///< by policy, without output; the local store has no such state
    skipped,      ///< the same; the local store decides the other steps of a plan
    local_only,   ///< as the local store decides: the change applies there
    local_lease,  ///< as the local store decides, if it granted the lease
  };
  /// What a FallbackStore divides among the clients of local stores.
  enum class Share : std::uint8_t {
    whole,         ///< nothing: each client has the whole limit
    limit,         ///< argument 0
    windows,       ///< argument 0 and the limits in the table
    interval,      ///< argument 1 is multiplied
    rates,         ///< arguments 1 to 3
    bucket,        ///< argument 0; and argument 2, the period, is multiplied
    plain_bucket,  ///< as `bucket`; argument 3 is the time in which the bucket fills
  };
  /// A range of output words.
  struct OutputRange {
    std::uint8_t first;
    std::uint8_t count;
  };

  std::string_view name;  ///< "token_bucket.acquire"; its section in Lua is token_bucket_acquire
  std::uint8_t id;        ///< the number of the row, the first byte of its message in a plan
  StateKind kind;
  bool writes;  ///< false: never changes the state (a peek)
  /// The number of `args` in use. Argument 0 becomes Decision::limit.
  std::uint8_t argument_count;
  /// The kernel of an operation on a cell, in its fastest form; null in rows with decide(). Pure:
  /// it may run again, and depends on nothing but its arguments. It changes the state only when it
  /// allows. Stores that can share one state among keys do so for kinds with such a row, by the
  /// first `quota_words` arguments of each of their rows, which identify the quota.
  Verdict (*apply)(StateWords& state, const Arguments& args, Word now) noexcept = nullptr;
  /// The error of arguments that can never be admitted, or allowed (1): the verdict of the kernel
  /// as far as it does not depend on the state.
  Word (*check)(const Arguments& args) noexcept;
  /// The microseconds after which a state written now is equivalent to an absent one, also if the
  /// clock is set back by up to clock_slack by then, so that a store may drop it.
  Word (*ttl)(const Arguments& args) noexcept;
  /// The kernel of all other rows. As pure as apply(); it reads before it adds effects, and adds
  /// changes only when it allows. The changes include word 0.
  Verdict (*decide)(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept = nullptr;
  /// The number of output words, before those of the windows.
  std::uint8_t output = 0;
  /// An output word follows for each pair of words in the table.
  bool tells_windows = false;
  /// The first output word is Decision::part.
  bool names_part = false;

  Grants grants = Grants::nothing;
  WithoutStore without_store = WithoutStore::error;
  Share share = Share::whole;
  /// The output words that identify the charge of a grant in its store; a grant by another store
  /// has zeros there.
  OutputRange charge_output{0, 0};
  ArgumentList arguments{};

  /// The corrections of a clock up to which rules keep their state, in microseconds: a minute.
  static constexpr Word clock_slack = 60'000'000;
};

/// The number of output words of this operation with a table of `table_words` words.
[[nodiscard]] constexpr std::size_t output_count(const Operation& row,
                                                 std::size_t table_words) noexcept {
  return row.output + (row.tells_windows ? table_words / 2 : 0);
}

/// Runs the kernel of either form on a copy of the state, for stores without a faster way.
/// Afterwards `effects` contains output_count() output words (zeros if the status is an error) and,
/// if allowed, the changes. A corrupt state is an error. REQUIRES: `effects` is new; `words` has
/// cell_words words if the kind is a cell.
Verdict run(const Operation& row, std::span<const Word> words, const RuleRequest& request, Word now,
            Effects& effects) noexcept;

/// All rows, in the order of their ids, which are unique but have gaps.
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
