#include "backends/redis/scripts/scripts.hpp"

#include <algorithm>
#include <bitset>
#include <boost/uuid/detail/sha1.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/util/lasting.hpp"

namespace sluice::redis_detail {
namespace {

/// The key of a script in the cache.
struct ScriptKey {
  std::bitset<256> operations;  ///< by their ids
  ScriptJoiner::WindowCounts windows;
  bool is_plan = false;
  bool has_record = false;

  friend bool operator==(const ScriptKey&, const ScriptKey&) = default;
};

struct ScriptKeyHash {
  std::size_t operator()(const ScriptKey& key) const noexcept {
    return std::hash<std::bitset<256>>{}(key.operations) * 31 +
           std::hash<ScriptJoiner::WindowCounts>{}(key.windows) * 4 + (key.is_plan ? 2 : 0) +
           (key.has_record ? 1 : 0);
  }
};

const ScriptJoiner& joiner() {
  static const detail::Lasting<ScriptJoiner> joiner(lua_files(), operations());
  return joiner.object;
}

std::string digest_name() {
  const std::string any_name(12, '0');  // as long as the digest
  return "sluice_" + sha1_of(joiner().library("sluice_" + any_name)).substr(0, any_name.size());
}

Script make_script(const ScriptKey& key) {
  std::vector<const Operation*> asked;
  bool is_fixed = true;
  for (const Operation* operation : operations()) {
    if (!key.operations[operation->id]) continue;
    asked.push_back(operation);
    is_fixed = is_fixed && is_cell(operation->kind);
  }
  Script script;
  if (key.is_plan) {
    script.text = joiner().plan(asked, key.has_record, key.windows);
    script.function = key.has_record ? "idempotent_plan" : is_fixed ? "fixed_plan" : "plan";
  } else {
    script.text = joiner().step(*asked[0], key.windows);
    script.function = ScriptJoiner::stem_of(*asked[0]);
  }
  script.sha1 = sha1_of(script.text);
  return script;
}

class ScriptCache {
 public:
  const Script& find(const ScriptKey& key) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Script>& script = scripts_[key];
    if (script == nullptr) script = std::make_unique<Script>(make_script(key));
    return *script;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<ScriptKey, std::unique_ptr<Script>, ScriptKeyHash> scripts_;
};

}  // namespace

bool has_scripts(std::span<const Step> steps) noexcept {
  static const std::span<const Operation* const> known = operations();
  return std::ranges::all_of(steps, [](const Step& step) {
    return std::ranges::find(known, step.operation) != known.end();
  });
}

const Script& script_for(std::span<const Step> steps, bool has_record) {
  static detail::Lasting<ScriptCache> cache;
  ScriptKey key;
  for (const Step& step : steps) {
    key.operations.set(step.operation->id);
    if (const std::size_t windows = step.table.size() / 2; windows < key.windows.size()) {
      key.windows.set(windows);
    }
  }
  key.windows.reset(0);
  key.is_plan = has_record || steps.size() > 1;
  key.has_record = has_record;
  return cache.object.find(key);
}

const Library& library() {
  static const detail::Lasting<Library> library([] {
    std::string name = digest_name();
    std::string text = "#!lua name=" + name + "\n" + joiner().library(name);
    return Library{std::move(name), std::move(text)};
  }());
  return library.object;
}

std::string sha1_of(std::string_view text) {
  boost::uuids::detail::sha1 sha1;
  sha1.process_bytes(text.data(), text.size());
  boost::uuids::detail::sha1::digest_type digest;
  sha1.get_digest(digest);
  std::string hex;
  for (const auto part : digest) {  // words, or bytes since Boost 1.86
    char digits[9];
    std::snprintf(digits, sizeof digits, "%0*x", static_cast<int>(2 * sizeof part),
                  static_cast<unsigned>(part));
    hex += digits;
  }
  return hex;
}

}  // namespace sluice::redis_detail
