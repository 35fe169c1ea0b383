// The table that limiters read: templates, as in limit_list.hpp.
#pragma once

#include <algorithm>
#include <mutex>

#include "src/tables/key_index.hpp"
#include "src/tables/limit_list.hpp"
#include "src/util/published.hpp"

namespace sluice {
namespace detail::tables {

/// What limiters read of each limit. That of windows is kept for the life of the table, because
/// steps that are under way view its words.
template <class Limit>
class Keeper {
 public:
  sluice::detail::Counted<Limit> counted(const LimitList<Limit>& list, const Limit& limit) {
    if constexpr (std::same_as<Limit, Quota>) return limit.counted_in(list.unit());
    if constexpr (std::same_as<Limit, Word>) return limit;
  }
};

template <>
class Keeper<WindowLimits> {
 public:
  const CountedWindows* counted(const LimitList<WindowLimits>& /*list*/,
                                const WindowLimits& windows) {
    std::vector<Word> limits;
    for (const WindowLimit& window : windows) limits.push_back(window.limit);
    auto& kept = kept_[limits];
    if (!kept) kept = std::make_unique<CountedWindows>(windows);
    return kept.get();
  }

 private:
  std::map<std::vector<Word>, std::unique_ptr<const CountedWindows>> kept_;
};

/// A list, and what a call reads of it.
template <class Limit>
struct Compiled {
  using Counted = sluice::detail::Counted<Limit>;

  Compiled(LimitList<Limit> the_list, Keeper<Limit>& keeper)
      : list(std::move(the_list)),
        everyone(keeper.counted(list, list.everyone())),
        index(rows_of(list, keeper)) {}
  [[nodiscard]] Counted find(std::string_view key) const noexcept {
    const Counted* const own = index.find(key);
    return own != nullptr ? *own : everyone;
  }
  static auto rows_of(const LimitList<Limit>& list, Keeper<Limit>& keeper) {
    std::vector<typename KeyIndex<Counted>::Row> rows;
    rows.reserve(list.rows().size());
    for (const auto& [key, row] : list.rows())
      rows.push_back({key, keeper.counted(list, row.limit)});
    return rows;
  }

  LimitList<Limit> list;
  Counted everyone;
  KeyIndex<Counted> index;
};

}  // namespace detail::tables

template <class Limit>
struct LimitTable<Limit>::Impl {
  explicit Impl(LimitList<Limit> list)
      : unit(list.unit()),
        now(std::make_unique<const detail::tables::Compiled<Limit>>(std::move(list), keeper)) {}

  /// REQUIRES: `writer` is locked, until the list is no longer used.
  const LimitList<Limit>& list() const {
    return *now.read(
        [](const detail::tables::Compiled<Limit>& compiled) { return &compiled.list; });
  }

  const Span unit;
  std::mutex writer;
  detail::tables::Keeper<Limit> keeper;
  detail::Published<detail::tables::Compiled<Limit>> now;
};

template <class Limit>
LimitTable<Limit>::LimitTable(LimitList<Limit> list)
    : impl_(std::make_unique<Impl>(std::move(list))) {}

template <class Limit>
LimitTable<Limit>::~LimitTable() = default;

template <class Limit>
void LimitTable<Limit>::check(const LimitList<Limit>& list) const {
  using Form = detail::LimitForm<Limit>;
  const std::lock_guard lock(impl_->writer);
  const LimitList<Limit>& former = impl_->list();
  if (Form::is_compatible(former, list)) return;
  throw std::invalid_argument(std::string("the new list of a table must have ") + Form::compatible +
                              ": it has " + Form::text(list.everyone()) +
                              " for everyone, the table " + Form::text(former.everyone()));
}

template <class Limit>
std::vector<std::string> LimitTable<Limit>::replace(LimitList<Limit> list) {
  check(list);  // what it compares is the same in every list of the table
  const std::lock_guard lock(impl_->writer);
  std::vector<std::string> changes = difference(impl_->list(), list);
  if (changes.empty()) return changes;
  impl_->now.replace(
      std::make_unique<const detail::tables::Compiled<Limit>>(std::move(list), impl_->keeper));
  return changes;
}

template <class Limit>
LimitList<Limit> LimitTable<Limit>::list() const {
  const std::lock_guard lock(impl_->writer);
  return impl_->list();
}

template <class Limit>
Limit LimitTable<Limit>::limit_of(std::string_view key) const {
  const std::lock_guard lock(impl_->writer);
  return impl_->now.read([key](const detail::tables::Compiled<Limit>& now) {
    const auto row = now.list.rows().find(key);
    return row == now.list.rows().end() ? now.list.everyone() : row->second.limit;
  });
}

template <class Limit>
detail::Counted<Limit> LimitTable<Limit>::counted(std::string_view key) const noexcept {
  return impl_->now.read(
      [key](const detail::tables::Compiled<Limit>& now) { return now.find(key); });
}

template <class Limit>
detail::Counted<Limit> LimitTable<Limit>::counted_everyone() const noexcept {
  return impl_->now.read([](const detail::tables::Compiled<Limit>& now) { return now.everyone; });
}

template <class Limit>
Span LimitTable<Limit>::unit() const noexcept {
  return impl_->unit;
}

namespace detail {

template <class Limit>
const LimitTable<Limit>& valid(const std::shared_ptr<const LimitTable<Limit>>& table) {
  if (!table) throw std::invalid_argument("the table of limits is a null pointer");
  return *table;
}

template <class Limit>
LimitOf<Limit>::LimitOf(Table table)
    : one_(valid(table).counted_everyone()), table_(std::move(table)) {}

template <class Limit>
Counted<Limit> LimitOf<Limit>::everyone() const noexcept {
  return table_ ? table_->counted_everyone() : one_;
}

template <class Limit>
Counted<Limit> LimitOf<Limit>::in_table(const Key& key) const noexcept {
  return table_->counted(key.tag());
}

}  // namespace detail
}  // namespace sluice
