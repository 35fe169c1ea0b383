// The limit of a key: one for all, or by a table.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sluice/key.hpp"
#include "sluice/quota.hpp"

namespace sluice {

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

}  // namespace detail
}  // namespace sluice
