// sluice export and import: states into a file, and from it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/text.hpp"
#include "src/core/state_file.hpp"
#include "tool/commands.hpp"

namespace sluice::tool {
namespace {

using detail::SavedState;

/// What the server executes without a pause.
constexpr std::size_t most_commands = 100;
constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// PTTL counts whole milliseconds.
Word expiry_of(const Found& found) {
  constexpr Word ms = 1'000;
  return found.expires ? std::min(found.at + found.expires->count() + ms, word_limit) : word_limit;
}

struct Import {
  std::size_t restored = 0;
  std::size_t known = 0;
  std::size_t expired = 0;
};

struct Texts {
  std::string key;
  std::string value;
  std::string expiry;  ///< in milliseconds
};

/// Sets the keys that are absent, and forgets the texts.
void set(Server& server, std::vector<Texts>& texts, Import& result) {
  if (texts.empty()) return;
  std::vector<Words> commands;
  for (const auto& [key, value, expiry] : texts) {
    commands.push_back({"SET", key, value, "NX", "PXAT", expiry});
  }
  const std::vector<Reply> replies = server.pipeline(commands);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].kind == Reply::Kind::error) {
      throw std::runtime_error(
          fmt::format("SET {}: {}; {} restored so far, and the import can be repeated",
                      printable(texts[i].key, 200), printable(replies[i].text, 200),
                      plural(result.restored, "state")));
    }
    ++(replies[i].kind == Reply::Kind::null ? result.known : result.restored);
  }
  texts.clear();
}

/// Restores what belongs to one server.
void restore(const Fleet& fleet, Server& server, const std::string& prefix,
             const std::vector<SavedState>& states, Import& result) {
  const Word now = server.now();
  std::vector<Texts> texts;
  std::size_t bytes = 0;
  for (const SavedState& state : states) {
    std::string key = prefix + state.key;
    if (&fleet.of(key) != &server) continue;
    if (state.expiry <= now) {
      ++result.expired;
      continue;
    }
    std::string value = encode_state({state.kind, state.words}, state.expiry);
    bytes += value.size();
    texts.push_back({std::move(key), std::move(value), std::to_string(state.expiry / 1'000 + 1)});
    if (texts.size() == most_commands || bytes > most_bytes) {
      set(server, texts, result);
      bytes = 0;
    }
  }
  set(server, texts, result);
}

}  // namespace

int export_states(const Session& session, const ScanOptions& options, const std::string& file) {
  const Fleet fleet(session.redis);
  std::vector<SavedState> states;
  std::size_t others = 0;
  const Totals totals = scan(fleet, options, [&](Found& found) {
    const KeyName& name = found.name;
    if (name.prefix != options.prefix) {
      ++others;
    } else {
      states.push_back({name.text.substr(name.prefix.size()), found.state.kind, expiry_of(found),
                        std::move(found.state.words)});
    }
    return true;
  });
  require_all_read(totals);
  const std::size_t count = detail::write_states(file, std::move(states));
  if (session.style.json) {
    print_json({{"file", file}, {"exported", count}, {"of_other_prefixes", others}});
  } else {
    fmt::print(stderr, "{} in {}; {} of another key_prefix\n", plural(count, "state"), file,
               others);
  }
  print_totals(session, totals);
  return fine;
}

int import_states(const Session& session, const std::string& prefix, const std::string& file,
                  bool yes) {
  const Fleet fleet(session.redis);
  const auto states = detail::read_states(file, fleet.servers().front()->now());
  const std::string what = fmt::format("import {} at {}: {}, under keys that are not there", file,
                                       session.url, plural(states.size(), "state"));
  if (!is_agreed(session, what, yes)) return bad_input;
  Import result;
  for (const auto& server : fleet.servers()) restore(fleet, *server, prefix, states, result);
  const auto& [restored, known, expired] = result;
  if (session.style.json) {
    print_json({{"file", file}, {"restored", restored}, {"known", known}, {"expired", expired}});
  } else {
    fmt::print("{} restored, {} known there and left, {} expired\n", restored, known, expired);
  }
  return fine;
}

}  // namespace sluice::tool
