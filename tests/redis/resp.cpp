// A strict parser of request arrays, and the layout of replies.
#include "tests/redis/resp.hpp"

#include <cstring>
#include <stdexcept>

namespace sluice::test {
namespace {

/// The number in the line at `at`, which starts with `type`; moves `at` behind the line.
std::optional<std::size_t> take_number(const std::string& bytes, std::size_t& at, char type) {
  const std::size_t end = bytes.find("\r\n", at);
  if (end == std::string::npos) return std::nullopt;
  if (bytes[at] != type) throw std::runtime_error("malformed command");
  const std::size_t number = std::stoull(bytes.substr(at + 1, end - at - 1));
  at = end + 2;
  return number;
}

void append(std::string& out, Word word) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(word >> (8 * i) & 0xff);
}

}  // namespace

std::optional<Command> take_command(std::string& bytes) {
  std::size_t at = 0;
  const auto words = take_number(bytes, at, '*');
  if (!words) return std::nullopt;
  Command command;
  for (std::size_t i = 0; i < *words; ++i) {
    const auto size = take_number(bytes, at, '$');
    if (!size || bytes.size() < at + *size + 2) return std::nullopt;
    command.push_back(bytes.substr(at, *size));
    if (bytes.compare(at + *size, 2, "\r\n") != 0) throw std::runtime_error("malformed command");
    at += *size + 2;
  }
  bytes.erase(0, at);
  return command;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> texts(1);
  for (const char c : list) {
    if (c == ';') {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  return texts;
}

bool is_call(const Command& command) {
  return command.at(0) == "EVALSHA" || command.at(0) == "EVAL" || command.at(0) == "FCALL";
}

std::size_t steps_of(const Command& call) { return std::stoull(call.at(2)); }

std::uint64_t nonce_of(const Command& call) {
  const std::string& words = call.at(3 + steps_of(call));
  std::uint64_t nonce = 0;
  for (std::size_t i = 8; i-- > 0;) nonce = nonce << 8 | static_cast<unsigned char>(words.at(i));
  return nonce;
}

std::string payload(std::uint64_t nonce, Word at, std::initializer_list<Verdict> verdicts) {
  std::string out;
  append(out, static_cast<Word>(nonce));
  append(out, at);
  for (const Verdict& verdict : verdicts) {
    append(out, verdict.status);
    append(out, verdict.remaining);
    append(out, verdict.retry_after);
    append(out, verdict.reset_after);
  }
  return out;
}

std::string bulk(std::string_view bytes) {
  std::string out = "$";
  out += std::to_string(bytes.size());
  out += "\r\n";
  out += bytes;
  out += "\r\n";
  return out;
}

std::string allowing(const Command& call, Word at) {
  std::string bytes = payload(nonce_of(call), at, {});
  for (std::size_t i = 0; i < steps_of(call); ++i) {
    bytes += payload(0, 0, {{Verdict::allowed, 1, 0, 1}}).substr(16);
  }
  return bulk(bytes);
}

}  // namespace sluice::test
