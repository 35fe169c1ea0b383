// The limit of a key: one for all, or by a table; 0 and unlimited, which need no state.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sluice/decision.hpp"
#include "sluice/key.hpp"
#include "sluice/plan.hpp"
#include "sluice/quota.hpp"

namespace sluice {

class Completion;
struct WindowLimit;
template <class Limit>
class LimitTable;

namespace detail {

struct CountedWindows;

/// What a limiter reads of a limit. A quota of a table is not reduced: its period() is the table's
/// unit. Windows live as long as their table.
template <class Limit>
struct CountedAs {
  using type = Limit;
};
template <>
struct CountedAs<std::vector<WindowLimit>> {
  using type = const CountedWindows*;
};
template <class Limit>
using Counted = typename CountedAs<Limit>::type;

/// What a limiter counts a key with. Defined for the limits that a table may have.
template <class Limit>
class LimitOf {
 public:
  using Table = std::shared_ptr<const LimitTable<Limit>>;

  explicit LimitOf(Counted<Limit> one) noexcept : one_(one) {}
  /// Throws std::invalid_argument if there is no table.
  explicit LimitOf(Table table);

  [[nodiscard]] Counted<Limit> of(const Key& key) const noexcept {
    return table_ ? in_table(key) : one_;
  }
  /// That of keys without an own one.
  [[nodiscard]] Counted<Limit> everyone() const noexcept;
  [[nodiscard]] bool has_table() const noexcept { return table_ != nullptr; }

 private:
  [[nodiscard]] Counted<Limit> in_table(const Key& key) const noexcept;

  Counted<Limit> one_;
  Table table_;
};

extern template class LimitOf<Quota>;
extern template class LimitOf<Word>;
extern template class LimitOf<std::vector<WindowLimit>>;

// A limit of 0, or an unlimited one: see sluice/rules/constant.hpp.

/// True of a limit whose answer depends on nothing else.
[[nodiscard]] constexpr bool is_constant(Word limit) noexcept {
  return limit == 0 || limit == unlimited;
}

/// The step of the constant rule in the place of this one, whose first argument is such a limit.
/// The unit of its key is "never" or "unlimited", under which no state is ever stored.
[[nodiscard]] Step constant_step(const Step& step) noexcept;
/// The same, or the step as it is if its limit is another one.
[[nodiscard]] inline Step by_limit(const Step& step) noexcept {
  return is_constant(step.args[0]) ? constant_step(step) : step;
}

/// True if every step is of the constant rule, and the plan has no id, which a store remembers, and
/// is not over.
[[nodiscard]] bool is_constant(const Plan& plan) noexcept;
/// Answers such a plan as a store would at `now`.
void answer_constant(const Plan& plan, Time now, Source source, Completion& done) noexcept;

}  // namespace detail
}  // namespace sluice
