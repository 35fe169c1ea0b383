// The table of operations. An operation is one row: a pure rule in C++ (its kernel), the name of
// its Lua twin, and what a store must know to keep its state. Rows are constants.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "sluice/error.hpp"
#include "sluice/time.hpp"

namespace sluice {

enum class StateKind : std::uint8_t;

/// What a rule answers, in integers. All zero but the status when the status is negative, and but
/// what wrong_kind() says.
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
  /// What a store answers where the key holds a state of another kind: Errc::wrong_kind, with that
  /// kind in the place of `remaining`, or 0 if it does not know.
  [[nodiscard]] static constexpr Verdict wrong_kind(StateKind found) noexcept {
    return {-static_cast<Word>(Errc::wrong_kind), static_cast<Word>(found), 0, 0};
  }
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

inline constexpr std::size_t max_arguments = 8;
inline constexpr std::size_t quota_words = 3;
inline constexpr std::size_t cell_words = 2;
inline constexpr std::size_t max_table_words = 16;
inline constexpr std::size_t max_output = 12;
/// The most words of one state.
inline constexpr std::size_t max_state_words = std::size_t{1} << 18;

/// The arguments of one operation, in the order of its Args struct; unused words are zero.
using Arguments = std::array<Word, max_arguments>;
/// A state of two words, in the order of its State struct. All zero means absent.
using StateWords = std::array<Word, cell_words>;

/// What kind of state a key holds. It is the first byte of the state in Redis; a change of layout
/// is a new kind. A number is below 32, and has a line in state_descriptions.
enum class StateKind : std::uint8_t {
  shared_sliding_window = 5,
  shared_token_bucket = 6,
  leases = 7,
  slot_lock = 8,
  utilization = 9,
  gate = 10,
  idempotency_record = 12,  // 1 to 4, 11, 14 to 17 and 19 had other layouts
  wait_line = 13,
  token_bucket = 18,
  sliding_window = 21,
  fixed_window = 22,
  sliding_window_counter = 23,
};

/// What is true of all states of one kind.
struct StateDescription {
  StateKind kind;
  /// Two words, which a store may keep and swap as one cell; else any number of words.
  bool is_cell;
  const char* name;  ///< as exceptions say it
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
    {StateKind::sliding_window_counter, false, "a sliding window counter"},
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

/// StateDescription::is_cell of this kind; false of a kind that has no description.
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

/// A state as a kernel reads it. Words that were never written are zero.
class StateView {
 public:
  explicit StateView(std::span<const Word> words) noexcept : words_(words) {}

  /// A word that no rule can have written counts as zero, and the state as corrupt.
  [[nodiscard]] Word operator[](std::size_t index) const noexcept {
    const Word word = index < words_.size() ? words_[index] : 0;
    if (word >= 0 && word <= word_limit) [[likely]] {
      return word;
    }
    corrupt_ = true;
    return 0;
  }
  /// What a kernel says of words that contradict each other.
  void call_corrupt() const noexcept { corrupt_ = true; }
  [[nodiscard]] bool is_corrupt() const noexcept { return corrupt_; }

 private:
  std::span<const Word> words_;
  mutable bool corrupt_ = false;
};

/// What a kernel leaves: changes, made only if every step of the plan allows, and output words.
/// Bounded: a rule makes few changes, whatever the size of its state.
class Effects {
 public:
  /// `count` words from `index` become `value`.
  struct Fill {
    std::uint32_t index;
    std::uint32_t count;
    Word value;
  };
  /// As std::rotate; made before any fill.
  struct Rotation {
    std::size_t first = 0;
    std::size_t middle = 0;
    std::size_t last = 0;
  };

  void put(std::size_t index, Word value) noexcept { fill(index, 1, value); }
  void fill(std::size_t index, std::size_t count, Word value) noexcept {
    if (count == 0) return;
    end_ = std::max(end_, index + count);
    fills_[fill_count_++] = {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(count),
                             value};
  }
  void rotate(std::size_t first, std::size_t middle, std::size_t last) noexcept {
    rotation_ = {first, middle, last};
    end_ = std::max(end_, last);
  }
  /// Adds a word to the answer; a row always tells as many as it has.
  void add_output(Word word) noexcept { output_[output_count_++] = word; }

  [[nodiscard]] bool changes() const noexcept { return fill_count_ != 0; }
  [[nodiscard]] std::span<const Fill> fills() const noexcept;
  [[nodiscard]] const Rotation& rotation() const noexcept { return rotation_; }
  [[nodiscard]] std::span<const Word> output() const noexcept {
    return {output_.data(), output_count_};
  }
  /// How many words a state needs to take the changes.
  [[nodiscard]] std::size_t extent() const noexcept { return end_; }
  /// Makes the changes. REQUIRES: words.size() >= extent().
  void make(std::span<Word> words) const noexcept;

  void clear() noexcept {
    rotation_ = {};
    end_ = 0;
    fill_count_ = 0;
    output_count_ = 0;
  }

  static constexpr std::size_t max_fills = 80;

