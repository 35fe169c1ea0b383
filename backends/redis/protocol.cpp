// Encoding and decoding. The layout is that of lua/step.lua and lua/plan.lua.
#include "protocol.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <new>
#include <vector>

namespace sluice::redis_detail {
namespace {

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

void append_header(std::string& out, char type, std::size_t count) {
  out += type;
  append_number(out, count);
  out += "\r\n";
}

void append_bulk(std::string& out, std::string_view bytes) {
  append_header(out, '$', bytes.size());
  out += bytes;
  out += "\r\n";
}

/// Words travel little-endian, as almost every machine has them in memory.
void append_words(std::string& out, const void* words, std::size_t count) {
  const auto* bytes = static_cast<const char*>(words);
  if constexpr (std::endian::native == std::endian::little) {
    out.append(bytes, count * sizeof(Word));
  } else {
    for (std::size_t i = 0; i < count * sizeof(Word); ++i) out += bytes[i ^ (sizeof(Word) - 1)];
  }
}

void append_word(std::string& out, std::uint64_t word) { append_words(out, &word, 1); }

std::uint64_t read_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

void append_arguments(std::string& out, const Arguments& args) {
  append_words(out, args.data(), args.size());
}

constexpr std::size_t arguments_bytes = sizeof(Arguments);

/// How long the server keeps the state: until it means nothing, rounded up to milliseconds, and a
/// second for a clock that is adjusted meanwhile.
void append_keep(std::string& out, const Step& step) {
  const Word keep_ms = (step.operation->keep(step.args) + 999) / 1000 + 1000;
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), keep_ms);
  append_bulk(out, {digits.data(), end});
}

void append_key(std::string& out, const Key& key, const KeyStyle& style, std::string& scratch) {
  scratch = style.prefix;
  append_rendered(scratch, key, style.secret);
  append_bulk(out, scratch);
}

const Script* find_script(std::string_view stem) noexcept {
  const std::span all(scripts, script_count);
  const auto same = [](char a, char b) { return a == b || (a == '_' && b == '.'); };
  const auto found = std::ranges::find_if(
      all, [&](const Script& script) { return std::ranges::equal(script.name, stem, same); });
  return found == all.end() ? nullptr : &*found;
}

/// Scripts by the operation's id, the plan's own at the end. Needs no memory: it is made by the
/// first call, which must not fail.
constexpr std::size_t operation_ids = 256;
using ScriptTable = std::array<const Script*, operation_ids + 1>;

const ScriptTable& script_table() noexcept {
  static const ScriptTable table = []() noexcept {
    ScriptTable result{};
    for (const Operation* operation : operations()) {
      result[operation->id] = find_script(operation->name);
    }
    result.back() = find_script("plan");
    return result;
  }();
  return table;
}

struct ErrorWord {
  std::string_view word;
  Errc code;
};
constexpr std::array error_words{ErrorWord{"NOSCRIPT", Errc::no_script},
                                 ErrorWord{"LOADING", Errc::loading},
                                 ErrorWord{"READONLY", Errc::read_only},
                                 ErrorWord{"MOVED", Errc::moved},
                                 ErrorWord{"ASK", Errc::ask},
                                 ErrorWord{"TRYAGAIN", Errc::try_again},
                                 ErrorWord{"CLUSTERDOWN", Errc::cluster_down},
                                 ErrorWord{"CROSSSLOT", Errc::cross_slot},
                                 ErrorWord{"NOREPLICAS", Errc::no_replicas},
                                 ErrorWord{"OOM", Errc::out_of_memory},
                                 ErrorWord{"MASTERDOWN", Errc::master_down},
                                 ErrorWord{"BUSY", Errc::busy},
                                 ErrorWord{"MISCONF", Errc::misconfigured},
                                 ErrorWord{"NOAUTH", Errc::no_auth},
                                 ErrorWord{"WRONGPASS", Errc::wrong_password},
                                 ErrorWord{"NOPERM", Errc::no_permission},
                                 ErrorWord{"WRONGTYPE", Errc::wrong_type}};

}  // namespace

const Script* script_for(std::span<const Step> steps) noexcept {
  const auto& table = script_table();
  for (const Step& step : steps) {
    const std::size_t id = step.operation->id;
    if (id >= operations().size() || operations()[id] != step.operation) return nullptr;
  }
  return steps.size() == 1 ? table[steps[0].operation->id] : table.back();
}

