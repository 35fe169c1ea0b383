// Encoding and decoding. The layout is that of lua/step.lua and lua/plan.lua.
#include "backends/redis/protocol/protocol.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <new>
#include <vector>

#include "sluice/extend/idempotency_record.hpp"
#include "sluice/store.hpp"

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

/// Words are sent little-endian, as in the memory of most machines.
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

/// The TTL of the state in the server: that of the rule, rounded up to milliseconds, plus a second,
/// because scripts set a TTL only twice a second.
Word keep_ms(const Step& step) { return (step.operation->ttl(step.args) + 999) / 1000 + 1000; }

/// The words of a step for a script: its arguments in use, its table, and its TTL.
void append_message(std::string& out, const Step& step) {
  append_words(out, step.args.data(), step.operation->argument_count);
  append_words(out, step.table.data(), step.table.size());
  append_word(out, static_cast<std::uint64_t>(keep_ms(step)));
}

std::size_t message_bytes(const Step& step) noexcept {
  return (step.operation->argument_count + step.table.size() + 1) * sizeof(Word);
}

void append_key(std::string& out, const Key& key, const KeyStyle& style) {
  const std::size_t begin = out.size();
  out += style.prefix;
  append_rendered(out, key, style.secret);
  std::array<char, 24> header{'$'};
  char* end = std::to_chars(header.data() + 1, header.data() + 22, out.size() - begin).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.insert(begin, header.data(), static_cast<std::size_t>(end - header.data()));
  out += "\r\n";
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

namespace {

/// The argument of the script of one step.
void append_step(std::string& out, const Step& step, std::uint64_t nonce) {
  append_header(out, '$', sizeof nonce + message_bytes(step));
  append_word(out, nonce);
  append_message(out, step);
  out += "\r\n";
}

/// The arguments of a plan's script. With an id, the nonce is followed by the number of output
/// words, two bytes, and the plan's fingerprint.
void append_plan(std::string& out, std::span<const Step> steps, std::uint64_t nonce,
                 bool has_record, Word alternative) {
  append_header(out, '$', sizeof nonce + (has_record ? 2 + sizeof(Word) : 0));
  append_word(out, nonce);
  if (has_record) {
    const std::size_t output = output_count(steps);
    out += {static_cast<char>(output & 255), static_cast<char>(output >> 8)};
    append_word(out, static_cast<std::uint64_t>((fingerprint(steps) + alternative) % word_limit));
  }
  out += "\r\n";
  for (const Step& step : steps) {
    append_header(out, '$', 1 + message_bytes(step));
    out += static_cast<char>(step.operation->id);
    append_message(out, step);
    out += "\r\n";
  }
}

}  // namespace

void encode(Request& request, std::span<const Step> steps, std::uint64_t nonce,
            const KeyStyle& style, const std::optional<RequestId>& id,
            const std::optional<Alternative>& alternative) {
  request.script = alternative ? alternative->script : &script_for(steps, id.has_value());
  std::string& out = request.tail;
  out.clear();
  const std::size_t keys = steps.size() + (id ? 1 : 0);
  std::array<char, 4> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), keys);
  append_bulk(out, {digits.data(), end});
  for (const Step& step : steps) append_key(out, step.key, style);
  if (id) {
    const auto name = record_name(*id);
    const std::string_view tag = alternative ? alternative->tag : steps[0].key.tag();
    append_key(out, {tag, {name.data(), name.size()}}, style);
  }
  if (steps.size() == 1 && !id) {
    append_step(out, steps[0], nonce);
    request.words = 3 + keys + 1;
  } else {
    append_plan(out, steps, nonce, id.has_value(), alternative ? alternative->number : 0);
    request.words = 3 + keys + 1 + steps.size();
  }
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

