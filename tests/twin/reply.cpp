// Replies, compared word for word.
#include "tests/twin/reply.hpp"

#include <array>
#include <stdexcept>

namespace sluice::test {
namespace {

std::string describe(const Verdict& v) {
  return "{status " + std::to_string(v.status) + ", remaining " + std::to_string(v.remaining) +
         ", retry_after " + std::to_string(v.retry_after) + ", reset_after " +
         std::to_string(v.reset_after) + "}";
}

}  // namespace

std::optional<std::string> differs(const std::string& nonce, Word now,
                                   std::span<const Verdict> verdicts, const std::string& output,
                                   const RedisReply& reply) {
  if (reply.type != RedisReply::Type::string) return "the script answered: " + reply.text;
  const std::string& text = reply.text;
  if (text.size() != 16 + 32 * verdicts.size() + output.size()) {
    return "a reply of " + std::to_string(text.size()) + " bytes";
  }
  if (text.substr(0, 8) != nonce) return "another nonce";
  if (read_le64(text, 8) != now) return "decided at " + std::to_string(read_le64(text, 8));
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const std::size_t at = 16 + 32 * i;
    const Verdict twin{read_le64(text, at), read_le64(text, at + 8), read_le64(text, at + 16),
                       read_le64(text, at + 24)};
    if (twin != verdicts[i]) {
      return "step " + std::to_string(i) + ": kernel " + describe(verdicts[i]) + ", twin " +
             describe(twin);
    }
  }
  const std::size_t front = 16 + 32 * verdicts.size();
  for (std::size_t i = 0; i < output.size(); i += 8) {
    if (read_le64(text, front + i) == read_le64(output, i)) continue;
    return "detail " + std::to_string(i / 8) + ": kernel " + std::to_string(read_le64(output, i)) +
           ", twin " + std::to_string(read_le64(text, front + i));
  }
  return std::nullopt;
}

std::string pack_verdicts(std::span<const Verdict> verdicts) {
  std::string bytes;
  for (const Verdict& v : verdicts) {
    bytes += pack_words(std::array{v.status, v.remaining, v.retry_after, v.reset_after});
  }
  return bytes;
}

Scripts load_scripts(RedisClient& client, const Scripts& scripts) {
  Scripts shas;
  for (const auto& [name, text] : scripts) {
    const RedisReply reply = client({"SCRIPT", "LOAD", text});
    if (reply.is_error()) throw std::runtime_error(name + ".lua: " + reply.text);
    shas[name] = reply.text;
  }
  return shas;
}

}  // namespace sluice::test