void encode(Request& request, std::span<const Step> steps, std::uint64_t nonce,
            const KeyStyle& style) {
  request.script = script_for(steps);
  std::string& out = request.tail;
  out.clear();
  std::array<char, 4> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), steps.size());
  append_bulk(out, {digits.data(), end});
  static thread_local std::string scratch;
  for (const Step& step : steps) append_key(out, step.key, style, scratch);
  if (steps.size() == 1) {
    append_header(out, '$', sizeof nonce + arguments_bytes);
    append_word(out, nonce);
    append_arguments(out, steps[0].args);
    out += "\r\n";
    append_keep(out, steps[0]);
    request.words = 6;
    return;
  }
  append_header(out, '$', sizeof nonce);
  append_word(out, nonce);
  out += "\r\n";
  for (const Step& step : steps) {
    append_header(out, '$', 1 + arguments_bytes);
    out += static_cast<char>(step.operation->id);
    append_arguments(out, step.args);
    out += "\r\n";
    append_keep(out, step);
  }
  request.words = 4 + 3 * steps.size();
}

void append_evalsha(std::string& out, const Request& request) {
  append_header(out, '*', request.words);
  out += "$7\r\nEVALSHA\r\n$40\r\n";
  out += request.script->sha1;
  out += "\r\n";
  out += request.tail;
}

void append_eval(std::string& out, const Request& request) {
  append_header(out, '*', request.words);
  out += "$4\r\nEVAL\r\n";
  append_bulk(out, request.script->text);
  out += request.tail;
}

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  std::vector<const char*> starts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* command = nullptr;
  const auto bytes = redisFormatCommandArgv(&command, static_cast<int>(starts.size()),
                                            starts.data(), sizes.data());
  if (bytes < 0) throw std::bad_alloc();
  out.append(command, static_cast<std::size_t>(bytes));
  std::fill_n(static_cast<volatile char*>(command), bytes, '\0');  // it may hold a password
  redisFreeCommand(command);
}

namespace {

/// True if a script can have answered this.
bool is_possible(const Verdict& verdict) noexcept {
  const auto in_range = [](Word word) { return word >= 0 && word <= word_limit; };
  switch (verdict.status) {
    case Verdict::allowed:
      return in_range(verdict.remaining) && verdict.retry_after == 0 &&
             in_range(verdict.reset_after);
    case Verdict::refused:
      return in_range(verdict.remaining) && in_range(verdict.retry_after) &&
             in_range(verdict.reset_after);
    case -static_cast<Word>(Errc::cost_exceeds_capacity):
    case -static_cast<Word>(Errc::invalid_cost):
    case -static_cast<Word>(Errc::wrong_type):
    case -static_cast<Word>(Errc::wrong_kind):
    case -static_cast<Word>(Errc::corrupt_state):
      return verdict.remaining == 0 && verdict.retry_after == 0 && verdict.reset_after == 0;
    default:
      return false;
  }
}

}  // namespace

bool decode(Reply& reply, std::string_view bytes, std::uint64_t nonce, std::size_t steps) noexcept {
  constexpr std::size_t verdict_bytes = 4 * sizeof(Word);
  if (bytes.size() != 2 * sizeof(Word) + steps * verdict_bytes) return false;
  const char* p = bytes.data();
  const auto next = [&p] {
    const std::uint64_t word = read_word(p);
    p += sizeof word;
    return word;
  };
  if (next() != nonce) return false;
  const auto at = static_cast<Word>(next());
  if (at < 0 || at > word_limit) return false;
  reply.at = to_time(at);
  for (std::size_t i = 0; i < steps; ++i) {
    Verdict& verdict = reply.verdicts[i];
    for (Word* word :
         {&verdict.status, &verdict.remaining, &verdict.retry_after, &verdict.reset_after}) {
      *word = static_cast<Word>(next());
    }
    if (!is_possible(verdict)) return false;
  }
  return true;
}

Errc error_of(std::string_view message) noexcept {
  if (message.starts_with("ERR max number of clients")) return Errc::too_many_clients;
  // A command or a key that the user may not use, met inside of a script: Redis 7.0, and later.
  if (message.starts_with("ERR The user executing the script can't") ||
      message.starts_with("ERR ACL failure in script")) {
    return Errc::no_permission;
  }
  const std::string_view word = message.substr(0, message.find(' '));
  const auto found = std::ranges::find(error_words, word, &ErrorWord::word);
  return found == error_words.end() ? Errc::server_error : found->code;
}

}  // namespace sluice::redis_detail