void append_fcall(std::string& out, const Request& request) {
  append_header(out, '*', request.words);
  out += "$5\r\nFCALL\r\n";
  append_header(out, '$', library().name.size() + 1 + request.script->function.size());
  out.append(library().name).append("_").append(request.script->function).append("\r\n");
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

bool is_word(Word word) noexcept { return word >= 0 && word <= word_limit; }

/// A hint may be the sum of two words: the wait, and how far a stamp is ahead of the clock.
bool is_hint(Word word) noexcept { return word >= 0 && word <= 2 * word_limit; }

/// True for Errc::wrong_kind, to which a script adds the kind of the state, times 256: see
/// state_fixed.lua.
bool names_kind(Word status) noexcept {
  return status % 256 == -static_cast<Word>(Errc::wrong_kind) && status / 256 > -32;
}

/// True if a script can return this.
bool is_possible(const Verdict& verdict) noexcept {
  switch (verdict.status) {
    case Verdict::allowed:  // retry_after: of a reservation
    case Verdict::refused:
      return is_word(verdict.remaining) && is_hint(verdict.retry_after) &&
             is_hint(verdict.reset_after);
    case -static_cast<Word>(Errc::cost_exceeds_capacity):
    case -static_cast<Word>(Errc::invalid_cost):
    case -static_cast<Word>(Errc::wrong_type):
    case -static_cast<Word>(Errc::corrupt_state):
    case -static_cast<Word>(Errc::invalid_argument):
    case -static_cast<Word>(Errc::not_configured):
    case -static_cast<Word>(Errc::config_changed):
    case -static_cast<Word>(Errc::id_reused):
    case -static_cast<Word>(Errc::outside_calendar):
      return verdict.remaining == 0 && verdict.retry_after == 0 && verdict.reset_after == 0;
    default:
      return names_kind(verdict.status) && verdict.remaining == 0 && verdict.retry_after == 0 &&
             verdict.reset_after == 0;
  }
}

/// The verdict as in the kernels.
Verdict to_verdict(const Verdict& sent) noexcept {
  if (!names_kind(sent.status)) return sent;
  return Verdict::wrong_kind(static_cast<StateKind>(-(sent.status / 256)));
}

}  // namespace

bool decode(Reply& reply, std::string_view bytes, std::uint64_t nonce, std::size_t steps,
            std::size_t output) noexcept {
  if (bytes.size() != (2 + 4 * steps + output) * sizeof(Word)) return false;
  const char* p = bytes.data();
  const auto next = [&p] {
    const std::uint64_t word = read_word(p);
    p += sizeof word;
    return word;
  };
  if (next() != nonce) return false;
  const auto at = static_cast<Word>(next());
  if (!is_word(at)) return false;
  reply.at = to_time(at);
  for (std::size_t i = 0; i < steps; ++i) {
    Verdict& verdict = reply.verdicts[i];
    for (Word* word :
         {&verdict.status, &verdict.remaining, &verdict.retry_after, &verdict.reset_after}) {
      *word = static_cast<Word>(next());
    }
    if (!is_possible(verdict)) return false;
    verdict = to_verdict(verdict);
  }
  reply.output_count = output;
  for (std::size_t i = 0; i < output; ++i) {
    reply.output[i] = static_cast<Word>(next());
    if (!is_word(reply.output[i])) return false;
  }
  return true;
}

namespace {

/// True for the error that has ended a script: the script, and its line, stand behind it. Until its
/// first write a script returns what the server says, so this one may have come after a write.
bool has_ended_script(std::string_view message) noexcept {
  const auto script = message.rfind(" script: ");
  return script != message.npos && message.find(", on @", script) != message.npos;
}

}  // namespace

Errc error_of(std::string_view message) noexcept {
  if (has_ended_script(message)) return Errc::server_error;
  if (message.starts_with("ERR max number of clients")) return Errc::too_many_clients;
  if (message.starts_with("ERR Function not found")) return Errc::no_function;
  if (message.starts_with("ERR unknown command")) return Errc::unknown_command;
  // A command or a key without permission, returned by a script: Redis 7.0 and later.
  if (message.starts_with("ERR The user executing the script can't") ||
      message.starts_with("ERR ACL failure in script")) {
    return Errc::no_permission;
  }
  const std::string_view word = message.substr(0, message.find(' '));
  const auto found = std::ranges::find(error_words, word, &ErrorWord::word);
  return found == error_words.end() ? Errc::server_error : found->code;
}

}  // namespace sluice::redis_detail
