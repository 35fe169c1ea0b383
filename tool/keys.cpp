// sluice keys: all keys with a state of the library, and how many others there are.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/text.hpp"
#include "tool/commands.hpp"

namespace sluice::tool {

void print_totals(const Session& session, const Totals& totals) {
  if (session.style.json) return print_json({{"totals", to_json(totals)}});
  flush_output();
  const auto say = [&](std::uint64_t keys, const std::string& what, const std::string& example) {
    fmt::print(
        stderr, "{}\n",
        wrapped(session.style,
                fmt::format("  {}: {}, such as {}", what, thousands(keys), printable(example, 100)),
                4));
  };
  fmt::print(stderr, "{} of limiters\n", plural(totals.all_ours(), "key"));
  for (const auto& [kind, count] : totals.ours) say(count.keys, kind, count.example);
  if (totals.foreign.empty()) return;
  fmt::print(stderr, "{} of others\n", plural(totals.all_foreign(), "key"));
  for (const auto& [what, count] : totals.foreign) say(count.keys, what, count.example);
}

void require_all_read(const Totals& totals) {
  if (totals.denied == 0) return;
  throw NotPermitted(plural(totals.denied, "key") +
                     " may not be read by this user, who needs +get +getrange for each");
}

int list_keys(const Session& session, const ScanOptions& options) {
  const Fleet fleet(session.redis);
  const Totals totals = scan(fleet, options, [&](Found& found) {
    if (session.style.json) {
      print_json(to_json(found));
    } else {
      const Description& d = found.description;
      print_line(session.style, found.name.text,
                 d.kind + (d.summary.empty() ? "" : ", " + d.summary));
    }
    return true;
  });
  print_totals(session, totals);
  require_all_read(totals);
  return fine;
}

}  // namespace sluice::tool
