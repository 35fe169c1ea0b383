// sluice export and import: states into a file, and from it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/log/text.hpp"
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

/// Sets the keys of one server that are absent there.
class Setter {
 public:
  Setter(Server& server, Import& result) : server_(server), result_(result) {}

  void add(std::string key, const SavedState& state) {
    const std::string value = encode_state({state.kind, state.words}, state.expiry);
    const std::string ms = std::to_string((state.expiry + 999) / 1'000);
    bytes_ += key.size() + value.size();
    texts_.push_back({std::move(key), value, ms});
    if (texts_.size() == most_commands || bytes_ > most_bytes) send();
  }

  void send() {
    std::vector<Words> commands;
    for (const auto& [key, value, ms] : texts_) {
      commands.push_back({"SET", key, value, "NX", "PXAT", ms});
    }
    if (commands.empty()) return;
    const std::vector<Reply> replies = server_.pipeline(commands);
    for (std::size_t i = 0; i < replies.size(); ++i) note(texts_[i].key, replies[i]);
    texts_.clear();
    bytes_ = 0;
  }

 private:
  struct Texts {
    std::string key;
    std::string value;
    std::string ms;
  };

  void note(const std::string& key, const Reply& reply) {
    if (reply.kind == Reply::Kind::error) {
      throw std::runtime_error(fmt::format(
          "SET {}: {}; {} restored so far, and the import can be repeated", printable(key, 200),
          printable(reply.text, 200), plural(result_.restored, "state")));
    }
    ++(reply.kind == Reply::Kind::null ? result_.known : result_.restored);
  }

  Server& server_;
  Import& result_;
  std::vector<Texts> texts_;
  std::size_t bytes_ = 0;
};

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
  const std::size_t count = detail::write_states(file, std::move(states));
  if (session.style.json) {
    print_json({{"file", file}, {"exported", count}, {"of_other_prefixes", others}});
  } else {
    fmt::print(stderr, "{} in {}; {} of another key_prefix\n", plural(count, "state"), file, others);
  }
  print_totals(session, totals);
  return fine;
}

int import_states(const Session& session, const std::string& prefix, const std::string& file,
                  bool yes) {
  const Fleet fleet(session.redis);
  const Word now = fleet.servers().front()->now();
  const std::vector<SavedState> states = detail::read_states(file, now);
  const std::string what = fmt::format("import {} at {}: {}, under keys that are not there", file,
                                       session.url, plural(states.size(), "state"));
  if (!is_agreed(session, what, yes)) return bad_input;
  Import result;
  for (const auto& server : fleet.servers()) {
    Setter setter(*server, result);
    for (const SavedState& state : states) {
      std::string key = prefix + state.key;
      if (&fleet.of(key) != server.get()) continue;
      if (state.expiry <= now) {
        ++result.expired;
      } else {
        setter.add(std::move(key), state);
      }
    }
    setter.send();
  }
  const auto& [restored, known, expired] = result;
  if (session.style.json) {
    print_json({{"file", file}, {"restored", restored}, {"known", known}, {"expired", expired}});
  } else {
    fmt::print("{} restored, {} known there and left, {} expired\n", restored, known, expired);
  }
  return fine;
}

}  // namespace sluice::tool
