// The rendering of keys. Escaping makes it injective; hashing keeps it short.
#include "sluice/key.hpp"

#include <charconv>
#include <stdexcept>

#include "src/util/siphash.hpp"

namespace sluice {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

constexpr bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~@+=,/").find(c) != std::string_view::npos;
}

void append_hash(std::string& out, std::string_view part, const HashKey& secret) {
  out += '#';
  for (const std::uint64_t word : detail::SipHash24(secret)(part)) {
    for (int shift = 60; shift >= 0; shift -= 4) out += hex_digits[word >> shift & 15];
  }
}

void append_part(std::string& out, std::string_view part, const HashKey& secret) {
  if (part.size() > Key::max_plain_bytes) return append_hash(out, part, secret);
  for (const char c : part) {
    if (is_plain(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += hex_digits[byte >> 4];
      out += hex_digits[byte & 15];
    }
  }
}

/// Returns their number. The bytes after them are zero, so that all can be copied.
template <class Number>
std::size_t put_digits(std::array<char, 20>& digits, Number number) noexcept {
  digits = {};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return static_cast<std::size_t>(end - digits.data());
}

}  // namespace

void Key::write(std::int64_t number) noexcept { size_ = put_digits(digits_, number); }
void Key::write(std::uint64_t number) noexcept { size_ = put_digits(digits_, number); }

void append_rendered(std::string& out, const Key& key, const HashKey& secret) {
  out += '{';
  append_part(out, key.tag(), secret);
  out += "}:";
  append_part(out, key.name(), secret);
  if (key.unit().empty()) return;
  out += ':';
  append_part(out, key.unit(), secret);
}

std::string render(const Key& key, const HashKey& secret) {
  std::string out;
  append_rendered(out, key, secret);
  return out;
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo) of 64 bits: who chooses keys gains nothing by a
/// collision.
std::uint64_t detail::key_mark(const Key& key) noexcept {
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view part) {
    for (const char byte : part) hash = (hash ^ static_cast<unsigned char>(byte)) * prime;
    hash = (hash ^ 0x100) * prime;  // the end of the part
  };
  add(key.tag());
  add(key.name());
  return hash | 1;
}

std::string detail::valid_name(TextArg text) {
  const std::string_view name = text;
  if (name.empty() || name.size() > Key::max_part_bytes) {
    throw std::invalid_argument("a limiter's name must have 1 byte to 1 MiB, got " +
                                std::to_string(name.size()) + " bytes");
  }
  return std::string(name);
}

}  // namespace sluice
