// sluice top: of all keys those that are used most.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/text.hpp"
#include "tool/commands.hpp"

namespace sluice::tool {
namespace {

/// Keys whose limit is known by the part of it that is used, before the others by the units.
struct Use {
  bool has_share;
  double used;
  friend auto operator<=>(const Use&, const Use&) = default;
};

Use use_of(const Description& d) noexcept {
  const auto used = static_cast<double>(d.used.value_or(0));
  const bool has_share = d.limit && *d.limit > 0;
  return {has_share, has_share ? used / static_cast<double>(*d.limit) : used};
}

struct Row {
  Use use;
  Found found;
};

bool is_more(const Row& one, const Row& other) noexcept { return one.use > other.use; }

}  // namespace

int top_keys(const Session& session, const TopOptions& options) {
  const Fleet fleet(session.redis);
  std::vector<Row> rows;  // a heap, whose first is the least used
  const Totals totals = scan(fleet, options.scan, [&](Found& found) {
    if (found.description.used.value_or(0) <= 0) return true;
    const auto is_same = [&](const Row& row) { return row.found.name.text == found.name.text; };
    const Use use = use_of(found.description);
    const bool is_known = rows.size() >= options.most && use <= rows.front().use;
    if (is_known || std::ranges::any_of(rows, is_same)) return true;
    if (rows.size() >= options.most) {
      std::ranges::pop_heap(rows, is_more);
      rows.pop_back();
    }
    rows.push_back({use, std::move(found)});
    std::ranges::push_heap(rows, is_more);
    return true;
  });
  std::ranges::sort_heap(rows, is_more);
  for (const Row& row : rows) {
    if (session.style.json) {
      print_json(to_json(row.found));
    } else {
      const Description& d = row.found.description;
      print_line(session.style, row.found.name.text, d.kind + ", " + d.summary);
    }
  }
  if (session.style.json) {
    print_json({{"totals", to_json(totals)}});
  } else {
    flush_output();
    fmt::print(stderr, "of {} of limiters\n", plural(totals.all_ours(), "key"));
  }
  require_all_read(totals);
  return fine;
}

}  // namespace sluice::tool
