// How states, arguments and replies are laid out in bytes.
#include "tests/twin/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::test {

std::string le64(Word value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

Word read_le64(const std::string& bytes, std::size_t at) {
  Word value = 0;
  if (at + sizeof(value) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out.empty() ? "nothing" : out;
}

std::string script_name(const Operation& row) {
  std::string name(row.name);
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string pack_args(const Arguments& args) {
  std::string bytes;
  for (const Word word : args) bytes += le64(word);
  return bytes;
}

Loaded load(const std::string& raw, bool wrong_type, StateKind kind) {
  const auto failed = [](Errc code) { return Loaded{-static_cast<Word>(code), {}}; };
  if (wrong_type) return failed(Errc::wrong_type);
  if (raw.empty()) return {};
  if (raw.size() != 17) return failed(Errc::wrong_type);
  const auto found = static_cast<unsigned char>(raw[0]);
  if (found != static_cast<unsigned char>(kind)) {
    return failed(found < 32 ? Errc::wrong_kind : Errc::wrong_type);
  }
  const Loaded loaded{Verdict::allowed, {read_le64(raw, 1), read_le64(raw, 9)}};
  for (const Word word : loaded.words) {
    if (word < 0 || word > word_limit) return failed(Errc::corrupt_state);
  }
  return loaded;
}

std::string encode(StateKind kind, const StateWords& words) {
  return static_cast<char>(kind) + le64(words[0]) + le64(words[1]);
}

}  // namespace sluice::test
