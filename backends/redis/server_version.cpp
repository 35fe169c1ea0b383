#include "server_version.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace sluice::redis_detail {
namespace {

/// The most elements of a reply, including those of nested arrays.
constexpr std::uint64_t max_elements = 4096;

/// Parses a reply element by element; after an error there are no more.
class Elements {
 public:
  explicit Elements(std::string_view bytes) noexcept : left_(bytes) {}

  struct Element {
    char type = 0;  // 0: no further element
    std::string_view text{};
    std::uint64_t size = 0;  // of an array
  };

  Element next() noexcept {
    constexpr std::string_view types = "+-:*$";
    if (left_.empty()) return fail(false);
    if (types.find(left_.front()) == std::string_view::npos) return fail(true);
    const std::size_t end = left_.find("\r\n");
    if (end == std::string_view::npos) return fail(false);
    Element element{left_.front(), left_.substr(1, end - 1)};
    left_.remove_prefix(end + 2);
    if (element.type == '$') return bulk(element);
    if (element.type == '*' && !read_size(element.text, element.size)) return fail(true);
    return element;
  }

  [[nodiscard]] bool made_sense() const noexcept { return !is_nonsense_; }
  [[nodiscard]] bool is_at_end() const noexcept { return left_.empty(); }

 private:
  Element fail(bool is_nonsense) noexcept {
    is_nonsense_ = is_nonsense;
    return {};
  }

  Element bulk(Element element) noexcept {
    if (!read_size(element.text, element.size)) return fail(true);
    const auto size = static_cast<std::size_t>(element.size);
    if (left_.size() < size + 2) return fail(false);
    element.text = left_.substr(0, size);
    if (left_.substr(size, 2) != "\r\n") return fail(true);
    left_.remove_prefix(size + 2);
    return element;
  }

  static bool read_size(std::string_view text, std::uint64_t& size) noexcept {
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, size);
    return error == std::errc{} && stop == end && size <= max_hello;
  }

  std::string_view left_;
  bool is_nonsense_ = false;
};

}  // namespace

Hello read_hello(std::string_view bytes) noexcept {
  using Kind = Hello::Kind;
  if (bytes.empty()) return {};
  Elements elements(bytes);
  const auto short_or_bad = [&] {
    const bool may_go_on = elements.made_sense() && bytes.size() < max_hello;
    return Hello{may_go_on ? Kind::incomplete : Kind::nonsense};
  };
  const auto first = elements.next();
  if (first.type == 0) return short_or_bad();
  if (first.type != '*') {
    if (!elements.is_at_end() || first.type == ':' || first.type == '$') return {Kind::nonsense};
    if (first.type == '-') return {Kind::error, {}, {}, first.text};
    return {Kind::other};
  }
  Hello hello{Kind::map};
  std::string_view* value = nullptr;  // the destination of the next element
  std::uint64_t seen = 0;
  for (std::uint64_t left = first.size; left > 0; --left) {
    const auto element = elements.next();
    if (element.type == 0) return short_or_bad();
    if (++seen + element.size > max_elements && element.type == '*') return {Kind::nonsense};
    if (element.type == '*') left += element.size;
    if (value != nullptr) {
      *value = element.text;
      value = nullptr;
    } else if (element.text == "server" && hello.server.empty()) {
      value = &hello.server;
    } else if (element.text == "version" && hello.version.empty()) {
      value = &hello.version;
    }
  }
  if (!elements.is_at_end()) return {Kind::nonsense};
  return hello;
}

std::string_view version_in_info(std::string_view text) noexcept {
  constexpr std::string_view field = "redis_version:";
  const std::size_t at = text.find(field);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + field.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

bool is_too_old(std::string_view version) noexcept {
  unsigned major = 0;
  const auto* const end = version.data() + version.size();
  const auto [stop, error] = std::from_chars(version.data(), end, major);
  return error == std::errc{} && major < oldest_version;
}

}  // namespace sluice::redis_detail
