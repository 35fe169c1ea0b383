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

std::string pack_words(std::span<const Word> words) {
  std::string bytes;
  for (const Word word : words) bytes += le64(word);
  return bytes;
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

std::string pack_step(const Operation& row, const Arguments& args, std::span<const Word> table) {
  return pack_words({args.data(), row.argument_count}) + pack_words(table);
}

namespace {

bool is_word(Word word) { return word >= 0 && word <= word_limit; }

}  // namespace

Loaded load(const std::string& raw, bool wrong_type, StateKind kind, std::size_t head) {
  const auto failed = [](Errc code) { return Loaded{-static_cast<Word>(code), {}}; };
  const bool cell = is_cell(kind);
  if (wrong_type) return failed(Errc::wrong_type);
  if (raw.empty()) return {Verdict::allowed, std::vector<Word>(cell ? cell_words : 0)};
  // Of a variable state a driver judges the head only; a torn word behind it is left to the rule.
  const std::size_t seen = cell ? raw.size() : std::min<std::size_t>(raw.size(), 1 + 8 * head);
  if (seen % 8 != 1) return failed(Errc::wrong_type);
  const auto found = static_cast<unsigned char>(raw[0]);
  if (found != static_cast<unsigned char>(kind)) {
    if (found >= 32) return failed(Errc::wrong_type);
    return {-static_cast<Word>(Errc::wrong_kind) - 256 * Word{found}, {}};
  }
  if (cell && raw.size() != 17 && raw.size() != 25) return failed(Errc::wrong_type);
  Loaded loaded;
  for (std::size_t at = 1; at < raw.size(); at += 8) {
    loaded.words.push_back(at + 8 <= raw.size() ? read_le64(raw, at) : -1);
  }
  const std::size_t checked = cell ? cell_words : std::min(head, loaded.words.size());
  if (!std::all_of(loaded.words.begin(), loaded.words.begin() + std::ptrdiff_t(checked), is_word)) {
    return failed(Errc::corrupt_state);
  }
  if (cell) loaded.words.resize(cell_words);  // behind them stands when the key expires
  return loaded;
}

std::string encode(StateKind kind, std::span<const Word> words) {
  return static_cast<char>(kind) + pack_words(words);
}

std::string after(const std::string& raw, StateKind kind, const Effects& effects) {
  std::string next = raw.empty() ? std::string(1, static_cast<char>(kind)) : raw;
  const auto at = [](std::size_t word) { return 1 + 8 * word; };
  const auto reach = [&](std::size_t word) {
    if (next.size() < at(word)) next.resize(at(word), '\0');
  };
  for (const Effects::Rotation& r : effects.rotations()) {
    reach(r.last);
    const auto place = [&](std::size_t word) { return next.begin() + std::ptrdiff_t(at(word)); };
    std::rotate(place(r.first), place(r.middle), place(r.last));
  }
  for (const Effects::Fill& fill : effects.fills()) {
    reach(fill.index + fill.count);
    for (std::size_t i = fill.index; i < fill.index + fill.count; ++i) {
      next.replace(at(i), 8, le64(fill.value));
    }
  }
  return next;
}

bool may_keep_ttl(StateKind kind, const std::string& before, const std::string& after) {
  if (kind != StateKind::sliding_window && kind != StateKind::leases) return false;
  const std::size_t word = kind == StateKind::leases ? 10 : 0;  // latest, stamp
  const auto half_second = [&](const std::string& raw) {
    return read_le64(raw, 1 + 8 * word) / 500'000;
  };
  return half_second(before) >= half_second(after);
}

bool same_state(std::string one, std::string other, StateKind kind) {
  if (is_cell(kind) || one.empty() || other.empty()) return one == other;
  for (std::string* bytes : {&one, &other}) {
    while (bytes->size() > 8 && bytes->size() % 8 == 1 && bytes->ends_with(std::string(8, '\0'))) {
      bytes->resize(bytes->size() - 8);
    }
  }
  return one == other;
}

}  // namespace sluice::test