 private:
  std::array<Fill, max_fills> fills_;
  std::array<Word, max_output> output_;
  Rotation rotation_;
  std::size_t end_ = 0;
  std::size_t fill_count_ = 0;
  std::size_t output_count_ = 0;
};

/// What one step asks: its own arguments, and the words that its limiter keeps for all calls.
struct RuleRequest {
  const Arguments& args;
  std::span<const Word> table;
};

/// A word of a request that the caller of a limiter chooses. The limiter checks the other words
/// when it is made.
struct Argument {
  enum class Role : std::uint8_t {
    other,
    cost,  ///< how many units are asked for
    wait,  ///< how far ahead a grant may lie, in microseconds
  };
  std::uint8_t index;           ///< of the word in Arguments
  const char* name;             ///< as exceptions say it
  const char* unit = "";        ///< "us", or "" of a number
  const char* range = nullptr;  ///< what the caller may choose, if that is not the word itself
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

/// One row of the table: all that is known of one operation. What a store reads at every decision
/// comes first, what describes the operation to others comes last.
struct Operation {
  /// How many units are granted when the answer is yes.
  enum class Grants : std::uint8_t {
    nothing,     ///< it asks, gives back or sets
    one,         ///< of an operation that is asked for no cost
    cost,        ///< the argument of this role
    up_to_cost,  ///< the first detail tells how many
  };
  /// What a FallbackStore may answer while the store that has the state is away.
  enum class WithoutStore : std::uint8_t {
    error,        ///< nothing: the operation is about the state in that store
    fresh_state,  ///< as for a key that nothing was asked of, or what the local store decides
    no_state,     ///< the policy's answer without details; the local store has no such state
    skipped,      ///< the same, and the local store decides the rest of a plan without this step
    local_only,   ///< what the local store decides: the change is for those who ask there
    local_lease,  ///< what the local store decides, if it granted the lease
  };
  /// What a local store divides among its clients.
  enum class Share : std::uint8_t {
    whole,         ///< nothing: each client is asked for the whole
    limit,         ///< argument 0
    windows,       ///< argument 0 and the limits in the table
    interval,      ///< argument 1, which becomes longer
    bucket,        ///< argument 0, and the refill: argument 2, the period, becomes longer
    plain_bucket,  ///< as `bucket`, and argument 3 is the time that it takes to fill up
  };
  /// Words of an answer's detail.
  struct Details {
    std::uint8_t first;
    std::uint8_t count;
  };

  std::string_view name;  ///< "token_bucket.acquire"; its section in Lua is token_bucket_acquire
  std::uint8_t id;        ///< the row's number, the first byte of its message in a plan
  StateKind kind;
  bool writes;  ///< false: never changes the state (a peek)
  /// Words of `args` in use. Argument 0 is the limit that a Decision reports.
  std::uint8_t argument_count;
  /// The kernel of a row whose state is a cell, in its fastest form; null in rows with decide().
  /// Pure: it may run again, and sees nothing but its arguments. It changes the state only when it
  /// allows.
  Verdict (*apply)(StateWords& state, const Arguments& args, Word now) noexcept = nullptr;
  /// Why these arguments can never be admitted, or allowed (1): what the kernel would answer
  /// without looking at the state.
  Word (*check)(const Arguments& args) noexcept;
  /// Microseconds after which a state written now means the same as an absent one, also if the
  /// clock is set back by up to clock_slack then: what a store has dropped is not missed.
  Word (*ttl)(const Arguments& args) noexcept;
  /// The kernel by a clock that is up to `lag` microseconds behind. Answers as apply() does if a
  /// store that decided so cannot be told apart by what it admits: at every instant up to
  /// `now + lag` the request ends alike, and if allowed, the state written at any of them means the
  /// same from `now + lag` on. Else answers Verdict::unsettled and changes nothing. Null: always.
  Verdict (*apply_lagging)(StateWords& state, const Arguments& args, Word now,
                           Word lag) noexcept = nullptr;
  /// The kernel of all other rows. As pure as apply(); it reads before it leaves effects, and
  /// leaves changes only when it allows. Word 0 is among them.
  Verdict (*decide)(const StateView& state, const RuleRequest& request, Word now,
                    Effects& effects) noexcept = nullptr;
  /// Words of detail in each answer; detail_per_window: one, and one for each pair of the table.
  std::uint8_t output = 0;
  /// The first detail is Decision::part.
  bool names_part = false;

  Grants grants = Grants::nothing;
  WithoutStore without_store = WithoutStore::error;
  Share share = Share::whole;
  /// Details by which its store would find the charge of a grant again; another store's answer has
  /// zeros there.
  Details charge_details{0, 0};
  ArgumentList arguments{};

  static constexpr std::uint8_t detail_per_window = 255;
  /// The corrections of a clock that rules sit out, in microseconds: a minute.
  static constexpr Word clock_slack = 60'000'000;
};

/// Words of detail that this row tells under a table of so many words.
[[nodiscard]] constexpr std::size_t output_count(const Operation& row,
                                                 std::size_t table_words) noexcept {
  return row.output == Operation::detail_per_window ? 1 + table_words / 2 : row.output;
}

/// Runs a row's kernel on a copy of its state, whichever form it has: what stores call where speed
/// does not ask for a way of their own. After it, `effects` holds output_count() output words
/// (zeros if the status is an error) and, if allowed, the changes. A corrupt state is an error.
/// REQUIRES: `effects` is new; `words` has cell_words words if the kind is a cell.
Verdict run(const Operation& row, std::span<const Word> words, const RuleRequest& request, Word now,
            Effects& effects) noexcept;

/// Every row, in the order of their ids, which are unique but have gaps.
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
