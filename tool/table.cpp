// See table.hpp.
#include "tool/table.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

#include "sluice/config/limit_file.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "tool/unit.hpp"

namespace sluice::tool {
namespace {

/// The list as limits of one type, or why it is none of them.
template <class Limit>
struct Reading {
  std::optional<LimitList<Limit>> list;
  std::string error;

  /// That of the key's tag. Throws std::invalid_argument without a list.
  [[nodiscard]] const Limit& limit_of(const KeyName& name) const {
    if (!list) throw std::invalid_argument(error);
    const auto row = list->rows().find(name.tag);
    return row == list->rows().end() ? list->everyone() : row->second.limit;
  }
};

template <class Read>
auto reading_of(Read read) -> Reading<typename std::decay_t<decltype(read().everyone())>> {
  try {
    return {read(), {}};
  } catch (const std::runtime_error& error) {
    return {std::nullopt, error.what()};
  }
}

/// Says what is wrong with the list as one of the type that its limit of everyone has; or, if that
/// has none, as one of each type.
[[noreturn]] void reject(const std::string& name, const std::set<std::string>& errors) {
  std::string all;
  std::string beyond;
  for (const std::string& each : errors) {
    const bool is_of_type = each.find(": " + name + ".everyone: ") == std::string::npos;
    std::string& place = is_of_type ? beyond : all;
    place += (place.empty() ? "" : "\n") + each;
  }
  throw std::runtime_error(beyond.empty() ? all : beyond);
}

class Table {
 public:
  Table(const config::LimitFile& file, const std::string& name)
      : quotas_(reading_of([&] { return file.quotas(name); })),
        counts_(reading_of([&] { return file.counts(name); })),
        windows_(reading_of([&] { return file.windows(name); })) {
    if (quotas_.list || counts_.list || windows_.list) return;
    reject(name, {quotas_.error, counts_.error, windows_.error});
  }

  void fill(Given& given, const KeyName& name, StateKind kind) const {
    if (name.is_hashed) return;  // whose tag nobody knows
    switch (kind) {
      case StateKind::token_bucket:
        return fill_quota(given, name);
      case StateKind::fixed_window:
      case StateKind::sliding_window_counter:
      case StateKind::leases: {
        const Word limit = counts_.limit_of(name);
        if (detail::is_constant(limit)) {
          given.constant = limit;
        } else {
          given.limits = {limit};
        }
        return;
      }
      case StateKind::sliding_window:
        return fill_windows(given, name);
      default:
        return;  // without a table
    }
  }

 private:
  void fill_quota(Given& given, const KeyName& name) const {
    const Quota& quota = quotas_.limit_of(name);
    const Word unit = table_unit_in(name.unit);
    if (unit > 0 && Span{unit} != quotas_.list->unit()) {
      throw std::invalid_argument("the key is counted in " + name.unit +
                                  ", and the table has another unit");
    }
    if (detail::is_constant(quota.capacity())) {
      given.constant = quota.capacity();
    } else {
      given.quota = quota;
    }
  }

  /// In the order of the key.
  void fill_windows(Given& given, const KeyName& name) const {
    const std::vector<Word> spans = spans_in(name.unit);
    if (spans.empty()) return;  // the log of a shared sliding window, which has no table
    const WindowLimits& windows = windows_.limit_of(name);
    std::vector<Word> limits;
    for (const Word span : spans) {
      const auto window = std::ranges::find(windows, Span{span}, &WindowLimit::span);
      if (window == windows.end() || windows.size() != spans.size()) {
        throw std::invalid_argument("the key has the windows " + name.unit +
                                    ", and the table has others");
      }
      limits.push_back(window->limit);
    }
    const bool is_unlimited = std::ranges::count(limits, unlimited) == std::ssize(limits);
    const bool is_never = std::ranges::count(limits, 0) > 0;
    if (is_unlimited || is_never) {
      given.constant = is_never ? 0 : unlimited;
      return;
    }
    for (Word& each : limits) each = std::min(each, SlidingWindowRule::max_limit);
    given.limits = std::move(limits);
  }

  Reading<Quota> quotas_;
  Reading<Word> counts_;
  Reading<WindowLimits> windows_;
};

}  // namespace

bool has_tables() noexcept { return true; }

decltype(Given::fill) read_table(const std::string& file_and_name) {
  const std::size_t colon = file_and_name.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == file_and_name.size()) {
    throw std::invalid_argument("expected a file and the name of a list, as limits.toml:api, got " +
                                file_and_name);
  }
  const config::LimitFile file(file_and_name.substr(0, colon));
  const auto table = std::make_shared<const Table>(file, file_and_name.substr(colon + 1));
  return [table](Given& given, const KeyName& name, StateKind kind) {
    table->fill(given, name, kind);
  };
}

}  // namespace sluice::tool
