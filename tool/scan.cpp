// See scan.hpp.
#include "tool/scan.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "cli/text.hpp"

namespace sluice::tool {
namespace {

using Kind = Reply::Kind;

/// Keys of one SCAN, and states of one pipeline, which the server executes without a pause.
constexpr std::string_view scanned = "100";
constexpr std::size_t read_at_once = 25;
/// A state up to this size is read with its kind; a longer one by itself.
constexpr std::size_t short_bytes = 2'048;
constexpr std::string_view last_byte = "2047";

/// The server works at most 1 / (1 + rest) of the time for a scan.
constexpr int rest = 19;
constexpr Span longest_rest = std::chrono::milliseconds{200};

void rest_after(const Server& server) {
  std::this_thread::sleep_for(std::min(server.took() * rest, longest_rest));
}

/// A glob of exactly this text.
std::string escaped(std::string_view text) {
  std::string glob;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

/// Describes what was read, by what is given for its key.
void describe_by(const Given& given, Found& found) {
  found.given = given;
  if (given.fill) given.fill(found.given, found.name, found.state.kind);
  found.description = describe(found.name, found.state, found.given, found.at);
}

void describe_one_of_many(const Given& given, Found& found) {
  try {
    describe_by(given, found);
  } catch (const std::invalid_argument&) {  // what is given is about other keys
    describe_by({}, found);
  }
}

std::string reason_of(const Reply& reply) {
  return reply.text.starts_with("WRONGTYPE") ? "of another type" : printable(reply.text, 80);
}

/// What PTTL says; empty of a key that does not expire, and if the user may not ask.
std::optional<Span> expiry_in(const Reply& pttl) noexcept {
  if (pttl.kind != Kind::integer || pttl.integer < 0) return std::nullopt;
  return std::chrono::milliseconds(pttl.integer);
}

class Scan {
 public:
  Scan(Server& server, const ScanOptions& options, const std::function<bool(Found&)>& see,
       Totals& totals)
      : server_(server), options_(options), see_(see), totals_(totals) {}

  /// False if it was ended.
  bool run() {
    std::string cursor = "0";
    do {
      Words command{"SCAN", cursor, "COUNT", scanned};
      const std::string glob =
          escaped(options_.prefix) + (options_.pattern.empty() ? "*" : options_.pattern);
      if (glob != "*") command.insert(command.end(), {"MATCH", glob});
      Reply reply = std::move(server_.pipeline({&command, 1}).front());
      if (reply.elements.size() != 2) {
        throw std::runtime_error(server_.address() + ": SCAN: " + printable(reply.text, 200));
      }
      rest_after(server_);
      if (!note(reply.elements[1].elements)) return false;
      cursor = reply.elements[0].text;
    } while (cursor != "0");
    return true;
  }

 private:
  bool note(const std::vector<Reply>& keys) {
    names_.clear();
    for (const Reply& key : keys) {
      if (auto name = KeyName::parse(key.text)) {
        names_.push_back(std::move(*name));
      } else {
        count(totals_.foreign, "of another name", key.text);
      }
      if (names_.size() == read_at_once && !read()) return false;
    }
    return names_.empty() || read();
  }

  bool read() {
    std::vector<Words> commands{{"TIME"}};
    for (const KeyName& name : names_) commands.push_back({"GETRANGE", name.text, "0", last_byte});
    for (const KeyName& name : names_) {
      if (options_.expiry) commands.push_back({"PTTL", name.text});
    }
    std::vector<Reply> replies = server_.pipeline(commands);
    const Word now = server_.time_of(replies[0]);
    rest_after(server_);
    bool goes_on = true;
    const std::size_t count = names_.size();
    for (std::size_t i = 0; i < count && goes_on; ++i) {
      const auto expires = options_.expiry ? expiry_in(replies[1 + count + i]) : std::nullopt;
      goes_on = note(std::move(names_[i]), replies[i + 1], now, expires);
    }
    names_.clear();
    return goes_on;
  }

  bool note(KeyName name, Reply& reply, Word now, const std::optional<Span>& expires) {
    if (reply.text.size() == short_bytes) reply = server_({"GET", name.text});
    if (reply.kind == Kind::error) {
      if (is_not_permitted(reply)) ++totals_.denied;
      count(totals_.foreign, reason_of(reply), name.text);
      return true;
    }
    if (reply.text.empty()) return true;  // it has expired meanwhile
    auto state = decode_state(reply.text);
    if (!state) {
      count(totals_.foreign, "of another value", name.text);
      return true;
    }
    Found found{std::move(name), std::move(*state), now, expires};
    describe_one_of_many(options_.given, found);
    if (!found.description.is_sound) {
      count(totals_.foreign, "with words that no rule writes", found.name.text);
      return true;
    }
    count(totals_.ours, found.description.kind, found.name.text);
    return see_(found);
  }

  static void count(std::map<std::string, Totals::Count>& counts, const std::string& what,
                    const std::string& key) {
    Totals::Count& place = counts[what];
    if (place.keys++ == 0) place.example = key;
  }

  Server& server_;
  const ScanOptions& options_;
  const std::function<bool(Found&)>& see_;
  Totals& totals_;
  std::vector<KeyName> names_;
};

std::uint64_t sum(const std::map<std::string, Totals::Count>& counts) noexcept {
  std::uint64_t all = 0;
  for (const auto& [what, count] : counts) all += count.keys;
  return all;
}

std::string absent(const std::string& key) { return "there is no key " + printable(key, 200); }

/// Without its description.
Found read_state(const Fleet& fleet, const std::string& key) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(printable(key, 200) + " is no key of a limiter: " + why);
  };
  auto name = KeyName::parse(key);
  if (!name) refuse("the name has another form than {tag}:name or {tag}:name:unit");
  Server& server = fleet.of(key);
  const Words commands[]{{"TIME"}, {"GET", key}, {"PTTL", key}};
  const std::vector<Reply> replies = server.pipeline(commands);
  const Reply& value = replies[1];
  server.require_permitted("GET", value);
  if (value.kind == Kind::null) throw std::invalid_argument(absent(key));
  if (value.kind == Kind::error) refuse(reason_of(value));
  auto state = decode_state(value.text);
  if (!state) refuse("its value has another form than a state");
  return {std::move(*name), std::move(*state), server.time_of(replies[0]), expiry_in(replies[2])};
}

}  // namespace

std::uint64_t Totals::all_ours() const noexcept { return sum(ours); }
std::uint64_t Totals::all_foreign() const noexcept { return sum(foreign); }

Totals scan(const Fleet& fleet, const ScanOptions& options,
            const std::function<bool(Found&)>& see) {
  Totals totals;
  for (const auto& server : fleet.servers()) {
    if (!Scan(*server, options, see, totals).run()) break;
  }
  return totals;
}

Found read_key(const Fleet& fleet, const std::string& key, const Given& given) {
  Found found = read_state(fleet, key);
  describe_by(given, found);
  return found;
}

std::optional<Found> find_key(const Fleet& fleet, const std::string& key, const Given& given) {
  std::optional<Found> found;
  try {
    found = read_state(fleet, key);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  describe_by(given, *found);
  return found;
}

std::optional<Found> find_line(const Fleet& fleet, const std::string& key) {
  try {
    return find_key(fleet, key, {});
  } catch (const NotPermitted&) {
    return std::nullopt;
  }
}

}  // namespace sluice::tool
