// Reading lists of limits.
#include "sluice/config/limit_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>

#include <toml++/toml.h>

#include "src/util/nearest.hpp"

namespace sluice::config {

struct LimitFile::Content {
  std::string path;
  toml::table root;
};

namespace {

/// Where something stands: "limits.toml:3: api.tiers".
struct Place {
  std::string_view path;
  std::string entry;
  const toml::node& node;

  [[nodiscard]] Place of(std::string_view name, const toml::node& inner) const {
    return {path, entry + (entry.empty() ? "" : ".") + std::string(name), inner};
  }
  [[nodiscard]] std::string text() const {
    return std::string(path) + ":" + std::to_string(std::max(node.source().begin.line, 1U)) + ": " +
           entry;
  }
  [[noreturn]] void reject(const std::string& what) const {
    throw std::runtime_error(text() + ": " + what);
  }
  [[noreturn]] void expected(const char* what) const {
    std::ostringstream type;
    type << node.type();
    reject(std::string("expected ") + what + ", got " + type.str());
  }
  /// Calls `apply`, and says where what it rejects stands.
  template <class Apply>
  decltype(auto) at(Apply apply) const {
    try {
      return apply();
    } catch (const std::invalid_argument& error) {
      reject(error.what());
    }
  }

  [[nodiscard]] std::string text(const char* what) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    expected(what);
  }
  [[nodiscard]] const toml::table& table() const {
    if (const toml::table* const all = node.as_table()) return *all;
    expected("a table");
  }
  [[nodiscard]] const toml::array& array(const char* what) const {
    if (const toml::array* const all = node.as_array()) return *all;
    expected(what);
  }
  template <class Names>
  [[noreturn]] void unknown(std::string_view name, const Names& names) const {
    std::string all;
    for (const std::string_view each : names) (all += all.empty() ? "" : ", ") += each;
    const std::string_view near = detail::nearest(name.substr(0, 64), names);
    reject("unknown; expected " + all +
           (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
  }
  /// Rejects every entry of the table but these.
  template <class Names>
  void allow_only(const Names& names) const {
    for (const auto& [key, inner] : table()) {
      if (std::find(names.begin(), names.end(), key.str()) == names.end()) {
        of(key.str(), inner).unknown(key.str(), names);
      }
    }
  }
};

constexpr const char* span_text = "a span, as \"1min\"";
constexpr const char* window_text = "a window, as \"25/5s\"";

/// Spans are those of quotas.
Span span_of(const Place& place, const std::string& text) {
  try {
    return Quota::parse("1/" + text).full_after();
  } catch (const std::invalid_argument&) {
    place.reject(std::string("expected ") + span_text + ", got \"" + text + "\"");
  }
}

WindowLimit window_of(const Place& place) {
  const std::string text = place.text(window_text);
  const auto slash = text.find('/');
  const std::string count = text.substr(0, slash);
  Word limit = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), limit);
  const bool is_number = error == std::errc{} && end == count.data() + count.size();
  if (slash == std::string::npos || (!is_number && count != "unlimited")) {
    place.reject(std::string("expected ") + window_text + ", got \"" + text + "\"");
  }
  return {is_number ? limit : unlimited, span_of(place, text.substr(slash + 1))};
}

template <class Limit>
Limit limit_of(const Place& place) {
  if constexpr (std::same_as<Limit, Quota>) {
    const std::string text = place.text("a quota, as \"10/s\"");
    return place.at([&] { return Quota::parse(text); });
  } else if constexpr (std::same_as<Limit, Word>) {
    if (const auto value = place.node.value_exact<std::int64_t>()) return *value;
    const auto text = place.node.value_exact<std::string>();
    if (text == "never") return 0;
    if (text == "unlimited") return unlimited;
    place.expected(R"(a whole number, "never" or "unlimited")");
  } else {
    WindowLimits windows;
    for (const toml::node& each : place.array("a list of windows, as [\"25/5s\"]")) {
      windows.push_back(window_of({place.path, place.entry, each}));
    }
    return windows;
  }
}

/// Calls `add` with each key of a list.
template <class Add>
void for_keys(const Place& place, Add add) {
  for (const toml::node& each : place.array("a list of keys")) {
    const Place one{place.path, place.entry, each};
    const std::string key = one.text("a key, as text");
    one.at([&] { add(key); });
  }
}

template <class Limit>
void read_tiers(const Place& place, LimitList<Limit>& list) {
  static constexpr std::array<std::string_view, 2> names{"limit", "keys"};
  for (const auto& [key, node] : place.table()) {
    const std::string_view name = key.str();  // clang 14 captures no structured binding
    const Place tier = place.of(name, node);
    tier.allow_only(names);
    const toml::node* const limit = tier.table().get("limit");
    if (limit == nullptr) tier.reject("has no limit");
    const Place at_limit = tier.of("limit", *limit);
    at_limit.at([&] { list.tier(name, limit_of<Limit>(at_limit)); });
    if (const toml::node* const keys = tier.table().get("keys")) {
      for_keys(tier.of("keys", *keys), [&](const auto& own) { list.assign(own, name); });
    }
  }
}

template <class Limit>
LimitList<Limit> begin_list(const Place& place) {
  const toml::node* const everyone = place.table().get("everyone");
  if (everyone == nullptr) place.reject("has no limit of everyone");
  const Place at_everyone = place.of("everyone", *everyone);
  const Limit limit = limit_of<Limit>(at_everyone);
  if constexpr (std::same_as<Limit, Quota>) {
    if (const toml::node* const unit = place.table().get("unit")) {
      const Place at_unit = place.of("unit", *unit);
      const Span span = span_of(at_unit, at_unit.text(span_text));
      return at_unit.at([&] { return LimitList(limit, span); });
    }
  }
  return at_everyone.at([&] { return LimitList<Limit>(limit); });
}

template <class Limit>
LimitList<Limit> read_list(const Place& place) {
  static constexpr std::array<std::string_view, 6> names{"everyone", "tiers", "keys",
                                                         "allow",    "deny",  "unit"};
  constexpr std::size_t count = std::same_as<Limit, Quota> ? names.size() : names.size() - 1;
  place.allow_only(std::span(names).first(count));
  LimitList<Limit> list = begin_list<Limit>(place);
  const auto read = [&](const char* name, auto then) {
    if (const toml::node* const node = place.table().get(name)) then(place.of(name, *node));
  };
  read("tiers", [&](const Place& tiers) { read_tiers(tiers, list); });
  read("keys", [&](const Place& keys) {
    for (const auto& [key, node] : keys.table()) {
      const std::string_view name = key.str();
      const Place one = keys.of(name, node);
      one.at([&] { list.limit(name, limit_of<Limit>(one)); });
    }
  });
  read("allow", [&](const Place& keys) { for_keys(keys, [&](const auto& k) { list.allow(k); }); });
  read("deny", [&](const Place& keys) { for_keys(keys, [&](const auto& k) { list.deny(k); }); });
  return list;
}

template <class Limit>
LimitList<Limit> list_of(const std::string& path, const toml::table& root, std::string_view name) {
  if (const toml::node* const node = root.get(name)) {
    return read_list<Limit>({path, std::string(name), *node});
  }
  std::vector<std::string_view> names;
  for (const auto& [key, value] : root) names.push_back(key.str());
  const Place place{path, std::string(name), root};
  if (names.empty()) place.reject("unknown; the file has no tables");
  place.unknown(name, std::span<const std::string_view>(names));
}

std::string text_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // Opening a pipe would wait for whoever writes to it.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw std::runtime_error(path + ": is no regular file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) throw std::runtime_error(path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

LimitFile::LimitFile(const std::string& path) : LimitFile(path, text_of(path)) {}

LimitFile::LimitFile(const std::string& path, std::string_view text)
    : content_(std::make_unique<Content>()) {
  content_->path = path;
  try {
    content_->root = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw std::runtime_error(path + ":" + std::to_string(error.source().begin.line) + ": " +
                             std::string(error.description()));
  }
}

LimitFile::~LimitFile() = default;
LimitFile::LimitFile(LimitFile&&) noexcept = default;
LimitFile& LimitFile::operator=(LimitFile&&) noexcept = default;

LimitList<Quota> LimitFile::quotas(detail::TextArg name) const {
  return list_of<Quota>(content_->path, content_->root, name);
}
LimitList<Word> LimitFile::counts(detail::TextArg name) const {
  return list_of<Word>(content_->path, content_->root, name);
}
LimitList<WindowLimits> LimitFile::windows(detail::TextArg name) const {
  return list_of<WindowLimits>(content_->path, content_->root, name);
}

std::string LimitFile::place_of_spans(std::string_view name) const {
  const Place list{content_->path, std::string(name), content_->root.at(name)};
  const char* const entry = list.table().contains("unit") ? "unit" : "everyone";
  return list.of(entry, list.table().at(entry)).text();
}

}  // namespace sluice::config
