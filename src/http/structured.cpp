// The grammar of RFC 9651, section 4.2, as functions that take a token off the front.
#include "src/http/structured.hpp"

#include "src/http/ascii.hpp"

namespace sluice::http::detail {
namespace {

using Type = BareItem::Type;

void skip(std::string_view& text, bool (*is)(char)) noexcept {
  while (!text.empty() && is(text.front())) text.remove_prefix(1);
}

/// Takes the bytes at the front for which `is` holds.
std::string_view take_while(std::string_view& text, bool (*is)(char)) noexcept {
  const std::string_view all = text;
  skip(text, is);
  return all.substr(0, all.size() - text.size());
}

bool is_blank(char c) noexcept { return c == ' '; }
bool is_key(char c) noexcept {
  return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
}
bool is_token(char c) noexcept {
  return is_alpha(c) || is_digit(c) ||
         std::string_view("!#$%&'*+-.^_`|~:/").find(c) != std::string_view::npos;
}
bool is_base64(char c) noexcept {
  return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '=';
}
bool is_printable(char c) noexcept { return c >= ' ' && c <= '~'; }

bool take_key(std::string_view& text, std::string_view& key) noexcept {
  if (text.empty() || !(is_lower(text.front()) || text.front() == '*')) return false;
  key = take_while(text, is_key);
  return true;
}

/// At most 15 digits; a decimal has at most 12 before its point and 1 to 3 after it.
bool take_number(std::string_view& text, BareItem& item) noexcept {
  const std::string_view all = text;
  const bool negative = take(text, "-");
  const std::string_view whole = take_while(text, is_digit);
  if (whole.empty() || whole.size() > 15) return false;
  Word value = 0;
  for (const char c : whole) value = value * 10 + (c - '0');
  item.type = Type::integer;
  item.number = negative ? -value : value;
  if (take(text, ".")) {
    const std::string_view part = take_while(text, is_digit);
    if (whole.size() > 12 || part.empty() || part.size() > 3) return false;
    item.type = Type::decimal;
  }
  item.raw = all.substr(0, all.size() - text.size());
  return true;
}

/// Behind its first quote.
bool take_string(std::string_view& text, BareItem& item) noexcept {
  const std::string_view all = text;
  item.type = Type::string;
  for (; !text.empty() && is_printable(text.front()); text.remove_prefix(1)) {
    if (text.front() == '"') {
      item.raw = all.substr(0, all.size() - text.size());
      text.remove_prefix(1);
      return true;
    }
    if (text.front() == '\\') {
      text.remove_prefix(1);
      if (text.empty() || (text.front() != '"' && text.front() != '\\')) return false;
    }
  }
  return false;
}

bool is_lower_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f'); }

/// The text after its first quote. The bytes are not decoded, because they are not used here.
bool take_display_string(std::string_view& text, BareItem& item) noexcept {
  const std::string_view all = text;
  item.type = Type::display_string;
  for (; !text.empty() && is_printable(text.front()); text.remove_prefix(1)) {
    if (text.front() == '"') {
      item.raw = all.substr(0, all.size() - text.size());
      text.remove_prefix(1);
      return true;
    }
    if (text.front() == '%') {
      if (text.size() < 3 || !is_lower_hex(text[1]) || !is_lower_hex(text[2])) return false;
      text.remove_prefix(2);
    }
  }
  return false;
}

bool take_bytes(std::string_view& text, BareItem& item) noexcept {
  item.type = Type::bytes;
  item.raw = take_while(text, is_base64);
  return take(text, ":");
}

bool take_boolean(std::string_view& text, BareItem& item) noexcept {
  item.type = Type::boolean;
  item.number = text.starts_with('1') ? 1 : 0;
  return take(text, "0") || take(text, "1");
}

bool take_date(std::string_view& text, BareItem& item) noexcept {
  const bool sound = take_number(text, item) && item.type == Type::integer;
  item.type = Type::date;
  return sound;
}

bool take_bare_item(std::string_view& text, BareItem& item) noexcept {
  item = {};
  if (text.empty()) return false;
  if (text.front() == '-' || is_digit(text.front())) return take_number(text, item);
  if (take(text, "\"")) return take_string(text, item);
  if (take(text, "%\"")) return take_display_string(text, item);
  if (take(text, ":")) return take_bytes(text, item);
  if (take(text, "?")) return take_boolean(text, item);
  if (take(text, "@")) return take_date(text, item);
  if (!is_alpha(text.front()) && text.front() != '*') return false;
  item.type = Type::token;
  item.raw = take_while(text, is_token);
  return true;
}

/// `;name=value` or `;name`, which is true.
bool take_parameter(std::string_view& text, std::string_view& key, BareItem& value) noexcept {
  if (!take(text, ";")) return false;
  skip(text, is_blank);
  if (!take_key(text, key)) return false;
  value = {.type = Type::boolean, .number = 1};
  return !take(text, "=") || take_bare_item(text, value);
}

/// False at a syntax error.
bool take_parameters(std::string_view& text) noexcept {
  std::string_view key;
  BareItem value;
  while (text.starts_with(';')) {
    if (!take_parameter(text, key, value)) return false;
  }
  return true;
}

int sextet(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (is_lower(c)) return c - 'a' + 26;
  if (is_digit(c)) return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Padding is optional, and bits after the last byte are ignored, as RFC 9651 advises.
bool decode_base64(std::string_view raw, Text& out) noexcept {
  while (raw.ends_with('=')) raw.remove_suffix(1);
  if (raw.size() % 4 == 1) return false;
  unsigned bits = 0;
  unsigned held = 0;
  for (const char c : raw) {
    const int value = sextet(c);
    if (value < 0) return false;
    held = (held << 6U | static_cast<unsigned>(value)) & 0xfffU;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      if (!out.push_back(static_cast<char>(held >> bits & 0xffU))) return false;
    }
  }
  return true;
}

}  // namespace

bool BareItem::copy_to(Text& out) const noexcept {
  out = {};
  if (type == Type::bytes) return decode_base64(raw, out);
  if (type == Type::token) return out.assign(raw);
  if (type != Type::string) return false;
  bool escaped = false;
  for (const char c : raw) {
    escaped = c == '\\' && !escaped;
    if (!escaped && !out.push_back(c)) return false;
  }
  return true;
}

std::optional<BareItem> Member::parameter(std::string_view name) const noexcept {
  std::optional<BareItem> found;
  std::string_view rest = parameters;
  std::string_view each;
  BareItem value;
  while (take_parameter(rest, each, value)) {
    if (each == name) found = value;
  }
  return found;
}

MemberReader::MemberReader(std::string_view value, Shape shape) noexcept
    : rest_(value), shape_(shape) {
  skip(rest_, is_blank);
  while (rest_.ends_with(' ')) rest_.remove_suffix(1);
}

bool MemberReader::read(Member& member) noexcept {
  member = {};
  bool has_item = true;
  if (shape_ == Shape::dictionary) {
    if (!take_key(rest_, member.key)) return false;
    has_item = take(rest_, "=");
    member.item = {.type = Type::boolean, .number = 1};
  }
  if (has_item && !take_bare_item(rest_, member.item)) return false;
  const std::string_view all = rest_;
  if (!take_parameters(rest_)) return false;
  member.parameters = all.substr(0, all.size() - rest_.size());
  skip(rest_, is_space);
  if (rest_.empty()) return true;
  if (!take(rest_, ",")) return false;
  skip(rest_, is_space);
  return !rest_.empty();  // a comma at the end is a syntax error
}

bool MemberReader::next(Member& member) noexcept {
  if (failed_ || rest_.empty()) return false;
  failed_ = !read(member);
  return !failed_;
}

bool MemberReader::sound(std::string_view value, Shape shape) noexcept {
  MemberReader reader(value, shape);
  Member member;
  while (reader.next(member)) {
  }
  return !reader.failed();
}

}  // namespace sluice::http::detail
