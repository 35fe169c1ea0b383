// sluice reset, block, open and close: the commands that change something. Each says what, and
// asks.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/text.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"
#include "src/waiting/wake_up.hpp"
#include "tool/block.hpp"
#include "tool/commands.hpp"

namespace sluice::tool {
namespace {

/// What is to be done to which key, as it is now.
struct Change {
  std::string verb;
  std::string key;
  std::string state;  ///< "a token bucket, 3 used"
  Span span{0};
};

std::string state_of(const Found& found) {
  return found.description.kind + ", " + found.description.summary;
}

bool is_agreed(const Session& session, const Change& change, bool yes) {
  const std::string span = change.span > Span{0} ? " for " + duration(change.span) : "";
  return is_agreed(session,
                   fmt::format("{} {}{} at {}: {}", change.verb, printable(change.key, 300), span,
                               session.url, change.state),
                   yes);
}

int done(const Session& session, const Change& change) {
  if (session.style.json) {
    print_json({{"key", change.key}, {"changed", change.verb}, {"before", change.state}});
  }
  return fine;
}

/// The processes that wait for the key ask again, as after any reset.
void wake_all(const Fleet& fleet, const KeyName& name) {
  const auto line = find_line(fleet, wait_line_of(name));
  if (!line) return;
  for (const Fields& row : line->description.rows) {
    const Word process = std::get<Word>(row.at(0).value);
    const std::string channel = detail::wake_up_name(detail::wait_line_name(name.key()), process,
                                                     detail::Woken::by_release);
    fleet.of(name.text)(
        {"PUBLISH", name.prefix + render(Key{name.tag, std::string_view(channel)}), ""});
  }
}

auto store_of(const Session& session, const KeyName& name) {
  RedisOptions options = session.redis;
  options.key_prefix = name.prefix;
  return make_redis_store(std::move(options));
}

/// The scope of a gate's key.
struct GateKey {
  KeyName name;
  std::string kind;
  std::string id;
};

GateKey gate_key(const std::string& key) {
  const auto name = KeyName::parse(key);
  const std::size_t equals = name ? name->name.find('=') : std::string::npos;
  if (!name || !name->unit.empty() || name->is_hashed || equals == 0 ||
      equals == std::string::npos || equals + 1 == name->name.size()) {
    throw std::invalid_argument(printable(key, 200) +
                                " is no key of a gate, which is {name}:kind=id");
  }
  return {*name, name->name.substr(0, equals), name->name.substr(equals + 1)};
}

/// A gate that is open has no key. Throws if the key is something else.
std::string gate_state(const Fleet& fleet, const GateKey& gate) {
  const Reply there = fleet.of(gate.name.text)({"GET", gate.name.text});
  if (there.kind == Reply::Kind::null) return "a gate, open";
  const Found found = read_key(fleet, gate.name.text, {});
  if (found.state.kind != StateKind::gate || !found.description.is_sound) {
    throw std::invalid_argument(printable(gate.name.text, 200) + " is no gate but " +
                                state_of(found));
  }
  return state_of(found);
}

/// Of a limit whose configuration is its state, or part of it, that stays.
void reset(const Session& session, const Fleet& fleet, const Found& found) {
  const KeyName& name = found.name;
  if (found.state.kind == StateKind::shared_token_bucket && found.description.is_sound) {
    if (name.is_hashed) {
      throw std::invalid_argument("its key contains a hash: it is reset by its limiter alone");
    }
    const auto store = store_of(session, name);
    SharedTokenBucket(*store, name.name).reset({name.tag, name.name});
    return;
  }
  const Reply reply = fleet.of(name.text)({"DEL", name.text});
  if (reply.kind == Reply::Kind::error) {
    throw std::runtime_error("DEL: " + printable(reply.text, 200));
  }
  wake_all(fleet, name);
}

}  // namespace

bool is_agreed(const Session& session, const std::string& what, bool yes) {
  if (yes) {
    if (!session.style.json) fmt::print("{}\n", wrapped(session.style, what, 2));
    return true;
  }
  if (::isatty(STDIN_FILENO) == 0) {
    throw std::invalid_argument(what + "\nnobody can be asked here: give --yes");
  }
  fmt::print(stderr, "{}\nyes? ", wrapped(session.style, what, 2));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "yes") fmt::print(stderr, "nothing was changed\n");
  return answer == "yes";
}

int reset_key(const Session& session, const std::string& key, bool yes) {
  const Fleet fleet(session.redis);
  const Found found = read_key(fleet, key, session.given);
  if (found.state.kind == StateKind::shared_sliding_window && found.description.is_sound) {
    throw std::invalid_argument(printable(key, 200) +
                                " is a rate, without which calls fail: reset the keys of its log");
  }
  const Change change{"reset", key, state_of(found)};
  if (!is_agreed(session, change, yes)) return bad_input;
  reset(session, fleet, found);
  return done(session, change);
}

int block_key(const Session& session, const std::string& key, Span span, bool yes) {
  const Fleet fleet(session.redis);
  const Found found = read_key(fleet, key, session.given);
  if (!found.description.is_sound) {
    throw std::invalid_argument(printable(key, 200) + " has " + found.description.summary);
  }
  const Change change{"block", key, state_of(found), span};
  const auto store = store_of(session, found.name);
  const auto agree = [&] { return is_agreed(session, change, yes); };
  return block(*store, found, span, agree) ? done(session, change) : bad_input;
}

int close_gate(const Session& session, const std::string& key, Span span, bool yes) {
  const GateKey gate = gate_key(key);
  const Fleet fleet(session.redis);
  const Change change{"close", key, gate_state(fleet, gate), span};
  if (!is_agreed(session, change, yes)) return bad_input;
  const auto store = store_of(session, gate.name);
  GateOptions options;
  options.cap = std::max(options.cap, span);
  const Gates gates(*store, gate.name.tag, {gate.kind}, options);
  gates.close(gates.scope(gate.kind, gate.id), span);
  return done(session, change);
}

int open_gate(const Session& session, const std::string& key, bool yes) {
  const GateKey gate = gate_key(key);
  const Fleet fleet(session.redis);
  const Change change{"open", key, gate_state(fleet, gate)};
  if (!is_agreed(session, change, yes)) return bad_input;
  const auto store = store_of(session, gate.name);
  const Gates gates(*store, gate.name.tag, {gate.kind});
  gates.open(gates.scope(gate.kind, gate.id));
  return done(session, change);
}

}  // namespace sluice::tool
